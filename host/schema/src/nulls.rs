//! Removes nulls for optional members. Many clients, and many languages in which plugins are written, encode an optional member without a
//! value as null, while most schemas only allow the member to be absent.

use serde_json::{Map, Value};

use super::budget::pay;

/// The maximum number of references that are followed in a row.
const MAX_REFERENCES: usize = 8;

/// Removes the members of a value that are null although its schema neither requires them nor allows them to be null. Returns whether any
/// were removed.
pub fn take_out(schema: &Value, value: &mut Value) -> bool {
    walk(schema, schema, value)
}

fn walk(root: &Value, schema: &Value, value: &mut Value) -> bool {
    pay(1);
    let Some(schema) = resolve(root, schema) else { return false };
    match value {
        Value::Object(members) => {
            let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return false };
            let required = schema.get("required").and_then(Value::as_array);
            let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
            let mut changed = false;
            let left: Map<String, Value> = std::mem::take(members)
                .into_iter()
                .filter_map(|(name, mut value)| {
                    if let Some(property) = properties.get(&name) {
                        if value.is_null() && !is_required(&name) && !may_be_null(root, property) {
                            changed = true;
                            return None;
                        }
                        changed |= walk(root, property, &mut value);
                    }
                    Some((name, value))
                })
                .collect();
            *members = left;
            changed
        }
        Value::Array(items) => match schema.get("items") {
            Some(schema) => items.iter_mut().fold(false, |changed, item| walk(root, schema, item) | changed),
            None => false,
        },
        _ => false,
    }
}

/// Follows the references of a schema within `root`. Returns the schema itself if it has no `$ref`, or `None` if a reference leads outside.
pub fn resolve<'a>(root: &'a Value, schema: &'a Value) -> Option<&'a Value> {
    let mut schema = schema;
    for _ in 0..MAX_REFERENCES {
        let Some(reference) = schema.get("$ref").and_then(Value::as_str) else { return Some(schema) };
        schema = root.pointer(reference.strip_prefix('#')?)?;
    }
    None
}

/// Whether the `type` of a schema allows null. Returns true for a schema without a `type`, which may allow it.
fn may_be_null(root: &Value, schema: &Value) -> bool {
    match resolve(root, schema).and_then(|schema| schema.get("type")) {
        Some(Value::String(kind)) => kind == "null",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "null"),
        _ => true,
    }
}

/// Whether the value contains a null anywhere.
pub fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(members) => members.values().any(has_null),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_may_be_missing_and_not_null_goes() {
        let schema = json!({
            "type": "object",
            "properties": {
                "optional": { "type": "string" },
                "required": { "type": "string" },
                "nullable": { "type": ["string", "null"] },
                "anything": {},
                "inner": { "$ref": "#/$defs/inner" },
                "list": { "type": "array", "items": { "$ref": "#/$defs/inner" } },
            },
            "required": ["required"],
            "$defs": { "inner": { "type": "object", "properties": { "n": { "type": "integer" } } } },
        });
        let mut value = json!({
            "optional": null, "required": null, "nullable": null, "anything": null, "unknown": null,
            "inner": { "n": null, "m": null }, "list": [{ "n": null }, { "n": 1 }, null],
        });
        assert!(take_out(&schema, &mut value));
        let left = json!({
            "required": null, "nullable": null, "anything": null, "unknown": null,
            "inner": { "m": null }, "list": [{}, { "n": 1 }, null],
        });
        assert_eq!(value, left);
        assert!(!take_out(&schema, &mut value));
        let endless = json!({ "type": "object", "properties": { "a": { "$ref": "#/properties/a" } } });
        assert!(!take_out(&endless, &mut json!({ "a": null })));
    }
}
