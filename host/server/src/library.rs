//! The set of plugins: loads, replaces and removes them, and publishes a new catalog when something changed.
//!
//! One task does all of it, one change at a time. What fails to load changes nothing: the last good version keeps
//! serving. Calls under way hold what they started with, so a replacement never disturbs them.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::{Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;
use wharf_sandbox::{Call, Listing, LoadError, Operation, Outcome, Plugin, PluginSpec, Sandbox, Silence, model::Kind};

use crate::{
    bridge::{self, Offer},
    catalog::{Catalog, Generations, Served},
    config::{self, Config, Grants, Origin, PluginConfig},
    loader::{Loader, Problem},
    paths::FileId,
    scope::Scopes,
    shelf::{Change, FIRST_LOAD, Shelf, Status},
    text::escaped,
};

/// How often a plugin may have one of its lists asked for again.
const ANNOUNCEMENT_GAP: Duration = Duration::from_millis(250);

pub struct Library {
    loader: Loader,
    scopes: Arc<Scopes>,
    config: Arc<Config>,
    served: BTreeMap<String, Served>,
    /// What each served plugin last listed, to publish it anew when only its config changes.
    listings: HashMap<String, Listing>,
    generations: Generations,
    announced: HashMap<(String, u8), Announced>,
    catalog: watch::Sender<Arc<Catalog>>,
    ready: watch::Sender<bool>,
    first: Arc<OnceLock<Generations>>,
    changes: mpsc::Receiver<Change>,
    later: mpsc::Sender<Change>,
    status: Arc<Mutex<BTreeMap<String, Status>>>,
    failures: tokio::sync::broadcast::Sender<Arc<str>>,
}

/// When a plugin's list may be asked for again, and whether that is already arranged.
struct Announced {
    next: Instant,
    scheduled: bool,
}

impl Library {
    pub fn new(sandbox: Arc<Sandbox>, scopes: Arc<Scopes>, config: Arc<Config>, progress: fn(&str)) -> (Self, Shelf) {
        let (catalog, catalog_seen) = watch::channel(Arc::default());
        let (ready, ready_seen) = watch::channel(false);
        let (later, changes) = mpsc::channel(256);
        let (failures, _) = tokio::sync::broadcast::channel(64);
        let (status, first): (Arc<_>, Arc<OnceLock<Generations>>) = Default::default();
        let shelf = Shelf {
            catalog: catalog_seen,
            ready: ready_seen,
            first: Arc::clone(&first),
            changes: later.clone(),
            status: Arc::clone(&status),
            failures: failures.clone(),
        };
        let library = Self {
            loader: Loader::new(sandbox, progress),
            scopes,
            config,
            served: BTreeMap::new(),
            listings: HashMap::new(),
            generations: Generations::default(),
            announced: HashMap::new(),
            catalog,
            ready,
            first,
            changes,
            later,
            status,
            failures,
        };
        (library, shelf)
    }

    /// Loads everything, then follows changes until all senders are gone or `stop` is cancelled.
    pub async fn run(mut self, stop: CancellationToken) {
        self.load().await;
        loop {
            let change = tokio::select! {
                () = stop.cancelled() => return,
                change = self.changes.recv() => change,
            };
            match change {
                None => return,
                Some(Change::Files) => self.load().await,
                Some(Change::Config(config)) => {
                    if self.config.roots != config.roots {
                        self.revoke_roots();
                    }
                    self.config = config;
                    self.load().await;
                }
                Some(Change::Announced { plugin, list }) => self.announced(plugin, list).await,
            }
        }
    }

    /// Brings what is served in line with the config and the files.
    pub async fn load(&mut self) {
        let started = Instant::now();
        let wanted = self.wanted();
        let mut changed = self.remove_unwanted(&wanted);
        for config in wanted {
            changed |= self.bring(config).await;
            // Nobody waits for the first load longer than this, so from then on each plugin counts.
            if changed && !*self.ready.borrow() && started.elapsed() > FIRST_LOAD {
                self.publish();
                changed = false;
            }
        }
        if changed || !*self.ready.borrow() {
            self.publish();
        }
        self.ready.send_replace(true);
    }

