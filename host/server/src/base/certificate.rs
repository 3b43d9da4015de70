//! Certificates, as far as they say who a client is and from when to when they are good. Whether they are good was decided before.

use std::time::{Duration, SystemTime};

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
    /// When it ends.
    pub until: SystemTime,
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
        Some(Self { names, until: Life::of(&certificate).until })
    }

    /// The name that stands for the client.
    pub fn name(&self) -> &str {
        self.names.first().map_or("", String::as_str)
    }
}

/// How long before its end the operator is warned of a certificate, if that is no more than a third of its life.
const WARN: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// From when to when a certificate is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life {
    pub from: SystemTime,
    pub until: SystemTime,
}

/// What a time is for a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Early,
    Good,
    /// It is good, but should be renewed.
    Late,
    Over,
}

impl Life {
    /// Reads a certificate in DER. None: it cannot be read.
    pub fn read(der: &[u8]) -> Option<Self> {
        X509Certificate::from_der(der).ok().map(|(_, certificate)| Self::of(&certificate))
    }

    fn of(certificate: &X509Certificate<'_>) -> Self {
        // What was before 1970 is over as well.
        let at = |seconds: i64| SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        let validity = certificate.validity();
        Self { from: at(validity.not_before.timestamp()), until: at(validity.not_after.timestamp()) }
    }

    pub fn stage(&self, now: SystemTime) -> Stage {
        let whole = self.until.duration_since(self.from).unwrap_or_default();
        match self.until.duration_since(now) {
            Err(_) => Stage::Over,
            Ok(_) if now < self.from => Stage::Early,
            Ok(left) if left < WARN.min(whole / 3) => Stage::Late,
            Ok(_) => Stage::Good,
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
            (90, 0, Stage::Good),
            (90, 82, Stage::Good),
            (90, 84, Stage::Late),
            (90, 90, Stage::Late),
            (90, 91, Stage::Over),
            (6, 3, Stage::Good),
            (6, 5, Stage::Late),
        ] {
            let life = Life { from: began, until: began + day * days };
            assert_eq!(life.stage(began + day * after), expected, "{after} of {days} days");
        }
        let life = Life { from: began, until: began + day };
        assert_eq!(life.stage(began - day), Stage::Early);
    }
}
