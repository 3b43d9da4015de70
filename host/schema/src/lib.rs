//! JSON Schemas that guests supply. They may be hostile, so each is examined before it is compiled, once, when the plugin is loaded.
//!
//! References are never fetched, and patterns match in linear time, so there is no ReDoS. The memory and work that a schema can cause are
//! bounded before it is compiled (`cost`). The check of one value is bounded while it runs: the validator reads the value through
//! `metered`, which subtracts each step from a budget (`budget`).

#![forbid(unsafe_code)]

use std::{fmt, sync::Arc, time::Duration};

use jsonschema::{PatternOptions, Validator, error::ValidationErrorKind};
use serde_json::{Value, json, value::RawValue};

use self::{
    budget::{Exhausted, Lengths},
    cost::Cost,
    metered::{At, Metered},
    nulls::has_null,
    plain::Plain,
};
use wharf_base::{
    explain::nearest,
    party::Party,
    places::{Places, PoolRule},
    text::clip,
};

pub mod budget;
mod cost;
mod dialect;
mod integers;
mod metered;
mod nulls;
mod plain;
pub mod readable;

/// The maximum size of a schema, in bytes of JSON.
pub const MAX_BYTES: usize = wharf_base::json_size::MAX_SCHEMA_BYTES;
/// The maximum nesting depth of a schema.
pub const MAX_DEPTH: usize = 32;
/// The maximum size and depth of a schema that is published without being compiled.
const MAX_UNCHECKED_BYTES: usize = 4 * MAX_BYTES;
const MAX_UNCHECKED_DEPTH: usize = 100;
/// The maximum memory of a schema that is compiled to check one answer.
const MAX_SMALL_BYTES: usize = 4 << 20;
/// The maximum number of problems in an error message, and the maximum number of problems and steps examined to find them.
const MAX_PROBLEMS: usize = 3;
const MAX_EXAMINED_PROBLEMS: u32 = 32;
const MAX_PROBLEM_STEPS: u64 = 1_000_000;
/// The maximum product of the bytes of a value and the number of subschemas for a check on the current thread, where it takes a few
/// milliseconds at most.
const MAX_WORK_HERE: usize = 4_000_000;

/// The classes of patterns: the maximum size of the compiled pattern, and the measured worst time in nanoseconds to match one byte. A
/// pattern belongs to the first class that it fits into.
const PATTERN_KINDS: [(usize, usize); 6] =
    [(8 << 10, 900), (16 << 10, 1_900), (32 << 10, 3_600), (64 << 10, 7_000), (128 << 10, 12_000), (256 << 10, 28_000)];
/// The memory for matching, for each of the two directions.
const PATTERN_CACHE_BYTES: usize = 64 << 10;
/// The maximum time in nanoseconds for matching one text. A match cannot be interrupted.
const MAX_MATCH_NS: usize = 250_000_000;

/// The rule for long schema checks: one at a time for each plugin.
pub static CHECKS: PoolRule = PoolRule {
    of: "long checks against a schema of a plugin",
    number: "1 for each plugin",
    taker: "client",
    until: "the check ends, at most after the plugin's `timeout_ms`",
    asking: "not held",
    gone: "held until the check ends",
    gives_way: "nothing; waiting clients take turns",
    old: Duration::MAX,
};

/// A compiled schema.
#[derive(Debug)]
pub struct Schema {
    /// The schema as the plugin wrote it, with its members in the original order.
    pub text: Box<RawValue>,
    validator: Arc<Validator<Metered>>,
    /// The number of subschemas.
    parts: usize,
    lengths: Lengths,
    /// Whether it may call numbers integers.
    names_integers: bool,
    /// The same schema, if it is plain.
    plain: Option<Plain>,
}

/// A schema that has been examined but not compiled.
#[derive(Debug)]
pub struct Plan {
    text: Box<RawValue>,
    value: Value,
    parts: usize,
    bytes: usize,
    lengths: Lengths,
}

