//! Approvals of one client that are good for further calls of the same kind, until its session ends.

use std::collections::HashMap;

use parking_lot::Mutex;

use super::subject::Kind;
use crate::base::ledger::Charge;

/// How many approvals are remembered for one client.
const MAX_KINDS: usize = 256;
/// The memory that one takes.
pub const KIND_BYTES: usize = 128;

/// Each kind of call that was approved, with what is charged for it.
#[derive(Default)]
pub struct Remembered(Mutex<HashMap<Kind, Option<Charge>>>);

impl Remembered {
    pub fn has(&self, kind: &Kind) -> bool {
        self.0.lock().contains_key(kind)
    }

    /// False: there is no room for more.
    pub fn add(&self, kind: Kind, charge: Option<Charge>) -> bool {
        let mut kinds = self.0.lock();
        let room = kinds.len() < MAX_KINDS;
        if room {
            kinds.insert(kind, charge);
        }
        room
    }
}
