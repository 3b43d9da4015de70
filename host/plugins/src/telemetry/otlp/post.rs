//! Sends OTLP messages to the collector. There are few of them, so each request uses a new connection. Times and sizes are limited.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

use wharf_config::config::Target;
use wharf_egress::tls::Tls;

/// The time limit for sending a message, including the connection and the response.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum number of bytes that are read of a response.
const MAX_RESPONSE_BYTES: usize = 64 << 10;

/// Why the collector did not accept a message.
pub enum SendError {
    /// A temporary failure: the message may be accepted later.
    Temporary(anyhow::Error),
    /// The collector rejects the message.
    Permanent(StatusCode),
}

/// Sends messages to one collector.
pub struct Post {
    pub target: Target,
    pub headers: HeaderMap,
    pub tls: Arc<Tls>,
}

impl Post {
    /// Sends a message to `path` below the collector's base URL.
    pub async fn send(&self, path: &str, message: Vec<u8>) -> Result<(), SendError> {
        let sent = tokio::time::timeout(SEND_TIMEOUT, self.exchange(path, message)).await;
        let status = sent
            .unwrap_or_else(|_| bail!("there is no response within {} s", SEND_TIMEOUT.as_secs()))
            .map_err(SendError::Temporary)?;
        match status.as_u16() {
            200..300 => Ok(()),
            429 | 502 | 503 | 504 => Err(SendError::Temporary(anyhow::anyhow!("the response is {status}"))),
            _ => Err(SendError::Permanent(status)),
        }
    }

    async fn exchange(&self, path: &str, message: Vec<u8>) -> Result<StatusCode> {
        let Target { encrypted, host, port, .. } = &self.target;
        let stream = TcpStream::connect((host.as_str(), *port)).await.context("cannot connect")?;
        if *encrypted {
            let name = ServerName::try_from(host.clone()).context("its host is not valid for TLS")?;
            let stream = TlsConnector::from(self.tls.config().await?).connect(name, stream).await?;
            self.over(stream, path, message).await
        } else {
            self.over(stream, path, message).await
        }
    }

    async fn over(
        &self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin,
        path: &str,
        message: Vec<u8>,
    ) -> Result<StatusCode> {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let Target { host, port, path: base, .. } = &self.target;
        let host = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        let mut request =
            Request::post(format!("{base}{path}").parse::<Uri>()?).body(Full::new(Bytes::from(message)))?;
        let headers = request.headers_mut();
        *headers = self.headers.clone();
        headers.insert(header::HOST, HeaderValue::from_str(&host)?);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        headers.insert(header::USER_AGENT, HeaderValue::from_static(concat!("wharf/", env!("CARGO_PKG_VERSION"))));
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        let answer = async {
            let response = sender.send_request(request).await?;
            let status = response.status();
            // The body is not used, but is read so that the collector can finish its response.
            Limited::new(response.into_body(), MAX_RESPONSE_BYTES).collect().await.ok();
            anyhow::Ok(status)
        };
        // The connection is closed when the response has been read, or when this future is dropped.
        let (answer, _) = tokio::join!(answer, connection);
        answer
    }
}
