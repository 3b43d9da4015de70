//! `[server]`: what clients are told about this server as a whole.

use anyhow::{Result, ensure};
use wharf_protocol::{Object, model::ServerInfo};

use super::raw;

/// The longest instructions. Clients give the whole text to their model in every conversation.
pub const MAX_INSTRUCTIONS_BYTES: usize = 8 << 10;
const MAX_TEXT_BYTES: usize = 1 << 10;
/// Large enough for an icon in a `data:` URI.
const MAX_ICON_BYTES: usize = 64 << 10;
const MAX_ICONS: usize = 8;

/// How the server presents itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Face {
    pub info: ServerInfo,
    /// Text for the model, about all tools together.
    pub instructions: Option<String>,
}

pub fn resolve(raw: raw::Server) -> Result<Face> {
    let raw::Server { name, title, description, instructions, website, icons, catalog: _ } = raw;
    for (key, text) in [("name", &name), ("title", &title), ("description", &description)] {
        let bytes = text.as_ref().map_or(0, String::len);
        ensure!(bytes <= MAX_TEXT_BYTES, "`{key}` has {bytes} bytes, more than {MAX_TEXT_BYTES}");
    }
    ensure!(name.as_deref() != Some(""), "`name` is empty");
    let bytes = instructions.as_ref().map_or(0, String::len);
    ensure!(bytes <= MAX_INSTRUCTIONS_BYTES, "`instructions` has {bytes} bytes, more than {MAX_INSTRUCTIONS_BYTES}");
    if let Some(website) = &website {
        ensure!(
            is_url(website, &["https://", "http://"]),
            "`website`: `{website}` is not a URL such as https://example.com"
        );
    }
    ensure!(icons.len() <= MAX_ICONS, "`icons`: there are {}, more than {MAX_ICONS}", icons.len());
    let icons = icons.into_iter().map(icon).collect::<Result<_>>()?;
    // A server with a configured name must not have the default title.
    let title = title.or_else(|| name.is_none().then(|| "wharf".to_owned()));
    let info = ServerInfo {
        name: name.unwrap_or_else(|| "wharf".into()),
        title,
        version: env!("CARGO_PKG_VERSION").into(),
        description,
        website,
        icons,
    };
    Ok(Face { info, instructions: instructions.filter(|text| !text.trim().is_empty()) })
}

fn icon(raw: raw::Icon) -> Result<Object> {
    let raw::Icon { src, mime_type, sizes } = raw;
    ensure!(
        is_url(&src, &["https://", "data:image/"]),
        "`icons`: `{}` is neither an https:// nor a data:image/ URL",
        src.chars().take(60).collect::<String>()
    );
    ensure!(src.len() <= MAX_ICON_BYTES, "`icons`: a URL has {} bytes, more than {MAX_ICON_BYTES}", src.len());
    let mut icon = Object::new();
    icon.insert("src".into(), src.into());
    if let Some(mime_type) = mime_type {
        icon.insert("mimeType".into(), mime_type.into());
    }
    if !sizes.is_empty() {
        icon.insert("sizes".into(), sizes.into());
    }
    Ok(icon)
}

fn is_url(text: &str, schemes: &[&str]) -> bool {
    schemes.iter().any(|scheme| text.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty()))
        && !text.contains(|character: char| character.is_whitespace() || character.is_control())
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
        let icon = |src: &str| raw::Icon { src: src.into(), mime_type: None, sizes: vec![] };
        for (raw, expected) in [
            (raw::Server { name: Some(String::new()), ..server() }, "`name` is empty"),
            (raw::Server { instructions: Some("x".repeat(9000)), ..server() }, "more than 8192"),
            (raw::Server { website: Some("example.com".into()), ..server() }, "not a URL"),
            (raw::Server { icons: vec![icon("javascript:x")], ..server() }, "neither an https"),
            (raw::Server { icons: (0..9).map(|_| icon("https://e.example/i")).collect(), ..server() }, "more than 8"),
        ] {
            let error = resolve(raw).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
