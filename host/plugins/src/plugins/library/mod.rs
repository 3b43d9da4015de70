//! The set of plugins: loads, replaces and removes them, and publishes a new catalog when something changed.
//!
//! One task makes all decisions, one change at a time, and never waits for a plugin: code is compiled and guests are run in other tasks
//! (`install`), several at a time, which report when they are done. So access that the operator takes away is gone as soon as the config
//! is read, whatever plugins are doing. When a new version of a plugin fails to load, its last working version is still served. Calls
//! that are running continue with the version they started with, so a replacement never disturbs them.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use tokio::{
    sync::{Notify, watch},
    task::{AbortHandle, JoinSet},
    time::{Instant, sleep_until},
};
use tokio_util::sync::{CancellationToken, DropGuard};
use wharf_sandbox::{Sandbox, model::Kind};

use super::{
    announced::{Announced, Kinds},
    catalog::Catalog,
    inbox::Inbox,
    install::{Fresh, Installed, Installer},
    lacking,
    loader::Loader,
    making::Making,
    published::{FIRST_LOAD_TIMEOUT, Published, Publisher},
    served::{Access, Generations, RESULTS, Served, TASKS},
    status::{Problem, Stage, Status, Subject},
};
use crate::{
    bridge::Offer,
    observe::{journal::Event, observers::Observers},
};
use wharf_base::{ledger::Ledger, places::Places};
use wharf_config::config::{Config, PluginConfig, PluginSource, SourceState};
use wharf_policy::access::scope::Scopes;

mod again;
mod expected;
mod wanted;

/// The debounce interval: how long a change waits for others that may belong to it, such as the new name of a renamed file.
const DEBOUNCE_INTERVAL: Duration = Duration::from_millis(200);

pub struct Library {
    installer: Arc<Installer>,
    observers: Observers,
    scopes: Arc<Scopes>,
    config: Arc<Config>,
    served: BTreeMap<String, Served>,
    generations: Generations,
    /// The ids of newly served plugins that are to be logged after the next catalog is published.
    unlogged: Vec<String>,
    /// Whether `served` differs from the last published catalog.
    unpublished: bool,
    /// Calls that lose their access when the next catalog is published. A call that finds the plugin afterwards is not one of them, and
    /// a client that waited for one sees the new catalog.
    losing: Vec<DropGuard>,
    /// The deadline for publishing that difference.
    publish_by: Instant,
    under_way: HashMap<String, UnderWay>,
    tasks: JoinSet<(String, u64, Installed)>,
    /// Plugins that tasks have installed and that are not in `served` yet.
    arrived: Vec<Arrived>,
    last_attempt: u64,
    announced: HashMap<String, Announced>,
    /// All plugins that should be served.
    should_serve: Arc<[Arc<PluginConfig>]>,
    /// Where configs come from.
    configs: watch::Receiver<Arc<Config>>,
    publisher: Publisher,
    inbox: Inbox,
    /// The time at which the first load counts as over, even if some plugins are still loading.
    first_load_deadline: Instant,
    /// Notified when a task takes long.
    slow: Arc<Notify>,
}

/// A plugin whose code is being loaded or whose lists are being requested.
struct UnderWay {
    attempt: u64,
    /// The config and source state with which the task was started. While both stay the same, the task need not be restarted.
    config: Arc<PluginConfig>,
    state: Option<SourceState>,
    /// The lists that the plugin announced as changed, if the task only requests its lists again; `None` if it loads the plugin.
    kinds: Option<Kinds>,
    /// Set when the task takes so long that the first load must not wait for it.
    slow: Arc<std::sync::atomic::AtomicBool>,
    abort: AbortHandle,
}

/// The result of a task. `kinds`: the lists that the plugin announced as changed, if the task only requested its lists again.
struct Arrived {
    id: String,
    /// The config and source state with which the task was started.
    config: Arc<PluginConfig>,
    state: Option<SourceState>,
    installed: Installed,
    kinds: Option<Kinds>,
    /// Whether clients already learn that it failed.
    reported: bool,
}

