//! Sigstore bundles: signatures of bytes, or of a statement that names their digest; by a key, or by somebody with a certificate.

use std::time::SystemTime;

use sigstore_verify::{
    CertificateError, Error, TimestampError, TransparencyLogError,
    crypto::sha256,
    types::{Bundle, DsseEnvelope, SignatureContent, Statement, bundle::VerificationMaterialContent},
};

use crate::{
    artifact::{Artifact, Signed},
    identity::{self, SignerIdentity},
    key::PublicKey,
    provider,
    refused::Reason,
    root::Root,
    trusted::Trusted,
};

/// The media type of statements.
pub const STATEMENT: &str = "application/vnd.in-toto+json";
/// The type of the statement that `cosign sign` signs.
pub const CLAIM_OF_COSIGN: &str = "https://sigstore.dev/cosign/sign/v1";
/// How the types of statements begin by which a signer says that the artifact is theirs: a signature of cosign's, and the provenance of a
/// build.
const CLAIMS: [&str; 2] = ["https://sigstore.dev/cosign/sign/", "https://slsa.dev/provenance/"];
/// The longest type of a statement, and the longest text of a library, that a reason repeats, in characters.
const MAX_REPEATED: usize = 300;

/// Verifies one bundle: the place of its signer in the operator's list, and when it was signed. No time after `latest` is believed.
pub fn verify(
    artifact: &Artifact<'_>,
    bytes: &[u8],
    trusted: &[Trusted],
    latest: SystemTime,
) -> Result<(usize, Signed), Reason> {
    provider::install();
    let text = std::str::from_utf8(bytes).map_err(|_| Reason::Unreadable("it is not UTF-8".to_owned()))?;
    let bundle = Bundle::from_json(text).map_err(|error| Reason::Unreadable(repeated(&error.to_string())))?;
    if let SignatureContent::DsseEnvelope(envelope) = &bundle.content {
        is_claim(envelope)?;
    }
    match &bundle.verification_material.content {
        VerificationMaterialContent::PublicKey(_) => by_key(artifact, &bundle.content, trusted),
        _ => by_identity(artifact, &bundle, trusted, latest),
    }
}

/// The text of a library or of a bundle, for a reason: shortened, without line breaks or anything else that a terminal obeys.
fn repeated(text: &str) -> String {
    text.chars()
        .take(MAX_REPEATED)
        .flat_map(char::escape_default)
        .collect::<String>()
        .replace("\\\"", "\"")
        .replace("\\'", "'")
}

/// Refuses statements that do not say who made the artifact. The report of a scan is signed by who scanned.
fn is_claim(envelope: &DsseEnvelope) -> Result<(), Reason> {
    let statement = statement(envelope)?;
    if CLAIMS.iter().any(|claim| statement.predicate_type.starts_with(claim)) {
        Ok(())
    } else {
        Err(Reason::OtherStatement(repeated(&statement.predicate_type)))
    }
}

fn statement(envelope: &DsseEnvelope) -> Result<Statement, Reason> {
    if envelope.payload_type != STATEMENT {
        return Err(Reason::Unreadable(format!("it signs a `{}`, not a statement", repeated(&envelope.payload_type))));
    }
    serde_json::from_slice(envelope.payload.as_bytes())
        .map_err(|error| Reason::Unreadable(repeated(&error.to_string())))
}

/// Verifies a signature by a key. Bundles contain no key, only a hint, which anybody can write: the operator's keys are tried.
fn by_key(artifact: &Artifact<'_>, content: &SignatureContent, trusted: &[Trusted]) -> Result<(usize, Signed), Reason> {
    let keys = || {
        trusted.iter().enumerate().filter_map(|(place, one)| match one {
            Trusted::Key(key) => Some((place, key)),
            _ => None,
        })
    };
    let by = |(place, key): (usize, &PublicKey), covers| (place, Signed { signer: key.signer(), covers, at: None });
    match content {
        SignatureContent::MessageSignature(message) => {
            let made = |one: (usize, &PublicKey)| {
                let found = artifact.candidates().find(|(_, bytes)| one.1.made(bytes, &message.signature));
                found.map(|(covers, _)| by(one, covers))
            };
            keys().find_map(made).ok_or(Reason::OtherKey)
        }
        SignatureContent::DsseEnvelope(envelope) => {
            let signed = envelope.pae();
            let key = keys().find(|(_, key)| key.made(&signed, &envelope.signature.sig)).ok_or(Reason::OtherKey)?;
            let statement = statement(envelope)?;
            let named = artifact.candidates().find(|(_, bytes)| statement.matches_sha256(&sha256(bytes)));
            named.map(|(covers, _)| by(key, covers)).ok_or(Reason::OtherArtifact)
        }
        _ => Err(Reason::Unreadable("it is of an unknown form".to_owned())),
    }
}

