//! Sessions of the legacy revisions, which begin with a handshake. A session remembers the client's revision, capabilities, log
//! level, subscriptions and roots, and through it the server can ask the client.

use std::{
    collections::HashMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::{Mutex as AsyncMutex, oneshot, watch};
use tokio_util::sync::CancellationToken;
use wharf_protocol::{
    Feature, Id, Level, Notification, Response, Revision, RpcError,
    capability::ClientCapabilities,
    message::request_text,
    notification::{self, KnownNotification},
    params::{Initialize, RootsResult},
    unambiguous::Unambiguous,
};
use wharf_sandbox::model::ClientInfo;

use super::{
    in_flight::InFlight,
    notifier::{self, Listener, Told},
    outbox::Outbox,
    server::Server,
    shown::ShownSession,
};
use wharf_base::{
    ledger::{Account, Accounts, Charge, Charged, no_room},
    party::Party,
    principal::{Owner, Principal},
    random_id,
    session_id::{self, IssuedTo, ListDigests, SessionRecord},
    text::short_digest,
};
use wharf_cluster::Cluster;
use wharf_plugins::{
    approvals::remembered::Remembered, bridge, observe::meter::CountedSession, plugins::view::View, tasks::Record,
};
use wharf_policy::{
    access::{call_roots::CallRoots, closed::Nothing, open::OpenRoot},
    auth::Caller,
};

/// How long a person may take to answer a question.
pub const PERSON_TIMEOUT: Duration = Duration::from_secs(600);
/// How long a client may take to list its roots.
const ROOTS_TIMEOUT: Duration = Duration::from_secs(5);
/// The error of a question to a client that cannot answer it any more.
const GONE: &str = "The client is gone.";
const MAX_SUBSCRIPTIONS: usize = 1024;
/// The maximum size of each of `clientInfo` and `capabilities`.
const MAX_DECLARED_BYTES: usize = 16 << 10;
/// What the client says to a question.
type Answered = Charged<Result<Value, RpcError>>;
/// The memory that a session and a subscription take besides their texts.
const SESSION_BYTES: usize = 8 << 10;
const SUBSCRIPTION_BYTES: usize = 256;

/// The number of random characters in the ids of a session's requests to its client.
const ASK_PREFIX_CHARS: usize = 8;

/// The kinds of ids that sessions have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ids {
    /// Nobody but this process knows the id, and the session ends with its connection.
    Random,
    /// The client gets the id, and any wharf with the key can make the session again from it.
    Sealed,
}

pub struct Session {
    pub id: Arc<str>,
    /// See [`Session::digest`].
    digest: OnceLock<String>,
    /// When the id was issued, in milliseconds since 1970.
    pub issued: u64,
    pub revision: Revision,
    pub principal: Principal,
    /// The profile, a named part of the catalog, that the client connected to.
    pub profile: Option<Arc<str>>,
    /// The principal, with the credentials of its latest request.
    caller: Mutex<Caller>,
    pub capabilities: Arc<ClientCapabilities>,
    pub client_info: Option<ClientInfo>,
    level: Mutex<Level>,
    /// Each subscription with what is charged for it.
    subscriptions: Mutex<HashMap<String, Charge>>,
    /// The server's requests that the client has not answered yet.
    pending: Mutex<HashMap<Id, oneshot::Sender<Answered>>>,
    /// A part of the ids of the server's requests. It is another one when the session is made again, so that a late answer to a request of
    /// before is not taken for an answer to another one.
    asks: String,
    /// Of several replicas, the id names the one that asks.
    cluster: Option<Arc<Cluster>>,
    /// Held while an answer is passed on to the replica that asked.
    pub passing_on: AsyncMutex<()>,
    next_id: AtomicU64,
    roots: Roots,
    pub approvals: SessionApprovals,
    last_told: Mutex<Told>,
    last_used: Mutex<Instant>,
    /// Whether there was any request or stream in the session since it was opened.
    used: AtomicBool,
    /// The client that opened the session, or made it again.
    pub party: Party,
    /// The account that is charged for everything stored for the session, and for the messages to its client.
    pub account: Account,
    _charge: Charge,
    /// The client's requests under way, on transports where each request has its own response, such as HTTP.
    pub in_flight: InFlight,
    /// Cancelled when the session ends, which stops its requests and tasks.
    pub ended: CancellationToken,
    /// Ends the stream for messages that belong to no request. A session has one such stream: a new stream replaces the old.
    stream: Mutex<CancellationToken>,
    /// The number of open streams for such messages, possibly with ones that were just replaced, plus the number of tasks under way.
    uses: AtomicU64,
    /// Counts the session in the metrics, if they are on.
    _counted: Option<CountedSession>,
    /// Shows the session to the user.
    pub shown: ShownSession,
}

