//! Finds the plugins that should be served: those of the config, and the files in the plugin folder.

use std::{collections::HashSet, path::PathBuf, sync::Arc};

use super::Library;
use crate::plugins::status::{Stage, Subject};
use wharf_base::{guard, paths::FileId};
use wharf_config::config::{self, Origin, PluginConfig};

impl Library {
    /// Returns the configs of all plugins that should be served, in order of precedence.
    pub(super) fn wanted(&self) -> Vec<Arc<PluginConfig>> {
        let mut wanted = self.config.plugins.clone();
        let Some(folder) = &self.config.plugin_dir else { return wanted };
        if let Err(error) = guard::check_trusted_directory(folder, "plugin folder") {
            self.publisher.report(Subject::PluginDir, Stage::Read, &format!("{error:#}"), false);
            return wanted;
        }
        let entries = match std::fs::read_dir(folder).and_then(Iterator::collect::<std::io::Result<Vec<_>>>) {
            Ok(entries) => entries,
            Err(error) => {
                // A folder that cannot be read need not be empty, so the plugins that were in it are still served.
                self.publisher.report(Subject::PluginDir, Stage::Read, &format!("{}: {error}", folder.display()), true);
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
        self.publisher.set_status(Subject::PluginDir, None);
        let configured: Vec<FileId> = wanted.iter().filter_map(|plugin| FileId::at(plugin.source.path()?)).collect();
        let mut dropped: Vec<(String, PathBuf)> = entries
            .iter()
            .map(std::fs::DirEntry::path)
            .filter(|path| path.extension().is_some_and(|extension| extension == "wasm") && !path.is_dir())
            .filter_map(|path| Some((path.file_stem()?.to_str()?.to_owned(), path)))
            // Hidden files are often temporary files of editors and copying programs. A file that the config names is not served twice.
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
                Some(problem) => self.publisher.report(Subject::File(path), Stage::Name, &problem, false),
                None => wanted.push(Arc::new(self.config.dropped_in(&id, path))),
            }
        }
        wanted
    }
}