    /// The plugins there should be, in order of precedence.
    fn wanted(&self) -> Vec<Arc<PluginConfig>> {
        let mut wanted = self.config.plugins.clone();
        let Some(folder) = &self.config.plugin_dir else { return wanted };
        if let Err(error) = config::check_trusted_directory(folder, "plugin folder") {
            self.report("plugin_dir", "read", &format!("{error:#}"), false);
            return wanted;
        }
        let entries = match std::fs::read_dir(folder).and_then(Iterator::collect::<std::io::Result<Vec<_>>>) {
            Ok(entries) => entries,
            Err(error) => {
                // What cannot be read is not gone: what was there stays.
                self.report("plugin_dir", "read", &format!("{}: {error}", folder.display()), true);
                wanted.extend(
                    self.served
                        .values()
                        .map(|served| &served.config)
                        .filter(|config| config.origin == Origin::DroppedIn)
                        .cloned(),
                );
                return wanted;
            }
        };
        self.set_status("plugin_dir", None);
        let configured: Vec<FileId> = wanted.iter().filter_map(|plugin| FileId::at(&plugin.path)).collect();
        let mut dropped: Vec<(String, PathBuf)> = entries
            .iter()
            .map(std::fs::DirEntry::path)
            .filter(|path| path.extension().is_some_and(|extension| extension == "wasm") && !path.is_dir())
            .filter_map(|path| Some((path.file_stem()?.to_str()?.to_owned(), path)))
            // Hidden files are what editors and copies leave while they work.
            .filter(|(id, path)| !id.starts_with('.') && FileId::at(path).is_none_or(|id| !configured.contains(&id)))
            .collect();
        dropped.sort();
        let taken: HashSet<String> = wanted.iter().map(|plugin| plugin.id.clone()).collect();
        self.scopes.trust(dropped.iter().map(|(_, path)| path.clone()).collect());
        for (id, path) in dropped {
            let problem = match config::check_id(&id) {
                Err(error) => Some(error.to_string()),
                Ok(()) if taken.contains(&id) => {
                    Some(format!("a configured plugin has the id `{id}` already; rename the file"))
                }
                Ok(()) => None,
            };
            match problem {
                Some(problem) => self.report(&path.display().to_string(), "name", &problem, false),
                None => wanted.push(Arc::new(self.config.dropped_in(&id, path))),
            }
        }
        wanted
    }

    fn remove_unwanted(&mut self, wanted: &[Arc<PluginConfig>]) -> bool {
        let ids: HashSet<&str> = wanted.iter().map(|plugin| plugin.id.as_str()).collect();
        let paths: HashSet<&Path> = wanted.iter().map(|plugin| plugin.path.as_path()).collect();
        let gone: Vec<String> = self.served.keys().filter(|id| !ids.contains(id.as_str())).cloned().collect();
        for id in &gone {
            if let Some(served) = self.take_out(id) {
                served.revoked.cancel();
                tracing::info!(plugin = id, "removed");
            }
        }
        let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        // Reported under a path or a key of the config, rather than under the id of a plugin.
        let other = |id: &str| id == "plugin_dir" || (id.contains('/') && Path::new(id).exists());
        status.retain(|id, _| other(id) || ids.contains(id.as_str()));
        drop(status);
        self.loader.forget_all_but(|path| paths.contains(path));
        !gone.is_empty()
    }

    /// Loads one plugin if it or its config changed. True if something new is served.
    async fn bring(&mut self, config: Arc<PluginConfig>) -> bool {
        let code = match self.loader.code(&config).await {
            Ok(code) => code,
            Err(problem) => {
                let changed = self.follow(&config);
                self.failed(&config, &problem);
                return changed;
            }
        };
        if let Some(served) = self.served.get(&config.id)
            && served.plugin.code().digest() == code.digest()
            && served.config == config
        {
            self.set_status(&config.id, Some(Status::Serving));
            return false;
        }
        let plugin = Plugin::new(code, spec(&config));
        match self.ask(&plugin, &config).await {
            Ok((listing, offer)) => self.serve(plugin, config, listing, offer),
            Err(problem) => {
                let changed = self.follow(&config);
                self.failed(&config, &problem);
                changed
            }
        }
    }

