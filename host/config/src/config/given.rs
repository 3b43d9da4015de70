//! Plugins that an embedding program adds to those of the config. The methods are named after keys of the config.

use std::{borrow::Cow, path::Path, sync::Arc, time::Duration};

use anyhow::{Context, Result, anyhow};
use bytes::Bytes;
use serde::Serialize;

use super::{
    default_paths::absolute,
    plugin::{self, PluginConfig, Shared},
    raw::{self, Number, Unit},
    resolved::Config,
    source::{Component, PluginSource},
};
use wharf_base::{digest::Digest, explain::THIS_KEY};
use wharf_egress::rule;
use wharf_policy::access::{
    capability::Access,
    grants::{dirs, env},
};

/// A plugin and what it is granted. By default it is granted nothing.
///
/// The settings have the same defaults as in the config file, and are checked in the same way when the plugin is added to a
/// `Wharf`.
#[derive(Debug, Clone)]
pub struct Plugin {
    id: String,
    source: PluginSource,
    written: raw::Plugin,
    /// What is wrong with a setting that cannot be written.
    problem: Option<String>,
}

/// Something that a plugin may ask the client for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ask {
    /// Input of a person, in a form or on a web page.
    Elicitation,
    /// A message of the client's model.
    Sampling,
    /// The client's roots.
    Roots,
}

impl Plugin {
    /// A plugin whose component is in a file. It is loaded again when the file changes. Its id is the file's name without `.wasm`.
    pub fn file(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        let id = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        Self::new(id, PluginSource::File(path.to_owned()))
    }

    /// A plugin whose component is in memory. Bytes that are part of the program are not copied.
    pub fn bytes(id: impl Into<String>, component: impl Into<Cow<'static, [u8]>>) -> Self {
        let component = match component.into() {
            Cow::Borrowed(bytes) => Bytes::from_static(bytes),
            Cow::Owned(bytes) => Bytes::from(bytes),
        };
        Self::new(id.into(), PluginSource::Bytes(Component::new(component)))
    }

    fn new(id: String, source: PluginSource) -> Self {
        Self { id, source, written: raw::Plugin::default(), problem: None }
    }

    /// Sets the plugin's id: 1 to 64 letters, digits, `_`, `-` and `.`. By default, the names of its tools and prompts begin
    /// with the id and `_`.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = id.into();
        self
    }

    /// Sets how the names of its tools and prompts begin.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.written.prefix = Some(prefix.into());
        self
    }

    /// Refuses any component but the one with this SHA-256.
    #[must_use]
    pub fn sha256(mut self, digest: Digest) -> Self {
        self.written.sha256 = Some(digest.to_string());
        self
    }

    /// Publishes only these tools: names as the plugin gives them, or beginnings of names followed by `*`.
    #[must_use]
    pub fn tools(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.written.tools = Some(raw::Tools::Names(names.into_iter().map(Into::into).collect()));
        self
    }

    /// Lets it work in the folders that the client opens.
    #[must_use]
    pub fn roots(mut self, access: Access) -> Self {
        self.written.grants.roots = Some(access.as_str().to_owned());
        self
    }

    /// Opens a folder of the host to it. The plugin sees the folder at the absolute path `guest`. Unlike in a config, `~` is an ordinary
    /// name.
    #[must_use]
    pub fn dir(mut self, host: impl AsRef<Path>, guest: impl Into<String>, access: Access) -> Self {
        // Only a path that begins with `~` is relative to the home directory.
        let host = Path::new(".").join(host);
        let access = access.as_str().to_owned();
        self.written.grants.dirs.push(dirs::RawDir { host, guest: Some(guest.into()), access });
        self
    }

    /// Lets it see a variable of this process's environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>) -> Self {
        self.written.grants.env.push(env::RawEnv::Variable(name.into()));
        self
    }

    /// Lets it send `GET` and `HEAD` requests to this URL and what lies below, such as `https://api.example.com/v1/`. Rules in a
    /// config can also allow other methods and add secrets.
    #[must_use]
    pub fn http(mut self, url: impl Into<String>) -> Self {
        self.written.grants.http.push(rule::RawRule::url(url));
        self
    }

    /// Lets it send `GET` and `HEAD` requests to a host of this machine or of a private network, such as `http://localhost:8080`.
    #[must_use]
    pub fn http_private(mut self, url: impl Into<String>) -> Self {
        self.written.grants.http.push(rule::RawRule::private(url));
        self
    }

    /// Lets it ask the client for this.
    #[must_use]
    pub fn ask(mut self, ask: Ask) -> Self {
        let name = match ask {
            Ask::Elicitation => "elicitation",
            Ask::Sampling => "sampling",
            Ask::Roots => "roots",
        };
        self.written.grants.ask.push(name.to_owned());
        self
    }

    /// Sets how long one of its calls may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.written.limits.timeout_ms = self.checked("timeout_ms", timeout.as_millis());
        self
    }

    /// Sets how much memory one of its calls may have, in MiB.
    #[must_use]
    pub fn memory_mib(mut self, mib: usize) -> Self {
        self.written.limits.memory_mib = self.checked("memory_mib", mib as u128);
        self
    }

    /// Sets how many of its calls may run at once.
    #[must_use]
    pub fn concurrency(mut self, calls: usize) -> Self {
        self.written.limits.concurrency = self.checked("concurrency", calls as u128);
        self
    }

    /// Sets what the plugin gets as its own config: anything that serialises to a table. A value that does not, because it is not a map or
    /// struct or contains a null, is an error when the plugin is added to a `Wharf`.
    #[must_use]
    pub fn config(mut self, config: impl Serialize) -> Self {
        match toml::Table::try_from(config) {
            Ok(table) => self.written.config = table,
            Err(error) => self.problem = Some(format!("its config is not a table: {error}")),
        }
        self
    }

    /// Checks a number that has this key in a config.
    fn checked<U: Unit, const DEFAULT: u64, const LEAST: u64, const MOST: u64>(
        &mut self,
        key: &str,
        number: u128,
    ) -> Option<Number<U, DEFAULT, LEAST, MOST>> {
        let checked = Number::new(u64::try_from(number).unwrap_or(u64::MAX));
        checked.map_err(|problem| self.problem = Some(problem.replace(THIS_KEY, &format!("`{key}`")))).ok()
    }

    fn resolve(self, config: &Config) -> Result<PluginConfig> {
        let Self { id, source, written, problem } = self;
        if let Some(problem) = problem {
            return Err(anyhow!(problem)).with_context(|| format!("the plugin `{id}`"));
        }
        let source = match source {
            PluginSource::File(path) => PluginSource::File(std::path::absolute(path)?),
            bytes => bytes,
        };
        let shared = Shared { limits: &config.limits, approvals: &config.approvals };
        let resolved = plugin::resolve(&id, written, source, shared, &|path| absolute(path, None));
        resolved.with_context(|| format!("the plugin `{id}`"))
    }
}

/// Returns the id of a plugin.
pub fn id_of(plugin: &Plugin) -> &str {
    &plugin.id
}

impl Config {
    /// Adds a plugin after all others, or replaces the one with its id.
    pub fn give(&mut self, plugin: Plugin) -> Result<()> {
        let plugin = Arc::new(plugin.resolve(self)?);
        plugin.check_secrets(&self.egress)?;
        match self.plugins.iter_mut().find(|other| other.id == plugin.id) {
            Some(other) => *other = plugin,
            None => self.plugins.push(plugin),
        }
        Ok(())
    }
}
