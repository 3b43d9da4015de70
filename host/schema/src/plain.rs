//! Checks the text of arguments against a plain schema while it is parsed, without a tree of values.
//!
//! Most tools take an object of strings, numbers and further objects. A text that fits such a schema is accepted here. Everything else,
//! including every text that does not fit, is left to the validator, which also says what is wrong.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde_json::{Map, Value};

/// The maximum number of members of an object. Each name is compared with all of them.
const MAX_MEMBERS: usize = 32;
/// Keywords that do not restrict values.
const ANNOTATIONS: [&str; 8] =
    ["title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment"];

/// A plain schema of an object.
#[derive(Debug)]
pub struct Plain(Vec<Member>);

#[derive(Debug)]
struct Member {
    name: String,
    required: bool,
    shape: Shape,
}

#[derive(Debug)]
enum Shape {
    Text,
    Integer,
    Number,
    Truth,
    Object(Plain),
}

impl Plain {
    /// Returns the plain schema that a schema is, if it is one.
    pub fn of(schema: &Value) -> Option<Self> {
        let mut schema = schema.as_object()?.clone();
        // The keywords that are read here mean the same in all dialects.
        schema.remove("$schema");
        match Shape::of(&schema)? {
            Shape::Object(plain) => Some(plain),
            _ => None,
        }
    }

    /// Whether the text is an object that fits the schema, with every name at most once in each object. `false`: it may still fit.
    pub fn fits(&self, text: &str) -> bool {
        let mut json = serde_json::Deserializer::from_str(text);
        json.deserialize_map(self).is_ok() && json.end().is_ok()
    }
}

impl Shape {
    fn of(schema: &Map<String, Value>) -> Option<Self> {
        let kind = schema.get("type")?.as_str()?;
        let own: &[&str] = match kind {
            "object" => &["type", "properties", "required", "additionalProperties"],
            _ => &["type"],
        };
        if schema.keys().any(|key| !own.contains(&key.as_str()) && !ANNOTATIONS.contains(&key.as_str())) {
            return None;
        }
        Some(match kind {
            "string" => Self::Text,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Truth,
            "object" => Self::Object(members(schema)?),
            _ => return None,
        })
    }
}

/// Returns the members of an object, if it has few and each of them is plain.
fn members(schema: &Map<String, Value>) -> Option<Plain> {
    // Members without a schema are left to the validator, so it does not matter whether they are allowed.
    if !matches!(schema.get("additionalProperties"), None | Some(Value::Bool(_))) {
        return None;
    }
    let mut members = Vec::new();
    if let Some(properties) = schema.get("properties") {
        for (name, schema) in properties.as_object()? {
            members.push(Member { name: name.clone(), required: false, shape: Shape::of(schema.as_object()?)? });
        }
    }
    if let Some(required) = schema.get("required") {
        for name in required.as_array()? {
            let name = name.as_str()?;
            members.iter_mut().find(|member| member.name == name)?.required = true;
        }
    }
    (members.len() <= MAX_MEMBERS).then_some(Plain(members))
}

impl<'de> Visitor<'de> for &Plain {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = 0_u32;
        while let Some(at) = map.next_key_seed(NameOf(self))? {
            let bit = 1 << at;
            if seen & bit != 0 {
                return Err(A::Error::custom("an object contains a name twice"));
            }
            seen |= bit;
            let member = self.0.get(at).ok_or_else(|| A::Error::custom("an unknown member"))?;
            map.next_value_seed(&member.shape)?;
        }
        let complete = self.0.iter().enumerate().all(|(at, member)| !member.required || seen & (1 << at) != 0);
        if complete { Ok(()) } else { Err(A::Error::custom("a member is missing")) }
    }
}

