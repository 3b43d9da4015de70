//! The HTTP server: who may connect, for how long, and which path leads where. What happens at `/mcp` is in `endpoint`.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{Request as HttpRequest, State},
    response::{IntoResponse, Response as HttpResponse},
    routing::{any, get},
};
use http::{HeaderValue, Method, StatusCode, header};
use tokio::{
    net::TcpListener,
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
};
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

use super::{
    endpoint::{Endpoint, SESSION_HEADER},
    guard,
    refused::{Refused, turn_away},
    sse_legacy,
};
use crate::server::Server;

/// How long a client may take to send its headers.
const HEADERS: Duration = Duration::from_secs(10);
/// Connections at once.
const CONNECTIONS: usize = 4096;
const DRAIN: Duration = Duration::from_secs(1);

/// Serves until wharf stops; then requests under way have a second to finish.
pub async fn serve(server: Arc<Server>, listener: TcpListener) {
    let config = &server.config;
    let shared = Arc::new(Endpoint::new(&server));
    let mut app =
        Router::new().route("/mcp", any(endpoint)).route("/healthz", get(health)).with_state(Arc::clone(&shared));
    if config.protocol.sse {
        app = app.merge(sse_legacy::routes(shared));
    }
    if !config.http.allowed_origins.is_empty() {
        app = app.layer(cors(&config.http.allowed_origins));
    }
    let connections = Arc::new(Semaphore::new(CONNECTIONS));
    let mut open = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &connections) => accepted,
            Some(_) = open.join_next() => continue,
            () = server.stop.cancelled() => break,
        };
        let (stream, _, permit) = accepted;
        let service = hyper_util::service::TowerToHyperService::new(app.clone());
        let stop = server.stop.clone();
        open.spawn(async move {
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(hyper_util::rt::TokioTimer::new())
                .header_read_timeout(HEADERS)
                .serve_connection(hyper_util::rt::TokioIo::new(stream), service);
            let mut connection = std::pin::pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = stop.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = ended {
                tracing::debug!("connection: {error}");
            }
            drop(permit);
        });
    }
    drop(listener);
    if tokio::time::timeout(DRAIN, async { while open.join_next().await.is_some() {} }).await.is_err() {
        tracing::info!("stopped with connections open");
    }
}

async fn accept(
    listener: &TcpListener,
    connections: &Arc<Semaphore>,
) -> (tokio::net::TcpStream, SocketAddr, Option<OwnedSemaphorePermit>) {
    let permit = Arc::clone(connections).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // Small answers must not wait for more of them; without the option they are only slower.
                stream.set_nodelay(true).ok();
                return (stream, peer, permit);
            }
            Err(error) => {
                tracing::warn!("cannot accept connections: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
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
    match guard::check(&shared.server.config.http, request.headers()) {
        Err(guard::Refusal::Host | guard::Refusal::Origin) => StatusCode::FORBIDDEN.into_response(),
        // Whether it is alive is no secret.
        Ok(()) | Err(guard::Refusal::Token) if *shared.server.shelf.ready.borrow() => "ok\n".into_response(),
        Ok(()) | Err(guard::Refusal::Token) => (StatusCode::SERVICE_UNAVAILABLE, "loading\n").into_response(),
    }
}

async fn endpoint(State(shared): State<Arc<Endpoint>>, request: HttpRequest) -> HttpResponse {
    if let Err(refusal) = guard::check(&shared.server.config.http, request.headers()) {
        return turn_away(refusal);
    }
    let method = request.method().clone();
    let answer = match method {
        Method::POST => shared.post(request).await,
        Method::GET if shared.server.config.protocol.legacy => shared.open_stream(request.headers()).await,
        Method::DELETE if shared.server.config.protocol.legacy => shared.end_session(request.headers()),
        _ => {
            let allowed = if shared.server.config.protocol.legacy { "POST, GET, DELETE" } else { "POST" };
            let mut response =
                Refused::plain(StatusCode::METHOD_NOT_ALLOWED, &format!("use {allowed}")).into_response();
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
            return response;
        }
    };
    answer.unwrap_or_else(Refused::into_response)
}
