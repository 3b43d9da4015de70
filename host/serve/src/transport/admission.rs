//! Admits or refuses every request, whichever transport it came by. An admitted request gets its context, made from the
//! way it arrived and from its session or, for a modern request, from its own `_meta`.

use std::sync::Arc;

use http::HeaderMap;
use wharf_protocol::{
    Method, Request, Revision, RpcError,
    meta::{ModernClaim, RequestMeta},
    params,
};

use super::http::headers::{METHOD_HEADER, VERSION_HEADER, check_name, single, text};
use crate::{
    client::{
        context::{Arrival, ClientDeclared, Context},
        outbox::Outbox,
        server::Server,
        session::{Ids, Session},
    },
    methods::router,
};
use wharf_base::ledger::Accounts;

/// The prefix of headers that repeat arguments.
const MIRRORED_HEADER_PREFIX: &str = "mcp-param-";

/// What requests are admitted by, besides how they arrived.
pub struct Door<'a> {
    pub server: &'a Arc<Server>,
    /// The accounts that are charged for the memory that the client makes wharf use.
    pub accounts: &'a Accounts,
    /// Whether modern requests, which need no handshake, are served here too.
    pub modern: bool,
    /// The headers, if the request came over HTTP. Some of them repeat parts of the request.
    pub headers: Option<&'a HeaderMap>,
}

/// The session that a request belongs to.
pub enum Named {
    None,
    /// The request names a session that does not exist.
    Unknown,
    /// The request names a session that is not in memory, and there is no room for it.
    NoRoom(RpcError),
    Is(Arc<Session>),
}

/// How a request that is admitted goes on.
pub enum Admitted {
    Runs(Context),
    /// The request is the handshake: the new session, and the result of `initialize`.
    Opens(Arc<Session>, String),
    /// The result is known already, and this is its JSON.
    Is(String),
}

/// Why a request is not admitted.
pub struct Refusal {
    pub kind: Kind,
    pub error: RpcError,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The request is malformed, or not allowed here.
    Wrong,
    NoSuchSession,
    NoSuchMethod,
    /// There is no room for the session of the request.
    NoRoom,
}

impl From<RpcError> for Refusal {
    fn from(error: RpcError) -> Self {
        Self { kind: Kind::Wrong, error }
    }
}

/// Admits a request, or refuses it. `session`: looks up the request's session; it is told whether to make a session again that is not in
/// memory, which the handshake does not need. `outbox`: makes the request's outbox, given the session if
/// there is one. The order of the checks matters, since it decides which error a client gets if several parts are wrong.
pub fn admit(
    door: &Door<'_>,
    arrival: Arrival,
    request: &Request,
    session: impl FnOnce(bool) -> Named,
    outbox: impl FnOnce(Option<&Session>) -> Outbox,
) -> Result<Admitted, Refusal> {
    let server = door.server;
    let meta = RequestMeta::read(request.params.as_ref())?;
    if meta.claims_modern() {
        if !door.modern || !server.startup.protocol.modern {
            return Err(RpcError::invalid_request("only sessions are served here: send `initialize`").into());
        }
        return modern(door, arrival, request, meta, outbox(None));
    }
    let known = request.known();
    let version = door.headers.and_then(|headers| text(headers, VERSION_HEADER));
    if version.is_some_and(Revision::header_is_modern) {
        return Err(match known {
            Some(Method::Initialize) => {
                RpcError::header_mismatch("`initialize` belongs to revisions before 2026-07-28").into()
            }
            _ => unclaimed(&meta).into(),
        });
    }
    if !server.startup.protocol.legacy {
        // A client that offers a revision with `initialize` is told which revisions are served.
        return Err(match (known, params::read::<params::Initialize>(request.params.as_ref())) {
            (Some(Method::Initialize), Ok(offered)) => RpcError::unsupported_version(&offered.protocol_version).into(),
            _ => unclaimed(&meta).into(),
        });
    }
    if let Some(headers) = door.headers {
        check_version(headers)?;
    }
    match (known, session(known != Some(Method::Initialize))) {
        (Some(Method::Initialize), Named::Is(_)) => {
            Err(RpcError::invalid_request("this session is initialized already").into())
        }
        (Some(Method::Initialize), Named::None | Named::Unknown | Named::NoRoom(_)) => {
            let params = params::read(request.params.as_ref())?;
            let Arrival { caller, profile, .. } = arrival;
            // Only over HTTP do clients learn the ids of their sessions, and come back with them.
            let ids = if door.headers.is_some() { Ids::Sealed } else { Ids::Random };
            let (session, result) = Session::open(server, params, &caller, door.accounts, profile, ids)?;
            Ok(Admitted::Opens(session, result))
        }
        (_, Named::Is(session)) => {
            let outbox = outbox(Some(&session));
            session.touch();
            session.set_used();
            session.seen_as(&arrival.caller);
            let declared = ClientDeclared::InSession(session);
            Ok(Admitted::Runs(Context::new(server, arrival, request.id.clone(), meta, declared, outbox)))
        }
        (_, Named::Unknown) => Err(no_such_session()),
        (_, Named::NoRoom(error)) => Err(Refusal { kind: Kind::NoRoom, error }),
        (Some(Method::Discover | Method::Listen), Named::None) => Err(unclaimed(&meta).into()),
        // The other end of a pipe may send `ping` even before the handshake.
        (Some(Method::Ping), Named::None) if door.headers.is_none() => Ok(Admitted::Is("{}".into())),
        (_, Named::None) => Err(no_session(door.headers.is_some())),
    }
}

