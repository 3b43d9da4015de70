//! Untrusted input that wharf parses: messages, headers, URIs, sealed state, configs, what plugins list and answer,
//! components, and answers of servers with secrets in them. Each target takes any bytes; it fails by panicking, by hanging, or by growing.
//!
//! If there is another implementation, the results are compared: messages with serde_json as a whole, serialized texts with what
//! is read back.

#![allow(clippy::expect_used, clippy::panic, reason = "a target fails by panicking")]

mod mask;

use std::{path::Path, sync::LazyLock, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;
use wharf_base::{
    ledger::Account,
    principal::Principal,
    request_state::{Binding, Seal},
    session_id::{IssuedTo, SessionIds},
    state_keys::StateKeys,
};
use wharf_config::config::{self, CommandLine, PluginConfig};
use wharf_plugins::{
    audit::chain::{Head, Verifier},
    bridge::{self, template::Template},
};
use wharf_policy::access::{open::Ceilings, registry};
use wharf_protocol::{
    Frame, Message, Revision, encode::Encoder, error::PARSE_ERROR, header::decode_value, message::error_text,
    model::ServerInfo,
};
use wharf_sandbox::{
    Listing, demangled,
    json::{NotParsed, Room},
    model::{Content, Prompt, PromptArgument, ResourceEntry, ResourceTemplate, Tool, ToolResult},
};
use wharf_schema::Schema;

/// Takes any bytes, and panics where something is wrong.
pub type Target = fn(&[u8]);

pub const TARGETS: &[(&str, Target)] = &[
    ("frame", frame),
    ("header", header),
    ("uri", uri),
    ("seal", seal),
    ("config", config),
    ("schema", schema),
    ("offer", offer),
    ("content", content),
    ("values", values),
    ("trap", trap),
    ("component", component),
    ("audit", audit),
    ("trusted", trusted),
    ("mask", mask::mask),
];

pub fn nothing(_: &[u8]) {}

/// The parts of an input, as text.
fn parts(data: &[u8]) -> Vec<String> {
    data.split(|byte| *byte == 0xff).map(|part| String::from_utf8_lossy(part).into_owned()).collect()
}

/// Accepted messages are JSON, valid JSON gives no parse error, and parsed values equal those of serde_json.
fn frame(data: &[u8]) {
    let whole: Result<Value, _> = serde_json::from_slice(data);
    match Frame::parse(data) {
        Ok(frame) => {
            assert!(serde_json::from_slice::<serde::de::IgnoredAny>(data).is_ok(), "accepted what is not JSON");
            if let (Frame::One(message), Ok(whole)) = (&frame, &whole) {
                same(message, whole);
            }
        }
        Err(malformed) => {
            assert!(!(whole.is_ok() && malformed.error.code == PARSE_ERROR), "refused JSON as none");
            for revision in Revision::ALL {
                let text = error_text(malformed.id.as_ref(), &malformed.error, revision);
                assert!(serde_json::from_str::<Value>(&text).is_ok(), "{text}");
            }
        }
    }
}

fn same(message: &Message, whole: &Value) {
    match message {
        Message::Request(request) => {
            assert_eq!(whole.get("method").and_then(Value::as_str), Some(request.method.as_str()));
            assert_eq!(whole.get("id"), Some(&request.id.to_value()));
        }
        Message::Notification(notification) => {
            assert_eq!(whole.get("method").and_then(Value::as_str), Some(notification.method.as_str()));
            assert!(whole.get("id").is_none());
        }
        Message::Response(_) => assert!(whole.get("method").is_none_or(Value::is_null)),
    }
}

/// A header stands for the same text whether it is written plainly or wrapped. Only what can be seen, without blanks around it and
/// without the marks of wrapped text at both ends, may be written plainly.
fn header(data: &[u8]) {
    if let Some(text) = decode_value(data) {
        let wrapped = format!("=?base64?{}?=", STANDARD.encode(&text));
        assert_eq!(decode_value(wrapped.as_bytes()).as_ref(), Some(&text));
        let visible = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        let marked = text.starts_with("=?base64?") && text.ends_with("?=");
        if visible && text.trim() == text && !marked {
            assert_eq!(decode_value(text.as_bytes()).as_ref(), Some(&text));
        }
    }
    let encoder = encoder();
    for text in parts(data) {
        let result: Value = serde_json::from_str(&encoder.text_result(&text)).expect("a result is JSON");
        assert_eq!(result.pointer("/content/0/text").and_then(Value::as_str), Some(text.as_str()));
    }
}

fn encoder() -> Encoder {
    let server = ServerInfo { name: "w".into(), version: "0".into(), ..ServerInfo::default() };
    Encoder::new(Revision::V2025_11_25, server)
}

fn uri(data: &[u8]) {
    let parts = parts(data);
    if let [template, uris @ ..] = parts.as_slice() {
        if let Ok(template) = Template::compile(template) {
            for uri in uris {
                assert!(!template.matches(uri) || uri.starts_with(&template.prefix), "{uri}");
            }
        }
        for uri in uris {
            // There is nothing that could be opened.
            assert!(Ceilings::default().open(uri).is_err());
        }
    }
}

/// State and ids of sessions that were not sealed cannot be opened.
fn seal(data: &[u8]) {
    static KEYS: LazyLock<StateKeys> = LazyLock::new(|| StateKeys::new([7; 32], vec![[8; 32]]));
    static SEAL: LazyLock<Seal> = LazyLock::new(|| Seal::new(&KEYS));
    static IDS: LazyLock<SessionIds> =
        LazyLock::new(|| SessionIds::new(&KEYS, Duration::MAX).expect("the length of a key"));
    let to = IssuedTo { principal: &Principal::Anonymous, profile: None };
    let arguments = Value::Null;
    let binding = Binding {
        principal: &Principal::Process,
        method: "tools/call",
        name: "t",
        arguments: &arguments,
        plugin_digest: &[0; 32],
    };
    for token in parts(data) {
        assert!(SEAL.open(&token, &binding).is_err(), "{token}");
        assert!(SEAL.open(&format!("v1.{token}"), &binding).is_err(), "{token}");
        assert!(IDS.open(&token, to).is_none(), "{token}");
        assert!(IDS.open(&format!("s1.{token}"), to).is_none(), "{token}");
    }
}

/// The text of the result or error contains no control characters.
fn config(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Err(error) = config::from_text(&text, Some(Path::new("/none/wharf.toml")), &CommandLine::default()) {
        assert!(!format!("{error:#}").is_empty());
    }
}

fn schema(data: &[u8]) {
    let parts = parts(data);
    let Some(Ok(schema)) = parts.first().map(|text| Schema::small(text)) else { return };
    for text in parts.iter().skip(1) {
        let Ok(value) = serde_json::from_str(text) else { continue };
        let checked = schema.check(&value);
        assert!(!schema.fits(text) || checked.is_ok(), "{text} fits and is refused: {checked:?}");
    }
}

fn plugin() -> &'static PluginConfig {
    static PLUGIN: LazyLock<PluginConfig> = LazyLock::new(|| {
        let config = config::from_text("", None, &CommandLine::default()).expect("defaults");
        config.dropped_in("p", "p.wasm".into())
    });
    &PLUGIN
}

