//! A server for plugins to reach, which records the headers of its requests. It answers a request for `/wait` when the test says so.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderMap, StatusCode},
    routing::any,
};
use e2e::PATIENCE;
use parking_lot::Mutex;
use tokio::{net::TcpListener, sync::watch, task::JoinSet, time::timeout};

pub struct Web {
    pub address: SocketAddr,
    seen: watch::Receiver<usize>,
    headers: Arc<Mutex<Vec<HeaderMap>>>,
    release: watch::Sender<bool>,
    _server: JoinSet<()>,
}

#[derive(Clone)]
struct Shared {
    seen: watch::Sender<usize>,
    headers: Arc<Mutex<Vec<HeaderMap>>>,
    released: watch::Receiver<bool>,
}

impl Web {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let ((count, seen), (release, released)) = (watch::channel(0), watch::channel(false));
        let headers: Arc<Mutex<Vec<HeaderMap>>> = Arc::default();
        let shared = Shared { seen: count, headers: Arc::clone(&headers), released };
        let app = Router::new().fallback(any(answer)).with_state(shared);
        let mut server = JoinSet::new();
        server.spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { address, seen, headers, release, _server: server }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Waits until so many requests have arrived, and returns their headers.
    pub async fn headers(&self, count: usize) -> Vec<HeaderMap> {
        let mut seen = self.seen.clone();
        timeout(PATIENCE, seen.wait_for(|seen| *seen >= count)).await.expect("no such request").unwrap();
        self.headers.lock().clone()
    }

    pub fn release(&self) {
        self.release.send_replace(true);
    }
}

async fn answer(State(mut shared): State<Shared>, request: Request) -> (StatusCode, &'static str) {
    shared.headers.lock().push(request.headers().clone());
    shared.seen.send_modify(|seen| *seen += 1);
    match request.uri().path() {
        "/wait" => {
            shared.released.wait_for(|released| *released).await.ok();
            (StatusCode::OK, "at last")
        }
        "/gone" => (StatusCode::GONE, "gone"),
        _ => (StatusCode::OK, "hello"),
    }
}