/// The client's roots. `stale` counts the changes that the client announced. `known` has the roots, with that count and the config's epoch
/// at the time when the client was asked for them.
struct Roots {
    stale: watch::Sender<u64>,
    known: AsyncMutex<Option<((u64, u64), CallRoots)>>,
}

/// The calls that a person approved in this session.
#[derive(Default)]
pub struct SessionApprovals {
    /// Held while the person is asked, so that there is one question at a time.
    pub turn: AsyncMutex<()>,
    pub remembered: Remembered,
}

/// RAII guard of a session in use: the session counts as in use until this is dropped.
pub struct Used(Arc<Session>);

impl Drop for Used {
    fn drop(&mut self) {
        self.0.touch();
        self.0.uses.fetch_sub(1, Ordering::Relaxed);
    }
}

/// RAII guard of an open stream: the client has an open stream until this is dropped.
pub struct Listening {
    _used: Used,
    ended: CancellationToken,
}

impl Listening {
    /// Returns when another stream replaces this one, or the session ends. This is a method, and the field private, so that a future that
    /// waits for it captures the whole guard.
    pub async fn ended(&self) {
        self.ended.cancelled().await;
    }
}

impl Session {
    /// Returns the name of the session in records. The id itself is not recorded, since it works like a token while the session lives.
    pub fn digest(&self) -> &str {
        self.digest.get_or_init(|| short_digest(&*self.id))
    }

    /// Performs the handshake. The memory of the session is charged to the client. Returns the session and the result of `initialize`.
    /// `ids`: which kind of id the session gets.
    pub fn open(
        server: &Arc<Server>,
        params: Initialize,
        caller: &Caller,
        accounts: &Accounts,
        profile: Option<Arc<str>>,
        ids: Ids,
    ) -> Result<(Arc<Self>, String), RpcError> {
        let revision = Revision::negotiate(&params.protocol_version);
        let declared = params.capabilities.as_deref().filter(|raw| raw.get() != "null");
        let capabilities = match declared.map(|raw| ClientCapabilities::read(raw.get(), revision)) {
            None => ClientCapabilities { text: "{}".into(), ..ClientCapabilities::default() },
            Some(Some(capabilities)) => capabilities,
            Some(None) => return Err(RpcError::invalid_params("`capabilities` must be an object")),
        };
        for (what, bytes) in [
            ("clientInfo", params.client_info.as_ref().map_or(0, |info| info.get().len())),
            ("capabilities", capabilities.text.len()),
        ] {
            if bytes > MAX_DECLARED_BYTES {
                return Err(RpcError::invalid_params(format!("`{what}` has more than {MAX_DECLARED_BYTES} bytes")));
            }
        }
        let record = SessionRecord {
            revision,
            capabilities,
            client: params
                .client_info
                .as_ref()
                .and_then(|info| bridge::client_info(info.get()))
                .map(|ClientInfo { name, version, title }| session_id::ClientInfo { name, version, title }),
            // Before the first load the client cannot have seen a list, since requests for lists wait for that load.
            lists: None,
            issued: session_id::now(),
        };
        let ready = *server.published.ready.borrow();
        let view = ready.then(|| server.view(caller, profile.as_deref()));
        let (id, record): (Arc<str>, _) = match ids {
            Ids::Random => (random_id::id()?.into(), record),
            Ids::Sealed => {
                let lists = view.as_ref().map(View::list_digests);
                let issued =
                    view.as_ref().map_or(record.issued, |view| server.remembered.issue(server.digest_of_lists(view)));
                let record = SessionRecord { lists, issued, ..record };
                let to = IssuedTo { principal: caller.principal(), profile: profile.as_deref() };
                (server.session_ids.seal(&record, to)?.into(), record)
            }
        };
        let told = view.map_or(Told::Nothing, |view| Told::Versions(view.list_versions()));
        let session = Self::new(server, id, record, told, caller, accounts, profile)?;
        let instructions = server.instructions(caller, session.profile.as_deref());
        let result = server.encoder(revision).initialize(instructions.as_ref());
        Ok((Arc::new(session), result))
    }