/// The published form of every list is JSON.
fn offer(data: &[u8]) {
    let parts = parts(data);
    let text = |at: usize| parts.get(at).cloned().unwrap_or_default();
    let more = |at: usize| parts.get(at).filter(|text| !text.is_empty()).cloned();
    let listing = Listing {
        instructions: more(1),
        tools: vec![Tool {
            name: text(0),
            description: text(1),
            input_schema: parts.get(2).cloned().unwrap_or_else(|| r#"{"type":"object"}"#.into()),
            details: None,
        }],
        resources: more(3)
            .map(|uri| ResourceEntry { uri, name: text(0), description: more(1), mime_type: more(4), more: more(5) })
            .into_iter()
            .collect(),
        templates: more(6)
            .map(|uri_template| ResourceTemplate {
                uri_template,
                name: text(0),
                description: more(1),
                mime_type: more(4),
                more: more(5),
            })
            .into_iter()
            .collect(),
        prompts: more(7)
            .map(|name| Prompt {
                name,
                description: more(1),
                arguments: vec![PromptArgument { name: text(4), description: more(1), required: true }],
                more: more(5),
            })
            .into_iter()
            .collect(),
    };
    let account = Account::new(64 << 20);
    if let Ok(offer) = bridge::offer(plugin(), listing.into(), &account) {
        let encoder = encoder();
        for tool in &offer.tools {
            let entry = encoder.tool(&tool.published).to_string();
            assert!(serde_json::from_str::<Value>(&entry).is_ok(), "{entry}");
        }
    }
    assert_eq!(account.used(), 0, "everything is given back");
}

/// A plugin's answer becomes JSON, or is reported as a defect of the plugin.
fn content(data: &[u8]) {
    let parts = parts(data);
    let more = |at: usize| parts.get(at).filter(|text| !text.is_empty()).cloned();
    let content = more(0).map(Content::Raw).into_iter().chain(more(1).map(Content::Text)).collect();
    let result = ToolResult { content, structured: more(2), is_error: false, more: more(3) };
    if let Ok(result) = bridge::tool_result(result, &bridge::Paid::in_test()) {
        let text = encoder().tool_result(result);
        assert!(serde_json::from_str::<Value>(&text).is_ok(), "{text}");
    }
}

/// JSON of a guest is charged with at least what its values take besides its text, is what serde_json makes of it, and gives everything
/// back.
fn values(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let account = Account::new(64 << 20);
    let room = Room::of(&account);
    let whole = serde_json::from_str::<Value>(&text);
    match room.parse::<Value>(&text) {
        Ok(value) => {
            let charged = account.used() + text.len();
            assert!(charged >= taken(&value), "{charged} bytes charged for {}: {text}", taken(&value));
            assert_eq!(Some(value), whole.ok(), "{text}");
        }
        Err(NotParsed::Malformed(why)) => {
            assert!(whole.is_err() && why.len() <= 2 << 10, "{why}");
        }
        Err(NotParsed::Full(_)) => assert!(text.len() > 100_000, "no room for {} bytes", text.len()),
    }
    drop(room);
    assert_eq!(account.used(), 0, "everything is given back");
}

/// Returns the least memory that the parts of a value take.
fn taken(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(|item| size_of::<Value>() + taken(item)).sum(),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| size_of::<(String, Value)>() + name.len() + taken(value);
            members.iter().map(member).sum()
        }
    }
}

