//! Converts WIT types to JSON Schemas. The schemas are the same as those of other hosts, which clients know, with constraints that those
//! leave out.

use serde_json::{Map, Value, json};

use super::types::{Int, Signature, Ty};

/// Whether the schema is for arguments or for results. Arguments of some types have more than one form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    In,
    Out,
}

/// Returns the schema of the arguments.
pub(crate) fn input(signature: &Signature) -> Value {
    object(&signature.params, Direction::In)
}

/// Returns the schema of the structured result, if the function returns more than a text. Many clients show a model only the structured
/// part of a result that has one, and there a text is hard to read.
pub(crate) fn output(signature: &Signature) -> Option<Value> {
    let result = schema(signature.result.as_ref().filter(|ty| !ty.is_text())?, Direction::Out);
    Some(json!({ "type": "object", "properties": { "result": result }, "required": ["result"] }))
}

fn object(fields: &[(String, Ty)], direction: Direction) -> Value {
    let properties: Map<String, Value> =
        fields.iter().map(|(name, ty)| (name.clone(), schema(ty, direction))).collect();
    // An `option` may be absent in arguments; in results it is always present, as null.
    let needed = |ty: &Ty| direction == Direction::Out || !matches!(ty, Ty::Option(_));
    let required: Vec<&str> = fields.iter().filter(|(_, ty)| needed(ty)).map(|(name, _)| name.as_str()).collect();
    json!({ "type": "object", "properties": properties, "required": required })
}

fn schema(ty: &Ty, direction: Direction) -> Value {
    match ty {
        Ty::Bool => json!({ "type": "boolean" }),
        Ty::Int(int) => integer(*int),
        Ty::F32 | Ty::F64 => json!({ "type": "number" }),
        Ty::Char => json!({ "type": "string", "minLength": 1, "maxLength": 1, "description": "1 unicode codepoint" }),
        Ty::String => json!({ "type": "string" }),
        Ty::Bytes => {
            let base64 = json!({ "type": "string", "contentEncoding": "base64" });
            match direction {
                Direction::In => json!({ "anyOf": [base64, { "type": "array", "items": integer(Int::U8) }] }),
                Direction::Out => base64,
            }
        }
        Ty::List(of) => json!({ "type": "array", "items": schema(of, direction) }),
        Ty::Record(fields) => object(fields, direction),
        Ty::Tuple(types) => {
            let items: Vec<Value> = types.iter().map(|ty| schema(ty, direction)).collect();
            let array =
                json!({ "type": "array", "prefixItems": items, "minItems": types.len(), "maxItems": types.len() });
            match direction {
                Direction::In => json!({ "anyOf": [array, object(&numbered(types), direction)] }),
                Direction::Out => array,
            }
        }
        Ty::Variant(cases) => {
            let cases = cases.iter().map(|(name, ty)| match ty {
                Some(ty) => json!({
                    "type": "object",
                    "properties": { "tag": { "const": name }, "val": schema(ty, direction) },
                    "required": ["tag", "val"],
                }),
                None => {
                    json!({ "type": "object", "properties": { "tag": { "const": name } }, "required": ["tag"] })
                }
            });
            json!({ "oneOf": cases.collect::<Vec<_>>() })
        }
        Ty::Enum(names) => json!({ "type": "string", "enum": names }),
        Ty::Option(of) => json!({ "anyOf": [{ "type": "null" }, schema(of, direction)] }),
        Ty::Result(ok, err) => {
            let side = |name: &str, ty: &Option<Box<Ty>>| {
                let schema = ty.as_ref().map_or_else(|| json!({ "type": "null" }), |ty| schema(ty, direction));
                json!({ "type": "object", "properties": { name: schema }, "required": [name] })
            };
            json!({ "oneOf": [side("ok", ok), side("err", err)] })
        }
        Ty::Flags(names) => {
            let array = json!({ "type": "array", "items": { "type": "string", "enum": names }, "uniqueItems": true });
            let properties: Map<String, Value> =
                names.iter().map(|name| (name.clone(), json!({ "type": "boolean" }))).collect();
            match direction {
                Direction::In => json!({ "anyOf": [array, { "type": "object", "properties": properties }] }),
                Direction::Out => array,
            }
        }
    }
}

/// Returns the items of a tuple as members of an object.
fn numbered(types: &[Ty]) -> Vec<(String, Ty)> {
    types.iter().enumerate().map(|(at, ty)| (item_name(at), ty.clone())).collect()
}

/// Returns the name of an item of a tuple as a member of an object.
pub(crate) fn item_name(at: usize) -> String {
    format!("val{at}")
}

fn integer(int: Int) -> Value {
    let number = match int {
        Int::S64 => json!({ "type": "integer", "minimum": i64::MIN, "maximum": i64::MAX }),
        Int::U64 => json!({ "type": "integer", "minimum": 0, "maximum": u64::MAX }),
        _ => {
            let (least, most) = int.bounds();
            json!({ "type": "integer", "minimum": least as i64, "maximum": most as i64 })
        }
    };
    if int.is_wide() {
        // Many JSON parsers round large integers.
        let text = json!({ "type": "string", "pattern": "^-?[0-9]{1,20}$" });
        return json!({ "anyOf": [number, text] });
    }
    number
}
