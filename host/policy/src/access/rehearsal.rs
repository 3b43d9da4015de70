//! Replacements for time, randomness, environment and network in a test of a plugin. Neither a config nor a plugin can turn them on, only
//! the program that builds the wharf.

use std::{collections::BTreeMap, sync::Arc};

use wharf_scope::Fixed;

use wharf_egress::Answers;

/// The environment that a plugin runs in during a test.
pub struct Rehearsal {
    /// The clock and the random numbers.
    pub fixed: Fixed,
    /// The environment variables that plugins may be granted, in place of those of this process.
    pub environment: BTreeMap<String, String>,
    /// Answers the requests that plugins may send, in place of real servers.
    pub network: Arc<dyn Answers>,
    /// Called with the output of the plugin after each run.
    pub printed: Arc<dyn Fn(&str) + Send + Sync>,
}
