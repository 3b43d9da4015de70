//! The TLS configuration of outbound connections, and the certificates that it trusts.

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context, Result, ensure};
use rustls::{
    ClientConfig, RootCertStore,
    client::Resumption,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};
use tokio::sync::OnceCell;

/// The most TLS sessions that one plugin caches for resumption.
const MAX_TLS_SESSIONS: usize = 32;

/// The certificate authorities that are trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trust {
    /// Whether to trust the system's certificates; the built-in ones are used if this is off or the system has no certificates.
    pub system: bool,
    /// Additional certificates, in PEM files.
    pub files: Vec<PathBuf>,
}

impl Default for Trust {
    fn default() -> Self {
        Self { system: true, files: Vec::new() }
    }
}

/// The trusted certificates, loaded when they are first needed.
pub struct Roots {
    trust: Trust,
    store: OnceCell<Arc<RootCertStore>>,
}

impl Roots {
    pub fn new(trust: Trust) -> Self {
        Self { trust, store: OnceCell::new() }
    }

    async fn get(&self) -> Result<Arc<RootCertStore>> {
        let read = || async {
            let trust = self.trust.clone();
            #[expect(clippy::disallowed_methods, reason = "waits for what it spawns")]
            let read = tokio::task::spawn_blocking(move || read(&trust));
            read.await.context("reading certificates was interrupted")?.map(Arc::new)
        };
        self.store.get_or_try_init(read).await.cloned()
    }
}

fn read(trust: &Trust) -> Result<RootCertStore> {
    let mut store = RootCertStore::empty();
    if trust.system {
        let system = rustls_native_certs::load_native_certs();
        store.add_parsable_certificates(system.certs);
    }
    if store.is_empty() {
        store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    for path in &trust.files {
        let name = || path.display().to_string();
        let mut found = 0;
        for certificate in CertificateDer::pem_file_iter(path).with_context(name)? {
            store.add(certificate.with_context(name)?).with_context(name)?;
            found += 1;
        }
        ensure!(found > 0, "{}: there is no certificate in it", name());
    }
    Ok(store)
}

/// The TLS configuration of one plugin. Its session cache is not shared, so no plugin learns which servers another one uses.
pub struct Tls {
    roots: Arc<Roots>,
    config: OnceCell<Arc<ClientConfig>>,
}

impl Tls {
    pub fn new(roots: &Arc<Roots>) -> Self {
        Self { roots: Arc::clone(roots), config: OnceCell::new() }
    }

    pub async fn config(&self) -> Result<Arc<ClientConfig>> {
        let make = || async {
            let roots = self.roots.get().await?;
            let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
                .with_safe_default_protocol_versions()?
                .with_root_certificates(roots);
            let mut config = config.with_no_client_auth();
            config.resumption = Resumption::in_memory_sessions(MAX_TLS_SESSIONS);
            config.alpn_protocols = vec![b"http/1.1".to_vec()];
            anyhow::Ok(Arc::new(config))
        };
        self.config.get_or_try_init(make).await.cloned()
    }
}
