//! Parses the HTTP headers that mirror parts of a modern request's body, and finds the arguments that a tool wants mirrored.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use crate::{error::RpcError, object::Object};

/// The member of a property's schema with the name of its header, without the prefix.
const ANNOTATION: &str = "x-mcp-header";
/// The largest integer that all JSON parsers read exactly: 2^53 - 1.
const SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

/// Decodes the value of an `Mcp-Name` or `Mcp-Param-*` header; `None` if the value is malformed.
///
/// Blanks around the value are ignored. A value that begins with `=?base64?` and ends with `?=` contains the base64 of UTF-8 text in
/// between; a value with only one of the two is taken literally.
pub fn decode_value(raw: &[u8]) -> Option<String> {
    let visible = raw.iter().all(|byte| matches!(byte, 0x20..=0x7e | b'\t'));
    let text = std::str::from_utf8(raw).ok().filter(|_| visible)?.trim_matches([' ', '\t']);
    match text.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
        None => Some(text.to_owned()),
    }
}

/// An argument that is mirrored in a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirrored {
    /// The names of the members that lead to the argument, beginning with the outermost.
    pub path: Vec<String>,
    /// The full name of the header, in lower case.
    pub header: String,
}

/// Finds the arguments of an input schema that are mirrored in headers. Clients silently drop a tool whose annotations are
/// wrong, so the error tells the plugin's author which one is wrong and why.
pub fn mirrored(schema: &Value) -> Result<Vec<Mirrored>, String> {
    let mut found = Vec::new();
    walk(schema, Some(&mut Vec::new()), &mut found)?;
    Ok(found)
}

/// Walks through a schema and everything within it. `path` contains the names of the properties that lead to the schema. It is `None` if
/// anything except `properties` leads there: then the schema must not have an annotation.
fn walk(schema: &Value, path: Option<&mut Vec<String>>, found: &mut Vec<Mirrored>) -> Result<(), String> {
    let Value::Object(members) = schema else { return Ok(()) };
    if let Some(name) = members.get(ANNOTATION) {
        let path = path.as_deref().filter(|path| !path.is_empty()).ok_or_else(|| {
            format!("`{ANNOTATION}` is in a place where it cannot name an argument: only `properties` may lead to it")
        })?;
        let one = annotated(members, name, path)?;
        if found.iter().any(|other| other.header == one.header) {
            return Err(format!("two arguments share the `{ANNOTATION}` {name}; upper and lower case are the same"));
        }
        found.push(one);
    }
    let mut path = path;
    for (key, value) in members {
        match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                for (name, property) in properties {
                    match path.as_deref_mut() {
                        Some(path) => {
                            path.push(name.clone());
                            walk(property, Some(path), found)?;
                            path.pop();
                        }
                        None => walk(property, None, found)?,
                    }
                }
            }
            ("patternProperties" | "$defs" | "definitions" | "dependentSchemas", Value::Object(schemas)) => {
                for schema in schemas.values() {
                    walk(schema, None, found)?;
                }
            }
            // These contain data, not schemas.
            ("enum" | "const" | "default" | "examples", _) => {}
            (_, Value::Array(schemas)) => {
                for schema in schemas {
                    walk(schema, None, found)?;
                }
            }
            (_, schema) => walk(schema, None, found)?,
        }
    }
    Ok(())
}

fn annotated(schema: &Object, name: &Value, path: &[String]) -> Result<Mirrored, String> {
    let at = path.join(".");
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let name = name
        .as_str()
        .filter(|name| !name.is_empty() && name.bytes().all(is_token))
        .ok_or_else(|| format!("the `{ANNOTATION}` of `{at}` is not a valid header name"))?;
    if !matches!(schema.get("type").and_then(Value::as_str), Some("string" | "integer" | "boolean")) {
        return Err(format!(
            "the argument `{at}` has `{ANNOTATION}`, so its type has to be string, integer or boolean"
        ));
    }
    for bound in ["minimum", "maximum"] {
        if schema.get(bound).and_then(Value::as_f64).is_some_and(|bound| bound.abs() > SAFE_INTEGER) {
            return Err(format!(
                "the argument `{at}` has `{ANNOTATION}`, so its `{bound}` has to be within ±(2^53 - 1)"
            ));
        }
    }
    Ok(Mirrored { path: path.to_vec(), header: format!("mcp-param-{}", name.to_ascii_lowercase()) })
}

