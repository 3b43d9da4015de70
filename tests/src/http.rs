//! wharf on a socket, and an HTTP/1.1 client that can also send invalid requests.
//!
//! Each request has its own connection; its answer is an `Exchange`.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    path::PathBuf,
    process::ExitStatus,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::{
    net::{TcpStream, UnixStream},
    process::{Child, Command},
    time::timeout,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{ClientConfig, pki_types::ServerName},
};

use crate::{Exchange, Folder, MODERN, PATIENCE, Transcript, exchange::Stream, log::Log, modern_params, pipe, schema};

/// The transport of a server.
#[derive(Clone)]
pub enum Over {
    Tcp,
    Tls(Arc<ClientConfig>),
    Unix(PathBuf),
    /// Several servers behind one address: each connection goes to the next of them.
    Turns(Arc<Turns>),
}

/// The addresses of several servers, of which each gets its turn.
pub struct Turns {
    addresses: Vec<SocketAddr>,
    next: AtomicUsize,
}

impl Turns {
    pub fn of(addresses: impl IntoIterator<Item = SocketAddr>) -> Over {
        Over::Turns(Arc::new(Self { addresses: addresses.into_iter().collect(), next: AtomicUsize::new(0) }))
    }
}

/// `wharf serve` on a port that it chooses itself.
pub struct Server {
    child: Child,
    log: Log,
    /// Not used if the server listens at a Unix socket.
    pub address: SocketAddr,
    pub over: Over,
    pub(crate) transcript: Transcript,
}

impl Server {
    /// Starts `wharf serve --listen 127.0.0.1:0` with more arguments.
    pub async fn start(folder: &Folder, arguments: &[&str]) -> Self {
        Self::start_with(folder, arguments, &[]).await
    }

    /// The same, once everything is loaded: lists wait until then.
    pub async fn loaded(folder: &Folder) -> Self {
        let server = Self::start(folder, &[]).await;
        server.modern("tools/list", json!({}), json!({})).await.unwrap();
        server
    }

    pub async fn start_with(folder: &Folder, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let arguments: Vec<&str> = ["serve", "--listen", "127.0.0.1:0"].iter().chain(arguments).copied().collect();
        Self::of(folder.command(&arguments, environment), Over::Tcp).await
    }

    /// Starts a command that prints its address like `wharf serve`, and waits until it does.
    pub async fn of(mut command: Command, over: Over) -> Self {
        let mut child = command.spawn().unwrap();
        let transcript = Transcript::default();
        let log = Log::of(child.stderr.take().unwrap(), transcript.recorder());
        let line = log.wait_for("serving MCP at ").await;
        let address = line.split_once("://").and_then(|(_, rest)| rest.split('/').next()?.parse().ok());
        let address = address.unwrap_or_else(|| SocketAddr::from(([0, 0, 0, 0], 0)));
        Self { child, log, address, over, transcript }
    }

