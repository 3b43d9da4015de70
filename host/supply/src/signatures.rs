//! The signatures that refer to a manifest in a registry. Everybody who may write to the registry can attach anything, so what is attached
//! besides the right signature must neither help nor hurt: each is looked at by itself, and one that cannot be fetched is left out.

use std::slice;

use anyhow::{Context, Result};
use bytes::Bytes;
use wharf_base::digest::Digest;
use wharf_trust::Trusted;

use super::{
    manifest::{Descriptor, Manifest},
    registry::Repository,
    trust::{MAX_SIGNATURE_BYTES, SignatureFile, Signed, as_text, check},
};

/// The beginning of the media types of sigstore bundles.
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle";
/// How many artifacts are looked at: these, and up to the second number as long as the signature of a trusted signer is missing.
const USUAL: usize = 32;
const MAX: usize = 512;
/// How many signatures that do not count are kept, to say why.
const MAX_OTHERS: usize = 8;
/// How many signatures that count are kept.
const MAX_COUNTED: usize = 16;

/// Fetches the sigstore bundles that refer to a manifest: those by trusted signers, and some others.
pub async fn attached(
    repository: &Repository<'_>,
    subject: &Digest,
    (component, manifest): (&Bytes, &Bytes),
    trusted: &[Trusted],
) -> Result<Vec<SignatureFile>> {
    if trusted.is_empty() {
        return Ok(Vec::new());
    }
    let mut referrers = repository.referrers(subject).await?;
    let is_bundle = |one: &Descriptor| one.artifact_type.as_deref().map(|kind| kind.starts_with(BUNDLE));
    referrers.retain(|one| is_bundle(one) != Some(false));
    // Some registries do not say what is attached.
    referrers.sort_by_key(|one| is_bundle(one).is_none());
    let (mut counted, mut others, mut problem) = (Vec::new(), Vec::new(), None);
    let mut missing: Vec<&Trusted> = trusted.iter().collect();
    for (index, referrer) in referrers.iter().take(MAX).enumerate() {
        if counted.len() >= MAX_COUNTED || index >= USUAL && missing.is_empty() {
            break;
        }
        let bundles = bundles(repository, referrer).await;
        for bundle in bundles.unwrap_or_else(|error| {
            problem.get_or_insert(error);
            Vec::new()
        }) {
            let signed = Signed { component, manifest: Some(manifest), signatures: slice::from_ref(&bundle) };
            let before = missing.len();
            missing.retain(|one| check(&signed, slice::from_ref(one)).is_err());
            if missing.len() < before || check(&signed, trusted).is_ok() {
                counted.push(bundle);
            } else if others.len() < MAX_OTHERS {
                others.push(bundle);
            }
        }
    }
    if let (Some(problem), true) = (problem, counted.is_empty() && others.is_empty()) {
        return Err(problem.context("what is attached to it cannot be fetched"));
    }
    counted.extend(others);
    Ok(counted)
}

/// Fetches the bundles of one artifact. What is not a bundle, or too large, is not a signature.
async fn bundles(repository: &Repository<'_>, referrer: &Descriptor) -> Result<Vec<SignatureFile>> {
    let bytes = repository.referrer(referrer).await?.context("an artifact is listed and is not there")?;
    let manifest = Manifest::parse(&bytes)?;
    let is_bundle = |layer: &&Descriptor| layer.media_type.starts_with(BUNDLE) && layer.size <= MAX_SIGNATURE_BYTES;
    let mut bundles = Vec::new();
    // An artifact that is a signature has one layer.
    if let Some(layer) = manifest.layers.iter().find(is_bundle) {
        bundles.extend(as_text(&repository.blob(layer, &|_| {}).await?).map(SignatureFile::Bundle));
    }
    Ok(bundles)
}
