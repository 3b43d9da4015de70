//! Reads the HTTP response to one message: JSON, or a stream of events in which the response of MCP comes after notifications.

use std::{fmt, str};

use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{CONTENT_TYPE, LOCATION},
};
use http_body_util::BodyExt;
use serde_json::value::RawValue;
use wasmtime_wasi_http::WasiBody;

use super::{
    events::Events,
    message::{Log, Message, Progress, Reply, Updated},
};
use crate::{
    bindings::model::Kind,
    bounds::limits::TRANSFER_SLACK_BYTES,
    contract::{
        json::{NotParsed, Parsed, Room},
        operation::CallError,
        told,
    },
    wasi::{traffic::Traffic, voice::Voice},
};
use wharf_base::accounts::{Account, Charge};

/// The header with the id of a session.
pub(super) const SESSION: &str = "mcp-session-id";
/// The number of bytes of a text of the server's that an error quotes.
const MAX_QUOTED_BYTES: usize = 100;
/// Memory is charged in steps of this many bytes.
const CHARGE_STEP_BYTES: usize = 64 << 10;

/// Reads the responses to the messages of one call.
pub(super) struct Reader {
    /// The id of the request; `None` for a notification, which has no response.
    pub(super) id: Option<u64>,
    /// Whether the client wants progress reports.
    pub(super) progress: bool,
    pub(super) voice: Voice,
    pub(super) traffic: Option<Traffic>,
    /// How many bytes an answer may have.
    pub(super) limit: usize,
    /// For the messages themselves.
    pub(super) charge: Charge,
    /// For what is made of each of them.
    pub(super) account: Account,
}

/// What a response of HTTP contained.
pub(super) struct Told {
    pub(super) status: StatusCode,
    /// The session that the server began.
    pub(super) session: Option<HeaderValue>,
    /// The response of MCP; `None` for a notification.
    pub(super) reply: Option<Reply>,
}

impl Reader {
    /// Reads a response.
    pub(super) async fn read(
        &mut self,
        status: StatusCode,
        headers: &HeaderMap,
        body: &mut WasiBody,
    ) -> Result<Told, CallError> {
        let session = headers.get(SESSION).cloned();
        if status.is_redirection() {
            let to = headers.get(LOCATION).map_or_else(String::new, |to| format!(" to {}", quoted(to)));
            return Err(wrong(format!(
                "it redirects{to} with status {}, and redirects are not followed; {PATH}",
                status.as_u16()
            )));
        }
        if self.id.is_none() && status.is_success() {
            return Ok(Told { status, session, reply: None });
        }
        let kind = headers.get(CONTENT_TYPE);
        let is = |name: &str| {
            let text = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
            text.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(name)
        };
        let reply = if is("application/json") {
            let body = self.whole(body).await?;
            let room = Room::of(&self.account);
            self.reply(message(&room, &body, "its answer")?, status)?
        } else if is("text/event-stream") && status.is_success() {
            self.streamed(body).await?
        } else {
            let kind = kind.map_or_else(|| "without a content type".into(), |kind| format!("and {}", quoted(kind)));
            let at = if status == StatusCode::NOT_FOUND { format!("; {PATH}") } else { String::new() };
            return Err(wrong(format!(
                "it answers with status {} {kind}, not with application/json or text/event-stream{at}",
                status.as_u16()
            )));
        };
        Ok(Told { status, session, reply: Some(reply) })
    }

    /// Reads a body to its end.
    async fn whole(&mut self, body: &mut WasiBody) -> Result<Vec<u8>, CallError> {
        let mut all = Vec::new();
        while let Some(piece) = self.next(body).await? {
            if all.len() + piece.len() > self.most() {
                return Err(CallError::Output(self.limit));
            }
            all.extend_from_slice(&piece);
            self.pay(all.len())?;
        }
        Ok(all)
    }

    /// Reads events up to the response, and passes on what comes before it.
    async fn streamed(&mut self, body: &mut WasiBody) -> Result<Reply, CallError> {
        let (mut events, mut complete) = (Events::default(), Vec::new());
        while let Some(piece) = self.next(body).await? {
            self.pay(events.len() + piece.len())?;
            events.take(&piece, self.most(), &mut complete).map_err(|_| CallError::Output(self.limit))?;
            for event in complete.drain(..) {
                let room = Room::of(&self.account);
                let message = message(&room, &event, "an event of its answer")?;
                match &message.method {
                    None => return self.reply(message, StatusCode::OK),
                    Some(method) if message.id.is_none() => self.notified(method, message.params, &room).await,
                    // Nothing depends on the answer to a ping.
                    Some(method) if method == "ping" => {}
                    Some(method) => {
                        return Err(wrong(format!(
                            "it asks its client for `{}` in the middle of an answer, and one instance cannot take the reply while it \
                             answers; a server of MCP 2026-07-28 returns its questions as the result",
                            clipped(method)
                        )));
                    }
                }
            }
        }
        Err(wrong("its event stream ended without the response"))
    }

