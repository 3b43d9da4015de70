//! Checks a component's signatures against the signers of the config.

#![expect(
    clippy::disallowed_methods,
    reason = "reads the operator's files of keys and trusted roots, whose permissions are checked"
)]

use std::{path::Path, time::SystemTime};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use wharf_base::{digest::Digest, guard, text};
use wharf_config::config::sources::{MAX_KEY_BYTES, SignerRule, Verdict};
use wharf_trust::{
    Artifact, Covers, MinisignKey, PublicKey, Root, Signature, Signed as By, SignerIdentity, Trusted, Verified, verify,
};

use super::manifest::{Manifest, TITLE, VERSION, digest};

/// The largest signature.
pub const MAX_SIGNATURE_BYTES: u64 = 1 << 20;

/// A signature as it was published; nothing of it is checked yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SignatureFile {
    /// A bundle of sigstore, which is JSON.
    Bundle(String),
    Minisign(String),
}

/// What is checked: a component, with what was published with it.
pub struct Signed<'a> {
    pub component: &'a [u8],
    pub manifest: Option<&'a [u8]>,
    pub signatures: &'a [SignatureFile],
}

/// Reads the keys that signers are known by.
pub fn trusted(rules: &[SignerRule]) -> Result<Vec<Trusted>> {
    rules.iter().map(one).collect()
}

/// What a signer vouches for besides the bytes of a component: what the manifest says about it, if the manifest was signed. A tag is never
/// part of it, because those who may write to a registry choose the tags.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignedAbout {
    pub name: Option<String>,
    pub version: Option<String>,
}

/// Returns what a signature of a component vouches for.
pub fn said(signed: &Signed<'_>, by: &By) -> Result<SignedAbout> {
    let Some(manifest) = signed.manifest.filter(|_| by.covers == Covers::Manifest) else {
        return Ok(SignedAbout::default());
    };
    let mut annotations = Manifest::parse(manifest)?.annotations;
    Ok(SignedAbout { name: annotations.remove(TITLE), version: annotations.remove(VERSION) })
}

/// Returns by which of the rules which signatures of a component count, for its record in the store.
pub fn verdicts(signed: &Signed<'_>, rules: &[SignerRule]) -> Result<Vec<Verdict>> {
    let mut verdicts = Vec::new();
    for rule in rules {
        let Ok(verified) = check(signed, &[one(rule)?]) else { continue };
        for by in verified.all() {
            let SignedAbout { name, version } = said(signed, by)?;
            verdicts.push(Verdict { rule: rule.mark()?, signer: by.signer.to_string(), name, version });
        }
    }
    Ok(verdicts)
}

fn one(rule: &SignerRule) -> Result<Trusted> {
    Ok(match rule {
        SignerRule::Key(path) => {
            Trusted::Key(PublicKey::from_pem(&read(path, "key")?).with_context(|| text::path(path))?)
        }
        SignerRule::Minisign(key) => Trusted::Minisign(MinisignKey::parse(key).context("`minisign`")?),
        SignerRule::Identity { identity, issuer, trusted_root } => {
            let root = match trusted_root {
                Some(path) => Root::from_json(&read(path, "trusted root")?).with_context(|| text::path(path))?,
                None => Root::public()?,
            };
            Trusted::Identity(SignerIdentity::new(identity, issuer, root)?)
        }
    })
}

fn read(path: &Path, what: &str) -> Result<String> {
    guard::check_trusted_file(path, what)?;
    ensure!(std::fs::metadata(path)?.len() <= MAX_KEY_BYTES, "{}: too large for a {what}", text::path(path));
    std::fs::read_to_string(path).with_context(|| format!("{}: cannot be read", text::path(path)))
}

/// Returns the trusted signers of a component: at least one. The error says why each signature does not count.
pub fn check(signed: &Signed<'_>, trusted: &[Trusted]) -> Result<Verified> {
    if let Some(manifest) = signed.manifest {
        let named = Manifest::parse(manifest)?.component()?.sha256()?;
        if named != digest(signed.component) {
            bail!("its manifest names another component, sha256:{named}");
        }
    }
    let signatures: Vec<Signature<'_>> = signed
        .signatures
        .iter()
        .map(|one| match one {
            SignatureFile::Bundle(text) => Signature::Bundle(text.as_bytes()),
            SignatureFile::Minisign(text) => Signature::Minisign(text.as_bytes()),
        })
        .collect();
    let artifact = Artifact { component: signed.component, manifest: signed.manifest };
    Ok(verify(&artifact, &signatures, trusted, SystemTime::now())?)
}

/// The text of a file that may be a signature.
pub fn as_text(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}

/// Whether a digest is the one that the config vouches for. The error says what to write.
pub fn check_vouched(is: &Digest, vouched: &Digest) -> Result<()> {
    ensure!(
        is == vouched,
        "its SHA-256 is {is}, not the `sha256` in the config; if you trust this one, write it there"
    );
    Ok(())
}
