//! Settings from the command line.

use std::path::PathBuf;

use super::listen::Listen;
use crate::access::capability::Access;

/// What the command line adds to the config file.
#[derive(Debug, Clone, Default)]
pub struct CommandLine {
    pub plugins: Vec<PathBuf>,
    pub roots: Vec<PathBuf>,
    /// The access to roots that the plugins named on the command line are granted.
    pub allow_roots: Option<Access>,
    pub listen: Option<Listen>,
}
