//! The record of a request that reached no plugin, because the request is invalid or the client lacks a capability that it needs.

use serde_json::Value;
use wharf_protocol::{Method, RpcError, Written, error::clip, params::Params};

use super::failed::{Failed, Said};
use crate::client::context::Context;
use wharf_plugins::{
    bridge,
    observe::{
        observers::{Begun, runs_plugins},
        record::Action,
    },
};

/// Records that a request ended with an error, unless there is a record of it already or it needs no plugin.
pub async fn refused(ctx: &Context, method: Method, params: Option<&Params>, error: &RpcError) {
    let observers = &ctx.server.observers;
    if !runs_plugins(method) || !observers.is_active() || !ctx.set_recorded() {
        return;
    }
    let (name, why) = (named(method, params).unwrap_or_default(), error.code.to_string());
    let written = params.and_then(|params| params.get("arguments")).map(Written::as_str);
    if method == Method::CallTool {
        return of_tool(ctx, &name, written, why).await;
    }
    let bytes = written.map_or(0, str::len);
    let arguments = written.and_then(|text| bridge::arguments(Some(text)).ok());
    of(ctx, method, &name, arguments.as_ref(), bytes, why).await;
}

/// Records that a call of a tool ended before its plugin ran, unless there is a record of it already. `written`: the arguments as the
/// client wrote them. `why`: the code of an error, or one word.
pub async fn tool(ctx: &Context, name: &str, written: Option<&str>, why: String) {
    if ctx.server.observers.is_active() && ctx.set_recorded() {
        of_tool(ctx, name, written, why).await;
    }
}

async fn of_tool(ctx: &Context, name: &str, written: Option<&str>, why: String) {
    let bytes = written.map_or(2, str::len);
    of(ctx, Method::CallTool, name, bridge::arguments(written).ok().as_ref(), bytes, why).await;
}

/// Returns the name or URI that the request is for, as far as it can be read.
fn named(method: Method, params: Option<&Params>) -> Option<String> {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(ToOwned::to_owned);
    let member = |key: &str| serde_json::from_str::<Value>(params?.get(key)?.as_str()).ok();
    match method {
        Method::CallTool | Method::GetPrompt => member("name")?.as_str().map(ToOwned::to_owned),
        Method::ReadResource => member("uri")?.as_str().map(ToOwned::to_owned),
        _ => member("ref").and_then(|target| text(&target, "name").or_else(|| text(&target, "uri"))),
    }
}

/// Records that a request failed with an error before it reached a plugin, unless there is a record of it already.
pub async fn failed(
    ctx: &Context,
    method: Method,
    name: &str,
    arguments: Option<&Value>,
    bytes: usize,
    failed: &Failed,
) {
    if let Said::Rpc(error) = &failed.said
        && ctx.server.observers.is_active()
        && ctx.set_recorded()
    {
        of(ctx, method, name, arguments, bytes, error.code.to_string()).await;
    }
}

/// Records that a request was refused. `why`: the code of an error, or one word.
pub async fn of(ctx: &Context, method: Method, name: &str, arguments: Option<&Value>, bytes: usize, why: String) {
    let catalog = ctx.server.published.catalog.borrow().clone();
    let served = match method {
        Method::CallTool => catalog.tool(name).map(|(served, _)| &**served),
        Method::GetPrompt => catalog.prompt(name).map(|(served, _)| served),
        _ => catalog.resource(name).map(|(served, _)| served),
    };
    let begun = ctx.server.observers.begin(Some((ctx.party(), false)), || Begun {
        principal: Some(ctx.principal().clone()),
        plugin: served.map(|served| served.config.id.clone()).unwrap_or_default(),
        digest: served.map(|served| *served.plugin.code().digest()),
        request: Some(ctx.facts()),
        action: Action::Request { method: method.into(), name: clip(name) },
        scope: None,
        bytes_in: bytes,
        arguments,
        approval: None,
        slot: None,
    });
    begun.refuse(why).await;
}
