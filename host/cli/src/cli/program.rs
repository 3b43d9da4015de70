//! What differs between builds of the program: the plugins that are built in, and what it is for.

use std::sync::OnceLock;

use wharf_config::config::{BuiltIn, builtin};

/// What `main` knows of its build.
#[derive(Debug)]
pub struct Program {
    pub built_in: &'static [BuiltIn],
    /// Whether it is not optimised: the build for trying, and for tests.
    pub is_for_trying: bool,
}

impl Program {
    /// Makes this known to all commands.
    pub fn provide(&self) {
        builtin::provide(self.built_in);
        VERSION.get_or_init(|| if self.is_for_trying { FOR_TRYING } else { FOR_USE });
    }
}

static VERSION: OnceLock<&str> = OnceLock::new();

const FOR_USE: &str = env!("CARGO_PKG_VERSION");
const FOR_TRYING: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\nbuilt for trying: it compiles plugins and answers calls several times slower than the one that `cargo xtask build` makes"
);

/// Returns the version and, if this is not the build for use, what kind of build it is. Each is a line.
pub fn version() -> &'static str {
    VERSION.get().copied().unwrap_or(FOR_USE)
}
