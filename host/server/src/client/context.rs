//! What is known of a request besides its method and parameters: who asks, in which revision, with which abilities.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use http::HeaderMap;
use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use wharf_protocol::{
    Id, Level, Method, Revision, RpcError,
    capability::ClientCapabilities,
    encode::Encoder,
    meta::RequestMeta,
    notification::{self, Progress},
    revision::Era,
};
use wharf_sandbox::{
    Events, Wait,
    model::{self as wit, Kind},
};

use super::{outbox::Outbox, server::Server, session::Session};
use crate::{
    access::scope::CallRoots,
    base::{
        ledger::Charge,
        principal::{Owner, Principal},
        text,
    },
    bridge,
    tasks::Running,
};

/// How long before an answer the last progress is told.
const PROGRESS_BEFORE_ANSWER: Duration = Duration::from_millis(20);

/// One request's surroundings.
#[derive(Clone)]
pub struct Context {
    pub server: Arc<Server>,
    pub encoder: Arc<Encoder>,
    pub id: Id,
    pub meta: Arc<RequestMeta>,
    pub capabilities: Arc<ClientCapabilities>,
    /// The JSON of what the client says of itself.
    pub client_info: Option<Arc<str>>,
    /// Whom sealed state is bound to.
    pub principal: Principal,
    /// Modern: the level the request asks for. Legacy requests look at their session.
    pub log_level: Option<Level>,
    pub outbox: Outbox,
    /// What is paid for the request, for as long as anything works for it.
    pub charge: Arc<Charge>,
    pub session: Option<Arc<Session>>,
    /// Folders that are open to whoever asks, whatever it says of its own.
    pub roots: Option<CallRoots>,
    /// Cancelled when the connection is over, where that is before wharf stops: see [`Context::stop`]. Shared, because each
    /// clone of a token takes a lock that all of its clones have in common.
    pub connection: Option<Arc<CancellationToken>>,
    /// The headers that mirror arguments, of a request that has to have them.
    pub headers: Option<Arc<HeaderMap>>,
    /// What runs in the background, the task it runs as.
    pub task: Option<Arc<Running>>,
    /// The largest progress told so far, and when: a plugin that asked begins again, its request does not.
    progressed: Arc<Mutex<(f64, Option<Instant>)>>,
}

impl Context {
    /// Of a request in a session.
    pub fn in_session(
        session: &Arc<Session>,
        server: &Arc<Server>,
        id: &Id,
        meta: RequestMeta,
        outbox: Outbox,
        charge: Arc<Charge>,
    ) -> Self {
        session.touch();
        session.set_used();
        Self {
            server: Arc::clone(server),
            encoder: Arc::clone(server.encoder(session.revision)),
            id: id.clone(),
            meta: Arc::new(meta),
            capabilities: Arc::clone(&session.capabilities),
            client_info: session.client_info.clone(),
            principal: session.principal.clone(),
            log_level: None,
            outbox,
            charge,
            session: Some(Arc::clone(session)),
            roots: None,
            connection: None,
            headers: None,
            task: None,
            progressed: Arc::new(Mutex::new((f64::NEG_INFINITY, None))),
        }
    }

    /// Of a request that says everything of itself; what it says is checked, in the order that the errors' meanings demand.
    pub fn of_claim(
        server: &Arc<Server>,
        id: &Id,
        meta: RequestMeta,
        principal: &Principal,
        outbox: Outbox,
        charge: Arc<Charge>,
    ) -> Result<Self, RpcError> {
        let claim = meta.modern_claim()?;
        let revision = Revision::MODERN.into_iter().find(|revision| revision.as_str() == claim.version);
        let revision = revision.ok_or_else(|| RpcError::unsupported_version(&claim.version))?;
        // A wrong one is refused when everything before it is right.
        let log_level = meta.log_level().unwrap_or_default();
        Ok(Self {
            server: Arc::clone(server),
            encoder: Arc::clone(server.encoder(revision)),
            id: id.clone(),
            client_info: meta.client_info().map(Into::into),
            meta: Arc::new(meta),
            capabilities: Arc::new(claim.capabilities),
            principal: principal.clone(),
            log_level,
            outbox,
            charge,
            session: None,
            roots: None,
            connection: None,
            headers: None,
            task: None,
            progressed: Arc::new(Mutex::new((f64::NEG_INFINITY, None))),
        })
    }

    /// Of a call that no client makes: in the newest revision, with no abilities.
    pub fn direct(server: &Arc<Server>, principal: Principal, outbox: Outbox, charge: Arc<Charge>) -> Self {
        Self {
            server: Arc::clone(server),
            encoder: Arc::clone(server.encoder(Revision::NEWEST)),
            id: Id::number(1),
            meta: Arc::default(),
            capabilities: Arc::new(ClientCapabilities { text: "{}".into(), ..ClientCapabilities::default() }),
            client_info: None,
            principal,
            log_level: None,
            outbox,
            charge,
            session: None,
            roots: None,
            connection: None,
            headers: None,
            task: None,
            progressed: Arc::new(Mutex::new((f64::NEG_INFINITY, None))),
        }
    }

