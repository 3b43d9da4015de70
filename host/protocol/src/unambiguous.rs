//! Parses JSON and refuses objects with duplicate names, because parsers differ in which of the two values they use: what a client writes and
//! what a person agrees to must mean the same to all who read it.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Number, Value};

use crate::object::Object;

/// A JSON value without duplicate names.
pub struct Unambiguous(pub Value);

impl<'de> Deserialize<'de> for Unambiguous {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Walk;
        impl<'de> Visitor<'de> for Walk {
            type Value = Value;
            fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                formatter.write_str("a JSON value")
            }
            fn visit_unit<E>(self) -> Result<Value, E> {
                Ok(Value::Null)
            }
            fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
                Ok(Value::Bool(value))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
                Ok(value.into())
            }
            fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
                Ok(value.into())
            }
            fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
                Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
            }
            fn visit_str<E>(self, value: &str) -> Result<Value, E> {
                Ok(value.into())
            }
            fn visit_string<E>(self, value: String) -> Result<Value, E> {
                Ok(value.into())
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
                let mut all = Vec::new();
                while let Some(Unambiguous(item)) = items.next_element()? {
                    all.push(item);
                }
                Ok(Value::Array(all))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
                let mut all = Object::new();
                while let Some((name, Unambiguous(value))) = members.next_entry::<String, Unambiguous>()? {
                    if all.contains_key(&name) {
                        return Err(A::Error::custom("an object contains a name twice"));
                    }
                    all.insert(name, value);
                }
                Ok(Value::Object(all))
            }
        }
        deserializer.deserialize_any(Walk).map(Unambiguous)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_once() {
        let read = |text: &str| serde_json::from_str::<Unambiguous>(text).map(|Unambiguous(value)| value);
        for text in [r#"{"a":1,"b":{"a":[null,true,-1,1.5,"x"]}}"#, "[]", "18446744073709551615", r#""x""#] {
            assert_eq!(read(text).unwrap(), serde_json::from_str::<Value>(text).unwrap());
        }
        for text in [r#"{"a":1,"a":1}"#, r#"{"a":[{"b":1,"b":2}]}"#, r#"{"a":1,"\u0061":2}"#] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.starts_with("an object contains a name twice"), "{text}: {error}");
        }
    }
}
