//! Clients that speak HTTP/1.1 and HTTP/2 byte by byte, from any loopback address, so that they can send what no library would.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use e2e::{Folder, Server, exchange::Stream, http::Over};
use rcgen::CertifiedKey;
use rustls::{ClientConfig, RootCertStore, pki_types::ServerName};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, split},
    net::{TcpSocket, TcpStream},
    task::JoinSet,
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
    fn speaking(&self, protocol: &str) -> Arc<ClientConfig> {
        let mut config = ClientConfig::clone(&self.0);
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        Arc::new(config)
    }

    pub fn over(&self) -> Over {
        Over::Tls(self.speaking("http/1.1"))
    }
}

/// Clients of a server, and everything that they hold open.
pub struct Clients {
    address: SocketAddr,
    one: Option<TlsConnector>,
    two: Option<TlsConnector>,
    held: Vec<Box<dyn Stream>>,
    /// Tasks that read what the server sends, so that it does not block on that.
    readers: JoinSet<()>,
}

impl Clients {
    pub fn of(server: &Server, tls: Option<&Certified>) -> Self {
        let connector = |protocol| tls.map(|tls| TlsConnector::from(tls.speaking(protocol)));
        Self {
            address: server.address,
            one: connector("http/1.1"),
            two: connector("h2"),
            held: Vec::new(),
            readers: JoinSet::new(),
        }
    }

    pub fn held(&self) -> usize {
        self.held.len() + self.readers.len()
    }

    pub fn leave(&mut self, most: usize) {
        self.held.truncate(most);
        self.readers.abort_all();
    }

    /// Opens a connection from 127.0.0.`from`, without sending anything.
    pub async fn silent(&mut self, from: u8) -> Option<TcpStream> {
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

    /// Sends bytes over HTTP/1.1, and keeps the connection open without reading from it.
    pub async fn one(&mut self, from: u8, bytes: &[u8]) {
        let Some(mut stream) = self.open(from, self.one.clone()).await else { return };
        let _ = timeout(TRIES, stream.write_all(bytes)).await;
        self.held.push(stream);
    }

    /// Sends HTTP/2 frames, and keeps the connection open and reads from it.
    pub async fn two(&mut self, from: u8, frames: &[u8]) {
        let Some(stream) = self.open(from, self.two.clone()).await else { return };
        let (mut read, mut write) = split(stream);
        self.readers.spawn(async move {
            let mut bytes = [0; 4096];
            while let Ok(1..) = read.read(&mut bytes).await {}
        });
        let settings = frame(4, 0, 0, &[]);
        let _ = timeout(TRIES, write.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")).await;
        let _ = timeout(TRIES, write.write_all(&settings)).await;
        let _ = timeout(TRIES, write.write_all(frames)).await;
        let _ = timeout(TRIES, write.flush()).await;
        self.held.push(Box::new(tokio::io::join(tokio::io::empty(), write)));
    }

    async fn open(&mut self, from: u8, tls: Option<TlsConnector>) -> Option<Box<dyn Stream>> {
        let stream = self.silent(from).await?;
        let Some(tls) = tls else { return Some(Box::new(stream)) };
        let name = ServerName::try_from("localhost").unwrap();
        Some(Box::new(timeout(TRIES, tls.connect(name, stream)).await.ok()?.ok()?))
    }
}

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// Encodes a string for HPACK, at most 16 KiB long.
fn string(text: &str) -> Vec<u8> {
    let length = text.len();
    let mut bytes = Vec::new();
    if length < 127 {
        bytes.push(u8::try_from(length).unwrap());
    } else {
        bytes.push(127);
        let mut rest = length - 127;
        while rest >= 128 {
            bytes.push(u8::try_from(rest % 128).unwrap() | 128);
            rest /= 128;
        }
        bytes.push(u8::try_from(rest).unwrap());
    }
    bytes.extend(text.as_bytes());
    bytes
}

/// Encodes a field without indexing.
pub fn field(name: &str, value: &str) -> Vec<u8> {
    [vec![0], string(name), string(value)].concat()
}

/// The fields at the beginning of every POST to `/mcp`. `remembered`: the server is to index the path.
pub fn post(path: &str, remembered: bool) -> Vec<u8> {
    let kind = if remembered { 0x44 } else { 4 };
    let mut block = [vec![0x83, 0x87, kind], string(path), vec![1], string("localhost")].concat();
    block.extend(field("content-type", "application/json"));
    block.extend(field("accept", "application/json, text/event-stream"));
    block
}
