//! Requests that are not run: the status that says why, and the error in the body.

use axum::response::{IntoResponse, Response as HttpResponse};
use http::{HeaderValue, StatusCode, header};
use wharf_protocol::{Request, Revision, RpcError, message::error_text};

use super::guard;

pub const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A request that is not run: the status, and the JSON-RPC error in the body.
pub struct Refused {
    pub status: StatusCode,
    pub body: String,
}

impl Refused {
    pub fn new(status: StatusCode, request: Option<&Request>, error: &RpcError) -> Self {
        // No modern revision has other codes for these errors than the newest legacy one.
        Self { status, body: error_text(request.map(|request| &request.id), error, Revision::V2026_07_28) }
    }

    pub fn plain(status: StatusCode, message: &str) -> Self {
        Self::new(status, None, &RpcError::invalid_request(message))
    }

    pub fn into_response(self) -> HttpResponse {
        json(self.status, self.body)
    }
}

/// Turns somebody away who may not talk to the server at all, and tells the operator.
pub fn turn_away(refusal: guard::Refusal) -> HttpResponse {
    tracing::warn!("refused a request: {}", refusal.message());
    let status = if refusal == guard::Refusal::Token { StatusCode::UNAUTHORIZED } else { StatusCode::FORBIDDEN };
    let mut response = Refused::plain(status, refusal.message()).into_response();
    if refusal == guard::Refusal::Token {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

pub fn json(status: StatusCode, body: String) -> HttpResponse {
    (status, [(header::CONTENT_TYPE, JSON)], body).into_response()
}
