//! Writes whole numbers as integers where a schema says so. For JSON Schema `1.0` is an integer, and some clients write integers in that
//! way, but most languages in which plugins are written refuse to read it as one.

use serde_json::{Number, Value};

use super::{budget::pay, nulls::resolve};

/// The maximum nesting of choices and references within each other.
const MAX_CHOICES: usize = 16;
/// Up to this number, a number with a fraction has the value that its text says.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// Whether the value contains a number that [`rewrite`] could change.
pub fn has_some(value: &Value) -> bool {
    match value {
        Value::Number(number) => whole(number).is_some(),
        Value::Array(items) => items.iter().any(has_some),
        Value::Object(members) => members.values().any(has_some),
        _ => false,
    }
}

/// Rewrites the numbers of a value that its schema calls integers. A number that may also be one with a fraction stays as it is. Returns
/// whether any was rewritten.
pub fn rewrite(schema: &Value, value: &mut Value) -> bool {
    walk(schema, &[schema], value)
}

/// Rewrites a value to which all of these schemas may apply.
fn walk(root: &Value, schemas: &[&Value], value: &mut Value) -> bool {
    let mut all = Vec::new();
    for schema in schemas {
        flatten(root, schema, MAX_CHOICES, &mut all);
    }
    match value {
        Value::Number(number) => {
            let names = |kind: &str| all.iter().any(|schema| has_type(schema, kind));
            match whole(number) {
                Some(integer) if names("integer") && !names("number") => {
                    *value = Value::Number(integer);
                    true
                }
                _ => false,
            }
        }
        Value::Object(members) => members.iter_mut().fold(false, |changed, (name, member)| {
            let inner: Vec<&Value> = all.iter().copied().filter_map(|schema| of_member(schema, name)).collect();
            (!inner.is_empty() && walk(root, &inner, member)) | changed
        }),
        Value::Array(items) => items.iter_mut().enumerate().fold(false, |changed, (at, item)| {
            let inner: Vec<&Value> = all.iter().copied().filter_map(|schema| of_item(schema, at)).collect();
            (!inner.is_empty() && walk(root, &inner, item)) | changed
        }),
        _ => false,
    }
}

/// Collects a schema and the schemas that it combines, of which some or all apply to the same value.
fn flatten<'a>(root: &'a Value, schema: &'a Value, left: usize, all: &mut Vec<&'a Value>) {
    pay(1);
    let Some(resolved) = resolve(root, schema) else { return };
    all.push(resolved);
    let Some(left) = left.checked_sub(1) else { return };
    for combined in ["allOf", "anyOf", "oneOf"] {
        let choices = resolved.get(combined).and_then(Value::as_array);
        choices.into_iter().flatten().for_each(|choice| flatten(root, choice, left, all));
    }
    for branch in ["then", "else"] {
        resolved.get(branch).into_iter().for_each(|branch| flatten(root, branch, left, all));
    }
}

/// Returns the schema of a member: the one for its name, or the one for all others.
fn of_member<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    let named = schema.get("properties").and_then(|all| all.get(name));
    // Whether a name fits one of several patterns is not examined here.
    let others = || schema.get("additionalProperties").filter(|_| schema.get("patternProperties").is_none());
    named.or_else(others)
}

/// Returns the schema of an item: the one for its position, or the one for all others.
fn of_item(schema: &Value, at: usize) -> Option<&Value> {
    let items = schema.get("items");
    // Older drafts have the schemas of positions in `items`, and that of the others in `additionalItems`.
    let (positions, others) = match items {
        Some(Value::Array(positions)) => (Some(positions), schema.get("additionalItems")),
        _ => (schema.get("prefixItems").and_then(Value::as_array), items),
    };
    positions.and_then(|positions| positions.get(at)).or(others)
}

fn has_type(schema: &Value, wanted: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(kind)) => kind == wanted,
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == wanted),
        _ => false,
    }
}

/// Returns a number that is written with a fraction or exponent and has an integer value as that integer.
fn whole(number: &Number) -> Option<Number> {
    let float = number.as_f64().filter(|_| number.is_f64())?;
    (float.fract() == 0.0 && float.abs() <= MAX_EXACT).then(|| Number::from(float as i64))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn integers_are_written_as_such_wherever_the_schema_says_so() {
        let schema = json!({
            "type": "object",
            "properties": {
                "n": { "type": "integer" },
                "nullable": { "type": ["integer", "null"] },
                "optional": { "anyOf": [{ "type": "integer", "minimum": 0 }, { "type": "null" }] },
                "all": { "allOf": [{ "type": "integer" }, { "maximum": 9 }] },
                "inner": { "$ref": "#/$defs/inner" },
                "list": { "type": "array", "items": { "$ref": "#/$defs/inner" } },
                "pair": { "type": "array", "prefixItems": [{ "type": "number" }, { "type": "integer" }], "items": false },
                "older": { "items": [{ "type": "integer" }], "additionalItems": { "type": "number" } },
                "by_name": { "additionalProperties": { "type": "integer" } },
                "choice": { "oneOf": [{ "properties": { "a": { "type": "integer" } } }, { "type": "string" }] },
            },
            "$defs": { "inner": { "type": "object", "properties": { "n": { "type": "integer" } } } },
        });
        let mut value = json!({
            "n": 1.0, "nullable": -2e0, "optional": 3.0, "all": 4.0, "inner": { "n": 5.0 }, "list": [{ "n": 6.0 }, { "n": 7 }],
            "pair": [8.0, 9.0], "older": [10.0, 11.0], "by_name": { "x": 12.0 }, "choice": { "a": 13.0 },
        });
        assert!(has_some(&value) && rewrite(&schema, &mut value));
        let text = value.to_string();
        let expected = r#"{"n":1,"nullable":-2,"optional":3,"all":4,"inner":{"n":5},"list":[{"n":6},{"n":7}],"pair":[8.0,9],"older":[10,11.0],"by_name":{"x":12},"choice":{"a":13}}"#;
        assert_eq!(text, expected);
        assert!(!rewrite(&schema, &mut value));
    }

    #[test]
    fn what_may_have_a_fraction_or_is_not_exact_stays() {
        let schema = json!({
            "type": "object",
            "properties": {
                "number": { "type": "number" },
                "either": { "anyOf": [{ "type": "integer" }, { "type": "number" }] },
                "both": { "type": ["integer", "number"] },
                "anything": {},
                "n": { "type": "integer" },
                "endless": { "$ref": "#/properties/endless" },
            },
        });
        let before = json!({
            "number": 1.0, "either": 1.0, "both": 1.0, "anything": 1.0, "n": 1e300, "endless": 1.0, "unknown": 1.0,
        });
        let mut value = before.clone();
        assert!(!rewrite(&schema, &mut value));
        assert_eq!(value.to_string(), before.to_string());
        assert!(!has_some(&json!({ "a": [1, 1.5, "1.0", null, 1e300] })));
    }
}