    /// Has the plugin say what it offers, and checks it.
    async fn ask(&self, plugin: &Plugin, config: &PluginConfig) -> Result<(Listing, Offer), Problem> {
        let scope = self.scopes.for_listing(config);
        let events = Arc::new(Silence);
        let report = plugin.call(Call { operation: Operation::List, scope, events, timeout: None, client: None }).await;
        let listing = match report.result {
            Ok(Outcome::Listing(listing)) => listing,
            Ok(_) => Listing::default(),
            Err(error) => {
                let printed = if report.printed.is_empty() {
                    String::new()
                } else {
                    format!("; it printed: {}", escaped(&report.printed))
                };
                let text = format!("{}{printed}", LoadError::List(escaped(&error.to_string())));
                return Err(Problem { stage: "list", text });
            }
        };
        let offer = bridge::offer(config, listing.clone()).map_err(|text| Problem { stage: "list", text })?;
        Ok((listing, offer))
    }

    /// Takes a loaded plugin in, unless a name of its own is taken. A plugin of lesser precedence that has such a name makes room.
    fn serve(&mut self, plugin: Plugin, config: Arc<PluginConfig>, listing: Listing, offer: Offer) -> bool {
        let id = config.id.clone();
        let previous = self.served.get(&id).cloned();
        let narrowed = previous.as_ref().is_some_and(|old| narrowed(&old.config.grants, &config.grants));
        let revoked = match &previous {
            Some(old) if !narrowed => old.revoked.clone(),
            _ => CancellationToken::new(),
        };
        let served = Served {
            plugin,
            config: Arc::clone(&config),
            offer: Arc::new(offer),
            checks: Arc::new(Semaphore::new(1)),
            results: Arc::new(Semaphore::new(1)),
            tasks: Arc::new(Semaphore::new((config.limits.concurrency / 2).max(1))),
            revoked,
        };
        self.served.insert(id.clone(), served);
        while let Err(clash) = Catalog::build(self.in_order(), self.generations, self.config.page_items) {
            let problem = Problem { stage: "names", text: clash.problem };
            if clash.loser == id {
                match previous {
                    Some(previous) => self.served.insert(id, previous),
                    None => self.served.remove(&id),
                };
                self.failed(&config, &problem);
                return self.narrow(&config);
            }
            if let Some(loser) = self.take_out(&clash.loser) {
                self.failed(&loser.config, &problem);
            }
        }
        if let Some(previous) = previous.as_ref().filter(|_| narrowed) {
            previous.revoked.cancel();
        }
        self.listings.insert(id.clone(), listing);
        let now = self.served.get(&id).map(|served| Arc::clone(&served.offer));
        self.count_changes(previous.as_ref().map(|old| &*old.offer), now.as_deref());
        self.set_status(&id, Some(Status::Serving));
        tracing::info!(plugin = id, "serving");
        true
    }

    fn take_out(&mut self, id: &str) -> Option<Served> {
        self.listings.remove(id);
        let gone = self.served.remove(id)?;
        self.count_changes(Some(&gone.offer), None);
        Some(gone)
    }

    /// A plugin whose new version fails keeps serving the old one, but as the operator wants it now.
    fn follow(&mut self, config: &Arc<PluginConfig>) -> bool {
        let Some(served) = self.served.get(&config.id).cloned() else { return false };
        if served.config == *config {
            return false;
        }
        let code = served.plugin.code().clone();
        if config.sha256.as_ref().is_some_and(|expected| expected != code.digest()) {
            served.revoked.cancel();
            return self.take_out(&config.id).is_some();
        }
        let listing = self.listings.get(&config.id).cloned().unwrap_or_default();
        match bridge::offer(config, listing.clone()) {
            Ok(offer) => self.serve(Plugin::new(code, spec(config)), Arc::clone(config), listing, offer),
            Err(_) => self.narrow(config),
        }
    }

    /// Takes at least away what is no longer granted.
    fn narrow(&mut self, config: &Arc<PluginConfig>) -> bool {
        let Some(served) = self.served.get_mut(&config.id) else { return false };
        if served.config.grants == config.grants {
            return false;
        }
        if narrowed(&served.config.grants, &config.grants) {
            served.revoked.cancel();
            served.revoked = CancellationToken::new();
        }
        served.config = Arc::new(PluginConfig { grants: config.grants.clone(), ..(*served.config).clone() });
        true
    }

    /// Stops what works in clients' roots, since the operator has changed where those may lie.
    fn revoke_roots(&mut self) {
        for served in self.served.values_mut().filter(|served| served.config.grants.roots.is_some()) {
            served.revoked.cancel();
            served.revoked = CancellationToken::new();
        }
        self.publish();
    }