impl Library {
    pub fn new(
        sandbox: Arc<Sandbox>,
        ledger: Arc<Ledger>,
        scopes: Arc<Scopes>,
        configs: watch::Receiver<Arc<Config>>,
        observers: Observers,
        making: Making,
        progress: fn(&str),
    ) -> (Self, Published, Inbox) {
        let inbox = Inbox::default();
        let config = Arc::clone(&configs.borrow());
        let (publisher, published) = Publisher::new(observers.clone(), config.page_items);
        let loader = Loader::new(sandbox, making, progress);
        let installer = Installer::new(loader, Arc::clone(&scopes), ledger, observers.clone());
        let library = Self {
            installer: Arc::new(installer),
            observers,
            scopes,
            config,
            served: BTreeMap::new(),
            generations: Generations::default(),
            unlogged: Vec::new(),
            unpublished: false,
            losing: Vec::new(),
            publish_by: Instant::now(),
            under_way: HashMap::new(),
            tasks: JoinSet::new(),
            arrived: Vec::new(),
            last_attempt: 0,
            announced: HashMap::new(),
            should_serve: Arc::default(),
            configs,
            publisher,
            inbox: inbox.clone(),
            first_load_deadline: Instant::now() + FIRST_LOAD_TIMEOUT,
            slow: Arc::default(),
        };
        (library, published, inbox)
    }

    /// Loads all plugins, then follows changes until the sender of configs is dropped or `stop` is cancelled.
    pub async fn run(mut self, stop: CancellationToken) {
        self.begin();
        // Without any plugin, nothing is loaded that would end the wait for the first load.
        self.settle();
        self.publish_expected();
        loop {
            let due =
                self.announced.iter().filter(|(id, one)| !one.kinds.is_empty() && !self.under_way.contains_key(*id));
            let due = due.map(|(_, one)| one.next).min();
            let waiting_for_first = !self.publisher.is_ready();
            // Whether what `publish_expected` publishes may differ now. It does not when a task of many ends, which would make a start take time
            // quadratic in the number of plugins.
            let mut changed = true;
            tokio::select! {
                biased;
                // Requests that came before the end of input may still wait for the first load, so it is completed even after `stop`.
                () = stop.cancelled(), if !waiting_for_first => return,
                changed = self.configs.changed() => match changed {
                    Ok(()) => self.reconfigure(),
                    Err(_) => return,
                },
                () = self.inbox.files.notified() => self.begin(),
                Some(done) = self.tasks.join_next(), if !self.tasks.is_empty() => changed = self.done(done),
                () = self.inbox.announcements.notified() => self.take_announcements(),
                () = sleep_until(due.unwrap_or(self.first_load_deadline)), if due.is_some() => self.list_again(),
                () = self.slow.notified(), if waiting_for_first => {}
                () = sleep_until(self.first_load_deadline), if waiting_for_first => {}
                // The first load is not published by then, so waiting for that time would be a busy loop.
                () = sleep_until(self.publish_by), if !waiting_for_first && self.has_news() => {}
            }
            changed |= self.settle();
            if changed {
                self.publish_expected();
            }
        }
    }

    /// Whether something has changed that clients have not been told.
    fn has_news(&self) -> bool {
        self.unpublished || !self.arrived.is_empty()
    }

    /// Publishes the changes once only slow tasks are left or the debounce interval is over. The first load is published as a whole, so
    /// that no client sees an incomplete catalog. Returns whether it did, rather than wait for more.
    fn settle(&mut self) -> bool {
        use std::sync::atomic::Ordering;
        let waits = self.under_way.values().any(|one| one.kinds.is_none() && !one.slow.load(Ordering::Relaxed));
        let first = !self.publisher.is_ready();
        let until = if first { self.first_load_deadline } else { self.publish_by };
        if (first || self.has_news()) && waits && Instant::now() < until {
            return false;
        }
        self.take_in();
        if self.unpublished || first {
            self.publish(self.generations);
        }
        // The line is logged after the catalog is published, because programs wait for it before they call the plugin.
        for id in self.unlogged.drain(..) {
            tracing::info!(plugin = id, "serving");
        }
        if first {
            self.publisher.set_ready();
        }
        if self.under_way.values().all(|one| one.kinds.is_some()) {
            self.publisher.settle(self.config.number);
        }
        true
    }

    /// Applies a new config: first takes away the access that it no longer grants, then loads what is new.
    fn reconfigure(&mut self) {
        let config = Arc::clone(&self.configs.borrow_and_update());
        let roots_changed = self.config.roots != config.roots;
        self.config = config;
        let wanted = self.wanted();
        self.remove_unwanted(&wanted);
        for config in &wanted {
            self.take_away(config);
        }
        if roots_changed {
            self.revoke_roots();
        }
        // Access that was taken away is gone at once. Clients are notified of changed lists only when the rest of the change is
        // published too, so this catalog has the old generations.
        if self.unpublished {
            let unchanged = self.publisher.generations();
            self.publish(unchanged);
            self.change();
        }
        self.install_all(wanted);
    }

