//! Builds the scope of a call: the operator's directories and the client's roots, opened, intersected, handed over.

use std::{
    collections::HashSet,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::{Mutex, RwLock};
use wharf_sandbox::{Directory, Scope};

use super::{
    capability::Access,
    grants::{
        Grants,
        dirs::{self, Dir, Opened},
    },
    open::{Ceilings, Now, OpenRoot},
    overlap::{self, Lessened, Wanted},
    rehearsal::Rehearsal,
    within::{Within, narrowed},
};
use crate::{
    base::{
        party::{Party, named},
        paths::{FileId, Leading},
        text::escaped,
    },
    egress::{self, Egress},
};

/// What the config says about places on disk.
#[derive(Debug, Default)]
pub struct Places {
    /// Where the roots of clients may lie, if the config says so.
    pub within: Option<Vec<PathBuf>>,
    /// Roots that the operator has opened.
    pub fixed: Vec<PathBuf>,
    pub from: RootsFrom,
    /// The directories of all plugins.
    pub dirs: Vec<Dir>,
    /// What wharf trusts: no plugin may write these files, or the folders that lead to them. A last component `*` stands for
    /// everything in the folder.
    pub trusted: Vec<PathBuf>,
    /// The files of secrets, from which no plugin may read.
    pub secret: Vec<PathBuf>,
    /// What the config says about the way out.
    pub egress: egress::Settings,
}

/// Whose roots count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RootsFrom {
    /// The client's; the operator's if there are no usable ones of the client.
    #[default]
    Client,
    /// Only the operator's.
    Operator,
    /// The client's and the operator's together.
    Both,
}

impl RootsFrom {
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        match text {
            "client" => Ok(Self::Client),
            "operator" => Ok(Self::Operator),
            "both" => Ok(Self::Both),
            other => anyhow::bail!("`from`: `{other}` is none of \"client\", \"operator\", \"both\""),
        }
    }
}

/// Why there are no usable roots of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Nothing {
    NotDeclared,
    NotAccepted,
    NotAsked,
    Failed,
    Empty,
    NoneOpened,
}

impl Nothing {
    fn as_str(self) -> &'static str {
        match self {
            Self::NotDeclared => "the client has no roots",
            Self::NotAccepted => "roots of clients are not accepted here (`within` in [roots] says where they may lie)",
            Self::NotAsked => "`from` in [roots] says so",
            Self::Failed => "the client did not say which roots it has",
            Self::Empty => "the client has opened no folder",
            Self::NoneOpened => "none of the client's roots can be opened",
        }
    }
}

/// What all scopes depend on. Renewed whenever the config is.
pub struct Scopes {
    state: RwLock<Arc<State>>,
    /// What plugins send over HTTP.
    pub egress: Egress,
    /// Whether clients may open folders in the home directory if the operator does not say where roots may lie.
    home_ceiling: bool,
    dropped_in: RwLock<Vec<PathBuf>>,
    leading: Mutex<Leading>,
    /// The same for the files of secrets.
    to_secrets: Mutex<Leading>,
    /// Grows with each config, so that roots that were opened under an earlier one are opened again.
    epoch: AtomicU64,
    warned: Mutex<HashSet<(String, Lessened)>>,
    /// The reasons that the log has given already, since the last config, for not using a client's roots.
    told: Mutex<HashSet<Nothing>>,
    /// What a test decides. None: this is no test.
    rehearsal: Option<Rehearsal>,
}

struct State {
    ceilings: Ceilings,
    /// The directories that the operator grants to plugins.
    opened: Opened,
    fixed: Vec<Arc<OpenRoot>>,
    from: RootsFrom,
    trusted: Vec<PathBuf>,
    secret: Vec<PathBuf>,
}

/// The roots of a call: the client's, the operator's, both, or none if its plugin was granted none.
#[derive(Clone, Default)]
pub struct CallRoots {
    pub all: Vec<Arc<OpenRoot>>,
    /// In which folders they may lie. None: wherever they are.
    pub within: Option<Arc<[Within]>>,
}

/// A folder that a program opens to a client.
#[derive(Debug, Clone)]
pub struct Folder {
    pub path: PathBuf,
    /// The absolute path at which plugins see it, if that is another one.
    pub shown: Option<String>,
}

impl CallRoots {
    fn of(all: Vec<Arc<OpenRoot>>) -> Self {
        Self { all, within: None }
    }

    /// The directories that they are now, with this right or less.
    pub fn directories(&self, access: Access) -> impl Iterator<Item = (Now, Access)> {
        self.all.iter().flat_map(move |root| match &self.within {
            None => vec![(root.now(), access)],
            Some(within) => narrowed(root.now(), access, within),
        })
    }

    /// Whether any of them may be written, with this right, if it is there when the call runs.
    pub fn may_write(&self, access: Access) -> bool {
        let narrowed = |within: &Arc<[Within]>| within.iter().any(|one| one.access == Access::ReadWrite);
        access == Access::ReadWrite && !self.all.is_empty() && self.within.as_ref().is_none_or(narrowed)
    }