impl Plan {
    /// Examines a schema. `object_root`: whether the schema must describe an object, as schemas of arguments must.
    pub fn of(text: &str, object_root: bool) -> Result<Self, String> {
        if text.len() > MAX_BYTES {
            return Err(format!("the schema has {} bytes, more than {MAX_BYTES}", text.len()));
        }
        if depth(text) > MAX_DEPTH {
            return Err(format!("the schema is nested more than {MAX_DEPTH} levels deep"));
        }
        let mut value: Value =
            serde_json::from_str(text).map_err(|error| format!("the schema is not JSON: {error}"))?;
        dialect::check_root(&value, object_root)?;
        value.get("$schema").map_or(Ok(()), dialect::check)?;
        let cost = Cost::of(&value)?;
        let mut bytes = usize::try_from(cost.bytes).unwrap_or(usize::MAX).saturating_add(20 * text.len());
        let (mut slowest, mut of_names) = (0, 0_usize);
        for pattern in &cost.patterns {
            budget::look_at_clock();
            let (size, pace) = class_of(pattern)?;
            bytes = bytes.saturating_add(3 * size + 400 * pattern.len() + 2 * PATTERN_CACHE_BYTES);
            slowest = slowest.max(pace);
            if cost.name_patterns.contains(pattern) {
                of_names += pace;
            }
        }
        let lengths = Lengths {
            text: MAX_MATCH_NS.checked_div(slowest).unwrap_or(usize::MAX),
            name: MAX_MATCH_NS.checked_div(of_names).unwrap_or(usize::MAX),
        };
        let (parts, has_inner_dialect) = (cost.parts(), cost.has_inner_dialect);
        if has_inner_dialect {
            dialect::take_inner(&mut value);
        }
        let text = RawValue::from_string(text.to_owned()).map_err(|error| error.to_string())?;
        Ok(Self { text, value, parts, bytes, lengths })
    }

    /// Returns the maximum memory of the compiled schema.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn compile(self) -> Result<Schema, String> {
        let most = PATTERN_KINDS.last().map_or(0, |(size, _)| *size);
        let validator = build(&self.value, most).map_err(|error| format!("the schema is not valid: {error}"))?;
        let names_integers = self.text.get().contains("\"integer\"");
        let Self { text, value, parts, lengths, .. } = self;
        let plain = Plain::of(&value);
        Ok(Schema { text, validator: Arc::new(validator), parts, lengths, names_integers, plain })
    }
}

fn build(schema: &Value, pattern_bytes: usize) -> Result<Validator<Metered>, String> {
    jsonschema::options_for::<Metered>()
        .offline()
        .with_pattern_options(PatternOptions::regex().size_limit(pattern_bytes).dfa_size_limit(PATTERN_CACHE_BYTES))
        .should_validate_formats(false)
        .build(schema)
        .map_err(|error| clip(&error.to_string()))
}

/// Returns the class of a pattern, which is found by compiling it.
fn class_of(pattern: &str) -> Result<(usize, usize), String> {
    let schema = json!({ "pattern": pattern });
    let mut problem = String::new();
    for (size, pace) in PATTERN_KINDS {
        match build(&schema, size) {
            Ok(_) => return Ok((size, pace)),
            Err(error) => problem = error,
        }
    }
    Err(format!("the schema is not valid: {problem}"))
}

impl Schema {
    /// Takes a schema that wharf cannot check with as it is: every value fits it. Clients read it, so it must not lead outside.
    pub fn unchecked(text: &str, object_root: bool) -> Result<Self, String> {
        if text.len() > MAX_UNCHECKED_BYTES {
            return Err(format!("the schema has {} bytes, more than {MAX_UNCHECKED_BYTES}", text.len()));
        }
        if depth(text) > MAX_UNCHECKED_DEPTH {
            return Err(format!("the schema is nested more than {MAX_UNCHECKED_DEPTH} levels deep"));
        }
        let value = serde_json::from_str(text).map_err(|error| format!("the schema is not JSON: {error}"))?;
        dialect::check_root(&value, object_root)?;
        dialect::check_shape(&value)?;
        dialect::check_references(&value, true)?;
        let text = RawValue::from_string(text.to_owned()).map_err(|error| error.to_string())?;
        let validator = Arc::new(build(&Value::Bool(true), 0)?);
        Ok(Self { text, validator, parts: 0, lengths: Lengths::ANY, names_integers: false, plain: None })
    }

