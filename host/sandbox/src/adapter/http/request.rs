//! The messages that wharf sends to a server, and the HTTP requests that carry them.

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Uri,
    header::{ACCEPT, CONTENT_TYPE, HOST},
    uri::PathAndQuery,
};
use serde_json::{Map, Value, json, value::RawValue};

use super::Mirrored;
use wharf_base::json_size::MAX_SCHEMA_BYTES;

use crate::{
    bindings::model::{ClientCapabilities, Context, Reports},
    contract::{
        json::{NotParsed, Room},
        operation::CallError,
    },
};

/// The revision in which each request describes itself.
pub(super) const SELF_DESCRIBING: &str = "2026-07-28";
/// The revisions that begin with `initialize`, newest first. The first one is offered.
pub(super) const GREETED: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// The name under which the server finds itself. Servers accept it that refuse the names of other hosts against DNS rebinding.
const AUTHORITY: &str = "localhost";

/// A message before it is sent.
pub(super) struct Outgoing<'a> {
    pub(super) method: &'static str,
    /// The members of `params`.
    pub(super) params: Vec<(&'static str, Param<'a>)>,
    /// What is asked for, which is repeated in a header.
    pub(super) name: Option<&'a str>,
    /// What the server may know about the client.
    pub(super) about: About,
}

