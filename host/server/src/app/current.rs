//! The config in use, and the only place where it is replaced. Others watch it.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
};

use anyhow::{Result, ensure};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::{
    access::scope::Scopes,
    config::{self, AccessLog, CommandLine, Config, Plugin, audit},
    observe::{journal::Event, observers::Observers},
};

/// Where a config comes from, each time it is read.
#[derive(Debug, Default)]
pub struct Origins {
    pub file: Option<PathBuf>,
    /// The config itself, in place of the contents of a file.
    pub text: Option<String>,
    pub command_line: CommandLine,
    /// Plugins that the embedding program gives.
    pub given: Vec<Plugin>,
    pub cache_dir: Option<PathBuf>,
}

impl Origins {
    pub fn read(&self) -> Result<Config> {
        let mut config = match &self.text {
            Some(text) => config::from_text(text, self.file.as_deref(), &self.command_line)?,
            None => config::load(self.file.as_deref(), &self.command_line)?,
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
    /// What is trusted because of the logs that are being written and the certificate that is being used, whatever a later
    /// config says of them.
    trusted: Vec<PathBuf>,
    /// The private key that is being used, and what was a secret when wharf started: what only a new start changes came from there.
    secret: Vec<PathBuf>,
}

impl Current {
    pub fn new(origins: Origins, config: Arc<Config>, scopes: Arc<Scopes>, observers: Observers) -> Arc<Self> {
        note(&observers, None, &config);
        let tls = config.startup.http.tls.as_ref();
        let audit = config.startup.audit.iter().flat_map(|audit| audit::trusted(&audit.file));
        let access = config.startup.http.access_log.as_ref().and_then(AccessLog::trusted);
        let trusted = audit.chain(access).chain(tls.into_iter().flat_map(|tls| tls.files().cloned())).collect();
        let secret = config.places(None).secret;
        let (origins, config) = (Mutex::new(origins), watch::Sender::new(config));
        Arc::new(Self { origins, config, scopes, observers, trusted, secret })
    }

    pub fn watch(&self) -> watch::Receiver<Arc<Config>> {
        self.config.subscribe()
    }

    /// Reads everything again. A config that is wrong changes nothing and is logged.
    pub fn reload(&self) {
        let origins = self.origins.lock();
        match origins.read().and_then(|new| self.check(new)) {
            Ok(new) => {
                for key in new.startup.differs(&self.config.borrow().startup) {
                    tracing::warn!("`{key}` changed; it takes effect when wharf starts anew");
                }
                self.take(&origins, new);
                tracing::info!("the config was read anew");
            }
            Err(error) => self.refuse(&origins, &error),
        }
    }

    /// Refuses what cannot take effect together with what only a new start changes.
    fn check(&self, new: Config) -> Result<Config> {
        let public = self.config.borrow().startup.protocol.lists.public;
        ensure!(
            !(public && new.roles.are_there()),
            "with [roles], lists are not the same for everybody, and those of this start are marked public; start wharf anew"
        );
        Ok(new)
    }

    fn refuse(&self, origins: &Origins, error: &anyhow::Error) {
        tracing::error!("the config is not used, the last good one stays: {error:#}");
        let file = origins.file.clone();
        self.observers.note(|| Event::ConfigRefused { file, problem: format!("{error:#}") });
    }

    /// Adds a plugin, or replaces the one with its id. Returns the number of the new config.
    pub fn give(&self, plugin: Plugin) -> Result<u64> {
        let mut origins = self.origins.lock();
        let mut new = (**self.config.borrow()).clone();
        new.give(plugin.clone())?;
        origins.given.retain(|other| other.name() != plugin.name());
        origins.given.push(plugin);
        Ok(self.take(&origins, new))
    }

    /// Removes a plugin that the embedding program gave, and returns the number of the new config. A plugin of the config with
    /// the same id is served again. None: there is no such plugin.
    pub fn take_away(&self, id: &str) -> Option<u64> {
        let mut origins = self.origins.lock();
        let at = origins.given.iter().position(|plugin| plugin.name() == id)?;
        origins.given.remove(at);
        let new = origins.read().unwrap_or_else(|error| {
            // The file has become wrong since. What it said before counts, as far as that is known.
            self.refuse(&origins, &error);
            let mut last = (**self.config.borrow()).clone();
            last.plugins.retain(|plugin| plugin.id != id);
            last
        });
        Some(self.take(&origins, new))
    }

    fn take(&self, origins: &Origins, mut new: Config) -> u64 {
        let number = self.config.borrow().number + 1;
        new.number = number;
        if new.roles.are_alike(&self.config.borrow().roles) {
            // Lists that were made for callers with these roles are still good.
            new.roles = Arc::clone(&self.config.borrow().roles);
        }
        if new.profiles == self.config.borrow().profiles {
            // What was made of the catalog for them stays good.
            new.profiles = Arc::clone(&self.config.borrow().profiles);
        }
        note(&self.observers, Some(&self.config.borrow()), &new);
        let mut places = new.places(origins.cache_dir.as_deref());
        places.trusted.extend(self.trusted.iter().cloned());
        places.secret.extend(self.secret.iter().cloned());
        self.scopes.renew(places);
        self.config.send_replace(Arc::new(new));
        number
    }
}

/// Tells the journal which config is in use from now on, and what it grants that the one before did not, and the other way round.
fn note(observers: &Observers, before: Option<&Config>, now: &Config) {
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
