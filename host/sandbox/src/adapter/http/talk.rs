//! The conversation with the server in one instance: finds out which revision the server speaks, greets it if it has to be greeted, and
//! sends requests.

use std::{collections::HashMap, sync::Arc};

use http::{HeaderMap, HeaderValue, StatusCode, uri::PathAndQuery};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;
use wasmtime::{
    Store,
    component::{ComponentExportIndex, Instance},
};

use super::{
    Era, Learnt, Mirrored,
    exchange::exchange,
    message::{METHOD_NOT_FOUND, Reply, RpcError},
    reader::{Reader, SESSION, Told, not_parsed, wrong},
    request::{GREETED, Outgoing, Param, SELF_DESCRIBING, client_info, post, repeated},
};
use crate::{
    contract::{
        json::{Parsed, Room},
        operation::CallError,
    },
    wasi::store::State,
};
use wharf_base::accounts::Account;

/// What an instance remembers of the conversation with its server.
#[derive(Default)]
pub(crate) struct Talk {
    greeted: Option<Greeted>,
    last_id: u64,
    /// Whether the component did not return, so that the instance cannot be used again.
    pub(crate) stuck: bool,
}

/// What a server answered to `initialize`.
struct Greeted {
    revision: &'static str,
    session: Option<HeaderValue>,
}

/// What a plugin knows about its server, and where the server is.
#[derive(Clone, Copy)]
pub(crate) struct Server<'a> {
    /// The function that handles requests.
    pub(crate) handler: ComponentExportIndex,
    pub(crate) endpoint: &'a PathAndQuery,
    pub(crate) learnt: &'a Mutex<Option<Arc<Learnt>>>,
    /// How many bytes an answer may have.
    pub(crate) limit: usize,
    pub(crate) account: &'a Account,
}

/// Where a server runs.
pub(crate) type At<'a> = (&'a mut Store<State>, &'a Instance);

/// A server in an instance, to which requests are sent.
pub(super) struct Line<'a> {
    pub(super) server: Server<'a>,
    store: &'a mut Store<State>,
    instance: &'a Instance,
    talk: &'a mut Talk,
    reader: Reader,
}

/// What a server offers, and its instructions.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Face {
    pub(super) capabilities: Capabilities,
    pub(super) instructions: Option<String>,
    protocol_version: Option<String>,
    supported_versions: Vec<String>,
}

/// The kinds of entries that a server has.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Capabilities {
    pub(super) tools: Option<serde::de::IgnoredAny>,
    pub(super) resources: Option<serde::de::IgnoredAny>,
    pub(super) prompts: Option<serde::de::IgnoredAny>,
    pub(super) completions: Option<serde::de::IgnoredAny>,
}

impl Parsed<'_> for Face {
    const LEVELS: usize = 2;
}

impl<'a> Line<'a> {
    pub(super) fn new(server: Server<'a>, (store, instance): At<'a>, talk: &'a mut Talk) -> Self {
        let (voice, traffic) = store.data().call.voice_of_server();
        let charge = server.account.open();
        let account = server.account.clone();
        let reader = Reader { id: None, progress: false, voice, traffic, limit: server.limit, charge, account };
        Self { server, store, instance, talk, reader }
    }

    /// Sends a request to the server, after whatever has to come before it in this instance.
    pub(super) async fn request(&mut self, outgoing: &Outgoing<'_>) -> Result<Reply, CallError> {
        let known = self.server.learnt.lock().clone();
        let learnt = match known {
            Some(learnt) => learnt,
            None => self.meet().await?.0,
        };
        let era = learnt.era;
        if era == Era::Greeted && self.talk.greeted.is_none() {
            self.greet().await?;
        }
        let mirrored =
            outgoing.name.filter(|_| outgoing.method == "tools/call").and_then(|name| learnt.mirrored.get(name));
        self.send_in(era, outgoing, mirrored.map_or(&[][..], Vec::as_slice)).await
    }

    /// Finds out how the server has to be addressed, and what it offers.
    pub(super) async fn meet(&mut self) -> Result<(Arc<Learnt>, Face), CallError> {
        let (era, face) = self.discover().await?;
        let completions = face.capabilities.completions.is_some();
        let learnt = Arc::new(Learnt { era, completions, mirrored: HashMap::new() });
        *self.server.learnt.lock() = Some(Arc::clone(&learnt));
        Ok((learnt, face))
    }

