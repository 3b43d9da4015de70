//! The OAuth metadata that clients read before they log in (RFC 9728): which resource this is, and who issues tokens for it. It is public:
//! web pages may read it too.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request as HttpRequest, State},
    response::{IntoResponse, Response as HttpResponse},
    routing::get,
};
use http::{Method, StatusCode};
use tower_http::cors::{Any, CorsLayer};

use super::{connections::peer, guard, refused::json};
use crate::client::server::Server;
use wharf_base::text::is_segment;
use wharf_policy::auth::metadata;

#[derive(Clone)]
struct Shared {
    server: Arc<Server>,
    /// The paths of MCP: as clients reach it, and as it is served here.
    paths: [String; 2],
}

/// The routes of the metadata. `path`: where MCP is served.
pub fn routes(server: &Arc<Server>, path: &str) -> Router {
    let public = server.auth.as_ref().map(|auth| metadata::path(&auth.settings).to_owned()).unwrap_or_default();
    let shared = Shared { server: Arc::clone(server), paths: [public, path.to_owned()] };
    let mut app = Router::new()
        .route(metadata::WELL_KNOWN, get(resource))
        .route(&format!("{}/{{*rest}}", metadata::WELL_KNOWN), get(resource));
    if server.startup.protocol.legacy {
        // Clients of 2025-03-26 look for the issuer's metadata here.
        app = app.route("/.well-known/oauth-authorization-server", get(issuer));
    }
    app.with_state(shared).layer(CorsLayer::new().allow_origin(Any).allow_methods([Method::GET]).allow_headers(Any))
}

async fn resource(State(shared): State<Shared>, request: HttpRequest) -> HttpResponse {
    let Some(auth) = shared.served(&request) else { return StatusCode::FORBIDDEN.into_response() };
    let rest = request.uri().path().strip_prefix(metadata::WELL_KNOWN).unwrap_or_default();
    let Some(below) = shared.below(rest) else { return StatusCode::NOT_FOUND.into_response() };
    json(StatusCode::OK, metadata::document(&auth.settings, below).to_string())
}

async fn issuer(State(shared): State<Shared>, request: HttpRequest) -> HttpResponse {
    let Some(auth) = shared.served(&request) else { return StatusCode::FORBIDDEN.into_response() };
    match auth.issuer_metadata().await {
        Some(text) => json(StatusCode::OK, text.to_string()),
        None => StatusCode::BAD_GATEWAY.into_response(),
    }
}

impl Shared {
    /// Returns what follows the path of MCP in the path of a resource. None: the path is not one of MCP. Every valid name counts as a
    /// profile here, so that clients without a token do not learn which profiles exist.
    fn below<'a>(&self, path: &'a str) -> Option<&'a str> {
        if matches!(path, "" | "/") {
            return Some("");
        }
        let mut all = self.paths.iter().filter_map(|known| path.strip_prefix(known.as_str()));
        all.find(|below| {
            let name = below.strip_prefix('/').map(|name| name.strip_suffix('/').unwrap_or(name));
            below.is_empty() || name.is_some_and(|name| name.is_empty() || is_segment(name))
        })
    }

    fn served(&self, request: &HttpRequest) -> Option<&Arc<wharf_policy::auth::Auth>> {
        let from = peer(request, &self.server).remote();
        guard::check_host(&self.server.startup.http, request.headers(), from).ok()?;
        self.server.auth.as_ref()
    }
}