/// The names of functions in the backtrace of a trap become no longer than there is room for, and other lines stay as they are.
fn trap(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let shown = demangled(&text);
    assert!(shown.len() <= (16 << 10) + 32, "{} bytes", shown.len());
    if text.len() <= 16 << 10 && !text.contains('!') {
        assert_eq!(shown, text.lines().collect::<Vec<_>>().join("\n"));
    }
}

/// An entry of what another process protects is the same after it is written again.
fn trusted(data: &[u8]) {
    if let Some(read) = registry::decoded(data) {
        let written = registry::encoded(read.0.as_deref(), &read.1);
        assert_eq!(registry::decoded(&written), Some(read));
    }
}

/// A line that continues a chain has a head, and what is written after it continues it.
fn audit(data: &[u8]) {
    let mut verifier = Verifier::default();
    for line in data.split(|byte| *byte == b'\n') {
        if verifier.line(line).is_ok() {
            assert_eq!(Head::of_line(line), Some(verifier.head()));
        }
    }
    let mut next = Vec::new();
    let head = verifier.head().append(b"", b"\"event\":\"start\"", &mut next);
    next.pop();
    assert_eq!(verifier.line(&next), Ok(()));
    assert_eq!(verifier.head(), head);
}

/// What is prepared was valid and is valid.
fn component(data: &[u8]) {
    if wharf_sandbox::would_instantiate(data).is_ok()
        && let Some(prepared) = wharf_forge::prepared(data)
    {
        assert!(wasmparser::Validator::new().validate_all(&prepared.component).is_ok());
    }
}
