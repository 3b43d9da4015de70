//! Builds the scope of a call from the operator's directories and the client's roots: opens them, intersects them and hands them over.

use std::{
    collections::HashSet,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;
use wharf_scope::{Directory, Scope};

use super::{
    call_roots::{CallRoots, Folder},
    capability::Access,
    closed::{Closed, Nothing},
    grants::{
        Grants,
        dirs::{self, Dir, Opened},
    },
    open::{Ceilings, OpenDirectory, OpenRoot},
    overlap::{self, Lessened, Wanted},
    protected::Protected,
    registry::{Entered, Registry, Seen},
    rehearsal::Rehearsal,
};
use wharf_base::{
    leading::{self, Leading, Ways},
    party::{Party, named},
    paths::FileId,
    refusals::Refusals,
    text::quoted,
};
use wharf_egress::{self as egress, Egress};
use wharf_protocol::error::clip_to;

/// What of the config decides which folders and servers plugins may use.
#[derive(Debug, Default)]
pub struct FolderRules {
    /// The folders within which roots of clients may lie, if the config names any.
    pub within: Option<Vec<PathBuf>>,
    /// Roots that the operator has opened.
    pub fixed: Vec<PathBuf>,
    pub from: RootsFrom,
    /// The directories of all plugins.
    pub dirs: Vec<Dir>,
    /// The config file, and what it names.
    pub named: (Option<PathBuf>, Protected),
    /// What else this process executes or obeys, or what stays protected from an earlier config.
    pub own: Protected,
    /// What is protected whichever config is in use.
    pub always: Protected,
    /// The settings for outbound HTTP.
    pub egress: egress::EgressSettings,
}

/// Whose roots are used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RootsFrom {
    /// The client's roots, or the operator's if the client has no usable ones.
    #[default]
    Client,
    /// Only the operator's roots.
    Operator,
    /// The client's and the operator's roots together.
    Both,
}

/// The state that all scopes are built from. Replaced whenever the config changes.
pub struct Scopes {
    state: RwLock<Arc<State>>,
    /// Outbound HTTP of plugins.
    pub egress: Egress,
    /// Whether clients may open folders in the home directory if the config does not say where roots may lie.
    home_ceiling: bool,
    /// The plugin files in the plugin folder, which wharf trusts too.
    dropped_in: RwLock<Vec<PathBuf>>,
    /// What all wharfs of the user protect.
    registry: Registry,
    /// What this one has entered there. None: it enters nothing.
    entered: Option<Mutex<OwnEntry>>,
    /// What is protected from plugins. Replaced when any part of it changes.
    guarded: RwLock<Arc<Guarded>>,
    /// Changes when more or something else is protected.
    grown: watch::Sender<()>,
    /// A cache of the ways to trusted files.
    leading: Leading,
    /// A cache of the ways to files with secrets.
    to_secrets: Leading,
    /// Incremented with each config, so that roots opened under an earlier one are opened again.
    epoch: AtomicU64,
    warned: Mutex<HashSet<(String, Lessened)>>,
    /// The reasons for not using a client's roots that have been logged since the last change of the config.
    logged: Mutex<HashSet<Nothing>>,
    /// The replacements of a test. `None` outside of tests.
    rehearsal: Option<Rehearsal>,
}

struct State {
    ceilings: Ceilings,
    /// The directories that the operator grants to plugins.
    opened: Opened,
    fixed: Vec<Arc<OpenRoot>>,
    from: RootsFrom,
    named: (Option<PathBuf>, Protected),
    own: Protected,
    always: Protected,
}

/// What is protected from plugins, from all sources together.
#[derive(Default)]
struct Guarded {
    trusted: Arc<leading::Places>,
    secret: Arc<leading::Places>,
    registry: Seen,
}

/// What this process has entered into the registry.
#[derive(Default)]
struct OwnEntry {
    protected: Protected,
    _entered: Option<Entered>,
    /// Whether it was said that nothing can be entered.
    said: bool,
}

/// The directories that a call uses. What is in them may become protected while the call runs. Most calls use none.
pub struct Held(Option<Box<HeldDirectories>>);

struct HeldDirectories {
    directories: Vec<(FileId, PathBuf, Access)>,
    grown: watch::Receiver<()>,
}

