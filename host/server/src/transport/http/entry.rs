//! Where every HTTP request enters: finds its connection, and checks whether it may talk to the server at all.

use std::{sync::Arc, time::SystemTime};

use axum::{extract::Request as HttpRequest, response::Response as HttpResponse};
use http::{HeaderMap, HeaderValue, header};
use wharf_protocol::RpcError;

use super::{
    body::peek_id,
    connections::{Peer, peer},
    guard,
    refused::Refused,
};
use crate::{base::principal::Principal, client::server::Server};

/// A request that may talk to the server.
pub struct Entered {
    pub request: HttpRequest,
    pub peer: Arc<Peer>,
    pub principal: Principal,
    /// When its token ends, if it has one that does.
    pub expires: Option<SystemTime>,
}

/// Lets a request in, or turns it away and tells the operator.
pub async fn enter(server: &Server, request: HttpRequest) -> Result<Entered, HttpResponse> {
    let peer = peer(&request, server);
    match identify(server, request.headers(), request.uri().query()).await {
        Ok((principal, expires)) => Ok(Entered { request, peer, principal, expires }),
        Err(refusal) => {
            server.refusals.say_of(refusal.what(), || refusal.detail(request.headers(), peer.address()));
            Err(turn_away(server, refusal, request).await)
        }
    }
}

/// Who makes a request, and when its token ends. `query`: what follows the `?` of its URL.
async fn identify(
    server: &Server,
    headers: &HeaderMap,
    query: Option<&str>,
) -> Result<(Principal, Option<SystemTime>), guard::Refusal> {
    let config = &server.startup.http;
    guard::check(config, headers)?;
    let Some(auth) = &server.auth else { return Ok((guard::principal(config, headers)?, None)) };
    let identity = auth.check(headers, query).await.map_err(guard::Refusal::Login)?;
    Ok((identity.principal, Some(identity.expires)))
}

async fn turn_away(server: &Server, refusal: guard::Refusal, request: HttpRequest) -> HttpResponse {
    let challenge = refusal.challenge(server.auth.as_ref().map(|auth| &*auth.settings));
    // The error names the request's id, because some clients do not show errors without one. A client that asks before it sends
    // its body is not told to send it.
    let id = if request.headers().contains_key(header::EXPECT) { None } else { peek_id(request.into_body()).await };
    let error = RpcError::invalid_request(refusal.message());
    let mut response = Refused::of_id(refusal.status(), id.as_ref(), &error).into_response();
    // The connection is closed, so that a client that is not allowed here has to connect again.
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    if let Some(challenge) = challenge {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}
