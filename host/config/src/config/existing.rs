//! The plugins that wharf makes from existing MCP servers: each has a folder in the cache, with a list of the folders of its sources.
//!
//! When such a server changes, wharf builds it again, and a build may run what it finds in these folders outside of the sandbox. So no
//! plugin may write there, whichever plugins a wharf serves.

use std::path::PathBuf;

use super::default_paths::{cache_dir, cache_dirs};

/// The file that lists the folders of a server's sources, one a line.
pub const SOURCES: &str = "sources";
const FOLDER: &str = "servers";

/// Returns the folder that has a folder for each server: `servers` in the cache.
pub fn folder() -> Option<PathBuf> {
    cache_dir().map(|cache| cache.join(FOLDER))
}

/// Returns the paths that no plugin may change: everything in the folders of the servers and of their sources.
pub fn trusted() -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for all in cache_dirs() {
        let all = all.join(FOLDER);
        for server in std::fs::read_dir(&all).into_iter().flatten().flatten() {
            let sources = std::fs::read_to_string(server.path().join(SOURCES)).unwrap_or_default();
            folders.extend(sources.lines().map(PathBuf::from).filter(|folder| folder.is_absolute()));
            folders.push(server.path());
        }
        folders.push(all);
    }
    folders.into_iter().map(|folder| folder.join("*")).collect()
}
