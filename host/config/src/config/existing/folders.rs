//! The folders of the cache for servers and for what builds them.

use std::path::PathBuf;

use crate::config::default_paths::cache_dir;

const FOLDER: &str = "servers";

/// Returns the folder that has a folder for each server: `servers` in the cache.
pub fn folder() -> Option<PathBuf> {
    cache_dir().map(|cache| cache.join(FOLDER))
}

/// Returns the folder of what builds servers: `tools` in the cache.
pub fn tools() -> Option<PathBuf> {
    cache_dir().map(|cache| cache.join("tools"))
}
