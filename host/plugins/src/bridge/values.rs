//! Parses the JSON texts that plugins and clients exchange, and removes `_meta` keys that are reserved for the protocol.

use serde_json::Value;
use wharf_protocol::{Object, RpcError, unambiguous::Unambiguous};
use wharf_sandbox::{
    json::{NotParsed, Room},
    model as wit,
};

use wharf_base::{
    heavy::{LARGE_TEXT_BYTES, heavy},
    ledger::tree_bytes,
};

/// The number of bytes of the parsed tree that take as long to parse as one byte of text takes to write. Converts tree sizes to the text
/// sizes that [`heavy`] expects.
const TREE_BYTES_PER_TEXT_BYTE: usize = 64;

/// The `_meta` key that contains the id of the plugin in each list entry.
pub const PLUGIN_META: &str = "dev.wharf/plugin";

/// The `_meta` key with which a tool says that its questions are asked before a task begins.
pub const ASK_BEFORE_TASK_META: &str = "dev.wharf/ask-before-task";

/// The `_meta` key with which a tool says that it validates its arguments itself.
pub const VALIDATES_META: &str = "dev.wharf/validates";

/// Parses a call's arguments; without a text, they are `{}`. A duplicate name is an error, because the plugin parses the text itself and
/// might use the other value.
pub fn arguments(written: Option<&str>) -> Result<Value, RpcError> {
    let text = written.unwrap_or("{}");
    // Many values take long to parse; a single long string does not.
    let large = if text.len() > LARGE_TEXT_BYTES { tree_bytes(text.as_bytes()) / TREE_BYTES_PER_TEXT_BYTE } else { 0 };
    // Past the door: the client's message is charged.
    let Unambiguous(value) = heavy(large, || serde_json::from_str(text))
        .map_err(|error| RpcError::invalid_params(format!("`arguments`: {error}")))?;
    if !value.is_object() {
        return Err(RpcError::invalid_params("`arguments` must be an object"));
    }
    Ok(value)
}

pub fn level(level: wit::Level) -> wharf_protocol::Level {
    use wharf_protocol::Level;
    match level {
        wit::Level::Debug => Level::Debug,
        wit::Level::Info => Level::Info,
        wit::Level::Notice => Level::Notice,
        wit::Level::Warning => Level::Warning,
        wit::Level::Error => Level::Error,
        wit::Level::Critical => Level::Critical,
        wit::Level::Alert => Level::Alert,
        wit::Level::Emergency => Level::Emergency,
    }
}

/// Parses a `more` field as an object. `own`: members that are not allowed in it because a separate field exists for them.
pub fn read_more(more: Option<&String>, own: &[&str], room: &Room) -> Result<Object, String> {
    let Some(more) = more else { return Ok(Object::new()) };
    let mut object: Object = room.parse(more).map_err(|error| unread("`more` is not a JSON object", error))?;
    clean_meta(&mut object);
    match own.iter().find(|key| object.contains_key(**key)) {
        Some(key) => Err(format!("`{key}` has its own field and is not allowed in `more`")),
        None => Ok(object),
    }
}

/// Removes the keys from `_meta` that are reserved for the protocol.
pub fn clean_meta(object: &mut Object) {
    if let Some(Value::Object(meta)) = object.get_mut("_meta") {
        meta.retain(|key, _| !is_reserved(key));
    }
}

/// Whether a `_meta` key is reserved for the protocol. The current specification reserves keys by the second label of their prefix, older
/// ones by any label but the last.
fn is_reserved(key: &str) -> bool {
    let Some((prefix, _)) = key.split_once('/') else { return false };
    let labels: Vec<&str> = prefix.split('.').collect();
    let reserved = |label: &&str| matches!(*label, "modelcontextprotocol" | "mcp");
    labels.get(1).is_some_and(reserved) || labels.split_last().is_some_and(|(_, rest)| rest.iter().any(reserved))
}

/// Parses JSON that a plugin returned.
pub fn parse_json(text: &str, room: &Room) -> Result<Value, String> {
    room.parse(text).map_err(|error| unread("it returned text that is not JSON", error))
}

/// Says why a text was not parsed. `malformed`: what is wrong with it if it is malformed.
fn unread(malformed: &str, error: NotParsed) -> String {
    match error {
        NotParsed::Malformed(why) => format!("{malformed}: {why}"),
        NotParsed::Full(_) => format!("{error} (of total_host_memory_mib in [limits])"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bridge::paid::Paid;

    #[test]
    fn reserved_keys_are_known() {
        for (key, reserved) in [
            ("io.modelcontextprotocol/x", true),
            ("com.mcp.tools/x", true),
            ("modelcontextprotocol.io/x", true),
            ("tools.mcp.com/x", true),
            ("com.example.mcp/x", false),
            ("dev.wharf/plugin", false),
            ("progressToken", false),
            ("mcp", false),
        ] {
            assert_eq!(is_reserved(key), reserved, "{key}");
        }
        let more = r#"{"_meta":{"io.modelcontextprotocol/serverInfo":1,"dev.example/x":2}}"#.to_owned();
        assert_eq!(
            read_more(Some(&more), &[], Paid::in_test().room()).unwrap()["_meta"],
            serde_json::json!({ "dev.example/x": 2 })
        );
    }
}
