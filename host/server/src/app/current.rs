//! The config in use, and the only place where it is replaced. Others watch it.

use std::{path::PathBuf, sync::Arc};

use anyhow::Result;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::{
    access::scope::Scopes,
    config::{self, CommandLine, Config, Plugin},
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
}

impl Current {
    pub fn new(origins: Origins, config: Arc<Config>, scopes: Arc<Scopes>) -> Arc<Self> {
        Arc::new(Self { origins: Mutex::new(origins), config: watch::Sender::new(config), scopes })
    }

    pub fn watch(&self) -> watch::Receiver<Arc<Config>> {
        self.config.subscribe()
    }

    /// Reads everything again. A config that is wrong changes nothing and is logged.
    pub fn reload(&self) {
        let origins = self.origins.lock();
        match origins.read() {
            Ok(new) => {
                for key in new.startup.differs(&self.config.borrow().startup) {
                    tracing::warn!("`{key}` changed; it takes effect when wharf starts anew");
                }
                self.take(&origins, new);
                tracing::info!("the config was read anew");
            }
            Err(error) => tracing::error!("the config is not used, the last good one stays: {error:#}"),
        }
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
            tracing::error!("the config is not used, the last good one stays: {error:#}");
            let mut last = (**self.config.borrow()).clone();
            last.plugins.retain(|plugin| plugin.id != id);
            last
        });
        Some(self.take(&origins, new))
    }

    fn take(&self, origins: &Origins, mut new: Config) -> u64 {
        let number = self.config.borrow().number + 1;
        new.number = number;
        self.scopes.renew(new.places(origins.cache_dir.as_deref()));
        self.config.send_replace(Arc::new(new));
        number
    }
}
