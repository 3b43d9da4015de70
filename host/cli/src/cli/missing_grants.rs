//! The grants without which a built-in plugin can do nothing.

use std::path::Path;

use crate::setup::clients::Client;
use wharf_config::config::{Config, PluginConfig, PluginSource, builtin};

/// What a plugin lacks.
#[derive(Debug, PartialEq, Eq)]
pub enum MissingGrant {
    /// It may not use any folder.
    Folders,
    /// It may use the folders that are open, and nothing opens any: the client does not send its own.
    Roots,
    /// It may not reach any URL.
    Urls,
}

impl MissingGrant {
    pub fn says(&self, plugin: &str, client: Option<&Client>) -> String {
        match self {
            Self::Folders => format!("`{plugin}` may not use any folder"),
            Self::Roots => {
                let client = client.map_or("the client", |client| client.title);
                format!(
                    "{client} does not tell servers which folders are open: name the folders that `{plugin}` may use"
                )
            }
            Self::Urls => format!("`{plugin}` may not reach any URL"),
        }
    }

    /// Returns the words that a command line needs in addition.
    pub fn words(&self) -> String {
        match self {
            Self::Folders | Self::Roots => self.example().to_owned(),
            Self::Urls => format!("--allow http={}", self.example()),
        }
    }

    /// Returns what stands in these words for what the person has to choose.
    pub fn example(&self) -> &'static str {
        match self {
            Self::Folders | Self::Roots => "DIR",
            Self::Urls => "https://example.com/",
        }
    }
}

/// Returns the built-in plugins of a config that lack what they need. `client`: the one that starts wharf with this config, if it is
/// known. `is_open`: whether folders are open that the config does not show.
pub fn lacking(config: &Config, client: Option<&Client>, is_open: bool) -> Vec<(String, MissingGrant)> {
    let lack = |plugin: &PluginConfig| {
        let grants = &plugin.grants;
        match built_in(plugin)? {
            "fetch" => grants.http.0.rules.is_empty().then_some(MissingGrant::Urls),
            "files" | "git" | "memory" if !grants.dirs.0.is_empty() => None,
            "files" | "git" | "memory" if grants.roots.0.is_none() => Some(MissingGrant::Folders),
            "files" | "git" | "memory" => {
                let is_open = is_open || !config.roots.fixed.is_empty() || client.is_none_or(|client| client.has_roots);
                (!is_open).then_some(MissingGrant::Roots)
            }
            _ => None,
        }
    };
    config.plugins.iter().filter_map(|plugin| Some((plugin.id.clone(), lack(plugin)?))).collect()
}

/// Returns the name of the built-in plugin that this one is, if it is one.
fn built_in(plugin: &PluginConfig) -> Option<&'static str> {
    builtin::names().find(|name| builtin::find(name).is_ok_and(|known| plugin.source == PluginSource::Bytes(known)))
}

/// Whether a path contains a variable, which only the client replaces.
pub fn is_variable(path: &Path) -> bool {
    path.to_str().is_some_and(|path| path.contains("${"))
}
