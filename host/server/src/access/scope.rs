//! Builds the scope of a call: the operator's directories and the client's roots, opened, intersected, handed over.

use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::{Mutex, RwLock};
use wharf_sandbox::{Directory, Scope};

use super::{
    grants::{self, Lessened},
    roots::{Ceilings, Now, OpenDirectory, OpenRoot},
};
use crate::{
    base::{
        paths::{FileId, Mounts, folders_leading_to, links},
        text::escaped,
    },
    config::{self, Access, Config, PluginConfig},
};

/// What all scopes depend on. Renewed with the config.
pub struct Scopes {
    state: RwLock<Arc<State>>,
    /// Whether client roots are of use at all without the operator saying where they may lie.
    home_ceiling: bool,
    dropped_in: RwLock<Vec<PathBuf>>,
    /// Grows with each config, so that what was opened under an earlier one is opened anew.
    epoch: AtomicU64,
    warned: Mutex<HashSet<(String, Lessened)>>,
}

struct State {
    ceilings: Ceilings,
    /// Opened by the operator: `dirs` by host path, and the roots for clients that have none.
    opened: HashMap<PathBuf, OpenRoot>,
    fixed: Vec<Arc<OpenRoot>>,
    /// What wharf trusts: nobody else may write it, nor what leads to it.
    trusted: Vec<PathBuf>,
}

/// The roots a call has: none asked for, the client's, or the operator's in their place.
#[derive(Clone, Default)]
pub struct CallRoots(pub Vec<Arc<OpenRoot>>);

impl Scopes {
    /// `home_ceiling`: whether clients may open what lies in the home directory if the operator says nothing.
    pub fn new(config: &Config, cache: Option<&PathBuf>, home_ceiling: bool) -> Self {
        let state = RwLock::new(Arc::new(State::new(config, cache, home_ceiling)));
        Self { state, home_ceiling, dropped_in: RwLock::default(), epoch: AtomicU64::new(0), warned: Mutex::default() }
    }

    pub fn renew(&self, config: &Config, cache: Option<&PathBuf>) {
        let state = Arc::new(State::new(config, cache, self.home_ceiling));
        *self.state.write() = state;
        self.epoch.fetch_add(1, Ordering::Relaxed);
        self.warned.lock().clear();
    }

    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }

    fn state(&self) -> Arc<State> {
        Arc::clone(&self.state.read())
    }

    /// Whether roots of clients can come to anything.
    pub fn accepts_roots(&self) -> bool {
        !self.state().ceilings.is_empty()
    }

    /// The operator's own roots, for clients that have none.
    pub fn fixed_roots(&self) -> CallRoots {
        CallRoots(self.state().fixed.clone())
    }

    /// Opens what a client calls its roots; what cannot be opened is dropped with a warning. Roots that were open before
    /// keep their handles.
    pub fn open(&self, roots: &[wharf_protocol::params::Root], before: &CallRoots) -> CallRoots {
        let state = self.state();
        let mut opened: Vec<Arc<OpenRoot>> = Vec::new();
        for root in roots.iter().take(MAX_ROOTS) {
            match state.ceilings.open(&root.uri) {
                Ok(root) => {
                    let known = before.0.iter().find(|known| known.same_place(&root) && known.shown == root.shown);
                    opened.push(known.map_or_else(|| Arc::new(root), Arc::clone));
                }
                Err(why) => tracing::warn!("root {} is ignored: {why}", escaped(&root.uri)),
            }
        }
        if roots.len() > MAX_ROOTS {
            tracing::warn!("the client has {} roots; only the first {MAX_ROOTS} count", roots.len());
        }
        CallRoots(opened)
    }

    /// The scope of a call.
    pub fn for_call(&self, config: &PluginConfig, roots: &CallRoots) -> Scope {
        let state = self.state();
        let mut wanted = state.directories(config);
        for path in &wanted.missing {
            tracing::warn!(plugin = config.id, "the directory {} is not there", path.display());
        }
        if let Some(access) = config.grants.roots {
            for root in &roots.0 {
                wanted.add(root.now(), access);
            }
        }
        let (granted, lessened) = self.intersect(wanted);
        for one in lessened {
            let mut warned = self.warned.lock();
            if warned.insert((config.id.clone(), one.clone())) {
                tracing::warn!(plugin = config.id, "{one}");
            }
        }
        let directories = granted.into_iter().filter_map(|one| {
            let handle = one.directory.handle.try_clone().ok()?;
            Some(Directory::new(handle, one.directory.shown, one.access == Access::ReadWrite))
        });
        let environment = config.grants.env.iter().filter_map(|name| Some((name.clone(), std::env::var(name).ok()?)));
        Scope { directories: directories.collect(), environment: environment.collect() }
    }

    fn intersect(&self, wanted: Wanted) -> (Vec<grants::Granted>, Vec<Lessened>) {
        // Looked up anew whenever something could be written: folders come, go and are replaced.
        let writes = wanted.open.iter().any(|(_, access)| *access == Access::ReadWrite);
        let trusted = if writes { self.trusted() } else { HashSet::new() };
        grants::intersect(wanted.open, &wanted.moved, &trusted)
    }

    /// The folders from which what wharf trusts can be changed, as they are now.
    fn trusted(&self) -> HashSet<FileId> {
        let dropped_in = self.dropped_in.read();
        let mounts = Mounts::now();
        self.state().trusted.iter().chain(&*dropped_in).flat_map(|path| folders_leading_to(path, &mounts)).collect()
    }

    /// Says which files of the plugin folder are plugins.
    pub fn trust(&self, dropped_in: Vec<PathBuf>) {
        *self.dropped_in.write() = dropped_in;
    }

    /// The scope in which a plugin says what it offers: no client, so no roots.
    pub fn for_listing(&self, config: &PluginConfig) -> Scope {
        self.for_call(config, &CallRoots::default())
    }

    /// What `check` says of a plugin's directories.
    pub fn problems(&self, config: &PluginConfig) -> Vec<String> {
        let wanted = self.state().directories(config);
        let mut problems: Vec<String> =
            wanted.missing.iter().map(|path| format!("the directory {} is not there", path.display())).collect();
        problems.extend(self.intersect(wanted).1.iter().map(ToString::to_string));
        problems
    }
}

