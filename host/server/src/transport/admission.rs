//! What both transports do with a request that they have read.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use wharf_protocol::{
    Method, Request, RpcError,
    meta::RequestMeta,
    params::{self, Params},
};

use crate::{
    client::context::Context,
    methods::{response::Answer, router},
};

/// Answers a request, whatever happens: a panic of ours becomes an error with a number that the log explains.
pub async fn answer(ctx: &Context, method: &str, params: Option<&Params>) -> Result<Answer, RpcError> {
    match AssertUnwindSafe(router::handle(ctx, method, params)).catch_unwind().await {
        Ok(answer) => answer,
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(ToString::to_string);
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
            Err(ctx.server.incident(&text))
        }
    }
}

/// Whether a request makes a modern claim, and its `_meta`.
pub fn claim(params: Option<&Params>) -> Result<(bool, RequestMeta), RpcError> {
    let meta = RequestMeta::read(params)?;
    Ok((meta.claims_modern(), meta))
}

/// What a request lacks that is none of a session and makes no complete claim to be modern.
pub fn unclaimed(meta: &RequestMeta) -> RpcError {
    meta.modern_claim().err().unwrap_or_else(|| RpcError::invalid_params("missing `_meta`"))
}

/// Turns away a request of a revision with a handshake, where those are switched off.
pub fn without_legacy(request: &Request, meta: &RequestMeta) -> RpcError {
    let offered = params::read::<params::Initialize>(request.params.as_ref());
    match (request.known(), offered) {
        (Some(Method::Initialize), Ok(offered)) => RpcError::unsupported_version(&offered.protocol_version),
        _ => unclaimed(meta),
    }
}
