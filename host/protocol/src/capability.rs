//! What clients say they can do, and what wharf says it can.

use serde_json::{Value, json, value::RawValue};

use crate::{Object, revision::Revision};

/// The extension by which modern servers answer a call with a task.
pub(crate) const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// The abilities of a client that a server may use, for a session (legacy) or one request (modern).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClientCapabilities {
    /// The client tells its roots when it is asked for them.
    pub roots: bool,
    /// It shows a form to a person and sends back what they fill in.
    pub form: bool,
    /// It has a person open a page of the web.
    pub url: bool,
    /// It has its model write something on behalf of the server.
    pub sampling: bool,
    /// Its model may be given tools while it writes.
    pub sampling_tools: bool,
    /// It has the tasks extension of modern revisions: a call may be answered with a task.
    pub tasks: bool,
    /// The JSON as sent, for plugins that want more than wharf reads.
    pub text: Box<str>,
}

impl ClientCapabilities {
    /// Reads what a client declares; `None` if that is not a JSON object.
    ///
    /// An ability that the revision does not have cannot be used, whatever the client says. Members that wharf does not know
    /// are ignored, but stay in [`text`](Self::text), since clients may declare more than MCP defines.
    pub fn read(raw: &RawValue, revision: Revision) -> Option<Self> {
        let all = Self { text: raw.get().into(), ..Self::read_all(&serde_json::from_str(raw.get()).ok()?) };
        let (elicitation, later) = (revision >= Revision::V2025_06_18, revision >= Revision::V2025_11_25);
        Some(Self {
            form: all.form && elicitation,
            url: all.url && later,
            sampling_tools: all.sampling_tools && later,
            tasks: all.tasks && revision >= Revision::V2026_07_28,
            ..all
        })
    }

    fn read_all(raw: &Object) -> Self {
        let has = |name: &str| raw.get(name).is_some_and(Value::is_object);
        let inside =
            |outer: &str, inner: &str| raw.get(outer).and_then(|value| value.get(inner)).is_some_and(Value::is_object);
        let url = inside("elicitation", "url");
        Self {
            roots: has("roots"),
            // An empty `elicitation` object means that the client has forms only. If the object names only `url`, the client
            // has no forms.
            form: has("elicitation") && (inside("elicitation", "form") || !url),
            url,
            sampling: has("sampling"),
            sampling_tools: inside("sampling", "tools"),
            tasks: inside("extensions", TASKS_EXTENSION),
            text: Box::default(),
        }
    }
}

/// What wharf declares. It declares everything from the start, whatever plugins are loaded: plugins come and go, and there is
/// no way to tell a client that the server's capabilities have changed. `tasks` says whether calls may run in the background.
pub(crate) fn server_capabilities(revision: Revision, tasks: bool) -> Value {
    let mut capabilities = Object::new();
    capabilities.insert("tools".into(), json!({ "listChanged": true }));
    capabilities.insert("resources".into(), json!({ "subscribe": true, "listChanged": true }));
    capabilities.insert("prompts".into(), json!({ "listChanged": true }));
    capabilities.insert("logging".into(), json!({}));
    if revision >= Revision::V2025_03_26 {
        capabilities.insert("completions".into(), json!({}));
    }
    match revision {
        Revision::V2025_11_25 if tasks => {
            let requests = json!({ "tools": { "call": {} } });
            capabilities.insert("tasks".into(), json!({ "list": {}, "cancel": {}, "requests": requests }));
        }
        Revision::V2026_07_28 if tasks => {
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
        let raw: &RawValue = serde_json::from_str(raw).unwrap();
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
        ] {
            let read = ClientCapabilities::read(serde_json::from_str(text).unwrap(), Revision::V2025_11_25).unwrap();
            assert_eq!((read.form, read.url), (form, url), "{text}");
        }
    }
}
