//! Where the folder of a project or a server belongs.

#![expect(clippy::disallowed_methods, reason = "only looks where a repository begins")]

use std::path::Path;

/// Whether a folder holds more than one project: the home directory, and those above it.
pub fn is_shared(folder: &Path) -> bool {
    folder.parent().is_none() || std::env::home_dir().is_some_and(|home| home.starts_with(folder))
}

/// Returns a folder and those above it that hold one project, from the inside to the outside.
pub fn own(folder: &Path) -> impl Iterator<Item = &Path> {
    folder.ancestors().take_while(|above| !is_shared(above))
}

/// Returns the repository in which a folder is, else the folder itself.
pub fn of(folder: &Path) -> &Path {
    own(folder).find(|above| above.join(".git").exists()).unwrap_or(folder)
}
