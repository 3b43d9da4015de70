//! Calls a tool without a client, as a modern client without any capabilities would call it.

use std::sync::Arc;

use serde_json::Value;
use wharf_protocol::{Id, meta::RequestMeta, model::ToolResult};

use super::{
    refused,
    tool::{WantedCall, call as call_tool},
};
use crate::client::{
    context::{Arrival, ClientDeclared, Context},
    outbox::Outbox,
    server::Server,
};
use wharf_base::{ledger::Account, party::party, principal::Principal};
use wharf_config::auth::Caller;

/// Calls a tool. `approved`: whether a person has approved the call. The error is a sentence.
pub async fn call(
    server: &Arc<Server>,
    principal: Principal,
    tool: &str,
    arguments: &Value,
    approved: bool,
) -> Result<ToolResult, String> {
    let client = server.ledger.client(party(&principal, None));
    let text = serde_json::value::to_raw_value(arguments).map_err(|error| error.to_string())?;
    let charge = client.charge(text.get().len()).map_err(|full| full.to_string())?;
    // Nobody reads the notifications of this call, so the queue is tiny and most are dropped.
    let (outbox, _messages) = Outbox::new(1, Account::clone(&client));
    let arrival = Arrival {
        transport: None,
        party: client.party(),
        caller: Caller::Owner(principal),
        profile: None,
        roots: None,
        approved,
        stop: None,
        charge: Arc::new(charge),
        link: None,
        request_id: None,
    };
    let ctx = Context::new(server, arrival, Id::number(1), RequestMeta::default(), ClientDeclared::Nothing, outbox);
    let wanted = WantedCall {
        name: tool.to_owned(),
        arguments: Some(&text),
        retry: Default::default(),
        task: None,
        by_model: false,
    };
    match call_tool(&ctx, wanted).await {
        Ok(result) => result
            .into_result()
            .ok_or_else(|| format!("the tool `{tool}` wants to ask its client something, but this call has no client")),
        Err(error) => {
            refused::tool(&ctx, tool, Some(&text), error.code.to_string()).await;
            Err(error.message)
        }
    }
}
