//! Verifies who signed a component. Bytes in, an answer out: it knows neither files nor networks, and takes the time as an argument.
//!
//! A signature is a sigstore bundle (versions 0.1 to 0.3) or a file of minisign. It counts if one of the signers that the operator trusts
//! made it for the bytes of the component, or for the bytes of the manifest that names the component by its digest.
//!
//! What comes with a component is hostile: it is bounded in size, and nothing of it is believed before a key or an authority of the
//! operator's vouches for it.

#![deny(missing_docs)]

mod artifact;
mod bundle;
mod identity;
mod key;
mod minisign;
mod provider;
mod refused;
mod root;
mod signing;
mod trusted;

use std::time::SystemTime;

pub use artifact::{Artifact, Covers, MAX_SIGNATURE_BYTES, MAX_SIGNATURES, Signature, Signed, Signer};
pub use identity::{SignerIdentity, UnusableIdentity};
pub use key::{MinisignKey, PublicKey, UnusableKey};
pub use refused::{Reason, Refused};
pub use root::{Root, UnusableRoot};
pub use signing::{CannotSign, SigningKey};
pub use trusted::Trusted;

use crate::artifact::MAX_CLOCK_SKEW;

/// All trusted signers of an artifact: at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    first: Signed,
    others: Vec<Signed>,
}

impl Verified {
    /// The first signer, in the order in which the operator lists them.
    pub fn first(&self) -> &Signed {
        &self.first
    }

    /// All signers, in the order in which the operator lists them, each once.
    pub fn all(&self) -> impl Iterator<Item = &Signed> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// The signature by the signer with this text, which was kept from an earlier version.
    pub fn by(&self, signer: &str) -> Option<&Signed> {
        self.all().find(|signed| signed.signer.as_str() == signer)
    }
}

/// Looks for signatures by trusted signers. Signatures by others neither help nor hurt.
///
/// Keys do not expire; certificates have to be valid at the time that a log or a timestamp authority proved, which `now` bounds. A
/// certificate without such a proof is refused, however long it is valid: nothing says that it was valid when it was used.
///
/// # Errors
/// If no signature counts: why, for each.
pub fn verify(
    artifact: &Artifact<'_>,
    signatures: &[Signature<'_>],
    trusted: &[Trusted],
    now: SystemTime,
) -> Result<Verified, Refused> {
    let latest = now.checked_add(MAX_CLOCK_SKEW).unwrap_or(now);
    // Pairs of the place in the operator's list and the signature, so that the order does not depend on who attached what first.
    let mut found: Vec<(usize, Signed)> = Vec::new();
    let mut reasons = Vec::new();
    for (index, signature) in signatures.iter().enumerate() {
        let outcome = if index >= MAX_SIGNATURES {
            Err(Reason::TooMany)
        } else if signature.bytes().len() > MAX_SIGNATURE_BYTES {
            Err(Reason::TooLarge)
        } else {
            match signature {
                Signature::Bundle(bytes) => bundle::verify(artifact, bytes, trusted, latest),
                Signature::Minisign(bytes) => minisign::verify(artifact, bytes, trusted),
            }
        };
        match outcome {
            Ok((place, signed)) => found.push((place, signed)),
            Err(reason) => reasons.push((index, reason)),
        }
    }
    found.sort_by(|(one, a), (other, b)| (one, &a.signer, a.covers, &a.at).cmp(&(other, &b.signer, b.covers, &b.at)));
    found.dedup_by(|(_, later), (_, earlier)| later.signer == earlier.signer);
    let mut found = found.into_iter().map(|(_, signed)| signed);
    match found.next() {
        Some(first) => Ok(Verified { first, others: found.collect() }),
        None => Err(Refused::new(reasons, trusted)),
    }
}
