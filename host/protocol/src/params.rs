//! The parameters of each method, typed. Unknown members are ignored; a wrong type is an [`RpcError`] that names the member.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error, IgnoredAny, MapAccess, SeqAccess, Visitor, value::MapDeserializer},
    forward_to_deserialize_any,
};
use serde_json::{Value, value::RawValue};

use crate::{error::RpcError, object::Object, unambiguous::Unambiguous, written::Written};

/// The members of `params`, each as it was written. The text is scanned once, when the message is parsed; a method then parses only the
/// members that it needs.
#[derive(Debug, Clone, Default)]
pub struct Params(Vec<(Written, Written)>);

/// Deserializes `params` as `T`; absent parameters are treated like `{}`. The error is for the client and names the member that is wrong.
pub fn read<'a, T: Deserialize<'a>>(params: Option<&'a Params>) -> Result<T, RpcError> {
    static NONE: Params = Params(Vec::new());
    T::deserialize(params.unwrap_or(&NONE)).map_err(|error| RpcError::invalid_params(format!("`params`: {error}")))
}

impl Params {
    /// Returns the member with this name, as it was written.
    pub fn get(&self, key: &str) -> Option<&Written> {
        self.0.iter().find(|(name, _)| name.as_str() == key).map(|(_, value)| value)
    }

    /// Returns the members for which `wanted` returns true.
    fn members(&self, wanted: impl Fn(&str) -> bool) -> impl Iterator<Item = (&str, &RawValue)> {
        let wanted = self.0.iter().filter(move |(name, _)| wanted(name.as_str()));
        // All members were parsed with the message, so this does not fail.
        wanted.map(|(name, value)| (name.as_str(), serde_json::from_str(value.as_str()).unwrap_or(RawValue::NULL)))
    }
}

/// A struct parses only the members that it has fields for; the text of the others is not examined.
impl<'de> Deserializer<'de> for &'de Params {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_map(MapDeserializer::new(self.members(|_| true)))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_map(MapDeserializer::new(self.members(|name| fields.contains(&name))))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// The `params` of a message, before its method is known.
pub(crate) enum RawParams<'a> {
    Members(Vec<(Text<'a>, &'a RawValue)>),
    /// Anything but an object; its contents are ignored.
    Other,
}

impl RawParams<'_> {
    /// Returns the members, which are parts of `message`; `None` if it is not an object.
    pub(crate) fn of(self, message: &Written) -> Option<Params> {
        let Self::Members(members) = self else { return None };
        let piece = |(name, value): (Text<'_>, &RawValue)| (message.piece(&name.0), message.piece(value.get()));
        Some(Params(members.into_iter().map(piece).collect()))
    }
}

/// Returns the name of a member that is there twice: two parsers might not agree on which of the two counts.
fn repeated<'m>(members: &'m [(Text<'_>, &RawValue)]) -> Option<&'m str> {
    let mut names: Vec<&str> = members.iter().map(|(name, _)| &*name.0).collect();
    names.sort_unstable();
    names.windows(2).find_map(|pair| match pair {
        [one, other] if one == other => Some(*one),
        _ => None,
    })
}

/// A string that is borrowed from the message unless it contains escapes.
pub(crate) struct Text<'a>(pub(crate) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Borrow;
        impl<'de> Visitor<'de> for Borrow {
            type Value = Text<'de>;
            fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                formatter.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Borrow)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RawParams<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Walk;
        impl<'de> Visitor<'de> for Walk {
            type Value = RawParams<'de>;
            fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                formatter.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawParams<'de>, A::Error> {
                let mut members = Vec::with_capacity(4);
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                match repeated(&members) {
                    Some(name) => Err(A::Error::custom(format_args!("`{name}` is in `params` twice"))),
                    None => Ok(RawParams::Members(members)),
                }
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<RawParams<'de>, A::Error> {
                while items.next_element::<IgnoredAny>()?.is_some() {}
                Ok(RawParams::Other)
            }
            fn visit_bool<E>(self, _: bool) -> Result<RawParams<'de>, E> {
                Ok(RawParams::Other)
            }
            fn visit_i64<E>(self, _: i64) -> Result<RawParams<'de>, E> {
                Ok(RawParams::Other)
            }
            fn visit_u64<E>(self, _: u64) -> Result<RawParams<'de>, E> {
                Ok(RawParams::Other)
            }
            fn visit_f64<E>(self, _: f64) -> Result<RawParams<'de>, E> {
                Ok(RawParams::Other)
            }
            fn visit_str<E>(self, _: &str) -> Result<RawParams<'de>, E> {
                Ok(RawParams::Other)
            }
        }
        deserializer.deserialize_any(Walk)
    }
}

