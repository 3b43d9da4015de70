//! Public keys that an operator trusts: those of sigstore bundles, and those of minisign.

use std::fmt;

use base64::{Engine, engine::general_purpose::STANDARD};
use sigstore_verify::{
    crypto::{KeyAlgorithm, SigningScheme, VerificationKey, sha256},
    types::{DerPublicKey, SignatureBytes},
};

use crate::{artifact::Signer, provider};

/// The longest public key that is read, in bytes.
const MAX_BYTES: usize = 4096;

/// A public key: ECDSA on P-256 with SHA-256, or Ed25519.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey(DerPublicKey);

/// A public key of minisign.
#[derive(Clone, PartialEq, Eq)]
pub struct MinisignKey {
    pub(crate) key: minisign_verify::PublicKey,
    /// As the operator wrote it, without comment.
    text: String,
}

/// Why a public key cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnusableKey {
    /// It is not PEM, or the PEM of something else.
    #[error("not a public key in PEM, which begins with `-----BEGIN PUBLIC KEY-----`")]
    NotPem,
    /// A private key was written where a public one belongs.
    #[error("this is a private key, which should not leave who signs; write the public key that belongs to it")]
    Private,
    /// It is of another kind.
    #[error("keys of this kind are not verified; use ECDSA on P-256, as `cosign generate-key-pair` makes, or Ed25519")]
    Kind,
    /// It is not a key of minisign.
    #[error("not a public key of minisign, which begins with `RW` and has 56 characters")]
    NotMinisign,
}

impl PublicKey {
    /// Reads a key in PEM (SubjectPublicKeyInfo), as `cosign generate-key-pair` and `openssl pkey -pubout` write it.
    ///
    /// # Errors
    /// If it is something else.
    pub fn from_pem(pem: &str) -> Result<Self, UnusableKey> {
        if pem.contains("PRIVATE KEY-----") {
            return Err(UnusableKey::Private);
        }
        if pem.len() > MAX_BYTES {
            return Err(UnusableKey::NotPem);
        }
        Self::from_der(DerPublicKey::from_pem(pem.trim()).map_err(|_| UnusableKey::NotPem)?)
    }

    pub(crate) fn from_der(der: DerPublicKey) -> Result<Self, UnusableKey> {
        match KeyAlgorithm::from_spki(&der) {
            Ok(KeyAlgorithm::EcdsaP256 | KeyAlgorithm::Ed25519) => Ok(Self(der)),
            _ => Err(UnusableKey::Kind),
        }
    }

    /// Who has the private key.
    pub fn signer(&self) -> Signer {
        Signer(self.to_string())
    }

    /// What bundles call the key: the digest of its SubjectPublicKeyInfo, in base64, as cosign does.
    pub(crate) fn hint(&self) -> String {
        provider::install();
        STANDARD.encode(sha256(self.0.as_bytes()).as_bytes())
    }

    /// Whether a signature of a message is by this key.
    pub(crate) fn made(&self, message: &[u8], signature: &SignatureBytes) -> bool {
        provider::install();
        let scheme = match KeyAlgorithm::from_spki(&self.0) {
            Ok(KeyAlgorithm::Ed25519) => SigningScheme::Ed25519,
            _ => SigningScheme::EcdsaP256Sha256,
        };
        VerificationKey::from_spki_with_scheme(&self.0, scheme).is_ok_and(|key| key.verify(message, signature).is_ok())
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        provider::install();
        write!(f, "key sha256:{}", sha256(self.0.as_bytes()).to_hex())
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl MinisignKey {
    /// Reads a key as minisign prints it (`RW…`), or the file that it writes.
    ///
    /// # Errors
    /// If it is something else.
    pub fn parse(text: &str) -> Result<Self, UnusableKey> {
        if text.len() > MAX_BYTES {
            return Err(UnusableKey::NotMinisign);
        }
        let is_comment = |line: &&str| !line.is_empty() && !line.starts_with("untrusted comment:");
        let mut lines = text.lines().map(str::trim).filter(is_comment);
        match (lines.next(), lines.next()) {
            (Some(text), None) => {
                let key = minisign_verify::PublicKey::from_base64(text).map_err(|_| UnusableKey::NotMinisign)?;
                Ok(Self { key, text: text.to_owned() })
            }
            _ => Err(UnusableKey::NotMinisign),
        }
    }

    /// Who has the private key.
    pub fn signer(&self) -> Signer {
        Signer(self.to_string())
    }
}

impl fmt::Display for MinisignKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "minisign {}", self.text)
    }
}

impl fmt::Debug for MinisignKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