    /// Examines and compiles a small schema, such as that of a form, on this thread.
    pub fn small(text: &str) -> Result<Self, String> {
        let compiled = budget::here(Lengths::ANY, || {
            let plan = Plan::of(text, true)?;
            if plan.bytes() > MAX_SMALL_BYTES {
                return Err("the schema is too large to be checked during a call".into());
            }
            plan.compile()
        });
        compiled.unwrap_or_else(|exhausted| Err(exhausted.to_string()))
    }

    /// Whether the text is certain to be valid as it is, and to have no object with a name twice. This parses the text but stores nothing of
    /// it. `false`: [`Schema::check_within`] decides.
    pub fn fits(&self, text: &str) -> bool {
        self.plain.as_ref().is_some_and(|plain| plain.fits(text))
    }

    /// Checks a value of `bytes` bytes. Removes nulls for optional members if that makes the value valid, and writes whole numbers as
    /// integers where the schema says so. A check that takes long or goes deep runs on a checking thread, within `limit`. It waits for a
    /// place of `turns`, so that a plugin with a costly schema and large values delays only itself.
    pub async fn check_within(
        &self,
        value: Value,
        bytes: usize,
        limit: Duration,
        (turns, party): (&Arc<Places>, Party),
    ) -> Result<Fits, Misfit> {
        if bytes.saturating_mul(self.parts) <= MAX_WORK_HERE {
            match budget::here(self.lengths, || check(&self.validator, &self.text, &value)) {
                Ok(Ok(())) if !self.may_rewrite(&value) => return Ok(Fits { value, rewritten: false }),
                Ok(Err(problem)) if !has_null(&value) && !self.may_rewrite(&value) => return Err(problem),
                // The check exceeds the small budget, or the value may have to be rewritten.
                _ => {}
            }
        }
        let (validator, text) = (Arc::clone(&self.validator), self.text.clone());
        let waited = Some(std::time::Instant::now() + limit);
        let work = async {
            let place = turns.wait(party).await;
            budget::run(limit, waited, self.lengths, move || {
                let checked = check_rewritten(&validator, &text, value);
                // The place is held until the thread is free again, even if the caller has stopped waiting.
                drop(place);
                checked
            })
            .await
        };
        let late = || format!("checking it against the schema takes longer than {} ms", limit.as_millis());
        match tokio::time::timeout(limit, work).await {
            Ok(Ok(checked)) => checked,
            Ok(Err(Exhausted::Time)) | Err(_) => Err(late().into()),
            Ok(Err(exhausted)) => Err(exhausted.to_string().into()),
        }
    }

    /// Whether the value may contain integers that are not written as such.
    fn may_rewrite(&self, value: &Value) -> bool {
        self.names_integers && integers::has_some(value)
    }

    /// Checks a small value on the current thread. The error describes for a model what is wrong.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        let checked = budget::here(self.lengths, || check(&self.validator, &self.text, value));
        checked.map_or_else(|exhausted| Err(exhausted.to_string()), |checked| checked.map_err(|misfit| misfit.text))
    }
}

