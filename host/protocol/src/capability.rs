//! What clients say they can do, and what wharf says it can.

use serde_json::{Value, json};

use crate::{Object, revision::Revision};

/// The abilities of a client that a server may use, for a session (legacy) or one request (modern).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClientCapabilities {
    pub roots: bool,
    pub form: bool,
    pub url: bool,
    pub sampling: bool,
    pub sampling_tools: bool,
    /// As sent, for plugins that want more than wharf reads.
    pub raw: Object,
}

impl ClientCapabilities {
    /// Unknown members are kept and ignored: the set is not closed.
    pub fn read(raw: &Object) -> Self {
        let has = |name: &str| raw.get(name).is_some_and(Value::is_object);
        let inside =
            |outer: &str, inner: &str| raw.get(outer).and_then(|value| value.get(inner)).is_some_and(Value::is_object);
        let url = inside("elicitation", "url");
        Self {
            roots: has("roots"),
            // An empty object means form only; naming url alone leaves form out.
            form: has("elicitation") && (inside("elicitation", "form") || !url),
            url,
            sampling: has("sampling"),
            sampling_tools: inside("sampling", "tools"),
            raw: raw.clone(),
        }
    }
}

/// What wharf declares. The same from the first moment on, since plugins come and go and there is no way to tell a
/// client that capabilities changed.
pub fn server_capabilities(revision: Revision) -> Value {
    let mut capabilities = json!({
        "tools": { "listChanged": true },
        "resources": { "subscribe": true, "listChanged": true },
        "prompts": { "listChanged": true },
        "logging": {},
    });
    if revision >= Revision::V2025_03_26
        && let Some(object) = capabilities.as_object_mut()
    {
        object.insert("completions".into(), json!({}));
    }
    capabilities
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elicitation_modes() {
        for (text, form, url) in [
            ("{}", false, false),
            (r#"{"elicitation":{}}"#, true, false),
            (r#"{"elicitation":{"form":{}}}"#, true, false),
            (r#"{"elicitation":{"url":{}}}"#, false, true),
            (r#"{"elicitation":{"form":{},"url":{}}}"#, true, true),
            (r#"{"elicitation":true}"#, false, false),
        ] {
            let read = ClientCapabilities::read(&serde_json::from_str(text).unwrap());
            assert_eq!((read.form, read.url), (form, url), "{text}");
        }
    }
}
