//! Why something that is shared cannot be had.

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unanswered {
    #[error(transparent)]
    Silent(#[from] Silent),
    /// The replica does not run any more.
    #[error("the replica of this server that knows about it has stopped")]
    Gone,
}
