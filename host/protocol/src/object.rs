//! JSON objects.

/// A JSON object, with its members in the order in which they were written.
pub type Object = serde_json::Map<String, serde_json::Value>;
