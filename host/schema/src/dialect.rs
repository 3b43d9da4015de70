//! The dialects of JSON Schema, which a schema names in `$schema`.

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
