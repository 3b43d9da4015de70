//! Why no signature counts, in words for the operator.

use std::{fmt, time::SystemTime};

use crate::{
    artifact::{MAX_CLOCK_SKEW, MAX_SIGNATURE_BYTES, MAX_SIGNATURES, Signer},
    trusted::Trusted,
};

/// No signature of an artifact counts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Refused {
    /// With the place of each in the list of signatures.
    reasons: Vec<(usize, Reason)>,
    /// The trusted signers, as text.
    trusted: Vec<String>,
}

/// Why one signature does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// It was not read.
    #[error("it has more than {} KiB", MAX_SIGNATURE_BYTES / 1024)]
    TooLarge,
    /// It was not read, and neither were those after it.
    #[error("only the first {MAX_SIGNATURES} signatures are read")]
    TooMany,
    /// It is something else than a signature, or has an unknown form.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// The signature, the certificate, or the proof of a log or of a timestamp authority does not hold, or authorities that the operator
    /// does not rely on made it.
    #[error("it is forged, damaged, or by unknown authorities: {0}")]
    Forged(String),
    /// The certificate was not valid when it was used, or nothing proves when that was.
    #[error("{0}")]
    Expired(String),
    /// A log or timestamp authority says that it was signed in the future.
    #[error("its time is {} seconds after this machine's; compare this machine's clock", .0.as_secs())]
    Early(std::time::Duration),
    /// It is for other bytes.
    #[error("it is for another artifact")]
    OtherArtifact,
    /// Whom the certificate names is not trusted.
    #[error("it is by {0}, who is not trusted")]
    OtherSigner(Signer),
    /// No trusted key made it; which key did is not known.
    #[error("no trusted key made it")]
    OtherKey,
    /// It has a certificate, and no identity is trusted.
    #[error("it has a certificate, and only keys are trusted")]
    OnlyKeys,
    /// It is a statement about the artifact that does not say who made it, such as the report of a scan.
    #[error("it is a statement of the type `{0}`, which does not say that its signer made the artifact")]
    OtherStatement(String),
}

impl Reason {
    /// The reason for a time after the latest one that is believed.
    pub(crate) fn early(time: SystemTime, latest: SystemTime) -> Self {
        Self::Early(time.duration_since(latest).unwrap_or_default().saturating_add(MAX_CLOCK_SKEW))
    }
}

impl Refused {
    pub(crate) fn new(reasons: Vec<(usize, Reason)>, trusted: &[Trusted]) -> Self {
        Self { reasons, trusted: trusted.iter().map(ToString::to_string).collect() }
    }

    /// Whether there was no signature at all.
    pub fn is_unsigned(&self) -> bool {
        self.reasons.is_empty()
    }

    /// Why each signature does not count, in their order.
    pub fn reasons(&self) -> impl Iterator<Item = &Reason> {
        self.reasons.iter().map(|(_, reason)| reason)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reasons.as_slice() {
            [] => f.write_str("it is not signed")?,
            [(_, reason)] => write!(f, "its signature does not count: {reason}")?,
            reasons => {
                write!(f, "none of its {} signatures counts:", reasons.len())?;
                for (index, reason) in reasons {
                    write!(f, "\n  {}. {reason}", index + 1)?;
                }
            }
        }
        match self.trusted.as_slice() {
            [] => f.write_str("\nno signer is trusted"),
            [one] => write!(f, "\ntrusted: {one}"),
            all => {
                f.write_str("\ntrusted:")?;
                all.iter().try_for_each(|one| write!(f, "\n  {one}"))
            }
        }
    }
}
