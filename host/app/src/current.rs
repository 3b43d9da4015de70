//! Holds the config in use. It is replaced only here; other modules watch it.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
};

use anyhow::{Result, bail, ensure};
use parking_lot::Mutex;
use tokio::sync::watch;

use wharf_base::{
    paths::Stamp,
    text::{self, toml_header},
    whole::Writing,
};
use wharf_config::config::{self, AccessLog, CommandLine, Config, Plugin, audit};
use wharf_plugins::observe::{journal::Event, observers::Observers};
use wharf_policy::access::{protected::Protected, scope::Scopes};

/// The sources that the config is read from, at the start and at each reload.
#[derive(Debug, Default)]
pub struct Origins {
    pub file: Option<PathBuf>,
    /// The config itself, in place of the contents of a file.
    pub text: Option<String>,
    /// The contents of the file from which the config in use was read.
    pub used: Option<String>,
    pub command_line: CommandLine,
    /// Plugins that the embedding program gives.
    pub given: Vec<Plugin>,
    pub cache_dir: Option<PathBuf>,
}

impl Origins {
    /// Reads the config for the first time.
    pub fn begin(&mut self) -> Result<Config> {
        self.used = self.read()?;
        self.last()
    }

    /// Reads the current contents of the file, if the config is in a file.
    fn read(&self) -> Result<Option<String>> {
        match (&self.text, &self.file) {
            (None, Some(file)) => config::read(file).map(Some),
            _ => Ok(None),
        }
    }

    /// Resolves the contents from which the config in use was read.
    fn last(&self) -> Result<Config> {
        self.resolve(self.used.as_deref())
    }

    fn resolve(&self, in_file: Option<&str>) -> Result<Config> {
        let mut config = match self.text.as_deref().or(in_file) {
            Some(text) => config::from_text(text, self.file.as_deref(), &self.command_line)?,
            None => config::without_file(&self.command_line)?,
        };
        for plugin in &self.given {
            config.give(plugin.clone())?;
        }
        Ok(config)
    }
}

pub struct Current {
    origins: Mutex<Origins>,
    config: watch::Sender<Arc<Config>>,
    scopes: Arc<Scopes>,
    observers: Observers,
    /// What stays protected whatever a later config says: the files of the logs that are being written, of the certificate and key in use,
    /// and of the secrets at the start, from which settings that need a restart were read.
    protected: Protected,
    /// Whether a program is writing the config file.
    writing: Arc<Writing>,
}

/// Why the config in the file is not applied.
enum Unused {
    /// The config is invalid.
    Wrong(anyhow::Error),
    /// The file changed while it was read, so the text may be incomplete.
    Changing,
}

impl<E: Into<anyhow::Error>> From<E> for Unused {
    fn from(error: E) -> Self {
        Self::Wrong(error.into())
    }
}

impl Current {
    /// `writing`: tracks writes to the config file.
    pub fn new(
        origins: Origins,
        config: Arc<Config>,
        scopes: Arc<Scopes>,
        observers: Observers,
        writing: Arc<Writing>,
    ) -> Arc<Self> {
        note(&observers, None, &config);
        let tls = config.startup.http.tls.as_ref();
        let mut protected = Protected { secret: config.named.secret.clone(), ..Protected::default() };
        protected.files(config.startup.audit.iter().flat_map(|audit| audit::trusted(&audit.file)));
        protected.files(config.startup.http.access_log.as_ref().and_then(AccessLog::trusted));
        protected.files(tls.into_iter().flat_map(|tls| tls.files().cloned()));
        let (origins, config) = (Mutex::new(origins), watch::Sender::new(config));
        Arc::new(Self { origins, config, scopes, observers, protected, writing })
    }

    pub fn watch(&self) -> watch::Receiver<Arc<Config>> {
        self.config.subscribe()
    }

    /// Reloads the config on request. An invalid config changes nothing and is logged.
    pub fn reload(&self) {
        if self.writing.is_open() {
            tracing::warn!("a program writes the config; it is reloaded when that program closes the file");
            return;
        }
        let stamp = self.origins.lock().file.as_deref().and_then(|file| Stamp::of(file).ok());
        if !self.reload_if(stamp.as_ref()) {
            tracing::warn!("the config changed while it was read; it is reloaded when the file stays unchanged");
        }
    }

    /// Reloads the config if its file is in the state `stamp`. Returns false, and changes nothing, if the file is in another state: what
    /// was read may then be incomplete.
    pub fn reload_if(&self, stamp: Option<&Stamp>) -> bool {
        let mut origins = self.origins.lock();
        match self.read(&origins, stamp) {
            Ok((text, new)) => {
                for key in new.startup.differs(&self.config.borrow().startup) {
                    tracing::warn!("`{key}` changed; it takes effect when wharf is restarted");
                }
                origins.used = text;
                self.apply(&origins, new);
                tracing::info!("the config was reloaded");
            }
            Err(Unused::Wrong(error)) => self.refuse(&origins, &error),
            Err(Unused::Changing) => return false,
        }
        true
    }

