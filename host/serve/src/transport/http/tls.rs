//! TLS of the HTTP server, with client certificates (mTLS) if the config asks for them. The certificate is read again when its files
//! change. The previous one stays in use until the new one is valid: its chain and key can be read, belong together, and could not have
//! been changed by other users.
//!
//! A connection keeps the certificate that it began with. A change closes only connections of clients whose certificates
//! are not accepted any more.

use std::{
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, Result, ensure};
use parking_lot::Mutex;
use rustls::{
    RootCertStore, ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, UnixTime, pem::PemObject},
    server::{NoServerSessionStorage, WebPkiClientVerifier, danger::ClientCertVerifier},
};
use sha2::{Digest, Sha256};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_util::sync::CancellationToken;

use wharf_base::{
    certificate::{Certificate, Validity, ValidityStage},
    folders::{Folders, leading_to},
    guard::{check_key_file, check_trusted_file},
    text::escaped,
};
use wharf_config::config::tls;

/// How long a client may take for the TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum size of each file.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// The protocol that clients are offered (ALPN). A client that offers only others gets the alert `no_application_protocol`.
const PROTOCOL: &[u8] = b"http/1.1";

/// How often the files are checked, even if no change of their folders is reported.
const RECHECK_INTERVAL: Duration = Duration::from_secs(10 * 60);
/// How often the operator is warned that the certificate expires.
const REMINDER_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

/// The TLS setup of the listener, for as long as wharf runs.
pub struct Tls {
    files: tls::Tls,
    current: watch::Sender<Arc<Current>>,
    /// The digest of the files as they were last read, whether or not they were valid.
    seen: Mutex<[u8; 32]>,
    /// When the operator was last warned that the certificate expires.
    told: Mutex<Option<Instant>>,
}

struct Current {
    config: Arc<ServerConfig>,
    /// Verifies the certificates of clients.
    clients: Option<Arc<dyn ClientCertVerifier>>,
    /// The validity period. None: wharf cannot read it from the certificate, although rustls can use the certificate.
    life: Option<Validity>,
}

/// The certificate that a client presented, with its chain.
pub struct Shown {
    pub certificate: Arc<Certificate>,
    chain: Vec<CertificateDer<'static>>,
    current: watch::Receiver<Arc<Current>>,
}

impl Shown {
    /// Returns when the certificate authorities have changed, and do not accept the certificate any more.
    pub async fn refused(mut self) {
        while self.current.changed().await.is_ok() {
            if !self.current.borrow_and_update().accepts(&self.chain) {
                return;
            }
        }
        std::future::pending().await
    }
}

impl Current {
    fn accepts(&self, chain: &[CertificateDer<'_>]) -> bool {
        match (&self.clients, chain.split_first()) {
            (Some(clients), Some((own, others))) => clients.verify_client_cert(own, others, UnixTime::now()).is_ok(),
            _ => false,
        }
    }
}

/// The contents of the files.
struct Contents {
    cert: Vec<u8>,
    key: Vec<u8>,
    ca: Option<Vec<u8>>,
}

impl Tls {
    /// Reads the files.
    pub async fn open(files: &tls::Tls) -> Result<Arc<Self>> {
        let contents = read(files).await.context("[http.tls]")?;
        let current = contents.config(files).context("[http.tls]")?;
        let (current, seen) = (watch::Sender::new(Arc::new(current)), Mutex::new(contents.digest()));
        Ok(Arc::new(Self { files: files.clone(), current, seen, told: Mutex::default() }))
    }

    /// Reads the files again when they may have changed or when `asked` is notified, until wharf closes.
    pub async fn follow(self: Arc<Self>, mut asked: watch::Receiver<()>, closing: CancellationToken) {
        let mut folders = Folders::new(|_| false, |_| ());
        folders.follow(self.folders());
        // The first tick comes at once, because the files may have changed before the folders were watched.
        let mut ticks = tokio::time::interval(RECHECK_INTERVAL);
        loop {
            let asks = tokio::select! {
                () = closing.cancelled() => return,
                () = folders.changed() => false,
                _ = ticks.tick() => false,
                Ok(()) = asked.changed() => true,
            };
            self.renew().await;
            self.tell(asks);
            // Symbolic links in the paths may lead elsewhere now.
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
                if std::mem::replace(&mut *self.seen.lock(), digest) == digest {
                    return;
                }
                contents.config(&self.files)
            }
            Err(error) => Err(error),
        };
        match renewed {
            Ok(current) => {
                self.current.send_replace(Arc::new(current));
                *self.told.lock() = None;
                tracing::info!("{}: the certificate was reloaded", self.files.cert.display());
            }
            Err(error) => {
                tracing::error!(
                    "[http.tls]: the new certificate is not used, the last valid one stays: {}",
                    escaped(&format!("{error:#}"))
                );
            }
        }
    }

