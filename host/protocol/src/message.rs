//! Parses the messages in one frame of JSON-RPC 2.0, and writes messages as text.
//!
//! Parameters and results stay raw JSON until the method is known. A frame that cannot be parsed becomes [`Malformed`], which contains the
//! error to answer with and the id, if one could be parsed.

use std::{fmt, sync::Arc};

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::{
    error::RpcError,
    method::Method,
    params::{Params, RawParams, Text},
    revision::Revision,
    written::Written,
};

/// The id of a request, or a progress token: a string or an integer, which is sent back exactly as it was received.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Id {
    /// The digits as they were written, so that no integer loses precision.
    Integer(Box<str>),
    /// The text, without quotes or escapes.
    String(Box<str>),
}

impl Id {
    /// Creates a numeric id, for a request of our own.
    pub fn number(value: i64) -> Self {
        Self::Integer(value.to_string().into())
    }

    /// Creates a string id, for a request of our own.
    pub fn string(value: &str) -> Self {
        Self::String(value.into())
    }

    /// Parses the JSON of an id or a progress token; `None` if it is neither a string nor an integer of at most 40 digits.
    pub fn from_raw(raw: &str) -> Option<Self> {
        if raw.starts_with('"') {
            return serde_json::from_str::<String>(raw).ok().map(|text| Self::String(text.into()));
        }
        let digits = raw.strip_prefix('-').unwrap_or(raw);
        let integer = !digits.is_empty() && digits.len() <= 40 && digits.bytes().all(|byte| byte.is_ascii_digit());
        integer.then(|| Self::Integer(raw.into()))
    }

    /// Returns the id as JSON text.
    fn to_json(&self) -> String {
        match self {
            Self::Integer(digits) => digits.to_string(),
            Self::String(text) => Value::String(text.to_string()).to_string(),
        }
    }

    /// Returns the id as a JSON value. An integer beyond 64 bits loses precision here, but not in [`Display`](fmt::Display).
    pub fn to_value(&self) -> Value {
        match self {
            Self::Integer(digits) => serde_json::from_str(digits).unwrap_or(Value::Null),
            Self::String(text) => Value::String(text.to_string()),
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(digits) => f.write_str(digits),
            Self::String(_) => f.write_str(&self.to_json()),
        }
    }
}

/// A message that has to be answered.
#[derive(Debug, Clone)]
pub struct Request {
    /// The id, which the answer repeats.
    pub id: Id,
    /// The method as it was written: see [`known`](Self::known).
    pub method: String,
    /// The parameters. `None` is treated like an empty object.
    pub params: Option<Params>,
}

impl Request {
    /// Returns the method, if any revision of the protocol has it.
    pub fn known(&self) -> Option<Method> {
        Method::parse(&self.method)
    }
}

/// A message that is never answered, not even if it is malformed.
#[derive(Debug, Clone)]
pub struct Notification {
    /// The method as it was written: see [`known`](Self::known).
    pub method: String,
    /// The parameters. `None` is treated like an empty object.
    pub params: Option<Params>,
}

/// The client's answer to a request of ours.
#[derive(Debug, Clone)]
pub struct Response {
    /// The id of our request; `None` if the client answers with an error to something that it could not parse.
    pub id: Option<Id>,
    /// The JSON of the result, or the error with which the client answered.
    pub outcome: Result<Box<RawValue>, RpcError>,
}

/// One message of JSON-RPC.
#[derive(Debug, Clone)]
pub enum Message {
    /// A request, which has to be answered.
    Request(Request),
    /// A notification, which is never answered.
    Notification(Notification),
    /// A response to a request of ours.
    Response(Response),
}

/// The contents of one line or of one POST body.
#[derive(Debug)]
pub enum Frame {
    /// A single message, which every revision allows.
    One(Message),
    /// A JSON array of 1 to 100 messages, which only 2025-03-26 allows. Each message is parsed separately, so a malformed one does not
    /// affect the others.
    Batch(Vec<Result<Message, Malformed>>),
}

