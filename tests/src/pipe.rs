//! wharf on a pipe, as an MCP client starts it.
//!
//! Each line is validated when it is read: UTF-8, one JSON object, and the schema of its revision.

use std::{
    collections::{HashMap, VecDeque},
    process::{ExitStatus, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::{Child, ChildStdin},
    sync::mpsc,
    time::timeout,
};

use crate::{Folder, MODERN, PATIENCE, Transcript, VERSION_KEY, cpu_time, log::Log, modern_params, schema};

/// Answers requests of the server: returns the result, or `None` to leave the request to the test.
pub type Handler = Box<dyn FnMut(&str, &Value) -> Option<Value> + Send>;

pub struct Pipe {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: mpsc::UnboundedReceiver<Vec<u8>>,
    /// Reads stdout, and owns it.
    reader: tokio::task::JoinHandle<()>,
    /// The beginning of an incomplete line.
    unfinished: Vec<u8>,
    log: Log,
    /// Method and revision of the requests that have no answer yet, by the text of their id.
    asked: HashMap<String, VecDeque<(String, String)>>,
    inbox: VecDeque<Value>,
    handler: Option<Handler>,
    /// Requests of the server that the handler has answered, in order.
    pub handled: Vec<Value>,
    revision: Option<String>,
    next_id: u64,
    transcript: Transcript,
}

/// The exit of a wharf.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    /// Output that no test had read.
    pub rest: Vec<Value>,
    pub took: Duration,
    pub log: String,
    /// Printed if the test fails later.
    _transcript: Transcript,
}

impl Pipe {
    /// Starts `wharf` with these arguments, such as `["run", "plugins/hello.wasm"]`, in the folder.
    pub fn start(folder: &Folder, arguments: &[&str]) -> Self {
        Self::start_with(folder, arguments, &[])
    }

    pub fn start_with(folder: &Folder, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        Self::of(folder.command(arguments, environment))
    }

    /// The same with limits, such as `ulimit -n 1024`.
    pub fn start_limited(folder: &Folder, limits: &str, arguments: &[&str]) -> Self {
        Self::of(folder.limited(limits, arguments, &[]))
    }

    /// The same with a command of the test.
    pub fn of_command(command: tokio::process::Command) -> Self {
        Self::of(command)
    }

    fn of(mut command: tokio::process::Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take();
        let transcript = Transcript::default();
        let log = Log::of(child.stderr.take().unwrap(), transcript.recorder());
        let received = transcript.recorder();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::unbounded_channel();
        let reader = tokio::spawn(async move {
            loop {
                let mut line = Vec::new();
                let read = stdout.read_until(b'\n', &mut line).await;
                received.received(&line);
                match read {
                    Ok(1..) if sender.send(line).is_ok() => {}
                    _ => return,
                }
            }
        });
        Self {
            child,
            stdin,
            lines,
            reader,
            unfinished: Vec::new(),
            log,
            asked: HashMap::new(),
            inbox: VecDeque::new(),
            handler: None,
            handled: Vec::new(),
            revision: None,
            next_id: 1,
            transcript,
        }
    }

    /// Answers the server's requests from now on, while the test waits for something else.
    pub fn answer_with(&mut self, handler: impl FnMut(&str, &Value) -> Option<Value> + Send + 'static) {
        self.handler = Some(Box::new(handler));
    }

    pub fn pid(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    /// Returns everything logged to stderr so far.
    pub fn log(&self) -> String {
        self.log.text()
    }

    /// Waits for a line on stderr that contains `text`, and returns it.
    pub async fn wait_for_log(&self, text: &str) -> String {
        self.log.wait_for(text).await
    }

    /// Waits until `nth` lines on stderr contain `text`, and returns the last of them.
    pub async fn wait_for_nth_log(&self, text: &str, nth: usize) -> String {
        self.log.wait_for_nth(text, nth).await
    }

    /// Writes raw bytes. Lines that are requests are remembered, so that their answers can be validated.
    pub async fn send_raw(&mut self, bytes: &[u8]) {
        self.unfinished.extend_from_slice(bytes);
        while let Some(end) = self.unfinished.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.unfinished.drain(..=end).collect();
            if let Ok(message) = serde_json::from_slice(&line) {
                self.remember(&message);
            }
        }
        self.transcript.recorder().sent(bytes);
        let stdin = self.stdin.as_mut().expect("stdin is open");
        timeout(PATIENCE, stdin.write_all(bytes)).await.expect("wharf does not read").unwrap();
        stdin.flush().await.unwrap();
    }

    /// Writes one message as a line.
    pub async fn send(&mut self, message: Value) {
        let mut line = message.to_string().into_bytes();
        line.push(b'\n');
        self.send_raw(&line).await;
    }

