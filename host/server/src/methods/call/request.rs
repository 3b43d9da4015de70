//! One request to a plugin: what its sealed state is bound to, and how its runs are recorded.

use serde_json::Value;
use wharf_protocol::{Method, RpcError, model::Question, params::Retry, revision::Era};
use wharf_sandbox::Scope;

use super::failed::Failed;
use crate::{
    base::request_state::{Binding, Carried},
    client::context::Context,
    observe::{
        observers::{Begun, Recording},
        record::Action,
    },
    plugins::catalog::Served,
};

/// One request to one plugin, whatever its method.
pub struct Request<'a> {
    pub method: Method,
    pub name: &'a str,
    pub arguments: &'a Value,
    /// The size of its arguments as the client wrote them.
    pub bytes: usize,
    pub served: &'a Served,
}

impl Request<'_> {
    fn binding<'a>(&'a self, ctx: &'a Context) -> Binding<'a> {
        Binding {
            principal: &ctx.principal,
            method: self.method.as_str(),
            name: self.name,
            arguments: self.arguments,
            plugin_digest: self.served.plugin.code().digest(),
        }
    }

    /// Begins the record of a run with this scope. None: the approver refused it.
    pub fn record(&self, ctx: &Context, scope: Option<&Scope>) -> Recording {
        ctx.set_recorded();
        // Nobody is asked about completions.
        let is_asked = ctx.server.approver.is_some() && self.method != Method::Complete;
        ctx.server.observers.begin(|| Begun {
            principal: Some(ctx.principal.clone()),
            plugin: self.served.config.id.clone(),
            digest: *self.served.plugin.code().digest(),
            request: Some(ctx.facts()),
            action: Action::Request { method: self.method, name: self.name.to_owned() },
            scope,
            bytes_in: self.bytes,
            arguments: Some(self.arguments),
            approved: is_asked.then_some(scope.is_some()),
        })
    }

    /// Opens what a modern request carries from its earlier rounds.
    pub fn open(&self, ctx: &Context, retry: &Retry) -> Result<Carried, RpcError> {
        match (&retry.request_state, ctx.encoder.revision.era()) {
            (Some(token), Era::Modern) => ctx.server.seal.open(token, &self.binding(ctx)),
            _ => Ok(Carried::default()),
        }
    }

    /// The answer that asks a modern client to call again with answers to the open questions.
    pub fn input_required(&self, ctx: &Context, open: &[(String, Question)], carried: Carried) -> Failed {
        // Without anything to carry, no state is sent.
        let nothing =
            carried.answers.is_empty() && carried.state.is_none() && carried.roots.is_none() && !carried.approved;
        let sealed = if nothing { Ok(None) } else { ctx.server.seal.seal(carried, &self.binding(ctx)).map(Some) };
        match sealed {
            Ok(state) => Failed::InputRequired(ctx.encoder.input_required(open, state.as_deref())),
            Err(error) => Failed::Rpc(error),
        }
    }
}
