//! Bytes to messages and back. Transports know nothing of plugins.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use serde_json::value::RawValue;
use wharf_protocol::{
    RpcError,
    message::{error_text, result_text},
};

use crate::{context::Context, router};

pub mod endpoint;
pub mod guard;
pub mod http;
pub mod reply;
pub mod sessions;
pub mod stdio;

/// Answers a request, whatever happens: a panic of ours becomes an error with a number that the log explains.
pub async fn answer(ctx: &Context, method: &str, params: Option<&RawValue>) -> Result<String, RpcError> {
    match AssertUnwindSafe(router::handle(ctx, method, params)).catch_unwind().await {
        Ok(answer) => answer,
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(ToString::to_string);
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
            Err(ctx.server.incident(&text))
        }
    }
}

/// The text of the response.
pub fn response(ctx: &Context, answer: Result<String, RpcError>) -> String {
    match answer {
        Ok(result) => result_text(&ctx.id, &result),
        Err(error) => {
            tracing::debug!(code = error.code, "refused: {}", crate::text::escaped(&error.message));
            error_text(Some(&ctx.id), &error, ctx.encoder.revision)
        }
    }
}
