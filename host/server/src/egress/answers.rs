//! Answers in place of servers, for tests of plugins. A request is judged, given its secrets and masked as always; only the
//! connection is missing, and with it what is judged of addresses.

use std::pin::Pin;

use http::{Request, Response};
use wharf_sandbox::network::{Body, Unsent};

/// A request that is being answered.
pub type Answering<'a> = Pin<Box<dyn Future<Output = Result<Response<Body>, Unsent>> + Send + 'a>>;

/// Answers requests of plugins.
pub trait Answers: Send + Sync {
    /// Answers a request that the plugin may send. Its URL has the form in which it was judged.
    fn answer(&self, request: Request<Body>) -> Answering<'_>;
}
