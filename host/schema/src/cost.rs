//! Estimates the cost of a schema before it is compiled: the memory of the compiled schema, and the work to check one value with it.
//!
//! The estimate models how the `jsonschema` crate compiles: each subschema stores its path, each `not` stores a copy of the negated schema,
//! the target of references is compiled once more, and a subschema with `unevaluatedItems` or `unevaluatedProperties` is compiled again for
//! each way that leads to it. A schema in which these multiply is refused.

use std::collections::{BTreeSet, HashMap};

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use super::{budget::pay, dialect::check as check_dialect};
use wharf_base::text::clip;

/// The maximum number of subschemas that may apply to the same value, and the maximum depth to which those may be nested, references
/// included.
const MAX_IN_PLACE: u64 = 2_000;
const MAX_IN_PLACE_DEPTH: u32 = 100;
/// The maximum memory of a compiled schema.
const MAX_BYTES: u64 = 16 << 20;
/// The maximum length of a name or pattern. Each subschema below a name stores the name in its path.
const MAX_NAME_BYTES: usize = 1024;
const MAX_PATTERNS: usize = 256;

/// A subschema.
#[derive(Default)]
struct Part<'a> {
    /// The subschemas in it that apply to the same value, and those that apply to members or items of the value.
    same: Vec<usize>,
    inner: Vec<usize>,
    reference: Option<&'a str>,
    target: Option<usize>,
    bytes: u64,
    keywords: u64,
    /// The length of the path to the subschema.
    path: u64,
    /// Whether it has `unevaluatedItems` or `unevaluatedProperties`.
    unevaluated: bool,
}

/// The subschemas of a schema, and the estimated cost of the schema.
#[derive(Default)]
pub struct Cost<'a> {
    parts: Vec<Part<'a>>,
    /// The index of each subschema, by the address of its JSON value. A value that is not in this map is not a schema, so a reference must
    /// not lead to it.
    at: HashMap<usize, usize>,
    anchors: HashMap<&'a str, usize>,
    /// All patterns, and those among them that are matched against names.
    pub patterns: BTreeSet<&'a str>,
    pub name_patterns: BTreeSet<&'a str>,
    /// The estimated memory of the compiled schema, without its patterns.
    pub bytes: u64,
    /// Whether a subschema names its dialect.
    pub has_inner_dialect: bool,
}

fn text_bytes(value: &Value) -> u64 {
    value.to_string().len() as u64
}

fn address(value: &Value) -> usize {
    std::ptr::from_ref(value).addr()
}

fn too_large() -> String {
    format!("the compiled schema would use more than {} MiB", MAX_BYTES >> 20)
}

fn too_deep() -> String {
    format!("its references and subschemas are nested more than {MAX_IN_PLACE_DEPTH} deep")
}

impl<'a> Cost<'a> {
    /// Examines a schema. Refuses references that lead outside the schema or form a cycle, and schemas that are too large.
    pub fn of(root: &'a Value) -> Result<Self, String> {
        let mut cost = Self::default();
        cost.walk(root, 0, true)?;
        cost.resolve(root)?;
        let mut known = vec![None; cost.parts.len()];
        let mut sum = 0_u64;
        for at in 0..cost.parts.len() {
            sum = sum.saturating_add(cost.in_place(at, &mut known)?.0);
        }
        if sum > 100 * MAX_IN_PLACE {
            return Err("too many of its subschemas apply to the same values".into());
        }
        let mut bytes = cost.parts.iter().map(|part| weight(part, part.path)).fold(0, u64::saturating_add);
        // The target of references is compiled once more, in addition to its own place in the schema.
        let targets: BTreeSet<usize> = cost.parts.iter().filter_map(|part| part.target).collect();
        for target in targets {
            bytes = bytes.saturating_add(cost.within(target));
            if bytes > MAX_BYTES {
                return Err(too_large());
            }
        }
        if cost.parts.iter().any(|part| part.unevaluated) {
            let mut left = MAX_BYTES;
            cost.expand(0, 0, 1, &mut Vec::new(), &mut left)?;
            bytes = bytes.saturating_add(MAX_BYTES - left);
        }
        if bytes > MAX_BYTES {
            return Err(too_large());
        }
        cost.bytes = bytes;
        Ok(cost)
    }

