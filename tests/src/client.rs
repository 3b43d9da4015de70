//! Clients at different addresses, which a server can tell apart. They do not have to wait for their answers.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
};

use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, net::TcpSocket, time::timeout};

use crate::{Exchange, MODERN, PATIENCE, Server, http::modern_headers, modern_params};

/// The newest revision with sessions.
const REVISION: &str = "2025-11-25";

/// A client at its own address.
#[derive(Clone, Copy)]
pub struct Client<'a> {
    server: &'a Server,
    address: Ipv4Addr,
}

impl<'a> Client<'a> {
    /// Returns the client at 127.0.0.`last`.
    pub fn at(server: &'a Server, last: u8) -> Self {
        Self { server, address: Ipv4Addr::new(127, 0, 0, last) }
    }

    /// Sends a request on a new connection, and does not wait for the answer.
    pub async fn send(&self, method: &str, headers: &[(&str, &str)], body: &str) -> Exchange {
        self.try_send(method, headers, body).await.expect("a connection")
    }

    /// The same, if the server may close the connection in between.
    pub async fn try_send(&self, method: &str, headers: &[(&str, &str)], body: &str) -> io::Result<Exchange> {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind(SocketAddr::new(IpAddr::V4(self.address), 0))?;
        let mut stream = timeout(PATIENCE, socket.connect(self.server.address)).await??;
        let mut head = format!("{method} /mcp HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.server.address);
        head.push_str("Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
        let recorder = self.server.transcript.connection();
        recorder.sent(head.as_bytes());
        stream.write_all(head.as_bytes()).await?;
        Ok(Exchange::of(Box::new(stream), recorder))
    }

    /// Sends a request of 2026-07-28, and does not wait for the answer.
    pub async fn begin(&self, method: &str, params: Value) -> Exchange {
        self.try_begin(method, params).await.expect("a connection")
    }

    /// The same, if the server may close the connection in between.
    pub async fn try_begin(&self, method: &str, params: Value) -> io::Result<Exchange> {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": modern_params(params, json!({})) });
        let headers = modern_headers(&body);
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let mut exchange = self.try_send("POST", &headers, &body.to_string()).await?;
        exchange.asked = Some((method.to_owned(), MODERN.to_owned()));
        Ok(exchange)
    }

    /// Begins a session. Returns its id, or the exchange in which it was refused.
    pub async fn initialize(&self) -> Result<String, Exchange> {
        let mut exchange = self.try_initialize().await.expect("a connection");
        assert!(exchange.read_head().await);
        let session = exchange.header("mcp-session-id").map(str::to_owned);
        session.ok_or(exchange)
    }

    /// Asks for a session, and does not wait for the answer.
    pub async fn try_initialize(&self) -> io::Result<Exchange> {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": REVISION,
            "capabilities": { "elicitation": {} }, "clientInfo": { "name": "n", "version": "1" } } });
        let mut exchange = self.try_send("POST", &[], &body.to_string()).await?;
        exchange.asked = Some(("initialize".into(), REVISION.into()));
        Ok(exchange)
    }

    /// Sends a request in a session, and does not wait for the answer.
    pub async fn in_session(&self, session: &str, id: u64, method: &str, params: Value) -> Exchange {
        self.try_in_session(session, id, method, params).await.expect("a connection")
    }

    /// The same, if the server may close the connection in between.
    pub async fn try_in_session(&self, session: &str, id: u64, method: &str, params: Value) -> io::Result<Exchange> {
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let mut exchange = self.try_send("POST", &[("Mcp-Session-Id", session)], &body.to_string()).await?;
        exchange.asked = Some((method.to_owned(), REVISION.into()));
        Ok(exchange)
    }
}
