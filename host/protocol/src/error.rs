//! JSON-RPC errors, and the codes MCP gives a meaning to.
//!
//! An error here is neutral: `code_for` says which code a revision uses for it.

use serde_json::{Value, json};

use crate::{
    capability::TASKS_EXTENSION,
    revision::{Era, Revision},
};

pub const PARSE_ERROR: i32 = -32700;
pub(crate) const INVALID_REQUEST: i32 = -32600;
pub const METHOD_NOT_FOUND: i32 = -32601;
pub const INVALID_PARAMS: i32 = -32602;
const INTERNAL_ERROR: i32 = -32603;
/// Legacy revisions only; modern ones say [`INVALID_PARAMS`].
pub const RESOURCE_NOT_FOUND: i32 = -32002;
const HEADER_MISMATCH: i32 = -32020;
pub const MISSING_CLIENT_CAPABILITY: i32 = -32021;
const UNSUPPORTED_PROTOCOL_VERSION: i32 = -32022;

/// A JSON-RPC error object.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RpcError {
    pub code: i32,
    pub message: String,
    pub data: Option<Value>,
}

impl RpcError {
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    #[must_use]
    pub fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    pub(crate) fn parse(message: impl Into<String>) -> Self {
        Self::new(PARSE_ERROR, message)
    }

    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(INVALID_REQUEST, message)
    }

    pub fn method_not_found(method: &str) -> Self {
        Self::new(METHOD_NOT_FOUND, format!("Method not found: {}", clip(method)))
    }

    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(INTERNAL_ERROR, message)
    }

    pub fn resource_not_found(uri: &str) -> Self {
        Self::new(RESOURCE_NOT_FOUND, "Resource not found").with_data(json!({ "uri": uri }))
    }

    pub fn header_mismatch(message: impl Into<String>) -> Self {
        Self::new(HEADER_MISMATCH, message)
    }

    /// `required`: an object shaped like the client's capabilities.
    pub fn missing_capability(message: impl Into<String>, required: Value) -> Self {
        Self::new(MISSING_CLIENT_CAPABILITY, message).with_data(json!({ "requiredCapabilities": required }))
    }

    /// The tasks extension, which this request did not declare.
    pub fn missing_tasks(message: impl Into<String>) -> Self {
        Self::missing_capability(message, json!({ "extensions": { TASKS_EXTENSION: {} } }))
    }

    pub fn unsupported_version(requested: &str) -> Self {
        Self::new(UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version")
            .with_data(json!({ "supported": Revision::MODERN.map(Revision::as_str), "requested": requested }))
    }

    /// The code under which `revision` knows this error.
    pub fn code_for(&self, revision: Revision) -> i32 {
        match (self.code, revision.era()) {
            (RESOURCE_NOT_FOUND, Era::Modern) => INVALID_PARAMS,
            // Reserved for meanings that legacy revisions do not have.
            (MISSING_CLIENT_CAPABILITY, Era::Legacy) => INVALID_PARAMS,
            (code, _) => code,
        }
    }

    /// The `error` member as `revision` writes it.
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

/// At most 80 characters of a peer's text, for use in a message.
pub fn clip(text: &str) -> String {
    clip_to(text, 80)
}

/// At most so many characters of a text, and a sign where some are missing.
pub fn clip_to(text: &str, most_chars: usize) -> String {
    let mut short: String = text.chars().take(most_chars).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
