//! Seals the state that a modern client carries between the rounds of one request (MRTR).
//!
//! The client can neither read nor change the state, and it cannot use it for another request: the state is bound to the principal,
//! the method, the name and the arguments. It expires. State that was sealed for another version of the plugin's code is ignored: the
//! request starts from its first round.

use std::{
    fmt::Write,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use wharf_protocol::RpcError;

use super::{
    principal::Principal,
    state_keys::{Ciphers, StateKeys},
};

/// How long sealed state is valid, and so how long a person may take to answer.
pub const LIFETIME: Duration = Duration::from_secs(600);
const VERSION: &str = "v1.";
/// The longest token accepted.
const MAX_TOKEN_BYTES: usize = 512 * 1024;

pub struct Seal {
    ciphers: Ciphers,
}

/// The state that a request carries from round to round.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Carried {
    /// The answers that the plugin has received so far, by key, in the form that `bridge::carry_answer` gives them.
    pub answers: Vec<(String, Value)>,
    /// Bytes that the plugin wants back in the next round.
    pub state: Option<Vec<u8>>,
    /// The client's roots, if they were asked for.
    pub roots: Option<Vec<String>>,
    pub rounds: u32,
    pub approval: SealedApproval,
    /// The ticket that makes the approval valid only once. It is issued when the approval is sealed, and used up when it is opened.
    pub ticket: Option<Ticket>,
    /// Which of this state has become invalid. Not sealed.
    #[serde(skip)]
    pub void: Void,
    /// Whether the plugin has asked since this message arrived. Not sealed.
    #[serde(skip)]
    pub replayed: bool,
}

/// Which sealed state has become invalid, so that the person is asked again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Void {
    #[default]
    Nothing,
    /// The approval: another process asked for it.
    Approval,
    /// All answers: they were given to other code.
    Answers,
}

/// How far the approval of a request has come.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedApproval {
    /// Whether the embedding program has approved it.
    pub by_program: bool,
    /// The kind of the call when the client was asked for a person's approval.
    pub asked: Option<[u8; 32]>,
    /// The kind of the call when it was approved.
    pub given: Option<[u8; 32]>,
}

/// A ticket that can be used only once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    /// The process that issued it.
    pub process: [u8; 16],
    pub number: [u8; 16],
}

/// The request that sealed state is bound to.
#[derive(Clone, Copy)]
pub struct Binding<'a> {
    pub principal: &'a Principal,
    pub method: &'a str,
    /// The tool's or prompt's name, or the URI.
    pub name: &'a str,
    pub arguments: &'a Value,
    pub plugin_digest: &'a [u8; 32],
}

#[derive(Serialize, Deserialize)]
struct Sealed {
    expires: u64,
    plugin_digest: [u8; 32],
    carried: Carried,
}

impl Seal {
    /// Processes that share a key can continue what another has begun. With keys of its own, a process refuses the state that was
    /// sealed before it was restarted.
    pub fn new(keys: &StateKeys) -> Self {
        Self { ciphers: keys.plain() }
    }

    pub fn seal(&self, carried: Carried, binding: &Binding) -> Result<String, RpcError> {
        let failed = || RpcError::internal("the state of this request cannot be sealed");
        let sealed = Sealed { expires: now() + LIFETIME.as_secs(), plugin_digest: *binding.plugin_digest, carried };
        let text = serde_json::to_vec(&sealed).map_err(|_| failed())?;
        let sealed = self.ciphers.seal(&text, &binding.bytes()).ok_or_else(failed)?;
        let token = format!("{VERSION}{}", URL_SAFE_NO_PAD.encode(sealed));
        if token.len() > MAX_TOKEN_BYTES { Err(failed()) } else { Ok(token) }
    }

    /// Opens sealed state. Fails unless it was sealed with one of these keys and for this request, and has not expired.
    pub fn open(&self, token: &str, binding: &Binding) -> Result<Carried, RpcError> {
        self.open_at(now(), token, binding)
    }

    fn open_at(&self, now: u64, token: &str, binding: &Binding) -> Result<Carried, RpcError> {
        let refused = || {
            RpcError::invalid_params(
                "`requestState` was not issued here, belongs to another request, or has expired; call again without it and without \
                 `inputResponses`",
            )
        };
        let body = token.strip_prefix(VERSION).filter(|body| body.len() <= MAX_TOKEN_BYTES).ok_or_else(refused)?;
        let bytes = URL_SAFE_NO_PAD.decode(body).map_err(|_| refused())?;
        let text = self.ciphers.open(&bytes, &binding.bytes()).ok_or_else(refused)?;
        let sealed: Sealed = serde_json::from_slice(&text).map_err(|_| refused())?;
        if sealed.expires < now {
            return Err(refused());
        }
        let same_code = sealed.plugin_digest == *binding.plugin_digest;
        Ok(if same_code { sealed.carried } else { Carried { void: Void::Answers, ..Carried::default() } })
    }
}

