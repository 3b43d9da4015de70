//! What a test of a plugin decides in place of the machine. Neither a config nor a plugin can ask for any of it: only the program
//! that builds the wharf can.

use std::{collections::BTreeMap, sync::Arc};

use wharf_sandbox::Fixed;

use crate::egress::Answers;

/// The world as a test has it.
pub struct Rehearsal {
    /// Time and chance.
    pub fixed: Fixed,
    /// The variables that plugins may be granted, in place of those of this process.
    pub environment: BTreeMap<String, String>,
    /// Answers what plugins may send, in place of any server.
    pub network: Arc<dyn Answers>,
    /// Is given what the plugin printed in each of its runs.
    pub printed: Arc<dyn Fn(&str) + Send + Sync>,
}
