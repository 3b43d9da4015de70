//! Configures a wharf, for programs that embed it.

use std::{path::PathBuf, sync::Arc};

use crate::{error::Error, setup::Setup, wharf::Wharf};
use wharf_config::config::{self, Plugin, state::Keeps};
use wharf_plugins::observe::record::Observer;
use wharf_policy::access::approval::Approver;

/// Configures and builds a [`Wharf`].
#[derive(Default)]
pub struct Builder {
    setup: Setup,
}

impl Wharf {
    /// Begins to configure a wharf.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

impl Builder {
    /// Uses a config file, and follows its changes as long as wharf runs. wharf does not listen at the address in `listen`: the
    /// program opens its own listener.
    #[must_use]
    pub fn config_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.setup.file = Some(file.into());
        self
    }

    /// Uses this text as the config. Relative paths in it are relative to the working directory.
    #[must_use]
    pub fn config(mut self, text: impl Into<String>) -> Self {
        self.setup.text = Some(text.into());
        self
    }

    /// Adds a plugin to those of the config.
    #[must_use]
    pub fn plugin(mut self, plugin: Plugin) -> Self {
        self.setup.given.push(plugin);
        self
    }

    /// Stores compiled code in this folder, which no other user may write. By default, `$XDG_CACHE_HOME/wharf`, else
    /// `~/.cache/wharf`.
    #[must_use]
    pub fn cache_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.setup.cache_dir = Some(folder.into());
        self
    }

    /// Stores no compiled code: every start compiles all plugins again.
    #[must_use]
    pub fn no_cache(mut self) -> Self {
        self.setup.no_cache = true;
        self
    }

    /// Asks the approver before every call of a tool, resource or prompt. No answer within ten minutes counts as no.
    #[must_use]
    pub fn approver(mut self, approver: impl Approver + 'static) -> Self {
        self.setup.approver = Some(Arc::new(approver));
        self
    }

    /// Tells the observer about every run of a plugin when it has ended, and about every call that was refused before it ran.
    #[must_use]
    pub fn observer(mut self, observer: impl Observer + 'static) -> Self {
        self.setup.observers.push(Box::new(observer));
        self
    }

    /// Lets clients open folders in the home directory, if the config does not say where roots may lie.
    #[must_use]
    pub fn roots_in_home(mut self) -> Self {
        self.setup.roots_in_home = true;
        self
    }

    /// Puts everything together, loads all plugins and serves them until the last [`Wharf`] is dropped or stopped.
    ///
    /// # Errors
    /// If the config is wrong, or a plugin that was given with [`Builder::plugin`] does not load. If a plugin of the config
    /// does not load, that is not an error: it is served as soon as it loads.
    pub async fn build(self) -> Result<Wharf, Error> {
        let given: Vec<String> = self.setup.given.iter().map(|plugin| config::id_of(plugin).to_owned()).collect();
        let wharf = Setup { keeps: Keeps::Configured, ..self.setup }.start()?;
        wharf.inner.settled(1).await;
        for id in &given {
            wharf.check(id)?;
        }
        Ok(wharf)
    }
}
