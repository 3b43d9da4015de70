//! The parameters of each method, typed. Unknown members are ignored, wrong types are [`RpcError`]s that name the member.

use std::collections::BTreeMap;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error},
};
use serde_json::{Value, value::RawValue};

use crate::{Object, RpcError};

/// Reads `params` as `T`; absent parameters read like `{}`.
pub fn read<'a, T: Deserialize<'a>>(params: Option<&'a RawValue>) -> Result<T, RpcError> {
    let text = params.map_or("{}", RawValue::get);
    serde_json::from_str(text).map_err(|error| RpcError::invalid_params(format!("`params`: {error}")))
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Initialize {
    pub protocol_version: String,
    #[serde(default)]
    pub capabilities: Object,
    #[serde(default)]
    pub client_info: Option<Value>,
}

#[derive(Debug, Deserialize)]
pub struct List {
    pub cursor: Option<String>,
}

/// What a modern retry carries besides the original parameters. `inputResponses` must be an object if it is there at all.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Retry {
    #[serde(default, deserialize_with = "object_if_present")]
    pub input_responses: Option<Object>,
    #[serde(default, deserialize_with = "string_if_present")]
    pub request_state: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct CallTool {
    pub name: String,
    #[serde(default)]
    pub arguments: Option<Box<RawValue>>,
}

#[derive(Debug, Deserialize)]
pub struct ReadResource {
    pub uri: String,
}

#[derive(Debug, Deserialize)]
pub struct GetPrompt {
    pub name: String,
    #[serde(default)]
    pub arguments: Option<BTreeMap<String, String>>,
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
