//! The interface through which an embedding program approves each call before it runs.

use std::{fmt, future::Future, pin::Pin};

use serde_json::Value;

use wharf_base::principal::Principal;

/// A call that waits for approval.
#[derive(Clone)]
#[non_exhaustive]
pub struct ApprovalRequest {
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

impl ApprovalRequest {
    /// A call of this method that waits for approval.
    pub fn new(principal: Principal, plugin: &str, method: &'static str, name: &str, arguments: Value) -> Self {
        Self { principal, plugin: plugin.to_owned(), method, name: name.to_owned(), arguments }
    }
}

/// Leaves out the arguments, which must not be logged.
impl fmt::Debug for ApprovalRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { principal, plugin, method, name, arguments: _ } = self;
        let mut all = f.debug_struct("ApprovalRequest");
        all.field("principal", principal).field("plugin", plugin).field("method", method).field("name", name);
        all.finish_non_exhaustive()
    }
}

/// What an [`Approver`] decides about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// The call may run.
    Allow,
    /// The call is refused. The reason is a sentence for the client, and may be empty.
    Deny(String),
}

/// Decides about every call of a tool, resource or prompt. Any function from an [`ApprovalRequest`] to a future of a [`Decision`]
/// implements it.
pub trait Approver: Send + Sync {
    /// Returns whether the call may run.
    fn approve(&self, request: ApprovalRequest) -> Pin<Box<dyn Future<Output = Decision> + Send>>;
}

impl<F, A> Approver for F
where
    F: Fn(ApprovalRequest) -> A + Send + Sync,
    A: Future<Output = Decision> + Send + 'static,
{
    fn approve(&self, request: ApprovalRequest) -> Pin<Box<dyn Future<Output = Decision> + Send>> {
        Box::pin(self(request))
    }
}
