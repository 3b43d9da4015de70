//! Where every HTTP request enters: finds its connection, and checks whether it may talk to the server at all.

use std::sync::Arc;

use axum::{extract::Request as HttpRequest, response::Response as HttpResponse};
use http::{HeaderValue, StatusCode, header};
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
}

/// Lets a request in, or turns it away and tells the operator.
pub async fn enter(server: &Server, request: HttpRequest) -> Result<Entered, HttpResponse> {
    let peer = peer(&request, server);
    match guard::check(&server.startup.http, request.headers()) {
        Ok(principal) => Ok(Entered { request, peer, principal }),
        Err(refusal) => {
            server.refusals.say_of(refusal.message(), || refusal.detail(request.headers(), peer.address()));
            Err(turn_away(refusal, request).await)
        }
    }
}

async fn turn_away(refusal: guard::Refusal, request: HttpRequest) -> HttpResponse {
    let challenge = refusal.challenge();
    let status = if challenge.is_some() { StatusCode::UNAUTHORIZED } else { StatusCode::FORBIDDEN };
    // The error names the request's id, because some clients do not show errors without one. A client that asks before it sends
    // its body is not told to send it.
    let id = if request.headers().contains_key(header::EXPECT) { None } else { peek_id(request.into_body()).await };
    let error = RpcError::invalid_request(refusal.message());
    let mut response = Refused::of_id(status, id.as_ref(), &error).into_response();
    // The connection is closed, so that a client that is not allowed here has to connect again.
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    if let Some(challenge) = challenge {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}