impl Binding<'_> {
    fn bytes(&self) -> Vec<u8> {
        let mut arguments = String::new();
        canonical(self.arguments, &mut arguments);
        let mut digest = Sha256::new();
        let principal = self.principal.to_string();
        for part in [&*principal, self.method, self.name, &arguments] {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
        [b"wharf request state 2".as_slice(), &digest.finalize()].concat()
    }
}

/// Writes the canonical form of a JSON value (canonicalization), since clients may write their arguments differently the next time:
/// members are sorted, and `1.0` becomes `1`.
pub fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(members) => {
            let mut sorted: Vec<(&String, &Value)> = members.iter().collect();
            sorted.sort_unstable_by_key(|(key, _)| *key);
            out.push('{');
            for (key, member) in sorted {
                push_text(key, out);
                out.push(':');
                canonical(member, out);
                out.push(',');
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for item in items {
                canonical(item, out);
                out.push(',');
            }
            out.push(']');
        }
        // Writing to a `String` does not fail.
        Value::Number(number) => match number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 1e15) {
            Some(float) if number.is_f64() => write!(out, "{float:.0}").unwrap_or_default(),
            _ => write!(out, "{number}").unwrap_or_default(),
        },
        Value::String(text) => push_text(text, out),
        Value::Null | Value::Bool(_) => write!(out, "{value}").unwrap_or_default(),
    }
}

/// Appends a text as a JSON string.
fn push_text(text: &str, out: &mut String) {
    if text.bytes().any(|byte| byte < b' ' || matches!(byte, b'"' | b'\\')) {
        write!(out, "{}", Value::from(text)).unwrap_or_default();
    } else {
        out.push('"');
        out.push_str(text);
        out.push('"');
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::state_keys::random_key;

    #[test]
    fn all_spellings_of_a_value_have_one_text() {
        for (value, expected) in [
            (json!({ "b": [1.0, -2, 0.5, 1e15], "a": null }), r#"{"a":null,"b":[1,-2,0.5,1000000000000000.0,],}"#),
            (json!([true, u64::MAX, i64::MIN]), "[true,18446744073709551615,-9223372036854775808,]"),
            (json!({ "ü\n": "\"\\\u{7f}\u{1}" }), "{\"ü\\n\":\"\\\"\\\\\u{7f}\\u0001\",}"),
            (json!(""), "\"\""),
        ] {
            let mut text = String::new();
            canonical(&value, &mut text);
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn only_the_same_request_opens_it() {
        let seal = Seal::new(&StateKeys::random().unwrap());
        let arguments = json!({ "a": 1, "b": [1.5, "x"] });
        let digest = [7; 32];
        let binding = Binding {
            principal: &Principal::Process,
            method: "tools/call",
            name: "t",
            arguments: &arguments,
            plugin_digest: &digest,
        };
        let token = seal.seal(Carried { rounds: 2, ..Carried::default() }, &binding).unwrap();
        assert_eq!(seal.open(&token, &binding).unwrap().rounds, 2);

        let late = now() + LIFETIME.as_secs();
        assert!(seal.open_at(late - 5, &token, &binding).is_ok());
        assert!(seal.open_at(late + 5, &token, &binding).is_err(), "it has expired");

        let respelled = json!({ "b": [1.5, "x"], "a": 1.0 });
        assert!(seal.open(&token, &Binding { arguments: &respelled, ..binding }).is_ok());

        let (other, empty, another_digest) = (json!({ "a": 2, "b": [1.5, "x"] }), json!({}), [8; 32]);
        for different in [
            Binding { principal: &Principal::Token("t".into()), ..binding },
            Binding { principal: &Principal::Anonymous, ..binding },
            Binding { method: "prompts/get", ..binding },
            Binding { name: "u", ..binding },
            Binding { arguments: &other, ..binding },
            Binding { arguments: &empty, ..binding },
        ] {
            assert!(seal.open(&token, &different).is_err());
        }
        let of_other_code = seal.open(&token, &Binding { plugin_digest: &another_digest, ..binding }).unwrap();
        assert_eq!((of_other_code.rounds, of_other_code.void), (0, Void::Answers), "its contents are ignored");
        let (one, other) = (random_key().unwrap(), random_key().unwrap());
        let of_one = Seal::new(&StateKeys::new(one, Vec::new())).seal(Carried::default(), &binding).unwrap();
        for (keys, opens) in [
            (StateKeys::new(other, vec![one]), true),
            (StateKeys::new(one, vec![other]), true),
            (StateKeys::new(other, Vec::new()), false),
        ] {
            assert_eq!(Seal::new(&keys).open(&of_one, &binding).is_ok(), opens, "a key is replaced");
        }
        for at in 0..token.len() {
            let mut altered = token.clone().into_bytes();
            altered[at] = if altered[at] == b'A' { b'B' } else { b'A' };
            let altered = String::from_utf8(altered).unwrap();
            assert!(seal.open(&altered, &binding).is_err(), "byte {at}");
        }
    }
}
