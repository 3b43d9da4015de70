//! The HTTP server: who may connect, for how long, and which path leads where. What happens at `/mcp` is in `endpoint`.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{Request as HttpRequest, State},
    response::{IntoResponse, Response as HttpResponse},
    routing::{any, get},
};
use http::{HeaderName, HeaderValue, Method, StatusCode, header};
use tokio::{
    net::TcpListener,
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
};
use tower_http::cors::{AllowOrigin, CorsLayer};

use super::{
    endpoint::{Endpoint, Refused, SESSION_HEADER},
    guard,
};
use crate::server::Server;

/// How long a client may take to send its headers.
const HEADERS: Duration = Duration::from_secs(10);
/// Connections at once.
const CONNECTIONS: usize = 4096;
const DRAIN: Duration = Duration::from_secs(1);

/// Serves until wharf stops; then requests under way have a second to finish.
pub async fn serve(server: Arc<Server>, listener: TcpListener) {
    let config = &server.config.http;
    let shared = Arc::new(Endpoint::new(&server));
    let app = Router::new()
        .route("/mcp", any(endpoint))
        .route("/healthz", get(health))
        .with_state(shared)
        .layer(cors(&config.allowed_origins));
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
    let names = ["mcp-protocol-version", "mcp-method", "mcp-name", "last-event-id"].map(HeaderName::from_static);
    CorsLayer::new()
        .allow_origin(AllowOrigin::list(origins))
        .allow_methods([Method::GET, Method::POST, Method::DELETE])
        .allow_headers(
            [header::CONTENT_TYPE, header::AUTHORIZATION, header::ACCEPT, SESSION_HEADER]
                .into_iter()
                .chain(names)
                .collect::<Vec<_>>(),
        )
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
        tracing::warn!("refused a request: {}", refusal.message());
        return refused(refusal);
    }
    let method = request.method().clone();
    let answer = match method {
        Method::POST => shared.post(request).await,
        Method::GET => shared.open_stream(request.headers()).await,
        Method::DELETE => shared.end_session(request.headers()),
        _ => Err(Refused::plain(StatusCode::METHOD_NOT_ALLOWED, "use POST, GET or DELETE")),
    };
    answer.unwrap_or_else(Refused::into_response)
}

fn refused(refusal: guard::Refusal) -> HttpResponse {
    let status = if refusal == guard::Refusal::Token { StatusCode::UNAUTHORIZED } else { StatusCode::FORBIDDEN };
    let mut response = Refused::plain(status, refusal.message()).into_response();
    if refusal == guard::Refusal::Token {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}