    /// Starts all tasks that the current config and files require.
    fn begin(&mut self) {
        let wanted = self.wanted();
        self.remove_unwanted(&wanted);
        self.install_all(wanted);
    }

    fn install_all(&mut self, wanted: Vec<Arc<PluginConfig>>) {
        self.should_serve = wanted.clone().into();
        for config in wanted {
            let state = config.source.locate().ok().and_then(|located| located.state().ok());
            let is_for =
                |of: &Arc<PluginConfig>, seen: &Option<SourceState>| *of == config && *seen == state && state.is_some();
            let loading = self.under_way.get(&config.id);
            let loading = loading.is_some_and(|one| one.kinds.is_none() && is_for(&one.config, &one.state));
            // A plugin may wait here for others that are loaded with it. Loading it again would list it twice.
            let loaded = self.arrived.iter().find(|one| one.id == config.id && one.kinds.is_none());
            let loaded = loaded.is_some_and(|one| {
                is_for(&one.config, &one.state) && !matches!(one.installed, Installed::Failed { .. })
            });
            if !loading && !loaded {
                self.start(config, state, None);
            }
        }
    }

    /// Starts a task for a plugin, and aborts the plugin's previous task if it is still running.
    fn start(&mut self, config: Arc<PluginConfig>, state: Option<SourceState>, kinds: Option<Kinds>) {
        self.last_attempt += 1;
        let (attempt, id) = (self.last_attempt, config.id.clone());
        let current = self.served.get(&id).cloned();
        let slow: Arc<std::sync::atomic::AtomicBool> = Arc::default();
        let tell = {
            let (slow, told) = (Arc::clone(&slow), Arc::clone(&self.slow));
            move || {
                slow.store(true, std::sync::atomic::Ordering::Relaxed);
                told.notify_one();
            }
        };
        let (installer, for_config, for_id) = (Arc::clone(&self.installer), Arc::clone(&config), id.clone());
        let again = kinds.is_some();
        let abort = self.tasks.spawn(async move {
            let installed = match current {
                Some(current) if again => installer.list_again(&current, tell).await,
                current => installer.install(current.as_ref(), &for_config, tell).await,
            };
            (for_id, attempt, installed)
        });
        let before = self.under_way.insert(id.clone(), UnderWay { attempt, config, state, kinds, slow, abort });
        let before = before.inspect(|before| before.abort.abort()).map(|before| before.kinds);
        let arrived = self.arrived.iter().position(|one| one.id == id).map(|at| self.arrived.swap_remove(at).kinds);
        // The announced lists that the aborted task would have requested must be requested again.
        for kinds in before.into_iter().chain(arrived).flatten() {
            if let Some(announced) = self.announced.get_mut(&id) {
                announced.kinds.add(kinds);
            }
        }
    }

    /// Handles the end of a task, unless another has replaced it. Returns whether its plugin does not count as being loaded any more: what
    /// it has installed waits for [`Self::settle`].
    fn done(&mut self, done: Result<(String, u64, Installed), tokio::task::JoinError>) -> bool {
        let (id, attempt, installed) = match done {
            Ok(done) => done,
            // The task was aborted because another replaced it.
            Err(error) if error.is_cancelled() => return false,
            Err(error) => {
                let id = self.under_way.iter().find(|(_, one)| one.abort.id() == error.id());
                let Some(id) = id.map(|(id, _)| id.clone()) else { return false };
                self.under_way.remove(&id);
                self.publisher.report(
                    Subject::plugin(&id),
                    Stage::Load,
                    &format!("a defect of wharf: {error}"),
                    self.served.contains_key(&id),
                );
                return true;
            }
        };
        // A task that had just ended when it was replaced could no longer be aborted, so its result is ignored here.
        if self.under_way.get(&id).is_none_or(|one| one.attempt != attempt) {
            return false;
        }
        let Some(under_way) = self.under_way.remove(&id) else { return false };
        self.start_debounce();
        let reported = self.report_at_once(&id, &installed);
        let UnderWay { config, state, kinds, .. } = under_way;
        self.arrived.push(Arrived { id, config, state, installed, kinds, reported });
        reported
    }

    /// Serves what tasks have installed, in order of precedence, so that a contested name goes to the plugin with the higher precedence and
    /// not to the faster one.
    fn take_in(&mut self) {
        let mut arrived = std::mem::take(&mut self.arrived);
        arrived.sort_by_key(|one| self.precedence(&one.id));
        for Arrived { id, installed, kinds, .. } in arrived {
            self.take_in_one(id, installed, kinds);
        }
    }

