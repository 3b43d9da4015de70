//! Liveness and readiness of the server, for supervisors that restart it and load balancers that send requests to it.
//!
//! Every client may ask, with any `Host`, since probes come without a token and use the address of a machine. So a response names what is
//! missing in one word, and nothing from the config.

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

/// Returns the routes `/livez` and `/readyz`; and `/healthz`, which is older and says only whether everything is loaded.
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

/// Returns what keeps the server from taking requests; empty if it is ready.
pub fn missing(server: &Server) -> Vec<&'static str> {
    let all = [
        // Whether all plugins were tried. A plugin that fails does not make the server unready, since it would fail on other servers too.
        ("plugins", *server.published.ready.borrow()),
        ("keys", server.auth.as_ref().is_none_or(|auth| auth.ready())),
        ("audit", server.observers.can_record()),
        ("open", !server.draining.is_cancelled()),
    ];
    all.into_iter().filter_map(|(name, there)| (!there).then_some(name)).collect()
}

/// Forbids clients to cache the response, since health changes at any time.
fn uncached(mut response: HttpResponse) -> HttpResponse {
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

async fn health(State(server): State<Arc<Server>>, request: HttpRequest) -> HttpResponse {
    // Liveness is not a secret, so no token is needed.
    if guard::check(&server.startup.http, request.headers(), peer(&request, &server).remote()).is_err() {
        StatusCode::FORBIDDEN.into_response()
    } else if *server.published.ready.borrow() {
        "ok\n".into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "loading\n").into_response()
    }
}
