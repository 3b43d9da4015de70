//! The authorities that vouch for identities: certificate authorities, transparency logs and timestamp authorities.

use std::{fmt, sync::Arc};

use sigstore_verify::{VerificationPolicy, Verifier, trust_root::TrustedRoot};

use crate::provider;

/// The largest file of authorities that is read, in bytes.
const MAX_ROOT_BYTES: usize = 1 << 20;

/// The authorities that an operator relies on for identities, checked. Cheap to clone.
#[derive(Clone)]
pub struct Root(Arc<Inner>);

struct Inner {
    verifier: Verifier,
    has_logs: bool,
    has_certificate_logs: bool,
}

/// Why authorities cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnusableRoot {
    /// The file is larger than 1 MiB.
    #[error("the file of authorities has more than 1 MiB; it should be the `trusted_root.json` of a sigstore instance")]
    TooLarge,
    /// The file is something else.
    #[error("not the `trusted_root.json` of a sigstore instance: {0}")]
    Unreadable(String),
    /// There is no authority in it that issues certificates.
    #[error("it lists no certificate authority, so it vouches for nobody")]
    NoAuthority,
    /// Nothing in it could prove when something was signed.
    #[error(
        "it lists neither a transparency log nor a timestamp authority, so nothing proves that a certificate was valid when it was used"
    )]
    NoTime,
}

impl Root {
    /// The public sigstore instance, as it was when sigstore-verify, which contains its `trusted_root.json`, was released.
    ///
    /// # Errors
    /// If sigstore-verify cannot read its own file.
    pub fn public() -> Result<Self, UnusableRoot> {
        Self::from_json(sigstore_verify::trust_root::SIGSTORE_PRODUCTION_TRUSTED_ROOT)
    }

    /// GitHub's own instance, which issues certificates for attestations in private repositories, as it was when sigstore-verify was
    /// released.
    ///
    /// # Errors
    /// If sigstore-verify cannot read its own file.
    pub fn github() -> Result<Self, UnusableRoot> {
        Self::from_json(sigstore_verify::trust_root::SIGSTORE_GITHUB_TRUSTED_ROOT)
    }

    /// Another instance, by its `trusted_root.json`. Everything that the file lists is required: if it lists transparency logs, signatures
    /// have to be in one; if it lists logs of certificates, certificates have to be.
    ///
    /// # Errors
    /// If the file cannot be read, or lists too little to verify anything.
    pub fn from_json(json: &str) -> Result<Self, UnusableRoot> {
        provider::install();
        if json.len() > MAX_ROOT_BYTES {
            return Err(UnusableRoot::TooLarge);
        }
        let root = TrustedRoot::from_json(json).map_err(|error| UnusableRoot::Unreadable(error.to_string()))?;
        if root.certificate_authorities.is_empty() {
            return Err(UnusableRoot::NoAuthority);
        }
        if root.tlogs.is_empty() && root.timestamp_authorities.is_empty() {
            return Err(UnusableRoot::NoTime);
        }
        let verifier = Verifier::new(&root).map_err(|error| UnusableRoot::Unreadable(error.to_string()))?;
        Ok(Self(Arc::new(Inner {
            verifier,
            has_logs: !root.tlogs.is_empty(),
            has_certificate_logs: !root.ctlogs.is_empty(),
        })))
    }

    /// What verifies certificates by these authorities.
    pub(crate) fn verifier(&self) -> &Verifier {
        &self.0.verifier
    }

    /// What is required of a bundle by any signer. The identity is compared afterwards, so that a refusal can name it.
    pub(crate) fn policy(&self) -> VerificationPolicy {
        let mut policy = VerificationPolicy::any_identity();
        if !self.0.has_logs {
            policy = policy.skip_tlog_unsafe();
        }
        if !self.0.has_certificate_logs {
            policy = policy.skip_sct();
        }
        policy
    }

    /// Whether it is the same value, and not only an equal one.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Root").finish_non_exhaustive()
    }
}