/// Verifies a signature by somebody with a certificate, by each instance of sigstore that the operator relies on.
fn by_identity(
    artifact: &Artifact<'_>,
    bundle: &Bundle,
    trusted: &[Trusted],
    latest: SystemTime,
) -> Result<(usize, Signed), Reason> {
    let identities = || {
        trusted.iter().enumerate().filter_map(|(place, one)| match one {
            Trusted::Identity(identity) => Some((place, identity)),
            _ => None,
        })
    };
    let mut roots: Vec<&Root> = Vec::new();
    for (_, identity) in identities() {
        if !roots.iter().any(|root| root.is(identity.root())) {
            roots.push(identity.root());
        }
    }
    let mut reason = Reason::OnlyKeys;
    for root in roots {
        let of_root = identities().filter(|(_, identity)| identity.root().is(root));
        match by_root(artifact, bundle, root, of_root, latest) {
            Ok(found) => return Ok(found),
            // One instance knows who signed, so what the others say is that they do not know this certificate.
            Err(signer @ Reason::OtherSigner(_)) => reason = signer,
            Err(_) if matches!(reason, Reason::OtherSigner(_)) => {}
            Err(other) => reason = other,
        }
    }
    Err(reason)
}

fn by_root<'a>(
    artifact: &Artifact<'_>,
    bundle: &Bundle,
    root: &Root,
    mut identities: impl Iterator<Item = (usize, &'a SignerIdentity)>,
    latest: SystemTime,
) -> Result<(usize, Signed), Reason> {
    let policy = root.policy();
    let mut outcome = Err(Reason::OtherArtifact);
    for (covers, bytes) in artifact.candidates() {
        match root.verifier().verify(bytes, bundle, &policy) {
            Ok(result) => outcome = Ok((covers, result)),
            Err(Error::ArtifactMismatch(_)) => continue,
            Err(error) => outcome = Err(reason(error)),
        }
        break;
    }
    let (covers, result) = outcome?;
    // All of these follow from the policy; without one of them, nothing below would be worth anything.
    let (true, Some(subject), Some(issuer)) = (result.certificate_verified(), result.identity(), result.issuer())
    else {
        return Err(Reason::Unreadable("its certificate names no e-mail address or URI, or no issuer".to_owned()));
    };
    let times: Vec<SystemTime> = result.verified_timestamps().iter().map(|time| SystemTime::from(*time)).collect();
    if let Some(time) = times.iter().find(|time| **time > latest) {
        return Err(Reason::early(*time, latest));
    }
    let signer = identity::signer(subject, issuer);
    match identities.find(|(_, identity)| identity.matches(subject, issuer)) {
        Some((place, _)) => Ok((place, Signed { signer, covers, at: times.into_iter().min() })),
        None => Err(Reason::OtherSigner(signer)),
    }
}

/// What an error of the library means to an operator.
fn reason(error: Error) -> Reason {
    let text = repeated(&error.to_string());
    match error {
        Error::Certificate(CertificateError::Expired { .. } | CertificateError::NotYetValid { .. }) => {
            Reason::Expired(text)
        }
        Error::Certificate(CertificateError::NoValidAuthority { .. }) => Reason::Expired(text),
        // webpki looks at the time as well, and the library passes on what it says as text alone.
        Error::Certificate(CertificateError::ChainInvalid(why))
            if why.contains("Expired") || why.contains("NotValidYet") =>
        {
            Reason::Expired(text)
        }
        Error::Timestamp(TimestampError::OutsideAuthorityValidity { .. }) => Reason::Expired(text),
        Error::Timestamp(TimestampError::NoVerifiedTimestamp(_)) => {
            Reason::Expired("nothing proves that its certificate was valid when it was used".to_owned())
        }
        Error::TransparencyLog(TransparencyLogError::IntegratedTime(_)) => Reason::Expired(text),
        Error::InvalidBundle(_)
        | Error::UnsupportedBundle(_)
        | Error::UnsupportedArtifact(_)
        | Error::Types(_)
        | Error::Bundle(_) => Reason::Unreadable(text),
        _ => Reason::Forged(text),
    }
}
