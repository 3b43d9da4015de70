//! `[http.tls]`: the certificate of the HTTP server, and the authorities of client certificates (mTLS).

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use super::raw;
use wharf_policy::access::capability::Absolute;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// The certificate and its chain up to the authority, in PEM.
    pub cert: PathBuf,
    pub key: PathBuf,
    /// None: clients are not asked for certificates.
    pub clients: Option<Clients>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clients {
    /// The authorities whose client certificates are accepted, in PEM.
    pub ca: PathBuf,
    /// Whether a connection without a certificate is refused. If not, such a client can use what is open to everybody, and what its
    /// token gives access to.
    pub required: bool,
}

pub fn resolve(raw: raw::Tls, absolute: Absolute<'_>) -> Result<Tls> {
    let required = raw.client_cert != Some(raw::ClientCertificates::Optional);
    ensure!(
        raw.client_ca.is_some() || raw.client_cert.is_none(),
        "`client_cert` needs `client_ca`, the authority whose certificates are accepted"
    );
    Ok(Tls {
        cert: absolute(&raw.cert).context("`cert`")?,
        key: absolute(&raw.key).context("`key`")?,
        clients: match raw.client_ca {
            None => None,
            Some(ca) => Some(Clients { ca: absolute(&ca).context("`client_ca`")?, required }),
        },
    })
}

impl Tls {
    /// All its files.
    pub fn files(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.cert, &self.key].into_iter().chain(self.clients.as_ref().map(|clients| &clients.ca))
    }
}
