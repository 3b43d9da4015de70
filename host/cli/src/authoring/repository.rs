//! Where the folder of a project or a server belongs.

#![expect(clippy::disallowed_methods, reason = "only looks where a repository begins")]

use std::path::Path;

use wharf_config::config::existing::server::is_shared;

/// Returns a folder and those above it that hold one project, from the inside to the outside.
pub fn own(folder: &Path) -> impl Iterator<Item = &Path> {
    folder.ancestors().take_while(|above| !is_shared(above))
}

/// Returns the repository in which a folder is, else the folder itself.
pub fn of(folder: &Path) -> &Path {
    own(folder).find(|above| above.join(".git").exists()).unwrap_or(folder)
}
