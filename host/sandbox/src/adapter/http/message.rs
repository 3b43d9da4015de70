//! The messages that a server sends: responses to requests, notifications, and requests of its own.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    bindings::model::Level,
    contract::json::{Parsed, Room},
};

/// The code of JSON-RPC for a method that does not exist.
pub(super) const METHOD_NOT_FOUND: i64 = -32601;

/// A message of JSON-RPC, as far as it is taken apart.
#[derive(Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    pub(super) id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) params: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) result: Option<&'a RawValue>,
    pub(super) error: Option<RpcError>,
}

/// The error of a response.
#[derive(Debug, Deserialize)]
pub(super) struct RpcError {
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) data: Option<Box<RawValue>>,
}

impl<'a> Parsed<'a> for Message<'a> {
    const LEVELS: usize = 2;
}

/// The response to a request.
#[derive(Debug)]
pub(super) enum Reply {
    /// The result, as JSON.
    Result(String),
    Error(RpcError),
}

/// The parameters of `notifications/progress`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Progress {
    pub(super) progress_token: Box<RawValue>,
    pub(super) progress: f64,
    pub(super) total: Option<f64>,
    pub(super) message: Option<String>,
}

/// The parameters of `notifications/message`.
#[derive(Deserialize)]
pub(super) struct Log {
    pub(super) level: String,
    pub(super) data: Box<RawValue>,
}

/// The parameters of `notifications/resources/updated`.
#[derive(Deserialize)]
pub(super) struct Updated {
    pub(super) uri: String,
}

impl Parsed<'_> for Progress {
    const LEVELS: usize = 1;
}

impl Parsed<'_> for Log {
    const LEVELS: usize = 1;
}

impl Parsed<'_> for Updated {
    const LEVELS: usize = 1;
}

impl Log {
    /// Returns the severity; `None` if MCP does not have it.
    pub(super) fn severity(&self) -> Option<Level> {
        Some(match self.level.as_str() {
            "debug" => Level::Debug,
            "info" => Level::Info,
            "notice" => Level::Notice,
            "warning" => Level::Warning,
            "error" => Level::Error,
            "critical" => Level::Critical,
            "alert" => Level::Alert,
            "emergency" => Level::Emergency,
            _ => return None,
        })
    }

    /// Returns the text, and the data if they are not a text.
    pub(super) fn text(self, room: &Room) -> (String, Option<String>) {
        match room.parse::<String>(self.data.get()) {
            Ok(text) => (text, None),
            Err(_) => (self.data.get().to_owned(), Some(self.data.get().to_owned())),
        }
    }
}
