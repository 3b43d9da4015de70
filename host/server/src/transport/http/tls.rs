//! TLS of the HTTP server. The certificate is read anew when it changes, and the one before is used until the new one is whole: its
//! chain and key can be read, belong together, and nobody else could have changed them.
//!
//! A connection keeps what it began with, so that a change ends none.

use std::{
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use parking_lot::RwLock;
use rustls::{
    RootCertStore, ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{NoServerSessionStorage, WebPkiClientVerifier},
};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_util::sync::CancellationToken;

use crate::{
    base::{
        certificate::Certificate,
        folders::{Folders, leading_to},
        guard::{check_key_file, check_trusted_file},
        text::escaped,
    },
    config::tls,
};

/// How long a client may take to agree on how to encrypt.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// The largest file of certificates.
const MAX_BYTES: u64 = 1 << 20;
const H2: &[u8] = b"h2";

/// How connections are encrypted, for as long as wharf runs.
pub struct Tls {
    files: tls::Tls,
    current: RwLock<Arc<ServerConfig>>,
    /// The digest of the files as they were last read, whether or not they were good.
    seen: RwLock<[u8; 32]>,
}

/// A connection on which both sides have agreed.
pub struct Secured<S> {
    pub stream: TlsStream<S>,
    pub certificate: Option<Arc<Certificate>>,
    /// Whether the client speaks HTTP/2.
    pub h2: bool,
}

/// What is in the files.
struct Contents {
    cert: Vec<u8>,
    key: Vec<u8>,
    ca: Option<Vec<u8>>,
}

impl Tls {
    /// Reads the files.
    pub async fn open(files: &tls::Tls) -> Result<Arc<Self>> {
        let contents = read(files).await.context("[http.tls]")?;
        let config = contents.config(files).context("[http.tls]")?;
        let (current, seen) = (RwLock::new(Arc::new(config)), RwLock::new(contents.digest()));
        Ok(Arc::new(Self { files: files.clone(), current, seen }))
    }

    /// Reads the files again when they may have changed, until wharf closes.
    pub async fn follow(self: Arc<Self>, closing: CancellationToken) {
        let mut folders = Folders::new(|_| false);
        folders.follow(self.folders());
        // What changed before the folders were watched is looked for at once.
        self.renew().await;
        while closing.run_until_cancelled(folders.changed()).await.is_some() {
            self.renew().await;
            // Links on the way may lead elsewhere now.
            folders.follow(self.folders());
        }
    }

    fn folders(&self) -> std::collections::HashSet<PathBuf> {
        leading_to(self.files.files().cloned())
    }

    async fn renew(&self) {
        let renewed = match read(&self.files).await {
            Ok(contents) => {
                let digest = contents.digest();
                if std::mem::replace(&mut *self.seen.write(), digest) == digest {
                    return;
                }
                contents.config(&self.files)
            }
            Err(error) => Err(error),
        };
        match renewed {
            Ok(config) => {
                *self.current.write() = Arc::new(config);
                tracing::info!("{}: the certificate was read anew", self.files.cert.display());
            }
            Err(error) => {
                tracing::error!(
                    "[http.tls]: the new certificate is not used, the last good one stays: {}",
                    escaped(&format!("{error:#}"))
                );
            }
        }
    }

    /// Agrees with a client on how to encrypt.
    pub async fn accept<S: AsyncRead + AsyncWrite + Unpin>(&self, stream: S) -> io::Result<Secured<S>> {
        let config = Arc::clone(&self.current.read());
        let accepted = tokio::time::timeout(HANDSHAKE, TlsAcceptor::from(config).accept(stream)).await;
        let stream = accepted.map_err(|_| io::Error::new(ErrorKind::TimedOut, "it takes too long"))??;
        let (_, session) = stream.get_ref();
        let h2 = session.alpn_protocol() == Some(H2);
        let certificate = match session.peer_certificates().and_then(<[_]>::first) {
            None => None,
            Some(der) => {
                let unreadable = || io::Error::new(ErrorKind::InvalidData, "its certificate cannot be read");
                Some(Arc::new(Certificate::read(der).ok_or_else(unreadable)?))
            }
        };
        Ok(Secured { stream, certificate, h2 })
    }
}

async fn read(files: &tls::Tls) -> Result<Contents> {
    let files = files.clone();
    #[expect(clippy::disallowed_methods, reason = "waits for what it spawns")]
    let read = tokio::task::spawn_blocking(move || {
        let trusted = |path: &Path| check_trusted_file(path, "certificate");
        Ok(Contents {
            cert: read_file(&files.cert, trusted)?,
            key: read_file(&files.key, |path| check_key_file(path, "private key"))?,
            ca: files.clients.as_ref().map(|clients| read_file(&clients.ca, trusted)).transpose()?,
        })
    });
    read.await.context("reading was interrupted")?
}

#[expect(clippy::disallowed_methods, reason = "a file that the operator names")]
fn read_file(path: &Path, check: impl Fn(&Path) -> Result<()>) -> Result<Vec<u8>> {
    use std::io::Read;
    check(path)?;
    let name = || path.display().to_string();
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).with_context(name)?;
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).with_context(name)?;
    ensure!(bytes.len() as u64 <= MAX_BYTES, "{}: it is larger than {MAX_BYTES} bytes", name());
    Ok(bytes)
}

/// All certificates in a file.
fn certificates(pem: &[u8], path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let name = || path.display().to_string();
    let found: Vec<_> = CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().with_context(name)?;
    ensure!(!found.is_empty(), "{}: there is no certificate in it; it has to be PEM", name());
    Ok(found)
}

impl Contents {
    fn digest(&self) -> [u8; 32] {
        let mut digest = Sha256::new();
        for file in [Some(&self.cert), Some(&self.key), self.ca.as_ref()].into_iter().flatten() {
            digest.update(file.len().to_be_bytes());
            digest.update(file);
        }
        digest.finalize().into()
    }

    fn config(&self, files: &tls::Tls) -> Result<ServerConfig> {
        let chain = certificates(&self.cert, &files.cert)?;
        if chain.first().and_then(|first| Certificate::is_current(first)) == Some(false) {
            tracing::warn!(
                "{}: the certificate is not good at this time; clients will refuse it",
                files.cert.display()
            );
        }
        let key = PrivateKeyDer::from_pem_slice(&self.key)
            .with_context(|| format!("{}: there is no private key in it; it has to be PEM", files.key.display()))?;
        let provider = Arc::new(ring::default_provider());
        let builder =
            ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
        let builder = match files.clients.as_ref().zip(self.ca.as_ref()) {
            None => builder.with_no_client_auth(),
            Some((clients, pem)) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates(pem, &clients.ca)? {
                    roots.add(certificate).with_context(|| clients.ca.display().to_string())?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                let verifier = if clients.required { verifier } else { verifier.allow_unauthenticated() };
                builder.with_client_cert_verifier(verifier.build()?)
            }
        };
        let mut config = builder
            .with_single_cert(chain, key)
            .with_context(|| format!("{} and {} cannot be used together", files.cert.display(), files.key.display()))?;
        if files.clients.is_some() {
            // A client that came back would not have to show its certificate again, even if it has ended since.
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        }
        config.alpn_protocols = vec![H2.to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}
