//! The state of the server that all connections share.

use std::{
    collections::{HashMap, HashSet},
    hash::{DefaultHasher, Hash, Hasher},
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::Context;
use parking_lot::Mutex;
use tokio::sync::{broadcast, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use wharf_protocol::{Revision, RpcError, Shown, encode::Encoder};

use super::{news::Waiting, remembered::Remembered};
use wharf_base::{
    caller_id::CallerIds,
    ledger::Ledger,
    principal::Principal,
    quota::Quotas,
    random_id,
    refusals::Refusals,
    request_state::Seal,
    session_id::{ListDigests, SessionIds},
    text::{clip, escaped},
};
use wharf_cluster::Cluster;
use wharf_config::config::{Config, SESSION_LIFETIME, Startup, approvals, state::KeptState, undo_folder};
use wharf_egress::outgoing::Outgoing;
use wharf_plugins::{
    approvals::Approvals,
    observe::observers::Observers,
    plugins::{filter::Filter, inbox::Inbox, published::Published, served::Changed, view::View},
    tasks::{Memory, SharedStore, TaskStore, Tasks},
};
use wharf_policy::{
    access::{
        approval::Approver,
        grants::hint::{Allowed, Hint},
        scope::Scopes,
    },
    auth::{self, Auth, Caller},
    profiles::Style,
    roles::Rights,
};

/// How long requests under way may take to finish in a graceful shutdown, or when a client's input has ended. Over HTTP they have
/// more time before wharf stops.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// The longest time that `initialize` and `server/discover` wait for the first load.
const INTRODUCTION_TIMEOUT: Duration = Duration::from_millis(500);
/// The same if a plugin is required: if none loads, the answer says so, and a person may not see it anywhere else.
const REQUIRED_INTRODUCTION_TIMEOUT: Duration = Duration::from_secs(3);

/// How many resource updates a slow listener may be behind before it gets an update of all its resources.
const MAX_UPDATES_BEHIND: usize = 256;

/// The maximum number of plugins that did not load that clients are told of in one text.
const MAX_TOLD_FAILURES: usize = 4;

/// The maximum number of different hints that the operator gets about one plugin.
const MAX_HINTS_PER_PLUGIN: usize = 64;

/// The parts that a server is made from, besides the config.
pub struct Shared {
    /// The config in use.
    pub config: watch::Receiver<Arc<Config>>,
    pub ledger: Arc<Ledger>,
    pub published: Published,
    pub inbox: Inbox,
    pub scopes: Arc<Scopes>,
    pub approver: Option<Arc<dyn Approver>>,
    pub observers: Observers,
    /// What this process kept from its last start, such as the keys that seal what clients carry.
    pub kept: KeptState,
    /// The other processes that serve the same clients, if there are any.
    pub cluster: Option<Arc<Cluster>>,
    /// Identifies this process.
    pub number: [u8; 16],
    pub stop: CancellationToken,
}

pub struct Server {
    pub startup: Arc<Startup>,
    /// The config in use.
    pub config: watch::Receiver<Arc<Config>>,
    /// The config file, named in hints to edit it.
    file: Option<PathBuf>,
    pub ledger: Arc<Ledger>,
    /// What the library publishes, such as the catalog.
    pub published: Published,
    /// What wakes the library.
    pub inbox: Inbox,
    pub scopes: Arc<Scopes>,
    pub seal: Seal,
    /// Seals and opens the ids of sessions over HTTP.
    pub session_ids: SessionIds,
    /// What is remembered of sessions that are not in memory.
    pub remembered: Remembered,
    /// The other processes that serve the same clients, if there are any.
    pub cluster: Option<Arc<Cluster>>,
    /// What they are told next.
    pub news: Waiting,
    /// Makes the ids by which plugins know callers.
    pub caller_ids: CallerIds,
    /// The URIs of resources whose contents changed. `None`: any resource may have changed.
    pub updates: broadcast::Sender<Option<Arc<str>>>,
    /// Cancelled when wharf shuts down. Work under way ends a moment later.
    pub stop: CancellationToken,
    /// Cancelled before `stop`, or together with it: no more clients are accepted over HTTP, and streams that only wait for changes end.
    /// Requests under way may finish.
    pub closing: CancellationToken,
    /// Cancelled before `closing`, or together with it: load balancers learn to send requests elsewhere.
    pub draining: CancellationToken,
    /// Notified when files that the config names, such as certificates, are to be read again.
    pub reread: watch::Sender<()>,
    /// Calls that go on in the background.
    pub tasks: Arc<Tasks>,
    /// All tasks that work for clients; shutdown waits for them.
    pub tracker: TaskTracker,
    encoders: [Arc<Encoder>; Revision::ALL.len()],
    /// The plugins of which one has to load, if the operator named any.
    pub required: OnceLock<Vec<String>>,
    /// Cancelled when the client at stdin has been told that none of them loads.
    pub told: CancellationToken,
    incidents: AtomicU64,
    /// The hints that the operator already got, by plugin.
    hinted: Mutex<HashMap<String, HashSet<String>>>,
    /// Checks access tokens, if the config has `[auth]`.
    pub auth: Option<Arc<Auth>>,
    /// The state of calls that a person has to approve.
    pub approvals: Approvals,
    /// The embedding program's approver, which has to approve every call, if there is one.
    pub approver: Option<Arc<dyn Approver>>,
    /// The observers, which are notified of every run of a plugin.
    pub observers: Observers,
    /// Where what calls change in folders is kept. `None`: nowhere.
    pub undo: Option<wharf_undo::UndoStore>,
    /// The session of calls that belong to no other, as records of changes name it.
    pub own_session: String,
    /// How much callers have used of what the config allows them.
    pub quotas: Arc<Quotas>,
    /// Tells the operator about refused connections and requests, at a limited rate.
    pub refusals: Arc<Refusals>,
}

/// Whether a caller is the user who started this process, at its stdin and stdout.
pub fn is_operator(caller: &Caller) -> bool {
    matches!(caller, Caller::Owner(Principal::Process))
}

fn auth(settings: &Arc<auth::AuthSettings>, config: &Config) -> anyhow::Result<Arc<Auth>> {
    let auth = Auth::new(Arc::clone(settings), &Outgoing::new(&config.egress));
    Ok(Arc::new(auth.context("[auth]")?))
}

impl Server {
    pub fn new(config: &Config, shared: Shared) -> anyhow::Result<Arc<Self>> {
        let Shared {
            config: current,
            ledger,
            published,
            inbox,
            scopes,
            approver,
            observers,
            kept,
            cluster,
            number,
            stop,
        } = shared;
        let startup = Arc::clone(&config.startup);
        let store: Box<dyn TaskStore> = match &cluster {
            None => Box::new(Memory::default()),
            Some(cluster) => Box::new(SharedStore::new(Arc::clone(cluster))),
        };
        let undo = undo_folder().zip(startup.undo_bytes);
        let closing = stop.child_token();
        let draining = closing.child_token();
        Ok(Arc::new(Self {
            ledger,
            published,
            inbox,
            scopes,
            auth: startup.auth.as_ref().map(|settings| auth(settings, config)).transpose()?,
            approvals: Approvals::new(approvals::file(), number),
            approver,
            observers,
            seal: Seal::new(&kept.keys),
            session_ids: SessionIds::new(&kept.keys, SESSION_LIFETIME)?,
            remembered: Remembered::open(kept.sessions, SESSION_LIFETIME),
            // The ids change with the key that seals, once.
            caller_ids: CallerIds::with_key(kept.keys.first())?,
            cluster,
            news: Waiting::default(),
            updates: broadcast::channel(MAX_UPDATES_BEHIND).0,
            stop,
            closing,
            draining,
            reread: watch::Sender::new(()),
            tasks: Tasks::new(store, startup.total_tasks, startup.total_concurrency / 2),
            tracker: TaskTracker::new(),
            encoders: Revision::ALL.map(|revision| Arc::new(Encoder::new(revision, startup.face.info.clone()))),
            file: config.file.clone(),
            config: current,
            startup,
            required: OnceLock::new(),
            told: CancellationToken::new(),
            incidents: AtomicU64::new(0),
            hinted: Mutex::default(),
            undo: undo.map(|(folder, bytes)| wharf_undo::UndoStore::new(folder, bytes as u64)),
            own_session: format!("{:012x}", random_id::number() >> 16),
            quotas: Arc::default(),
            refusals: Arc::default(),
        }))
    }

    pub fn encoder(&self, revision: Revision) -> &Arc<Encoder> {
        let [v2024_11, v2025_03, v2025_06, v2025_11, v2026_07] = &self.encoders;
        match revision {
            Revision::V2024_11_05 => v2024_11,
            Revision::V2025_03_26 => v2025_03,
            Revision::V2025_06_18 => v2025_06,
            Revision::V2025_11_25 => v2025_11,
            Revision::V2026_07_28 => v2026_07,
        }
    }

    /// Returns the caller's rights under the roles of the config in use. None: the caller may use everything.
    pub fn rights(&self, caller: &Caller) -> Option<Rights> {
        let identity = caller.identity()?;
        self.config.borrow().roles.rights(identity)
    }

    /// Returns what a client sees of the current catalog. `profile`: the profile that the client connected to.
    pub fn view(&self, caller: &Caller, profile: Option<&str>) -> View {
        let catalog = Arc::clone(&self.published.catalog.borrow());
        let rights = self.rights(caller);
        View { catalog, filter: Filter { rights, profile: self.config.borrow().profiles.find(profile) } }
    }

    /// Returns a digest of all lists, and of what decides who sees which of them: roles and profiles, which only the config changes.
    pub fn digest_of_lists(&self, view: &View) -> u64 {
        let mut hasher = DefaultHasher::new();
        view.catalog.lists.digests(&Filter::default()).short().hash(&mut hasher);
        self.config.borrow().digest.hash(&mut hasher);
        hasher.finish()
    }

    /// Stores when lists change, for as long as wharf runs.
    pub async fn follow_lists(self: Arc<Self>) {
        let (mut catalog, mut config) = (self.published.catalog.clone(), self.config.clone());
        self.published.catalog().await;
        loop {
            catalog.mark_unchanged();
            config.mark_unchanged();
            let view = View { catalog: Arc::clone(&catalog.borrow()), filter: Filter::default() };
            self.remembered.lists(self.digest_of_lists(&view));
            tokio::select! {
                Ok(()) = catalog.changed() => {}
                Ok(()) = config.changed() => {}
                () = self.stop.cancelled() => return,
            }
        }
    }

    /// Returns which lists may differ from those that a client knows, if all that is known of the client is its session's id: the digests
    /// of the lists at the time when the id was issued, and that time.
    pub fn lists_since(&self, view: &View, (lists, issued): (Option<ListDigests>, u64)) -> Changed {
        // Of several replicas, each knows only when its own lists changed. What the client was told since is stored for all of them.
        let were_others = self.cluster.is_none() && self.remembered.lists(self.digest_of_lists(view)) >= issued;
        match lists.filter(|_| !were_others) {
            None => Changed::ALL,
            Some([tools, resources, prompts]) => {
                let now = view.list_digests();
                let [tools, resources, prompts] = [tools != now[0], resources != now[1], prompts != now[2]];
                Changed { tools, resources, prompts }
            }
        }
    }

    /// Returns how tools are listed for a client.
    pub fn style(&self, profile: Option<&str>) -> Style {
        self.config.borrow().profiles.find(profile).map_or(Style::Full, |profile| profile.style)
    }

    /// Returns an error if there is no profile with this name.
    pub fn check_profile(&self, name: &str) -> anyhow::Result<()> {
        let profiles = &self.config.borrow().profiles;
        let known = || profiles.names().collect::<Vec<_>>().join(", ");
        anyhow::ensure!(profiles.has(name), "there is no profile `{}`; there are: {}", escaped(&clip(name)), known());
        Ok(())
    }

    /// Returns the instructions for models about all tools together.
    pub fn instructions(&self, caller: &Caller, profile: Option<&str>) -> Option<Shown> {
        let view = self.view(caller, profile);
        let failed = self.failed(&view).into_iter().map(|failed| format!("The {failed}."));
        let mut own: Vec<String> = failed.collect();
        let by_operator = self.startup.face.instructions.as_deref();
        if own.is_empty() {
            return view.instructions(by_operator);
        }
        // What failed comes first, since clients cut long instructions.
        own.extend(by_operator.map(ToOwned::to_owned));
        view.instructions(Some(&own.join("\n\n")))
    }

    /// Returns a sentence, without a full stop, for each plugin that did not load and of which the caller of the view may know.
    pub fn failed(&self, view: &View) -> Vec<String> {
        let mut failed = self.published.failed(|id| view.may_know(id));
        let more = failed.len().saturating_sub(MAX_TOLD_FAILURES);
        if more > 0 {
            failed.truncate(MAX_TOLD_FAILURES);
            failed.push(format!("server has {more} more plugins that did not load"));
        }
        failed
    }

    /// Waits a moment for the first load, before a client gets the instructions, which it gets only once.
    pub async fn ready_to_introduce(&self) {
        let requires = self.required.get().is_some_and(|ids| !ids.is_empty());
        // If loading takes longer, the client gets what is loaded by then.
        self.published.wait(if requires { REQUIRED_INTRODUCTION_TIMEOUT } else { INTRODUCTION_TIMEOUT }).await;
    }

    /// Returns why none of the required plugins loads, if that is known, with `details` for the operator. None: one of them does, or
    /// none is required.
    pub fn none_loads(&self, details: bool) -> Option<String> {
        let required = self.required.get().filter(|ids| !ids.is_empty())?;
        match self.published.none_of(required, details)?.as_slice() {
            [one] => Some(one.clone()),
            all => Some(format!("no plugin on the command line loads:\n  {}", all.join("\n  "))),
        }
    }

    /// Refuses the handshake and the lists of the user who started this process if no required plugin loads: many clients show a person
    /// only these errors, and no output of a process that ends. Some show them to models.
    pub fn admit_introduction(&self, caller: &Caller) -> Result<(), RpcError> {
        match self.none_loads(false).filter(|_| is_operator(caller)) {
            Some(problem) => Err(RpcError::internal(problem)),
            None => Ok(()),
        }
    }

    /// Logs a defect of wharf itself, and returns the error for the client, with a number that the operator finds in the log.
    pub fn incident(&self, detail: &str) -> RpcError {
        let number = self.incidents.fetch_add(1, Ordering::Relaxed) + 1;
        let id = format!("{}-{number}", std::process::id());
        tracing::error!(incident = id, "a defect of wharf: {}", escaped(detail));
        RpcError::internal(format!("internal error; the operator finds it in the log as incident {id}"))
    }

    /// Logs for the operator, once for each text, what a plugin was refused, and what can allow it. A refusal that nothing can allow is
    /// logged however many hints were logged before.
    pub fn hint(&self, plugin: &str, Hint { text, allowed }: Hint) {
        let mut hinted = self.hinted.lock();
        let told = hinted.entry(plugin.to_owned()).or_default();
        if (allowed == Allowed::Never || told.len() < MAX_HINTS_PER_PLUGIN) && told.insert(text.clone()) {
            let Allowed::In(table) = allowed else { return tracing::warn!(plugin, "{text}") };
            let file = self.file.as_ref().map_or("the config file".into(), |file| file.display().to_string());
            tracing::warn!(plugin, "{text}; to allow it, edit {} in {file}", table.header(plugin));
        }
    }
}