    pub fn pid(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    pub fn log(&self) -> String {
        self.log.text()
    }

    pub async fn wait_for_log(&self, text: &str) -> String {
        self.log.wait_for(text).await
    }

    /// Waits until the log contains this text so many times.
    pub async fn wait_for_nth_log(&self, text: &str, nth: usize) -> String {
        self.log.wait_for_nth(text, nth).await
    }

    /// Opens a new connection.
    pub async fn open(&self) -> std::io::Result<Box<dyn Stream>> {
        let opened = async {
            Ok::<Box<dyn Stream>, std::io::Error>(match &self.over {
                Over::Tcp => Box::new(TcpStream::connect(self.address).await?),
                Over::Tls(config) => {
                    let name = ServerName::try_from("localhost").unwrap();
                    let stream = TcpStream::connect(self.address).await?;
                    Box::new(TlsConnector::from(Arc::clone(config)).connect(name, stream).await?)
                }
                Over::Unix(path) => Box::new(UnixStream::connect(path).await?),
                Over::Turns(turns) => {
                    let turn = turns.next.fetch_add(1, Ordering::Relaxed) % turns.addresses.len();
                    Box::new(TcpStream::connect(turns.addresses[turn]).await?)
                }
            })
        };
        timeout(PATIENCE, opened).await.expect("no connection")
    }

    /// Sends raw bytes on a new connection.
    pub async fn connect(&self, bytes: &[u8]) -> Exchange {
        let stream = self.open().await.unwrap();
        let recorder = self.transcript.connection();
        recorder.sent(bytes);
        let mut exchange = Exchange::of(stream, recorder);
        exchange.send(bytes).await;
        exchange
    }

    /// Sends a request with exactly these headers, adding `Host` and the length of the body if they are missing.
    pub async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Exchange {
        let has = |name: &str| headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        if !has("host") {
            let named = matches!(self.over, Over::Tcp | Over::Tls(_));
            let host = if named { self.address.to_string() } else { "localhost".into() };
            head.push_str(&format!("Host: {host}\r\n"));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !has("content-length") && (!body.is_empty() || method == "POST") {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        head.push_str("Connection: close\r\n\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(body);
        let mut exchange = self.connect(&bytes).await;
        exchange.read_head().await;
        exchange
    }

    /// POSTs to `/mcp` with the content headers that every client sends, and these.
    pub async fn post(&self, headers: &[(&str, &str)], body: &Value) -> Exchange {
        self.post_to("/mcp", headers, body).await
    }

    /// The same at another path.
    pub async fn post_to(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> Exchange {
        let claims = body["params"]["_meta"].get(crate::VERSION_KEY).is_some();
        let mut all = vec![("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
        all.retain(|(name, _)| headers.iter().all(|(given, _)| !given.eq_ignore_ascii_case(name)));
        all.extend(headers);
        let mut exchange = self.send("POST", path, &all, body.to_string().as_bytes()).await;
        let revision = if claims { MODERN } else { "2025-11-25" };
        exchange.asked = Some((body["method"].as_str().unwrap_or_default().to_owned(), revision.to_owned()));
        exchange
    }

    /// POSTs a message that is answered at once in JSON. Returns the status, the error code (0: a result), and the answer, which echoes the
    /// id.
    pub async fn probe(&self, headers: &[(&str, &str)], body: &Value) -> (u16, i64, Value) {
        let mut exchange = self.post(headers, body).await;
        let answer = exchange.json().await;
        assert_eq!(answer["id"], body["id"], "{headers:?} {body}: {answer}");
        (exchange.status(), answer["error"]["code"].as_i64().unwrap_or(0), answer)
    }

    /// Sends a modern request with the headers that it requires.
    pub async fn open_modern(&self, id: Value, method: &str, params: Value, capabilities: Value) -> Exchange {
        let body =
            json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": modern_params(params, capabilities) });
        let headers = modern_headers(&body);
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.post(&headers, &body).await
    }

    /// Sends a modern request. Returns its result, or its error object.
    pub async fn modern(&self, method: &str, params: Value, capabilities: Value) -> Result<Value, Value> {
        let mut exchange = self.open_modern(json!(1), method, params, capabilities).await;
        pipe::outcome(exchange.response(&json!(1)).await)
    }

    /// The legacy handshake.
    pub async fn legacy(&self, revision: &str, capabilities: Value) -> Session<'_> {
        self.legacy_at("/mcp", revision, capabilities).await
    }

    /// The same at another path.
    pub async fn legacy_at(&self, path: &'static str, revision: &str, capabilities: Value) -> Session<'_> {
        let body = json!({
            "jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": {
                "protocolVersion": revision,
                "capabilities": capabilities,
                "clientInfo": { "name": "e2e", "version": "1" },
            },
        });
        let mut exchange = self.post_to(path, &[], &body).await;
        assert_eq!(exchange.status(), 200, "{body}");
        let id = exchange.header("mcp-session-id").expect("a session id").to_owned();
        let initialized = pipe::outcome(exchange.response(&json!(0)).await).unwrap();
        let revision = initialized["protocolVersion"].as_str().unwrap().to_owned();
        schema::check(&revision, "InitializeResult", &initialized);
        let session = Session {
            server: self,
            path,
            id,
            revision,
            initialized,
            next_id: 1,
            handler: None,
            notifications: VecDeque::new(),
        };
        let body = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(session.post(&body).await.status(), 202);
        session
    }

    /// Goes on with a session that another server opened.
    pub fn attach(&self, detached: Detached) -> Session<'_> {
        let Detached { path, id, revision, initialized, next_id, handler, notifications } = detached;
        Session { server: self, path, id, revision, initialized, next_id, handler, notifications }
    }

    /// Sends a signal.
    pub fn signal(&self, signal: rustix::process::Signal) {
        pipe::signal(self.pid(), signal);
    }

    /// Sends SIGTERM and waits until wharf exits.
    pub async fn terminate(self) -> (ExitStatus, Duration, String) {
        pipe::signal(self.pid(), rustix::process::Signal::TERM);
        self.terminated().await
    }

    /// Waits until wharf exits. Returns its exit status, the time it took, and its log.
    pub async fn terminated(mut self) -> (ExitStatus, Duration, String) {
        let started = Instant::now();
        let status = timeout(PATIENCE, self.child.wait()).await.expect("wharf does not end").unwrap();
        (status, started.elapsed(), self.log.whole().await)
    }
}

/// The headers that mirror a modern request's body.
pub fn modern_headers(body: &Value) -> Vec<(&'static str, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut headers = vec![
        ("MCP-Protocol-Version", text(&body["params"]["_meta"][crate::VERSION_KEY])),
        ("Mcp-Method", text(&body["method"])),
    ];
    match body["method"].as_str() {
        Some("tools/call" | "prompts/get") => headers.push(("Mcp-Name", text(&body["params"]["name"]))),
        Some("resources/read") => headers.push(("Mcp-Name", text(&body["params"]["uri"]))),
        Some("tasks/get" | "tasks/update" | "tasks/cancel") => {
            headers.push(("Mcp-Name", text(&body["params"]["taskId"])));
        }
        _ => {}
    }
    headers
}

/// A legacy session over HTTP, without its server.
pub struct Detached {
    path: &'static str,
    id: String,
    revision: String,
    initialized: Value,
    next_id: u64,
    handler: Option<pipe::Handler>,
    notifications: VecDeque<Value>,
}

/// A legacy session over HTTP.
pub struct Session<'a> {
    server: &'a Server,
    path: &'static str,
    pub id: String,
    pub revision: String,
    /// The result of `initialize`.
    pub initialized: Value,
    next_id: u64,
    handler: Option<pipe::Handler>,
    /// Messages that arrived on the streams of requests before their answers.
    pub notifications: VecDeque<Value>,
}

impl Session<'_> {
    /// What the client keeps of the session, for another server, such as the next one after a restart.
    pub fn detach(self) -> Detached {
        let Self { server: _, path, id, revision, initialized, next_id, handler, notifications } = self;
        Detached { path, id, revision, initialized, next_id, handler, notifications }
    }

    /// Answers the server's requests from now on, while the test waits for its own answers.
    pub fn answer_with(&mut self, handler: impl FnMut(&str, &Value) -> Option<Value> + Send + 'static) {
        self.handler = Some(Box::new(handler));
    }

    /// POSTs one message in this session.
    pub async fn post(&self, body: &Value) -> Exchange {
        let version = [("MCP-Protocol-Version", self.revision.as_str()), ("Mcp-Session-Id", self.id.as_str())];
        // The first two revisions do not have this header.
        let headers = if self.revision.as_str() < "2025-06-18" { &version[1..] } else { &version[..] };
        let mut exchange = self.server.post_to(self.path, headers, body).await;
        if let Some((_, revision)) = &mut exchange.asked {
            *revision = self.revision.clone();
        }
        exchange
    }

    /// Sends a request. Returns its id, and the exchange that will contain its answer.
    pub async fn begin(&mut self, method: &str, params: Value) -> (Value, Exchange) {
        let id = json!(self.next_id);
        self.next_id += 1;
        let exchange = self.post(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        (id, exchange)
    }

    /// Sends a request. Returns its result, or its error object.
    pub async fn request(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let (id, mut exchange) = self.begin(method, params).await;
        loop {
            let message = exchange.message().await.unwrap_or_else(|| panic!("no answer to {method}"));
            if message.get("method").is_none() {
                assert_eq!(message["id"], id, "{message}");
                return pipe::outcome(message);
            }
            let asks = message["method"].as_str().unwrap_or_default().to_owned();
            let answer = self.handler.as_mut().and_then(|handler| handler(&asks, &message["params"]));
            match (message.get("id"), answer) {
                (Some(id), Some(result)) => {
                    let reply = self.post(&json!({ "jsonrpc": "2.0", "id": id, "result": result })).await;
                    assert_eq!(reply.status(), 202);
                }
                _ => self.notifications.push_back(message),
            }
        }
    }

    /// Calls a tool. Returns its result.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({ "name": tool, "arguments": arguments })).await.unwrap()
    }

    /// Opens the standing stream, for messages that belong to no request.
    pub async fn stream(&self) -> Exchange {
        let headers = [("Accept", "text/event-stream"), ("Mcp-Session-Id", self.id.as_str())];
        let mut exchange = self.server.send("GET", self.path, &headers, b"").await;
        exchange.asked = Some((String::new(), self.revision.clone()));
        exchange
    }

    /// Resumes a stream after one of its events; `method` is that of the request whose answer may arrive on it.
    pub async fn resume(&self, event_id: &str, method: &str) -> Exchange {
        let headers =
            [("Accept", "text/event-stream"), ("Mcp-Session-Id", self.id.as_str()), ("Last-Event-ID", event_id)];
        let mut exchange = self.server.send("GET", self.path, &headers, b"").await;
        exchange.asked = Some((method.to_owned(), self.revision.clone()));
        exchange
    }

    /// Ends the session.
    pub async fn delete(&self) -> Exchange {
        self.server.send("DELETE", self.path, &[("Mcp-Session-Id", self.id.as_str())], b"").await
    }
}