    fn take_in_one(&mut self, id: String, installed: Installed, kinds: Option<Kinds>) {
        match (installed, kinds) {
            (Installed::Same, _) => {
                self.publisher.set_status(Subject::plugin(&id), Some(Status::Serving));
            }
            (Installed::Fresh(fresh), kinds) => {
                let before = self.generations;
                self.serve(*fresh);
                if let Some(kinds) = kinds {
                    // An announced list counts as changed, even if its contents are the same as before.
                    for (kind, generation, before) in [
                        (Kind::Tools, &mut self.generations.tools, before.tools),
                        (Kind::Resources, &mut self.generations.resources, before.resources),
                        (Kind::Prompts, &mut self.generations.prompts, before.prompts),
                    ] {
                        if kinds.has(kind) {
                            *generation = (*generation).max(before + 1);
                        }
                    }
                    self.change();
                }
                if let Some(announced) = self.announced.get_mut(&id) {
                    announced.listed();
                }
            }
            (Installed::Failed { problem, instead }, kinds) => {
                if let Some(instead) = instead {
                    self.serve(*instead);
                }
                self.publisher.report(
                    Subject::plugin(&id),
                    problem.stage,
                    &problem.text,
                    self.served.contains_key(&id),
                );
                if let (Some(_), Some(announced)) = (kinds, self.announced.get_mut(&id)) {
                    announced.failed();
                }
            }
        }
    }

    fn remove_unwanted(&mut self, wanted: &[Arc<PluginConfig>]) {
        let ids: HashSet<&str> = wanted.iter().map(|plugin| plugin.id.as_str()).collect();
        let sources: HashSet<&PluginSource> = wanted.iter().map(|plugin| &plugin.source).collect();
        self.under_way.retain(|id, one| {
            let keep = ids.contains(id.as_str());
            if !keep {
                one.abort.abort();
            }
            keep
        });
        let gone: Vec<String> = self.served.keys().filter(|id| !ids.contains(id.as_str())).cloned().collect();
        for id in &gone {
            if let Some(mut served) = self.take_out(id) {
                self.losing.push(served.access.narrow());
                tracing::info!(plugin = id, "removed");
            }
        }
        self.announced.retain(|id, _| ids.contains(id.as_str()));
        self.arrived.retain(|one| ids.contains(one.id.as_str()));
        self.publisher.retain(|subject| match subject {
            Subject::PluginDir => self.config.plugin_dir.is_some(),
            // Keep the status while the file is still in the plugin folder and is not a served plugin.
            Subject::File(path) => {
                let is_served = wanted.iter().any(|plugin| plugin.source.path() == Some(path));
                path.exists() && path.parent() == self.config.plugin_dir.as_deref() && !is_served
            }
            Subject::Plugin(id) => ids.contains(id.as_str()),
        });
        self.installer.loader.retain(|source| sources.contains(source));
    }

    /// Begins to serve a loaded plugin, unless a plugin with higher precedence has one of its names. A plugin with lower precedence that
    /// has one of its names is removed.
    fn serve(&mut self, fresh: Fresh) {
        let Fresh { plugin, config, listed_for, offer, wants } = fresh;
        let id = config.id.clone();
        let previous = self.served.get(&id).cloned();
        let served = Served {
            plugin,
            config: Arc::clone(&config),
            listed_for,
            offer,
            wants,
            checks: Places::new(&wharf_schema::CHECKS, 1),
            results: Places::new(&RESULTS, 1),
            tasks: Places::new(&TASKS, (config.limits.concurrency / 2).max(1)),
            // If access was taken away, the calls that had it were stopped when the config was read.
            access: previous.as_ref().map_or_else(Access::from_now_on, |old| old.access.clone()),
        };
        self.served.insert(id.clone(), served);
        while let Err(clash) = Catalog::build(self.in_order(), self.generations, self.config.page_items) {
            let problem = Problem::new(Stage::Names, clash.problem);
            if clash.loser == id {
                match previous {
                    Some(previous) => self.served.insert(id.clone(), previous),
                    None => self.served.remove(&id),
                };
                self.publisher.report(
                    Subject::plugin(&id),
                    problem.stage,
                    &problem.text,
                    self.served.contains_key(&id),
                );
                return;
            }
            if self.take_out(&clash.loser).is_some() {
                self.publisher.report(Subject::plugin(&clash.loser), problem.stage, &problem.text, false);
            }
        }
        if let Some(now) = self.served.get(&id) {
            if let Some(previous) = &previous {
                now.plugin.succeed(&previous.plugin);
            }
            lacking::log(previous.as_ref(), now, &self.scopes);
        }
        let now = self.served.get(&id).map(|served| Arc::clone(&served.offer));
        let digest_of = |served: &Served| *served.plugin.code().digest().as_bytes();
        if let Some(digest) = self.served.get(&id).map(digest_of) {
            let before = previous.as_ref().map(digest_of);
            // The same code with another config or another list is the same plugin.
            if before != Some(digest) {
                self.observers.note(|| Event::Served { plugin: id.clone(), digest, before });
            }
        }
        self.count_changes(previous.as_ref().map(|old| &*old.offer), now.as_deref());
        self.change();
        self.publisher.set_status(Subject::plugin(&id), Some(Status::Serving));
        self.unlogged.push(id);
    }

