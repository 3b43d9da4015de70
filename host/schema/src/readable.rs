//! Finds parts of a schema that are valid but that some clients cannot read. Those clients convert the schema to types of their own, and
//! support only a subset of JSON Schema.

use std::collections::BTreeSet;

use serde_json::Value;

/// The formats that JSON Schema defines. All clients accept them.
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

/// Returns the kinds of problems in the schema of a tool's arguments, each described for the operator.
pub fn troubles(schema: &Value) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    if schema.get("properties").is_none() {
        found.insert("`properties` is missing (write `{}` for a tool without arguments)");
    }
    if schema.get("additionalProperties") == Some(&Value::Bool(false)) {
        found.insert("`additionalProperties: false`");
    }
    look(schema, &mut found);
    found
}

fn look(schema: &Value, found: &mut BTreeSet<&'static str>) {
    match schema {
        Value::Object(members) => {
            for (key, value) in members {
                match (key.as_str(), value) {
                    ("type", Value::Array(_)) => {
                        found.insert("`type` with several types (leave an optional member out of `required` instead)");
                    }
                    ("$ref", Value::String(_)) => {
                        found.insert("`$ref`");
                    }
                    ("format", Value::String(format)) if !FORMATS.contains(&format.as_str()) => {
                        found.insert("a `format` that JSON Schema does not define");
                    }
                    // These keywords contain values, not schemas.
                    ("default" | "const" | "enum" | "examples", _) => {}
                    (_, value) => look(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| look(item, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_troubles_is_named() {
        let plain = json!({
            "type": "object",
            "properties": { "a": { "type": "string", "format": "date" }, "b": { "enum": [null, { "$ref": "x" }] } },
        });
        assert!(troubles(&plain).is_empty());
        let hard = json!({
            "type": "object",
            "additionalProperties": false,
            "$defs": { "x": { "type": ["string", "null"] }, "y": { "format": "uint32" } },
            "allOf": [{ "$ref": "#/$defs/x" }],
        });
        assert_eq!(troubles(&hard).len(), 5, "{:?}", troubles(&hard));
    }
}
