//! The dialects of JSON Schema, which a schema names in `$schema`, and other members by which it can lead outside.

use jsonschema::Draft;
use serde_json::Value;

use wharf_base::text::clip;

/// Checks the value of a `$schema`: a dialect that is known here.
pub fn check(named: &Value) -> Result<(), String> {
    let Some(named) = named.as_str() else { return Ok(()) };
    match Draft::from_schema_uri(named) {
        Draft::Draft4 | Draft::Draft6 | Draft::Draft7 | Draft::Draft201909 | Draft::Draft202012 => Ok(()),
        _ => Err(format!("the JSON Schema dialect {} is not supported", clip(named))),
    }
}

/// Checks that a schema describes an object, if it must.
pub fn check_root(schema: &Value, object_root: bool) -> Result<(), String> {
    if object_root && schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err("the schema must have \"type\": \"object\" at its root".into());
    }
    Ok(())
}

/// Checks what MCP says about the root of a schema. Clients refuse a whole list because of one tool for which it is not true.
pub fn check_shape(schema: &Value) -> Result<(), String> {
    let properties =
        schema.get("properties").map(|all| all.as_object().is_some_and(|all| all.values().all(Value::is_object)));
    let required = schema.get("required").map(|all| all.as_array().is_some_and(|all| all.iter().all(Value::is_string)));
    match (properties, required) {
        (Some(false), _) => Err("`properties` must be an object of objects".into()),
        (_, Some(false)) => Err("`required` must be an array of strings".into()),
        _ => Ok(()),
    }
}

/// Refuses a schema that sends those who read it elsewhere, wherever it says so.
pub fn check_references(part: &Value, is_root: bool) -> Result<(), String> {
    for (key, member) in part.as_object().into_iter().flatten() {
        match (key.as_str(), member.as_str()) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Some(target)) if !target.starts_with('#') => {
                return Err(format!("the reference {} leads outside the schema", clip(target)));
            }
            ("$schema", Some(_)) => check(member)?,
            ("$id", Some(_)) if !is_root => return Err("`$id` is allowed only at the root of a schema".into()),
            _ => {}
        }
        check_references(member, false)?;
    }
    part.as_array().into_iter().flatten().try_for_each(|one| check_references(one, false))
}

/// Keywords whose values are data, and keywords whose values are schemas by name.
const OF_DATA: [&str; 4] = ["const", "enum", "default", "examples"];
const OF_NAMED: [&str; 6] =
    ["properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"];

/// Removes `$schema` from the subschemas of a schema. Generators write it there when they embed a schema that they made by itself. The
/// dialect of the whole schema counts for all of it.
pub fn take_inner(schema: &mut Value) {
    for (key, member) in schema.as_object_mut().into_iter().flatten() {
        if OF_NAMED.contains(&key.as_str()) {
            member.as_object_mut().into_iter().flatten().for_each(|(_, schema)| take_from(schema));
        } else if !OF_DATA.contains(&key.as_str()) {
            take_from(member);
        }
    }
}

fn take_from(part: &mut Value) {
    match part {
        Value::Array(parts) => parts.iter_mut().for_each(take_from),
        Value::Object(members) => {
            if members.get("$schema").is_some_and(Value::is_string) {
                members.remove("$schema");
            }
            take_inner(part);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Plan;

    /// zod writes its dialect into each schema that it embeds.
    #[test]
    fn a_dialect_inside_a_schema_changes_nothing() {
        const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";
        let inner = |dialect: &str| format!(r#"{{"$schema":"{dialect}","type":"array","items":{{"type":"string"}}}}"#);
        let schema = format!(r#"{{"type":"object","properties":{{"a":{}}}}}"#, inner(DRAFT));
        let schema = Plan::of(&schema, true).unwrap().compile().unwrap();
        assert!(schema.text.get().contains("$schema"), "clients get it as it was written");
        schema.check(&json!({ "a": ["b"] })).unwrap();
        assert!(schema.check(&json!({ "a": [1] })).is_err());
        // Without the dialect of its own, the list of item schemas that draft 7 knows is not one.
        let old = r#"{"type":"object","properties":{"a":{"$schema":"http://json-schema.org/draft-07/schema#","items":{"type":"string"}}}}"#;
        assert!(Plan::of(old, true).unwrap().compile().unwrap().check(&json!({ "a": [1] })).is_err());
    }

    #[test]
    fn what_cannot_be_checked_with_is_taken_unless_it_leads_outside() {
        for (members, expected) in [
            (json!({ "a": { "pattern": "^(?!0)[0-9]+$" } }), None),
            (json!({ "a": { "type": "any", "description": null, "required": true } }), None),
            (json!({ "a": { "enum": "a,b", "minimum": "0" }, "b": { "$ref": "#/gone" } }), None),
            (json!({ "$ref": { "type": "string" }, "id": { "type": "string" } }), None),
            (json!({ "a": true }), Some("an object of objects")),
            (json!({ "a": { "type": "any", "$ref": "https://example.com/x" } }), Some("leads outside")),
            (json!({ "a": { "items": [{ "$dynamicRef": "x.json" }] } }), Some("leads outside")),
            (json!({ "a": { "$schema": "https://example.com/mine" } }), Some("dialect")),
            (json!({ "a": { "$id": "https://example.com/a" } }), Some("`$id`")),
        ] {
            let text = json!({ "type": "object", "properties": members }).to_string();
            match (crate::Schema::unchecked(&text, true), expected) {
                (Ok(schema), None) => assert_eq!(schema.check(&json!({ "a": [null, 1] })), Ok(()), "{text}"),
                (Err(error), Some(expected)) => assert!(error.contains(expected), "{text}: {error}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
        let long = |bytes: usize| format!(r#"{{"type":"object","description":"{}"}}"#, "x".repeat(bytes));
        let deep = format!("{}true{}", r#"{"type":"object","not":"#.repeat(101), "}".repeat(101));
        assert!(crate::Schema::unchecked(&long(71_000), true).is_ok());
        for text in [&long(1 << 20), &deep, "{}", "nonsense", r#"{"type":"object","required":null}"#] {
            assert!(crate::Schema::unchecked(text, true).is_err(), "{}", clip(text));
        }
    }

    #[test]
    fn only_subschemas_lose_their_dialect() {
        const DRAFT: &str = "http://json-schema.org/draft-07/schema#";
        let mut schema = json!({
            "$schema": DRAFT,
            "properties": {
                "$schema": { "type": "string", "$schema": DRAFT },
                "a": { "anyOf": [{ "$schema": DRAFT, "items": { "$schema": DRAFT } }], "default": { "$schema": DRAFT } },
            },
        });
        take_inner(&mut schema);
        let expected = json!({
            "$schema": DRAFT,
            "properties": {
                "$schema": { "type": "string" },
                "a": { "anyOf": [{ "items": {} }], "default": { "$schema": DRAFT } },
            },
        });
        assert_eq!(schema, expected);
    }
}