/// A member of `params`.
pub(super) enum Param<'a> {
    Text(&'a str),
    /// A text that is JSON already.
    Raw(&'a str),
    Json(Value),
}

/// What a request says about the client of wharf on whose behalf it is sent. The default says nothing.
#[derive(Clone, Copy)]
pub(super) struct About {
    capabilities: ClientCapabilities,
    reports: Reports,
}

impl Default for About {
    fn default() -> Self {
        Self { capabilities: ClientCapabilities::empty(), reports: Reports::empty() }
    }
}

impl About {
    pub(super) fn of(context: &Context) -> Self {
        Self { capabilities: context.capabilities, reports: context.reports }
    }

    /// Whether the client wants progress reports.
    pub(super) fn wants_progress(self) -> bool {
        self.reports.contains(Reports::PROGRESS)
    }
}

/// Returns the name and the version of this client.
pub(super) fn client_info() -> Value {
    json!({ "name": "wharf", "version": env!("CARGO_PKG_VERSION") })
}

impl<'a> Outgoing<'a> {
    pub(super) fn new(method: &'static str) -> Self {
        Self { method, params: Vec::new(), name: None, about: About::default() }
    }

    pub(super) fn param(mut self, name: &'static str, param: Param<'a>) -> Self {
        self.params.push((name, param));
        self
    }

    /// Writes the message. `id`: `None` for a notification. `describes_itself`: whether it contains what `initialize` says in older
    /// revisions.
    pub(super) fn message(&self, id: Option<u64>, describes_itself: bool) -> String {
        let mut text = r#"{"jsonrpc":"2.0","#.to_owned();
        if let Some(id) = id {
            text.push_str(&format!(r#""id":{id},"#));
        }
        text.push_str(&format!(r#""method":"{}","params":{{"#, self.method));
        for (name, param) in &self.params {
            text.push_str(&format!(r#""{name}":"#));
            match param {
                Param::Text(value) => text.push_str(&Value::from(*value).to_string()),
                Param::Raw(json) => text.push_str(json),
                Param::Json(value) => text.push_str(&value.to_string()),
            }
            text.push(',');
        }
        let meta = self.meta(id, describes_itself);
        if meta.is_empty() {
            if text.ends_with(',') {
                text.pop();
            }
        } else {
            text.push_str(&format!(r#""_meta":{}"#, Value::Object(meta)));
        }
        text.push_str("}}");
        text
    }

    fn meta(&self, id: Option<u64>, describes_itself: bool) -> Map<String, Value> {
        let About { capabilities, reports } = self.about;
        let mut meta = Map::new();
        if let Some(id) = id.filter(|_| reports.contains(Reports::PROGRESS)) {
            meta.insert("progressToken".into(), id.into());
        }
        if describes_itself {
            let mut own = |name: &str, value: Value| meta.insert(format!("io.modelcontextprotocol/{name}"), value);
            own("protocolVersion", SELF_DESCRIBING.into());
            own("clientInfo", client_info());
            own("clientCapabilities", able(capabilities));
            if reports.contains(Reports::LOG) {
                // Which of the records the client gets is decided later.
                own("logLevel", "debug".into());
            }
        }
        meta
    }
}

/// Returns the capabilities of a client as MCP writes them.
fn able(capabilities: ClientCapabilities) -> Value {
    let mut able = Map::new();
    let mut elicitation = Map::new();
    for (capability, name) in [(ClientCapabilities::FORM, "form"), (ClientCapabilities::URL, "url")] {
        if capabilities.contains(capability) {
            elicitation.insert(name.into(), json!({}));
        }
    }
    if !elicitation.is_empty() {
        able.insert("elicitation".into(), elicitation.into());
    }
    if capabilities.contains(ClientCapabilities::SAMPLING_TOOLS) {
        able.insert("sampling".into(), json!({ "tools": {} }));
    } else if capabilities.contains(ClientCapabilities::SAMPLING) {
        able.insert("sampling".into(), json!({}));
    }
    if capabilities.contains(ClientCapabilities::ROOTS) {
        able.insert("roots".into(), json!({}));
    }
    able.into()
}

/// Makes the HTTP request for a message.
pub(super) fn post(endpoint: &PathAndQuery, headers: HeaderMap, message: String) -> Request<Bytes> {
    let mut request = Request::new(Bytes::from(message));
    *request.method_mut() = Method::POST;
    let uri = Uri::builder().scheme("http").authority(AUTHORITY).path_and_query(endpoint.clone());
    // An endpoint is a path already, so this cannot fail.
    *request.uri_mut() = uri.build().unwrap_or_default();
    *request.headers_mut() = headers;
    let headers = request.headers_mut();
    headers.insert(HOST, HeaderValue::from_static(AUTHORITY));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    request
}

/// Returns the headers that repeat parts of a message that describes itself. `mirrored`: the arguments that are repeated too.
pub(super) fn repeated(outgoing: &Outgoing<'_>, mirrored: &[Mirrored]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("mcp-protocol-version", HeaderValue::from_static(SELF_DESCRIBING));
    headers.insert("mcp-method", HeaderValue::from_static(outgoing.method));
    if let Some(name) = outgoing.name.and_then(value) {
        headers.insert("mcp-name", name);
    }
    if mirrored.is_empty() {
        return headers;
    }
    let arguments = outgoing.params.iter().find_map(|(name, param)| match param {
        // Past the door: the client's message is charged.
        Param::Raw(json) if *name == "arguments" => serde_json::from_str::<Value>(json).ok(),
        _ => None,
    });
    for Mirrored { path, header } in mirrored {
        let argument = path.iter().try_fold(arguments.as_ref(), |value, name| Some(value?.get(name))).flatten();
        let text = match argument {
            Some(Value::String(text)) => value(text),
            Some(other @ (Value::Number(_) | Value::Bool(_))) => value(&other.to_string()),
            _ => None,
        };
        if let Some(text) = text {
            headers.insert(header.clone(), text);
        }
    }
    headers
}

/// Encodes a text for a header that repeats it: what a header cannot hold is base64.
fn value(text: &str) -> Option<HeaderValue> {
    let is_plain = text.bytes().all(|byte| matches!(byte, 0x20..=0x7e))
        && text.trim() == text
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    let encoded = if is_plain { text.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(text)) };
    HeaderValue::try_from(encoded).ok()
}

/// Finds the arguments of a tool that are mirrored in headers: those with `x-mcp-header` to which only `properties` lead.
/// Returns none for a schema that is too large, since its tool is refused later.
pub(super) fn mirrored(schema: &RawValue, room: &Room) -> Result<Vec<Mirrored>, CallError> {
    let (schema, mut found) = (schema.get(), Vec::new());
    if schema.len() <= MAX_SCHEMA_BYTES && schema.contains(ANNOTATION) {
        match room.parse(schema) {
            Ok(schema) => find(&schema, &mut Vec::new(), &mut found),
            Err(NotParsed::Malformed(_)) => {}
            Err(NotParsed::Full(_)) => return Err(CallError::TotalMemory),
        }
    }
    Ok(found)
}

const ANNOTATION: &str = "x-mcp-header";

fn find(schema: &Value, path: &mut Vec<String>, found: &mut Vec<Mirrored>) {
    let name = schema.get(ANNOTATION).and_then(Value::as_str);
    if let Some(header) = name.and_then(|name| HeaderName::try_from(format!("mcp-param-{name}")).ok()) {
        found.push(Mirrored { path: path.clone(), header });
    }
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        path.push(name.clone());
        find(property, path, found);
        path.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_base::accounts::Account;

    #[test]
    fn messages_describe_themselves_if_they_have_to() {
        let about =
            About { capabilities: ClientCapabilities::FORM | ClientCapabilities::SAMPLING, reports: Reports::PROGRESS };
        let call = Outgoing { name: Some("a"), about, ..Outgoing::new("tools/call") };
        let call = call.param("name", Param::Text("a\"b")).param("arguments", Param::Raw("{\"x\":1}"));
        let of = |id, describes_itself| serde_json::from_str::<Value>(&call.message(id, describes_itself)).unwrap();
        let params = json!({ "name": "a\"b", "arguments": { "x": 1 } });
        assert_eq!(of(None, false), json!({ "jsonrpc": "2.0", "method": "tools/call", "params": params }));
        let told = of(Some(3), true);
        assert_eq!(told["params"]["_meta"]["progressToken"], 3);
        assert_eq!(
            told["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"],
            json!({ "elicitation": { "form": {} }, "sampling": {} })
        );
        let empty = Outgoing::new("tools/list").message(Some(1), false);
        assert_eq!(empty, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#);
    }

    #[test]
    fn headers_repeat_what_the_message_says() {
        for (text, expected) in [
            ("abc", "abc"),
            (" a", "=?base64?IGE=?="),
            ("grüße", "=?base64?Z3LDvMOfZQ==?="),
            ("=?base64?x?=", "=?base64?PT9iYXNlNjQ/eD89?="),
        ] {
            assert_eq!(value(text).unwrap(), expected);
        }
        let schema = json!({ "properties": {
            "a": { "type": "string", "x-mcp-header": "Region" },
            "b": { "properties": { "c": { "type": "integer", "x-mcp-header": "Count" } } },
            "d": { "items": { "x-mcp-header": "Not" } },
        } });
        let account = Account::new(1 << 20);
        let found =
            |schema: &Value| mirrored(&serde_json::value::to_raw_value(schema).unwrap(), &Room::of(&account)).unwrap();
        let mut large = schema.clone();
        large["description"] = "x".repeat(MAX_SCHEMA_BYTES).into();
        assert!(found(&large).is_empty(), "a schema that is refused later");
        let found = found(&schema);
        let call = Outgoing::new("tools/call").param("arguments", Param::Raw(r#"{"a":"eu","b":{"c":42}}"#));
        let headers = repeated(&call, &found);
        assert_eq!(headers["mcp-param-region"], "eu");
        assert_eq!(headers["mcp-param-count"], "42");
        assert_eq!((headers.len(), found.len()), (4, 2));
    }
}
