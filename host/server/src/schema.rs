//! JSON Schemas that guests supply: hostile until checked, compiled once at load.
//!
//! Nothing is ever fetched, patterns match in linear time, and what a schema can cost is bounded before it is compiled.

use std::{sync::Arc, time::Duration};

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::{Value, value::RawValue};
use tokio::sync::Semaphore;

/// The largest schema, in bytes of JSON.
pub const MAX_BYTES: usize = 64 * 1024;
/// The deepest nesting of a schema.
pub const MAX_DEPTH: usize = 32;
/// How many subschemas a schema may come to with every `$ref` written out.
const MAX_EXPANDED: u64 = 20_000;
/// The most problems a message names.
const MAX_PROBLEMS: usize = 3;
/// Bytes of a value times parts of its schema that are checked where they are: some milliseconds at most.
const CHECKED_AT_ONCE: usize = 4_000_000;
const MAX_PROBLEM_CHARS: usize = 200;

/// A schema in use.
#[derive(Debug)]
pub struct Schema {
    /// As the plugin wrote it, members in their order.
    pub text: Box<RawValue>,
    validator: Arc<Validator>,
    /// How many subschemas it comes to.
    cost: usize,
    /// Refers to itself; then only whether a value fits is worked out, not why it does not, which can take for ever.
    recursive: bool,
}

impl Schema {
    /// Checks and compiles. `object_root`: whether the schema must describe an object, as those of arguments must.
    pub fn compile(text: &str, object_root: bool) -> Result<Self, String> {
        if text.len() > MAX_BYTES {
            return Err(format!("the schema has {} bytes, more than {MAX_BYTES}", text.len()));
        }
        if depth(text) > MAX_DEPTH {
            return Err(format!("the schema is nested more than {MAX_DEPTH} deep"));
        }
        let value: Value = serde_json::from_str(text).map_err(|error| format!("the schema is not JSON: {error}"))?;
        if object_root && value.get("type").and_then(Value::as_str) != Some("object") {
            return Err("the schema must have \"type\": \"object\" at its root".into());
        }
        if !value.is_object() && !value.is_boolean() {
            return Err("a schema is a JSON object".into());
        }
        let mut cost = Cost { root: &value, open: Vec::new(), recursive: false };
        let parts = cost.of(&value)?;
        let recursive = cost.recursive;
        let validator = jsonschema::options()
            .offline()
            .with_pattern_options(PatternOptions::regex().size_limit(256 << 10).dfa_size_limit(1 << 20))
            .should_validate_formats(false)
            .build(&value)
            .map_err(|error| format!("the schema is not valid: {}", clip(&error.to_string())))?;
        let text = RawValue::from_string(text.to_owned()).map_err(|error| error.to_string())?;
        Ok(Self { text, validator: Arc::new(validator), cost: usize::try_from(parts).unwrap_or(usize::MAX), recursive })
    }

    /// Checks a value of so many bytes. What could take long is done on a thread of its own, within `limit`, one at a time
    /// for each `turn`: a plugin that supplies both a costly schema and a large value takes nobody's time but its own.
    pub async fn check_within(
        &self,
        value: Value,
        bytes: usize,
        limit: Duration,
        turn: &Arc<Semaphore>,
    ) -> Result<Value, String> {
        if bytes.saturating_mul(self.cost) <= CHECKED_AT_ONCE {
            return self.check(&value).map(|()| value);
        }
        let (validator, recursive) = (Arc::clone(&self.validator), self.recursive);
        let work = async {
            let permit = Arc::clone(turn).acquire_owned().await;
            let checked = tokio::task::spawn_blocking(move || {
                let checked = check(&validator, recursive, &value).map(|()| value);
                // Not before the thread is free again.
                drop(permit);
                checked
            });
            checked.await.unwrap_or_else(|_| Err("it cannot be checked against the schema".into()))
        };
        let late = || format!("checking it against the schema takes longer than {} ms", limit.as_millis());
        tokio::time::timeout(limit, work).await.unwrap_or_else(|_| Err(late()))
    }

    /// What is wrong with a value, in words for a model; `Ok` if nothing is.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        check(&self.validator, self.recursive, value)
    }
}

fn check(validator: &Validator, recursive: bool, value: &Value) -> Result<(), String> {
    if validator.is_valid(value) {
        return Ok(());
    }
    if recursive {
        return Err("it does not fit the schema".into());
    }
    let problems: Vec<String> = validator
        .iter_errors(value)
        .take(MAX_PROBLEMS)
        .map(|error| {
            let (place, problem) = (error.instance_path().to_string(), clip(&error.to_string()));
            if place.is_empty() { problem } else { format!("at {place}: {problem}") }
        })
        .collect();
    Err(problems.join("; "))
}

/// The deepest nesting of arrays and objects in a JSON text, without parsing it into a tree.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Adds up what a schema comes to, and refuses what leads outside it.
struct Cost<'a> {
    root: &'a Value,
    /// The references being followed, to notice circles.
    open: Vec<&'a str>,
    recursive: bool,
}

