//! Which path leads where. What happens at the protocol's own path is in `endpoint`.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request as HttpRequest, State},
    response::{IntoResponse, Response as HttpResponse},
    routing::{any, get},
};
use http::{HeaderValue, Method, StatusCode, header};
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

use super::{
    connections::peer,
    endpoint::{Endpoint, SESSION_HEADER},
    guard,
    refused::{Refused, turn_away},
    sse_legacy,
};
use crate::client::server::Server;

/// Everything that is served over HTTP, with the protocol at this path.
pub fn routes(server: &Arc<Server>, path: &str) -> Router {
    let config = &server.startup;
    let shared = Arc::new(Endpoint::new(server));
    // Many servers take their path with a slash behind it as well, so clients are told such.
    let path = path.trim_end_matches('/');
    let mut app = Router::new()
        .route(if path.is_empty() { "/" } else { path }, any(endpoint))
        .route("/healthz", get(health))
        .with_state(Arc::clone(&shared));
    if !path.is_empty() {
        app = app.merge(Router::new().route(&format!("{path}/"), any(endpoint)).with_state(Arc::clone(&shared)));
    }
    if config.protocol.sse {
        app = app.merge(sse_legacy::routes(shared));
    }
    if !config.http.allowed_origins.is_empty() {
        app = app.layer(cors(&config.http.allowed_origins));
    }
    app
}

fn cors(origins: &[String]) -> CorsLayer {
    let origins: Vec<HeaderValue> = origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok()).collect();
    CorsLayer::new()
        .allow_origin(AllowOrigin::list(origins))
        .allow_methods([Method::GET, Method::POST, Method::DELETE])
        // The origin decides; which `Mcp-Param-*` there are, tools say.
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers([SESSION_HEADER, header::WWW_AUTHENTICATE])
}

async fn health(State(shared): State<Arc<Endpoint>>, request: HttpRequest) -> HttpResponse {
    match guard::check(&shared.server.startup.http, request.headers()) {
        Err(guard::Refusal::Host | guard::Refusal::Origin) => StatusCode::FORBIDDEN.into_response(),
        // Whether it is alive is no secret.
        Ok(_) | Err(guard::Refusal::NoToken | guard::Refusal::WrongToken)
            if *shared.server.published.ready.borrow() =>
        {
            "ok\n".into_response()
        }
        Ok(_) | Err(guard::Refusal::NoToken | guard::Refusal::WrongToken) => {
            (StatusCode::SERVICE_UNAVAILABLE, "loading\n").into_response()
        }
    }
}

async fn endpoint(State(shared): State<Arc<Endpoint>>, request: HttpRequest) -> HttpResponse {
    let peer = peer(&request, &shared.server);
    let principal = match guard::check(&shared.server.startup.http, request.headers()) {
        Ok(principal) => principal,
        Err(refusal) => return turn_away(&shared.server, refusal, request.headers(), peer.address()),
    };
    let method = request.method().clone();
    let answer = match method {
        Method::POST => shared.post(request, &peer, &principal).await,
        Method::GET if shared.server.startup.protocol.legacy => {
            shared.open_stream(request.headers(), &peer, &principal).await
        }
        Method::DELETE if shared.server.startup.protocol.legacy => shared.end_session(request.headers(), &principal),
        _ => {
            let allowed = if shared.server.startup.protocol.legacy { "POST, GET, DELETE" } else { "POST" };
            let mut response =
                Refused::plain(StatusCode::METHOD_NOT_ALLOWED, &format!("use {allowed}")).into_response();
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
            return response;
        }
    };
    match answer {
        Ok(response) => {
            peer.admit();
            response
        }
        Err(refused) => refused.into_response(),
    }
}
