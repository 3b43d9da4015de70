//! The legacy era: a handshake, then a session that remembers the client's revision, capabilities, level, subscriptions
//! and roots, and through which the server can ask.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{Mutex as AsyncMutex, oneshot, watch};
use tokio_util::sync::CancellationToken;
use wharf_protocol::{
    Feature, Id, Level, Notification, Response, Revision, RpcError,
    capability::ClientCapabilities,
    message::request_text,
    notification::{self, Told},
    params::{Initialize, RootsResult},
};

use super::{in_flight::InFlight, notifier, notifier::Listener, outbox::Outbox, server::Server};
use crate::{
    access::{
        open::OpenRoot,
        scope::{CallRoots, Nothing},
    },
    base::{
        ledger::{Account, Charge, no_room},
        principal::{Owner, Principal},
        random_id,
        text::escaped,
    },
    plugins::catalog::Generations,
    tasks::Record,
};

/// How long a person may take to answer.
pub const PERSON: Duration = Duration::from_secs(600);
/// How long a client may take to list its roots.
const ROOTS: Duration = Duration::from_secs(5);
const MAX_SUBSCRIPTIONS: usize = 1024;
/// How much a client may say of itself, in each of the two members for that.
const MAX_DECLARED_BYTES: usize = 16 << 10;
/// What a session and a subscription take besides.
const SESSION_BYTES: usize = 8 << 10;
const SUBSCRIPTION_BYTES: usize = 256;

pub struct Session {
    pub id: Arc<str>,
    pub revision: Revision,
    pub principal: Principal,
    pub capabilities: Arc<ClientCapabilities>,
    pub client_info: Option<Arc<str>>,
    level: Mutex<Level>,
    /// Each with what is paid for it.
    subscriptions: Mutex<HashMap<String, Charge>>,
    /// Requests of ours that the client has not answered yet.
    pending: Mutex<HashMap<Id, oneshot::Sender<Result<Value, RpcError>>>>,
    next_id: AtomicU64,
    roots: Roots,
    last_told: Mutex<Option<Generations>>,
    last_used: Mutex<Instant>,
    /// Whether anything was done in it since it was opened.
    used: AtomicBool,
    /// Pays for what is kept for it and said in it.
    pub account: Account,
    _charge: Charge,
    /// The client's requests under way, where the session has a stream for each of them.
    pub in_flight: InFlight,
    /// Cancelled when the session ends, and with it everything it does.
    pub ended: CancellationToken,
    /// The one stream on which unrelated messages go; a new one takes the place of the old.
    stream: Mutex<CancellationToken>,
    /// Such streams that are open: none, or one and those that it has just replaced.
    listening: AtomicU64,
}

/// What the client has opened. `stale` counts its announcements; what is known is from before or after the last one.
struct Roots {
    stale: watch::Sender<u64>,
    known: AsyncMutex<Option<((u64, u64), CallRoots)>>,
}