/// Admits a modern request.
fn modern(
    door: &Door<'_>,
    arrival: Arrival,
    request: &Request,
    meta: RequestMeta,
    outbox: Outbox,
) -> Result<Admitted, Refusal> {
    let version = door.headers.map(|headers| {
        single(headers, VERSION_HEADER)?
            .ok_or_else(|| RpcError::header_mismatch("the header MCP-Protocol-Version is missing"))
    });
    let (version, claim) = (version.transpose()?, meta.modern_claim()?);
    if version.is_some_and(|version| version != claim.version) {
        return Err(RpcError::header_mismatch("MCP-Protocol-Version differs from the version in `_meta`").into());
    }
    let ModernClaim { version, capabilities } = claim;
    let revision = Revision::MODERN.into_iter().find(|revision| revision.as_str() == version);
    let revision = revision.ok_or_else(|| RpcError::unsupported_version(&version))?;
    let mut repeated = None;
    if let Some(headers) = door.headers {
        if single(headers, METHOD_HEADER)? != Some(request.method.as_str()) {
            return Err(RpcError::header_mismatch("the header Mcp-Method is missing or differs from `method`").into());
        }
        let encoder = door.server.encoder(revision);
        router::find(encoder, &request.method).map_err(|error| Refusal { kind: Kind::NoSuchMethod, error })?;
        check_name(headers, request)?;
        let mirroring = headers.iter().filter(|(name, _)| name.as_str().starts_with(MIRRORED_HEADER_PREFIX));
        repeated = Some(mirroring.map(|(name, value)| (name.clone(), value.clone())).collect());
    }
    let declared = ClientDeclared::InMeta { revision, capabilities, headers: repeated };
    Ok(Admitted::Runs(Context::new(door.server, arrival, request.id.clone(), meta, declared, outbox)))
}

pub fn no_session(http: bool) -> Refusal {
    RpcError::invalid_request(if http {
        "no session: send `initialize` first, then each request with the Mcp-Session-Id of its response"
    } else {
        "not initialized: send `initialize`, or a request with the modern `_meta`"
    })
    .into()
}

pub fn no_such_session() -> Refusal {
    let error = RpcError::invalid_request("there is no such session; send `initialize` again");
    Refusal { kind: Kind::NoSuchSession, error }
}

/// Refuses requests whose version header names an unknown revision.
pub fn check_version(headers: &HeaderMap) -> Result<(), RpcError> {
    match text(headers, VERSION_HEADER).filter(|version| Revision::parse(version).is_none()) {
        Some(version) => Err(RpcError::unsupported_version(version)),
        None => Ok(()),
    }
}

/// The error for a request that belongs to no session and lacks something that a modern request needs.
fn unclaimed(meta: &RequestMeta) -> RpcError {
    meta.modern_claim().err().unwrap_or_else(|| RpcError::invalid_params("missing `_meta`"))
}
