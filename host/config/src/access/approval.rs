//! The interface through which an embedding program approves each call before it runs.

use std::{fmt, future::Future, pin::Pin};

use serde_json::Value;

use wharf_base::principal::Principal;

/// A call that waits for approval.
#[derive(Clone)]
#[non_exhaustive]
pub struct Ask {
    /// The client that makes the call.
    pub principal: Principal,
    /// The id of the called plugin.
    pub plugin: String,
    /// `tools/call`, `resources/read` or `prompts/get`.
    pub method: &'static str,
    /// The name of the tool or prompt as clients know it, or the URI of the resource.
    pub name: String,
    /// The arguments as the client wrote them.
    pub arguments: Value,
}

impl Ask {
    /// A call of this method that waits for approval.
    pub fn new(principal: Principal, plugin: &str, method: &'static str, name: &str, arguments: Value) -> Self {
        Self { principal, plugin: plugin.to_owned(), method, name: name.to_owned(), arguments }
    }
}

/// Leaves out the arguments, which must not be logged.
impl fmt::Debug for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { principal, plugin, method, name, arguments: _ } = self;
        let mut all = f.debug_struct("Ask");
        all.field("principal", principal).field("plugin", plugin).field("method", method).field("name", name);
        all.finish_non_exhaustive()
    }
}

/// Resolves to whether the call is approved.
pub type ApprovalFuture = Pin<Box<dyn Future<Output = bool> + Send>>;

/// Decides about every call of a tool, resource or prompt. Any function from an [`Ask`] to a future of `bool` implements it.
pub trait Approver: Send + Sync {
    /// Returns whether the call may run.
    fn approve(&self, ask: Ask) -> ApprovalFuture;
}

impl<F, A> Approver for F
where
    F: Fn(Ask) -> A + Send + Sync,
    A: Future<Output = bool> + Send + 'static,
{
    fn approve(&self, ask: Ask) -> ApprovalFuture {
        Box::pin(self(ask))
    }
}
