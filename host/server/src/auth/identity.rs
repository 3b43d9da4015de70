//! What is known of whoever makes a request, and why a request is turned away.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::Arc,
    time::SystemTime,
};

use crate::base::principal::Principal;

/// Who makes a request, and what was shown for it: by a token, a key or a certificate.
#[derive(Debug, Clone, PartialEq)]
pub struct Identity {
    pub principal: Principal,
    /// With all that they include.
    pub scopes: HashSet<String>,
    /// Those that the token names itself.
    pub own_scopes: BTreeSet<String>,
    /// The claims that are texts or lists of texts, each with its texts.
    pub claims: BTreeMap<String, Vec<String>>,
    /// The profiles that the token is for. Empty: it is for the whole server.
    pub profiles: Vec<String>,
    /// The names in the client's certificate.
    pub names: Vec<String>,
    /// The digest of the API key that was shown, if it was one.
    pub key: Option<Arc<str>>,
    /// When the token or the certificate ends, whichever is first. What was begun with it may finish, but nothing that waits for changes
    /// outlives it.
    pub expires: Option<SystemTime>,
}

impl Identity {
    /// One of whom nothing more is known than who it is.
    pub fn of(principal: Principal) -> Self {
        Self {
            principal,
            scopes: HashSet::new(),
            own_scopes: BTreeSet::new(),
            claims: BTreeMap::new(),
            profiles: Vec::new(),
            names: Vec::new(),
            key: None,
            expires: None,
        }
    }

    /// Whether what was shown is for this server: for all of it, or for a profile that the config has now.
    pub fn is_for(&self, has_profile: impl Fn(&str) -> bool) -> bool {
        self.profiles.is_empty() || self.profiles.iter().any(|name| has_profile(name))
    }

    /// The texts of a claim.
    pub fn claim(&self, name: &str) -> &[String] {
        self.claims.get(name).map(Vec::as_slice).unwrap_or_default()
    }
}

/// Who makes a request, as far as its rights go.
#[derive(Debug, Clone)]
pub enum Caller {
    /// Whoever started this process, or a client of the program that wharf is a part of: the roles of the config are not for it.
    Owner(Principal),
    /// A client that reached wharf over the network.
    Known(Arc<Identity>),
}

impl Caller {
    pub fn principal(&self) -> &Principal {
        match self {
            Self::Owner(principal) => principal,
            Self::Known(identity) => &identity.principal,
        }
    }

    pub fn identity(&self) -> Option<&Arc<Identity>> {
        match self {
            Self::Owner(_) => None,
            Self::Known(identity) => Some(identity),
        }
    }
}

/// Why a request is turned away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// 401, without an error code: there is no token.
    NoToken,
    /// 401: the token is not good. The text says why.
    Invalid(&'static str),
    /// 400: there is more than one token, or one where none may be.
    Malformed(&'static str),
    /// 403: the token has not all the scopes that this request needs. All that are needed, and all that the token has: clients ask
    /// for exactly what they are told, and would lose the others.
    Scope(Vec<String>),
    /// 403: no role is for this caller, whatever it asks for.
    Role,
    /// 503: the token may be good, but there is nothing to check it with. Clients throw tokens away that get a 401.
    Unavailable,
}
