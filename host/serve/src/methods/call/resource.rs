//! `resources/read`.

use wharf_protocol::{
    Object, RpcError, model as mcp,
    params::{self, Retry},
};
use wharf_sandbox::{ReadAnswer, ReadResource};

use super::{
    coming,
    failed::{Failed, other_failed},
    parsed::converted,
    request::Request,
    rounds::pass_and_run,
};
use crate::client::context::Context;
use wharf_plugins::{
    bridge::{self, check_uri},
    plugins::expected::Sought,
};
use wharf_policy::roles::EntryKind;

pub async fn resource(ctx: &Context, mut params: params::ReadResource) -> Result<String, RpcError> {
    let retry = params.take_retry();
    match read(ctx, &params.uri, retry).await {
        Ok(result) => Ok(ctx.write(0, || ctx.encoder.read_result(result))),
        Err(failed) => other_failed(failed),
    }
}

/// Reads a resource.
pub async fn read(ctx: &Context, uri: &str, retry: Retry) -> Result<mcp::ReadResult, Failed> {
    check_uri(uri)?;
    let sought = Sought { kind: EntryKind::Resource, name: uri };
    let view = Box::pin(coming::wait_for(ctx, sought, |view| view.resource(uri).map(drop))).await?;
    let (served, listed) = view.resource(uri)?;
    let request = Request::of_resource(served, uri, listed.template);
    let operation = |context| ReadResource { uri: uri.to_owned(), context };
    let answer = pass_and_run(ctx, &request, retry, operation).await?;
    let converted = converted(ctx, served, answer, |answer, paid| match answer {
        ReadAnswer::Text(text) => Ok(mcp::ReadResult {
            contents: vec![mcp::ResourceContents {
                uri: uri.to_owned(),
                mime_type: listed.mime_type.map(ToOwned::to_owned),
                body: mcp::Body::Text(text),
                more: Object::new(),
            }],
        }),
        ReadAnswer::Contents(contents) => bridge::read_result(contents, paid),
    });
    // Boxed, as the futures of calls have to stay small.
    Box::pin(converted).await
}