    /// The paths of the directories, and what may be done there.
    pub fn shown(&self, access: Access) -> Vec<(String, Access)> {
        let plain = || self.all.iter().map(|root| (root.shown.clone(), access)).collect();
        let Some(_) = self.within else { return plain() };
        let there = |(now, access)| match now {
            Now::There(directory) => Some((directory.shown, access)),
            Now::Elsewhere(_) | Now::Gone => None,
        };
        self.directories(access).filter_map(there).collect()
    }
}

impl Scopes {
    /// `home_ceiling`: whether clients may open what lies in the home directory if the operator says nothing.
    pub fn new(places: Places, home_ceiling: bool, rehearsal: Option<Rehearsal>) -> Self {
        let answers = rehearsal.as_ref().map(|rehearsal| Arc::clone(&rehearsal.network));
        let egress = Egress::new(places.egress.clone(), answers);
        let state = RwLock::new(Arc::new(State::new(places, home_ceiling)));
        Self {
            state,
            egress,
            home_ceiling,
            dropped_in: RwLock::default(),
            leading: Mutex::default(),
            to_secrets: Mutex::default(),
            epoch: AtomicU64::new(0),
            warned: Mutex::default(),
            told: Mutex::default(),
            rehearsal,
        }
    }

    /// What a test decides. None: this is no test.
    pub fn rehearsal(&self) -> Option<&Rehearsal> {
        self.rehearsal.as_ref()
    }