    /// Of a call that goes on by itself. The extension has neither progress nor messages for those.
    pub fn for_task(&self, running: &Arc<Running>) -> Self {
        let mut ctx = Self { task: Some(Arc::clone(running)), ..self.clone() };
        if ctx.encoder.revision.era() == Era::Modern {
            Arc::make_mut(&mut ctx.meta).progress_token = None;
            ctx.log_level = None;
        }
        ctx
    }

    /// The method that a client names, if the request's revision has it.
    pub fn method(&self, name: &str) -> Result<Method, RpcError> {
        Method::parse(name)
            .filter(|method| method.is_in(self.encoder.revision, self.encoder.tasks))
            .ok_or_else(|| RpcError::method_not_found(name))
    }

    /// To whom tasks belong that this request begins, and which it may see.
    pub fn owner(&self) -> Owner {
        match &self.session {
            Some(session) => session.owner(),
            None => Owner::Principal(self.principal.clone()),
        }
    }

    /// The task on whose behalf something is said.
    fn task_id(&self) -> Option<&str> {
        self.task.as_ref().map(|task| task.id.as_str())
    }

    fn level(&self) -> Option<Level> {
        match &self.session {
            Some(session) => Some(session.log_level()),
            None => self.log_level,
        }
    }

    /// Waits until the last word on progress is read before the answer, as far as that can be known. The clients of the official
    /// TypeScript SDK handle a notification after what comes with it in one read, and forget about progress with the answer:
    /// in one read with it, the last of it is lost. Without progress, or some time after it, nothing is waited for.
    pub async fn let_progress_arrive(&self) {
        let last = self.progressed.lock().1;
        if let Some(left) = last.and_then(|last| PROGRESS_BEFORE_ANSWER.checked_sub(last.elapsed())) {
            tokio::time::sleep(left).await;
        }
    }

    /// Cancelled when nobody is left to hear more: the connection is over, or wharf stops.
    pub fn stop(&self) -> &CancellationToken {
        self.connection.as_deref().unwrap_or(&self.server.stop)
    }

    /// What a plugin is told of this request.
    pub fn for_plugin(&self) -> wit::Context {
        let progress = self.meta.progress_token.is_some();
        let log = self.level().is_some();
        let client = self.client_info.as_deref();
        bridge::context(self.encoder.revision, client, &self.capabilities, self.meta.text(), progress, log)
    }

    /// Carries what a plugin says during a call to whom it concerns.
    pub fn events(&self, plugin: &str) -> Arc<dyn Events> {
        Arc::new(CallEvents { context: self.clone(), plugin: plugin.into() })
    }

    /// A capability that is missing: an error by which the client knows what to declare.
    pub fn lacks(&self, what: &str, required: Value) -> RpcError {
        let names: Vec<&str> =
            required.as_object().into_iter().flat_map(|all| all.keys().map(String::as_str)).collect();
        let message = format!("this client did not declare what {what} needs: {}", names.join(", "));
        RpcError::missing_capability(message, required)
    }
}

struct CallEvents {
    context: Context,
    plugin: Box<str>,
}

impl Events for CallEvents {
    fn log(&self, level: wit::Level, message: String, data: Option<String>) {
        let level = bridge::level(level);
        let (plugin, line) = (&*self.plugin, || text::escaped(&message));
        match level {
            Level::Debug | Level::Info => tracing::debug!(plugin, "{}", line()),
            Level::Notice | Level::Warning => tracing::info!(plugin, "{}", line()),
            _ => tracing::warn!(plugin, "{}", line()),
        }
        if self.context.level().is_some_and(|least| level >= least) {
            let data = data.and_then(|data| serde_json::from_str(&data).ok()).unwrap_or(Value::String(message));
            self.context.outbox.offer(notification::message(level, plugin, data, self.context.task_id()));
        }
    }

    fn progress(&self, done: f64, total: Option<f64>, message: Option<String>) {
        let Some(token) = &self.context.meta.progress_token else { return };
        {
            let mut progressed = self.context.progressed.lock();
            if done <= progressed.0 {
                return;
            }
            *progressed = (done, Some(Instant::now()));
        }
        let progress = Progress { done, total, message: message.as_deref() };
        let revision = self.context.encoder.revision;
        self.context.outbox.offer(notification::progress(revision, token, progress, self.context.task_id()));
    }

    fn wait_to_run(&self) -> Option<Wait<'_>> {
        // What runs in the background answers into its task.
        let waits = self.context.task.is_none() && self.context.outbox.is_full();
        waits.then(|| Box::pin(self.context.outbox.ready()) as Wait<'_>)
    }

    fn wait_to_speak(&self) -> Option<Wait<'_>> {
        let waits = self.context.task.is_none() && !self.context.outbox.is_roomy();
        waits.then(|| Box::pin(self.context.outbox.roomy()) as Wait<'_>)
    }

    fn list_changed(&self, kind: Kind) {
        self.context.server.published.announcements.add(&self.plugin, kind);
    }

    fn resource_updated(&self, uri: String) {
        let catalog = Arc::clone(&self.context.server.published.catalog.borrow());
        if catalog.owns(&self.plugin, &uri) {
            // Nobody listening is no failure.
            self.context.server.updates.send(uri.into()).ok();
        }
    }
}
