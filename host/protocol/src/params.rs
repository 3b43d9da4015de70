//! The parameters of each method, typed. Unknown members are ignored, wrong types are [`RpcError`]s that name the member.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error, IgnoredAny, MapAccess, SeqAccess, Visitor, value::MapDeserializer},
    forward_to_deserialize_any,
};
use serde_json::{Value, value::RawValue};

use crate::{Object, RpcError};

/// The members of `params`, each as it was written. The text is walked once; what a method needs is read from its members.
#[derive(Debug, Clone, Default)]
pub struct Params(Vec<(Box<str>, Box<RawValue>)>);

/// Reads `params` as `T`; absent parameters read like `{}`.
pub fn read<'a, T: Deserialize<'a>>(params: Option<&'a Params>) -> Result<T, RpcError> {
    static NONE: Params = Params(Vec::new());
    T::deserialize(params.unwrap_or(&NONE)).map_err(|error| RpcError::invalid_params(format!("`params`: {error}")))
}

impl Params {
    pub fn get(&self, key: &str) -> Option<&RawValue> {
        self.0.iter().find(|(name, _)| **name == *key).map(|(_, value)| &**value)
    }

    fn members(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }
}

/// Only the members that are asked for are looked into.
impl<'de> Deserializer<'de> for &'de Params {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_map(MapDeserializer::new(self.members()))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_map(MapDeserializer::new(self.members().filter(|(name, _)| fields.contains(name))))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// What stands as `params`.
pub(crate) enum Written {
    Members(Params),
    /// Anything but an object.
    Other,
}

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Walk;
        impl<'de> Visitor<'de> for Walk {
            type Value = Written;
            fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                formatter.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Written, A::Error> {
                let mut members = Vec::with_capacity(4);
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Written::Members(Params(members)))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Written, A::Error> {
                while items.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Written::Other)
            }
            fn visit_bool<E>(self, _: bool) -> Result<Written, E> {
                Ok(Written::Other)
            }
            fn visit_i64<E>(self, _: i64) -> Result<Written, E> {
                Ok(Written::Other)
            }
            fn visit_u64<E>(self, _: u64) -> Result<Written, E> {
                Ok(Written::Other)
            }
            fn visit_f64<E>(self, _: f64) -> Result<Written, E> {
                Ok(Written::Other)
            }
            fn visit_str<E>(self, _: &str) -> Result<Written, E> {
                Ok(Written::Other)
            }
        }
        deserializer.deserialize_any(Walk)
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Initialize {
    pub protocol_version: String,
    #[serde(default)]
    pub capabilities: Option<Box<RawValue>>,
    #[serde(default)]
    pub client_info: Option<Box<RawValue>>,
}

#[derive(Debug, Deserialize)]
pub struct List {
    pub cursor: Option<String>,
}

/// What a modern retry carries besides the original parameters.
#[derive(Debug, Clone, Default)]
pub struct Retry {
    /// The client's answers, by key.
    pub input_responses: Option<Object>,
    /// What the server gave it to carry.
    pub request_state: Option<String>,
}

/// Parameters that may be those of a retry.
macro_rules! retried {
    ($params:ty) => {
        impl $params {
            /// Takes out what makes it a retry.
            pub fn take_retry(&mut self) -> Retry {
                Retry { input_responses: self.input_responses.take(), request_state: self.request_state.take() }
            }
        }
    };
}

retried!(CallTool);
retried!(ReadResource);
retried!(GetPrompt);

/// Of `tools/call`. Its `arguments` are taken as they were written: see [`Params::get`].
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallTool {
    pub name: String,
    /// What a call of 2025-11-25 says of the task it wants to be; other revisions ignore it.
    #[serde(default, deserialize_with = "object_or_null")]
    pub task: Option<TaskTerms>,
    #[serde(default, deserialize_with = "object_if_present")]
    input_responses: Option<Object>,
    #[serde(default, deserialize_with = "string_if_present")]
    request_state: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct TaskTerms {
    /// Milliseconds; how long the client wants the task to be kept.
    pub ttl: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskId {
    pub task_id: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdateTask {
    pub task_id: String,
    pub input_responses: Object,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadResource {
    pub uri: String,
    #[serde(default, deserialize_with = "object_if_present")]
    input_responses: Option<Object>,
    #[serde(default, deserialize_with = "string_if_present")]
    request_state: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetPrompt {
    pub name: String,
    #[serde(default)]
    pub arguments: Option<BTreeMap<String, String>>,
    #[serde(default, deserialize_with = "object_if_present")]
    input_responses: Option<Object>,
    #[serde(default, deserialize_with = "string_if_present")]
    request_state: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct Complete {
    #[serde(rename = "ref", deserialize_with = "object")]
    pub reference: Reference,
    #[serde(deserialize_with = "object")]
    pub argument: CompleteArgument,
    #[serde(default, deserialize_with = "object_or_null")]
    pub context: Option<CompleteContext>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
pub enum Reference {
    #[serde(rename = "ref/prompt")]
    Prompt { name: String },
    #[serde(rename = "ref/resource")]
    Resource { uri: String },
}

#[derive(Debug, Deserialize)]
pub struct CompleteArgument {
    pub name: String,
    pub value: String,
}

#[derive(Debug, Default, Deserialize)]
pub struct CompleteContext {
    #[serde(default)]
    pub arguments: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Deserialize)]
pub struct SetLevel {
    pub level: String,
}

#[derive(Debug, Deserialize)]
pub struct Subscribe {
    pub uri: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cancelled {
    pub request_id: Box<RawValue>,
}

#[derive(Debug, Deserialize)]
pub struct Listen {
    #[serde(deserialize_with = "object")]
    pub notifications: ListenFilter,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListenFilter {
    pub tools_list_changed: Option<bool>,
    pub prompts_list_changed: Option<bool>,
    pub resources_list_changed: Option<bool>,
    pub resource_subscriptions: Option<Vec<String>>,
    /// Of the tasks extension.
    pub task_ids: Option<Vec<String>>,
}

/// The client's answer to `roots/list`.
#[derive(Debug, Clone, Deserialize)]
pub struct RootsResult {
    #[serde(deserialize_with = "objects")]
    pub roots: Vec<Root>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Root {
    pub uri: String,
    #[serde(default)]
    pub name: Option<String>,
}

/// Derived types would take an array for their members in order; MCP does not.
fn object<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<T, D::Error> {
    Object::deserialize(deserializer)
        .and_then(|object| serde_json::from_value(Value::Object(object)).map_err(D::Error::custom))
}

fn object_or_null<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Option<T>, D::Error> {
    let object = Option::<Object>::deserialize(deserializer)?;
    object.map(|object| serde_json::from_value(Value::Object(object)).map_err(D::Error::custom)).transpose()
}

fn objects<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Vec<T>, D::Error> {
    let objects = Vec::<Object>::deserialize(deserializer)?;
    objects.into_iter().map(|object| serde_json::from_value(Value::Object(object)).map_err(D::Error::custom)).collect()
}

fn object_if_present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Object>, D::Error> {
    Object::deserialize(deserializer).map(Some)
}

fn string_if_present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    String::deserialize(deserializer).map(Some)
}