    /// Makes a session again from what its id says. Its log level, subscriptions and roots are those of a new session.
    pub fn reopen(
        server: &Arc<Server>,
        id: &str,
        record: SessionRecord,
        caller: &Caller,
        accounts: &Accounts,
        profile: Option<Arc<str>>,
    ) -> Result<Arc<Self>, RpcError> {
        let told = Told::Sealed { lists: record.lists, issued: record.issued };
        Self::new(server, id.into(), record, told, caller, accounts, profile).map(Arc::new)
    }

    fn new(
        server: &Arc<Server>,
        id: Arc<str>,
        record: SessionRecord,
        told: Told,
        caller: &Caller,
        accounts: &Accounts,
        profile: Option<Arc<str>>,
    ) -> Result<Self, RpcError> {
        let SessionRecord { revision, capabilities, client, issued, .. } = record;
        let account = accounts.session();
        let charge = account.charge(SESSION_BYTES + 2 * MAX_DECLARED_BYTES).map_err(|full| no_room(&full))?;
        let mut asks = random_id::id()?;
        asks.truncate(ASK_PREFIX_CHARS);
        let digest = OnceLock::new();
        let named = || digest.get_or_init(|| short_digest(&*id)).clone();
        let shown = ShownSession::new(&server.observers, named, (client.as_ref(), revision), caller.principal());
        Ok(Self {
            id,
            digest,
            issued,
            revision,
            principal: caller.principal().clone(),
            caller: Mutex::new(caller.clone()),
            profile,
            capabilities: Arc::new(capabilities),
            client_info: client.map(|session_id::ClientInfo { name, version, title }| ClientInfo {
                name,
                version,
                title,
            }),
            level: Mutex::new(Level::Info),
            subscriptions: Mutex::default(),
            pending: Mutex::default(),
            asks,
            cluster: server.cluster.clone(),
            passing_on: AsyncMutex::default(),
            next_id: AtomicU64::new(1),
            approvals: SessionApprovals::default(),
            roots: Roots { stale: watch::channel(0).0, known: AsyncMutex::new(None) },
            last_told: Mutex::new(told),
            last_used: Mutex::new(Instant::now()),
            used: AtomicBool::new(false),
            account,
            party: accounts.party(),
            _charge: charge,
            in_flight: InFlight::default(),
            ended: CancellationToken::new(),
            stream: Mutex::default(),
            uses: AtomicU64::new(0),
            _counted: server.observers.session(revision),
            shown,
        })
    }

    /// Returns how long the session has had no request or task under way and no open stream. None: it has one.
    pub fn idle(&self, now: Instant) -> Option<Duration> {
        let in_use = self.uses.load(Ordering::Relaxed) > 0 || !self.in_flight.is_empty();
        (!in_use).then(|| now.saturating_duration_since(*self.last_used.lock()))
    }

    /// Returns the same duration, or zero if the session has one, and marks the session as just used then.
    pub fn idle_for(&self) -> Duration {
        self.idle(Instant::now()).unwrap_or_else(|| {
            self.touch();
            Duration::ZERO
        })
    }

    /// Marks the session as in use until the returned guard is dropped.
    pub fn used(self: &Arc<Self>) -> Used {
        self.set_used();
        self.uses.fetch_add(1, Ordering::Relaxed);
        Used(Arc::clone(self))
    }

    /// Stores the caller with the credentials of its latest request.
    pub fn seen_as(&self, caller: &Caller) {
        *self.caller.lock() = caller.clone();
    }

    pub fn touch(&self) {
        *self.last_used.lock() = Instant::now();
    }

    /// Returns the owner of the tasks that the session begins.
    pub fn owner(&self) -> Owner {
        Owner::Session(Arc::clone(&self.id))
    }

    /// Whether there was any request or stream in the session since it was opened.
    pub fn is_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    pub fn set_used(&self) {
        self.used.store(true, Ordering::Relaxed);
    }

    /// Ends the stream for messages that belong to no request, because the client has opened another one elsewhere.
    pub fn stop_listening(&self) {
        std::mem::take(&mut *self.stream.lock()).cancel();
    }

    /// Opens the stream for messages that belong to no request, and ends an earlier one.
    pub fn listen(self: &Arc<Self>) -> Listening {
        let own = self.ended.child_token();
        std::mem::replace(&mut *self.stream.lock(), own.clone()).cancel();
        Listening { _used: self.used(), ended: own }
    }