    pub fn renew(&self, places: Places) {
        self.egress.renew(places.egress.clone());
        let state = Arc::new(State::new(places, self.home_ceiling));
        *self.state.write() = state;
        self.epoch.fetch_add(1, Ordering::Relaxed);
        self.warned.lock().clear();
        self.told.lock().clear();
    }

    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }

    fn state(&self) -> Arc<State> {
        Arc::clone(&self.state.read())
    }

    /// Whether clients are asked for their roots. The error says why not.
    pub fn accepts_roots(&self) -> Result<(), Nothing> {
        let state = self.state();
        match state.from {
            RootsFrom::Operator => Err(Nothing::NotAsked),
            _ if state.ceilings.is_empty() => Err(Nothing::NotAccepted),
            _ => Ok(()),
        }
    }

    /// The operator's roots, which are used if there are no usable ones of the client. Logs which they are, and why.
    pub fn in_place_of(&self, why: Nothing) -> CallRoots {
        let state = self.state();
        // Logged once until the config is read again, since it is the same for every call.
        if self.told.lock().insert(why) {
            let fixed: Vec<&str> = state.fixed.iter().map(|root| &*root.shown).collect();
            if fixed.is_empty() {
                let why = why.as_str();
                tracing::info!("no root is open: {why}, and neither --root nor `fixed` in [roots] opens one");
            } else {
                tracing::info!("the roots are those of the operator, {}: {}", fixed.join(", "), why.as_str());
            }
        }
        CallRoots::of(state.fixed.clone())
    }

    /// Adds the operator's roots to those of a client, if both count.
    pub fn with_fixed(&self, mut roots: CallRoots) -> CallRoots {
        let state = self.state();
        if state.from == RootsFrom::Both {
            roots.all.extend(state.fixed.iter().cloned());
        }
        roots
    }

    /// Whether the operator opened this root, so that no client can close it.
    pub fn is_fixed(&self, root: &OpenRoot) -> bool {
        self.state().fixed.iter().any(|fixed| fixed.same_place(root))
    }

    /// The roots that count for a client that lists these; the operator's if none of them can be used.
    pub fn of_client(&self, roots: &[wharf_protocol::params::Root], before: &CallRoots) -> CallRoots {
        if roots.is_empty() {
            return self.in_place_of(Nothing::Empty);
        }
        let opened = self.open(roots, before);
        if opened.all.is_empty() { self.in_place_of(Nothing::NoneOpened) } else { self.with_fixed(opened) }
    }

    /// Opens folders that an embedding program gives a client, in place of asking the client for its roots.
    pub fn open_given(&self, folders: &[Folder]) -> anyhow::Result<CallRoots> {
        let open = |folder: &Folder| {
            let path = std::path::absolute(&folder.path)?;
            let mut open = OpenRoot::by_operator(&path).map_err(|why| anyhow::anyhow!("{}: {why}", path.display()))?;
            if let Some(shown) = &folder.shown {
                open.shown.clone_from(shown);
            }
            anyhow::Ok(Arc::new(open))
        };
        folders.iter().map(open).collect::<anyhow::Result<_>>().map(CallRoots::of)
    }

    /// Opens what a client calls its roots; what cannot be opened is dropped with a warning. Roots that were open before
    /// keep their handles.
    fn open(&self, roots: &[wharf_protocol::params::Root], before: &CallRoots) -> CallRoots {
        let state = self.state();
        let mut opened: Vec<Arc<OpenRoot>> = Vec::new();
        for root in roots.iter().take(MAX_ROOTS) {
            match state.ceilings.open(&root.uri) {
                Ok(root) => {
                    let known = before.all.iter().find(|known| known.same_place(&root) && known.shown == root.shown);
                    opened.push(known.map_or_else(|| Arc::new(root), Arc::clone));
                }
                Err(why) => tracing::warn!("root {} is ignored: {why}", escaped(&root.uri)),
            }
        }
        if roots.len() > MAX_ROOTS {
            tracing::warn!("the client has {} roots; only the first {MAX_ROOTS} count", roots.len());
        }
        CallRoots::of(opened)
    }

    /// The scope of a call of a plugin. `party`: the client that calls.
    pub fn for_call(&self, plugin: &str, grants: &Grants, roots: &CallRoots, party: Party) -> Scope {
        // Destructured completely, so that whoever adds a kind of grant decides here what it opens. `ask` is checked when a
        // plugin asks.
        let Grants { roots: of_client, dirs, env, ask: _, http } = grants;
        let mut wanted = self.state().directories(dirs);
        for path in &wanted.missing {
            tracing::warn!(plugin, "the directory {} is not there", path.display());
        }
        of_client.apply(roots, &mut wanted);
        let (granted, lessened) = self.intersect(wanted);
        for one in lessened {
            let mut warned = self.warned.lock();
            if warned.insert((plugin.to_owned(), one.clone())) {
                tracing::warn!(plugin, "{one}");
            }
        }
        let directories = granted.into_iter().filter_map(|one| {
            let handle = one.directory.handle.try_clone().ok()?;
            Some(Directory::new(handle, one.directory.shown, one.access == Access::ReadWrite))
        });
        let network = self.egress.network(plugin, &http.0);
        let placeholders = network.iter().flat_map(|network| network.variables());
        let environment = match &self.rehearsal {
            Some(rehearsal) => env.apply(|name| rehearsal.environment.get(name).cloned()),
            None => env.apply(|name| std::env::var(name).ok()),
        };
        Scope {
            directories: directories.collect(),
            environment: environment.into_iter().chain(placeholders).collect(),
            network: network.map(|network| network.of(party)),
            fixed: self.rehearsal.as_ref().map(|rehearsal| rehearsal.fixed).unwrap_or_default(),
        }
    }

    fn intersect(&self, wanted: Wanted) -> (Vec<overlap::Granted>, Vec<Lessened>) {
        // Looked up for every call that could write, since folders come, go and are replaced.
        let writes = wanted.open.iter().any(|(_, access)| *access == Access::ReadWrite);
        let trusted = if writes { self.trusted() } else { Arc::default() };
        let secret = if wanted.open.is_empty() { Arc::default() } else { self.secret() };
        overlap::intersect(wanted.open, &wanted.moved, (&trusted, &secret))
    }

    /// The folders through which the files of secrets can be read, as they are now.
    fn secret(&self) -> Arc<HashSet<FileId>> {
        let state = self.state();
        if state.secret.is_empty() { Arc::default() } else { self.to_secrets.lock().to(state.secret.iter()) }
    }

    /// The folders through which the files that wharf trusts can be changed, as they are now.
    fn trusted(&self) -> Arc<HashSet<FileId>> {
        let (state, dropped_in) = (self.state(), self.dropped_in.read());
        self.leading.lock().to(state.trusted.iter().chain(&*dropped_in))
    }

    /// Sets which files of the plugin folder are plugins, since those are trusted as well.
    pub fn trust(&self, dropped_in: Vec<PathBuf>) {
        *self.dropped_in.write() = dropped_in;
    }

    /// The scope in which a plugin lists what it offers. There is no client, so there are no roots.
    pub fn for_listing(&self, plugin: &str, grants: &Grants) -> Scope {
        // Nobody asked for it but wharf.
        self.for_call(plugin, grants, &CallRoots::default(), named(("lists of", plugin)))
    }

    /// The problems with a plugin's directories, for `wharf check`.
    pub fn problems(&self, grants: &Grants) -> Vec<String> {
        let wanted = self.state().directories(&grants.dirs);
        let mut problems: Vec<String> =
            wanted.missing.iter().map(|path| format!("the directory {} is not there", path.display())).collect();
        problems.extend(self.intersect(wanted).1.iter().map(ToString::to_string));
        problems.extend(self.egress.note(&grants.http.0).map(str::to_owned));
        problems
    }
}

/// The most roots of one client that count.
const MAX_ROOTS: usize = 64;

impl State {
    /// The operator's directories for a plugin as they are now.
    fn directories(&self, dirs: &dirs::Grant) -> Wanted {
        let mut wanted = Wanted::default();
        dirs.apply(&self.opened, &mut wanted);
        wanted
    }

    fn new(places: Places, home_ceiling: bool) -> Self {
        let Places { within, fixed, from, dirs, mut trusted, secret, egress: _ } = places;
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
        trusted.sort();
        trusted.dedup();
        Self { ceilings, opened: Opened::of(&dirs), fixed, from, trusted, secret }
    }
}
