//! Derives JSON Schemas from Rust types, in a form that every client understands.
//!
//! Many clients generate their own types from a tool's schema, and support only a simple subset of JSON Schema: no references, one type for
//! each value, standard formats only. An optional member is left out of `required`, and its type does not allow null; wharf treats a null
//! argument like one that is left out.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value, json};

/// The formats that the JSON Schema standard defines.
const FORMATS: [&str; 19] = [
    "date-time",
    "date",
    "time",
    "duration",
    "email",
    "idn-email",
    "hostname",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "iri",
    "iri-reference",
    "uuid",
    "uri-template",
    "json-pointer",
    "relative-json-pointer",
    "regex",
];

/// Returns the schema of a tool's arguments.
pub fn arguments_schema<T: JsonSchema>() -> String {
    let mut root = plain_schema::<T>();
    root.entry("type").or_insert_with(|| "object".into());
    // A type without members gets an empty `properties`, because some clients access it without checking whether it exists.
    root.entry("properties").or_insert_with(|| json!({}));
    Value::Object(root).to_string()
}

/// Returns the schema of a tool without arguments.
pub fn no_arguments_schema() -> String {
    json!({ "type": "object", "properties": {} }).to_string()
}

/// Returns the schema of a tool's structured result.
pub fn output_schema<T: JsonSchema>() -> String {
    Value::Object(plain_schema::<T>()).to_string()
}

/// Returns the schema of a type. Inner types are inlined, except recursive ones.
pub(crate) fn plain_schema<T: JsonSchema>() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    plain(&mut schema);
    let mut root = match schema {
        Value::Object(root) => root,
        _ => Map::new(),
    };
    // This dialect is MCP's default, so it need not be named.
    root.remove("$schema");
    root.remove("title");
    root
}

/// Reduces a schema, and all schemas within it, to the subset of JSON Schema that every client supports.
fn plain(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    one_type(object);
    not_null(object);
    if object.get("format").and_then(Value::as_str).is_some_and(|format| !FORMATS.contains(&format)) {
        object.remove("format");
    }
    for (key, value) in object.iter_mut() {
        match (key.as_str(), value) {
            (
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
                Value::Object(named),
            ) => {
                named.values_mut().for_each(plain);
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(all)) => all.iter_mut().for_each(plain),
            (
                "items" | "additionalProperties" | "contains" | "propertyNames" | "not" | "if" | "then" | "else",
                value @ Value::Object(_),
            ) => plain(value),
            _ => {}
        }
    }
}

/// Removes `null` from a list of types, and from the `enum` next to it. A list with one remaining type is replaced by that type.
fn one_type(object: &mut Map<String, Value>) {
    let Some(Value::Array(types)) = object.get_mut("type") else { return };
    types.retain(|kind| kind != "null");
    if let [one] = &**types {
        let one = one.clone();
        object.insert("type".into(), one);
    }
    if let Some(Value::Array(values)) = object.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
}

/// Removes `null` from an `anyOf` or `oneOf`. If one schema remains, its members replace the choice; existing members take precedence.
fn not_null(object: &mut Map<String, Value>) {
    for key in ["anyOf", "oneOf"] {
        let Some(Value::Array(choices)) = object.get_mut(key) else { continue };
        choices.retain(|choice| choice.get("type").is_none_or(|kind| kind != "null"));
        if choices.len() == 1
            && let Some(Value::Object(only)) = choices.pop()
        {
            object.remove(key);
            for (name, value) in only {
                object.entry(name).or_insert(value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Unit {
        Metre,
        Foot,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Place {
        /// Degrees.
        latitude: f64,
        height: Option<u32>,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Wanted {
        name: String,
        /// How many.
        count: Option<u64>,
        unit: Option<Unit>,
        /// Where.
        place: Option<Place>,
        places: Vec<Place>,
        by_name: BTreeMap<String, Place>,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Tree {
        name: String,
        children: Option<Vec<Tree>>,
    }

    fn parsed(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn schemas_are_plain() {
        let place = json!({
            "type": "object",
            "properties": {
                "latitude": { "description": "Degrees.", "type": "number" },
                "height": { "type": "integer", "minimum": 0 },
            },
            "required": ["latitude"],
        });
        let mut described = place.clone();
        described["description"] = "Where.".into();
        let expected = json!({
            "type": "object",
            "properties": {
                "name": { "type": "string" },
                "count": { "description": "How many.", "type": "integer", "minimum": 0 },
                "unit": { "type": "string", "enum": ["metre", "foot"] },
                "place": described,
                "places": { "type": "array", "items": place },
                "by_name": { "type": "object", "additionalProperties": place },
            },
            "required": ["name", "places", "by_name"],
        });
        assert_eq!(parsed(&arguments_schema::<Wanted>()), expected);
        assert_eq!(parsed(&output_schema::<Wanted>()), expected);
    }

    #[test]
    fn who_has_no_arguments_has_properties_all_the_same() {
        #[derive(Deserialize, JsonSchema)]
        struct Nothing {}
        for text in [no_arguments_schema(), arguments_schema::<Nothing>()] {
            assert_eq!(parsed(&text), json!({ "type": "object", "properties": {} }));
        }
    }

    #[test]
    fn what_contains_itself_keeps_its_reference() {
        let schema = parsed(&output_schema::<Tree>());
        assert!(schema.to_string().contains("\"$ref\""), "{schema}");
        assert!(!schema.to_string().contains("null"), "{schema}");
    }
}
