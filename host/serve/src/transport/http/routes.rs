//! The paths of the HTTP server. The path of MCP itself leads to `endpoint`.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{Path as UrlPath, Request as HttpRequest, State},
    response::Response as HttpResponse,
    routing::{any, get},
};
use http::{HeaderValue, Method, StatusCode, header};
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

use super::{
    endpoint::{Endpoint, SESSION_HEADER, Visitor},
    entry::{Connected, Entered, enter},
    headers::REQUEST_ID,
    health, login,
    refused::Refused,
    reply::ending,
    sse_legacy,
    waits::Lasting,
};
use crate::client::server::Server;

/// How long a browser may cache the answer to a CORS preflight request.
const PREFLIGHT_MAX_AGE: Duration = Duration::from_secs(600);

/// What a person reads who opens the server's address in a browser.
const ABOUT: &str = r#"This is wharf, a server for the Model Context Protocol (MCP).
There is nothing to see here: MCP clients connect to <this address>/mcp. For example:

  claude mcp add --transport http wharf <this address>/mcp
  codex mcp add wharf --url <this address>/mcp

Most others have a config with: "wharf": { "type": "http", "url": "<this address>/mcp" }
"#;

/// All routes of a server.
pub struct Routes {
    pub all: Router,
    /// `None`: requests to the endpoint need the router too.
    pub direct: Option<Direct>,
}

/// The endpoint at its own path, without the router. Most requests go there, and the router would look for the path in a tree and box a
/// future at each of its layers.
pub struct Direct {
    path: Box<str>,
    endpoint: Arc<Endpoint>,
}

impl Direct {
    /// Returns the endpoint if this is its path.
    pub fn at(&self, path: &str) -> Option<&Arc<Endpoint>> {
        (*self.path == *path).then_some(&self.endpoint)
    }
}

impl Routes {
    /// Makes the routes, with MCP at this path.
    pub fn new(server: &Arc<Server>, path: &str) -> Self {
        let endpoint = Arc::new(Endpoint::new(server));
        // Many servers accept a slash after their path, so clients are often configured with one.
        let path = path.trim_end_matches('/');
        let all = routes(server, path, Arc::clone(&endpoint));
        // The layer for CORS is around the router.
        let direct = server.startup.http.allowed_origins.is_empty();
        Self { all, direct: direct.then(|| Direct { path: path.into(), endpoint }) }
    }
}

/// Adds the page at `/` for people. Clients that look for an older transport there get 404, as for every other path.
pub fn with_page(routes: Router) -> Router {
    let not_found = || async { StatusCode::NOT_FOUND };
    routes.route("/", get(|| async { ABOUT }).fallback(not_found))
}

fn routes(server: &Arc<Server>, path: &str, shared: Arc<Endpoint>) -> Router {
    let config = &server.startup;
    let mut app = Router::new().route(&format!("{path}/"), any(endpoint));
    if !path.is_empty() {
        app = app.route(path, any(endpoint)).route(&format!("{path}/{{profile}}"), any(profile));
        app = app.route(&format!("{path}/{{profile}}/"), any(profile));
    }
    let mut app = app.with_state(Arc::clone(&shared)).merge(health::routes(server));
    if config.protocol.sse {
        app = app.merge(sse_legacy::routes(shared));
    }
    if !config.http.allowed_origins.is_empty() {
        app = app.layer(cors(&config.http.allowed_origins));
    }
    if server.auth.as_ref().is_some_and(|auth| !auth.settings.issuers.is_empty()) {
        app = app.merge(login::routes(server, path));
    }
    app
}

fn cors(origins: &[String]) -> CorsLayer {
    let origins: Vec<HeaderValue> = origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok()).collect();
    CorsLayer::new()
        .allow_origin(AllowOrigin::list(origins))
        .allow_methods([Method::GET, Method::POST, Method::DELETE])
        // All headers are allowed, because which `Mcp-Param-*` headers there are depends on the tools. The origin is what
        // matters.
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers([SESSION_HEADER, REQUEST_ID, header::WWW_AUTHENTICATE, header::RETRY_AFTER])
        .max_age(PREFLIGHT_MAX_AGE)
}

async fn endpoint(State(shared): State<Arc<Endpoint>>, mut request: HttpRequest) -> HttpResponse {
    let connected = Connected::of(&mut request, &shared.server);
    visit(&shared, None, request, connected).await
}

async fn profile(
    State(shared): State<Arc<Endpoint>>,
    UrlPath(name): UrlPath<String>,
    mut request: HttpRequest,
) -> HttpResponse {
    let connected = Connected::of(&mut request, &shared.server);
    visit(&shared, Some(name.into()), request, connected).await
}

/// Answers a request to the endpoint. `profile`: the one that its path names.
pub async fn visit(
    shared: &Arc<Endpoint>,
    profile: Option<Arc<str>>,
    request: HttpRequest,
    connected: Connected,
) -> HttpResponse {
    let entered = enter(&shared.server, request, connected, profile.as_deref()).await;
    let Entered { request, peer, from, noted, caller, accounts } = match entered {
        Ok(entered) => entered,
        Err(turned_away) => return turned_away,
    };
    if let Some(name) = &profile
        && !shared.server.config.borrow().profiles.has(name)
    {
        return Refused::plain(StatusCode::NOT_FOUND, "there is no such profile here").into_response();
    }
    let visitor = Visitor { peer, from, caller, accounts, profile };
    let method = request.method().clone();
    let gets = method == Method::GET;
    let answer = match method {
        Method::POST => shared.post(request, noted, &visitor).await,
        Method::GET if shared.server.startup.protocol.legacy => shared.open_stream(request.headers(), &visitor).await,
        Method::DELETE if shared.server.startup.protocol.legacy => {
            shared.end_session(request.headers(), &visitor).await
        }
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
            visitor.peer.admit();
            let lasts = gets || response.extensions().get::<Lasting>().is_some();
            match shared.server.credentials_end(&visitor.caller).filter(|_| lasts) {
                Some(end) => ending(response, end),
                None => response,
            }
        }
        Err(refused) => refused.into_response(),
    }
}
