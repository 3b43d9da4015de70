//! Responses to requests that are refused.

use axum::response::{IntoResponse, Response as HttpResponse};
use http::{HeaderValue, StatusCode, header};
use wharf_protocol::{Id, Request, Revision, RpcError, message::error_text};

use wharf_base::ledger::{Full, no_room};

pub const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The response to a refused request: the status, and the JSON-RPC error for the body.
pub struct Refused {
    pub status: StatusCode,
    pub body: String,
}

/// After how many seconds a client that was refused for lack of room may try again.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

impl Refused {
    pub fn new(status: StatusCode, request: Option<&Request>, error: &RpcError) -> Self {
        Self::of_id(status, request.map(|request| &request.id), error)
    }

    /// Returns the response to a request of which only the id is known, or not even that.
    pub fn of_id(status: StatusCode, id: Option<&Id>, error: &RpcError) -> Self {
        // The errors with which requests are refused have the same code in every revision, so any revision will do here.
        Self { status, body: error_text(id, error, Revision::V2026_07_28) }
    }

    /// Returns the response to a request without memory for it: it would never fit, or exceeds this client's share now, or all memory now.
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

pub fn json(status: StatusCode, body: String) -> HttpResponse {
    (status, [(header::CONTENT_TYPE, JSON)], body).into_response()
}
