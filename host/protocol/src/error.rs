//! JSON-RPC errors, and the error codes that JSON-RPC and MCP define.
//!
//! An [`RpcError`] is the same for all revisions until it is written; then [`RpcError::code_for`] returns the code of the revision.

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
/// The server or a plugin failed, and the client did not cause it.
pub const INTERNAL_ERROR: i32 = -32603;
/// There is no such resource. Only legacy revisions have this code; modern ones use [`INVALID_PARAMS`] instead.
pub const RESOURCE_NOT_FOUND: i32 = -32002;
/// An HTTP header is missing, malformed, or differs from the body.
pub const HEADER_MISMATCH: i32 = -32020;
/// The request needs a capability that its client has not declared. Only modern revisions have this code.
pub const MISSING_CLIENT_CAPABILITY: i32 = -32021;
/// The caller's token lacks the required scopes. MCP has no code for this, so it is the number of the HTTP status.
pub const INSUFFICIENT_SCOPE: i32 = 403;
/// The caller has reached a rate limit. MCP has no code for this either, so it is the number of the HTTP status.
pub const TOO_MANY_REQUESTS: i32 = 429;
/// What the request needs cannot be reached now. MCP has no code for this either.
pub const UNAVAILABLE: i32 = 503;
/// The request uses a revision that is not served.
const UNSUPPORTED_PROTOCOL_VERSION: i32 = -32022;

/// A JSON-RPC error object, which is sent to a client instead of a result, or with which a client answered.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RpcError {
    /// The code. If the error is wharf's own, it is one of the codes of this module. The code that is sent depends on the revision: see
    /// [`code_for`](Self::code_for).
    pub code: i32,
    /// A message for people: what is wrong and what to change.
    pub message: String,
    /// Data for programs, in the format that the code prescribes.
    pub data: Option<Value>,
}

impl RpcError {
    /// Creates an error without data.
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Returns the error with this data, which replaces any that it had.
    #[must_use]
    pub fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    pub(crate) fn parse(message: impl Into<String>) -> Self {
        Self::new(PARSE_ERROR, message)
    }

    /// Creates the error for input that is not a message of JSON-RPC.
    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(INVALID_REQUEST, message)
    }

    /// Creates the error for a request that needs a token with these scopes.
    pub fn insufficient_scope(scopes: &[String]) -> Self {
        let message = format!("this needs a token with more scopes: {}", scopes.join(" "));
        Self::new(INSUFFICIENT_SCOPE, message).with_data(serde_json::json!({ "scopes": scopes }))
    }

    /// Creates the error for a caller that may try again after this many seconds.
    pub fn too_many_requests(message: impl Into<String>, seconds: u64) -> Self {
        Self::new(TOO_MANY_REQUESTS, message).with_data(serde_json::json!({ "retryAfter": seconds }))
    }

    /// Creates the error for a request that needs something which cannot be reached now, and may be in a second.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(UNAVAILABLE, message).with_data(serde_json::json!({ "retryAfter": 1 }))
    }

    /// Creates the error for an unknown method. The message contains only the beginning of a long name.
    pub fn method_not_found(method: &str) -> Self {
        Self::new(METHOD_NOT_FOUND, format!("Method not found: {}", clip(method)))
    }

    /// Creates the error for wrong parameters. The message should name the member and what it should be.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    /// Creates the error for a failure of the server or a plugin. The message reaches the client, so it must not contain anything that is
    /// only for the operator.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(INTERNAL_ERROR, message)
    }

    /// Creates the error for a resource that does not exist, or that this client may not see.
    pub fn resource_not_found(uri: &str) -> Self {
        Self::new(RESOURCE_NOT_FOUND, format!("Resource not found: {}", clip(uri))).with_data(json!({ "uri": uri }))
    }

    /// Creates the error for a header that is missing, malformed, or differs from the part of the body that it must mirror.
    pub fn header_mismatch(message: impl Into<String>) -> Self {
        Self::new(HEADER_MISMATCH, message)
    }

    /// Creates the error for a client that lacks a capability which the request needs. `required` has the format of a client's capabilities
    /// and contains those that are missing.
    pub fn missing_capability(message: impl Into<String>, required: Value) -> Self {
        Self::new(MISSING_CLIENT_CAPABILITY, message).with_data(json!({ "requiredCapabilities": required }))
    }

    /// Creates the error for a request that needs the tasks extension, which its client did not declare.
    pub fn missing_tasks(message: impl Into<String>) -> Self {
        Self::missing_capability(message, json!({ "extensions": { TASKS_EXTENSION: {} } }))
    }

    /// Creates the error for a revision that is not served; its data lists the modern ones that are.
    pub fn unsupported_version(requested: &str) -> Self {
        Self::new(UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version")
            .with_data(json!({ "supported": Revision::MODERN.map(Revision::as_str), "requested": requested }))
    }

    /// Returns the code that `revision` uses for this error.
    pub fn code_for(&self, revision: Revision) -> i32 {
        match (self.code, revision.era()) {
            (RESOURCE_NOT_FOUND, Era::Modern) => INVALID_PARAMS,
            // Legacy revisions do not have this code.
            (MISSING_CLIENT_CAPABILITY, Era::Legacy) => INVALID_PARAMS,
            (code, _) => code,
        }
    }

    /// Returns the `error` member of a response in `revision`.
    pub fn to_value(&self, revision: Revision) -> Value {
        let mut object = crate::object::Object::new();
        object.insert("code".into(), self.code_for(revision).into());
        object.insert("message".into(), self.message.clone().into());
        if let Some(data) = &self.data {
            object.insert("data".into(), data.clone());
        }
        Value::Object(object)
    }
}

/// Returns the first 80 characters of an external text, so that it can be repeated in a message.
pub fn clip(text: &str) -> String {
    clip_to(text, 80)
}

/// Returns the beginning of a text: at most `most_chars` characters, followed by an ellipsis if the text is longer.
pub fn clip_to(text: &str, most_chars: usize) -> String {
    let mut short: String = text.chars().take(most_chars).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
