//! How requests of plugins leave: the [`Network`] of a call's scope sends them. What a call may do with it is bounded in `traffic`.

use std::pin::Pin;

pub use wasmtime_wasi_http::{Error, WasiBody as Body};

pub use crate::denial::{HttpDenial, HttpRefusal, HttpUse};

/// A request that is being sent.
pub type Sending = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Unsent>> + Send>>;

/// Sends the requests of a plugin's calls, as far as the operator allows them.
pub trait Network: Send + Sync {
    /// Sends a request. Dropping the future ends the request.
    fn send(&self, request: http::Request<Body>) -> Sending;

    /// Whether there is anything to hide.
    fn hides(&self) -> bool;

    /// Hides in what a plugin says what only the network should know, without changing its length.
    fn hide(&self, bytes: &mut [u8]);

    /// A number that no other network has, not even one that allows the same.
    fn number(&self) -> u64;
}

/// Why there is no response.
#[derive(Debug)]
pub enum Unsent {
    /// The request is not allowed.
    Denied(HttpRefusal),
    /// It is allowed, but failed.
    Failed(Error),
}

/// How much one call may do over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpLimits {
    /// How many requests it may make.
    pub requests: usize,
    /// How many of them may be under way at once. Further ones wait up to 10 s.
    pub at_once: usize,
    /// Bytes of all bodies that it may receive.
    pub in_bytes: u64,
    /// Bytes of all bodies that it may send.
    pub out_bytes: u64,
}
