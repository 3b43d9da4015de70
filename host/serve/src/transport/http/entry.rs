//! The entry of every HTTP request: finds its connection, authenticates it, and checks whether it may use the server at all.

use std::{sync::Arc, time::SystemTime};

use axum::{extract::Request as HttpRequest, response::Response as HttpResponse};
use http::{HeaderMap, HeaderValue, header};
use wharf_protocol::RpcError;

use super::{
    access_log::Noted,
    body::peek_id,
    connections::{Peer, Remote, peer},
    forwarded::origin,
    guard, refused,
};
use crate::client::server::Server;
use wharf_base::{
    ledger::Accounts,
    party::{party, unauthenticated},
};
use wharf_policy::auth::{Caller, Identity, Refused};

/// The connection of a request, and its line in the access log if there is one.
pub struct Connected {
    pub peer: Arc<Peer>,
    pub noted: Option<Arc<Noted>>,
}

impl Connected {
    /// Takes both from a request that came through the router.
    pub fn of(request: &mut HttpRequest, server: &Server) -> Self {
        Self { noted: request.extensions_mut().remove(), peer: peer(request, server) }
    }
}

/// A request that may use the server.
pub struct Entered {
    pub request: HttpRequest,
    pub peer: Arc<Peer>,
    /// Where the request comes from, as far as trusted proxies say.
    pub from: Remote,
    pub noted: Option<Arc<Noted>>,
    pub caller: Caller,
    /// The accounts that are charged for the memory that the client makes wharf use; their party takes places for the request.
    pub accounts: Accounts,
}

/// Admits a request, or refuses it and logs that. `profile`: the profile that its URL names.
pub async fn enter(
    server: &Server,
    request: HttpRequest,
    Connected { peer, noted }: Connected,
    profile: Option<&str>,
) -> Result<Entered, HttpResponse> {
    let from = origin(&server.startup.http.trusted_proxies, peer.remote(), request.headers());
    match identify(server, &peer, from, request.headers(), request.uri().query()).await {
        Ok(caller) => {
            if let Some(noted) = &noted {
                noted.by(caller.principal());
            }
            let accounts = peer.accounts(party(caller.principal(), from.address()), &server.ledger);
            Ok(Entered { request, peer, from, noted, caller, accounts })
        }
        Err(refusal) => {
            let party = unauthenticated(from.address());
            server.refusals.say_about(party, refusal.what(), || refusal.detail(request.headers(), from));
            Err(turn_away(server, refusal, request, profile).await)
        }
    }
}

/// Returns the caller of a request. `from`: where it comes from. `query`: the query string of its URL.
async fn identify(
    server: &Server,
    peer: &Peer,
    from: Remote,
    headers: &HeaderMap,
    query: Option<&str>,
) -> Result<Caller, guard::Refusal> {
    let config = &server.startup.http;
    guard::check(config, headers, peer.remote())?;
    if peer.certificate().is_some_and(|certificate| certificate.until <= SystemTime::now()) {
        return Err(guard::Refusal::CertificateExpired);
    }
    let mut identity = match &server.auth {
        None => Arc::new(Identity::of(guard::principal(config, headers, peer)?)),
        Some(auth) => {
            let from = unauthenticated(from.address());
            let has_profile = |name: &str| server.config.borrow().profiles.has(name);
            auth.check(headers, query, from, has_profile).await.map_err(guard::Refusal::Login)?
        }
    };
    if let Some(certificate) = peer.certificate() {
        let until = certificate.until;
        let expires = Some(identity.expires.map_or(until, |end| end.min(until)));
        identity = Arc::new(Identity { names: certificate.names.clone(), expires, ..Identity::clone(&identity) });
    }
    let caller = Caller::Known(identity);
    if server.rights(&caller).is_some_and(|rights| rights.is_nothing()) {
        return Err(guard::Refusal::Login(Refused::Role));
    }
    Ok(caller)
}

async fn turn_away(
    server: &Server,
    refusal: guard::Refusal,
    request: HttpRequest,
    profile: Option<&str>,
) -> HttpResponse {
    let challenge = refusal.challenge(server.auth.as_ref().map(|auth| &*auth.settings), profile);
    // The error names the request's id, because some clients do not show errors without one. A client that sends `Expect` waits before it
    // sends its body, and is not told to send it.
    let id = if request.headers().contains_key(header::EXPECT) { None } else { peek_id(request.into_body()).await };
    let error = RpcError::invalid_request(refusal.message());
    let mut response = refused::Refused::of_id(refusal.status(), id.as_ref(), &error).into_response();
    // The connection is closed, so that a client that is not allowed to use the server has to connect again.
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    if let Some(challenge) = challenge {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}