impl Mirrored {
    /// Compares the header with the arguments. `given` are all values of this header in the request. The error names the header and the
    /// argument.
    pub fn check(&self, arguments: &Value, given: &[&[u8]]) -> Result<(), RpcError> {
        let mut value = Some(arguments);
        for name in &self.path {
            value = value.and_then(|value| value.get(name));
        }
        let wrong = |what: &str| {
            Err(RpcError::header_mismatch(format!("the header {} {what} `{}`", self.header, self.path.join("."))))
        };
        let header = match (value.unwrap_or(&Value::Null), given) {
            (Value::Null, []) => return Ok(()),
            (Value::Null, _) => return wrong("is present without the argument"),
            // An argument of this type does not match its schema. Schemas are checked elsewhere, and the client gets that error.
            (Value::Array(_) | Value::Object(_), _) => return Ok(()),
            (_, []) => return wrong("is missing for the argument"),
            (_, [one]) => decode_value(one),
            (_, _) => return wrong("is present more than once for the argument"),
        };
        let Some(header) = header else { return wrong("is malformed for the argument") };
        let equal = match value {
            Some(Value::String(text)) => *text == header,
            Some(Value::Bool(flag)) => header == if *flag { "true" } else { "false" },
            Some(Value::Number(number)) => {
                let plain = header.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'.'));
                plain && header.parse().ok() == number.as_f64()
            }
            _ => false,
        };
        if equal { Ok(()) } else { wrong("differs from the argument") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        for (raw, expected) in [
            ("=?base64?Z3LDvMOfZQ==?=", Some("grüße")),
            ("  abc ", Some("abc")),
            ("ABC", Some("ABC")),
            ("=?base64?YWJj", Some("=?base64?YWJj")),
            ("=?base64?YWJ?=", None),
            ("=?base64?YW Jj?=", None),
            ("=?base64?/w==?=", None),
            ("=?base64?Dw==?=", Some("\u{f}")),
            ("=?base64?PT9iYXNlNjQ/eD89?=", Some("=?base64?x?=")),
            ("=?base64?=", Some("=?base64?=")),
            ("", Some("")),
            ("grüße", None),
            ("a\u{1}b", None),
        ] {
            assert_eq!(decode_value(raw.as_bytes()).as_deref(), expected, "{raw:?}");
        }
    }

    #[test]
    fn annotations_are_found_or_refused() {
        let read = |text: &str| {
            let found = mirrored(&serde_json::from_str(text).unwrap())?;
            Ok::<_, String>(
                found.iter().map(|one| format!("{} {}", one.path.join("."), one.header)).collect::<Vec<_>>(),
            )
        };
        let string = r#"{"type":"string","x-mcp-header":"Region"}"#;
        for (schema, expected) in [
            (r#"{"type":"object"}"#.to_owned(), &[][..]),
            (format!(r#"{{"properties":{{"a":{string}}}}}"#), &["a mcp-param-region"]),
            (format!(r#"{{"properties":{{"a":{{"properties":{{"b":{string}}}}}}}}}"#), &["a.b mcp-param-region"]),
            // A property of that name is not an annotation, and neither is data.
            (r#"{"properties":{"x-mcp-header":{"type":"number"}}}"#.to_owned(), &[]),
            (r#"{"properties":{"a":{"default":{"x-mcp-header":"!"}}}}"#.to_owned(), &[]),
        ] {
            assert_eq!(read(&schema).unwrap(), expected, "{schema}");
        }
        for (schema, problem) in [
            (format!(r#"{{"properties":{{"a":{{"items":{string}}}}}}}"#), "only `properties`"),
            (format!(r#"{{"allOf":[{{"properties":{{"a":{string}}}}}]}}"#), "only `properties`"),
            (format!(r#"{{"$defs":{{"a":{string}}}}}"#), "only `properties`"),
            (string.to_owned(), "only `properties`"),
            (r#"{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}"#.into(), "string, integer or boolean"),
            (r#"{"properties":{"a":{"type":"string","x-mcp-header":""}}}"#.into(), "not a valid header name"),
            (r#"{"properties":{"a":{"type":"string","x-mcp-header":"a b"}}}"#.into(), "not a valid header name"),
            (r#"{"properties":{"a":{"type":"string","x-mcp-header":7}}}"#.into(), "not a valid header name"),
            (r#"{"properties":{"a":{"type":"integer","maximum":1e17,"x-mcp-header":"A"}}}"#.into(), "2^53"),
            (
                r#"{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}"#
                    .into(),
                "share",
            ),
        ] {
            let error = read(&schema).unwrap_err();
            assert!(error.contains(problem), "{schema}: {error}");
        }
    }

    #[test]
    fn headers_are_compared_with_arguments() {
        let one = Mirrored { path: vec!["x".into()], header: "mcp-param-x".into() };
        for (arguments, given, fits) in [
            (r#"{"x":"us"}"#, &["us"][..], true),
            (r#"{"x":"us"}"#, &[" us "], true),
            (r#"{"x":"us"}"#, &["US"], false),
            (r#"{"x":"us"}"#, &[], false),
            (r#"{"x":"us"}"#, &["us", "us"], false),
            (r#"{"x":"grüße"}"#, &["=?base64?Z3LDvMOfZQ==?="], true),
            (r#"{"x":"abc"}"#, &["=?base64?YWJ?="], false),
            (r#"{"x":42}"#, &["42"], true),
            (r#"{"x":42}"#, &["42.0"], true),
            (r#"{"x":-7}"#, &["-7"], true),
            (r#"{"x":42}"#, &["43"], false),
            (r#"{"x":42}"#, &["4.2e1"], false),
            (r#"{"x":true}"#, &["true"], true),
            (r#"{"x":true}"#, &["True"], false),
            (r#"{"x":null}"#, &[], true),
            (r#"{"x":null}"#, &["us"], false),
            ("{}", &[], true),
            ("{}", &["us"], false),
        ] {
            let values: Vec<&[u8]> = given.iter().map(|value| value.as_bytes()).collect();
            let result = one.check(&serde_json::from_str(arguments).unwrap(), &values);
            assert_eq!(result.is_ok(), fits, "{arguments} {given:?}: {result:?}");
        }
    }
}
