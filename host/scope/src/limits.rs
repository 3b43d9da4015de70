//! The limits of a plugin.

use std::time::Duration;

use crate::network::HttpLimits;

/// The maximum number of bytes of a component.
pub const MAX_COMPONENT_BYTES: usize = 128 << 20;
/// The maximum number of bytes of a plugin's instructions for models.
pub const MAX_INSTRUCTIONS_BYTES: usize = 2 << 10;

/// The limits of a plugin. All except `concurrency` apply to each call separately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// How many calls of this plugin run at once; at least one. Further ones wait for their turn within their deadline.
    pub concurrency: usize,
    /// The bytes of all memories and tables of one instance together, and of what the host stores for it.
    pub memory: MemoryLimit,
    /// How long a call may take from the moment it is made, including the wait for its turn.
    pub timeout: Duration,
    /// How many bytes the answer to a call may have.
    pub output_bytes: usize,
    /// What it may do over HTTP, if it has a network.
    pub http: HttpLimits,
}

/// How much memory an instance may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryLimit {
    /// Four times the memory that its component starts with, at least [`Self::LEAST_BYTES`] and at most [`Self::MOST_BYTES`].
    Fitted,
    /// This many bytes.
    Bytes(usize),
}

impl MemoryLimit {
    /// The smallest fitted limit.
    pub const LEAST_BYTES: usize = 64 << 20;
    /// The largest fitted limit: the author of a component decides what it starts with, so only the operator can allow more.
    pub const MOST_BYTES: usize = 256 << 20;

    /// Returns the limit of a component that starts with this much memory.
    pub fn bytes(self, start: usize) -> usize {
        match self {
            Self::Fitted => start.saturating_mul(4).clamp(Self::LEAST_BYTES, Self::MOST_BYTES),
            Self::Bytes(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fitted_limit_follows_the_component() {
        for (start_mib, limit_mib) in [(0, 64), (16, 64), (17, 68), (48, 192), (64, 256), (4096, 256)] {
            assert_eq!(MemoryLimit::Fitted.bytes(start_mib << 20), limit_mib << 20, "{start_mib}");
        }
        assert_eq!(MemoryLimit::Fitted.bytes(usize::MAX), MemoryLimit::MOST_BYTES);
        assert_eq!(MemoryLimit::Bytes(8 << 20).bytes(64 << 20), 8 << 20);
    }
}