/// The error for a frame, or for one item of a batch, that cannot be parsed.
#[derive(Debug, Clone, PartialEq)]
pub struct Malformed {
    /// The id to answer with, if one could be parsed.
    pub id: Option<Id>,
    /// The error to answer with.
    pub error: RpcError,
}

impl Frame {
    /// Parses one line of a pipe or the body of one POST. The bytes may be anything. The parameters of the messages share their memory.
    pub fn parse(bytes: impl Into<Vec<u8>>) -> Result<Self, Malformed> {
        let text = String::from_utf8(bytes.into()).map_err(|_| Malformed::parse("the frame is not UTF-8"))?;
        let frame = Written::from(text);
        let text = frame.as_str();
        if !text.trim_start_matches(JSON_SPACE).starts_with('[') {
            return Message::parse(text, &frame).map(Self::One);
        }
        let Items(items) = serde_json::from_str(text).map_err(|error| {
            if error.is_data() {
                Malformed::request(None, format!("a batch has at most {MAX_BATCH} messages"))
            } else {
                Malformed::parse(format!("not JSON: {error}"))
            }
        })?;
        if items.is_empty() {
            return Err(Malformed::request(None, "an empty batch"));
        }
        Ok(Self::Batch(items.into_iter().map(|item| Message::parse(item.get(), &frame)).collect()))
    }
}

/// The maximum number of messages in a batch.
const MAX_BATCH: usize = 100;

/// The items of a batch. Parsing stops at the limit, so that a long array is not built before it is refused.
struct Items<'a>(Vec<&'a RawValue>);

impl<'de> Deserialize<'de> for Items<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Limited;
        impl<'de> serde::de::Visitor<'de> for Limited {
            type Value = Vec<&'de RawValue>;
            fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                formatter.write_str("a batch")
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
                let mut all = Vec::new();
                while let Some(item) = items.next_element()? {
                    if all.len() == MAX_BATCH {
                        return Err(serde::de::Error::custom("too many"));
                    }
                    all.push(item);
                }
                Ok(all)
            }
        }
        deserializer.deserialize_seq(Limited).map(Items)
    }
}

const JSON_SPACE: [char; 4] = [' ', '\t', '\r', '\n'];

impl Message {
    /// `frame`: the text of which the message is a part.
    fn parse(text: &str, frame: &Written) -> Result<Self, Malformed> {
        let envelope: Envelope = serde_json::from_str(text).map_err(|error| {
            if error.is_data() && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() {
                Malformed::request(None, format!("not a JSON-RPC message: {error}"))
            } else {
                Malformed::parse(format!("not JSON: {error}"))
            }
        })?;
        let id = match envelope.id {
            None => None,
            Some(raw) => match Id::from_raw(raw.get()) {
                Some(id) => Some(id),
                // JSON-RPC allows a null id in an error response.
                None if raw.get() == "null" && envelope.method.is_none() => None,
                None => return Err(Malformed::request(None, "a request id must be a string or an integer")),
            },
        };
        if envelope.jsonrpc.is_none_or(|version| version.0 != "2.0") {
            return Err(Malformed::request(id, "`jsonrpc` must be \"2.0\""));
        }
        let is_structured = |raw: &RawValue| raw.get().starts_with('{');
        let method = envelope.method.map(|method| method.0.into_owned());
        let params = match envelope.params.map(|params| params.of(frame)) {
            None => None,
            Some(Some(params)) => Some(params),
            Some(None) if method.is_none() => None,
            Some(None) => {
                return match id {
                    Some(id) => {
                        Err(Malformed { id: Some(id), error: RpcError::invalid_params("`params` must be an object") })
                    }
                    // Notifications are never answered, not even malformed ones. So this one is passed on without its parameters.
                    None => Ok(Self::Notification(Notification { method: method.unwrap_or_default(), params: None })),
                };
            }
        };
        if envelope.error.is_some_and(|error| !is_structured(error)) {
            return Err(Malformed::request(id, "`error` must be an object"));
        }
        match (method, envelope.result, envelope.error) {
            (Some(method), None, None) => Ok(match id {
                Some(id) => Self::Request(Request { id, method, params }),
                None => Self::Notification(Notification { method, params }),
            }),
            (None, Some(result), None) => Ok(Self::Response(Response { id, outcome: Ok(result.to_owned()) })),
            (None, None, Some(error)) => match serde_json::from_str::<ErrorObject>(error.get()) {
                Ok(error) => {
                    let error = RpcError { code: error.code, message: error.message, data: error.data };
                    Ok(Self::Response(Response { id, outcome: Err(error) }))
                }
                Err(_) => Err(Malformed::request(id, "`error` must have a code and a message")),
            },
            _ => Err(Malformed::request(id, "a message has exactly one of `method`, `result` and `error`")),
        }
    }
}

