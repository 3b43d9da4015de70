//! Sends the HTTP requests of plugins: each call's scope has a [`Network`] that does so. The limits of a call are enforced in `traffic`.

use std::pin::Pin;

pub use wasmtime_wasi_http::{Error, WasiBody as Body};

pub use crate::denial::{HttpDenial, HttpRefusal, HttpUse};

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

/// Why there is no response.
#[derive(Debug)]
pub enum Unsent {
    /// The request is not allowed.
    Denied(HttpRefusal),
    /// The request is allowed, but failed.
    Failed(Error),
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
