//! Requests that are not run: the status that says why, and the error in the body.

use std::net::IpAddr;

use axum::response::{IntoResponse, Response as HttpResponse};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use wharf_protocol::{Id, Request, Revision, RpcError, message::error_text};

use super::guard;
use crate::{
    base::ledger::{Full, no_room},
    client::server::Server,
};

pub const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A request that is not run: the status, and the JSON-RPC error in the body.
pub struct Refused {
    pub status: StatusCode,
    pub body: String,
}

/// How soon somebody who was refused for want of room may try again, in seconds.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

impl Refused {
    pub fn new(status: StatusCode, request: Option<&Request>, error: &RpcError) -> Self {
        Self::of_id(status, request.map(|request| &request.id), error)
    }

    /// The same of a request of which no more than the id is known.
    pub fn of_id(status: StatusCode, id: Option<&Id>, error: &RpcError) -> Self {
        // No modern revision has other codes for these errors than the newest legacy one.
        Self { status, body: error_text(id, error, Revision::V2026_07_28) }
    }

    /// There is no room for what it takes: never, for this client now, or for anybody now.
    pub fn full(full: &Full, id: Option<&Id>) -> Self {
        let status = match full {
            Full::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Full::Share { .. } => StatusCode::TOO_MANY_REQUESTS,
            Full::Whole { .. } => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::of_id(status, id, &no_room(full))
    }

    pub fn plain(status: StatusCode, message: &str) -> Self {
        Self::new(status, None, &RpcError::invalid_request(message))
    }

    pub fn into_response(self) -> HttpResponse {
        let mut response = json(self.status, self.body);
        if matches!(self.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER);
        }
        response
    }
}

/// Turns somebody away who may not talk to the server at all, and tells the operator.
pub fn turn_away(server: &Server, refusal: guard::Refusal, headers: &HeaderMap, peer: IpAddr) -> HttpResponse {
    server.refusals.say_of(refusal.message(), || refusal.detail(headers, peer));
    let challenge = refusal.challenge();
    let status = if challenge.is_some() { StatusCode::UNAUTHORIZED } else { StatusCode::FORBIDDEN };
    let mut response = Refused::plain(status, refusal.message()).into_response();
    // Who may not be here begins anew, at the end of the queue.
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    if let Some(challenge) = challenge {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}

pub fn json(status: StatusCode, body: String) -> HttpResponse {
    (status, [(header::CONTENT_TYPE, JSON)], body).into_response()
}
