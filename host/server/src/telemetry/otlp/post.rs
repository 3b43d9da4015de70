//! How messages leave: one request over a connection of its own, since there are few of them, and with a limit on everything.

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

use crate::{config::Target, egress::tls::Tls};

/// How long it may take until a message is taken.
const WITHIN: Duration = Duration::from_secs(5);
/// How much of an answer is read.
const MAX_ANSWER: usize = 64 << 10;

/// Why a message was not taken.
pub enum Untaken {
    /// It may be taken later.
    Now(anyhow::Error),
    /// The collector does not want it.
    Ever(StatusCode),
}

/// Sends messages to one collector.
pub struct Post {
    pub target: Target,
    pub headers: HeaderMap,
    pub tls: Arc<Tls>,
}

impl Post {
    /// Sends a message to where messages of its kind are taken.
    pub async fn send(&self, path: &str, message: Vec<u8>) -> Result<(), Untaken> {
        let sent = tokio::time::timeout(WITHIN, self.exchange(path, message)).await;
        let status =
            sent.unwrap_or_else(|_| bail!("there is no answer within {} s", WITHIN.as_secs())).map_err(Untaken::Now)?;
        match status.as_u16() {
            200..300 => Ok(()),
            429 | 502 | 503 | 504 => Err(Untaken::Now(anyhow::anyhow!("the answer is {status}"))),
            _ => Err(Untaken::Ever(status)),
        }
    }

    async fn exchange(&self, path: &str, message: Vec<u8>) -> Result<StatusCode> {
        let Target { encrypted, host, port, .. } = &self.target;
        let stream = TcpStream::connect((host.as_str(), *port)).await.context("there is no connection")?;
        if *encrypted {
            let name = ServerName::try_from(host.clone()).context("its host is no name for TLS")?;
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
            // What it says is of no use, but a collector may want to have said it.
            Limited::new(response.into_body(), MAX_ANSWER).collect().await.ok();
            anyhow::Ok(status)
        };
        // The connection ends when the answer is there, or with this function.
        let (answer, _) = tokio::join!(answer, connection);
        answer
    }
}
