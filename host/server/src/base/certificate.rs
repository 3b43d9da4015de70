//! The certificate of a client, as far as it says who the client is. Whether it is good was decided before.

use sha2::{Digest, Sha256};
use x509_parser::{
    extensions::GeneralName,
    prelude::{FromDer, X509Certificate},
};

use super::text::hex;

/// The most names that are kept of one certificate, and how long each may be.
const MAX_NAMES: usize = 64;
const MAX_NAME_BYTES: usize = 512;

/// What the name of a certificate without names begins with.
const DIGEST: &str = "sha256:";

/// Who a client is by its certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// Its alternative names: URIs, then host names, then mail addresses, each kind in the order of the certificate. If it has none, the
    /// digest of the certificate. So there is always one.
    pub names: Vec<String>,
}

impl Certificate {
    /// Reads a certificate in DER. None: it cannot be read.
    pub fn read(der: &[u8]) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let (mut uris, mut hosts, mut mails) = (Vec::new(), Vec::new(), Vec::new());
        if let Some(alternative) = certificate.subject_alternative_name().ok()? {
            for name in alternative.value.general_names.iter().take(MAX_NAMES) {
                // An authority may let others choose names of one kind, so each has to look like its kind and like no other.
                match name {
                    GeneralName::URI(name) if name.contains(':') && !name.starts_with(DIGEST) => uris.push(*name),
                    GeneralName::DNSName(name) if !name.contains([':', '@']) => hosts.push(*name),
                    GeneralName::RFC822Name(name) if name.contains('@') && !name.contains(':') => mails.push(*name),
                    _ => {}
                }
            }
        }
        let plain = |name: &&str| {
            (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic())
        };
        let names = uris.into_iter().chain(hosts).chain(mails).filter(plain);
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        if names.is_empty() {
            names.push(format!("{DIGEST}{}", hex(&Sha256::digest(der))));
        }
        Some(Self { names })
    }

    /// The name that stands for the client.
    pub fn name(&self) -> &str {
        self.names.first().map_or("", String::as_str)
    }

    /// Whether it is good at this time. None: it cannot be read.
    pub fn is_current(der: &[u8]) -> Option<bool> {
        X509Certificate::from_der(der).ok().map(|(_, certificate)| certificate.validity().is_valid())
    }
}