impl<'a> Cost<'a> {
    fn of(&mut self, value: &'a Value) -> Result<u64, String> {
        let mut sum = 1_u64;
        match value {
            Value::Array(items) => {
                for item in items {
                    sum = sum.saturating_add(self.of(item)?);
                }
            }
            Value::Object(members) => {
                for (key, member) in members {
                    sum = sum.saturating_add(match (key.as_str(), member.as_str()) {
                        ("$ref" | "$dynamicRef" | "$recursiveRef", Some(target)) => self.reference(target)?,
                        ("$schema", Some(dialect)) if !is_known_dialect(dialect) => {
                            return Err(format!("the JSON Schema dialect {} is not supported", clip(dialect)));
                        }
                        _ => self.of(member)?,
                    });
                }
            }
            _ => {}
        }
        if sum > MAX_EXPANDED {
            return Err(format!(
                "the schema comes to more than {MAX_EXPANDED} parts when its references are written out"
            ));
        }
        Ok(sum)
    }

    fn reference(&mut self, target: &'a str) -> Result<u64, String> {
        let Some(fragment) = target.strip_prefix('#') else {
            return Err(format!(
                "`$ref` to {} leads outside the schema; put the definition into `$defs`",
                clip(target)
            ));
        };
        if self.open.contains(&target) {
            self.recursive = true;
            return Ok(1);
        }
        let found = if fragment.is_empty() || fragment.starts_with('/') {
            self.root.pointer(fragment)
        } else {
            anchor(self.root, fragment)
        };
        let found = found.ok_or_else(|| format!("`$ref` to {} leads nowhere", clip(target)))?;
        self.open.push(target);
        let cost = self.of(found);
        self.open.pop();
        cost
    }
}

fn anchor<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    match value {
        Value::Object(members) => {
            let here =
                ["$anchor", "$dynamicAnchor"].iter().any(|key| members.get(*key).and_then(Value::as_str) == Some(name));
            if here { Some(value) } else { members.values().find_map(|member| anchor(member, name)) }
        }
        Value::Array(items) => items.iter().find_map(|item| anchor(item, name)),
        _ => None,
    }
}

fn is_known_dialect(uri: &str) -> bool {
    matches!(
        Draft::from_schema_uri(uri),
        Draft::Draft4 | Draft::Draft6 | Draft::Draft7 | Draft::Draft201909 | Draft::Draft202012
    )
}

fn clip(text: &str) -> String {
    let mut short: String = text.chars().take(MAX_PROBLEM_CHARS).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_schemas_are_refused() {
        let deep = format!("{}{{}}{}", r#"{"type":"object","not":"#.repeat(40), "}".repeat(40));
        let large = format!(r#"{{"type":"object","description":"{}"}}"#, "x".repeat(MAX_BYTES));
        let doubling: String = (0..40)
            .map(|at| {
                format!(r##""d{at}":{{"allOf":[{{"$ref":"#/$defs/d{0}"}},{{"$ref":"#/$defs/d{0}"}}]}},"##, at + 1)
            })
            .collect();
        let doubling = format!(r##"{{"type":"object","$ref":"#/$defs/d0","$defs":{{{doubling}"d40":true}}}}"##);
        for (text, expected) in [
            ("nonsense", "not JSON"),
            ("[]", "\"type\": \"object\""),
            (r#"{"type":"string"}"#, "\"type\": \"object\""),
            (r#"{"type":"object","properties":7}"#, "not valid"),
            (r#"{"type":"object","$ref":"https://example.com/x"}"#, "leads outside"),
            (r#"{"type":"object","$ref":"other.json"}"#, "leads outside"),
            (r##"{"type":"object","$ref":"#/nowhere"}"##, "leads nowhere"),
            (r#"{"type":"object","$schema":"https://example.com/mine"}"#, "dialect"),
            (r#"{"type":"object","properties":{"a":{"$schema":"urn:x"}}}"#, "dialect"),
            (r#"{"type":"object","properties":{"a":{"pattern":"(?=x)"}}}"#, "regex"),
            (r#"{"type":"object","properties":{"a":{"pattern":"(a{1000}){1000}"}}}"#, "regex"),
            (&deep, "nested"),
            (&large, "bytes"),
            (&doubling, "written out"),
        ] {
            let error = Schema::compile(text, true).unwrap_err();
            assert!(error.contains(expected), "{}: {error}", clip(text));
        }
    }

    #[test]
    fn exponential_patterns_take_no_time() {
        let schema = Schema::compile(r#"{"type":"object","properties":{"a":{"pattern":"^(a+)+$"}}}"#, true).unwrap();
        let value = serde_json::json!({ "a": format!("{}!", "a".repeat(100_000)) });
        let started = std::time::Instant::now();
        assert!(schema.check(&value).is_err());
        assert!(started.elapsed().as_secs() < 2);
    }

    #[test]
    fn problems_are_named() {
        let schema =
            Schema::compile(r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#, true)
                .unwrap();
        assert_eq!(schema.check(&serde_json::json!({ "n": 1 })), Ok(()));
        assert!(schema.check(&serde_json::json!({})).unwrap_err().contains("\"n\" is a required property"));
        assert!(schema.check(&serde_json::json!({ "n": "x" })).unwrap_err().starts_with("at /n:"));
    }

    #[test]
    fn recursion_works_without_details() {
        let tree =
            r##"{"type":"object","properties":{"l":{"$ref":"#"},"r":{"$ref":"#"}},"additionalProperties":false}"##;
        let schema = Schema::compile(tree, true).unwrap();
        let mut value = serde_json::json!({});
        for _ in 0..60 {
            value = serde_json::json!({ "l": value });
        }
        assert_eq!(schema.check(&value), Ok(()));
        assert!(schema.check(&serde_json::json!({ "l": { "x": 1 } })).is_err());
    }
}
