//! wharf on a socket, and an HTTP/1.1 client that can also send what no client should.
//!
//! One connection per request. Every JSON body and every event is checked against the schema of its revision.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    process::ExitStatus,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    process::Child,
    time::timeout,
};

use crate::{Folder, MODERN, PATIENCE, log::Log, modern_params, pipe, schema};

/// `wharf serve` on a port of its own choosing.
pub struct Server {
    child: Child,
    log: Log,
    pub address: SocketAddr,
}

impl Server {
    /// Starts `wharf serve --listen 127.0.0.1:0` with more arguments.
    pub async fn start(folder: &Folder, arguments: &[&str]) -> Self {
        Self::start_with(folder, arguments, &[]).await
    }

    pub async fn start_with(folder: &Folder, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let arguments: Vec<&str> = ["serve", "--listen", "127.0.0.1:0"].iter().chain(arguments).copied().collect();
        let mut child = folder.command(&arguments, environment).spawn().unwrap();
        let log = Log::of(child.stderr.take().unwrap());
        let line = log.wait_for("serving MCP at http://").await;
        let (_, rest) = line.split_once("http://").unwrap();
        let address = rest.split('/').next().unwrap().parse().unwrap();
        Self { child, log, address }
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

    /// Sends bytes as they are on a new connection.
    pub async fn connect(&self, bytes: &[u8]) -> Exchange {
        let mut stream = timeout(PATIENCE, TcpStream::connect(self.address)).await.expect("no connection").unwrap();
        // A server that has said no already may have stopped reading.
        let _ = timeout(PATIENCE, stream.write_all(bytes)).await.expect("wharf does not read");
        Exchange {
            stream,
            buffer: Vec::new(),
            head: None,
            events: VecDeque::new(),
            partial: String::new(),
            asked: None,
            ended: false,
        }
    }

    /// Sends a request with exactly these headers, and `Host` and the length of the body if they are not among them.
    pub async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Exchange {
        let has = |name: &str| headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        if !has("host") {
            head.push_str(&format!("Host: {}\r\n", self.address));
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
        let claims = body["params"]["_meta"].get(crate::VERSION_KEY).is_some();
        let mut all = vec![("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
        all.retain(|(name, _)| headers.iter().all(|(given, _)| !given.eq_ignore_ascii_case(name)));
        all.extend(headers);
        let mut exchange = self.send("POST", "/mcp", &all, body.to_string().as_bytes()).await;
        let revision = if claims { MODERN } else { "2025-11-25" };
        exchange.asked = Some((body["method"].as_str().unwrap_or_default().to_owned(), revision.to_owned()));
        exchange
    }

    /// Sends a modern request with the headers that belong to it.
    pub async fn open_modern(&self, id: Value, method: &str, params: Value, capabilities: Value) -> Exchange {
        let body =
            json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": modern_params(params, capabilities) });
        let headers = modern_headers(&body);
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.post(&headers, &body).await
    }

    /// A modern request: its result, or its error object.
    pub async fn modern(&self, method: &str, params: Value, capabilities: Value) -> Result<Value, Value> {
        let mut exchange = self.open_modern(json!(1), method, params, capabilities).await;
        pipe::outcome(exchange.response(&json!(1)).await)
    }

    /// The legacy handshake.
    pub async fn legacy(&self, revision: &str, capabilities: Value) -> Session<'_> {
        let body = json!({
            "jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": {
                "protocolVersion": revision,
                "capabilities": capabilities,
                "clientInfo": { "name": "e2e", "version": "1" },
            },
        });
        let mut exchange = self.post(&[], &body).await;
        assert_eq!(exchange.status(), 200, "{body}");
        let id = exchange.header("mcp-session-id").expect("a session id").to_owned();
        let initialized = pipe::outcome(exchange.response(&json!(0)).await).unwrap();
        let revision = initialized["protocolVersion"].as_str().unwrap().to_owned();
        schema::check(&revision, "InitializeResult", &initialized);
        let session = Session {
            server: self,
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

    /// Sends SIGTERM and waits for the end.
    pub async fn terminate(mut self) -> (ExitStatus, Duration, String) {
        let started = Instant::now();
        pipe::signal(self.pid(), rustix::process::Signal::TERM);
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
        _ => {}
    }
    headers
}

/// A legacy session over HTTP.
pub struct Session<'a> {
    server: &'a Server,
    pub id: String,
    pub revision: String,
    /// The result of `initialize`.
    pub initialized: Value,
    next_id: u64,
    handler: Option<pipe::Handler>,
    /// What came on the streams of requests before their answers.
    pub notifications: VecDeque<Value>,
}

impl Session<'_> {
    /// Answers the server's requests from now on, while the test waits for an answer.
    pub fn answer_with(&mut self, handler: impl FnMut(&str, &Value) -> Option<Value> + Send + 'static) {
        self.handler = Some(Box::new(handler));
    }

    /// POSTs one message in this session.
    pub async fn post(&self, body: &Value) -> Exchange {
        let version = [("MCP-Protocol-Version", self.revision.as_str()), ("Mcp-Session-Id", self.id.as_str())];
        // The header is younger than the first two revisions.
        let headers = if self.revision.as_str() < "2025-06-18" { &version[1..] } else { &version[..] };
        let mut exchange = self.server.post(headers, body).await;
        if let Some((_, revision)) = &mut exchange.asked {
            *revision = self.revision.clone();
        }
        exchange
    }

    /// Sends a request and returns its id and the exchange that will hold its answer.
    pub async fn begin(&mut self, method: &str, params: Value) -> (Value, Exchange) {
        let id = json!(self.next_id);
        self.next_id += 1;
        let exchange = self.post(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        (id, exchange)
    }

    /// A request: its result, or its error object.
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

    /// A call of a tool; returns its result.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({ "name": tool, "arguments": arguments })).await.unwrap()
    }

    /// Opens the stream for messages that belong to no request.
    pub async fn stream(&self) -> Exchange {
        let headers = [("Accept", "text/event-stream"), ("Mcp-Session-Id", self.id.as_str())];
        let mut exchange = self.server.send("GET", "/mcp", &headers, b"").await;
        exchange.asked = Some((String::new(), self.revision.clone()));
        exchange
    }

    /// Ends the session.
    pub async fn delete(&self) -> Exchange {
        self.server.send("DELETE", "/mcp", &[("Mcp-Session-Id", self.id.as_str())], b"").await
    }
}

struct Head {
    status: u16,
    headers: Vec<(String, String)>,
    /// The length of the body, if it is given and not in chunks.
    length: Option<usize>,
    chunked: bool,
}

/// One request and the response to it, which may go on for long. Dropping it closes the connection.
pub struct Exchange {
    stream: TcpStream,
    /// Bytes that are not read yet: before the head is there, of it; then the body, still in chunks.
    buffer: Vec<u8>,
    head: Option<Head>,
    events: VecDeque<Value>,
    /// The beginning of an event whose end has not come yet.
    partial: String,
    asked: Option<(String, String)>,
    ended: bool,
}

impl Exchange {
    /// Reads more bytes. False at the end of the connection.
    async fn fill(&mut self) -> bool {
        let mut bytes = [0; 16 * 1024];
        let read = timeout(PATIENCE, self.stream.read(&mut bytes)).await.expect("no bytes in time");
        // A connection that was cut is over as well.
        let read = read.unwrap_or(0);
        self.buffer.extend_from_slice(&bytes[..read]);
        read > 0
    }

    /// Sends nothing more, and reads all there is until the connection ends.
    pub async fn drain(mut self) -> Vec<u8> {
        // The other side may have closed already.
        let _ = self.stream.shutdown().await;
        while self.fill().await {}
        self.buffer
    }

    /// Reads status and headers; false if the connection ends before.
    pub async fn read_head(&mut self) -> bool {
        let end = loop {
            if let Some(at) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break at;
            }
            if !self.fill().await {
                return false;
            }
        };
        let text = String::from_utf8(self.buffer.drain(..end + 4).collect()).expect("headers are text");
        let mut lines = text.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|code| code.parse().ok());
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let find = |name: &str| headers.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str());
        let length = find("content-length").map(|length| length.parse().unwrap());
        let chunked = find("transfer-encoding").is_some_and(|encoding| encoding.eq_ignore_ascii_case("chunked"));
        self.head = Some(Head { status: status.expect("a status"), headers, length, chunked });
        true
    }