    fn in_order(&self) -> Vec<Served> {
        let position = |id: &str| self.config.plugins.iter().position(|plugin| plugin.id == id).unwrap_or(usize::MAX);
        let mut served: Vec<Served> = self.served.values().cloned().collect();
        served.sort_by_key(|one| (one.config.origin, position(&one.config.id), one.config.id.clone()));
        served
    }

    /// Compares what clients see.
    fn count_changes(&mut self, old: Option<&Offer>, new: Option<&Offer>) {
        let none = Offer::default();
        let (old, new) = (old.unwrap_or(&none).published(), new.unwrap_or(&none).published());
        let [tools, resources, prompts] = [0, 1, 2].map(|list| u64::from(old.get(list) != new.get(list)));
        self.generations.tools += tools;
        self.generations.resources += resources;
        self.generations.prompts += prompts;
    }

    fn publish(&self) {
        match Catalog::build(self.in_order(), self.generations, self.config.page_items) {
            Ok(catalog) => {
                self.first.get_or_init(|| self.generations);
                self.catalog.send_replace(Arc::new(catalog));
            }
            Err(clash) => tracing::error!(plugin = clash.loser, "not published: {}", clash.problem),
        }
    }

    /// A plugin announced a change: asks it again, at most once per gap, and counts the change even if the list is the same.
    async fn announced(&mut self, id: String, list: Kind) {
        let Some(served) = self.served.get(&id).cloned() else { return };
        let now = Instant::now();
        let last = self.announced.entry((id.clone(), list as u8)).or_insert(Announced { next: now, scheduled: false });
        if now < last.next {
            if !last.scheduled {
                last.scheduled = true;
                let (later, next) = (self.later.clone(), last.next);
                tokio::spawn(async move {
                    tokio::time::sleep_until(next.into()).await;
                    later.send(Change::Announced { plugin: id, list }).await.ok();
                });
            }
            return;
        }
        *last = Announced { next: now + ANNOUNCEMENT_GAP, scheduled: false };
        match self.ask(&served.plugin, &served.config).await {
            Ok((listing, offer)) => {
                let before = self.generations;
                self.serve(served.plugin, served.config, listing, offer);
                let at_least = |generation: &mut u64, before: u64| *generation = (*generation).max(before + 1);
                match list {
                    Kind::Tools => at_least(&mut self.generations.tools, before.tools),
                    Kind::Resources => at_least(&mut self.generations.resources, before.resources),
                    Kind::Prompts => at_least(&mut self.generations.prompts, before.prompts),
                }
                self.publish();
            }
            Err(problem) => self.failed(&served.config, &problem),
        }
    }

    fn failed(&self, config: &PluginConfig, problem: &Problem) {
        self.report(&config.id, problem.stage, &problem.text, self.served.contains_key(&config.id));
    }

    /// Tells operator and clients of a failure, once until it changes.
    fn report(&self, id: &str, stage: &'static str, problem: &str, last_good: bool) {
        let problem = escaped(problem);
        let status = Status::Failed { stage, problem: problem.clone(), last_good };
        if self.set_status(id, Some(status)) {
            let still = if last_good { "; its last good version serves" } else { "" };
            tracing::error!(plugin = id, stage, "does not load: {problem}{still}");
            // Nobody listening is no failure.
            self.failures.send(format!("The plugin `{id}` does not load ({stage}): {problem}{still}").into()).ok();
        }
    }

    /// True if this is news.
    fn set_status(&self, id: &str, new: Option<Status>) -> bool {
        let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        let old = match new.clone() {
            Some(new) => status.insert(id.to_owned(), new),
            None => status.remove(id),
        };
        old != new
    }
}

fn spec(config: &PluginConfig) -> PluginSpec {
    PluginSpec { id: config.id.clone(), limits: config.limits.clone(), config: Arc::clone(&config.config) }
}

/// Whether something that was granted no longer is.
fn narrowed(old: &Grants, new: &Grants) -> bool {
    old.roots > new.roots
        || old.dirs.iter().any(|dir| !new.dirs.contains(dir))
        || old.env.iter().any(|name| !new.env.contains(name))
        || (old.ask.elicitation && !new.ask.elicitation)
        || (old.ask.sampling && !new.ask.sampling)
        || (old.ask.roots && !new.ask.roots)
}