impl<'de> DeserializeSeed<'de> for &Shape {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self {
            Shape::Object(plain) => deserializer.deserialize_map(plain),
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for &Shape {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self:?}")
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        self.is(matches!(self, Shape::Text))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        self.is(matches!(self, Shape::Truth))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        self.is(matches!(self, Shape::Integer | Shape::Number))
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        self.is(matches!(self, Shape::Integer | Shape::Number))
    }

    // A whole number that is written with a point may be an integer, which depends on the dialect.
    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        self.is(matches!(self, Shape::Number))
    }
}

impl Shape {
    fn is<E: Error>(&self, fits: bool) -> Result<(), E> {
        if fits { Ok(()) } else { Err(E::custom("a value of another type")) }
    }
}

/// Finds the number of the member that a name belongs to.
struct NameOf<'a>(&'a Plain);

impl<'de> DeserializeSeed<'de> for NameOf<'_> {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for NameOf<'_> {
    type Value = usize;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<usize, E> {
        let found = self.0.0.iter().position(|member| member.name == name);
        found.ok_or_else(|| E::custom("an unknown member"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn plain_schemas_are_recognized() {
        let of = |members: Value| Plain::of(&json!({ "type": "object", "properties": members })).is_some();
        for members in [
            json!({}),
            json!({ "a": { "type": "string", "title": "A", "default": 1 }, "b": { "type": "integer" } }),
            json!({ "a": { "type": "object", "properties": { "b": { "type": "boolean" } }, "required": ["b"] } }),
        ] {
            assert!(of(members.clone()), "{members}");
        }
        for members in [
            json!({ "a": true }),
            json!({ "a": {} }),
            json!({ "a": { "type": ["string", "null"] } }),
            json!({ "a": { "type": "string", "minLength": 1 } }),
            json!({ "a": { "type": "array" } }),
            json!({ "a": { "$ref": "#/$defs/a" } }),
            json!({ "a": { "type": "object", "additionalProperties": { "type": "string" } } }),
            json!({ "a": { "type": "object", "required": ["b"] } }),
            (0..=MAX_MEMBERS).map(|at| (at.to_string(), json!({ "type": "string" }))).collect::<Map<_, _>>().into(),
        ] {
            assert!(!of(members.clone()), "{members}");
        }
        assert!(Plain::of(&json!({ "type": "object", "anyOf": [] })).is_none());
    }

    #[test]
    fn what_fits_is_accepted() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "text": { "type": "string" },
                "whole": { "type": "integer" },
                "part": { "type": "number" },
                "in": { "type": "object", "properties": { "yes": { "type": "boolean" } }, "required": ["yes"] },
            },
            "required": ["text"],
        });
        let plain = Plain::of(&schema).unwrap();
        for (text, fits) in [
            (r#"{"text":"a\n"}"#, true),
            (r#" { "te\u0078t" : "" , "whole" : -1, "part": 1.5, "in": {"yes":true} } "#, true),
            (r#"{"text":"a","whole":18446744073709551615,"part":2}"#, true),
            ("{}", false),
            ("[]", false),
            ("null", false),
            ("", false),
            (r#"{"text":1}"#, false),
            (r#"{"text":null}"#, false),
            (r#"{"text":"a","text":"b"}"#, false),
            (r#"{"text":"a","te\u0078t":"b"}"#, false),
            (r#"{"text":"a","in":{"yes":true,"yes":true}}"#, false),
            (r#"{"text":"a","in":{}}"#, false),
            (r#"{"text":"a","whole":1.0}"#, false),
            (r#"{"text":"a","part":"1"}"#, false),
            (r#"{"text":"a","part":1e999}"#, false),
            (r#"{"text":"a","other":1}"#, false),
            (r#"{"text":"a"} {}"#, false),
            (r#"{"text":"a"#, false),
            (r#"{"text":"\ud800"}"#, false),
        ] {
            assert_eq!(plain.fits(text), fits, "{text}");
            if fits {
                assert!(jsonschema::is_valid(&schema, &serde_json::from_str(text).unwrap()), "{text}");
            }
        }
    }
}