impl Malformed {
    fn parse(message: impl Into<String>) -> Self {
        Self { id: None, error: RpcError::parse(message) }
    }

    fn request(id: Option<Id>, message: impl Into<String>) -> Self {
        Self { id, error: RpcError::invalid_request(message) }
    }
}

/// The members of a message. `Deserialize` is derived, because a derived implementation refuses duplicate members: two parsers might not
/// agree on which of the two counts.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    jsonrpc: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Text<'a>>,
    #[serde(borrow)]
    params: Option<RawParams<'a>>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ErrorObject {
    code: i32,
    message: String,
    data: Option<Value>,
}

/// Deserializes a member that is present, even if it is `null`: `"id": null` is not the same as no id.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Returns the text of a response up to its result. After the result, one closing brace completes it.
pub fn result_head(id: &Id) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":", id.to_json())
}

/// Returns the text of a response with a result that is already encoded.
pub fn result_text(id: &Id, result: &str) -> String {
    let mut text = result_head(id);
    text.reserve_exact(result.len() + 1);
    text.push_str(result);
    text.push('}');
    text
}

/// A result that many responses end with. It is encoded once, together with the brace that closes each of those responses, so that a large
/// response is two pieces of text and not three.
#[derive(Debug, Clone)]
pub struct SharedResult(Arc<str>);

impl SharedResult {
    /// Takes the text of a result.
    pub fn new(mut result: String) -> Self {
        result.push('}');
        Self(result.into())
    }

    /// Returns what completes a response after its [head](result_head).
    pub fn end(&self) -> &str {
        &self.0
    }
}

/// Returns the text of an error response. Without an id the member is left out, as the revisions since 2025-11-25 require.
pub fn error_text(id: Option<&Id>, error: &RpcError, revision: Revision) -> String {
    let error = error.to_value(revision);
    match id {
        Some(id) => format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"error\":{error}}}", id.to_json()),
        None => format!("{{\"jsonrpc\":\"2.0\",\"error\":{error}}}"),
    }
}

/// Returns the text of a notification; without parameters the member is left out.
pub fn notification_text(method: &str, params: Option<&Value>) -> String {
    match params {
        Some(params) => format!("{{\"jsonrpc\":\"2.0\",\"method\":{},\"params\":{params}}}", Value::from(method)),
        None => format!("{{\"jsonrpc\":\"2.0\",\"method\":{}}}", Value::from(method)),
    }
}

