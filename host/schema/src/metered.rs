//! Metered JSON values for the validator: each read of a value consumes steps of the budget (see `budget`). Whatever a schema does, it must
//! read the value, so the budget can stop the validator at any point.
//!
//! The check for unique items is implemented here too, because the validator's own is slow on hostile values. It uses hashes with a random
//! key, so that collisions cannot be constructed.

use std::{
    borrow::Cow,
    collections::HashMap,
    hash::{BuildHasher, Hasher, RandomState},
};

use jsonschema::{
    JsonType,
    json::{Array, Json, Node, NodeIdentity, Object, cmp},
};
use serde_json::{Map, Number, Value};

use super::budget::{pay, pay_error, pay_name, pay_text};

/// The JSON implementation for the validator: the values of `serde_json`, with metered reads.
pub struct Metered;

/// A metered value.
#[derive(Clone, Copy)]
pub struct At<'a>(pub &'a Value);

#[derive(Clone, Copy)]
pub struct Members<'a>(&'a Map<String, Value>);

#[derive(Clone, Copy)]
pub struct Elements<'a>(&'a [Value]);

pub struct MemberIter<'a>(serde_json::map::Iter<'a>);

pub struct ElementIter<'a>(std::slice::Iter<'a, Value>);

impl Json for Metered {
    type Node<'a> = At<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut Value, string: &str, work: impl FnOnce(At<'_>) -> T) -> T {
        pay(1);
        if let Value::String(before) = buffer {
            before.clear();
            before.push_str(string);
        } else {
            *buffer = Value::String(string.to_owned());
        }
        work(At(buffer))
    }
}

impl<'a> Node<'a, Metered> for At<'a> {
    type Object = Members<'a>;
    type Array = Elements<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<Members<'a>> {
        pay(1);
        self.0.as_object().map(Members)
    }

    fn as_array(&self) -> Option<Elements<'a>> {
        pay(1);
        self.0.as_array().map(|all| Elements(all))
    }

    /// Pays for the whole text, because patterns read all of it, some of them a hundred times slower than a comparison.
    fn as_string(&self) -> Option<Cow<'a, str>> {
        let text = self.0.as_str()?;
        pay_text(text.len());
        Some(Cow::Borrowed(text))
    }

    fn as_number(&self) -> Option<&'a Number> {
        pay(1);
        self.0.as_number()
    }

    fn as_boolean(&self) -> Option<bool> {
        pay(1);
        self.0.as_bool()
    }

    fn is_null(&self) -> bool {
        pay(1);
        self.0.is_null()
    }

    fn is_number(&self) -> bool {
        pay(1);
        self.0.is_number()
    }

    fn is_string(&self) -> bool {
        pay(1);
        self.0.is_string()
    }

    fn json_type(&self) -> JsonType {
        pay(1);
        match self.0 {
            Value::Null => JsonType::Null,
            Value::Bool(_) => JsonType::Boolean,
            Value::Number(_) => JsonType::Number,
            Value::String(_) => JsonType::String,
            Value::Array(_) => JsonType::Array,
            Value::Object(_) => JsonType::Object,
        }
    }

    fn string_length(&self) -> Option<u64> {
        self.0.as_str().map(|text| {
            pay(1 + text.len() as u64 / 64);
            text.chars().count() as u64
        })
    }

    fn equals_value(&self, expected: &Value) -> bool {
        equal(self.0, expected)
    }

    /// The validator calls this only to construct an error.
    fn to_value(&self) -> Cow<'a, Value> {
        pay_error();
        Cow::Borrowed(self.0)
    }

    /// The validator calls this for every reference that may be recursive.
    fn identity(&self) -> Option<NodeIdentity> {
        pay(1);
        Some(NodeIdentity::new(std::ptr::from_ref(self.0).addr()))
    }
}

impl<'a> Object<'a, Metered> for Members<'a> {
    type Node = At<'a>;
    type MemberName = &'a str;
    type MembersIter = MemberIter<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &String) -> Option<At<'a>> {
        pay(1);
        self.0.get(key.as_str()).map(At)
    }

    fn members(&self) -> MemberIter<'a> {
        pay(1);
        MemberIter(self.0.iter())
    }
}

impl<'a> Iterator for MemberIter<'a> {
    type Item = (&'a str, At<'a>);

    /// Pays for the name, which the validator looks up in sets and matches against patterns.
    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.0.next()?;
        pay_name(name.len());
        Some((name.as_str(), At(value)))
    }
}

impl<'a> Array<'a, Metered> for Elements<'a> {
    type Node = At<'a>;
    type ElementsIter = ElementIter<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn elements(&self) -> ElementIter<'a> {
        pay(1);
        ElementIter(self.0.iter())
    }

    fn is_unique(&self) -> bool {
        let hasher = RandomState::new();
        let mut seen: HashMap<u64, Vec<&Value>> = HashMap::new();
        self.0.iter().all(|value| {
            let mut state = hasher.build_hasher();
            hash(value, &mut state);
            let alike = seen.entry(state.finish()).or_default();
            let new = !alike.iter().any(|other| equal(value, other));
            alike.push(value);
            new
        })
    }
}

impl<'a> Iterator for ElementIter<'a> {
    type Item = At<'a>;

    fn next(&mut self) -> Option<At<'a>> {
        pay(1);
        self.0.next().map(At)
    }
}

/// Whether two values are equal as defined by JSON Schema. Pays for the comparison.
fn equal(one: &Value, other: &Value) -> bool {
    pay(1);
    match (one, other) {
        (Value::String(one), Value::String(other)) => {
            pay(one.len().min(other.len()) as u64 / 64);
            one == other
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, one)| other.get(name).is_some_and(|other| equal(one, other)))
        }
        _ => cmp::equal(one, other),
    }
}

/// Hashes a value so that equal values have equal hashes, and values that differ only in nesting have different hashes.
fn hash(value: &Value, state: &mut impl Hasher) {
    pay(1);
    match value {
        Value::Null => state.write_u8(0),
        Value::Bool(flag) => state.write_u8(1 + u8::from(*flag)),
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or(f64::NAN);
            state.write_u8(3);
            // 0.0 and -0.0 are equal, but their bits differ.
            state.write_u64(if number == 0.0 { 0 } else { number.to_bits() });
        }
        Value::String(text) => {
            pay(text.len() as u64 / 64);
            state.write_u8(4);
            state.write(text.as_bytes());
            state.write_u8(0xff);
        }
        Value::Array(items) => {
            state.write_u8(5);
            state.write_usize(items.len());
            items.iter().for_each(|item| hash(item, state));
        }
        Value::Object(members) => {
            state.write_u8(6);
            state.write_usize(members.len());
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            for (name, member) in members {
                state.write(name.as_bytes());
                state.write_u8(0xff);
                hash(member, state);
            }
        }
    }
}
