//! What a token says of a request, and why one is refused.

use std::{collections::HashSet, sync::Arc, time::SystemTime};

use crate::base::principal::Principal;

/// A request whose token is good.
#[derive(Debug, Clone, PartialEq)]
pub struct Identity {
    pub principal: Principal,
    pub scopes: Arc<HashSet<String>>,
    /// When the token ends. What was begun with it may finish, but nothing that waits for changes outlives it.
    pub expires: SystemTime,
}

/// Why a request is turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// 401, without an error code: there is no token.
    NoToken,
    /// 401: the token is not good. The text says why.
    Invalid(&'static str),
    /// 400: there is more than one token, or one where none may be.
    Malformed(&'static str),
    /// 403: the token has not all the scopes that every request needs.
    Scope,
    /// 503: the token may be good, but there is nothing to check it with. Clients throw tokens away that get a 401.
    Unavailable,
}
