//! Signs with an author's private key.

use std::fmt;

use base64::{Engine, engine::general_purpose::STANDARD};
use sigstore_verify::{
    bundle::{BundleV03, VerificationMaterialV03},
    crypto::{KeyPair, sha256},
    types::{
        Bundle, Digest, DsseEnvelope, DsseSignature, HashAlgorithm, KeyId, MessageDigest, MessageSignature,
        PayloadBytes, SignatureContent, Statement, Subject, pae,
    },
};

use crate::{
    bundle::{CLAIM_OF_COSIGN, STATEMENT},
    key::PublicKey,
    provider,
};

/// The largest private key that is read, in bytes.
const MAX_BYTES: usize = 16 << 10;
/// The first and last lines of a private key (PKCS#8) in PEM.
const BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const END: &str = "-----END PRIVATE KEY-----";

/// A private key: ECDSA on P-256 with SHA-256, or Ed25519.
pub struct SigningKey {
    pair: KeyPair,
    public: PublicKey,
}

/// Why nothing was signed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CannotSign {
    /// The key is protected by a password.
    #[error(
        "the private key is encrypted, and wharf asks for no password; sign with cosign, or make a key with \
         `openssl genpkey -algorithm ED25519 -out key.pem`"
    )]
    Encrypted,
    /// The key is in another form.
    #[error(
        "the private key is not in the form PKCS#8; `openssl pkcs8 -topk8 -nocrypt -in KEY -out key.pem` converts it"
    )]
    OtherForm,
    /// The bytes are something else.
    #[error("not a private key in PEM, which begins with `{BEGIN}`")]
    NotPem,
    /// The key is damaged, or of another kind.
    #[error("the private key is damaged or of another kind; it has to be ECDSA on P-256, or Ed25519")]
    Kind,
    /// The random numbers of the system failed.
    #[error("the signature was not made: {0}")]
    Failed(String),
}

impl SigningKey {
    /// Reads a private key in PEM (PKCS#8, not encrypted), as `openssl genpkey` writes it.
    ///
    /// # Errors
    /// If it is something else.
    pub fn from_pem(pem: &str) -> Result<Self, CannotSign> {
        provider::install();
        let pem = pem.trim();
        if pem.len() > MAX_BYTES {
            return Err(CannotSign::NotPem);
        }
        if pem.contains("-----BEGIN ENCRYPTED ") {
            return Err(CannotSign::Encrypted);
        }
        if ["EC", "RSA", "OPENSSH"].iter().any(|kind| pem.contains(&format!("-----BEGIN {kind} PRIVATE KEY-----"))) {
            return Err(CannotSign::OtherForm);
        }
        let body = pem.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(END)).ok_or(CannotSign::NotPem)?;
        let body: String = body.split_ascii_whitespace().collect();
        let der = STANDARD.decode(body).map_err(|_| CannotSign::NotPem)?;
        let pair = KeyPair::from_pkcs8_der(&der).map_err(|_| CannotSign::Kind)?;
        let public = pair.public_key_der().map_err(|_| CannotSign::Kind)?;
        Ok(Self { pair, public: PublicKey::from_der(public).map_err(|_| CannotSign::Kind)? })
    }

    /// The public key that belongs to it.
    pub fn public_key(&self) -> &PublicKey {
        &self.public
    }

    /// Signs bytes, such as a component: a sigstore bundle (version 0.3, JSON) for the file `NAME.sigstore.json`. It has no proof of its time.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn sign(&self, bytes: &[u8]) -> Result<String, CannotSign> {
        let signature = self.pair.sign(bytes).map_err(failed)?;
        let digest = MessageDigest::new(HashAlgorithm::Sha2256, sha256(bytes).into());
        self.bundle(SignatureContent::MessageSignature(MessageSignature::new(signature).with_message_digest(digest)))
    }

    /// Signs the statement that an OCI manifest is the author's, as `cosign sign` does: a sigstore bundle (version 0.3, JSON), to be
    /// attached to the manifest as an artifact of the type `application/vnd.dev.sigstore.bundle.v0.3+json`. It has no proof of its time.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn sign_manifest(&self, manifest: &[u8]) -> Result<String, CannotSign> {
        let subject = Subject::new("", Digest::sha256(sha256(manifest)));
        let statement = Statement::new(vec![subject], CLAIM_OF_COSIGN, serde_json::json!({}));
        let payload = serde_json::to_vec(&statement).map_err(failed)?;
        let signature = self.pair.sign(&pae(STATEMENT, &payload)).map_err(failed)?;
        let signature = DsseSignature::new(signature, KeyId::default());
        self.bundle(SignatureContent::DsseEnvelope(DsseEnvelope::new(STATEMENT, PayloadBytes::new(payload), signature)))
    }

    fn bundle(&self, content: SignatureContent) -> Result<String, CannotSign> {
        let by = VerificationMaterialV03::PublicKey { hint: self.public.hint() };
        let bundle: Bundle = BundleV03::new(by, content).into_bundle();
        bundle.to_json().map_err(failed)
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the private key of {}", self.public)
    }
}

fn failed(error: impl fmt::Display) -> CannotSign {
    CannotSign::Failed(error.to_string())
}
