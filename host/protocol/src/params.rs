//! The parameters of each method, typed. Unknown members are ignored; a wrong type is an [`RpcError`] that names the member.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error, IgnoredAny, MapAccess, SeqAccess, Visitor, value::MapDeserializer},
    forward_to_deserialize_any,
};
use serde_json::{Value, value::RawValue};

use crate::{Object, RpcError};

/// The members of `params`, each as it was written. The text is walked through once, when the message is read; a method then
/// reads only the members that it needs.
#[derive(Debug, Clone, Default)]
pub struct Params(Vec<(Box<str>, Box<RawValue>)>);

/// Reads `params` as `T`; absent parameters are read like `{}`. The error is for the client and names the member that is wrong.
pub fn read<'a, T: Deserialize<'a>>(params: Option<&'a Params>) -> Result<T, RpcError> {
    static NONE: Params = Params(Vec::new());
    T::deserialize(params.unwrap_or(&NONE)).map_err(|error| RpcError::invalid_params(format!("`params`: {error}")))
}

impl Params {
    /// The member of this name, as it was written. If the member is given twice, this is the first of the two.
    pub fn get(&self, key: &str) -> Option<&RawValue> {
        self.0.iter().find(|(name, _)| **name == *key).map(|(_, value)| &**value)
    }

    fn members(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }
}

/// A struct reads only the members that it has fields for; the text of the others is not looked into.
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

/// The `params` of a message, before its method is known.
pub(crate) enum Written {
    Members(Params),
    /// Anything but an object; its contents are of no use.
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

/// The parameters of `initialize`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Initialize {
    /// The revision that the client offers, which wharf may not know.
    pub protocol_version: String,
    /// What the client can do, as it was written.
    #[serde(default)]
    pub capabilities: Option<Box<RawValue>>,
    /// What the client says of itself, as it was written.
    #[serde(default)]
    pub client_info: Option<Box<RawValue>>,
}

/// The parameters of all methods that ask for a list.
#[derive(Debug, Deserialize)]
pub struct List {
    /// Where the page begins, as the page before it said; `None` for the first.
    pub cursor: Option<String>,
}

/// What a modern request carries besides its own parameters when it is made again to answer the server's questions.
#[derive(Debug, Clone, Default)]
pub struct Retry {
    /// The answers to what the server asked, by the keys of its questions.
    pub input_responses: Option<Object>,
    /// What the server gave the client to bring back.
    pub request_state: Option<String>,
}

/// Gives `take_retry` to the parameters of a request that may be a retry.
macro_rules! retried {
    ($params:ty) => {
        impl $params {
            /// Takes out the members that only a retry has.
            pub fn take_retry(&mut self) -> Retry {
                Retry { input_responses: self.input_responses.take(), request_state: self.request_state.take() }
            }
        }
    };
}

retried!(CallTool);
retried!(ReadResource);
retried!(GetPrompt);

/// The parameters of `tools/call`, but for its `arguments`, which are taken as they were written: see [`Params::get`].
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallTool {
    /// The tool, the operator's prefix included.
    pub name: String,
    /// What a call of 2025-11-25 says of the task that it wants to become; other revisions ignore it.
    #[serde(default, deserialize_with = "object_or_null")]
    pub task: Option<TaskTerms>,
    #[serde(default, deserialize_with = "object_if_present")]
    input_responses: Option<Object>,
    #[serde(default, deserialize_with = "string_if_present")]
    request_state: Option<String>,
}

/// What a client wishes of the task that its call becomes.
#[derive(Debug, Deserialize)]
pub struct TaskTerms {
    /// Milliseconds for which the client wants the task to be kept.
    pub ttl: Option<u64>,
}

/// The parameters of all methods that only name a task.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskId {
    /// As the server gave it.
    pub task_id: String,
}

/// The parameters of `tasks/update`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdateTask {
    /// As the server gave it.
    pub task_id: String,
    /// The answers to what the task asked, by the keys of its questions.
    pub input_responses: Object,
}