    fn take_out(&mut self, id: &str) -> Option<Served> {
        let gone = self.served.remove(id)?;
        let digest = *gone.plugin.code().digest().as_bytes();
        self.observers.note(|| Event::Removed { plugin: id.to_owned(), digest });
        self.count_changes(Some(&gone.offer), None);
        self.change();
        Some(gone)
    }

    /// Takes away access that the new config no longer grants, before anything is loaded. The calls that run with it end when the catalog
    /// is published.
    fn take_away(&mut self, config: &Arc<PluginConfig>) {
        let Some(served) = self.served.get_mut(&config.id) else { return };
        if config.sha256.as_ref().is_some_and(|expected| expected != served.plugin.code().digest()) {
            self.losing.push(served.access.narrow());
            self.take_out(&config.id);
            return;
        }
        let now = |config: &PluginConfig| (config.tools.clone(), config.prompts.clone(), config.confirm.clone());
        let differs = now(&served.config) != now(config);
        let narrowed = config.grants.take_away_from(&served.config.grants);
        if !narrowed && !differs {
            return;
        }
        if narrowed {
            self.losing.push(served.access.narrow());
        } else if served.offers_less_with(config) {
            self.losing.push(served.access.stop_calls());
        }
        // The rest of the new config takes effect when the plugin is loaded with it.
        let (grants, (tools, prompts, confirm)) = (config.grants.clone(), now(config));
        served.config = Arc::new(PluginConfig { grants, tools, prompts, confirm, ..(*served.config).clone() });
        self.change();
    }

    /// Stops the calls of plugins that may use roots, because the operator has changed which folders are roots.
    fn revoke_roots(&mut self) {
        for served in self.served.values_mut().filter(|served| served.config.grants.roots.is_given()) {
            self.losing.push(served.access.narrow());
        }
        self.change();
    }

    /// Returns the sort key of a plugin: configured plugins come first, in the order of the file, then the others by id.
    fn precedence(&self, id: &str) -> (usize, String) {
        let position = self.config.plugins.iter().position(|plugin| plugin.id == id);
        (position.unwrap_or(usize::MAX), id.to_owned())
    }

    fn in_order(&self) -> Vec<Served> {
        let mut served: Vec<Served> = self.served.values().cloned().collect();
        served.sort_by_key(|one| (one.config.origin, self.precedence(&one.config.id)));
        served
    }

    /// Increments the generations of the lists in which clients see a difference.
    fn count_changes(&mut self, old: Option<&Offer>, new: Option<&Offer>) {
        let none = Offer::default();
        let (old, new) = (old.unwrap_or(&none), new.unwrap_or(&none));
        let [tools, resources, prompts] = old.differs(new).map(u64::from);
        self.generations.tools += tools;
        self.generations.resources += resources;
        self.generations.prompts += prompts;
    }

    /// Records that `served` has changed. The change is published soon, together with others that follow within the debounce interval.
    fn change(&mut self) {
        self.start_debounce();
        self.unpublished = true;
    }

    /// Starts the debounce interval, unless it is already running.
    fn start_debounce(&mut self) {
        if !self.unpublished && self.arrived.is_empty() {
            self.publish_by = Instant::now() + DEBOUNCE_INTERVAL;
        }
    }

    fn publish(&mut self, generations: Generations) {
        match Catalog::build(self.in_order(), generations, self.config.page_items) {
            Ok(catalog) => {
                self.unpublished = false;
                self.publisher.publish(catalog, self.generations);
            }
            Err(clash) => tracing::error!(plugin = clash.loser, "the catalog cannot be published: {}", clash.problem),
        }
        self.losing.clear();
    }
}