    /// Logs how long the certificate is valid: if `asked`, and once a day if the certificate should be renewed.
    fn tell(&self, asked: bool) {
        let (stage, text) = self.current.borrow().state(&self.files);
        let mut told = self.told.lock();
        if stage == ValidityStage::Valid {
            if asked {
                tracing::info!("{text}");
            }
        } else if asked || told.is_none_or(|at| at.elapsed() > REMINDER_INTERVAL) {
            *told = Some(Instant::now());
            tracing::warn!("{text}");
        }
    }

    /// Performs the handshake with a client.
    pub async fn accept<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
    ) -> io::Result<(TlsStream<S>, Option<Shown>)> {
        let mut current = self.current.subscribe();
        let config = Arc::clone(&current.borrow_and_update().config);
        let accepted = tokio::time::timeout(HANDSHAKE_TIMEOUT, TlsAcceptor::from(config).accept(stream)).await;
        let stream = accepted.map_err(|_| io::Error::new(ErrorKind::TimedOut, "the handshake takes too long"))??;
        let (_, session) = stream.get_ref();
        let chain = session.peer_certificates().unwrap_or_default();
        let shown = match chain.first() {
            None => None,
            Some(der) => {
                let unreadable = || io::Error::new(ErrorKind::InvalidData, "its certificate cannot be read");
                let certificate = Arc::new(Certificate::read(der).ok_or_else(unreadable)?);
                Some(Shown { certificate, chain: chain.to_vec(), current })
            }
        };
        Ok((stream, shown))
    }
}

/// Returns whether the certificate is valid at this time, and for how long, in words. An error: wharf could not use the files as they are.
pub async fn check(files: &tls::Tls) -> Result<(bool, String)> {
    let (stage, text) = read(files).await?.config(files)?.state(files);
    Ok((matches!(stage, ValidityStage::Valid | ValidityStage::ExpiresSoon), text))
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
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).with_context(name)?;
    ensure!(bytes.len() as u64 <= MAX_FILE_BYTES, "{}: it is larger than {MAX_FILE_BYTES} bytes", name());
    Ok(bytes)
}

/// Returns all certificates in a file.
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

    fn config(&self, files: &tls::Tls) -> Result<Current> {
        let chain = certificates(&self.cert, &files.cert)?;
        let life = chain.first().and_then(|first| Validity::read(first));
        let key = PrivateKeyDer::from_pem_slice(&self.key)
            .with_context(|| format!("{}: there is no private key in it; it has to be PEM", files.key.display()))?;
        let provider = Arc::new(ring::default_provider());
        let builder =
            ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
        let (builder, clients) = match files.clients.as_ref().zip(self.ca.as_ref()) {
            None => (builder.with_no_client_auth(), None),
            Some((clients, pem)) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates(pem, &clients.ca)? {
                    roots.add(certificate).with_context(|| clients.ca.display().to_string())?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                let verifier = if clients.required { verifier } else { verifier.allow_unauthenticated() };
                let verifier = verifier.build()?;
                (builder.with_client_cert_verifier(Arc::clone(&verifier)), Some(verifier))
            }
        };
        let mut config = builder
            .with_single_cert(chain, key)
            .with_context(|| format!("{} and {} cannot be used together", files.cert.display(), files.key.display()))?;
        if files.clients.is_some() {
            // A client that resumes a TLS session would not have to present its certificate again, even if it has expired since.
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        }
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        Ok(Current { config: Arc::new(config), clients, life })
    }
}

impl Current {
    /// Returns the stage in the certificate's life, and its validity in words.
    fn state(&self, files: &tls::Tls) -> (ValidityStage, String) {
        let path = files.cert.display();
        let Some(life) = self.life else {
            return (ValidityStage::Valid, format!("{path}: wharf cannot read how long the certificate is valid"));
        };
        let at = humantime::format_rfc3339_seconds;
        let stage = life.stage(SystemTime::now());
        let text = match stage {
            ValidityStage::Valid => format!("{path}: the certificate is valid until {}", at(life.until)),
            ValidityStage::ExpiresSoon => format!("{path}: the certificate expires at {}; renew it", at(life.until)),
            ValidityStage::NotYetValid => {
                format!("{path}: the certificate is valid only from {}; clients refuse it", at(life.from))
            }
            ValidityStage::Expired => {
                format!("{path}: the certificate expired at {}; clients refuse it", at(life.until))
            }
        };
        (stage, text)
    }
}