/// Somebody listens, until this is dropped.
pub struct Listening {
    session: Arc<Session>,
    /// Cancelled when another stream takes the place of this one, or the session ends.
    pub ended: CancellationToken,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.session.touch();
        self.session.listening.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Session {
    /// Settles the handshake: the session, and the result of `initialize`.
    pub fn open(
        server: &Arc<Server>,
        params: Initialize,
        principal: &Principal,
    ) -> Result<(Arc<Self>, String), RpcError> {
        let revision = Revision::negotiate(&params.protocol_version);
        let declared = params.capabilities.as_deref().filter(|raw| raw.get() != "null");
        let capabilities = match declared.map(|raw| ClientCapabilities::read(raw, revision)) {
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
        let account = server.ledger.session();
        let charge = account.charge(SESSION_BYTES + 2 * MAX_DECLARED_BYTES).map_err(|full| no_room(&full))?;
        let id = random_id::id()?.into();
        let session = Self {
            id,
            revision,
            principal: principal.clone(),
            capabilities: Arc::new(capabilities),
            client_info: params.client_info.as_ref().map(|info| info.get().into()),
            level: Mutex::new(Level::Info),
            subscriptions: Mutex::default(),
            pending: Mutex::default(),
            next_id: AtomicU64::new(1),
            roots: Roots { stale: watch::channel(0).0, known: AsyncMutex::new(None) },
            // Before the first load there is nothing to be told of: lists wait for it.
            last_told: Mutex::new(
                server.published.ready.borrow().then(|| server.published.catalog.borrow().generations),
            ),
            last_used: Mutex::new(Instant::now()),
            used: AtomicBool::new(false),
            account,
            _charge: charge,
            in_flight: InFlight::default(),
            ended: CancellationToken::new(),
            stream: Mutex::default(),
            listening: AtomicU64::new(0),
        };
        let result = server.encoder(revision).initialize(server.instructions());
        Ok((Arc::new(session), result))
    }

    /// Since when nothing was asked in it, nothing is under way and nobody listens.
    pub fn idle_for(&self) -> Duration {
        if self.listening.load(Ordering::Relaxed) > 0 || !self.in_flight.is_empty() {
            self.touch();
        }
        self.last_used.lock().elapsed()
    }

    pub fn touch(&self) {
        *self.last_used.lock() = Instant::now();
    }

    /// To whom its tasks belong.
    pub fn owner(&self) -> Owner {
        Owner::Session(Arc::clone(&self.id))
    }

    /// Whether a request was made in it, or somebody listened.
    pub fn is_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    pub fn set_used(&self) {
        self.used.store(true, Ordering::Relaxed);
    }

    /// Takes the place of an earlier stream.
    pub fn listen(self: &Arc<Self>) -> Listening {
        self.set_used();
        let own = self.ended.child_token();
        std::mem::replace(&mut *self.stream.lock(), own.clone()).cancel();
        self.listening.fetch_add(1, Ordering::Relaxed);
        Listening { session: Arc::clone(self), ended: own }
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
        // Of a second one for the same, what was paid for the first is given back.
        subscriptions.insert(uri, charge);
        Ok(())
    }

    pub fn unsubscribe(&self, uri: &str) {
        self.subscriptions.lock().remove(uri);
    }

    /// Takes a notification of the client that concerns the session; true if its roots changed.
    pub fn notified(&self, notification: &Notification) -> bool {
        let roots = notification.known() == Some(Told::RootsChanged);
        if roots {
            self.roots.stale.send_modify(|count| *count += 1);
        }
        roots
    }

    /// Takes the client's answer to a request of ours; unknown ones are dropped.
    pub fn take_response(&self, response: Response) {
        let Some(waiting) = response.id.and_then(|id| self.pending.lock().remove(&id)) else { return };
        let outcome = response.outcome.and_then(|raw| {
            serde_json::from_str(raw.get()).map_err(|error| RpcError::invalid_params(error.to_string()))
        });
        // Who waited may have given up.
        waiting.send(outcome).ok();
    }

    /// Asks the client, on the stream of the request that needs the answer. The error is a sentence for the model.
    pub async fn ask(
        &self,
        outbox: &Outbox,
        method: &str,
        mut params: Option<Value>,
        timeout: Duration,
    ) -> Result<Value, String> {
        let id = Id::string(&format!("wharf-{}", self.next_id.fetch_add(1, Ordering::Relaxed)));
        if self.revision.has(Feature::PageIds)
            && let Some(object) = params.as_mut().and_then(Value::as_object_mut)
            && object.get("mode").is_some_and(|mode| mode == "url")
        {
            object.insert("elicitationId".into(), id.to_value());
        }
        let (sender, receiver) = oneshot::channel();
        self.pending.lock().insert(id.clone(), sender);
        let forget = Forget { session: self, id: &id };
        outbox.send(request_text(&id, method, params.as_ref())).await.map_err(|_| "The client is gone.".to_owned())?;
        let answer = tokio::time::timeout(timeout, receiver).await;
        drop(forget);
        match answer {
            Ok(Ok(Ok(value))) => Ok(value),
            Ok(Ok(Err(error))) => Err(format!("The client refused to answer ({method}): {}", error.message)),
            Ok(Err(_)) => Err("The client is gone.".into()),
            Err(_) => {
                outbox.offer(notification::cancelled(&id, "no answer in time"));
                Err(format!("The client did not answer within {} s ({method}).", timeout.as_secs()))
            }
        }
    }

    /// What the client has opened, asked for if it is not known or no longer true; the operator's in its place if that is nothing.
    pub async fn roots(&self, server: &Arc<Server>, outbox: &Outbox) -> CallRoots {
        if !self.capabilities.roots {
            return CallRoots::default();
        }
        let mut known = self.roots.known.lock().await;
        loop {
            // The operator may have changed where roots may lie.
            let now = (*self.roots.stale.borrow(), server.scopes.epoch());
            if let Some((at, roots)) = known.as_ref()
                && *at == now
            {
                return roots.clone();
            }
            let before = known.as_ref().map(|(_, roots)| roots.clone()).unwrap_or_default();
            let reply = self.ask(outbox, "roots/list", None, ROOTS).await;
            let listed =
                reply.and_then(|reply| serde_json::from_value::<RootsResult>(reply).map_err(|error| error.to_string()));
            let roots = match listed {
                Ok(listed) => server.scopes.of_client(&listed.roots, &before),
                Err(problem) => {
                    tracing::warn!("the client's roots are not known: {}", escaped(&problem));
                    server.scopes.in_place_of(Nothing::Failed)
                }
            };
            *known = Some((now, roots));
        }
    }

    /// Ends when the client has closed one of these roots.
    pub async fn lost(&self, server: &Arc<Server>, outbox: &Outbox, held: &CallRoots) {
        let mut stale = self.roots.stale.subscribe();
        loop {
            let now = self.roots(server, outbox).await;
            let closed = |root: &OpenRoot| now.0.iter().all(|other| !root.same_place(other));
            if held.0.iter().any(|root| closed(root) && !server.scopes.is_fixed(root)) {
                return;
            }
            // The session holds the other end, so this never fails.
            if stale.changed().await.is_err() {
                return;
            }
        }
    }
}

/// Forgets a question whose asker is gone, so that nothing waits for ever.
struct Forget<'a> {
    session: &'a Session,
    id: &'a Id,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.session.pending.lock().remove(self.id);
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
        self.revision.has(Feature::ClientTasks) && task.owner == self.owner()
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
    fn last_told(&self) -> &Mutex<Option<Generations>> {
        &self.last_told
    }
}
