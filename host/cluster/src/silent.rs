//! Why something that is shared cannot be had.

/// Redis does not answer, or what it answers was not sealed by a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("what the replicas of this server share cannot be reached now")]
pub struct Silent;

/// Why another replica did not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unanswered {
    #[error(transparent)]
    Silent(#[from] Silent),
    /// The replica does not run any more.
    #[error("the replica of this server that knows about it has stopped")]
    Gone,
}
