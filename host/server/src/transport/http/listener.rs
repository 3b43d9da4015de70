//! The HTTP server: who may connect, for how long, and which path leads where. What happens at `/mcp` is in `endpoint`.

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{Request as HttpRequest, State},
    response::{IntoResponse, Response as HttpResponse},
    routing::{any, get},
};
use http::{HeaderValue, Method, StatusCode, header};
use rustix::process::{Resource, getrlimit};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

use super::{
    connections::{Connections, Peer, Place},
    endpoint::{Endpoint, SESSION_HEADER},
    guard,
    paced::{PACE, Paced},
    refused::{Refused, turn_away},
    sse_legacy,
};
use crate::client::server::Server;

/// How long a client may take to send its headers.
const HEADERS: Duration = Duration::from_secs(10);
/// Connections at once, if the process may have twice as many files open.
const CONNECTIONS: usize = 4096;
/// What is read ahead of a connection at the most, and so the longest head of a request.
const BUFFER_BYTES: usize = 128 << 10;
const DRAIN: Duration = Duration::from_secs(1);

/// Serves until wharf stops; then requests under way have a second to finish.
pub async fn serve(server: Arc<Server>, listener: TcpListener) {
    let config = &server.startup;
    let shared = Arc::new(Endpoint::new(&server));
    let mut app =
        Router::new().route("/mcp", any(endpoint)).route("/healthz", get(health)).with_state(Arc::clone(&shared));
    if config.protocol.sse {
        app = app.merge(sse_legacy::routes(shared));
    }
    if !config.http.allowed_origins.is_empty() {
        app = app.layer(cors(&config.http.allowed_origins));
    }
    let connections = Connections::new(most_connections());
    let mut open = JoinSet::new();
    loop {
        let (stream, address) = tokio::select! {
            accepted = accept(&listener) => accepted,
            Some(_) = open.join_next() => continue,
            () = server.stop.cancelled() => break,
        };
        let Some(place) = connections.enter(address.ip(), &server.ledger) else {
            server.refusals.say("a connection, because there are too many that are being served");
            continue;
        };
        open.spawn(serve_connection(Arc::clone(&server), stream, place, app.clone()));
    }
    drop(listener);
    if tokio::time::timeout(DRAIN, async { while open.join_next().await.is_some() {} }).await.is_err() {
        tracing::info!("stopped with connections open");
    }
}

async fn serve_connection(server: Arc<Server>, stream: TcpStream, place: Place, app: Router) {
    let app = hyper_util::service::TowerToHyperService::new(app);
    let peer = Arc::clone(&place.peer);
    let service = hyper::service::service_fn(move |mut request: http::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(Arc::clone(&peer));
        let (answer, peer) = (hyper::service::Service::call(&app, request), Arc::clone(&peer));
        async move {
            let mut response = answer.await?;
            if peer.has_asked_enough() {
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(response)
        }
    });
    let stream = Paced::new(stream, Arc::clone(&place.peer), PACE);
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(hyper_util::rt::TokioTimer::new())
        .header_read_timeout(HEADERS)
        .max_buf_size(BUFFER_BYTES)
        .serve_connection(hyper_util::rt::TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        // Others need the place.
        () = place.peer.end.cancelled() => return,
        () = server.stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        let cause = std::error::Error::source(&error).and_then(|cause| cause.downcast_ref::<std::io::Error>());
        if cause.is_some_and(|cause| cause.kind() == std::io::ErrorKind::TimedOut) {
            server.refusals.say("a client that does not read what it is sent: its connection was ended");
        }
        tracing::debug!("connection: {error}");
    }
}

/// Half of the files that the process may have open are for plugins and for wharf itself.
fn most_connections() -> usize {
    let files =
        getrlimit(Resource::Nofile).current.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
    CONNECTIONS.min(files / 2).max(1)
}

async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // Small answers must not wait for more of them; without the option they are only slower.
                stream.set_nodelay(true).ok();
                return (stream, peer);
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
    match guard::check(&shared.server.startup.http, request.headers()) {
        Err(guard::Refusal::Host | guard::Refusal::Origin) => StatusCode::FORBIDDEN.into_response(),
        // Whether it is alive is no secret.
        Ok(()) | Err(guard::Refusal::Token) if *shared.server.published.ready.borrow() => "ok\n".into_response(),
        Ok(()) | Err(guard::Refusal::Token) => (StatusCode::SERVICE_UNAVAILABLE, "loading\n").into_response(),
    }
}

async fn endpoint(State(shared): State<Arc<Endpoint>>, request: HttpRequest) -> HttpResponse {
    if let Err(refusal) = guard::check(&shared.server.startup.http, request.headers()) {
        return turn_away(&shared.server, refusal);
    }
    let Some(peer) = request.extensions().get::<Arc<Peer>>().cloned() else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let method = request.method().clone();
    let answer = match method {
        Method::POST => shared.post(request, &peer).await,
        Method::GET if shared.server.startup.protocol.legacy => shared.open_stream(request.headers(), &peer).await,
        Method::DELETE if shared.server.startup.protocol.legacy => shared.end_session(request.headers()),
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