    /// Returns the next piece of a body; `None` at its end.
    async fn next(&mut self, body: &mut WasiBody) -> Result<Option<bytes::Bytes>, CallError> {
        loop {
            match body.frame().await {
                None => return Ok(None),
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Ok(Some(bytes));
                    }
                }
                Some(Err(_)) => return Err(wrong("it broke off its answer")),
            }
        }
    }

    /// The maximum size of a message: the result, and the names and the envelope around it.
    fn most(&self) -> usize {
        self.limit.saturating_add(TRANSFER_SLACK_BYTES)
    }

    /// Charges for a message of this size, and a copy of its texts.
    fn pay(&mut self, bytes: usize) -> Result<(), CallError> {
        let bytes = bytes.saturating_mul(2).next_multiple_of(CHARGE_STEP_BYTES);
        self.charge.cover(bytes).map_err(|_| CallError::TotalMemory)
    }

    /// Checks that a message is the response to the request.
    fn reply(&self, message: Message<'_>, status: StatusCode) -> Result<Reply, CallError> {
        let Message { id, method, result, error, .. } = message;
        let own = self.id.map(|own| own.to_string());
        // A server that could not read the request does not know its id.
        let is_own = id.map(RawValue::get) == own.as_deref() || (id.is_none() && error.is_some());
        if method.is_some() {
            return Err(wrong("it answers a request with a request or a notification"));
        }
        if !is_own {
            return Err(wrong("its answer has another id than the request"));
        }
        match (result, error) {
            (None, Some(error)) => Ok(Reply::Error(error)),
            (Some(result), None) if status.is_success() => Ok(Reply::Result(result.get().to_owned())),
            (Some(_), None) => Err(wrong(format!("its answer has a result, and status {}", status.as_u16()))),
            _ => Err(wrong("its answer has neither a result nor an error, or both")),
        }
    }

    /// Passes on a notification. One that is malformed or unknown is ignored, as MCP requires.
    async fn notified(&mut self, method: &str, params: Option<&RawValue>, room: &Room) {
        fn read<'a, T: Parsed<'a>>(room: &Room, params: Option<&'a RawValue>) -> Option<T> {
            room.parse(params?.get()).ok()
        }
        let Self { voice, traffic, progress, .. } = self;
        let traffic = traffic.as_ref();
        match method {
            "notifications/progress" if *progress => {
                let own = self.id.map(|own| own.to_string());
                if let Some(Progress { progress_token, progress, total, message }) = read(room, params)
                    && own.as_deref() == Some(progress_token.get())
                {
                    voice.report(traffic, progress, total, message).await;
                }
            }
            "notifications/message" => {
                if let Some((level, log)) = read::<Log>(room, params).and_then(|log| Some((log.severity()?, log))) {
                    let (text, data) = log.text(room);
                    voice.log(traffic, level, text, data).await;
                }
            }
            "notifications/tools/list_changed" => voice.list_changed(Kind::Tools),
            "notifications/resources/list_changed" => voice.list_changed(Kind::Resources),
            "notifications/prompts/list_changed" => voice.list_changed(Kind::Prompts),
            "notifications/resources/updated" => {
                if let Some(Updated { uri }) = read(room, params) {
                    voice.resource_updated(traffic, uri).await;
                }
            }
            _ => {}
        }
    }
}

/// What to type if the server is elsewhere.
const PATH: &str = "`endpoint` in its table is the path of its MCP endpoint";

/// Reads a message of JSON-RPC. `what`: what it should be one of.
fn message<'a>(room: &Room, text: &'a [u8], what: &str) -> Result<Message<'a>, CallError> {
    let what = |why: &dyn fmt::Display| wrong(format_args!("{what} is not a message of JSON-RPC: {why}"));
    let text = str::from_utf8(text).map_err(|error| what(&error))?;
    room.parse(text).map_err(|error| not_parsed(error, |why| what(&why)))
}

/// Returns an error that says what is wrong with an answer. The text may quote the server.
pub(super) fn wrong(text: impl fmt::Display) -> CallError {
    CallError::NotMcp(told::Told::brief(format_args!("{text}")))
}

/// Returns the error for JSON of the server that is not parsed. `malformed`: the error if it is malformed.
pub(super) fn not_parsed(error: NotParsed, malformed: impl FnOnce(told::Told) -> CallError) -> CallError {
    match error {
        NotParsed::Full(_) => CallError::TotalMemory,
        NotParsed::Malformed(why) => malformed(why),
    }
}

fn quoted(value: &HeaderValue) -> String {
    clipped(&String::from_utf8_lossy(value.as_bytes())).to_owned()
}

fn clipped(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_QUOTED_BYTES)).unwrap_or_default()
}
