//! JSON Schemas from Rust types.

use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Value, json};

/// The schema of a tool's arguments.
pub fn arguments_schema<T: JsonSchema>() -> String {
    let mut schema = generator().into_root_schema_for::<T>().to_value();
    if let Some(root) = schema.as_object_mut() {
        root.remove("title");
        if !root.contains_key("type") {
            root.insert("type".into(), "object".into());
        }
    }
    schema.to_string()
}

/// The schema of a tool without arguments.
pub fn no_arguments_schema() -> String {
    json!({ "type": "object", "additionalProperties": false }).to_string()
}

/// The schema of a tool's structured result.
pub fn output_schema<T: JsonSchema>() -> String {
    let schema: Value = generator().into_root_schema_for::<T>().to_value();
    schema.to_string()
}

fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12().into_generator()
}