/// Returns the text of a request from server to client (legacy revisions only).
pub fn request_text(id: &Id, method: &str, params: Option<&Value>) -> String {
    let (id, method) = (id.to_json(), Value::from(method));
    match params {
        Some(params) => format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":{method},\"params\":{params}}}"),
        None => format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":{method}}}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR};

    fn kind(text: &str) -> String {
        match Frame::parse(text.as_bytes()) {
            Ok(Frame::One(Message::Request(request))) => format!("request {} {}", request.id, request.method),
            Ok(Frame::One(Message::Notification(notification))) => format!("notification {}", notification.method),
            Ok(Frame::One(Message::Response(response))) => match (response.id, response.outcome) {
                (id, Ok(result)) => format!("result {} {result}", id.map(|id| id.to_string()).unwrap_or_default()),
                (_, Err(error)) => format!("error {}", error.code),
            },
            Ok(Frame::Batch(items)) => format!("batch {}", items.len()),
            Err(malformed) => match malformed.id {
                Some(id) => format!("malformed {} {id}", malformed.error.code),
                None => format!("malformed {}", malformed.error.code),
            },
        }
    }

    #[test]
    fn frames() {
        let long = format!(r#"{{"jsonrpc":"2.0","id":{},"method":"a"}}"#, "9".repeat(30));
        let deep = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"a","params":{{"x":{}{}}}}}"#,
            "[".repeat(5000),
            "]".repeat(5000)
        );
        let full = format!("[{}]", vec!["0"; MAX_BATCH].join(","));
        let overfull = format!("[{}]", vec!["0"; MAX_BATCH + 1].join(","));
        let table: Vec<(&str, String)> = vec![
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "request 1 ping".into()),
            (r#"{"jsonrpc":"2.0","id":"1","method":"ping"}"#, "request \"1\" ping".into()),
            (r#"{"jsonrpc":"2.0","id":-7,"method":"ping","params":{}}"#, "request -7 ping".into()),
            (&long, format!("request {} a", "9".repeat(30))),
            (&deep, "request 1 a".into()),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
                "notification notifications/initialized".into(),
            ),
            (r#"{"jsonrpc":"2.0","method":"a","params":[1]}"#, "notification a".into()),
            (r#"{"jsonrpc":"2.0","id":3,"error":[-1,"no"]}"#, format!("malformed {INVALID_REQUEST} 3")),
            (r#"{"jsonrpc":"2.0","id":3,"result":{}}"#, "result 3 {}".into()),
            (r#"{"jsonrpc":"2.0","id":3,"error":{"code":-1,"message":"no"}}"#, "error -1".into()),
            (r#"{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"no"}}"#, "error -1".into()),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},7]"#, "batch 2".into()),
            ("[]", format!("malformed {INVALID_REQUEST}")),
            (&full, format!("batch {MAX_BATCH}")),
            (&overfull, format!("malformed {INVALID_REQUEST}")),
            ("[0,", format!("malformed {PARSE_ERROR}")),
            ("", format!("malformed {PARSE_ERROR}")),
            ("{", format!("malformed {PARSE_ERROR}")),
            ("7", format!("malformed {INVALID_REQUEST}")),
            ("\"x\"", format!("malformed {INVALID_REQUEST}")),
            (r#"{"jsonrpc":"2.0","id":1,"method":"a"} x"#, format!("malformed {PARSE_ERROR}")),
            (r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#, format!("malformed {INVALID_REQUEST}")),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"a"}"#, format!("malformed {INVALID_REQUEST}")),
            (r#"{"jsonrpc":"2.0","id":{},"method":"a"}"#, format!("malformed {INVALID_REQUEST}")),
            (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}"#, format!("malformed {INVALID_REQUEST}")),
            (r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#, format!("malformed {INVALID_REQUEST}")),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"b":1,"c":2,"b":3}}"#,
                format!("malformed {INVALID_REQUEST}"),
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":{},"_m\u0065ta":{}}}"#,
                format!("malformed {INVALID_REQUEST}"),
            ),
            (r#"{"jsonrpc":"1.0","id":1,"method":"a"}"#, format!("malformed {INVALID_REQUEST} 1")),
            (r#"{"id":1,"method":"a"}"#, format!("malformed {INVALID_REQUEST} 1")),
            (r#"{"jsonrpc":"2.0","id":1}"#, format!("malformed {INVALID_REQUEST} 1")),
            (r#"{"jsonrpc":"2.0","id":1,"method":"a","result":{}}"#, format!("malformed {INVALID_REQUEST} 1")),
            (r#"{"jsonrpc":"2.0","id":1,"method":"a","params":[1]}"#, format!("malformed {INVALID_PARAMS} 1")),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, format!("malformed {INVALID_REQUEST}")),
        ];
        for (text, expected) in table {
            assert_eq!(kind(text), expected, "{}", &text[..text.len().min(120)]);
        }
        assert_eq!(Frame::parse(b"\xff\xfe").unwrap_err().error.code, PARSE_ERROR);
    }
}
