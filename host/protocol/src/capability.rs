//! The capabilities that clients declare, and those that wharf declares.

use serde_json::{Value, json};

use crate::{object::Object, revision::Revision};

/// The extension by which modern servers answer a call with a task.
pub(crate) const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// The capabilities of a client that a server may use, for a session (legacy) or one request (modern).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClientCapabilities {
    /// The client answers requests for its roots.
    pub roots: bool,
    /// The client can show a form to a person and send back the answers.
    pub form: bool,
    /// The client can ask a person to open a web page.
    pub url: bool,
    /// The client can let its model generate text for the server.
    pub sampling: bool,
    /// The client's model can use tools during sampling.
    pub sampling_tools: bool,
    /// The client supports the tasks extension of modern revisions: a call may be answered with a task.
    pub tasks: bool,
    /// The JSON as it was sent, for plugins that need more than wharf reads.
    pub text: Box<str>,
}

impl ClientCapabilities {
    /// Parses what a client declares; `None` if that is not a JSON object.
    ///
    /// A capability that the revision does not define is not used, even if the client declares it. Members that wharf does not know are
    /// ignored, but stay in [`text`](Self::text), since clients may declare more than MCP defines.
    pub fn read(text: &str, revision: Revision) -> Option<Self> {
        let all = Self { text: text.into(), ..Self::read_all(&serde_json::from_str(text).ok()?) };
        let (elicitation, later) = (revision >= Revision::V2025_06_18, revision >= Revision::V2025_11_25);
        Some(Self {
            form: all.form && elicitation,
            url: all.url && later,
            sampling_tools: all.sampling_tools && later,
            tasks: all.tasks && revision >= Revision::V2026_07_28,
            ..all
        })
    }

    /// Returns a JSON object with only the capabilities that wharf uses in revisions with a handshake. [`read`](Self::read) reads the same
    /// from it as from [`text`](Self::text).
    pub fn brief(&self) -> String {
        let mut brief = Object::new();
        if self.roots {
            brief.insert("roots".into(), json!({}));
        }
        if self.sampling {
            brief.insert("sampling".into(), if self.sampling_tools { json!({ "tools": {} }) } else { json!({}) });
        }
        let modes = [("form", self.form), ("url", self.url)];
        let modes: Object =
            modes.into_iter().filter(|(_, has)| *has).map(|(mode, _)| (mode.into(), json!({}))).collect();
        if !modes.is_empty() {
            brief.insert("elicitation".into(), Value::Object(modes));
        }
        Value::Object(brief).to_string()
    }

    fn read_all(raw: &Object) -> Self {
        let has = |name: &str| raw.get(name).is_some_and(Value::is_object);
        let inside =
            |outer: &str, inner: &str| raw.get(outer).and_then(|value| value.get(inner)).is_some_and(Value::is_object);
        let url = inside("elicitation", "url");
        Self {
            roots: has("roots"),
            // An empty `elicitation` object means that the client supports only forms. If the object contains only `url`, the client does
            // not support forms.
            form: has("elicitation") && (inside("elicitation", "form") || !url),
            url,
            sampling: has("sampling"),
            sampling_tools: inside("sampling", "tools"),
            tasks: inside("extensions", TASKS_EXTENSION),
            text: Box::default(),
        }
    }
}

/// Returns the capabilities that wharf declares. All of them are declared from the start, regardless of the loaded plugins: plugins come
/// and go, and a client cannot be notified that the server's capabilities have changed.
pub(crate) fn server_capabilities(revision: Revision) -> Value {
    let mut capabilities = Object::new();
    capabilities.insert("tools".into(), json!({ "listChanged": true }));
    capabilities.insert("resources".into(), json!({ "subscribe": true, "listChanged": true }));
    capabilities.insert("prompts".into(), json!({ "listChanged": true }));
    capabilities.insert("logging".into(), json!({}));
    if revision >= Revision::V2025_03_26 {
        capabilities.insert("completions".into(), json!({}));
    }
    match revision {
        Revision::V2025_11_25 => {
            let requests = json!({ "tools": { "call": {} } });
            capabilities.insert("tasks".into(), json!({ "list": {}, "cancel": {}, "requests": requests }));
        }
        Revision::V2026_07_28 => {
            capabilities.insert("extensions".into(), json!({ TASKS_EXTENSION: {} }));
        }
        _ => {}
    }
    Value::Object(capabilities)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_bound_abilities() {
        let raw = r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{}}"#;
        for (revision, form, url, tools) in [
            (Revision::V2024_11_05, false, false, false),
            (Revision::V2025_03_26, false, false, false),
            (Revision::V2025_06_18, true, false, false),
            (Revision::V2025_11_25, true, true, true),
            (Revision::V2026_07_28, true, true, true),
        ] {
            let read = ClientCapabilities::read(raw, revision).unwrap();
            assert_eq!((read.form, read.url, read.sampling_tools), (form, url, tools), "{revision:?}");
            assert!(read.sampling && read.roots);
        }
    }

    #[test]
    fn elicitation_modes() {
        for (text, form, url) in [
            ("{}", false, false),
            (r#"{"elicitation":{}}"#, true, false),
            (r#"{"elicitation":{"form":{}}}"#, true, false),
            (r#"{"elicitation":{"url":{}}}"#, false, true),
            (r#"{"elicitation":{"form":{},"url":{}}}"#, true, true),
            (r#"{"elicitation":true}"#, false, false),
            (r#"{"roots":{"listChanged":true},"sampling":{"tools":{}},"elicitation":{"url":{}},"x":1}"#, false, true),
            (r#"{"sampling":{"context":{}}}"#, false, false),
        ] {
            let read = ClientCapabilities::read(text, Revision::V2025_11_25).unwrap();
            assert_eq!((read.form, read.url), (form, url), "{text}");
            let again = ClientCapabilities::read(&read.brief(), Revision::V2025_11_25).unwrap();
            assert_eq!(again, ClientCapabilities { text: again.text.clone(), ..read }, "{text}");
        }
    }
}