/// Directories that a call is to have, before rights are weighed against each other.
#[derive(Default)]
struct Wanted {
    open: Vec<(OpenDirectory, Access)>,
    /// Where read-only directories are found by now that are not where they were.
    moved: Vec<PathBuf>,
    missing: Vec<PathBuf>,
}

impl Wanted {
    fn add(&mut self, now: Now, access: Access) {
        match now {
            Now::There(directory) => self.open.push((directory, access)),
            Now::Elsewhere(path) if access == Access::Read => self.moved.push(path),
            Now::Elsewhere(_) | Now::Gone => {}
        }
    }
}

/// The most roots of one client that count.
const MAX_ROOTS: usize = 64;

impl State {
    /// The operator's directories for a plugin as they are now.
    fn directories(&self, config: &PluginConfig) -> Wanted {
        let mut wanted = Wanted::default();
        for dir in &config.grants.dirs {
            // It may have been made since the config was read.
            let now = self.opened.get(&dir.host).map(OpenRoot::now);
            let now = now.or_else(|| OpenRoot::by_operator(&dir.host).ok().map(|open| open.now()));
            match now {
                Some(Now::There(mut directory)) => {
                    directory.shown.clone_from(&dir.guest);
                    wanted.open.push((directory, dir.access));
                }
                other => {
                    wanted.missing.push(dir.host.clone());
                    wanted.add(other.unwrap_or(Now::Gone), dir.access);
                }
            }
        }
        wanted
    }

    fn new(config: &Config, cache: Option<&PathBuf>, home_ceiling: bool) -> Self {
        let ceilings = match &config.roots.within {
            Some(paths) => Ceilings::configured(paths),
            None if home_ceiling => Ceilings::home(),
            None => Ceilings::default(),
        };
        let mut opened = HashMap::new();
        let dirs = || config.plugins.iter().flat_map(|plugin| &plugin.grants.dirs);
        let writable: Vec<PathBuf> = dirs()
            .filter(|dir| dir.access == Access::ReadWrite)
            .filter_map(|dir| std::fs::canonicalize(&dir.host).ok())
            .collect();
        for dir in dirs() {
            // A link that a plugin could have made grants nothing.
            let link = links(&dir.host).into_iter().find(|link| {
                let place = link.parent().and_then(|parent| std::fs::canonicalize(parent).ok());
                place.is_some_and(|place| writable.iter().any(|folder| place.starts_with(folder)))
            });
            if let Some(link) = link {
                tracing::warn!(
                    "dirs: {} is ignored: a plugin may write the link {}",
                    dir.host.display(),
                    link.display()
                );
                continue;
            }
            match OpenRoot::by_operator(&dir.host) {
                Ok(open) => {
                    opened.insert(dir.host.clone(), open);
                }
                Err(error) => tracing::warn!("dirs: {}: {error}", dir.host.display()),
            }
        }
        let fixed = config.roots.fixed.iter().filter_map(|path| match OpenRoot::by_operator(path) {
            Ok(open) => Some(Arc::new(open)),
            Err(error) => {
                tracing::warn!("--root {}: {error}", path.display());
                None
            }
        });
        let binary = std::env::current_exe().ok();
        let plugins = config.plugins.iter().map(|plugin| &plugin.path);
        let within_folders = config.plugin_dir.iter().chain(cache).map(|folder| folder.join("*"));
        let now = plugins.chain(&config.file).chain(&binary).cloned().chain(within_folders);
        // What the next start would trust counts as well, whatever was chosen for this one.
        let later =
            config::trusted_by_default().into_iter().chain(config::cache_dirs().into_iter().map(|dir| dir.join("*")));
        let mut trusted: Vec<PathBuf> = now.chain(later).collect();
        trusted.sort();
        trusted.dedup();
        Self { ceilings, opened, fixed: fixed.collect(), trusted }
    }
}