/// The parameters of `resources/read`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadResource {
    /// Which resource.
    pub uri: String,
    #[serde(default, deserialize_with = "object_if_present")]
    input_responses: Option<Object>,
    #[serde(default, deserialize_with = "string_if_present")]
    request_state: Option<String>,
}

/// The parameters of `prompts/get`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetPrompt {
    /// The prompt, the operator's prefix included.
    pub name: String,
    /// What to fill in; MCP allows texts only.
    #[serde(default)]
    pub arguments: Option<BTreeMap<String, String>>,
    #[serde(default, deserialize_with = "object_if_present")]
    input_responses: Option<Object>,
    #[serde(default, deserialize_with = "string_if_present")]
    request_state: Option<String>,
}

/// The parameters of `completion/complete`.
#[derive(Debug, Deserialize)]
pub struct Complete {
    /// The prompt or the template whose argument it is.
    #[serde(rename = "ref", deserialize_with = "object")]
    pub reference: Reference,
    /// The argument that is being typed.
    #[serde(deserialize_with = "object")]
    pub argument: CompleteArgument,
    /// What has been chosen already.
    #[serde(default, deserialize_with = "object_or_null")]
    pub context: Option<CompleteContext>,
}

/// A prompt or a template of resources, whose arguments can be completed.
#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
pub enum Reference {
    /// A prompt.
    #[serde(rename = "ref/prompt")]
    Prompt {
        /// The prompt, the operator's prefix included.
        name: String,
    },
    /// A template of resources.
    #[serde(rename = "ref/resource")]
    Resource {
        /// The text of the template.
        uri: String,
    },
}

/// An argument while it is being typed.
#[derive(Debug, Deserialize)]
pub struct CompleteArgument {
    /// Its name, or that of a variable of the template.
    pub name: String,
    /// What has been typed so far.
    pub value: String,
}

/// What is known besides the argument that is being typed.
#[derive(Debug, Default, Deserialize)]
pub struct CompleteContext {
    /// The arguments that have been chosen already, by name.
    #[serde(default)]
    pub arguments: Option<BTreeMap<String, String>>,
}

/// The parameters of `logging/setLevel`.
#[derive(Debug, Deserialize)]
pub struct SetLevel {
    /// See [`Level::parse`](crate::Level::parse).
    pub level: String,
}

/// The parameters of `resources/subscribe` and `resources/unsubscribe`.
#[derive(Debug, Deserialize)]
pub struct Subscribe {
    /// Which resource.
    pub uri: String,
}

/// The parameters of `notifications/cancelled`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cancelled {
    /// The JSON of the id: see [`Id::from_raw`](crate::Id::from_raw).
    pub request_id: Box<RawValue>,
}

/// The parameters of `subscriptions/listen`.
#[derive(Debug, Deserialize)]
pub struct Listen {
    /// What the client wants to hear of.
    #[serde(deserialize_with = "object")]
    pub notifications: ListenFilter,
}

/// What a subscription is about. What is left out is not wanted.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListenFilter {
    /// Whether the list of tools changes.
    pub tools_list_changed: Option<bool>,
    /// Whether the list of prompts changes.
    pub prompts_list_changed: Option<bool>,
    /// Whether the list of resources or that of their templates changes.
    pub resources_list_changed: Option<bool>,
    /// The URIs of the resources whose contents are of interest.
    pub resource_subscriptions: Option<Vec<String>>,
    /// The tasks whose changes are of interest; part of the tasks extension.
    pub task_ids: Option<Vec<String>>,
}

/// The client's answer to `roots/list`.
#[derive(Debug, Clone, Deserialize)]
pub struct RootsResult {
    /// In the client's order.
    #[serde(deserialize_with = "objects")]
    pub roots: Vec<Root>,
}

/// A folder that the client opens to the server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Root {
    /// A `file:` URI; the caller checks that.
    pub uri: String,
    /// What a person calls it.
    #[serde(default)]
    pub name: Option<String>,
}

/// Reads a value that must be an object. Derived readers would also take an array that holds the members in order, and MCP does
/// not allow that.
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
