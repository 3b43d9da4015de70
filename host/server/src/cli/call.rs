//! `wharf call`: one tool, called as a client would call it, with the grants that a client's call would have.

use std::{process::ExitCode, sync::Arc};

use anyhow::{Result, bail};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use wharf_protocol::{Frame, Message, Method, Object, meta::RequestMeta};

use super::{
    arguments::Call,
    load::{load_once, print},
};
use crate::{
    base::{ledger::Ledger, principal::Principal, text::escaped},
    bridge::OfferedTool,
    client::{context::Context, outbox::Outbox, server::Server},
    config,
    methods::response::Answer,
    plugins::status::Status,
    transport::admission,
};

pub(super) async fn run(command: Call) -> Result<ExitCode> {
    let file = config::find(command.config.config.as_deref())?;
    let command_line = command.granted.command_line(&[]);
    let mut config = config::load(file.as_deref(), &command_line)?;
    // If the config knows this very file, its grants and limits are the ones that count.
    let configured = config.plugins.iter().find(|plugin| same_file(&plugin.path, &command.plugin)).cloned();
    config.plugins = vec![match configured {
        Some(configured) => configured,
        None => Arc::new(config.on_command_line(&command.plugin, &command_line)?),
    }];
    config.plugin_dir = None;
    let config = Arc::new(config);
    let ledger = Ledger::new(config.startup.total_host_memory_bytes);
    let (published, scopes, _library) = load_once(Arc::clone(&config), &ledger).await?;
    for (id, status) in published.status() {
        if let Status::Failed { problem, .. } = status {
            bail!("the plugin {id} does not load ({}): {}", problem.stage, problem.text);
        }
    }
    let catalog = published.catalog.borrow().clone();
    let tools: Vec<&Arc<OfferedTool>> = catalog.served().iter().flat_map(|served| &served.offer.tools).collect();
    let Some(tool) = tools.iter().find(|tool| tool.own_name == command.tool || tool.published.name == command.tool)
    else {
        let names: Vec<&str> = tools.iter().map(|tool| tool.own_name.as_str()).collect();
        bail!("the plugin has no tool `{}`; it has: {}", command.tool, names.join(", "));
    };
    let arguments = arguments(tool, &command.arguments)?;
    let params = json!({
        "name": tool.published.name,
        "arguments": arguments,
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    });
    let line = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let Ok(Frame::One(Message::Request(request))) = Frame::parse(line.as_bytes()) else {
        bail!("the arguments do not make a request");
    };
    let params = request.params.as_ref();
    let server = Server::new(&config, ledger, published.clone(), scopes, CancellationToken::new())?;
    // Nobody reads what is said during the call; what there is no room for is dropped.
    let account = server.ledger.client("command line").account.clone();
    let charge = Arc::new(account.open());
    let (outbox, _messages) = Outbox::new(1, account.clone());
    let meta = RequestMeta::read(params).map_err(|error| anyhow::anyhow!("{error}"))?;
    let ctx = Context::of_claim(&server, &request.id, meta, &Principal::Process, outbox, charge)
        .map_err(|error| anyhow::anyhow!("{error}"))?;
    match admission::answer(&ctx, Method::CallTool.as_str(), params).await {
        Ok(Answer::Own(result)) => show(&serde_json::from_str(&result)?),
        Ok(Answer::Kept(result)) => show(&serde_json::from_str(&result)?),
        Err(error) => {
            print(&format!("error: {}", escaped(&error.message)))?;
            Ok(ExitCode::FAILURE)
        }
    }
}

fn same_file(one: &std::path::Path, other: &std::path::Path) -> bool {
    crate::base::paths::FileId::at(one).is_some_and(|id| crate::base::paths::FileId::at(other) == Some(id))
}

/// One JSON object, or pairs whose values are read as the tool's schema has them.
fn arguments(tool: &OfferedTool, given: &[String]) -> Result<Value> {
    if let [only] = given
        && only.trim_start().starts_with('{')
    {
        return serde_json::from_str(only).map_err(|error| anyhow::anyhow!("the arguments are not JSON: {error}"));
    }
    let schema: Value = serde_json::from_str(tool.input.text.get())?;
    let mut object = Object::new();
    for pair in given {
        let Some((key, value)) = pair.split_once('=') else {
            bail!("`{pair}` is neither key=value nor a JSON object");
        };
        let is_text = schema.pointer(&format!("/properties/{key}/type")).is_some_and(|kind| kind == "string");
        let value = match serde_json::from_str(value) {
            Ok(parsed) if !is_text => parsed,
            _ => Value::from(value),
        };
        object.insert(key.to_owned(), value);
    }
    Ok(Value::Object(object))
}

fn show(result: &Value) -> Result<ExitCode> {
    if let Some(requests) = result.get("inputRequests") {
        bail!(
            "the tool wants to ask its client, which the command line cannot answer: {}",
            escaped(&requests.to_string())
        );
    }
    for block in result.get("content").and_then(Value::as_array).into_iter().flatten() {
        match block.get("text").and_then(Value::as_str) {
            Some(text) => print(&text.lines().map(escaped).collect::<Vec<_>>().join("\n"))?,
            None => print(&escaped(&block.to_string()))?,
        }
    }
    let failed = result.get("isError") == Some(&Value::Bool(true));
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
