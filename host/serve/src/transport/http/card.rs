//! The server card and the catalog that points to it. Both are public: clients and web pages may read them before connecting.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request as HttpRequest, State},
    response::{IntoResponse, Response as HttpResponse},
    routing::get,
};
use http::{HeaderValue, Method, StatusCode, header};
use sha2::{Digest, Sha256};
use tower_http::cors::{Any, CorsLayer};

use super::{connections::peer, guard};
use crate::client::server::Server;
use wharf_base::text::hex;
use wharf_config::config::card::{CARD_TYPE, Card};

const CATALOG_PATH: &str = "/.well-known/ai-catalog.json";
const CATALOG_TYPE: &str = "application/ai-catalog+json";
/// The `Cache-Control` header of both documents.
const CACHED_FOR_AN_HOUR: HeaderValue = HeaderValue::from_static("public, max-age=3600");

#[derive(Clone)]
struct Document {
    server: Arc<Server>,
    media_type: &'static str,
    text: Arc<str>,
    /// The ETag of this text.
    tag: HeaderValue,
}

/// Returns the routes of the card and the catalog. `path`: where MCP is served.
pub fn routes(server: &Arc<Server>, card: &Card, path: &str) -> Router {
    let route = |path: &str, media_type: &'static str, text: &str| {
        let digest = hex(&Sha256::digest(text));
        let tag = format!("\"{}\"", digest.get(..32).unwrap_or(&digest));
        let tag = HeaderValue::from_str(&tag).unwrap_or(HeaderValue::from_static("\"card\""));
        let document = Document { server: Arc::clone(server), media_type, text: text.into(), tag };
        Router::new().route(path, get(document_of)).with_state(document)
    };
    let open = CorsLayer::new()
        .allow_origin(Any)
        .allow_methods([Method::GET])
        .allow_headers(Any)
        .expose_headers([header::ETAG]);
    route(&format!("{path}/server-card"), CARD_TYPE, &card.card)
        .merge(route(CATALOG_PATH, CATALOG_TYPE, &card.catalog))
        .layer(open)
}

async fn document_of(State(document): State<Document>, request: HttpRequest) -> HttpResponse {
    let remote = peer(&request, &document.server).remote();
    if guard::check_host(&document.server.startup.http, request.headers(), remote).is_err() {
        return StatusCode::FORBIDDEN.into_response();
    }
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(document.media_type)),
        (header::CACHE_CONTROL, CACHED_FOR_AN_HOUR),
        (header::ETAG, document.tag.clone()),
    ];
    let known = request.headers().get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let tag = document.tag.to_str().unwrap_or_default();
    let mut known = known.flat_map(|value| value.split(',')).map(|one| one.trim().trim_start_matches("W/"));
    if known.any(|one| one == tag || one == "*") {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    (headers, document.text.to_string()).into_response()
}
