//! Forms whose schema is derived from a type, and answers that are deserialized into that type.

use std::marker::PhantomData;

use schemars::JsonSchema;
use serde_json::Value;

use crate::{Form, Url, schema::plain_schema};

/// A form whose answer is deserialized into `T`.
pub struct TypedForm<T> {
    pub(crate) form: Form,
    answer: PhantomData<fn() -> T>,
}

/// The user's answer to a form.
#[derive(Debug, Clone, PartialEq)]
pub enum FormAnswer<T> {
    Accepted(T),
    Declined,
    Cancelled,
}

/// Returns a form with one field per field of `T`: strings, numbers, booleans and enums of unit variants, as MCP allows.
pub fn form<T: JsonSchema>(message: impl Into<String>) -> TypedForm<T> {
    let mut schema = plain_schema::<T>();
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(known_format);
    }
    let schema = Value::Object(schema);
    TypedForm { form: Form { message: message.into(), schema: schema.to_string() }, answer: PhantomData }
}

/// Returns a URL for the user to open in a browser, over https.
pub fn url(message: impl Into<String>, url: impl Into<String>) -> Url {
    Url { message: message.into(), url: url.into() }
}

/// Removes the `format` of a field if MCP's forms do not support it.
fn known_format(field: &mut Value) {
    let Some(field) = field.as_object_mut() else { return };
    let known = ["email", "uri", "date", "date-time"];
    if field.get("format").and_then(Value::as_str).is_some_and(|format| !known.contains(&format)) {
        field.remove("format");
    }
}