/// The parameters of `initialize`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Initialize {
    /// The revision that the client offers, which may be unknown to wharf.
    pub protocol_version: String,
    /// The client's capabilities, as they were written.
    #[serde(default)]
    pub capabilities: Option<Box<RawValue>>,
    /// The client's description of itself, as it was written.
    #[serde(default)]
    pub client_info: Option<Box<RawValue>>,
}

/// The parameters of all methods that request a list.
#[derive(Debug, Deserialize)]
pub struct List {
    /// The cursor from the previous page; `None` for the first page.
    pub cursor: Option<String>,
}

/// The additional parameters of a modern request that is repeated to answer the server's questions (MRTR).
#[derive(Debug, Clone, Default)]
pub struct Retry {
    /// The answers to the server's questions, by the keys of the questions.
    pub input_responses: Option<Object>,
    /// The state that the server sent with its questions, which the client sends back.
    pub request_state: Option<String>,
}

/// Implements `take_retry` for the parameters of a request that may be a retry.
macro_rules! retried {
    ($params:ty) => {
        impl $params {
            /// Takes the members that only a retry has.
            pub fn take_retry(&mut self) -> Retry {
                Retry { input_responses: self.input_responses.take(), request_state: self.request_state.take() }
            }
        }
    };
}

retried!(CallTool);
retried!(ReadResource);
retried!(GetPrompt);

/// The parameters of `tools/call`, except its `arguments`, which are used as they were written: see [`Params::get`].
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallTool {
    /// The name of the tool, including the operator's prefix.
    pub name: String,
    /// The client's request in 2025-11-25 that the call becomes a task; other revisions ignore it.
    #[serde(default, deserialize_with = "object_or_null")]
    pub task: Option<TaskTerms>,
    #[serde(default, deserialize_with = "answers_if_present")]
    input_responses: Option<Object>,
    #[serde(default, deserialize_with = "string_if_present")]
    request_state: Option<String>,
}

/// The client's requirements for the task that its call becomes.
#[derive(Debug, Deserialize)]
pub struct TaskTerms {
    /// The number of milliseconds for which the client wants the task to be retained.
    pub ttl: Option<u64>,
}

/// The parameters of all methods that contain only the id of a task.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskId {
    /// The id that the server assigned.
    pub task_id: String,
}

/// The parameters of `tasks/update`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdateTask {
    /// The id that the server assigned.
    pub task_id: String,
    /// The answers to the task's questions, by the keys of the questions.
    #[serde(deserialize_with = "answers")]
    pub input_responses: Object,
}

/// The parameters of `resources/read`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadResource {
    /// The URI of the resource.
    pub uri: String,
    #[serde(default, deserialize_with = "answers_if_present")]
    input_responses: Option<Object>,
    #[serde(default, deserialize_with = "string_if_present")]
    request_state: Option<String>,
}

/// The parameters of `prompts/get`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetPrompt {
    /// The name of the prompt, including the operator's prefix.
    pub name: String,
    /// The values of the arguments; MCP allows only strings.
    #[serde(default)]
    pub arguments: Option<BTreeMap<String, String>>,
    #[serde(default, deserialize_with = "answers_if_present")]
    input_responses: Option<Object>,
    #[serde(default, deserialize_with = "string_if_present")]
    request_state: Option<String>,
}

