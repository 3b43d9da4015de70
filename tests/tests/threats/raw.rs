//! Clients that speak HTTP byte by byte, from any loopback address, so that they can send what no library would.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use e2e::{Folder, Server, exchange::Stream, http::Over};
use rcgen::CertifiedKey;
use rustls::{ClientConfig, RootCertStore, pki_types::ServerName};
use tokio::{
    io::AsyncWriteExt,
    net::{TcpSocket, TcpStream},
    time::timeout,
};
use tokio_rustls::TlsConnector;

/// How long a client tries to send. If it is refused while it still sends, it may be disconnected, or not be read any more.
const TRIES: Duration = Duration::from_secs(1);

/// The settings for TLS connections to a server.
pub struct Certified(Arc<ClientConfig>);

/// Writes a certificate for `localhost` and its key; the config names them `cert.pem` and `key.pem`.
pub fn certified(folder: &Folder) -> Certified {
    let CertifiedKey { cert, signing_key } = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    folder.write("config/wharf/key.pem", signing_key.serialize_pem());
    folder.set_mode("config/wharf/key.pem", 0o600);
    folder.write("config/wharf/cert.pem", cert.pem());
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    Certified(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

impl Certified {
    pub fn over(&self) -> Over {
        Over::Tls(Arc::clone(&self.0))
    }
}

/// Clients of a server, and everything that they hold open.
pub struct Clients {
    address: SocketAddr,
    tls: Option<TlsConnector>,
    held: Vec<Box<dyn Stream>>,
}

impl Clients {
    pub fn of(server: &Server, tls: Option<&Certified>) -> Self {
        let tls = tls.map(|tls| TlsConnector::from(Arc::clone(&tls.0)));
        Self { address: server.address, tls, held: Vec::new() }
    }

    pub fn held(&self) -> usize {
        self.held.len()
    }

    pub fn leave(&mut self, most: usize) {
        self.held.truncate(most);
    }

    /// Opens a connection from 127.0.0.`from`, without sending anything.
    async fn silent(&self, from: u8) -> Option<TcpStream> {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 0, from], 0).into()).unwrap();
        // Unread data waits on the server's side.
        socket.set_recv_buffer_size(4096).unwrap();
        timeout(TRIES, socket.connect(self.address)).await.ok()?.ok()
    }

    /// Sends bytes that are not HTTP, before any TLS, and keeps the connection open.
    pub async fn bytes(&mut self, from: u8, bytes: &[u8]) {
        let Some(mut stream) = self.silent(from).await else { return };
        let _ = timeout(TRIES, stream.write_all(bytes)).await;
        self.held.push(Box::new(stream));
    }

    /// Sends bytes, over TLS if the server speaks it, and keeps the connection open without reading from it.
    pub async fn send(&mut self, from: u8, bytes: &[u8]) {
        let Some(mut stream) = self.open(from).await else { return };
        let _ = timeout(TRIES, stream.write_all(bytes)).await;
        self.held.push(stream);
    }

    async fn open(&self, from: u8) -> Option<Box<dyn Stream>> {
        let stream = self.silent(from).await?;
        let Some(tls) = &self.tls else { return Some(Box::new(stream)) };
        let name = ServerName::try_from("localhost").unwrap();
        Some(Box::new(timeout(TRIES, tls.connect(name, stream)).await.ok()?.ok()?))
    }
}
