//! Reads the names and the validity period of certificates. Signatures and trust are not verified here.

use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};
use x509_parser::{
    extensions::GeneralName,
    prelude::{FromDer, X509Certificate},
};

use super::text::hex;

/// The maximum number of names that are read from one certificate, and how long each may be.
const MAX_NAMES: usize = 64;
const MAX_NAME_BYTES: usize = 512;

/// The prefix of the name of a certificate without alternative names.
const DIGEST_PREFIX: &str = "sha256:";

/// The identity of a client according to its certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The alternative names: URIs, then host names, then mail addresses, each kind in the order of the certificate. A certificate without
    /// such names has its digest as its only name.
    pub names: Vec<String>,
    /// When the certificate expires.
    pub until: SystemTime,
}

impl Certificate {
    /// Reads a certificate in DER. None: it cannot be read.
    pub fn read(der: &[u8]) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let (mut uris, mut hosts, mut mails) = (Vec::new(), Vec::new(), Vec::new());
        if let Some(alternative) = certificate.subject_alternative_name().ok()? {
            for name in alternative.value.general_names.iter().take(MAX_NAMES) {
                // An authority may let others choose names of one kind, so each name has to look like its kind and like no other kind.
                match name {
                    GeneralName::URI(name) if name.contains(':') && !name.starts_with(DIGEST_PREFIX) => {
                        uris.push(*name)
                    }
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
            names.push(format!("{DIGEST_PREFIX}{}", hex(&Sha256::digest(der))));
        }
        Some(Self { names, until: Validity::of(&certificate).until })
    }

    /// Returns the name that identifies the client.
    pub fn name(&self) -> &str {
        self.names.first().map_or("", String::as_str)
    }
}

/// How long before a certificate expires the operator is warned, if that is at most a third of its validity period.
const EXPIRY_WARNING: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The validity period of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    pub from: SystemTime,
    pub until: SystemTime,
}

/// How a point in time relates to the validity period of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValidityStage {
    NotYetValid,
    Valid,
    /// The certificate is valid, but should be renewed.
    ExpiresSoon,
    Expired,
}

impl Validity {
    /// Reads a certificate in DER. None: it cannot be read.
    pub fn read(der: &[u8]) -> Option<Self> {
        X509Certificate::from_der(der).ok().map(|(_, certificate)| Self::of(&certificate))
    }

    fn of(certificate: &X509Certificate<'_>) -> Self {
        // A time before 1970 becomes 1970, which is past as well.
        let at = |seconds: i64| SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        let validity = certificate.validity();
        Self { from: at(validity.not_before.timestamp()), until: at(validity.not_after.timestamp()) }
    }

    pub fn stage(&self, now: SystemTime) -> ValidityStage {
        let whole = self.until.duration_since(self.from).unwrap_or_default();
        match self.until.duration_since(now) {
            Err(_) => ValidityStage::Expired,
            Ok(_) if now < self.from => ValidityStage::NotYetValid,
            Ok(left) if left < EXPIRY_WARNING.min(whole / 3) => ValidityStage::ExpiresSoon,
            Ok(_) => ValidityStage::Valid,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_warned_in_time() {
        let (day, began) = (Duration::from_secs(24 * 60 * 60), SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 30));
        for (days, after, expected) in [
            (90, 0, ValidityStage::Valid),
            (90, 82, ValidityStage::Valid),
            (90, 84, ValidityStage::ExpiresSoon),
            (90, 90, ValidityStage::ExpiresSoon),
            (90, 91, ValidityStage::Expired),
            (6, 3, ValidityStage::Valid),
            (6, 5, ValidityStage::ExpiresSoon),
        ] {
            let life = Validity { from: began, until: began + day * days };
            assert_eq!(life.stage(began + day * after), expected, "{after} of {days} days");
        }
        let life = Validity { from: began, until: began + day };
        assert_eq!(life.stage(began - day), ValidityStage::NotYetValid);
    }
}
