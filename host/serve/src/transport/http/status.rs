//! The HTTP status of an error, and the header that says what to do about it. Most errors of JSON-RPC come with status 200.

use http::{HeaderName, HeaderValue, StatusCode, header};
use wharf_protocol::{
    RpcError,
    error::{HEADER_MISMATCH, INSUFFICIENT_SCOPE, MISSING_CLIENT_CAPABILITY, TOO_MANY_REQUESTS, UNAVAILABLE},
    revision::Era,
};

use crate::client::context::Context;
use wharf_policy::auth::{self, metadata};

pub type Hint = Option<(HeaderName, HeaderValue)>;

/// Returns the status for an answer, and a header if the client can do something about it.
pub fn of<T>(ctx: &Context, answer: &Result<T, RpcError>) -> (StatusCode, Hint) {
    let Err(error) = answer else { return (StatusCode::OK, None) };
    match error.code {
        INSUFFICIENT_SCOPE => (StatusCode::FORBIDDEN, challenge(ctx, error)),
        TOO_MANY_REQUESTS => (StatusCode::TOO_MANY_REQUESTS, retry_after(error)),
        UNAVAILABLE => (StatusCode::SERVICE_UNAVAILABLE, retry_after(error)),
        MISSING_CLIENT_CAPABILITY | HEADER_MISMATCH if ctx.encoder.revision.era() == Era::Modern => {
            (StatusCode::BAD_REQUEST, None)
        }
        _ => (StatusCode::OK, None),
    }
}

/// Returns the header that says which scopes to ask for.
fn challenge(ctx: &Context, error: &RpcError) -> Hint {
    let settings = &ctx.server.auth.as_ref()?.settings;
    let needed = error.data.as_ref()?.get("scopes")?.as_array()?;
    let needed: Vec<String> = needed.iter().filter_map(|scope| scope.as_str().map(ToOwned::to_owned)).collect();
    let all = settings.to_ask_for(&needed, ctx.caller().identity()?);
    Some((header::WWW_AUTHENTICATE, metadata::challenge(settings, &auth::Refused::Scope(all), ctx.profile())?))
}

fn retry_after(error: &RpcError) -> Hint {
    let seconds = error.data.as_ref()?.get("retryAfter")?.as_u64()?;
    Some((header::RETRY_AFTER, seconds.into()))
}
