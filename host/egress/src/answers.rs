//! Mocked servers, for tests of plugins. A request is checked against the rules, gets its secrets, and its response is masked as always;
//! only the connection is missing, and therefore the check of the address.

use std::pin::Pin;

use http::{Request, Response};
use wharf_scope::network::{Body, Unsent};

/// A request that is being answered.
pub type Answering<'a> = Pin<Box<dyn Future<Output = Result<Response<Body>, Unsent>> + Send + 'a>>;

/// Answers requests of plugins.
pub trait Answers: Send + Sync {
    /// Answers a request that the rules allow. Its URL is in the normalized form in which it was checked.
    fn answer(&self, request: Request<Body>) -> Answering<'_>;
}