    pub fn log_level(&self) -> Level {
        *self.level.lock()
    }

    pub fn set_log_level(&self, level: Level) {
        *self.level.lock() = level;
    }

    pub fn subscribe(&self, uri: String) -> Result<(), RpcError> {
        let mut subscriptions = self.subscriptions.lock();
        if subscriptions.len() >= MAX_SUBSCRIPTIONS {
            return Err(RpcError::invalid_params(format!(
                "a session subscribes to at most {MAX_SUBSCRIPTIONS} resources"
            )));
        }
        let charge = self.account.charge(SUBSCRIPTION_BYTES + uri.len()).map_err(|full| no_room(&full))?;
        // If the client was subscribed already, the old charge is dropped here.
        subscriptions.insert(uri, charge);
        Ok(())
    }

    pub fn unsubscribe(&self, uri: &str) {
        self.subscriptions.lock().remove(uri);
    }

    /// Handles a notification from the client. Returns whether it says that the roots changed.
    pub fn notified(&self, notification: &Notification) -> bool {
        match notification.known() {
            Some(KnownNotification::Cancelled) => self.in_flight.cancel(notification.params.as_ref()),
            Some(KnownNotification::RootsChanged) => {
                self.roots_changed();
                return true;
            }
            _ => {}
        }
        false
    }

    /// Sets which lists the client knows of.
    pub fn set_told(&self, lists: ListDigests, at: u64) {
        *self.last_told.lock() = Told::Sealed { lists: Some(lists), issued: at };
    }

    /// The roots are others from now on.
    pub fn roots_changed(&self) {
        self.roots.stale.send_modify(|count| *count += 1);
    }

    /// Returns what tells when the roots are others, from now on.
    pub fn roots_changes(&self) -> watch::Receiver<u64> {
        self.roots.stale.subscribe()
    }

    /// Whether this request of the server waits for the client's answer.
    pub fn asks(&self, id: &Id) -> bool {
        self.pending.lock().contains_key(id)
    }

    /// Handles the client's answer to a request of the server. Answers to unknown requests are dropped. `charge`: what is charged for it.
    pub fn take_response(&self, response: Response, charge: Arc<Charge>) {
        let Some(waiting) = response.id.and_then(|id| self.pending.lock().remove(&id)) else { return };
        let outcome = response.outcome.and_then(|raw| {
            let read = serde_json::from_str(raw.get()).map(|Unambiguous(value)| value);
            read.map_err(|error| RpcError::invalid_params(error.to_string()))
        });
        // The call that waited may have given up.
        waiting.send(Charged::new(outcome, charge)).ok();
    }

    /// Sends a request to the client, on the stream of the request that needs the answer. The error is a sentence for the
    /// model.
    pub async fn ask(
        &self,
        outbox: &Outbox,
        method: &str,
        mut params: Option<Value>,
        timeout: Duration,
    ) -> Result<Charged<Value>, String> {
        let rest = format!("{}-{}", self.asks, self.next_id.fetch_add(1, Ordering::Relaxed));
        let id = match &self.cluster {
            Some(cluster) => Id::string(&cluster.question_id(&self.id, &rest)),
            None => Id::string(&format!("wharf-{rest}")),
        };
        if self.revision.has(Feature::PageIds)
            && let Some(object) = params.as_mut().and_then(Value::as_object_mut)
            && object.get("mode").is_some_and(|mode| mode == "url")
        {
            object.insert("elicitationId".into(), id.to_value());
        }
        let (sender, receiver) = oneshot::channel();
        self.pending.lock().insert(id.clone(), sender);
        let mut open = Withdraw { session: self, id: &id, outbox, sent: false };
        outbox.send(request_text(&id, method, params.as_ref())).await.map_err(|_| GONE.to_owned())?;
        open.sent = true;
        let answer = tokio::select! {
            biased;
            answer = tokio::time::timeout(timeout, receiver) => answer,
            // Without an answer, as if its sender had been dropped.
            () = self.ended.cancelled() => return Err(GONE.into()),
        };
        drop(open);
        match answer.map(|answer| answer.map(Charged::into_parts)) {
            Ok(Ok((Ok(value), charge))) => Ok(Charged::new(value, charge)),
            Ok(Ok((Err(error), _))) => Err(format!("The client refused to answer ({method}): {}", error.message)),
            Ok(Err(_)) => Err(GONE.into()),
            Err(_) => Err(format!("The client did not answer within {} s ({method}).", timeout.as_secs())),
        }
    }

