//! What was signed, what came with it, and who signed.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

/// The largest signature that is read, in bytes. Bundles with the provenance of a build have some tens of kilobytes.
pub const MAX_SIGNATURE_BYTES: usize = 1 << 20;
/// The most signatures of one artifact that are read.
pub const MAX_SIGNATURES: usize = 32;
/// How far the clock of a log or of a timestamp authority may be ahead of this machine's.
pub(crate) const MAX_CLOCK_SKEW: Duration = Duration::from_secs(5 * 60);

/// What was signed.
#[derive(Clone, Copy)]
pub struct Artifact<'a> {
    /// The bytes of the component.
    pub component: &'a [u8],
    /// The bytes of the OCI manifest that names the component by its digest, if it came from a registry. The caller has compared the
    /// digest.
    pub manifest: Option<&'a [u8]>,
}

impl<'a> Artifact<'a> {
    /// The bytes that a signature may be for. The manifest comes first, because who signs it vouches for more.
    pub(crate) fn candidates(&self) -> impl Iterator<Item = (Covers, &'a [u8])> + use<'a> {
        let manifest = self.manifest.map(|bytes| (Covers::Manifest, bytes));
        manifest.into_iter().chain([(Covers::Component, self.component)])
    }
}

/// Which bytes a signature is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Covers {
    /// Those of the manifest: the component, and all that the manifest says about it, such as its version.
    Manifest,
    /// Those of the component alone. Nobody vouches for what the manifest says.
    Component,
}

/// A signature that came with a component, as its bytes.
#[derive(Clone, Copy)]
pub enum Signature<'a> {
    /// A sigstore bundle: JSON.
    Bundle(&'a [u8]),
    /// A file of minisign, such as `fetch.wasm.minisig`.
    Minisign(&'a [u8]),
}

impl<'a> Signature<'a> {
    /// Tells a sigstore bundle from a file of minisign by how the bytes begin.
    pub fn of(bytes: &'a [u8]) -> Self {
        match bytes.trim_ascii_start().first() {
            Some(b'{') => Self::Bundle(bytes),
            _ => Self::Minisign(bytes),
        }
    }

    pub(crate) fn bytes(&self) -> &'a [u8] {
        match self {
            Self::Bundle(bytes) | Self::Minisign(bytes) => bytes,
        }
    }
}

/// Who signed. Its text (`Display`) is made to be kept and compared: another text is another signer. It has only visible ASCII characters
/// and single spaces.
///
/// - a key: `key sha256:…`, the digest of its SubjectPublicKeyInfo (DER)
/// - a key of minisign: `minisign RW…`, the key itself
/// - an identity: `SUBJECT, issuer ISSUER`. Where the subject is a workflow at a tag, `refs/tags/*` stands for the tag, so that all releases
///   by one workflow have the same signer. A branch is part of the text, because people may push to one who may not release.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signer(pub(crate) String);

impl Signer {
    /// The text, as `Display` gives it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A signature that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// Who made it.
    pub signer: Signer,
    /// What it is for.
    pub covers: Covers,
    /// When, if a transparency log or a timestamp authority of the operator's proved it: the earliest of the times. Signatures by a key
    /// say nothing about it.
    pub at: Option<SystemTime>,
}
