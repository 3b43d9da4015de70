//! One request to a plugin: what its sealed state is bound to, and how its runs are recorded.

use std::sync::{Arc, LazyLock};

use wharf_protocol::{Method, Object, RpcError, model::Question, revision::Era};
use wharf_scope::Scope;

use super::failed::{Failed, Said, Why};
use crate::client::{context::Context, news::Question as AskReplica, session::Session};
use wharf_base::{
    request_state::{self, Binding, Carried, Ticket, Void},
    text::hex,
};
use wharf_plugins::{
    approvals::{answer, ticket::Redeemed},
    bridge::{CallArguments, OfferedTool},
    observe::{
        observers::{Begun, Recording},
        record::{Action, ApprovalOutcome},
    },
    plugins::served::Served,
};
use wharf_policy::roles::{Entry, EntryKind};

/// The arguments of requests that have none.
static NO_ARGUMENTS: LazyLock<CallArguments> = LazyLock::new(CallArguments::default);

/// One request to one plugin, whatever its method.
pub struct Request<'a> {
    pub method: Method,
    pub name: &'a str,
    pub arguments: &'a CallArguments,
    pub served: &'a Served,
    /// The entry of the catalog that roles are checked for.
    pub entry: Entry<'a>,
    /// The tool, if the request is a call of one.
    pub tool: Option<&'a OfferedTool>,
    /// The size of its arguments as the client wrote them.
    pub bytes: usize,
}

impl<'a> Request<'a> {
    pub fn of_tool(
        served: &'a Served,
        tool: &'a OfferedTool,
        name: &'a str,
        arguments: &'a CallArguments,
        bytes: usize,
    ) -> Self {
        let entry = Entry::new(EntryKind::Tool, &served.config.id, name);
        Self { method: Method::CallTool, name, arguments, served, entry, tool: Some(tool), bytes }
    }

    /// `template`: the template that serves the URI, if one does.
    pub fn of_resource(served: &'a Served, uri: &'a str, template: Option<&'a str>) -> Self {
        let (entry, bytes) = (Entry::read(&served.config.id, uri, template), uri.len());
        Self { method: Method::ReadResource, name: uri, arguments: &NO_ARGUMENTS, served, entry, tool: None, bytes }
    }

    pub fn of_prompt(served: &'a Served, name: &'a str, arguments: &'a CallArguments, bytes: usize) -> Self {
        let entry = Entry::new(EntryKind::Prompt, &served.config.id, name);
        Self { method: Method::GetPrompt, name, arguments, served, entry, tool: None, bytes }
    }

    /// `kind`: what `name` names. `bytes`: the size of what was typed.
    pub fn of_completion(served: &'a Served, kind: EntryKind, name: &'a str, bytes: usize) -> Self {
        let entry = Entry::new(kind, &served.config.id, name);
        Self { method: Method::Complete, name, arguments: &NO_ARGUMENTS, served, entry, tool: None, bytes }
    }

    fn binding<'b>(&'b self, ctx: &'b Context) -> Binding<'b> {
        Binding {
            principal: ctx.principal(),
            method: self.method.as_str(),
            name: self.name,
            arguments: self.arguments.value(),
            plugin_digest: self.served.plugin.code().digest().as_bytes(),
        }
    }

    /// Returns the session whose client can close the roots of this request. None if the roots are the operator's,
    /// which a client cannot close.
    pub fn root_owner<'c>(&self, ctx: &'c Context) -> Option<&'c Arc<Session>> {
        let are_the_clients = self.served.config.grants.roots.is_given()
            && ctx.capabilities.roots
            && ctx.arrival.roots.is_none()
            && ctx.server.scopes.accepts_roots().is_ok();
        ctx.session.as_ref().filter(|_| are_the_clients)
    }

    /// Begins the record of a run with this scope. `scope`: None if there will be no run. `approval`: the answer,
    /// if approval was asked for.
    pub fn record(&self, ctx: &Context, scope: Option<&Scope>, approval: Option<ApprovalOutcome>) -> Recording {
        ctx.set_recorded();
        let writes = |scope: &Scope| scope.directories.iter().any(|directory| directory.writable);
        let matters = approval.is_some() || scope.is_some_and(|scope| scope.network.is_some() || writes(scope));
        ctx.server.observers.begin(Some((ctx.party(), matters)), || Begun {
            principal: Some(ctx.principal().clone()),
            plugin: self.served.config.id.clone(),
            digest: Some(*self.served.plugin.code().digest()),
            request: Some(ctx.facts()),
            action: Action::Request { method: self.method.into(), name: self.name.to_owned() },
            scope,
            bytes_in: self.bytes,
            arguments: ctx.server.observers.has_journal().then(|| self.arguments.value()),
            approval,
            slot: self.tool.map(|tool| tool.slot.clone()),
        })
    }

    /// Opens the sealed state that a modern request carries from its earlier rounds. An approval in it is used up, so that the same
    /// state cannot be used again. `answers`: those that came with the state, by key.
    pub async fn open(&self, ctx: &Context, state: &str, answers: Option<&Object>) -> Result<Carried, RpcError> {
        if ctx.encoder.revision.era() == Era::Legacy {
            return Ok(Carried::default());
        }
        let mut carried = ctx.server.seal.open(state, &self.binding(ctx))?;
        // Without a yes to the question there is no approval to use up.
        let reply = answers.and_then(|answers| answers.get(answer::KEY)?.get("action"));
        let approves = carried.approval.by_program
            || carried.approval.given.is_some()
            || reply.is_some_and(|action| action == "accept");
        if !approves {
            carried.ticket = None;
            return Ok(carried);
        }
        let redeemed = match carried.ticket.take() {
            None => None,
            Some(ticket) => Some(redeem(ctx, &ticket).await),
        };
        match redeemed {
            Some(Redeemed::Used) => {
                return Err(RpcError::invalid_params(
                    "this `requestState` has an approval in it that was used already; call again without it",
                ));
            }
            Some(Redeemed::Accepted) => {}
            // The approver is asked again.
            Some(Redeemed::Unknown) => {
                carried.approval = request_state::SealedApproval::default();
                carried.void = Void::Approval;
            }
            None => carried.approval = request_state::SealedApproval::default(),
        }
        Ok(carried)
    }

    /// Returns the answer that asks a modern client to call again with answers to the open questions.
    pub fn input_required(&self, ctx: &Context, open: &[(String, Question)], mut carried: Carried) -> Failed {
        let nothing = carried.answers.is_empty() && carried.state.is_none() && carried.roots.is_none();
        let approval = carried.approval != request_state::SealedApproval::default();
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

/// Redeems a ticket: here, or at the replica that issued it. If that one does not answer, the ticket is unknown.
async fn redeem(ctx: &Context, ticket: &Ticket) -> Redeemed {
    let here = ctx.server.approvals.tickets.redeem(ticket, ctx.party());
    let (Redeemed::Unknown, Some(cluster)) = (here, &ctx.server.cluster) else { return here };
    let issuer = hex(&ticket.process);
    if issuer == cluster.address() {
        return here;
    }
    let question = AskReplica::Redeem { number: ticket.number, principal: ctx.principal().to_string() };
    // Boxed, so that the futures of requests stay small.
    Box::pin(cluster.ask(&issuer, &question, ctx.party())).await.unwrap_or(Redeemed::Unknown)
}
