//! HTTP/2 compared with HTTP/1.1, both over TLS and by one client library: sixteen requests in flight on one connection, against sixteen
//! connections with one each.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::{Request, Uri};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::Incoming,
    client::conn::{http1, http2},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{KeyPair, generate_simple_self_signed};
use tokio::net::TcpStream;
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{ClientConfig, RootCertStore, crypto::ring, pki_types::ServerName},
};

use crate::{
    Effort,
    load::Measured,
    report::Report,
    rows::{ECHO, Site, message},
    servers::{Built, Http, MODERN, call, modern_meta},
};

const HOST: &str = "localhost";
const IN_FLIGHT: usize = 16;

/// Sends a request and waits for its answer. Those of HTTP/2 share a connection.
enum Sender {
    One(http1::SendRequest<Full<Bytes>>),
    Two(http2::SendRequest<Full<Bytes>>),
}

impl Sender {
    async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<http::Response<Incoming>> {
        Ok(match self {
            Self::One(sender) => sender.send_request(request).await?,
            Self::Two(sender) => sender.send_request(request).await?,
        })
    }
}

async fn connect(address: &str, config: &Arc<ClientConfig>) -> Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(TlsConnector::from(Arc::clone(config)).connect(ServerName::try_from(HOST)?, stream).await?)
}

fn speaks(protocol: &[u8], roots: &RootCertStore) -> Result<Arc<ClientConfig>> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?;
    let mut config = config.with_root_certificates(roots.clone()).with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    Ok(Arc::new(config))
}

fn request(address: &str) -> Result<Request<Full<Bytes>>> {
    let port = address.rsplit_once(':').context("no port")?.1;
    let uri: Uri = format!("https://{HOST}:{port}/mcp").parse()?;
    let body = call(1, "echo", &message(32), Some(&modern_meta())).to_string();
    let request = Request::post(uri)
        .header("Host", format!("{HOST}:{port}"))
        .header("Content-Type", "application/json")
        .header("Accept", "application/json, text/event-stream")
        .header("MCP-Protocol-Version", MODERN)
        .header("Mcp-Method", "tools/call")
        .header("Mcp-Name", "echo");
    Ok(request.body(Full::new(body.into()))?)
}

async fn load(senders: &mut [Sender], address: &str, duration: Duration) -> Result<Measured> {
    let request = request(address)?;
    let start = Instant::now();
    let loops = senders.iter_mut().map(|sender| {
        let request = request.clone();
        async move {
            let mut calls = 0;
            while start.elapsed() < duration {
                let mut request = request.clone();
                match sender {
                    // Only the path is sent, and the host in its header.
                    Sender::One(_) => *request.uri_mut() = Uri::from_static("/mcp"),
                    Sender::Two(_) => drop(request.headers_mut().remove("Host")),
                }
                let answer = sender.send(request).await?;
                let status = answer.status();
                let body = answer.into_body().collect().await?.to_bytes();
                ensure!(
                    status.is_success() && body.len() > 32,
                    "not an answer: {status} {}",
                    String::from_utf8_lossy(&body)
                );
                calls += 1;
            }
            Ok(calls)
        }
    });
    let mut all = Measured::default();
    for calls in futures_util::future::join_all(loops).await {
        let calls: u64 = calls?;
        all.calls += calls;
    }
    all.seconds = start.elapsed().as_secs_f64();
    Ok(all)
}

pub async fn compare(built: &Built, effort: &Effort, report: &mut Report) -> Result<()> {
    let made = generate_simple_self_signed([HOST.to_owned()])?;
    let site = Site::new(built, &format!("[http.tls]\ncert = 'cert.pem'\nkey = 'key.pem'\n{ECHO}"))?;
    std::fs::write(site.folder.path().join("cert.pem"), made.cert.pem())?;
    let key = site.folder.path().join("key.pem");
    std::fs::write(&key, KeyPair::serialize_pem(&made.signing_key))?;
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone())?;
    let server = Http::wharf(built, &site.config()).await?;

    let mut one = Vec::new();
    for _ in 0..IN_FLIGHT {
        let stream = connect(&server.address, &speaks(b"http/1.1", &roots)?).await?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        one.push(Sender::One(sender));
    }
    let stream = connect(&server.address, &speaks(b"h2", &roots)?).await?;
    let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let mut two: Vec<Sender> = (0..IN_FLIGHT).map(|_| Sender::Two(sender.clone())).collect();

    let mut sums = [Measured::default(), Measured::default()];
    for round in 0..=effort.rounds {
        for (sum, senders) in sums.iter_mut().zip([&mut two, &mut one]) {
            let before = server.cpu_seconds()?;
            let mut measured = load(senders, &server.address, effort.round).await?;
            measured.core_seconds = server.cpu_seconds()? - before;
            // The first round warms up.
            if round > 0 {
                sum.add(measured);
            }
        }
    }
    let [two, one] = sums;
    report.note(format!(
        "fresh over TLS, HTTP/2 on one connection / HTTP/1.1 on {IN_FLIGHT}: {:.2} × calls; by the server's own time {:.2} × ({:.0} against {:.0} us)",
        two.rate() / one.rate(),
        one.core_us() / two.core_us(),
        two.core_us(),
        one.core_us(),
    ));
    Ok(())
}
