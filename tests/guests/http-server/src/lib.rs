//! An MCP server over HTTP without any SDK, for tests of wharf as its client. The path of a request says how the server speaks: `/mcp` is a
//! server of MCP 2026-07-28, `/legacy` one that has to be greeted and answers in event streams, `/plain` one that has to be greeted and
//! answers with JSON, and each other path is one mistake, made in answer to every request.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a guest for tests ends as it likes; no test does"
)]

mod mcp;
mod mistakes;
mod outgoing;

use serde_json::{Value, json};
use wasip2::{
    exports::http::incoming_handler::Guest,
    http::types::{Fields, IncomingBody, IncomingRequest, OutgoingBody, OutgoingResponse, ResponseOutparam},
    io::streams::{OutputStream, StreamError},
};

/// A request, read to its end.
struct Request {
    path: String,
    headers: Vec<(String, String)>,
    message: Value,
}

impl Request {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(one, _)| one == name).map(|(_, value)| value.as_str())
    }
}

/// A response that has begun.
struct Response {
    body: OutgoingBody,
    stream: OutputStream,
}

impl Response {
    fn begin(out: ResponseOutparam, status: u16, headers: &[(&str, &str)]) -> Self {
        let fields = Fields::new();
        for (name, value) in headers {
            fields.append(name, value.as_bytes()).expect("a header");
        }
        let response = OutgoingResponse::new(fields);
        response.set_status_code(status).expect("a status");
        let body = response.body().expect("a body");
        ResponseOutparam::set(out, Ok(response));
        let stream = body.write().expect("a stream");
        Self { body, stream }
    }

    /// Writes, and returns whether anybody reads.
    fn write(&self, bytes: &[u8]) -> bool {
        bytes.chunks(4096).all(|piece| !matches!(self.stream.blocking_write_and_flush(piece), Err(StreamError::Closed)))
    }

    fn event(&self, message: &Value) -> bool {
        self.write(format!("event: message\ndata: {message}\n\n").as_bytes())
    }

    fn end(self) {
        drop(self.stream);
        OutgoingBody::finish(self.body, None).expect("an end");
    }
}

fn send(out: ResponseOutparam, status: u16, headers: &[(&str, &str)], body: &[u8]) {
    let response = Response::begin(out, status, headers);
    response.write(body);
    response.end();
}

fn send_json(out: ResponseOutparam, status: u16, message: &Value) {
    send(out, status, &[("content-type", "application/json")], message.to_string().as_bytes());
}

struct Server;

impl Guest for Server {
    fn handle(request: IncomingRequest, out: ResponseOutparam) {
        let path = request.path_with_query().unwrap_or_default();
        let entries = request.headers().entries();
        let headers = entries.into_iter().map(|(name, value)| (name, String::from_utf8_lossy(&value).into_owned()));
        let headers = headers.collect();
        let body = request.consume().expect("a body");
        let stream = body.stream().expect("a stream");
        let mut bytes = Vec::new();
        while let Ok(piece) = stream.blocking_read(64 << 10) {
            bytes.extend(piece);
        }
        drop(stream);
        drop(IncomingBody::finish(body));
        let message = serde_json::from_slice(&bytes).unwrap_or(json!(null));
        let request = Request { path, headers, message };
        match request.path.as_str() {
            "/mcp" | "/legacy" | "/plain" => mcp::answer(&request, out),
            _ => mistakes::answer(&request, out),
        }
    }
}

wasip2::http::proxy::export!(Server);