    fn read(&self, origins: &Origins, stamp: Option<&Stamp>) -> Result<(Option<String>, Config), Unused> {
        let text = origins.read()?;
        if origins.file.as_deref().and_then(|file| Stamp::of(file).ok()).as_ref() != stamp {
            return Err(Unused::Changing);
        }
        let emptied = |text: &String| config::is_blank(text) && origins.used != Some(text.clone());
        if text.as_ref().is_some_and(emptied) {
            let empty = anyhow::anyhow!(
                "the file contains no settings, as when a program is about to write it; to remove everything, restart wharf"
            );
            return Err(Unused::Wrong(empty));
        }
        let new = self.check(origins.resolve(text.as_deref())?)?;
        Ok((text, new))
    }

    /// Refuses a config that conflicts with settings that need a restart, and a config that would open access because something was
    /// removed from it.
    fn check(&self, new: Config) -> Result<Config> {
        let now = self.config.borrow();
        ensure!(
            !new.roles.is_empty() || now.roles.is_empty(),
            "there are no [roles.*] any more, so everybody could use everything; if that is intended, add [roles.everybody] with \
             when = \"anyone\" and plugins = [\"*\"]"
        );
        if let Some((role, key, gives)) = new.roles.lost_since(&now.roles) {
            bail!(
                "{} has no `{key}` any more, so it would give {gives}; if that is intended, write it out (such as tools = [\"*\"]) or \
                 restart wharf",
                toml_header(&["roles", role])
            );
        }
        Ok(new)
    }

    fn refuse(&self, origins: &Origins, error: &anyhow::Error) {
        tracing::error!("the config is not used, the last valid one stays: {error:#}");
        let file = origins.file.clone();
        self.observers.note(|| Event::ConfigRefused { file, problem: format!("{error:#}") });
    }

    /// Adds a plugin, or replaces the one with its id. Returns the number of the new config.
    pub fn give(&self, plugin: Plugin) -> Result<u64> {
        let mut origins = self.origins.lock();
        let mut new = (**self.config.borrow()).clone();
        new.give(plugin.clone())?;
        origins.given.retain(|other| config::id_of(other) != config::id_of(&plugin));
        origins.given.push(plugin);
        Ok(self.apply(&origins, new))
    }

    /// Removes a plugin that the embedding program gave, and returns the number of the new config. A plugin of the config with
    /// the same id is served again. None: there is no such plugin.
    pub fn take_away(&self, id: &str) -> Option<u64> {
        let mut origins = self.origins.lock();
        let at = origins.given.iter().position(|plugin| config::id_of(plugin) == id)?;
        origins.given.remove(at);
        // The file is read when it is completely written. Until then, its previous contents count.
        let new = origins.last().unwrap_or_else(|error| {
            self.refuse(&origins, &error);
            let mut last = (**self.config.borrow()).clone();
            last.plugins.retain(|plugin| plugin.id != id);
            last
        });
        Some(self.apply(&origins, new))
    }

    /// Puts a config into use, and returns its number.
    fn apply(&self, origins: &Origins, mut new: Config) -> u64 {
        let number = self.config.borrow().number + 1;
        new.number = number;
        if new.roles.are_alike(&self.config.borrow().roles) {
            // Lists that were made for callers with these roles are still valid.
            new.roles = Arc::clone(&self.config.borrow().roles);
        }
        if new.profiles == self.config.borrow().profiles {
            // Views of the catalog that were made for these profiles are still valid.
            new.profiles = Arc::clone(&self.config.borrow().profiles);
        }
        note(&self.observers, Some(&self.config.borrow()), &new);
        let mut rules = new.folder_rules(origins.cache_dir.as_deref());
        rules.own.and(&self.protected);
        self.scopes.renew(rules);
        self.config.send_replace(Arc::new(new));
        number
    }
}

/// Records in the journal which config is in use from now on, and which grants were added and removed.
fn note(observers: &Observers, before: Option<&Config>, now: &Config) {
    if before.is_none_or(|before| !Arc::ptr_eq(&before.roles, &now.roles)) {
        for (role, folder) in now.roles.missing_folders() {
            let (role, folder) = (toml_header(&["roles", role]), text::path(&folder));
            tracing::warn!("the folder {folder} of {role} is not there, so this role opens no roots");
        }
    }
    observers.note(|| Event::ConfigRead { file: now.file.clone(), digest: now.digest });
    let granted = |config: &Config| -> BTreeMap<String, Vec<String>> {
        config.plugins.iter().map(|plugin| (plugin.id.clone(), plugin.grants.describe())).collect()
    };
    let (before, now) = (before.map(granted).unwrap_or_default(), granted(now));
    let (none, ids) = (Vec::new(), before.keys().chain(now.keys()).collect::<BTreeSet<_>>());
    for id in ids {
        let (was, is) = (before.get(id).unwrap_or(&none), now.get(id).unwrap_or(&none));
        let only = |one: &[String], other: &[String]| -> Vec<String> {
            one.iter().filter(|grant| !other.contains(grant)).cloned().collect()
        };
        let (added, removed) = (only(is, was), only(was, is));
        if !added.is_empty() || !removed.is_empty() {
            observers.note(|| Event::Granted { plugin: id.clone(), added, removed });
        }
    }
}