    fn remember(&mut self, message: &Value) {
        if let Some(batch) = message.as_array() {
            return batch.iter().for_each(|message| self.remember(message));
        }
        let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) else { return };
        let claims = message["params"]["_meta"].get(VERSION_KEY).is_some();
        let revision = if claims { MODERN } else { self.revision.as_deref().unwrap_or("2025-11-25") };
        let asked = (method.to_owned(), revision.to_owned());
        self.asked.entry(id.to_string()).or_default().push_back(asked);
    }

    /// Sends a request with a new id, and returns the id.
    pub async fn begin(&mut self, method: &str, params: Value) -> Value {
        let id = json!(self.next_id);
        self.next_id += 1;
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        id
    }

    pub async fn begin_modern(&mut self, method: &str, params: Value, capabilities: Value) -> Value {
        self.begin(method, modern_params(params, capabilities)).await
    }

    pub async fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    pub async fn cancel(&mut self, id: &Value) {
        self.notify("notifications/cancelled", json!({ "requestId": id })).await;
    }

    /// Returns the next message that no handler answers; `None` on a timeout, or when stdout is closed.
    async fn read(&mut self, within: Duration) -> Option<Value> {
        let until = Instant::now() + within;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let line = timeout(left, self.lines.recv()).await.ok()??;
            let message = self.checked(&line);
            let is_request = message.get("method").is_some() && message.get("id").is_some();
            if !is_request {
                return Some(message);
            }
            let method = message["method"].as_str().unwrap_or_default().to_owned();
            let Some(result) = self.handler.as_mut().and_then(|handler| handler(&method, &message["params"])) else {
                return Some(message);
            };
            self.respond(&message, result).await;
            self.handled.push(message);
        }
    }

    /// Parses a line and validates it.
    fn checked(&mut self, line: &[u8]) -> Value {
        let text = std::str::from_utf8(line).unwrap_or_else(|_| panic!("not UTF-8 on stdout: {line:?}"));
        let text = text.strip_suffix('\n').unwrap_or_else(|| panic!("no end of line on stdout: {text}"));
        assert!(!text.contains('\r'), "a carriage return on stdout: {text}");
        let message: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} on stdout: {text}"));
        assert!(message.is_object(), "not a message on stdout: {text}");
        match (message.get("method").is_some(), message.get("id")) {
            (true, Some(_)) => schema::check_request(self.revision.as_deref().unwrap_or(MODERN), &message),
            (true, None) => self.check_notification(&message),
            (false, id) => self.check_response(id.map(Value::to_string), &message),
        }
        message
    }

    fn check_notification(&self, notification: &Value) {
        let pending_modern = self.asked.values().flatten().any(|(_, revision)| revision == MODERN);
        match self.revision.as_deref() {
            Some(revision) if !schema::is_tagged(notification) => {
                let cancelled = notification["method"] == "notifications/cancelled";
                // On a pipe with both eras, notifications about a modern request do not name their era.
                let modern = schema::problem(MODERN, "ServerNotification", notification).is_none();
                if !(modern && (pending_modern || cancelled)) {
                    schema::check_notification(revision, notification);
                }
            }
            _ => schema::check_notification(MODERN, notification),
        }
    }

    fn check_response(&mut self, id: Option<String>, response: &Value) {
        let known = self.revision.clone().unwrap_or_else(|| "2025-11-25".into());
        let Some(waiting) = id.as_ref().and_then(|id| self.asked.get_mut(id)) else {
            return schema::check_response(&known, None, response);
        };
        // Requests with the same id are distinguished by the schema that the answer matches.
        let fits = |(method, revision): &(String, String)| {
            let negotiated = response["result"]["protocolVersion"].as_str().filter(|_| method == "initialize");
            schema::response_problem(negotiated.unwrap_or(revision), Some(method), response)
        };
        let Some(at) = waiting.iter().position(|asked| fits(asked).is_none()) else {
            panic!("{}", waiting.iter().filter_map(fits).collect::<Vec<_>>().join("\n"));
        };
        // An error matches any of them, so it is only unambiguous if there is a single one.
        if response.get("result").is_some() || waiting.len() == 1 {
            let (method, _) = waiting.remove(at).unwrap();
            if method == "initialize"
                && let Some(negotiated) = response["result"]["protocolVersion"].as_str()
            {
                self.revision = Some(negotiated.to_owned());
            }
        }
        if waiting.is_empty() {
            self.asked.remove(&id.unwrap());
        }
    }

    /// Returns the first message, in the inbox or later, that meets a condition. Other messages stay in the inbox. On a machine that is busy
    /// with other work, this waits for as long as wharf is at work itself.
    pub async fn find(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let began = cpu_time(self.pid());
        let mut before = began;
        loop {
            if let Some(message) = self.find_within(PATIENCE, &wanted).await {
                return message;
            }
            let now = cpu_time(self.pid());
            let is_at_work = now.saturating_sub(before) > PATIENCE / 10 && now.saturating_sub(began) < 4 * PATIENCE;
            assert!(is_at_work, "{what} does not come; there is {:?}", self.inbox);
            before = now;
        }
    }

    /// The same with its own timeout; `None` if there is no such message in time.
    pub async fn find_within(&mut self, within: Duration, wanted: impl Fn(&Value) -> bool) -> Option<Value> {
        if let Some(at) = self.inbox.iter().position(&wanted) {
            return self.inbox.remove(at);
        }
        let until = Instant::now() + within;
        loop {
            let message = self.read(until.saturating_duration_since(Instant::now())).await?;
            if wanted(&message) {
                return Some(message);
            }
            self.inbox.push_back(message);
        }
    }

    /// Returns the next message of any kind.
    pub async fn recv(&mut self) -> Value {
        self.find("a message", |_| true).await
    }

    /// Returns the whole response to a request.
    pub async fn response(&mut self, id: &Value) -> Value {
        self.find(&format!("the response to {id}"), |message| {
            message.get("method").is_none() && message.get("id") == Some(id)
        })
        .await
    }

    /// Returns the result of a request, or its error object.
    pub async fn answer(&mut self, id: &Value) -> Result<Value, Value> {
        outcome(self.response(id).await)
    }

    /// Sends a legacy request, or one without `_meta`, and waits for its result, or its error object.
    pub async fn request(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.begin(method, params).await;
        self.answer(&id).await
    }

    /// Sends a modern request and waits for its result, or its error object.
    pub async fn modern(&mut self, method: &str, params: Value, capabilities: Value) -> Result<Value, Value> {
        let id = self.begin_modern(method, params, capabilities).await;
        self.answer(&id).await
    }

    /// The legacy handshake; returns the result of `initialize`.
    pub async fn legacy(&mut self, revision: &str, capabilities: Value) -> Value {
        let result = self
            .request(
                "initialize",
                json!({
                    "protocolVersion": revision,
                    "capabilities": capabilities,
                    "clientInfo": { "name": "e2e", "version": "1" },
                }),
            )
            .await
            .unwrap();
        self.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        result
    }

    /// Calls a tool in the legacy era. Returns its result.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({ "name": tool, "arguments": arguments })).await.unwrap()
    }

    /// Returns the next error without a request id.
    pub async fn refusal(&mut self) -> Value {
        self.find("a refusal", |message| message.get("id").is_none() && message.get("error").is_some()).await
    }

    /// Returns the next notification with this method.
    pub async fn notification(&mut self, method: &str) -> Value {
        self.find(method, |message| message.get("id").is_none() && message["method"] == method).await
    }

    /// Returns the next request of the server with this method, if no handler answers it.
    pub async fn server_request(&mut self, method: &str) -> Value {
        self.find(method, |message| message.get("id").is_some() && message["method"] == method).await
    }

    /// Answers a request of the server.
    pub async fn respond(&mut self, request: &Value, result: Value) {
        self.send(json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })).await;
    }

    /// Returns the messages that were read and not asked for.
    pub fn inbox(&self) -> &VecDeque<Value> {
        &self.inbox
    }

    /// Waits until wharf exits by itself.
    pub async fn wait(mut self) -> Ended {
        let started = Instant::now();
        let mut rest: Vec<Value> = self.inbox.drain(..).collect();
        while let Ok(Some(line)) = timeout(PATIENCE, self.lines.recv()).await {
            let message = self.checked(&line);
            rest.push(message);
        }
        let status = timeout(PATIENCE, self.child.wait()).await.expect("wharf does not end").unwrap();
        let (took, log) = (started.elapsed(), self.log.whole().await);
        Ended { status, rest, took, log, _transcript: self.transcript }
    }

    /// Closes stdin and waits until wharf exits.
    pub async fn close(mut self) -> Ended {
        if let Ok(message) = serde_json::from_slice(&std::mem::take(&mut self.unfinished)) {
            self.remember(&message);
        }
        drop(self.stdin.take());
        self.wait().await
    }

    /// Closes stdin and stdout, as the end of a client does, and waits until wharf exits.
    pub async fn leave(mut self) -> ExitStatus {
        self.reader.abort();
        drop(self.stdin.take());
        timeout(PATIENCE, self.child.wait()).await.expect("wharf does not end").unwrap()
    }

    /// Sends SIGTERM and waits until wharf exits.
    pub async fn terminate(self) -> Ended {
        signal(self.pid(), rustix::process::Signal::TERM);
        self.wait().await
    }
}

/// Sends a signal to a child of the test.
pub fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// Returns the result or the error object of a response.
pub fn outcome(mut response: Value) -> Result<Value, Value> {
    match response.get("error") {
        Some(_) => Err(response["error"].take()),
        None => Ok(response["result"].take()),
    }
}