    /// Returns the number of subschemas.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    fn walk(&mut self, value: &'a Value, path: u64, is_root: bool) -> Result<usize, String> {
        pay(1);
        let at = self.parts.len();
        self.parts.push(Part { path, ..Part::default() });
        self.at.insert(address(value), at);
        let members = match value {
            Value::Object(members) => members,
            Value::Bool(_) => return Ok(at),
            _ => return Err("a schema must be a JSON object or a boolean".into()),
        };
        let mut part = Part { path, keywords: members.len() as u64, ..Part::default() };
        for (key, member) in members {
            self.keyword(&mut part, at, key, member, is_root)?;
        }
        if let Some(place) = self.parts.get_mut(at) {
            *place = part;
        }
        Ok(at)
    }

    /// Examines a keyword. The keywords of all drafts are examined, including those that the schema's own draft does not define.
    fn keyword(
        &mut self,
        part: &mut Part<'a>,
        at: usize,
        key: &'a str,
        member: &'a Value,
        is_root: bool,
    ) -> Result<(), String> {
        let here = part.path + key.len() as u64 + 1;
        match key {
            "$ref" | "$dynamicRef" | "$recursiveRef" => {
                let target = member.as_str().ok_or("a `$ref` must be a string")?;
                part.bytes += 600 + 4 * target.len() as u64;
                if part.reference.replace(target).is_some_and(|other| other != target) {
                    return Err("a subschema has two different references".into());
                }
            }
            "$schema" if !is_root && member.is_string() => {
                check_dialect(member)?;
                self.has_inner_dialect = true;
            }
            "$id" | "id" if !is_root && member.is_string() => {
                return Err(format!("`{key}` is allowed only at the root of a schema; use `$defs` and `$ref`"));
            }
            "$anchor" | "$dynamicAnchor" => {
                let name = member.as_str().ok_or("an anchor must be a string")?;
                if self.anchors.insert(name, at).is_some_and(|other| other != at) {
                    return Err("an anchor is defined twice".into());
                }
            }
            "pattern" => {
                if let Some(pattern) = member.as_str() {
                    self.pattern(pattern, false)?;
                    part.bytes += 2 * pattern.len() as u64;
                }
            }
            "additionalProperties"
            | "additionalItems"
            | "contains"
            | "propertyNames"
            | "contentSchema"
            | "unevaluatedItems"
            | "unevaluatedProperties" => {
                part.unevaluated |= key.starts_with("unevaluated");
                part.inner.push(self.walk(member, here, false)?);
            }
            "not" | "if" | "then" | "else" => {
                if key == "not" {
                    part.bytes += 32 * text_bytes(member);
                }
                part.same.push(self.walk(member, here, false)?);
            }
            "items" if !member.is_array() => part.inner.push(self.walk(member, here, false)?),
            "allOf" | "anyOf" | "oneOf" | "prefixItems" | "items" => {
                for one in member.as_array().ok_or_else(|| format!("`{key}` must be an array of schemas"))? {
                    let number = self.walk(one, here + 4, false)?;
                    let in_place = !key.ends_with("tems");
                    if in_place { &mut part.same } else { &mut part.inner }.push(number);
                }
            }
            "properties" | "patternProperties" | "dependentSchemas" | "dependencies" | "$defs" | "definitions" => {
                let named = member.as_object().ok_or_else(|| format!("`{key}` must be an object of schemas"))?;
                self.named(part, key, here, named)?;
            }
            // Other keywords are stored as they are, once or twice.
            _ => part.bytes += 64 * text_bytes(member),
        }
        Ok(())
    }

    fn named(
        &mut self,
        part: &mut Part<'a>,
        key: &str,
        here: u64,
        named: &'a Map<String, Value>,
    ) -> Result<(), String> {
        for (name, member) in named {
            if name.len() > MAX_NAME_BYTES {
                return Err(format!("a name in it has more than {MAX_NAME_BYTES} bytes"));
            }
            if key == "dependencies" && member.is_array() {
                part.bytes += 32 * text_bytes(member);
                continue;
            }
            if key == "patternProperties" {
                self.pattern(name, true)?;
            }
            let number = self.walk(member, here + 1 + 2 * name.len() as u64, false)?;
            part.bytes += 200 + 4 * name.len() as u64;
            let in_place = key.starts_with("depend");
            if in_place { &mut part.same } else { &mut part.inner }.push(number);
        }
        Ok(())
    }

    fn pattern(&mut self, pattern: &'a str, of_names: bool) -> Result<(), String> {
        if pattern.len() > MAX_NAME_BYTES {
            return Err(format!("a pattern in it has more than {MAX_NAME_BYTES} bytes"));
        }
        self.patterns.insert(pattern);
        if of_names {
            self.name_patterns.insert(pattern);
        }
        if self.patterns.len() > MAX_PATTERNS {
            return Err(format!("the schema has more than {MAX_PATTERNS} patterns"));
        }
        Ok(())
    }

    /// Resolves each reference to its target, which must be a subschema of this schema.
    fn resolve(&mut self, root: &'a Value) -> Result<(), String> {
        let (at, anchors) = (&self.at, &self.anchors);
        for part in &mut self.parts {
            let Some(reference) = part.reference else { continue };
            let shown = clip(reference);
            let Some(fragment) = reference.strip_prefix('#') else {
                return Err(format!("`$ref` to {shown} leads outside the schema; put the definition into `$defs`"));
            };
            let fragment = percent_decode_str(fragment).decode_utf8_lossy();
            let target = if fragment.is_empty() || fragment.starts_with('/') {
                root.pointer(&fragment).and_then(|value| at.get(&address(value)))
            } else {
                anchors.get(&*fragment)
            };
            part.target = Some(*target.ok_or_else(|| format!("the target of `$ref` to {shown} does not exist"))?);
        }
        Ok(())
    }

    /// Returns the number of subschemas that apply to the same value as this one, and the depth to which they are nested. Refuses cycles.
    fn in_place(&self, at: usize, known: &mut Vec<Option<(u64, u32)>>) -> Result<(u64, u32), String> {
        pay(1);
        match known.get(at).copied().flatten() {
            Some((0, _)) => return Err("a `$ref` leads back to itself in an endless cycle".into()),
            Some(found) => return Ok(found),
            None => {}
        }
        let Some(part) = self.parts.get(at) else { return Ok((0, 0)) };
        set(known, at, (0, 0));
        let (mut sum, mut deepest) = (1_u64, 0);
        for next in part.same.iter().chain(&part.target) {
            let (parts, depth) = self.in_place(*next, known)?;
            sum = sum.saturating_add(parts);
            deepest = deepest.max(depth);
        }
        if sum > MAX_IN_PLACE {
            return Err(format!("more than {MAX_IN_PLACE} of its subschemas apply to the same value"));
        }
        if deepest >= MAX_IN_PLACE_DEPTH {
            return Err(too_deep());
        }
        set(known, at, (sum, deepest + 1));
        Ok((sum, deepest + 1))
    }

    /// Returns the memory of a subschema, including all subschemas inside it.
    fn within(&self, at: usize) -> u64 {
        pay(1);
        let Some(part) = self.parts.get(at) else { return 0 };
        let inside = part.same.iter().chain(&part.inner).map(|next| self.within(*next));
        inside.fold(weight(part, part.path), u64::saturating_add)
    }

    /// Subtracts from `left` the memory of a subschema if it is compiled again for each way that leads to it, as subschemas with
    /// `unevaluatedItems` or `unevaluatedProperties` are.
    fn expand(&self, at: usize, path: u64, times: u64, open: &mut Vec<usize>, left: &mut u64) -> Result<(), String> {
        pay(1);
        let Some(part) = self.parts.get(at) else { return Ok(()) };
        let times = if part.unevaluated { times.saturating_mul(2) } else { times };
        let cost = weight(part, path).saturating_mul(times);
        *left = left.checked_sub(cost).ok_or_else(too_large)?;
        if open.len() > MAX_IN_PLACE_DEPTH as usize {
            return Err(too_deep());
        }
        for next in part.same.iter().chain(&part.inner) {
            let further = self.parts.get(*next).map_or(0, |next| next.path.saturating_sub(part.path));
            self.expand(*next, path + further, times, open, left)?;
        }
        if let Some(target) = part.target.filter(|target| !open.contains(target)) {
            open.push(target);
            self.expand(target, path, times, open, left)?;
            open.pop();
        }
        Ok(())
    }
}

fn set(known: &mut [Option<(u64, u32)>], at: usize, found: (u64, u32)) {
    if let Some(place) = known.get_mut(at) {
        *place = Some(found);
    }
}

/// Returns the estimated memory of one subschema with a path of this length.
fn weight(part: &Part, path: u64) -> u64 {
    // If the root has an id, each path is also stored as an absolute URI. That is charged in any case.
    let paths = (1 + 2 * part.keywords).saturating_mul(path + 16).saturating_mul(2);
    (part.bytes + 400 + 300 * part.keywords).saturating_add(paths)
}