    fn head(&self) -> &Head {
        self.head.as_ref().expect("wharf closed the connection without an answer")
    }

    pub fn status(&self) -> u16 {
        self.head().status
    }

    /// Whether there was an answer at all.
    pub fn answered(&self) -> bool {
        self.head.is_some()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head().headers.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    pub fn is_stream(&self) -> bool {
        self.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"))
    }

    /// Takes the next piece of the body; `None` at its end.
    async fn piece(&mut self) -> Option<Vec<u8>> {
        let (length, chunked) = (self.head().length, self.head().chunked);
        if chunked {
            let line_end = loop {
                if let Some(at) = self.buffer.windows(2).position(|window| window == b"\r\n") {
                    break at;
                }
                if !self.fill().await {
                    return None;
                }
            };
            let size = std::str::from_utf8(&self.buffer[..line_end]).unwrap();
            let size = usize::from_str_radix(size.split(';').next().unwrap().trim(), 16).unwrap();
            while self.buffer.len() < line_end + 2 + size + 2 {
                if !self.fill().await {
                    return None;
                }
            }
            let piece = self.buffer[line_end + 2..line_end + 2 + size].to_vec();
            self.buffer.drain(..line_end + 2 + size + 2);
            return (size > 0).then_some(piece);
        }
        if self.ended {
            return None;
        }
        self.ended = true;
        while length.is_none_or(|length| self.buffer.len() < length) {
            if !self.fill().await {
                break;
            }
        }
        Some(std::mem::take(&mut self.buffer))
    }

    /// The whole body.
    pub async fn text(&mut self) -> String {
        let mut body = Vec::new();
        while let Some(piece) = self.piece().await {
            body.extend(piece);
        }
        String::from_utf8(body).expect("the body is UTF-8")
    }

    fn check(&self, message: &Value) {
        let (method, revision) = self.asked.as_ref().map_or((None, "2025-11-25"), |(method, revision)| {
            ((!method.is_empty()).then_some(method.as_str()), revision.as_str())
        });
        match (message.get("method").is_some(), message.get("id").is_some()) {
            (true, true) => schema::check_request(revision, message),
            (true, false) => schema::check_notification(revision, message),
            // Which revision a handshake settles on is in its result.
            (false, _) if method == Some("initialize") => {
                let negotiated = message["result"]["protocolVersion"].as_str().unwrap_or(revision);
                schema::check_response(negotiated, method, message);
            }
            (false, _) => schema::check_response(revision, method, message),
        }
    }

    /// The JSON body, checked.
    pub async fn json(&mut self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"));
        let text = self.text().await;
        let message = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        self.check(&message);
        message
    }

    /// The next event of the stream, checked; `None` at its end.
    pub async fn event(&mut self) -> Option<Value> {
        assert!(self.is_stream(), "not a stream: {:?}", self.header("content-type"));
        while self.events.is_empty() {
            let piece = String::from_utf8(self.piece().await?).expect("events are UTF-8");
            self.partial.push_str(&piece);
            while let Some((block, rest)) = self.partial.split_once("\n\n") {
                let mut data = None;
                for line in block.lines() {
                    match line.split_once(':') {
                        Some(("", _)) => {}
                        Some(("event", name)) => assert_eq!(name.trim(), "message"),
                        Some(("data", text)) => data = Some(text.trim_start().to_owned()),
                        _ => panic!("an unexpected line in a stream: {line:?}"),
                    }
                }
                self.partial = rest.to_owned();
                if let Some(data) = data {
                    let message: Value = serde_json::from_str(&data).unwrap_or_else(|error| panic!("{error}: {data}"));
                    self.check(&message);
                    self.events.push_back(message);
                }
            }
        }
        self.events.pop_front()
    }

    /// The next message, be the answer JSON or a stream.
    pub async fn message(&mut self) -> Option<Value> {
        if self.is_stream() {
            self.event().await
        } else if self.ended {
            None
        } else {
            Some(self.json().await)
        }
    }

    /// The response to a request; what comes before it is dropped.
    pub async fn response(&mut self, id: &Value) -> Value {
        loop {
            let message = self.message().await.unwrap_or_else(|| panic!("no response to {id}"));
            if message.get("method").is_none() {
                assert_eq!(message.get("id"), Some(id), "{message}");
                return message;
            }
        }
    }
}
