//! Packages that carry wharf and one plugin, for users who have neither: an `.mcpb` for desktop clients, a package for npm, a wheel for
//! PyPI, and `server.json`, which describes these to registries of MCP servers.
//!
//! Each package starts `wharf packaged PLUGIN.wasm FOLDER…`, which grants what the user's answers allow ([`answers`]).

pub mod answers;
pub mod archive;
pub mod machine;
pub mod mcpb;
pub mod npm;
pub mod package;
pub mod readme;
pub mod registry;
pub mod wheel;

use self::{answers::Question, machine::Machine, package::Package};
use wharf_policy::access::capability::Access;

/// What goes into the packages.
pub struct Contents<'a> {
    pub package: &'a Package,
    /// The plugin's id.
    pub id: &'a str,
    pub component: &'a [u8],
    /// The access to folders that the plugin wants.
    pub folders: Option<Access>,
    pub questions: &'a [Question],
    /// The binary of wharf, and the machines that it runs on. `None`: packages depend on wharf's own instead.
    pub wharf: Option<(&'a [u8], &'a Machine)>,
    /// The licence's text, if the folder has one.
    pub license: Option<&'a str>,
}

impl Contents<'_> {
    /// The file name of the component in every package. wharf takes the plugin's id from it.
    pub fn file(&self) -> String {
        format!("{}.wasm", self.id)
    }
}

/// The name and version of wharf's own packages at npm and PyPI, on which packages without the binary depend.
pub const WHARF: (&str, &str) = ("wharf-mcp", env!("CARGO_PKG_VERSION"));
