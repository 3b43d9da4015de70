//! The plugins that wharf makes from existing MCP servers: each has a folder in the cache, and what builds them has another one.

use std::path::PathBuf;

use super::default_paths::cache_dir;

const FOLDER: &str = "servers";

/// Returns the folder that has a folder for each server: `servers` in the cache.
pub fn folder() -> Option<PathBuf> {
    cache_dir().map(|cache| cache.join(FOLDER))
}

/// Returns the folder of what builds servers: `tools` in the cache.
pub fn tools() -> Option<PathBuf> {
    cache_dir().map(|cache| cache.join("tools"))
}
