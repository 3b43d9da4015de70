//! Watches the source files of a plugin for changes.

#![expect(clippy::disallowed_methods, reason = "reads the state of the author's files")]

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use super::project::{Live, PLUGIN_TOML, Project};
use wharf_base::folders::{Folders, leading_to};

/// The names of folders that build tools generate, which contain no sources.
pub(super) const GENERATED_FOLDERS: [&str; 5] = ["node_modules", "target", "dist", "build", "__pycache__"];
/// The maximum number of files, and of folders, that are watched.
const MAX_WATCHED: usize = 20_000;

/// Watches the sources of a plugin.
pub struct Sources {
    folders: Folders,
    state: State,
}

/// The state of the sources at some time.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct State {
    files: Vec<(PathBuf, Option<SystemTime>, u64)>,
    folders: Vec<PathBuf>,
}

impl Sources {
    /// Starts watching the sources of a project.
    pub fn watch(project: &Project) -> Self {
        let mut sources = Self { folders: Folders::new(|_| false, |_| ()), state: State::default() };
        // A change before its folder is watched is noticed by the next call of `look`, which is after the first build.
        sources.look(project);
        sources
    }

    /// Reads the state of the sources again. Returns whether they have changed since the last call.
    pub fn look(&mut self, project: &Project) -> bool {
        let now = State::of(project);
        let mut folders: HashSet<PathBuf> = now.folders.iter().cloned().collect();
        folders.extend(leading_to([project.folder.join(PLUGIN_TOML)]));
        self.folders.follow(folders);
        let changed = now.files != self.state.files;
        self.state = now;
        changed
    }

    /// Whether no source is newer than the component, as they were last read.
    pub fn are_built(&self, project: &Project) -> bool {
        let made = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
        let manifest = (made(&project.folder.join(PLUGIN_TOML)), made(&project.build.artifact));
        let (changed, Some(built)) = manifest else { return false };
        let sources = self.state.files.iter().map(|(_, changed, _)| *changed);
        sources.chain([changed]).all(|changed| changed.is_some_and(|changed| changed <= built))
    }

    /// Waits until the sources may have changed.
    pub async fn changed(&mut self) {
        self.folders.changed().await;
    }
}

impl State {
    fn of(project: &Project) -> Self {
        let mut state = Self::default();
        let mut folders = vec![project.folder.clone()];
        while let Some(folder) = folders.pop() {
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            for entry in entries.flatten() {
                let (path, name) = (entry.path(), entry.file_name());
                let Ok(metadata) = fs::metadata(&path) else { continue };
                if metadata.is_dir() {
                    let name = name.to_string_lossy();
                    // Symbolic links to folders are not followed, since they may form a cycle.
                    let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
                    if !is_link && !name.starts_with('.') && !GENERATED_FOLDERS.contains(&&*name) {
                        folders.push(path);
                    }
                } else if is_source(&path, project) && state.files.len() < MAX_WATCHED {
                    state.files.push((path, metadata.modified().ok(), metadata.len()));
                }
            }
            if state.folders.len() < MAX_WATCHED {
                state.folders.push(folder);
            }
        }
        state.files.sort();
        state
    }
}

/// Whether a build of the project makes this file.
fn is_made(path: &Path, project: &Project) -> bool {
    let live = |live: &Live| path == live.artifact || path.starts_with(&live.source);
    path == project.build.artifact || project.build.live.as_ref().is_some_and(live)
}

fn is_source(path: &Path, project: &Project) -> bool {
    let Ok(inside) = path.strip_prefix(&project.folder) else { return false };
    inside == Path::new(PLUGIN_TOML)
        || (!is_made(path, project) && project.build.watch.as_ref().is_none_or(|wanted| wanted.is_match(inside)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sources_count() {
        let place = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = place.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let toml =
            |watch: &str| format!("name = 'a'\n[build]\ncommand = 'x'\nartifact = 'out.wasm'\nwatch = {watch}\n");
        write("plugin.toml", &toml("['src/**', '*.mod']"));
        write("src/deep/a.rs", "1");
        let project = Project::open(place.path()).unwrap();
        let mut before = State::of(&project);
        for (path, counts) in [
            ("src/deep/a.rs", true),
            ("src/new.rs", true),
            ("go.mod", true),
            ("sub/go.mod", false),
            ("README.md", false),
            ("src/node_modules/a.js", false),
            ("src/.git/index", false),
            ("out.wasm", false),
            ("plugin.toml", true),
        ] {
            write(path, &format!("{}# {path}", toml("[]")));
            let now = State::of(&project);
            assert_eq!(now.files != before.files, counts, "{path}");
            before = now;
        }
        let everything = Project::open(place.path()).unwrap();
        let before = State::of(&everything);
        write("out.wasm", "again");
        assert_eq!(State::of(&everything).files, before.files);
        write("README.md", "again");
        assert_ne!(State::of(&everything).files, before.files);
    }
}
