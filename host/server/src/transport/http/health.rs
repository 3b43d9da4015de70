//! Whether the server is alive, and whether it can take requests: for whatever starts it anew and sends requests to it.
//!
//! Everybody may ask, by any name, since probes come without a token and by the address of a machine. So what is missing is named
//! in a word, without anything of the config.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request as HttpRequest, State},
    response::{IntoResponse, Response as HttpResponse},
    routing::get,
};
use http::{HeaderValue, StatusCode, header};
use serde_json::json;

use super::{connections::peer, guard, refused::json};
use crate::client::server::Server;

/// `/livez` and `/readyz`; and `/healthz`, which is older and says only whether everything is loaded.
pub fn routes(server: &Arc<Server>) -> Router {
    Router::new()
        .route("/livez", get(alive))
        .route("/readyz", get(ready))
        .route("/healthz", get(health))
        .with_state(Arc::clone(server))
}

async fn alive() -> HttpResponse {
    uncached(json(StatusCode::OK, json!({ "alive": true }).to_string()))
}

async fn ready(State(server): State<Arc<Server>>) -> HttpResponse {
    let missing = missing(&server);
    let status = if missing.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    uncached(json(status, json!({ "ready": missing.is_empty(), "missing": missing }).to_string()))
}

/// What keeps the server from taking requests. Empty: nothing does.
pub fn missing(server: &Server) -> Vec<&'static str> {
    let all = [
        // They were tried. Whether a plugin is good is no reason to send requests elsewhere, where the same plugin would be as bad.
        ("plugins", *server.published.ready.borrow()),
        ("keys", server.auth.as_ref().is_none_or(|auth| auth.ready())),
        ("audit", server.observers.can_record()),
        ("open", !server.draining.is_cancelled()),
    ];
    all.into_iter().filter_map(|(name, there)| (!there).then_some(name)).collect()
}

/// What was true a moment ago is of no use to anybody.
fn uncached(mut response: HttpResponse) -> HttpResponse {
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

async fn health(State(server): State<Arc<Server>>, request: HttpRequest) -> HttpResponse {
    // Whether the server is alive is no secret, so no token is needed.
    if guard::check(&server.startup.http, request.headers(), peer(&request, &server).remote()).is_err() {
        StatusCode::FORBIDDEN.into_response()
    } else if *server.published.ready.borrow() {
        "ok\n".into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "loading\n").into_response()
    }
}
