//! One request to a plugin: what its sealed state is bound to, and how its runs are recorded.

use std::sync::Arc;

use serde_json::Value;
use wharf_protocol::{Method, RpcError, model::Question, params::Retry, revision::Era};
use wharf_sandbox::Scope;

use super::failed::{Failed, Said, Why};
use crate::client::{context::Context, session::Session};
use wharf_base::request_state::{self, Binding, Carried, Void};
use wharf_config::roles::Entry;
use wharf_plugins::{
    approvals::{answer, ticket::Redeemed},
    bridge::OfferedTool,
    observe::{
        observers::{Begun, Recording},
        record::{Action, Approval},
    },
    plugins::served::Served,
};

/// One request to one plugin, whatever its method.
pub struct Request<'a> {
    pub method: Method,
    pub name: &'a str,
    pub arguments: &'a Value,
    /// The size of its arguments as the client wrote them.
    pub bytes: usize,
    pub served: &'a Served,
    /// The entry of the catalog that roles are checked for.
    pub entry: Entry<'a>,
    /// The tool, if the request is a call of one.
    pub tool: Option<&'a OfferedTool>,
}

impl Request<'_> {
    fn binding<'a>(&'a self, ctx: &'a Context) -> Binding<'a> {
        Binding {
            principal: ctx.principal(),
            method: self.method.as_str(),
            name: self.name,
            arguments: self.arguments,
            plugin_digest: self.served.plugin.code().digest().as_bytes(),
        }
    }

    /// Returns the session whose client can close the roots of this request. None if the roots are the operator's,
    /// which a client cannot close.
    pub fn root_owner<'a>(&self, ctx: &'a Context) -> Option<&'a Arc<Session>> {
        let are_the_clients = self.served.config.grants.roots.is_given()
            && ctx.capabilities.roots
            && ctx.roots.is_none()
            && ctx.server.scopes.accepts_roots().is_ok();
        ctx.session.as_ref().filter(|_| are_the_clients)
    }

    /// Begins the record of a run with this scope. `scope`: None if there will be no run. `approval`: the answer,
    /// if approval was asked for.
    pub fn record(&self, ctx: &Context, scope: Option<&Scope>, approval: Option<Approval>) -> Recording {
        ctx.set_recorded();
        ctx.server.observers.begin(|| Begun {
            principal: Some(ctx.principal().clone()),
            plugin: self.served.config.id.clone(),
            digest: Some(*self.served.plugin.code().digest()),
            request: Some(ctx.facts()),
            action: Action::Request { method: self.method.into(), name: self.name.to_owned() },
            scope,
            bytes_in: self.bytes,
            arguments: Some(self.arguments),
            approval,
            slot: self.tool.map(|tool| tool.slot.clone()),
        })
    }

    /// Opens the sealed state that a modern request carries from its earlier rounds. An approval in it is used up, so that the same
    /// state cannot be used again.
    pub fn open(&self, ctx: &Context, retry: &Retry) -> Result<Carried, RpcError> {
        let (Some(token), Era::Modern) = (&retry.request_state, ctx.encoder.revision.era()) else {
            return Ok(Carried::default());
        };
        let mut carried = ctx.server.seal.open(token, &self.binding(ctx))?;
        // Without a yes to the question there is no approval to use up.
        let reply = retry.input_responses.as_ref().and_then(|responses| responses.get(answer::KEY)?.get("action"));
        let approves = carried.approval.by_program
            || carried.approval.given.is_some()
            || reply.is_some_and(|action| action == "accept");
        if !approves {
            carried.ticket = None;
            return Ok(carried);
        }
        match carried.ticket.take().map(|ticket| ctx.server.approvals.tickets.redeem(&ticket, ctx.party)) {
            Some(Redeemed::Used) => {
                return Err(RpcError::invalid_params(
                    "this `requestState` has an approval in it that was used already; call again without it",
                ));
            }
            Some(Redeemed::Accepted) => {}
            // The approver is asked again.
            Some(Redeemed::Unknown) => {
                carried.approval = request_state::Approval::default();
                carried.void = Void::Approval;
            }
            None => carried.approval = request_state::Approval::default(),
        }
        Ok(carried)
    }

    /// Returns the answer that asks a modern client to call again with answers to the open questions.
    pub fn input_required(&self, ctx: &Context, open: &[(String, Question)], mut carried: Carried) -> Failed {
        let nothing = carried.answers.is_empty() && carried.state.is_none() && carried.roots.is_none();
        let approval = carried.approval != request_state::Approval::default();
        let mut seal = || {
            // Without anything to carry, no state is sent.
            if nothing && !approval {
                return Ok(None);
            }
            if approval {
                carried.ticket =
                    Some(ctx.server.approvals.tickets.issue().map_err(|error| RpcError::internal(error.to_string()))?);
            }
            ctx.server.seal.seal(std::mem::take(&mut carried), &self.binding(ctx)).map(Some)
        };
        match seal() {
            Ok(state) => {
                let json = ctx.encoder.input_required(open, state.as_deref());
                Failed { why: Why::NeedsClient, said: Said::InputRequired(json) }
            }
            Err(error) => error.into(),
        }
    }
}