impl Scopes {
    /// Creates the scopes of a config. `home_ceiling`: whether clients may open folders in the home directory if the config does not say
    /// where roots may lie. `enters`: whether what this config protects is entered into the registry.
    pub fn new(
        rules: FolderRules,
        home_ceiling: bool,
        rehearsal: Option<Rehearsal>,
        (registry, enters): (Registry, bool),
    ) -> Self {
        let answers = rehearsal.as_ref().map(|rehearsal| Arc::clone(&rehearsal.network));
        let egress = Egress::new(rules.egress.clone(), answers);
        let state = RwLock::new(Arc::new(State::new(rules, home_ceiling)));
        let scopes = Self {
            state,
            egress,
            home_ceiling,
            dropped_in: RwLock::default(),
            registry,
            entered: enters.then(Mutex::default),
            guarded: RwLock::default(),
            grown: watch::Sender::new(()),
            leading: Leading::default(),
            to_secrets: Leading::default(),
            epoch: AtomicU64::new(0),
            warned: Mutex::default(),
            logged: Mutex::default(),
            rehearsal,
        };
        scopes.enter();
        scopes.guard();
        scopes
    }

    /// The folders in which wharfs enter what they protect. A task that notices a change in one calls [`Self::look_around`].
    pub fn registry(&self) -> &[PathBuf] {
        self.registry.folders()
    }

    /// Returns the replacements of a test, or `None` outside of tests.
    pub fn rehearsal(&self) -> Option<&Rehearsal> {
        self.rehearsal.as_ref()
    }

