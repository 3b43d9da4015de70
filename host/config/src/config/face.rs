//! `[server]`: what clients are told about this server as a whole.

use anyhow::{Result, ensure};
use wharf_protocol::model::ServerInfo;

use super::raw;

/// The longest instructions. Clients give the whole text to their model in every conversation.
pub const MAX_INSTRUCTIONS_BYTES: usize = 8 << 10;
const MAX_TEXT_BYTES: usize = 1 << 10;

/// How the server presents itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Face {
    pub info: ServerInfo,
    /// Text for the model, about all tools together.
    pub instructions: Option<String>,
}

pub fn resolve(raw: raw::Server) -> Result<Face> {
    let raw::Server { name, title, description, instructions, catalog: _ } = raw;
    for (key, text) in [("name", &name), ("title", &title), ("description", &description)] {
        let bytes = text.as_ref().map_or(0, String::len);
        ensure!(bytes <= MAX_TEXT_BYTES, "`{key}` has {bytes} bytes, more than {MAX_TEXT_BYTES}");
    }
    ensure!(name.as_deref() != Some(""), "`name` is empty");
    let bytes = instructions.as_ref().map_or(0, String::len);
    ensure!(bytes <= MAX_INSTRUCTIONS_BYTES, "`instructions` has {bytes} bytes, more than {MAX_INSTRUCTIONS_BYTES}");
    // A server with a configured name must not have the default title.
    let title = title.or_else(|| name.is_none().then(|| "wharf".to_owned()));
    let info = ServerInfo {
        name: name.unwrap_or_else(|| "wharf".into()),
        title,
        version: env!("CARGO_PKG_VERSION").into(),
        description,
    };
    Ok(Face { info, instructions: instructions.filter(|text| !text.trim().is_empty()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_is_wharf() {
        let face = resolve(raw::Server::default()).unwrap();
        assert_eq!((&*face.info.name, face.info.title.as_deref()), ("wharf", Some("wharf")));
        assert_eq!(face.instructions, None);
        let named = resolve(raw::Server { name: Some("files".into()), ..raw::Server::default() }).unwrap();
        assert_eq!((&*named.info.name, named.info.title), ("files", None));
    }

    #[test]
    fn what_clients_could_stumble_over_is_refused() {
        let server = raw::Server::default;
        for (raw, expected) in [
            (raw::Server { name: Some(String::new()), ..server() }, "`name` is empty"),
            (raw::Server { instructions: Some("x".repeat(9000)), ..server() }, "more than 8192"),
        ] {
            let error = resolve(raw).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