/// Why a value is not valid for a schema.
#[derive(Debug)]
pub struct Misfit {
    /// The place of the first problem, as a JSON Pointer; `None` if it is not known.
    pub pointer: Option<String>,
    /// What is wrong, for a model.
    pub text: String,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<String> for Misfit {
    fn from(text: String) -> Self {
        Self { pointer: None, text }
    }
}

/// A value that is valid for a schema.
#[derive(Debug)]
pub struct Fits {
    pub value: Value,
    /// Whether it differs from the value that was given: nulls for optional members were removed, or integers written as such.
    pub rewritten: bool,
}

/// Checks a value as it is and, if it is not valid, without the nulls for optional members. In both cases, integers are written as such:
/// the oldest dialect does not accept others.
fn check_rewritten(validator: &Validator<Metered>, text: &RawValue, mut value: Value) -> Result<Fits, Misfit> {
    let problem = check(validator, text, &value).err();
    if (problem.is_none() || !has_null(&value)) && !integers::has_some(&value) {
        return problem.map_or(Ok(Fits { value, rewritten: false }), Err);
    }
    let Ok(schema) = serde_json::from_str(text.get()) else {
        return problem.map_or(Ok(Fits { value, rewritten: false }), Err);
    };
    let mut rewritten = integers::rewrite(&schema, &mut value);
    if let Some(problem) = problem {
        rewritten |= nulls::take_out(&schema, &mut value);
        if !rewritten || check(validator, text, &value).is_err() {
            return Err(problem);
        }
    }
    Ok(Fits { value, rewritten })
}

/// Checks a value. `text` is the schema, which is needed only to describe what is wrong.
fn check(validator: &Validator<Metered>, text: &RawValue, value: &Value) -> Result<(), Misfit> {
    if validator.is_valid(At(value)) {
        return Ok(());
    }
    let describe = |error: &jsonschema::ValidationError| {
        let (pointer, problem) = (error.instance_path().to_string(), clip(&error.to_string()));
        let problem = match meant(text, error) {
            Some((unknown, meant)) => format!("{problem}; did you mean `{meant}` by `{}`?", clip(unknown)),
            None => problem,
        };
        let text = if pointer.is_empty() { problem } else { format!("at {}: {problem}", clip(&pointer)) };
        (pointer, text)
    };
    let some = || {
        let errors = validator.iter_errors(At(value)).take(MAX_PROBLEMS);
        errors.map(|error| describe(&error)).collect::<Vec<_>>()
    };
    let first = || validator.validate(At(value)).err().iter().map(describe).collect::<Vec<_>>();
    // Finding out why a value is not valid can take far longer than finding out that it is not, so these searches have smaller budgets.
    let problems = budget::part(MAX_PROBLEM_STEPS, MAX_EXAMINED_PROBLEMS, some)
        .or_else(|_| budget::part(MAX_PROBLEM_STEPS, MAX_EXAMINED_PROBLEMS, first))
        .unwrap_or_default();
    let (mut pointers, texts): (Vec<String>, Vec<String>) = problems.into_iter().unzip();
    let text = if texts.is_empty() { "it does not fit the schema".to_owned() } else { texts.join("; ") };
    Err(Misfit { pointer: pointers.drain(..).next(), text })
}

/// Returns an unknown member, and the known one that was probably meant, if that is the problem.
fn meant<'a>(text: &RawValue, error: &'a jsonschema::ValidationError) -> Option<(&'a str, String)> {
    let ValidationErrorKind::AdditionalProperties { unexpected } = error.kind() else { return None };
    let path = error.schema_path().to_string();
    let schema: Value = serde_json::from_str(text.get()).ok()?;
    let properties = schema.pointer(path.strip_suffix("/additionalProperties")?)?.get("properties")?.as_object()?;
    unexpected.iter().take(MAX_PROBLEMS).find_map(|unknown| {
        // Finding the nearest name takes as many steps as the product of both lengths.
        budget::pay(properties.keys().map(|name| (name.len() * unknown.len()) as u64 / 16).sum());
        let meant = nearest(properties.keys().map(String::as_str), unknown)?.to_owned();
        Some((unknown.as_str(), meant))
    })
}