    async fn discover(&mut self) -> Result<(Era, Face), CallError> {
        let discovered = match self.send_in(Era::SelfDescribing, &Outgoing::new("server/discover"), &[]).await {
            Ok(Reply::Result(result)) => Some(self.face(&result)?),
            // A server of an older revision does not know the method. How it says so is not specified.
            Ok(Reply::Error(_)) | Err(CallError::NotMcp(_)) => None,
            Err(error) => return Err(error),
        };
        match discovered {
            Some(face) if face.supported_versions.iter().any(|one| one == SELF_DESCRIBING) => {
                Ok((Era::SelfDescribing, face))
            }
            _ => self.greet().await.map(|face| (Era::Greeted, face)),
        }
    }

    /// Sends `initialize`, and the notification that belongs to it.
    async fn greet(&mut self) -> Result<Face, CallError> {
        let [newest, ..] = GREETED;
        let greeting = Outgoing::new("initialize")
            .param("protocolVersion", Param::Text(newest))
            .param("capabilities", Param::Json(json!({})))
            .param("clientInfo", Param::Json(client_info()));
        let Told { session, reply, .. } = self.send(&greeting, HeaderMap::new(), true, false).await?;
        let face = match reply {
            Some(Reply::Result(result)) => self.face(&result)?,
            Some(Reply::Error(error)) => return Err(refused("initialize", &error)),
            None => return Err(wrong("it does not answer `initialize`")),
        };
        let version = face.protocol_version.as_deref().unwrap_or_default();
        let Some(&revision) = GREETED.iter().find(|known| **known == version) else {
            let known = GREETED.join(", ");
            return Err(wrong(format!(
                "it speaks the revision {version:?} of MCP, and wharf knows {known} and {SELF_DESCRIBING}"
            )));
        };
        self.talk.greeted = Some(Greeted { revision, session });
        let initialized = Outgoing::new("notifications/initialized");
        let headers = self.of_session();
        let Told { status, .. } = self.send(&initialized, headers, false, false).await?;
        if !status.is_success() {
            return Err(wrong(format!("it answers `notifications/initialized` with status {}", status.as_u16())));
        }
        Ok(face)
    }

    async fn send_in(&mut self, era: Era, outgoing: &Outgoing<'_>, mirrored: &[Mirrored]) -> Result<Reply, CallError> {
        let describes_itself = era == Era::SelfDescribing;
        let headers = if describes_itself { repeated(outgoing, mirrored) } else { self.of_session() };
        let told = self.send(outgoing, headers, true, describes_itself).await?;
        // An instance whose session has ended must not be used again, so this is not an error that the server reports.
        if let (StatusCode::NOT_FOUND, Some(Reply::Error(error))) = (told.status, &told.reply)
            && error.code != METHOD_NOT_FOUND
            && self.talk.greeted.as_ref().is_some_and(|greeted| greeted.session.is_some())
        {
            return Err(wrong(format!("it says that its session has ended: {}", error.message)));
        }
        told.reply.ok_or_else(|| wrong("it accepts a request without answering it"))
    }

    fn face(&self, result: &str) -> Result<Face, CallError> {
        let malformed = |why| wrong(format_args!("what it says of itself is malformed: {why}"));
        Room::of(self.server.account).parse(result).map_err(|error| not_parsed(error, malformed))
    }

    /// Returns the headers of a request in a session.
    fn of_session(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(Greeted { revision, session }) = &self.talk.greeted {
            headers.insert("mcp-protocol-version", HeaderValue::from_static(revision));
            if let Some(session) = session {
                headers.insert(SESSION, session.clone());
            }
        }
        headers
    }

    async fn send(
        &mut self,
        outgoing: &Outgoing<'_>,
        headers: HeaderMap,
        has_response: bool,
        describes_itself: bool,
    ) -> Result<Told, CallError> {
        if self.talk.stuck {
            return Err(wrong("it answered, and then ran on for more than a second"));
        }
        let id = has_response.then(|| {
            self.talk.last_id += 1;
            self.talk.last_id
        });
        let message = outgoing.message(id, describes_itself);
        let _charge = self.server.account.charge(message.len()).map_err(|_| CallError::TotalMemory)?;
        (self.reader.id, self.reader.progress) = (id, outgoing.about.wants_progress());
        let request = post(self.server.endpoint, headers, message);
        let (told, returned) =
            exchange(self.server.handler, (&mut *self.store, self.instance), request, &mut self.reader).await;
        self.talk.stuck = !returned;
        told
    }
}

/// Returns the error for a request that is needed before all others and that the server refuses.
pub(super) fn refused(method: &str, error: &RpcError) -> CallError {
    wrong(format!("it answers `{method}` with the error {}: {}", error.code, error.message))
}
