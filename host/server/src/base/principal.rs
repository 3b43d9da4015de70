//! Who asks, and whose something is that outlives a request.

use std::{fmt, sync::Arc};

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Principal {
    /// Who started this process.
    Process,
    /// Whoever the program that wharf is a part of calls so.
    Named(Arc<str>),
    /// Whoever has the token with this digest.
    Token(Arc<str>),
    /// Anybody who can connect.
    Anonymous,
}

/// The same for the same principal, in this process or another.
impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process => f.write_str("process"),
            Self::Named(name) => write!(f, "named {name}"),
            Self::Token(digest) => write!(f, "token {digest}"),
            Self::Anonymous => f.write_str("anonymous"),
        }
    }
}

impl Principal {
    /// For people who read the log: enough to tell one from another.
    pub fn short(&self) -> String {
        let mut text = self.to_string();
        let end = text.char_indices().nth(24).map_or(text.len(), |(at, _)| at);
        text.truncate(end);
        text
    }
}

/// To whom a task or a kept instance belongs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Owner {
    /// The session with this id, which nobody can guess.
    Session(Arc<str>),
    /// Requests without a session.
    Principal(Principal),
}

impl Owner {
    /// A text that no other owner has.
    pub fn key(&self) -> Arc<str> {
        match self {
            Self::Session(id) => Arc::clone(id),
            // Ids of sessions have no spaces.
            Self::Principal(principal) => format!("principal {principal}").into(),
        }
    }
}