    pub fn renew(&self, rules: FolderRules) {
        self.egress.renew(rules.egress.clone());
        let state = Arc::new(State::new(rules, self.home_ceiling));
        *self.state.write() = state;
        self.enter();
        self.guard();
        self.epoch.fetch_add(1, Ordering::Relaxed);
        self.warned.lock().clear();
        self.logged.lock().clear();
    }

    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }

    fn state(&self) -> Arc<State> {
        Arc::clone(&self.state.read())
    }

    /// Whether clients are asked for their roots. The error is the reason if they are not.
    pub fn accepts_roots(&self) -> Result<(), Nothing> {
        let state = self.state();
        match state.from {
            RootsFrom::Operator => Err(Nothing::NotAsked),
            _ if state.ceilings.is_empty() => Err(Nothing::NotAccepted),
            _ => Ok(()),
        }
    }

    /// Returns the operator's roots, which are used if the client has no usable ones. Logs which roots are used, and why.
    pub fn in_place_of(&self, why: Nothing) -> CallRoots {
        let state = self.state();
        // Each reason is logged once until the config is read again, since it is the same for every call.
        if self.logged.lock().insert(why) {
            let fixed: Vec<&str> = state.fixed.iter().map(|root| &*root.shown).collect();
            if fixed.is_empty() {
                let why = why.as_str();
                tracing::info!("no root is open: {why}, and neither --root nor `fixed` in [roots] opens one");
            } else {
                tracing::info!("the roots are those of the operator, {}: {}", fixed.join(", "), why.as_str());
            }
        }
        CallRoots { closed: Closed::Nothing(why), ..CallRoots::of(state.fixed.clone()) }
    }

    /// Adds the operator's roots to those of a client, if both are used.
    pub fn with_fixed(&self, mut roots: CallRoots) -> CallRoots {
        let state = self.state();
        if state.from == RootsFrom::Both {
            roots.all.extend(state.fixed.iter().cloned());
        }
        roots
    }

    /// Whether the operator opened this root, in which case no client can close it.
    pub fn is_fixed(&self, root: &OpenRoot) -> bool {
        self.state().fixed.iter().any(|fixed| fixed.same_place(root))
    }

    /// Returns the roots to use for a client that lists these; the operator's if no listed root can be used. `log`: where refused roots are
    /// logged, and as whose.
    pub fn of_client(
        &self,
        roots: &[wharf_protocol::params::Root],
        before: &CallRoots,
        log: (&Refusals, Party),
    ) -> CallRoots {
        if roots.is_empty() {
            return self.in_place_of(Nothing::Empty);
        }
        let opened = self.open(roots, before, log);
        if !opened.all.is_empty() {
            return self.with_fixed(opened);
        }
        CallRoots { closed: opened.closed, ..self.in_place_of(Nothing::NoneOpened) }
    }

    /// Opens the folders that an embedding program gives a client, instead of asking the client for its roots.
    pub fn open_given(&self, folders: &[Folder]) -> anyhow::Result<CallRoots> {
        let open = |folder: &Folder| {
            let path = std::path::absolute(&folder.path)?;
            let open = match &folder.shown {
                Some(shown) => OpenRoot::shown_at(&path, shown),
                None => OpenRoot::by_operator(&path),
            };
            anyhow::Ok(Arc::new(open.map_err(|why| anyhow::anyhow!("{}: {why}", path.display()))?))
        };
        folders.iter().map(open).collect::<anyhow::Result<_>>().map(CallRoots::of)
    }

    /// Opens the roots that a client lists. Roots that cannot be opened are dropped, and logged in one line; a root that was open before
    /// keeps its handle.
    fn open(
        &self,
        roots: &[wharf_protocol::params::Root],
        before: &CallRoots,
        (refusals, party): (&Refusals, Party),
    ) -> CallRoots {
        let state = self.state();
        let mut opened: Vec<Arc<OpenRoot>> = Vec::new();
        let mut closed = Closed::default();
        let mut refused = Vec::new();
        for root in roots.iter().take(MAX_ROOTS) {
            match state.ceilings.open(&root.uri) {
                Ok(root) => {
                    let known = before.all.iter().find(|known| known.same_place(&root) && known.shown == root.shown);
                    opened.push(known.map_or_else(|| Arc::new(root), Arc::clone));
                }
                Err(why) => {
                    if closed == Closed::default() {
                        closed = Closed::Refused { root: quoted(&root.uri), why: why.told };
                    }
                    refused.push((&root.uri, why.logged));
                }
            }
        }
        if let Some((first, why)) = refused.first() {
            // The reason has to fit into the line as well.
            let first = clip_to(first, MAX_LOGGED_ROOT_CHARS);
            refusals.say_about(party, "roots of a client", || {
                format!("{} of {}; {} is ignored: {why}", refused.len(), roots.len(), quoted(&first))
            });
        }
        if roots.len() > MAX_ROOTS {
            let detail = || format!("it has {}; only the first {MAX_ROOTS} are used", roots.len());
            refusals.say_about(party, "further roots of a client", detail);
        }
        CallRoots { closed, ..CallRoots::of(opened) }
    }

    /// Builds the scope of a call of a plugin. `party` is the client that calls.
    pub fn for_call(&self, plugin: &str, grants: &Grants, roots: &CallRoots, party: Party) -> (Scope, Held) {
        // Destructured completely, so that a new kind of grant fails to compile until it is handled here. `ask` is checked when a plugin
        // asks.
        let Grants { roots: of_client, dirs, env, ask: _, http } = grants;
        let mut wanted = self.state().directories(dirs);
        for path in &wanted.missing {
            tracing::warn!(plugin, "the directory {} does not exist", path.display());
        }
        of_client.apply(roots, &mut wanted);
        // Most plugins have no folders.
        let (directories, held) = if wanted.open.is_empty() {
            (Vec::new(), Held(None))
        } else {
            // Begins before the directories are compared with what is protected, so that nothing is missed.
            let grown = self.grown.subscribe();
            let granted = self.granted(plugin, wanted);
            let held = granted.iter().map(|one| (one.directory.id, one.directory.canonical.clone(), one.access));
            let held = HeldDirectories { directories: held.collect(), grown };
            (handles(granted), Held(Some(Box::new(held))))
        };
        let network = self.egress.network(plugin, &http.0);
        let placeholders = network.iter().flat_map(|network| network.variables());
        let environment = env.apply(|name| self.variable(name));
        let scope = Scope {
            directories,
            environment: environment.into_iter().chain(placeholders).collect(),
            network: network.map(|network| network.of(party)),
            fixed: self.rehearsal.as_ref().map(|rehearsal| rehearsal.fixed).unwrap_or_default(),
        };
        (scope, held)
    }

    /// Returns the value of a variable that a plugin may see.
    fn variable(&self, name: &str) -> Option<String> {
        match &self.rehearsal {
            Some(rehearsal) => rehearsal.environment.get(name).cloned(),
            None => std::env::var(name).ok(),
        }
    }

    /// Whether a variable is not set where wharf was started.
    pub fn is_unset(&self, name: &str) -> bool {
        self.rehearsal.is_none() && std::env::var_os(name).is_none()
    }

    /// Returns why calls of a plugin so far had less access to directories than it is granted, as the log says it.
    pub fn lessened(&self, plugin: &str) -> Vec<String> {
        let warned = self.warned.lock();
        let mut all: Vec<String> =
            warned.iter().filter(|(id, _)| id == plugin).map(|(_, one)| one.to_string()).collect();
        all.sort();
        all
    }

    /// Returns what is wanted, as far as the operator grants it.
    fn granted(&self, plugin: &str, wanted: Wanted) -> Vec<overlap::Granted> {
        let (granted, lessened) = self.intersect(wanted);
        for one in lessened {
            let mut warned = self.warned.lock();
            if warned.insert((plugin.to_owned(), one.clone())) {
                tracing::warn!(plugin, "{one}");
            }
        }
        granted
    }

    fn intersect(&self, wanted: Wanted) -> (Vec<overlap::Granted>, Vec<Lessened>) {
        let guarded = self.look();
        // Looked up for every call that could write, since folders are created, removed and replaced.
        let writes = wanted.open.iter().any(|(_, access)| *access == Access::ReadWrite);
        let trusted = if writes { self.leading.to(&guarded.trusted) } else { Arc::default() };
        overlap::intersect(wanted.open, &wanted.moved, (&trusted, &self.secret(&guarded)))
    }

    /// Returns the ways by which files with secrets can currently be read.
    fn secret(&self, guarded: &Guarded) -> Arc<Ways> {
        if guarded.secret.files.is_empty() { Arc::default() } else { self.to_secrets.to(&guarded.secret) }
    }

    /// Returns what is protected now, after a look at what other wharfs have entered.
    fn look(&self) -> Arc<Guarded> {
        let guarded = Arc::clone(&self.guarded.read());
        if self.registry.is_as(&guarded.registry) { guarded } else { self.guard() }
    }

    /// Takes up what other wharfs have entered since the last call.
    pub fn look_around(&self) {
        self.look();
    }

    /// Puts together what is protected.
    fn guard(&self) -> Arc<Guarded> {
        let mut guarded = self.guarded.write();
        let (mut all, registry) = self.registry.read();
        let state = self.state();
        all.and(&state.named.1);
        all.and(&state.own);
        all.and(&state.always);
        all.files(self.dropped_in.read().iter().cloned());
        let Protected { trusted, secret } = all.sorted();
        let secret = leading::Places { files: secret, trees: Vec::new() };
        // What has not changed stays the same, so that the caches recognize it.
        let of = |now: leading::Places, before: &Arc<leading::Places>| {
            if **before == now { Arc::clone(before) } else { Arc::new(now) }
        };
        let now = Guarded { trusted: of(trusted, &guarded.trusted), secret: of(secret, &guarded.secret), registry };
        let same = Arc::ptr_eq(&now.trusted, &guarded.trusted) && Arc::ptr_eq(&now.secret, &guarded.secret);
        let now = Arc::new(now);
        *guarded = Arc::clone(&now);
        drop(guarded);
        if !same {
            self.grown.send_replace(());
        }
        now
    }

    /// Enters what this process protects into the registry, if that has changed.
    fn enter(&self) {
        let Some(entry) = &self.entered else { return };
        let state = self.state();
        let (file, named) = &state.named;
        let mut all = named.clone();
        all.and(&state.own);
        // A wharf with another environment has other default files.
        all.and(&state.always);
        all.files(self.dropped_in.read().iter().cloned());
        let all = all.sorted();
        let mut entry = entry.lock();
        if entry.protected == all {
            return;
        }
        let kept = file.as_ref().map_or(Ok(()), |file| self.registry.keep(file, named));
        let (entered, done) = self.registry.enter(&all);
        if let Err(error) = kept.and(done)
            && !std::mem::replace(&mut entry.said, true)
        {
            tracing::info!(
                "plugins of other wharfs of this user may write what this one uses, since that cannot be entered: {error:#}; set \
                 XDG_STATE_HOME to a folder that wharf's user may write"
            );
        }
        let said = entry.said;
        *entry = OwnEntry { protected: all, _entered: Some(entered), said };
    }

    /// Removes what this process has entered into the registry, when it serves nothing any more.
    pub fn leave(&self) {
        if let Some(entry) = &self.entered {
            *entry.lock() = OwnEntry::default();
        }
    }

    /// Sets which files in the plugin folder are plugins, since wharf trusts them too.
    pub fn trust(&self, dropped_in: Vec<PathBuf>) {
        if *self.dropped_in.read() == dropped_in {
            return;
        }
        *self.dropped_in.write() = dropped_in;
        self.enter();
        self.guard();
    }

    /// Whether something in a directory of a call is protected now that was not when the call began.
    pub fn has_lost(&self, held: &Held) -> bool {
        let Held(Some(held)) = held else { return false };
        if !held.grown.has_changed().unwrap_or(true) {
            return false;
        }
        let guarded = Arc::clone(&self.guarded.read());
        let (trusted, secret) = (self.leading.to(&guarded.trusted), self.secret(&guarded));
        held.directories.iter().any(|(id, canonical, access)| {
            secret.folders.contains(id) || *access == Access::ReadWrite && trusted.go_through(*id, canonical)
        })
    }

    /// Waits until something in a directory of a call is protected that was not when the call began.
    pub async fn lost(&self, held: &Held) {
        let Held(Some(directories)) = held else { return std::future::pending().await };
        let mut grown = directories.grown.clone();
        loop {
            if self.has_lost(held) {
                return;
            }
            // The sender is a field of this.
            if grown.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    /// Builds the scope in which a plugin lists its tools, resources and prompts. There is no client then, so there are no roots.
    pub fn for_listing(&self, plugin: &str, grants: &Grants) -> Scope {
        // wharf itself lists, so this counts for a party of its own.
        self.for_call(plugin, grants, &CallRoots::default(), named(("lists of", plugin))).0
    }

    /// Returns the problems with a plugin's directories, for `wharf check`.
    pub fn problems(&self, grants: &Grants) -> Vec<String> {
        let wanted = self.state().directories(&grants.dirs);
        let mut problems: Vec<String> =
            wanted.missing.iter().map(|path| format!("the directory {} does not exist", path.display())).collect();
        problems.extend(self.intersect(wanted).1.iter().map(ToString::to_string));
        problems.extend(self.egress.note(&grants.http.0).map(str::to_owned));
        problems
    }
}

/// Returns the handles of what was granted.
fn handles(granted: Vec<overlap::Granted>) -> Vec<Directory> {
    let all: HashSet<String> = granted.iter().map(|one| one.directory.shown.clone()).collect();
    let directories = granted.into_iter().map(|one| {
        let OpenDirectory { shown, real, handle, .. } = one.directory;
        let real = real.filter(|real| !all.contains(real));
        Directory::new(handle, shown, one.access == Access::ReadWrite).also_at(real)
    });
    directories.collect()
}

/// The most roots of one client that are used.
const MAX_ROOTS: usize = 64;
/// The most characters of a root that a message in the log repeats.
const MAX_LOGGED_ROOT_CHARS: usize = 80;

impl State {
    /// Returns the operator's directories for a plugin, in their current state.
    fn directories(&self, dirs: &dirs::Grant) -> Wanted {
        let mut wanted = Wanted::default();
        dirs.apply(&self.opened, &mut wanted);
        wanted
    }

    fn new(rules: FolderRules, home_ceiling: bool) -> Self {
        let FolderRules { within, fixed, from, dirs, named, own, always, egress: _ } = rules;
        let ceilings = match &within {
            Some(paths) => Ceilings::configured(paths),
            None if home_ceiling => Ceilings::home(),
            None => Ceilings::default(),
        };
        let fixed = fixed.iter().filter_map(|path| match OpenRoot::by_operator(path) {
            Ok(open) => Some(Arc::new(open)),
            Err(error) => {
                tracing::warn!("the root {}, of --root or `fixed` in [roots], is not opened: {error}", path.display());
                None
            }
        });
        let fixed = fixed.collect();
        Self { ceilings, opened: Opened::of(&dirs), fixed, from, named, own, always }
    }
}
