//! What stands on the command line rather than in the file.

use std::{net::SocketAddr, path::PathBuf};

use crate::access::capability::Access;

/// What the command line adds to the file.
#[derive(Debug, Clone, Default)]
pub struct CommandLine {
    pub plugins: Vec<PathBuf>,
    pub roots: Vec<PathBuf>,
    /// Granted to the plugins named here.
    pub allow_roots: Option<Access>,
    pub listen: Option<SocketAddr>,
}
