//! The plugins that wharf makes from existing MCP servers: each has a folder in the cache, and what builds them has another one.

mod folders;
pub mod language;
pub mod package;
pub mod server;

pub use folders::{folder, tools};
pub use language::Language;
pub use package::Package;
pub use server::ExistingServer;
