//! Builds the members of a line about a call's arguments. A digest is always included, by which equal arguments can be recognised. It is
//! an HMAC, so that arguments cannot be guessed from it without the key.

use anyhow::Result;
use hmac::{Hmac, Mac};
use serde_json::{Map, Value};
use sha2::Sha256;

use wharf_base::{request_state::canonical, text::hex_digest};
use wharf_config::config::audit::Arguments;

/// The maximum number of levels, and of members of an object or items of an array, in a redacted value.
const MAX_DEPTH: usize = 8;
const MAX_MEMBERS: usize = 32;
/// The maximum length of a member's name in a redacted value.
const MAX_NAME_BYTES: usize = 64;

/// The buffer capacity for the text of arguments, enough for most, and for the member with their digest.
const TYPICAL_BYTES: usize = 256;
const DIGEST_MEMBER_BYTES: usize = 89;

/// Encodes arguments for the log, as the operator has configured.
pub struct ArgumentsEncoder {
    keyed: Hmac<Sha256>,
    kind: Arguments,
}

impl ArgumentsEncoder {
    pub fn new(key: &[u8; 32], kind: Arguments) -> Result<Self> {
        Ok(Self { keyed: Hmac::new_from_slice(key)?, kind })
    }

    /// Returns the members of a line about these arguments, each preceded by a comma.
    pub fn members(&self, arguments: &Value) -> String {
        let mut text = String::with_capacity(TYPICAL_BYTES);
        canonical(arguments, &mut text);
        let digest = self.keyed.clone().chain_update(text.as_bytes()).finalize().into_bytes();
        let mut members = String::with_capacity(DIGEST_MEMBER_BYTES);
        members.push_str(",\"wharf.arguments.hmac\":\"");
        members.push_str(str::from_utf8(&hex_digest(&digest.into())).unwrap_or_default());
        members.push('"');
        match self.kind {
            Arguments::Digest => {}
            Arguments::Redacted => members.push_str(&format!(",\"wharf.arguments\":{}", redacted(arguments, 0))),
            Arguments::Full => members.push_str(&format!(",\"wharf.arguments\":{arguments}")),
        }
        members
    }
}

/// Returns the structure of a value without its contents: the names of members, the lengths of texts, and the types of all other values.
/// Values that are nested too deeply, items and members beyond the maximum, and members with unusual names are only counted.
fn redacted(value: &Value, depth: usize) -> Value {
    let rest = |more: usize| format!("{more} more");
    match value {
        Value::Null => Value::Null,
        Value::Bool(_) => "boolean".into(),
        Value::Number(_) => "number".into(),
        Value::String(text) => format!("string of {}", text.chars().count()).into(),
        Value::Array(items) if depth >= MAX_DEPTH => format!("array of {}", items.len()).into(),
        Value::Object(members) if depth >= MAX_DEPTH => format!("object of {}", members.len()).into(),
        Value::Array(items) => {
            let mut shown: Vec<Value> = items.iter().take(MAX_MEMBERS).map(|item| redacted(item, depth + 1)).collect();
            if let Some(more) = items.len().checked_sub(MAX_MEMBERS).filter(|more| *more > 0) {
                shown.push(rest(more).into());
            }
            shown.into()
        }
        Value::Object(members) => {
            let mut shown = Map::new();
            for (name, member) in members.iter().filter(|(name, _)| is_name(name)).take(MAX_MEMBERS) {
                shown.insert(name.clone(), redacted(member, depth + 1));
            }
            if let Some(more) = members.len().checked_sub(shown.len()).filter(|more| *more > 0) {
                shown.insert("…".into(), rest(more).into());
            }
            shown.into()
        }
    }
}

/// Whether the name of a member looks like an identifier from a schema, and not like data from a client.
fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    name.len() <= MAX_NAME_BYTES
        && bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn members(kind: Arguments, arguments: &Value) -> Value {
        let members = ArgumentsEncoder::new(&[7; 32], kind).unwrap().members(arguments);
        serde_json::from_str(&format!("{{{}}}", members.trim_start_matches(','))).unwrap()
    }

    #[test]
    fn redacted_values_show_their_structure_and_nothing_else() {
        let deep = (0..20).fold(json!("secret"), |inner, _| json!({ "a": inner }));
        let shown = (0..8).fold(json!("object of 1"), |inner, _| json!({ "a": inner }));
        let many: Vec<usize> = (0..40).collect();
        let mut first = vec![json!("number"); 32];
        first.push(json!("8 more"));
        for (arguments, expected) in [
            (json!({}), json!({})),
            (json!({ "path": "/home/ada" }), json!({ "path": "string of 9" })),
            (json!({ "a": "grüße" }), json!({ "a": "string of 5" })),
            (
                json!({ "pin": 1234, "on": true, "none": null }),
                json!({ "pin": "number", "on": "boolean", "none": null }),
            ),
            (json!({ "a": ["x", { "b": "" }] }), json!({ "a": ["string of 1", { "b": "string of 0" }] })),
            (json!({ "a": 1, "b c": 2, "": 3, "ü": 4 }), json!({ "a": "number", "…": "3 more" })),
            (json!({ "x".repeat(65): 1 }), json!({ "…": "1 more" })),
            (deep, shown),
            (json!(many), json!(first)),
        ] {
            assert_eq!(redacted(&arguments, 0), expected, "{arguments}");
            let members = members(Arguments::Redacted, &arguments);
            assert_eq!(members["wharf.arguments"], expected);
        }
    }

    #[test]
    fn a_digest_is_of_the_arguments_and_of_the_key() {
        let digest = |key: u8, arguments: Value| {
            ArgumentsEncoder::new(&[key; 32], Arguments::Digest).unwrap().members(&arguments)
        };
        let one = digest(1, json!({ "a": 1, "b": "x" }));
        assert_eq!(one, digest(1, json!({ "b": "x", "a": 1.0 })), "spelling does not matter");
        assert_ne!(one, digest(1, json!({ "a": 2, "b": "x" })));
        assert_ne!(one, digest(2, json!({ "a": 1, "b": "x" })));
        assert!(!one.contains("\"x\"") && one.len() < 110, "{one}");
        let full = json!({ "a": "secret" });
        assert_eq!(members(Arguments::Full, &full)["wharf.arguments"], full);
    }
}