/// Returns the maximum nesting depth of arrays and objects in a JSON text, without parsing it into a tree.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn compile(text: &str, object_root: bool) -> Result<Schema, String> {
        Plan::of(text, object_root)?.compile()
    }

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
            (r#"{"type":"object","properties":7}"#, "must be an object of schemas"),
            (r#"{"type":"object","minLength":"x"}"#, "not valid"),
            (r#"{"type":"object","$ref":"https://example.com/x"}"#, "leads outside"),
            (r#"{"type":"object","$ref":"other.json"}"#, "leads outside"),
            (r##"{"type":"object","$ref":"#/nowhere"}"##, "does not exist"),
            (r#"{"type":"object","$schema":"https://example.com/mine"}"#, "dialect"),
            (r#"{"type":"object","properties":{"a":{"$schema":"urn:x"}}}"#, "dialect"),
            (r#"{"type":"object","properties":{"a":{"pattern":"(?=x)"}}}"#, "regex"),
            (r#"{"type":"object","properties":{"a":{"pattern":"(a{1000}){1000}"}}}"#, "regex"),
            (r##"{"type":"object","$ref":"#"}"##, "endless cycle"),
            (r##"{"type":"object","not":{"allOf":[{"$ref":"#"}]}}"##, "endless cycle"),
            (
                r##"{"type":"object","$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}"##,
                "endless cycle",
            ),
            (r##"{"type":"object","properties":{"a":{"$ref":"#/default"}},"default":{}}"##, "does not exist"),
            (r##"{"type":"object","properties":{"a":{"$id":"http://x/","$ref":"#"}}}"##, "`$id`"),
            (&deep, "nested"),
            (&large, "bytes"),
            (&doubling, "apply to the same value"),
        ] {
            let error = compile(text, true).unwrap_err();
            assert!(error.contains(expected), "{}: {error}", clip(text));
        }
    }

    #[test]
    fn exponential_patterns_take_no_time() {
        let schema = compile(r#"{"type":"object","properties":{"a":{"pattern":"^(a+)+$"}}}"#, true).unwrap();
        let value = serde_json::json!({ "a": format!("{}!", "a".repeat(100_000)) });
        let started = std::time::Instant::now();
        assert!(schema.check(&value).is_err());
        assert!(started.elapsed().as_secs() < 2);
    }

    /// Returns a schema whose definitions consist of `nots` nested `not`s each. Each definition refers to the next, and the last one
    /// applies the first to the items of the value.
    fn winding(definitions: usize, nots: usize) -> String {
        let chain = |at: usize| {
            let next = if at + 1 < definitions {
                format!(r##"{{"$ref":"#/$defs/d{}"}}"##, at + 1)
            } else {
                r##"{"items":{"$ref":"#/$defs/d0"}}"##.to_owned()
            };
            format!(r#""d{at}":{}{next}{}"#, r#"{"not":"#.repeat(nots), "}".repeat(nots))
        };
        let all: Vec<String> = (0..definitions).map(chain).collect();
        format!(r##"{{"type":"object","properties":{{"v":{{"$ref":"#/$defs/d0"}}}},"$defs":{{{}}}}}"##, all.join(","))
    }

    fn nested(levels: usize) -> Value {
        let text = format!(r#"{{"v":{}{}}}"#, "[".repeat(levels), "]".repeat(levels));
        serde_json::from_str(&text).unwrap()
    }

    #[tokio::test]
    async fn no_schema_and_value_overflow_the_stack() {
        let turns = (&Places::new(&CHECKS, 1), Party::SOLE);
        let limit = Duration::from_secs(10);
        let error = compile(&winding(20, 26), true).unwrap_err();
        assert!(error.contains("nested more than 100 deep"), "{error}");
        // The deepest schema that is accepted, with the deepest value that can be parsed.
        let schema = compile(&winding(3, 26), true).unwrap();
        let checked = schema.check_within(nested(120), usize::MAX, limit, turns).await;
        assert!(checked.is_ok() || checked.as_ref().is_err_and(|why| !why.text.is_empty()));
        assert!(schema.check(&nested(120)).is_err(), "not where it is");
    }

    #[tokio::test]
    async fn what_would_take_for_ever_is_ended() {
        let parts = vec![r#"{"type":"integer"}"#; 1000].join(",");
        let schema =
            compile(&format!(r#"{{"type":"object","properties":{{"a":{{"items":{{"allOf":[{parts}]}}}}}}}}"#), true);
        let schema = schema.unwrap();
        let value = serde_json::json!({ "a": vec![7; 200_000] });
        let turns = (&Places::new(&CHECKS, 1), Party::SOLE);
        // Using up all steps of the budget takes longer than this on any machine.
        let limit = Duration::from_millis(1);
        let error = schema.check_within(value.clone(), 400_000, limit, turns).await.unwrap_err();
        assert!(error.text.contains("longer than 1 ms"), "{error}");
        let again = schema.check_within(value, 400_000, Duration::from_secs(60), turns).await.unwrap_err();
        assert!(again.text.contains("too many steps"), "the thread is free again, and {again}");
    }

    #[test]
    fn patterns_pay_for_what_they_take() {
        let plan = |pattern: &str| {
            let schema = serde_json::json!({ "type": "object", "properties": { "a": { "pattern": pattern } } });
            Plan::of(&schema.to_string(), true)
        };
        let (small, large) = (plan("^[a-z]+$").unwrap(), plan(r"\w{40}x{500}").unwrap());
        assert!(small.bytes() < 256 << 10 && large.bytes() > small.bytes(), "{} {}", small.bytes(), large.bytes());
        assert!(small.lengths.text > 200_000 && large.lengths.text < small.lengths.text);
        assert_eq!(small.lengths.name, usize::MAX);
        let named = |count: usize| {
            let all: serde_json::Map<String, Value> =
                (0..count).map(|at| (format!(r"\w{{8}}{at}"), Value::Bool(true))).collect();
            Plan::of(&serde_json::json!({ "type": "object", "patternProperties": all }).to_string(), true)
        };
        assert!(named(100).unwrap().lengths.name < 3_000);
        assert!(named(257).unwrap_err().contains("more than 256 patterns"));
        assert!(plan(&"x".repeat(1025)).unwrap_err().contains("bytes"));
    }

    /// Small schemas like these once took seconds or hundreds of megabytes to compile.
    #[test]
    fn what_multiplies_is_refused_before_it_is_compiled() {
        let refs = |target: &str, count: usize| vec![format!(r#"{{"$ref":"{target}"}}"#); count].join(",");
        let fan = format!(
            r##"{{"type":"object","oneOf":[{0}],"$defs":{{"r":{{"allOf":[{1}]}}}}}}"##,
            refs("#/$defs/r", 3),
            refs("#/$defs/r", 8)
        );
        let unevaluated: Vec<String> = (0..50)
            .map(|at| {
                format!(
                    r##""d{at}":{{"unevaluatedProperties":{{"unevaluatedProperties":false,"$ref":"#/$defs/d{0}"}},"$ref":"#/$defs/d{0}"}}"##,
                    at + 1
                )
            })
            .collect();
        let unevaluated =
            format!(r##"{{"type":"object","$ref":"#/$defs/d0","$defs":{{{},"d50":true}}}}"##, unevaluated.join(","));
        let long = format!(r#"{{"type":"object","properties":{{"{}":true}}}}"#, "x".repeat(32_000));
        for text in [&fan, &unevaluated, &long] {
            let began = std::time::Instant::now();
            assert!(compile(text, true).is_err(), "{}", clip(text));
            assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
        }
    }

    #[tokio::test]
    async fn unique_items_cannot_be_made_to_collide() {
        let schema = compile(r#"{"type":"object","properties":{"a":{"uniqueItems":true}}}"#, true).unwrap();
        let nested = |at: usize| (0..at % 50).fold(Value::from(at), |value, _| Value::from(vec![value]));
        let value = serde_json::json!({ "a": (0..20_000).map(nested).collect::<Vec<_>>() });
        let (turns, began) = ((&Places::new(&CHECKS, 1), Party::SOLE), std::time::Instant::now());
        let checked = schema.check_within(value, usize::MAX, Duration::from_secs(20), turns).await;
        assert!(checked.is_ok() && began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    }

    #[test]
    fn ordinary_patterns_compile() {
        for pattern in [
            r"^[\w.+-]+@[\w-]+\.[\w.-]+$",
            "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$",
            r"^\p{L}+$",
            r"^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-[0-9A-Za-z-]+)?$",
            r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$",
        ] {
            let schema = serde_json::json!({ "type": "object", "properties": { "a": { "pattern": pattern } } });
            compile(&schema.to_string(), true).unwrap_or_else(|error| panic!("{pattern}: {error}"));
        }
    }

    #[test]
    fn problems_are_named() {
        let schema =
            compile(r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#, true).unwrap();
        assert_eq!(schema.check(&serde_json::json!({ "n": 1 })), Ok(()));
        assert!(schema.check(&serde_json::json!({})).unwrap_err().contains("\"n\" is a required property"));
        assert!(schema.check(&serde_json::json!({ "n": "x" })).unwrap_err().starts_with("at /n:"));
        let strict = r##"{"type":"object","properties":{"maxResults":{},"in":{"$ref":"#/$defs/in"}},"additionalProperties":false,
                          "$defs":{"in":{"properties":{"offset":{}},"additionalProperties":false}}}"##;
        let strict = compile(strict, true).unwrap();
        for (value, said) in [
            (serde_json::json!({ "max_results": 1 }), "did you mean `maxResults` by `max_results`?"),
            (serde_json::json!({ "in": { "ofset": 1 } }), "did you mean `offset` by `ofset`?"),
        ] {
            let problem = strict.check(&value).unwrap_err();
            assert!(problem.contains(said), "{problem}");
        }
        assert!(!strict.check(&serde_json::json!({ "else": 1 })).unwrap_err().contains("did you mean"));
    }

    #[tokio::test]
    async fn integers_and_nulls_are_rewritten_together() {
        let turns = (&Places::new(&CHECKS, 1), Party::SOLE);
        let properties = r#""properties":{"n":{"type":"integer"},"m":{"type":"integer"}}"#;
        for dialect in ["", r#""$schema":"http://json-schema.org/draft-04/schema#","#] {
            let schema = compile(&format!(r#"{{"type":"object",{dialect}{properties}}}"#), true).unwrap();
            let limit = Duration::from_secs(10);
            for (value, expected) in [
                (serde_json::json!({ "n": 1.0 }), Some(r#"{"n":1}"#)),
                (serde_json::json!({ "n": 1.0, "m": null }), Some(r#"{"n":1}"#)),
                (serde_json::json!({ "n": 1, "x": 1.0 }), Some(r#"{"n":1,"x":1.0}"#)),
                (serde_json::json!({ "n": 1.5 }), None),
            ] {
                let fits = schema.check_within(value.clone(), 100, limit, turns).await.ok();
                let expected = expected
                    .map(|text| (text.to_owned(), serde_json::from_str::<serde_json::Value>(text).unwrap() != value));
                assert_eq!(fits.map(|fits| (fits.value.to_string(), fits.rewritten)), expected, "{dialect} {value}");
            }
        }
    }

    #[test]
    fn recursion_works_without_details() {
        let tree =
            r##"{"type":"object","properties":{"l":{"$ref":"#"},"r":{"$ref":"#"}},"additionalProperties":false}"##;
        let schema = compile(tree, true).unwrap();
        let mut value = serde_json::json!({});
        for _ in 0..60 {
            value = serde_json::json!({ "l": value });
        }
        assert_eq!(schema.check(&value), Ok(()));
        assert!(schema.check(&serde_json::json!({ "l": { "x": 1 } })).is_err());
    }
}
