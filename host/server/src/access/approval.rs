//! Who says yes to a call before it runs, where somebody has to.

use std::{fmt, future::Future, pin::Pin};

use serde_json::Value;

use crate::base::principal::Principal;

/// A call that waits for a yes.
#[derive(Clone)]
#[non_exhaustive]
pub struct Ask {
    /// Who wants it.
    pub principal: Principal,
    /// The plugin that it is a call of, by its id.
    pub plugin: String,
    /// `tools/call`, `resources/read` or `prompts/get`.
    pub method: &'static str,
    /// The tool or prompt by the name that clients know, or the URI.
    pub name: String,
    /// As the client wrote them.
    pub arguments: Value,
}

/// Without the arguments, which are nobody's to log.
impl fmt::Debug for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { principal, plugin, method, name, arguments: _ } = self;
        let mut all = f.debug_struct("Ask");
        all.field("principal", principal).field("plugin", plugin).field("method", method).field("name", name);
        all.finish_non_exhaustive()
    }
}

/// Yes or no, once it is known.
pub type Approval = Pin<Box<dyn Future<Output = bool> + Send>>;

/// Somebody who is asked about every call of a tool, resource or prompt. A function from an [`Ask`] to a future is one.
pub trait Approver: Send + Sync {
    /// Whether the call may run.
    fn approve(&self, ask: Ask) -> Approval;
}

impl<F, A> Approver for F
where
    F: Fn(Ask) -> A + Send + Sync,
    A: Future<Output = bool> + Send + 'static,
{
    fn approve(&self, ask: Ask) -> Approval {
        Box::pin(self(ask))
    }
}
