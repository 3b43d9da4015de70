//! Why something that is shared cannot be had.

use serde::{Deserialize, Serialize};
use wharf_base::ledger::{Full, no_room};

/// Redis does not answer, or what it answers was not sealed by a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("what the replicas of this server share cannot be reached now")]
pub struct Silent;

/// Why something was not stored for all replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotStored {
    #[error(transparent)]
    Silent(#[from] Silent),
    /// The client has used up its share.
    #[error(
        "what replicas store for this client has reached its share; it becomes less as sessions and tasks expire (`memory_mib` in [cluster])"
    )]
    NoRoom,
}

/// Why another replica did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unanswered {
    #[error(transparent)]
    Silent(#[from] Silent),
    /// The replica does not run any more.
    #[error("the replica of this server that knows about it has stopped")]
    Gone,
    /// The question is too large for messages between replicas, or for what the client may make the other replica hold.
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
}

/// Why something that belongs to a client is not passed on from one replica to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{text}")]
pub struct NoRoom {
    pub text: String,
    /// Whether it will never fit, so that trying again is useless.
    pub never: bool,
}

impl NoRoom {
    pub fn too_long(bytes: usize, limit: usize) -> Self {
        let text =
            format!("it takes {bytes} bytes in a message to another replica of this server, and {limit} at most");
        Self { text, never: true }
    }
}

impl From<Full> for NoRoom {
    fn from(full: Full) -> Self {
        Self { text: no_room(&full).message, never: matches!(full, Full::TooLarge { .. }) }
    }
}
