//! The context of a request: everything known about it besides its method and parameters, such as the caller, the
//! revision and the capabilities.

use std::{
    any::Any,
    net::IpAddr,
    ops::Deref,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use http::{HeaderMap, HeaderValue};
use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use wharf_protocol::{
    Id, Level, Revision, RpcError, Shown,
    capability::ClientCapabilities,
    encode::Encoder,
    meta::{RequestMeta, Trace},
    notification::{self, Progress},
    revision::Era,
};
use wharf_sandbox::{
    Events, Wait,
    model::{self as wit, Kind},
};

use super::{
    news::News,
    outbox::Outbox,
    seat::{Seat, Taken},
    server::{Server, is_operator},
    session::Session,
};
use wharf_base::{
    heavy::heavy,
    ledger::Charge,
    party::Party,
    principal::{Owner, Principal},
    quota::Turn,
    text,
};
use wharf_plugins::{
    bridge::{self, Paid, RequestInfo},
    observe::record::{RequestFacts, Transport, request_facts},
    plugins::{published::FIRST_LOAD_TIMEOUT, view::View},
    tasks::Running,
};
use wharf_policy::{access::call_roots::CallRoots, auth::Caller};

/// The minimum time between the last progress notification and the answer.
const PROGRESS_ANSWER_INTERVAL: Duration = Duration::from_millis(20);

/// What is known about a request when its message arrives, before the request itself is read. Each transport fills it in.
#[derive(Clone)]
pub struct Arrival {
    /// The transport over which the request arrived. None: this program made the request itself.
    pub transport: Option<Transport>,
    /// The address of the client, if it is on a network.
    pub address: Option<IpAddr>,
    /// The caller that makes the request.
    pub caller: Caller,
    /// The party on whose account the request takes places, in every pool that gives each client a share.
    pub party: Party,
    /// The profile, a named part of the catalog, that the client connected to.
    pub profile: Option<Arc<str>>,
    /// Folders that the embedding program opened to the client, in place of any roots that the client lists itself.
    pub roots: Option<CallRoots>,
    /// Whether everything that the request does is already approved, because a person typed the call.
    pub approved: bool,
    /// Cancelled when a request that only waits for changes is to end: over a pipe, when the client has sent its last message or wharf
    /// stops; over HTTP, when another stream needs its place or wharf closes. None: such a request ends when wharf closes. In an
    /// [`Arc`], because cloning the token itself takes a lock that all its clones share.
    pub stop: Option<Arc<CancellationToken>>,
    /// The memory charged for the message, held for as long as anything works on its requests.
    pub charge: Arc<Charge>,
    /// The trace that the `traceparent` header of the HTTP request names, if tracing is on.
    pub link: Option<Arc<Trace>>,
    /// The id of the HTTP request in the access log and in its response.
    pub request_id: Option<HeaderValue>,
}

/// What the client declared about itself, and where it did.
pub enum ClientDeclared {
    /// In the handshake of this session.
    InSession(Arc<Session>),
    /// In the `_meta` of this request, which is of a modern revision.
    InMeta {
        revision: Revision,
        capabilities: ClientCapabilities,
        /// The headers that repeat arguments, if the request must have them.
        headers: Option<HeaderMap>,
    },
    /// There is no client. The request is of the newest revision, and nobody can be asked anything.
    Nothing,
}

/// Everything known about one request besides its method and parameters. Its fields are those of [`Known`], which clones share and
/// which cannot be changed outside of this file.
#[derive(Clone)]
pub struct Context(Arc<Known>);

impl Deref for Context {
    type Target = Known;

    fn deref(&self) -> &Known {
        &self.0
    }
}

/// The fields of a [`Context`].
#[derive(Clone)]
pub struct Known {
    pub server: Arc<Server>,
    /// How the request arrived.
    pub arrival: Arrival,
    /// Writes results for the revision of the request.
    pub encoder: Arc<Encoder>,
    pub id: Id,
    pub meta: RequestMeta,
    pub capabilities: Arc<ClientCapabilities>,
    /// The session that the request belongs to. None: the request describes itself, or there is no client.
    pub session: Option<Arc<Session>>,
    /// The headers that repeat arguments, if the request must have them.
    pub headers: Option<Arc<HeaderMap>>,
    /// The queue for messages about this request.
    pub outbox: Outbox,
    /// The task, if the request runs in the background.
    pub task: Option<Arc<Running>>,
    /// The log level that a modern request asks for. A legacy request has the log level of its session instead.
    log_level: Option<Level>,
    so_far: Arc<SoFar>,
}

/// The state of a request that all clones of its context share.
struct SoFar {
    /// The largest progress value sent, and when it was sent. A plugin that asked a question runs again from the start, but the progress of
    /// its request must not go back.
    progressed: Mutex<(f64, Option<Instant>)>,
    /// Whether a record of the request exists: of a run, or of its refusal.
    recorded: AtomicBool,
    seat: Seat,
    /// The memory of the plugin's answer, and what parsing it took, until the answer is written.
    held: Mutex<(Option<Box<Charge>>, Option<Paid>)>,
}

/// A handle to the seat of a request, for code that outlives the context.
#[derive(Clone)]
pub struct ItsSeat(Arc<SoFar>);

impl Deref for ItsSeat {
    type Target = Seat;

    fn deref(&self) -> &Seat {
        &self.0.seat
    }
}

/// RAII guard of a running call: the call counts as running until this is dropped.
pub struct RunningCall(ItsSeat);

impl Drop for RunningCall {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// RAII guard of a place: the request holds its place until this is dropped.
pub struct Sitting(ItsSeat);

impl Drop for Sitting {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl Context {
    /// Makes the context of a request.
    pub fn new(
        server: &Arc<Server>,
        arrival: Arrival,
        id: Id,
        meta: RequestMeta,
        declared: ClientDeclared,
        outbox: Outbox,
    ) -> Self {
        let (revision, capabilities, session, headers, log_level) = match declared {
            ClientDeclared::InSession(session) => {
                (session.revision, Arc::clone(&session.capabilities), Some(session), None, None)
            }
            ClientDeclared::InMeta { revision, capabilities, headers } => {
                // An invalid level is refused later, after the checks that come before it.
                let level = meta.log_level().unwrap_or_default();
                (revision, Arc::new(capabilities), None, headers.map(Arc::new), level)
            }
            ClientDeclared::Nothing => {
                let none = ClientCapabilities { text: "{}".into(), ..ClientCapabilities::default() };
                (Revision::NEWEST, Arc::new(none), None, None, None)
            }
        };
        let so_far = Arc::new(SoFar {
            progressed: Mutex::new((f64::NEG_INFINITY, None)),
            recorded: AtomicBool::new(false),
            seat: Seat::default(),
            held: Mutex::default(),
        });
        Self(Arc::new(Known {
            server: Arc::clone(server),
            arrival,
            encoder: Arc::clone(server.encoder(revision)),
            id,
            meta,
            capabilities,
            session,
            headers,
            outbox,
            task: None,
            log_level,
            so_far,
        }))
    }

    /// Returns the context of a call that goes on as a task. The tasks extension of modern revisions has neither progress nor log messages.
    pub fn for_task(&self, running: &Arc<Running>) -> Self {
        let mut known = Known { task: Some(Arc::clone(running)), ..Known::clone(self) };
        if known.encoder.revision.era() == Era::Modern {
            known.meta.progress_token = None;
            known.log_level = None;
        }
        Self(Arc::new(known))
    }

    /// Returns the context of a call that a search tool makes. The client never saw the tool that is called, so it could not repeat the
    /// arguments in headers.
    pub fn without_headers(&self) -> Self {
        if self.headers.is_none() {
            self.clone()
        } else {
            Self(Arc::new(Known { headers: None, ..Known::clone(self) }))
        }
    }

    /// Holds the memory of the plugin's answer, until the answer is written.
    pub fn hold_answer(&self, charge: Option<Box<Charge>>) {
        self.so_far.held.lock().0 = charge;
    }

    /// Holds what parsing the plugin's answer took, until the answer is written.
    pub fn hold(&self, paid: Paid) {
        self.so_far.held.lock().1 = Some(paid);
    }

    /// Writes the answer, of which this many bytes are known to be in it, and lets go of what parsing it took.
    pub fn write<T>(&self, bytes: usize, write: impl FnOnce() -> T) -> T {
        let (_answer, paid) = std::mem::take(&mut *self.so_far.held.lock());
        heavy(bytes.max(paid.as_ref().map_or(0, Paid::bytes)), write)
    }

    /// Returns the caller that makes the request.
    pub fn caller(&self) -> &Caller {
        &self.arrival.caller
    }

    /// Returns the party on whose account the request takes places.
    pub fn party(&self) -> Party {
        self.arrival.party
    }

    /// Returns the profile that the client connected to.
    pub fn profile(&self) -> Option<&str> {
        self.arrival.profile.as_deref()
    }

    /// Returns the principal that makes the request. Sealed state is bound to it.
    pub fn principal(&self) -> &Principal {
        self.caller().principal()
    }

    /// Whether the request was made by the user who started this process, who may learn what only operators may.
    pub fn is_operator(&self) -> bool {
        is_operator(self.caller())
    }

    /// Returns what the caller sees of the catalog. Waits for the first load.
    pub async fn view(&self) -> View {
        self.server.published.wait(FIRST_LOAD_TIMEOUT).await;
        self.server.view(self.caller(), self.profile())
    }

    /// Returns the owner of the tasks that this request begins or may see.
    pub fn owner(&self) -> Owner {
        match &self.session {
            Some(session) => session.owner(),
            None => Owner::Principal(self.principal().clone(), self.arrival.profile.clone()),
        }
    }

    /// Returns what the state that is kept for the owner lasts for: the session or, for the client at stdin and stdout, this server. `None`:
    /// nothing says how long the owner is there.
    pub fn lasts(&self) -> Option<Weak<dyn Any + Send + Sync>> {
        let lasts: Arc<dyn Any + Send + Sync> = match (&self.session, self.principal()) {
            (Some(session), _) => Arc::clone(session) as _,
            (None, Principal::Process) => Arc::clone(&self.server) as _,
            (None, _) => return None,
        };
        Some(Arc::downgrade(&lasts))
    }

    /// Returns the facts about this request that its records contain.
    pub fn facts(&self) -> RequestFacts {
        let mut facts = request_facts(self.encoder.revision, self.id.to_string());
        facts.session = self.session.as_ref().map(|session| session.digest().to_owned());
        facts.transport = self.arrival.transport;
        facts.address = self.arrival.address;
        facts.trace = self.meta.trace();
        facts.link = self.arrival.link.as_deref().cloned();
        facts.request_id = self.arrival.request_id.as_ref().and_then(|id| Some(id.to_str().ok()?.to_owned()));
        facts
    }

    /// Marks the request as recorded. Returns false if it already was.
    pub fn set_recorded(&self) -> bool {
        !self.so_far.recorded.swap(true, Ordering::Relaxed)
    }

    /// Returns a handle to the seat of this request.
    pub fn seat(&self) -> ItsSeat {
        ItsSeat(Arc::clone(&self.so_far))
    }

    /// Gives the request this place, until the returned guard is dropped.
    pub fn sit(&self, taken: Taken) -> Sitting {
        self.so_far.seat.sit(taken);
        Sitting(self.seat())
    }

    /// Counts the call as running, if the config limits how many may run at once.
    pub fn run(&self, turn: Turn) -> RunningCall {
        self.so_far.seat.run(turn);
        RunningCall(self.seat())
    }

    /// Waits for something outside of this server, such as the answer of a person. Meanwhile the request holds no place among the requests
    /// under way, and does not count as running.
    pub async fn away<T>(&self, waits: impl Future<Output = T>) -> Result<T, RpcError> {
        self.so_far.seat.away(waits).await
    }

    /// Returns the id of the task to which notifications belong.
    fn task_id(&self) -> Option<&str> {
        self.task.as_ref().map(|task| task.id.as_str())
    }

    fn level(&self) -> Option<Level> {
        match &self.session {
            Some(session) => Some(session.log_level()),
            None => self.log_level,
        }
    }

    /// Waits a moment before the answer if a progress notification was sent just before, so that the client reads the two separately.
    /// Clients of the official TypeScript SDK that read both at once handle the answer first, and then drop the progress.
    pub async fn let_progress_arrive(&self) {
        let last = self.so_far.progressed.lock().1;
        if let Some(left) = last.and_then(|last| PROGRESS_ANSWER_INTERVAL.checked_sub(last.elapsed())) {
            tokio::time::sleep(left).await;
        }
    }

    /// Returns a token that is cancelled when a request that only waits for changes is to end.
    pub fn stop(&self) -> &CancellationToken {
        self.arrival.stop.as_deref().unwrap_or(&self.server.closing)
    }

    /// Returns what this plugin learns about the request.
    pub fn for_plugin(&self, plugin: &str) -> wit::Context {
        let asker = RequestInfo {
            revision: self.encoder.revision,
            client: match &self.session {
                Some(session) => session.client_info.clone(),
                None => self.meta.client_info().and_then(bridge::client_info),
            },
            capabilities: &self.capabilities,
            meta: self.meta.text(),
            progress: self.wants_progress(),
            log: self.level().is_some(),
        };
        bridge::context(asker, self.server.caller_ids.of(plugin, self.principal()))
    }

    /// Returns the receiver of what a plugin reports during a call. It passes reports on to the client, the log or the library.
    pub fn events(&self, plugin: &str) -> Arc<dyn Events> {
        Arc::new(CallEvents { context: self.clone(), plugin: plugin.into() })
    }

    /// Whether the client wants to be told of the progress of the request.
    pub fn wants_progress(&self) -> bool {
        self.meta.progress_token.is_some()
    }

    /// Tells the client of the progress of the request, if it wants that and there is progress since the last time.
    pub fn progress(&self, done: f64, total: Option<f64>, message: Option<String>) {
        let Some(token) = &self.meta.progress_token else { return };
        {
            let mut progressed = self.so_far.progressed.lock();
            if done <= progressed.0 {
                return;
            }
            *progressed = (done, Some(Instant::now()));
        }
        let message = message.map(Shown::from);
        let progress = Progress { done, total, message: message.as_ref() };
        self.outbox.offer(notification::progress(self.encoder.revision, token, progress, self.task_id()));
    }

    /// Returns the error for missing capabilities, which tells the client what to declare.
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
            let data = Shown::data(data);
            self.context.outbox.offer(notification::message(level, plugin, data, self.context.task_id()));
        }
    }

    fn progress(&self, done: f64, total: Option<f64>, message: Option<String>) {
        self.context.progress(done, total, message);
    }

    fn wait_to_run(&self) -> Option<Wait<'_>> {
        // A task stores its result, so it need not wait until this client reads.
        let waits = self.context.task.is_none() && self.context.outbox.is_full();
        waits.then(|| Box::pin(self.context.outbox.ready()) as Wait<'_>)
    }

    fn wait_to_speak(&self) -> Option<Wait<'_>> {
        let waits = self.context.task.is_none() && !self.context.outbox.is_roomy();
        waits.then(|| Box::pin(self.context.outbox.roomy()) as Wait<'_>)
    }

    fn list_changed(&self, kind: Kind) {
        let server = &self.context.server;
        server.inbox.announcements.add(&self.plugin, kind);
        server.tell(self.context.party(), || News::ListChanged { plugin: self.plugin.to_string(), kind: kind.into() });
    }

    fn resource_updated(&self, uri: String) {
        let catalog = Arc::clone(&self.context.server.published.catalog.borrow());
        if catalog.owns(&self.plugin, &uri) {
            self.context.server.updated(self.context.party(), uri);
        }
    }
}
