//! Requests that the embedding program makes itself. They take the path of a request from a modern client without any capabilities, after
//! its parameters were read and before its result is written.

use std::sync::Arc;

use serde_json::json;
use wharf_protocol::{
    Id, Method, Written,
    meta::RequestMeta,
    model::{Completion, PromptResult, ReadResult, ToolResult},
    params::{self, Reference, Retry},
};

use super::{
    complete,
    failed::{Failed, Said, Why},
    prompt, refused, resource,
    result::CallResult,
    tool::{self, WantedCall},
};
use crate::client::{
    context::{Arrival, ClientDeclared, Context},
    outbox::{Messages, Outbox},
    server::Server,
};
use wharf_base::{
    ledger::{Account, Accounts},
    party::party,
    principal::Principal,
};
use wharf_plugins::plugins::{published::FIRST_LOAD_TIMEOUT, view::View};
use wharf_policy::{access::call_roots::CallRoots, auth::Caller};

/// Who makes a request, and with what.
pub struct Direct {
    pub principal: Principal,
    /// Folders that are opened to the plugin, in place of the operator's roots.
    pub roots: Option<CallRoots>,
    /// Whether a person has approved the call.
    pub approved: bool,
}

/// A request under way, and what is held for as long as it is.
struct Begun {
    ctx: Context,
    _client: Accounts,
    _messages: Messages,
}

impl Direct {
    fn begin(self, server: &Arc<Server>, bytes: usize) -> Result<Begun, Failed> {
        let client = server.ledger.client(party(&self.principal, None));
        let charge = client.charge(bytes).map_err(|full| Failed::new(Why::Busy, full.to_string()))?;
        // Nobody reads the notifications of this request, so the queue is tiny and most are dropped.
        let (outbox, messages) = Outbox::new(1, Account::clone(&client));
        let arrival = Arrival {
            transport: None,
            address: None,
            party: client.party(),
            caller: Caller::Owner(self.principal),
            profile: None,
            roots: self.roots,
            approved: self.approved,
            stop: None,
            charge: Arc::new(charge),
            link: None,
            request_id: None,
        };
        let ctx = Context::new(server, arrival, Id::number(1), RequestMeta::default(), ClientDeclared::Nothing, outbox);
        Ok(Begun { ctx, _client: client, _messages: messages })
    }

    /// Calls a tool. A tool that ran and failed has a result that says so.
    pub async fn call(
        self,
        server: &Arc<Server>,
        name: String,
        arguments: Option<String>,
    ) -> Result<ToolResult, Failed> {
        let ctx = &self.begin(server, arguments.as_ref().map_or(0, String::len))?.ctx;
        let arguments = arguments.map(Written::from);
        let retry = Retry::default();
        let wanted =
            WantedCall { name: name.clone(), arguments: arguments.clone(), retry, task: None, by_model: false };
        match tool::call(ctx, wanted).await {
            Ok(CallResult::InputRequired(json) | CallResult::Task(json)) => {
                Err(Failed { why: Why::NeedsClient, said: Said::InputRequired(json) })
            }
            Ok(CallResult::Text(text)) => Ok(ToolResult::text(text)),
            Ok(CallResult::Result { result, .. }) => Ok(result),
            Err(Failed { why: Why::Failed, said: Said::Explained(text) }) => Ok(ToolResult::error(text)),
            Err(failed) => {
                if let Said::Rpc(error) = &failed.said {
                    refused::tool(ctx, &name, arguments.as_ref().map(Written::as_str), error.code.to_string()).await;
                }
                Err(failed)
            }
        }
    }

    /// Reads a resource.
    pub async fn read(self, server: &Arc<Server>, uri: &str) -> Result<ReadResult, Failed> {
        let ctx = &self.begin(server, uri.len())?.ctx;
        let answered = resource::read(ctx, uri, Retry::default()).await;
        if let Err(failed) = &answered {
            refused::failed(ctx, Method::ReadResource, uri, Some(&json!({ "uri": uri })), uri.len(), failed).await;
        }
        answered
    }

    /// Gets a prompt.
    pub async fn prompt(self, server: &Arc<Server>, params: params::GetPrompt) -> Result<PromptResult, Failed> {
        let (name, arguments) = (params.name.clone(), json!(params.arguments));
        let bytes = params.arguments.iter().flatten().map(|(name, value)| name.len() + value.len()).sum();
        let ctx = &self.begin(server, bytes)?.ctx;
        let answered = prompt::get(ctx, params, Retry::default()).await;
        if let Err(failed) = &answered {
            refused::failed(ctx, Method::GetPrompt, &name, Some(&arguments), bytes, failed).await;
        }
        answered
    }

    /// Asks for values of an argument.
    pub async fn complete(self, server: &Arc<Server>, params: params::Complete) -> Result<Completion, Failed> {
        let (Reference::Prompt { name } | Reference::Resource { uri: name }) = &params.reference;
        let (name, bytes) = (name.clone(), params.argument.value.len());
        let ctx = &self.begin(server, bytes)?.ctx;
        let answered = complete::suggest(ctx, params).await;
        if let Err(failed) = &answered {
            refused::failed(ctx, Method::Complete, &name, None, bytes, failed).await;
        }
        answered
    }
}

/// Returns what the program sees of the catalog. Waits for the first load.
pub async fn view(server: &Server) -> View {
    server.published.wait(FIRST_LOAD_TIMEOUT).await;
    server.view(&Caller::Owner(Principal::Process), None)
}
