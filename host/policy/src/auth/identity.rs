//! The identity of the client that makes a request, and the reasons for refusing a request.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::Arc,
    time::SystemTime,
};

use wharf_base::principal::Principal;

/// The authenticated client of a request, with the claims of its token, API key or certificate.
#[derive(Debug, Clone, PartialEq)]
pub struct Identity {
    pub principal: Principal,
    /// The scopes, including those that other scopes include.
    pub scopes: HashSet<String>,
    /// The scopes that the token itself names.
    pub own_scopes: BTreeSet<String>,
    /// The claims as texts, each as a list.
    pub claims: BTreeMap<String, Vec<String>>,
    /// The profiles that the token is valid for. Empty: the whole server.
    pub profiles: Vec<String>,
    /// The names in the client's certificate.
    pub names: Vec<String>,
    /// The digest of the API key, if one was used.
    pub key: Option<Arc<str>>,
    /// When the token or the certificate expires, whichever is first. A request that began before may finish, but streams of changes end
    /// then.
    pub expires: Option<SystemTime>,
}

impl Identity {
    /// Creates an identity with a subject and no claims.
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

    /// Whether the token is valid for this server: for all of it, or for a profile that the config has now.
    pub fn is_for(&self, has_profile: impl Fn(&str) -> bool) -> bool {
        self.profiles.is_empty() || self.profiles.iter().any(|name| has_profile(name))
    }

    /// Returns the values of a claim.
    pub fn claim(&self, name: &str) -> &[String] {
        self.claims.get(name).map(Vec::as_slice).unwrap_or_default()
    }
}

/// The client of a request, as far as its permissions are concerned.
#[derive(Debug, Clone)]
pub enum Caller {
    /// The user that started this process, or a client of the program that embeds wharf: roles do not apply to it.
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

/// The reason why a request is refused, with its HTTP status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// 401, without an error code: there is no token.
    NoToken,
    /// 401: the token is invalid or has expired. The text says why.
    Invalid(&'static str),
    /// 400: there is more than one token, or a token in the wrong place.
    Malformed(&'static str),
    /// 403: the token lacks scopes. Holds all scopes that the request needs and all that the token has: clients request exactly the scopes
    /// in the challenge, and would otherwise lose the others.
    Scope(Vec<String>),
    /// 403: no role applies to this caller.
    Role,
    /// 503: the token may be valid, but it cannot be checked now. A 401 would make clients discard it.
    Unavailable,
}