    /// Returns the client's roots. Asks for them if they are unknown or have changed. If the client has no usable
    /// roots, the operator's are used. `party`: the client, for what the log says of its roots.
    pub async fn roots(&self, server: &Arc<Server>, outbox: &Outbox, party: Party) -> CallRoots {
        if !self.capabilities.roots {
            return CallRoots::default();
        }
        let mut known = self.roots.known.lock().await;
        loop {
            // The epoch is compared too, since the operator may have changed where roots may lie.
            let now = (*self.roots.stale.borrow(), server.scopes.epoch());
            if let Some((at, roots)) = known.as_ref()
                && *at == now
            {
                return roots.clone();
            }
            let before = known.as_ref().map(|(_, roots)| roots.clone()).unwrap_or_default();
            let reply = self.ask(outbox, "roots/list", None, ROOTS_TIMEOUT).await;
            let listed = reply.and_then(|reply| RootsResult::deserialize(&*reply).map_err(|error| error.to_string()));
            let roots = match listed {
                Ok(listed) => server.scopes.of_client(&listed.roots, &before, (&server.refusals, party)),
                Err(problem) => {
                    server.refusals.say_about(party, "the answer of a client that was asked for its roots", || problem);
                    server.scopes.in_place_of(Nothing::Failed)
                }
            };
            self.shown.set_roots(&roots);
            *known = Some((now, roots));
        }
    }

    /// Whether the client has closed one of these roots.
    pub async fn has_closed(&self, server: &Arc<Server>, outbox: &Outbox, party: Party, held: &CallRoots) -> bool {
        let now = self.roots(server, outbox, party).await;
        let closed = |root: &OpenRoot| now.all.iter().all(|other| !root.same_place(other));
        held.all.iter().any(|root| closed(root) && !server.scopes.is_fixed(root))
    }

    /// Returns when the client has closed one of these roots.
    pub async fn lost(&self, server: &Arc<Server>, outbox: &Outbox, party: Party, held: &CallRoots) {
        let mut stale = self.roots_changes();
        loop {
            if self.has_closed(server, outbox, party, held).await {
                return;
            }
            // The session holds the sender, so this never fails.
            if stale.changed().await.is_err() {
                return;
            }
        }
    }
}

/// RAII guard of an open question. Withdraws the question when the call stops waiting, because the answer took too long or the call was
/// cancelled. So unanswered questions do not pile up, neither here nor in front of a person.
struct Withdraw<'a> {
    session: &'a Session,
    id: &'a Id,
    outbox: &'a Outbox,
    sent: bool,
}

impl Drop for Withdraw<'_> {
    fn drop(&mut self) {
        let is_open = self.session.pending.lock().remove(self.id).is_some();
        if is_open && self.sent {
            // The outbox of a cancelled call is muted, but this notification is about a request of the server, so it
            // gets an outbox of its own.
            self.outbox.of_request().offer(notification::cancelled(self.id, "the answer is not needed any more"));
        }
    }
}

impl Listener for Session {
    fn wants_tools(&self) -> bool {
        true
    }
    fn wants_prompts(&self) -> bool {
        true
    }
    fn wants_resources(&self) -> bool {
        true
    }
    fn wants_resource(&self, uri: &str) -> bool {
        self.subscriptions.lock().keys().any(|subscribed| notifier::covers(subscribed, uri))
    }
    fn wants_task(&self, task: &Record) -> bool {
        self.revision.has(Feature::ClientTasks) && task.owner == self.id
    }
    fn revision(&self) -> Revision {
        self.revision
    }
    fn resources(&self) -> Vec<String> {
        self.subscriptions.lock().keys().cloned().collect()
    }
    fn tag(&self) -> Option<&Id> {
        None
    }
    fn wants_messages(&self, level: Level) -> bool {
        level >= self.log_level()
    }
    fn caller(&self) -> Caller {
        self.caller.lock().clone()
    }
    fn profile(&self) -> Option<&str> {
        self.profile.as_deref()
    }
    fn last_told(&self) -> &Mutex<Told> {
        &self.last_told
    }
    fn was_told(&self, server: &Arc<Server>, lists: ListDigests) {
        server.share_told(self, lists);
    }
}
