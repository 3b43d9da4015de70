//! Parses the arguments of a tool. A misspelt name of an argument is an error: a model that writes `dry_run` for an optional `dryRun` must
//! not cause what it wanted to try. Other arguments that the tool does not have are ignored, as the schema allows: some clients add their
//! own to each call, such as `toolCallId`.

use std::fmt;

use serde::{
    Deserializer,
    de::{DeserializeOwned, DeserializeSeed, Error, IntoDeserializer, MapAccess, SeqAccess, Visitor},
    forward_to_deserialize_any,
};

/// The maximum number of changes that make one name of another if the other is probably meant. Of a short name, at most one letter in three
/// changes.
const MAX_DISTANCE: usize = 3;
/// The maximum length of a name that is compared with others.
const MAX_NAME: usize = 64;

/// Parses the arguments. The error says what is wrong with them.
pub fn parse<T: DeserializeOwned>(json: &str) -> Result<T, String> {
    let mut text = serde_json::Deserializer::from_str(json);
    let parsed = T::deserialize(Known(&mut text)).and_then(|parsed| text.end().map(|()| parsed));
    parsed.map_err(|error| {
        let message = error.to_string();
        // Models write the arguments as a single line, so its number would not help them.
        message.rsplit_once(" at line ").map_or(&*message, |(message, _)| message).to_owned()
    })
}

/// A deserializer that refuses misspelt fields of a struct. Types that accept any member, such as maps and structs with
/// `#[serde(flatten)]`, are not deserialized as structs, so they still accept any.
struct Known<D>(D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Known<D> {
    type Error = D::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_struct(name, fields, Fields { fields, visitor })
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_option(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_newtype_struct(name, visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_enum(name, variants, visitor)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_unit_struct(name, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit seq tuple tuple_struct map identifier
        ignored_any
    }
}

/// The visitor of a struct, or the members that it visits.
struct Fields<V> {
    fields: &'static [&'static str],
    visitor: V,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Fields<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_map(Fields { fields: self.fields, visitor: map })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_seq(seq)
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Fields<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        let Some(name) = self.visitor.next_key::<String>()? else { return Ok(None) };
        if !self.fields.contains(&name.as_str())
            && let Some(meant) = nearest(&name, self.fields)
        {
            return Err(A::Error::custom(format!("there is no argument `{name}`; did you mean `{meant}`?")));
        }
        seed.deserialize(name.into_deserializer()).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.visitor.next_value_seed(seed)
    }
}

/// Returns the known name that was probably meant, if there is a similar one.
fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    if name.len() > MAX_NAME {
        return None;
    }
    let name = plain(name);
    let most = (name.len() / 3).min(MAX_DISTANCE);
    let distances = known.iter().map(|other| (distance(&name, &plain(other)), *other));
    distances.filter(|(distance, _)| *distance <= most).min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// Returns a name in a form in which different styles, such as `max_results` and `maxResults`, are equal.
fn plain(name: &str) -> Vec<char> {
    name.chars().filter(|char| !matches!(char, '_' | '-')).flat_map(char::to_lowercase).collect()
}

/// Returns how many insertions, deletions and replacements of characters make one name of the other.
fn distance(one: &[char], other: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, char) in one.iter().enumerate() {
        let mut next = vec![at + 1];
        for ([diagonal, above], letter) in row.array_windows().zip(other) {
            let left = next.last().copied().unwrap_or_default();
            next.push((diagonal + usize::from(char != letter)).min(above + 1).min(left + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "camelCase")]
    struct Search {
        #[serde(alias = "dir")]
        path: String,
        max_results: Option<u32>,
        #[serde(default)]
        inner: Option<Inner>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Inner {
        a: u32,
    }

    #[derive(Debug, Deserialize)]
    struct Open {
        path: String,
        #[serde(flatten)]
        rest: BTreeMap<String, u32>,
    }

    #[test]
    fn unknown_arguments_are_named_with_what_was_meant() {
        let said = |json: &str| parse::<Search>(json).unwrap_err();
        for name in ["max_results", "MaxResults", "maxresult", "max-results", "mxaResults"] {
            let said = said(&format!(r#"{{"path":"x","{name}":1}}"#));
            assert_eq!(said, format!("there is no argument `{name}`; did you mean `maxResults`?"));
        }
        assert_eq!(said("{}"), "missing field `path`");
        assert_eq!(said(r#"{"path":1}"#), "invalid type: integer `1`, expected a string");
        assert!(said(r#"{"path":"x"} x"#).starts_with("trailing characters"));
    }

    #[test]
    fn what_clients_add_is_ignored() {
        let plain = parse::<Search>(r#"{"path":"x"}"#).unwrap();
        for added in ["toolCallId", "sessionId", "action", "chatInput", "tool", "_meta", "", &"x".repeat(1000)] {
            let parsed = parse::<Search>(&format!(r#"{{"{added}":[{{"path":1}}],"path":"x","{added}":null}}"#));
            assert_eq!(parsed.as_ref(), Ok(&plain), "{added}");
        }
    }

    #[test]
    fn what_accepts_anything_still_does() {
        let found = parse::<Search>(r#"{"dir":"x","maxResults":2,"inner":{"a":1,"b":2}}"#).unwrap();
        assert_eq!(found, Search { path: "x".into(), max_results: Some(2), inner: Some(Inner { a: 1 }) });
        let open = parse::<Open>(r#"{"path":"x","more":2}"#).unwrap();
        assert_eq!((open.path.as_str(), open.rest.get("more")), ("x", Some(&2)));
        assert_eq!(
            parse::<serde_json::Value>(r#"{"a":[1,"b",null]}"#).unwrap(),
            serde_json::json!({ "a": [1, "b", null] })
        );
        assert_eq!(parse::<Option<u32>>("null"), Ok(None));
    }
}
