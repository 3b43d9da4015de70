//! Reads the `_meta` member of request parameters, in which a request describes itself.
//!
//! A request makes a *modern claim* if its `_meta` has the protocol version key, whatever its value; nothing else counts.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    capability::ClientCapabilities, error::RpcError, level::Level, message::Id, params::Params, revision::Revision,
    written::Written,
};

/// The key of the revision of a modern request.
const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The key of the capabilities of a modern request's client.
const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The key of the lowest level of log messages that a modern request wants to receive.
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The key of the description of the server, in modern results.
pub(crate) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The key of `_meta` that marks a message as belonging to a task; only 2025-11-25 has it.
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
/// The key of the id of the `subscriptions/listen` request to which a notification belongs.
pub(crate) const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// The `_meta` object of one request; empty if it has none.
#[derive(Debug, Clone, Default)]
pub struct RequestMeta {
    /// The whole object as it was written.
    text: Option<Written>,
    version: Option<Written>,
    capabilities: Option<Written>,
    client_info: Option<Written>,
    log_level: Option<Written>,
    /// The token with which progress is reported to the client. It is stored as it was written, since it must be sent back with exactly the
    /// same type.
    pub progress_token: Option<Id>,
}

/// The trace that a request belongs to, from `traceparent` and `tracestate` of W3C Trace Context.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trace {
    /// The id of the trace: 32 hexadecimal digits.
    pub trace_id: String,
    /// The id of the client's span that made the request: 16 hexadecimal digits.
    pub span_id: String,
    /// Whether the client records the trace.
    pub sampled: bool,
    /// The `tracestate`: data of other systems about the trace.
    pub state: Option<String>,
}

/// The maximum length of a `tracestate` that is passed on.
const MAX_STATE_BYTES: usize = 512;

impl Trace {
    /// Parses `traceparent` and `tracestate`. `None` if `traceparent` is malformed; a malformed `tracestate` is left out.
    pub fn parse(traceparent: &str, state: Option<&str>) -> Option<Self> {
        let mut parts = traceparent.split('-');
        let mut part = |digits: usize| {
            let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            parts.next().filter(|part| part.len() == digits && part.bytes().all(hex))
        };
        let (version, trace_id, span_id, flags) = (part(2)?, part(32)?, part(16)?, part(2)?);
        let is_one = |id: &str| id.contains(|digit| digit != '0');
        let is_known = version != "ff" && is_one(trace_id) && is_one(span_id);
        let fits = |state: &&str| {
            (1..=MAX_STATE_BYTES).contains(&state.len()) && state.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        };
        is_known.then(|| Self {
            trace_id: trace_id.to_owned(),
            span_id: span_id.to_owned(),
            sampled: u8::from_str_radix(flags, 16).is_ok_and(|flags| flags & 1 == 1),
            state: state.filter(fits).map(str::to_owned),
        })
    }
}

/// The members of `_meta` that every modern request must have.
#[derive(Debug, Clone)]
pub struct ModernClaim {
    /// The date of the revision, which may be one that is not served.
    pub version: String,
    /// The client's capabilities in that revision.
    pub capabilities: ClientCapabilities,
}

/// The members of `_meta` that wharf reads. Those that only modern requests have count as present even if they are null.
#[derive(Deserialize)]
struct Members<'a> {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion", borrow, default, deserialize_with = "present")]
    version: Option<&'a RawValue>,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities", borrow, default, deserialize_with = "present")]
    capabilities: Option<&'a RawValue>,
    #[serde(rename = "io.modelcontextprotocol/clientInfo", borrow, default, deserialize_with = "present")]
    client_info: Option<&'a RawValue>,
    #[serde(rename = "io.modelcontextprotocol/logLevel", borrow, default, deserialize_with = "present")]
    log_level: Option<&'a RawValue>,
    #[serde(borrow, rename = "progressToken")]
    token: Option<&'a RawValue>,
}

fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl RequestMeta {
    /// Parses the `_meta` of a request's parameters. Fails if `_meta` is not an object, or if its progress token is neither a string nor an
    /// integer; the error is for the client.
    pub fn read(params: Option<&Params>) -> Result<Self, RpcError> {
        let Some(text) = params.and_then(|params| params.get("_meta")).filter(|text| text.as_str() != "null") else {
            return Ok(Self::default());
        };
        if !text.as_str().starts_with('{') {
            return Err(RpcError::invalid_params("`_meta` must be an object"));
        }
        let members: Members<'_> = serde_json::from_str(text.as_str())
            .map_err(|error| RpcError::invalid_params(format!("`_meta`: {error}")))?;
        let progress_token = match members.token {
            None => None,
            Some(raw) => Some(
                Id::from_raw(raw.get())
                    .ok_or_else(|| RpcError::invalid_params("`_meta.progressToken` must be a string or an integer"))?,
            ),
        };
        let piece = |member: Option<&RawValue>| member.map(|raw| text.piece(raw.get()));
        Ok(Self {
            text: Some(text.clone()),
            version: piece(members.version),
            capabilities: piece(members.capabilities),
            client_info: piece(members.client_info),
            log_level: piece(members.log_level),
            progress_token,
        })
    }

    /// Returns the JSON of the whole object.
    pub fn text(&self) -> &str {
        self.text.as_ref().map_or("{}", Written::as_str)
    }

    /// Returns the trace to which the request belongs; `None` if `_meta` does not contain a valid one.
    pub fn trace(&self) -> Option<Trace> {
        #[derive(Deserialize)]
        struct Traced {
            traceparent: String,
            // A malformed `tracestate` does not invalidate the rest, so any type is accepted.
            tracestate: Option<serde_json::Value>,
        }
        let text = self.text();
        let traced: Traced = text.contains("traceparent").then(|| serde_json::from_str(text).ok())??;
        let state = traced.tracestate.as_ref().and_then(serde_json::Value::as_str);
        Trace::parse(&traced.traceparent, state)
    }

    /// Whether the request claims to use a modern revision, even if there is no such revision.
    pub fn claims_modern(&self) -> bool {
        self.version.is_some()
    }

    /// Parses the members that every modern request must have. The error names the keys that are missing, or the one whose type is wrong.
    pub fn modern_claim(&self) -> Result<ModernClaim, RpcError> {
        let wrong = |key: &str, kind: &str| RpcError::invalid_params(format!("`_meta` key {key} must be {kind}"));
        let version = match &self.version {
            Some(version) => {
                serde_json::from_str::<String>(version.as_str()).map_err(|_| wrong(PROTOCOL_VERSION, "a string"))?
            }
            None => return Err(self.missing()),
        };
        let capabilities = match &self.capabilities {
            // If the version is not served, the caller refuses it; until then the capabilities are parsed as in the newest revision.
            Some(text) => {
                ClientCapabilities::read(text.as_str(), Revision::parse(&version).unwrap_or(Revision::V2026_07_28))
                    .ok_or_else(|| wrong(CLIENT_CAPABILITIES, "an object"))?
            }
            None => return Err(self.missing()),
        };
        Ok(ModernClaim { version, capabilities })
    }

    fn missing(&self) -> RpcError {
        let keys = [(PROTOCOL_VERSION, &self.version), (CLIENT_CAPABILITIES, &self.capabilities)];
        let names: Vec<&str> = keys.into_iter().filter(|(_, value)| value.is_none()).map(|(key, _)| key).collect();
        RpcError::invalid_params(format!("missing `_meta` key {}", names.join(", ")))
    }

    /// Returns the lowest level of log messages that a modern request wants to receive; `None` means that it wants no log messages. The
    /// error says that there is no such level.
    pub fn log_level(&self) -> Result<Option<Level>, RpcError> {
        match &self.log_level {
            None => Ok(None),
            Some(value) => serde_json::from_str::<String>(value.as_str())
                .ok()
                .and_then(|name| Level::parse(&name))
                .map(Some)
                .ok_or_else(|| RpcError::invalid_params(format!("`_meta` key {LOG_LEVEL} is not a log level"))),
        }
    }

    /// Returns the JSON of the client's description of itself, such as its name and version; it is not validated.
    pub fn client_info(&self) -> Option<&str> {
        self.client_info.as_ref().map(Written::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        error::INVALID_PARAMS,
        message::{Frame, Message},
    };

    fn read(params: &str) -> Result<RequestMeta, RpcError> {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{params}}}"#);
        let Ok(Frame::One(Message::Request(request))) = Frame::parse(text.as_bytes()) else { panic!("{text}") };
        RequestMeta::read(request.params.as_ref())
    }

    #[test]
    fn only_the_version_key_is_a_claim() {
        for (params, claims) in [
            ("{}", false),
            (r#"{"_meta":{}}"#, false),
            (r#"{"_meta":{"progressToken":1}}"#, false),
            (r#"{"_meta":{"io.modelcontextprotocol/related-task":{}}}"#, false),
            (r#"{"_meta":{"io.modelcontextprotocol/clientCapabilities":{}}}"#, false),
            (r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":7}}"#, true),
            (r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2025-11-25"}}"#, true),
        ] {
            assert_eq!(read(params).unwrap().claims_modern(), claims, "{params}");
        }
    }

    #[test]
    fn a_claim_needs_both_keys_with_their_types() {
        for params in [
            r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#,
            r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":7,"io.modelcontextprotocol/clientCapabilities":{}}}"#,
            r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":[]}}"#,
        ] {
            assert_eq!(read(params).unwrap().modern_claim().unwrap_err().code, INVALID_PARAMS, "{params}");
        }
        for params in [r#"{"_meta":7}"#, r#"{"_meta":{"progressToken":1.5}}"#, r#"{"_meta":{"progressToken":{}}}"#] {
            assert_eq!(read(params).unwrap_err().code, INVALID_PARAMS, "{params}");
        }
    }

    #[test]
    fn traces_are_read_if_they_are_whole() {
        let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
        for (traceparent, is_one) in [
            (format!("\"00-{trace}-{span}-01\""), true),
            (format!("\"cc-{trace}-{span}-01-later\""), true),
            (format!("\"ff-{trace}-{span}-01\""), false),
            (format!("\"00-{}-{span}-01\"", trace.to_uppercase()), false),
            (format!("\"00-{}-{span}-01\"", "0".repeat(32)), false),
            (format!("\"00-{trace}-{}-01\"", "0".repeat(16)), false),
            (format!("\"00-{trace}-{span}\""), false),
            ("\"\"".into(), false),
            ("7".into(), false),
        ] {
            let meta = read(&format!(r#"{{"_meta":{{"traceparent":{traceparent}}}}}"#)).unwrap();
            let expected =
                is_one.then(|| Trace { trace_id: trace.into(), span_id: span.into(), sampled: true, state: None });
            assert_eq!(meta.trace(), expected, "{traceparent}");
        }
        for (state, expected) in [
            (r#""a=1,b=2""#.to_owned(), Some("a=1,b=2")),
            (r#""a=\n""#.to_owned(), None),
            (r#""é=1""#.to_owned(), None),
            (r#""""#.to_owned(), None),
            ("7".to_owned(), None),
            (format!("\"{}\"", "x".repeat(513)), None),
        ] {
            let meta = format!(r#"{{"_meta":{{"traceparent":"00-{trace}-{span}-00","tracestate":{state}}}}}"#);
            let trace = read(&meta).unwrap().trace().unwrap();
            assert_eq!((trace.state.as_deref(), trace.sampled), (expected, false), "{state}");
        }
        assert_eq!(read(r#"{"_meta":{}}"#).unwrap().trace(), None);
    }

    #[test]
    fn tokens_keep_their_type() {
        assert_eq!(read(r#"{"_meta":{"progressToken":"1"}}"#).unwrap().progress_token, Some(Id::string("1")));
        assert_eq!(read(r#"{"_meta":{"progressToken":1}}"#).unwrap().progress_token, Some(Id::number(1)));
    }
}
