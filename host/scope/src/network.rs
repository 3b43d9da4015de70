//! Sends the HTTP requests of plugins: each call's scope has a [`Network`] that does so. The sandbox enforces the limits of a call.

use std::pin::Pin;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;

pub use crate::denial::{HttpDenial, HttpRefusal, HttpUse};

/// The body of a request or a response.
pub type Body = UnsyncBoxBody<Bytes, HttpFailure>;

/// A request that is being sent.
pub type Sending = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Unsent>> + Send>>;

/// Sends the requests of a plugin's calls that the operator's rules allow.
pub trait Network: Send + Sync {
    /// Sends a request. Dropping the future aborts the request.
    fn send(&self, request: http::Request<Body>) -> Sending;

    /// Whether there are secrets to mask.
    fn hides(&self) -> bool;

    /// Masks, in bytes that a plugin returned, the secrets that only the network may know. The length stays the same.
    fn hide(&self, bytes: &mut [u8]);

    /// Returns a number that no other network has, not even one with the same rules.
    fn number(&self) -> u64;
}

/// Why a request got no response.
#[derive(Debug)]
pub enum Unsent {
    /// The request is not allowed.
    Denied(HttpRefusal),
    /// The request is allowed, but failed.
    Failed(HttpFailure),
}

/// Why a request that is allowed fails, or a body breaks off.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpFailure {
    /// The operator's config or this machine does not allow it to work.
    #[error("a problem with the config")]
    Config,
    /// The URL of the request is malformed.
    #[error("the URL is malformed")]
    Url,
    /// The name of the server was not found; this says why.
    #[error("the name was not found: {0}")]
    Lookup(String),
    /// Finding the name of the server took too long.
    #[error("looking up the name took too long")]
    LookupTimeout,
    /// Connecting took too long.
    #[error("connecting took too long")]
    ConnectTimeout,
    /// The server accepts no connection.
    #[error("the connection was refused")]
    Refused,
    /// The server's certificate is not valid.
    #[error("the certificate is not valid")]
    Certificate,
    /// TLS failed.
    #[error("TLS failed")]
    Tls,
    /// The connection or the call ended.
    #[error("the connection ended")]
    Ended,
    /// The server did not speak HTTP.
    #[error("the answer is not HTTP")]
    Protocol,
    /// The server broke off its answer.
    #[error("the answer is incomplete")]
    Incomplete,
    /// The headers of the response are too large.
    #[error("the headers of the response are too large")]
    ResponseHeaders,
    /// The response did not begin in time.
    #[error("the response took too long")]
    ResponseTimeout,
    /// The request's body is larger than this number of bytes.
    #[error("the request is too large")]
    RequestSize(Option<u64>),
    /// The response's body is larger than this number of bytes.
    #[error("the response is too large")]
    ResponseSize(u64),
    /// The request contained something that may not leave.
    #[error("the request is not allowed")]
    Denied,
    /// The memory of all calls is used up.
    #[error("the memory of all calls is used up")]
    Memory,
}

/// How much one call may do over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpLimits {
    /// The number of requests that the call may make.
    pub requests: usize,
    /// The number of requests that may be in flight at once. Further ones wait up to 10 s.
    pub at_once: usize,
    /// The bytes of response headers and bodies that the call may receive in all.
    pub in_bytes: u64,
    /// The bytes of request bodies that the call may send in all.
    pub out_bytes: u64,
}
