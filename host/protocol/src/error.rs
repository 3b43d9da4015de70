//! JSON-RPC errors, and the error codes that JSON-RPC and MCP define.
//!
//! An [`RpcError`] is the same for all revisions until it is written: only then [`RpcError::code_for`] says which code a revision
//! uses for it.

use serde_json::{Value, json};

use crate::{
    capability::TASKS_EXTENSION,
    revision::{Era, Revision},
};

/// The frame is not JSON.
pub const PARSE_ERROR: i32 = -32700;
/// The frame is JSON, but not a message of JSON-RPC.
pub(crate) const INVALID_REQUEST: i32 = -32600;
/// There is no such method, or the revision does not have it.
pub const METHOD_NOT_FOUND: i32 = -32601;
/// The parameters have the wrong shape, or name something that does not exist.
pub const INVALID_PARAMS: i32 = -32602;
/// The server, or a plugin, failed in a way that is not the client's doing.
const INTERNAL_ERROR: i32 = -32603;
/// There is no such resource. Only legacy revisions have this code; modern ones say [`INVALID_PARAMS`] instead.
pub const RESOURCE_NOT_FOUND: i32 = -32002;
/// A header of HTTP is missing, malformed, or differs from what the body says.
pub const HEADER_MISMATCH: i32 = -32020;
/// The request needs an ability that its client has not declared. Only modern revisions have this code.
pub const MISSING_CLIENT_CAPABILITY: i32 = -32021;
/// The caller's token has not the scopes that this takes. MCP has no code for it: over HTTP it is a status, and this is the same number.
pub const INSUFFICIENT_SCOPE: i32 = 403;
/// The caller has used up what it may do for now; the same holds for this number.
pub const TOO_MANY_REQUESTS: i32 = 429;
/// The request is of a revision that is not served.
const UNSUPPORTED_PROTOCOL_VERSION: i32 = -32022;

/// A JSON-RPC error object: what a client is told instead of a result, or what a client answered with.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RpcError {
    /// One of the codes of this module when it is wharf's own. Which code goes out depends on the revision: see
    /// [`code_for`](Self::code_for).
    pub code: i32,
    /// For a person to read: what is wrong and what to change.
    pub message: String,
    /// What a program can make use of, in the shape that the code prescribes.
    pub data: Option<Value>,
}

impl RpcError {
    /// An error without data.
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The same error with this data, in place of any that it had.
    #[must_use]
    pub fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    pub(crate) fn parse(message: impl Into<String>) -> Self {
        Self::new(PARSE_ERROR, message)
    }

    /// What was sent is not a message of JSON-RPC.
    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(INVALID_REQUEST, message)
    }

    /// The caller would have to show a token with these scopes.
    pub fn insufficient_scope(scopes: &[String]) -> Self {
        let message = format!("this needs a token with more scopes: {}", scopes.join(" "));
        Self::new(INSUFFICIENT_SCOPE, message).with_data(serde_json::json!({ "scopes": scopes }))
    }

    /// The caller may try again after so many seconds.
    pub fn too_many_requests(message: impl Into<String>, seconds: u64) -> Self {
        Self::new(TOO_MANY_REQUESTS, message).with_data(serde_json::json!({ "retryAfter": seconds }))
    }

    /// There is no such method. The message repeats only the beginning of a long name.
    pub fn method_not_found(method: &str) -> Self {
        Self::new(METHOD_NOT_FOUND, format!("Method not found: {}", clip(method)))
    }

    /// The parameters are wrong; the message names the member and what it should be.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    /// The server or a plugin failed. The message reaches the client, so it holds nothing that is only for the operator.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(INTERNAL_ERROR, message)
    }

    /// There is no such resource, or none that this client may see.
    pub fn resource_not_found(uri: &str) -> Self {
        Self::new(RESOURCE_NOT_FOUND, format!("Resource not found: {}", clip(uri))).with_data(json!({ "uri": uri }))
    }

    /// A header is missing, malformed, or differs from the part of the body that it must mirror.
    pub fn header_mismatch(message: impl Into<String>) -> Self {
        Self::new(HEADER_MISMATCH, message)
    }

    /// The client lacks an ability that the request needs. `required` is an object shaped like the capabilities that a client
    /// declares, holding those that are missing.
    pub fn missing_capability(message: impl Into<String>, required: Value) -> Self {
        Self::new(MISSING_CLIENT_CAPABILITY, message).with_data(json!({ "requiredCapabilities": required }))
    }

    /// The request needs the tasks extension, which its client did not declare.
    pub fn missing_tasks(message: impl Into<String>) -> Self {
        Self::missing_capability(message, json!({ "extensions": { TASKS_EXTENSION: {} } }))
    }

    /// The request is of a revision that is not served; the error's data lists the modern ones that are.
    pub fn unsupported_version(requested: &str) -> Self {
        Self::new(UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version")
            .with_data(json!({ "supported": Revision::MODERN.map(Revision::as_str), "requested": requested }))
    }

    /// The code that `revision` has for this error.
    pub fn code_for(&self, revision: Revision) -> i32 {
        match (self.code, revision.era()) {
            (RESOURCE_NOT_FOUND, Era::Modern) => INVALID_PARAMS,
            // Legacy revisions do not have this code.
            (MISSING_CLIENT_CAPABILITY, Era::Legacy) => INVALID_PARAMS,
            (code, _) => code,
        }
    }

    /// The `error` member of a response of `revision`.
    pub fn to_value(&self, revision: Revision) -> Value {
        let mut object = crate::Object::new();
        object.insert("code".into(), self.code_for(revision).into());
        object.insert("message".into(), self.message.clone().into());
        if let Some(data) = &self.data {
            object.insert("data".into(), data.clone());
        }
        Value::Object(object)
    }
}

/// The first 80 characters of a text that came from outside, short enough to be repeated in a message.
pub fn clip(text: &str) -> String {
    clip_to(text, 80)
}

/// The beginning of a text: at most `most_chars` characters, with an ellipsis after them if some are missing.
pub fn clip_to(text: &str, most_chars: usize) -> String {
    let mut short: String = text.chars().take(most_chars).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