impl GetPrompt {
    /// Creates the parameters of a request that is not a retry.
    pub fn new(name: String, arguments: BTreeMap<String, String>) -> Self {
        Self { name, arguments: Some(arguments), input_responses: None, request_state: None }
    }
}

/// The parameters of `completion/complete`.
#[derive(Debug, Deserialize)]
pub struct Complete {
    /// The prompt or the template to which the argument belongs.
    #[serde(rename = "ref", deserialize_with = "object")]
    pub reference: Reference,
    /// The argument that is being typed.
    #[serde(deserialize_with = "object")]
    pub argument: CompleteArgument,
    /// The values that have been chosen already.
    #[serde(default, deserialize_with = "object_or_null")]
    pub context: Option<CompleteContext>,
}

/// A reference to a prompt or a template of resources, whose arguments can be completed.
#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
pub enum Reference {
    /// A prompt.
    #[serde(rename = "ref/prompt")]
    Prompt {
        /// The name of the prompt, including the operator's prefix.
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
    /// The name of the argument, or of a variable of the template.
    pub name: String,
    /// What has been typed so far.
    pub value: String,
}

/// What is known in addition to the argument that is being typed.
#[derive(Debug, Default, Deserialize)]
pub struct CompleteContext {
    /// The arguments that have been chosen already, by name.
    #[serde(default)]
    pub arguments: Option<BTreeMap<String, String>>,
}

/// The parameters of `logging/setLevel`.
#[derive(Debug, Deserialize)]
pub struct SetLevel {
    /// The name of the level: see [`Level::parse`](crate::level::Level::parse).
    pub level: String,
}

/// The parameters of `resources/subscribe` and `resources/unsubscribe`.
#[derive(Debug, Deserialize)]
pub struct Subscribe {
    /// The URI of the resource.
    pub uri: String,
}

/// The parameters of `notifications/cancelled`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cancelled {
    /// The JSON of the id: see [`Id::from_raw`](crate::message::Id::from_raw).
    pub request_id: Box<RawValue>,
}

/// The parameters of `subscriptions/listen`.
#[derive(Debug, Deserialize)]
pub struct Listen {
    /// The notifications that the client subscribes to.
    #[serde(deserialize_with = "object")]
    pub notifications: ListenFilter,
}

/// The notifications of a subscription. Members that are left out are not subscribed to.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListenFilter {
    /// Changes of the list of tools.
    pub tools_list_changed: Option<bool>,
    /// Changes of the list of prompts.
    pub prompts_list_changed: Option<bool>,
    /// Changes of the list of resources or that of their templates.
    pub resources_list_changed: Option<bool>,
    /// Changes of the contents of the resources with these URIs.
    pub resource_subscriptions: Option<Vec<String>>,
    /// Changes of the tasks with these ids; part of the tasks extension.
    pub task_ids: Option<Vec<String>>,
}

/// The client's answer to `roots/list`.
#[derive(Debug, Clone, Deserialize)]
pub struct RootsResult {
    /// The roots, in the client's order.
    #[serde(deserialize_with = "objects")]
    pub roots: Vec<Root>,
}

/// A folder that the client opens to the server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Root {
    /// A `file:` URI; the caller checks that.
    pub uri: String,
    /// The name for people.
    #[serde(default)]
    pub name: Option<String>,
}

/// Deserializes a value that must be an object. Derived implementations would also accept an array that contains the members in order,
/// which MCP does not allow.
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

fn answers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Object, D::Error> {
    match Unambiguous::deserialize(deserializer)? {
        Unambiguous(Value::Object(answers)) => Ok(answers),
        Unambiguous(other) => Object::deserialize(other).map_err(D::Error::custom),
    }
}

fn answers_if_present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Object>, D::Error> {
    answers(deserializer).map(Some)
}

fn string_if_present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    String::deserialize(deserializer).map(Some)
}
