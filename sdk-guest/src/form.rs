//! Forms whose schema comes from a type, and answers that come back as that type.

use std::marker::PhantomData;

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::Value;

use crate::{Form, Page};

/// A form whose answer reads as `T`.
pub struct TypedForm<T> {
    pub(crate) form: Form,
    answer: PhantomData<fn() -> T>,
}

/// What the person did with a form.
#[derive(Debug, Clone, PartialEq)]
pub enum FormAnswer<T> {
    Accepted(T),
    Declined,
    Cancelled,
}

/// A form with one field per field of `T`: strings, numbers, booleans and enums of unit variants, as MCP allows.
pub fn form<T: JsonSchema>(message: impl Into<String>) -> TypedForm<T> {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Some(root) = schema.as_object_mut() {
        root.remove("$schema");
        root.remove("title");
        if let Some(properties) = root.get_mut("properties").and_then(Value::as_object_mut) {
            properties.values_mut().for_each(plain_field);
        }
    }
    TypedForm { form: Form { message: message.into(), schema: schema.to_string() }, answer: PhantomData }
}

/// A page to open, over https.
pub fn page(message: impl Into<String>, url: impl Into<String>) -> Page {
    Page { message: message.into(), url: url.into() }
}

/// Leaves of a field's schema what MCP's forms know: no `null` beside the type, no formats of Rust's integers.
fn plain_field(field: &mut Value) {
    let Some(field) = field.as_object_mut() else { return };
    if let Some(Value::Array(types)) = field.get("type")
        && let Some(kind) = types.iter().find(|kind| *kind != "null").cloned()
    {
        field.insert("type".into(), kind);
    }
    let known = ["email", "uri", "date", "date-time"];
    if field.get("format").and_then(Value::as_str).is_some_and(|format| !known.contains(&format)) {
        field.remove("format");
    }
}
