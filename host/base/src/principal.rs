//! Who makes a request, and who owns tasks and instances that outlive a request.

use std::{fmt, sync::Arc};

use super::text::{clip, escaped};

/// Who makes a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Principal {
    /// The user who started this process.
    Process,
    /// A client to which the embedding program gave this name.
    Named(Arc<str>),
    /// A client that presents the token with this digest.
    Token(Arc<str>),
    /// A user of an identity provider.
    User(Arc<User>),
    /// A client that presents one of the API keys with this id.
    Key(Arc<str>),
    /// A client that presented a certificate with this name, from an authority that the operator trusts (mTLS).
    Certificate(Arc<str>),
    /// A user of this machine, by number, whose program connected to a Unix socket.
    Local(u32),
    /// A client without credentials.
    Anonymous,
}

/// A text is the name of a client of the embedding program.
impl From<&str> for Principal {
    fn from(name: &str) -> Self {
        Self::Named(name.into())
    }
}

/// A person or program that an identity provider knows. It stays the same when its tokens are renewed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct User {
    /// The URL of the identity provider.
    pub issuer: String,
    /// The subject: a name that the provider never assigns to another user.
    pub subject: String,
}

impl User {
    /// Creates a user from the URL of the provider and the subject.
    pub fn new(issuer: impl Into<String>, subject: impl Into<String>) -> Self {
        Self { issuer: issuer.into(), subject: subject.into() }
    }
}

/// The text is the same for the same principal in every process, because state that is bound to it may be sealed by one process
/// and opened by another.
impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => write!(f, "named {name}"),
            Self::Token(digest) => write!(f, "token {digest}"),
            Self::Key(id) => write!(f, "key {id}"),
            Self::Certificate(name) => write!(f, "certificate {name}"),
            Self::Local(user) => write!(f, "local {user}"),
            // An issuer is a URL, so it contains no space.
            Self::User(user) => write!(f, "user {} {}", user.issuer, user.subject),
            Self::Process | Self::Anonymous => f.write_str(self.word().unwrap_or_default()),
        }
    }
}

impl Principal {
    /// Returns the text of a principal that is written as a single word.
    pub fn word(&self) -> Option<&'static str> {
        match self {
            Self::Process => Some("process"),
            Self::Anonymous => Some("anonymous"),
            Self::Named(_) | Self::Token(_) | Self::Key(_) | Self::User(_) | Self::Certificate(_) | Self::Local(_) => {
                None
            }
        }
    }

    /// Returns a short form for the log, long enough to tell principals apart.
    pub fn short(&self) -> String {
        if let Self::User(user) = self {
            return format!("user {}", escaped(&clip(&user.subject)));
        }
        if let Self::Certificate(name) = self {
            return format!("certificate {}", escaped(&clip(name)));
        }
        let mut text = self.to_string();
        let end = text.char_indices().nth(24).map_or(text.len(), |(at, _)| at);
        text.truncate(end);
        text
    }
}

/// Who owns a task or a reused instance.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Owner {
    /// The session with this unguessable id.
    Session(Arc<str>),
    /// All requests of this principal that have no session and use this profile.
    Principal(Principal, Option<Arc<str>>),
}

impl Owner {
    /// Whether the owner is a single client. Anonymous clients without sessions cannot be told apart.
    pub fn is_one_client(&self) -> bool {
        !matches!(self, Self::Principal(Principal::Anonymous, _))
    }

    /// Returns a text that is unique to this owner.
    pub fn key(&self) -> Arc<str> {
        match self {
            Self::Session(id) => Arc::clone(id),
            // Ids of sessions have no spaces.
            Self::Principal(principal, None) => format!("principal {principal}").into(),
            // Names of profiles have no spaces, so this text differs from that of every other owner.
            Self::Principal(principal, Some(profile)) => format!("profile {profile} principal {principal}").into(),
        }
    }
}
