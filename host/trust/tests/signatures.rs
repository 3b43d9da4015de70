//! Tables of signatures: good ones, which count, and hostile ones, which do not, each with what an operator reads. The signatures are
//! recorded in `tests/data`; with `WHARF_SIGNATURES=FOLDER`, those in that folder are used, which `cargo xtask check signatures` makes.

#![expect(clippy::disallowed_methods, reason = "the tests read what is recorded")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};
use wharf_trust::{
    Artifact, MAX_SIGNATURE_BYTES, MAX_SIGNATURES, MinisignKey, PublicKey, Reason, Refused, Root, Signature,
    SignerIdentity, SigningKey, Trusted, Verified, verify,
};

const WORKFLOW: &str = "https://github.com/acme/fetch/.github/workflows/release.yml";
const ISSUER: &str = "https://token.actions.githubusercontent.com";

/// The folder with what is recorded.
fn recorded() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

/// What `make.mjs` made.
fn made(name: &str) -> Vec<u8> {
    let folder = std::env::var_os("WHARF_SIGNATURES").map_or_else(recorded, PathBuf::from);
    fs::read(folder.join(name)).unwrap()
}

fn text(name: &str) -> String {
    String::from_utf8(made(name)).unwrap()
}

fn root(name: &str) -> Root {
    Root::from_json(&text(name)).unwrap()
}

fn identity(subject: &str, root: Root) -> Trusted {
    Trusted::Identity(SignerIdentity::new(subject, ISSUER, root).unwrap())
}

/// The releases of the workflow, by the authorities that `make.mjs` made.
fn releases() -> Trusted {
    identity(&format!("{WORKFLOW}@refs/tags/*"), root("root.json"))
}

/// Verifies signatures of the component and its manifest, now.
fn check(signatures: &[Signature<'_>], trusted: &[Trusted]) -> Result<Verified, Refused> {
    let (component, manifest) = (made("component"), made("manifest.json"));
    verify(&Artifact { component: &component, manifest: Some(&manifest) }, signatures, trusted, SystemTime::now())
}

/// Verifies one bundle.
fn bundle(bytes: &[u8], trusted: &[Trusted]) -> Result<Verified, Refused> {
    check(&[Signature::Bundle(bytes)], trusted)
}

fn reason(refused: Result<Verified, Refused>) -> Reason {
    refused.unwrap_err().reasons().next().unwrap().clone()
}

/// A bundle after a change to its JSON.
fn changed(name: &str, change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut value = serde_json::from_slice(&made(name)).unwrap();
    change(&mut value);
    serde_json::to_vec(&value).unwrap()
}

/// Changes the last but one base64 digit before the padding, which leaves a text of the same length.
fn flip(value: &mut Value) {
    let text = value.as_str().unwrap();
    let at = text.trim_end_matches('=').len() - 2;
    let other = if text.as_bytes()[at] == b'A' { "B" } else { "A" };
    *value = json!(format!("{}{other}{}", &text[..at], &text[at + 1..]));
}

fn private_key(kind: &str) -> &'static str {
    match kind {
        "P-256" => include_str!("data/p256.pem"),
        _ => include_str!("data/ed25519.pem"),
    }
}

#[test]
fn signatures_by_a_trusted_identity_count() {
    let releases = || vec![releases()];
    let main = || vec![identity(&format!("{WORKFLOW}@refs/heads/main"), root("root.json"))];
    let owner = || vec![identity("https://github.com/acme/*", root("root.json"))];
    let exact = || vec![identity(&format!("{WORKFLOW}@refs/tags/v1.2.0"), root("root.json"))];
    let times = || vec![identity(&format!("{WORKFLOW}@refs/tags/*"), root("root-times.json"))];
    let tags = format!("{WORKFLOW}@refs/tags/*, issuer {ISSUER}");
    let branch = format!("{WORKFLOW}@refs/heads/main, issuer {ISSUER}");
    for (name, trusted, signer) in [
        ("component.json", releases(), &tags),
        ("component.json", owner(), &tags),
        ("component.json", exact(), &tags),
        ("manifest-message.json", releases(), &tags),
        ("manifest-statement.json", releases(), &tags),
        ("provenance.json", releases(), &tags),
        // Another release by the same workflow has the same signer; a branch is another one.
        ("next-release.json", releases(), &tags),
        ("branch.json", main(), &branch),
        ("branch.json", owner(), &branch),
        ("log-only.json", releases(), &tags),
        // Where the authorities have no log, none is asked for.
        ("time-only.json", times(), &tags),
    ] {
        let verified = bundle(&made(name), &trusted).unwrap_or_else(|refused| panic!("{name}: {refused}"));
        assert_eq!(verified.first().signer.as_str(), signer, "{name}");
        let at = verified.first().at.unwrap_or_else(|| panic!("{name}: no time"));
        assert!(
            at <= SystemTime::now() && at > SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000),
            "{name}: {at:?}"
        );
    }
}

#[test]
fn signatures_by_somebody_else_are_refused_with_their_name() {
    let refused = |name: &str| bundle(&made(name), &[releases()]).unwrap_err().to_string();
    let evil = WORKFLOW.replace("acme", "evil");
    let trusted = format!("\ntrusted: {WORKFLOW}@refs/tags/*, issuer {ISSUER}");
    let by = |signer: &str| format!("its signature does not count: it is by {signer}, who is not trusted{trusted}");
    assert_eq!(refused("other-subject.json"), by(&format!("{evil}@refs/tags/*, issuer {ISSUER}")));
    assert_eq!(refused("other-issuer.json"), by(&format!("{WORKFLOW}@refs/tags/*, issuer https://login.example")));
    assert_eq!(refused("branch.json"), by(&format!("{WORKFLOW}@refs/heads/main, issuer {ISSUER}")));
    // An exact tag is that tag alone, although the signer of all tags has one text.
    let exact = identity(&format!("{WORKFLOW}@refs/tags/v1.2.0"), root("root.json"));
    assert!(matches!(reason(bundle(&made("next-release.json"), &[exact])), Reason::OtherSigner(_)));
}

#[test]
fn other_artifacts_and_other_statements_are_refused() {
    let refused = |name: &str| reason(bundle(&made(name), &[releases()]));
    assert_eq!(refused("other-artifact.json"), Reason::OtherArtifact);
    assert_eq!(refused("other-statement-subject.json"), Reason::OtherArtifact);
    assert_eq!(
        refused("scan.json"),
        Reason::OtherStatement("https://cosign.sigstore.dev/attestation/vuln/v1".to_owned())
    );
    // A signature of the manifest says nothing if the component did not come with it.
    let (component, signature) = (made("component"), made("manifest-message.json"));
    let alone = Artifact { component: &component, manifest: None };
    let refused = verify(&alone, &[Signature::Bundle(&signature)], &[releases()], SystemTime::now());
    assert_eq!(reason(refused), Reason::OtherArtifact);
}

#[test]
fn certificates_that_were_not_valid_or_have_no_proof_of_it_are_refused() {
    let trusted = [releases()];
    let expired = reason(bundle(&made("expired.json"), &trusted));
    assert!(matches!(expired, Reason::Expired(_)), "{expired}");
    // By authorities with timestamps alone, a bundle without them has nothing that says when it was signed.
    let times = [identity(&format!("{WORKFLOW}@refs/tags/*"), root("root-times.json"))];
    assert!(matches!(reason(bundle(&made("log-only.json"), &times)), Reason::Forged(_) | Reason::Expired(_)));
    let untimed = changed("time-only.json", |bundle| {
        bundle["verificationMaterial"]["timestampVerificationData"] = json!({});
    });
    assert!(matches!(reason(bundle(&untimed, &times)), Reason::Unreadable(_) | Reason::Expired(_)));
    // By authorities with a log, one who leaves it out is refused.
    assert!(matches!(reason(bundle(&made("time-only.json"), &trusted)), Reason::Unreadable(_)));
}

#[test]
fn a_time_in_the_future_is_refused() {
    let (component, signature) = (made("component"), made("time-only.json"));
    let trusted = [identity(&format!("{WORKFLOW}@refs/tags/*"), root("root-times.json"))];
    let artifact = Artifact { component: &component, manifest: None };
    let at = |now| verify(&artifact, &[Signature::Bundle(&signature)], &trusted, now);
    let signed = at(SystemTime::now()).unwrap().first().at.unwrap();
    // Clocks differ a little, not by an hour.
    at(signed - Duration::from_secs(60)).unwrap();
    assert_eq!(reason(at(signed - Duration::from_secs(3600))), Reason::Early(Duration::from_secs(3600)));
    // This one was signed a day after it was made.
    let early = made("early.json");
    let refused = verify(&artifact, &[Signature::Bundle(&early)], &trusted, signed);
    assert_eq!(reason(refused), Reason::Early(Duration::from_secs(24 * 3600)));
}

#[test]
fn forged_bundles_are_refused() {
    let evil = made("other-instance.json");
    let evil: Value = serde_json::from_slice(&evil).unwrap();
    let other: Value = serde_json::from_slice(&made("other-subject.json")).unwrap();
    let of = |value: &Value, path: &str| value.pointer(path).unwrap().clone();
    const CERTIFICATE: &str = "/verificationMaterial/x509CertificateChain/certificates/0";
    const LOG: &str = "/verificationMaterial/tlogEntries";
    const TIMES: &str = "/verificationMaterial/timestampVerificationData";
    let put = |path: &'static str, value: Value| {
        move |bundle: &mut Value| {
            *bundle.pointer_mut(path).unwrap() = value;
        }
    };
    let flipped = |path: &'static str| move |bundle: &mut Value| flip(bundle.pointer_mut(path).unwrap());
    type Change<'a> = Box<dyn FnOnce(&mut Value) + 'a>;
    let changes: Vec<(&str, &str, Change<'_>)> = vec![
        ("the signature", "component.json", Box::new(flipped("/messageSignature/signature"))),
        (
            "the certificate",
            "component.json",
            Box::new(flipped("/verificationMaterial/x509CertificateChain/certificates/0/rawBytes")),
        ),
        (
            "the log's promise",
            "component.json",
            Box::new(flipped("/verificationMaterial/tlogEntries/0/inclusionPromise/signedEntryTimestamp")),
        ),
        (
            "the log's body",
            "component.json",
            Box::new(flipped("/verificationMaterial/tlogEntries/0/canonicalizedBody")),
        ),
        (
            "the log's time",
            "component.json",
            Box::new(put("/verificationMaterial/tlogEntries/0/integratedTime", json!("1700000000"))),
        ),
        (
            "the timestamp",
            "component.json",
            Box::new(flipped("/verificationMaterial/timestampVerificationData/rfc3161Timestamps/0/signedTimestamp")),
        ),
        ("the statement's signature", "manifest-statement.json", Box::new(flipped("/dsseEnvelope/signatures/0/sig"))),
        ("the statement", "other-statement-subject.json", {
            let payload =
                of(&serde_json::from_slice(&made("manifest-statement.json")).unwrap(), "/dsseEnvelope/payload");
            Box::new(put("/dsseEnvelope/payload", payload))
        }),
        // A good signature by somebody else, with the certificate of who is trusted, and the other way round.
        ("the certificate swapped", "other-subject.json", {
            Box::new(put(CERTIFICATE, of(&serde_json::from_slice(&made("component.json")).unwrap(), CERTIFICATE)))
        }),
        ("the certificate of another", "component.json", Box::new(put(CERTIFICATE, of(&other, CERTIFICATE)))),
        ("the log entry of another", "component.json", Box::new(put(LOG, of(&other, LOG)))),
        ("the times of another", "component.json", Box::new(put(TIMES, of(&other, TIMES)))),
        ("a certificate of another instance", "component.json", Box::new(put(CERTIFICATE, of(&evil, CERTIFICATE)))),
    ];
    for (what, name, change) in changes {
        let bytes = changed(name, change);
        let refused = bundle(&bytes, &[releases()]);
        assert!(refused.is_err(), "{what}: {refused:?}");
        let reason = reason(refused);
        assert!(matches!(reason, Reason::Forged(_) | Reason::Expired(_) | Reason::Unreadable(_)), "{what}: {reason:?}");
    }
    // Everything of it is in order, at an instance that the operator does not rely on.
    let refused = reason(bundle(&made("other-instance.json"), &[releases()]));
    assert!(matches!(refused, Reason::Forged(_) | Reason::Expired(_)), "{refused:?}");
    bundle(&made("other-instance.json"), &[identity(&format!("{WORKFLOW}@refs/tags/*"), root("root-other.json"))])
        .unwrap();
}

#[test]
fn what_is_no_bundle_is_unreadable() {
    let good = made("component.json");
    let version = |media: &str| changed("component.json", |bundle| bundle["mediaType"] = json!(media));
    let deep = "[".repeat(MAX_SIGNATURE_BYTES - 1);
    for (what, bytes) in [
        ("nothing", Vec::new()),
        ("truncated", good[..good.len() / 2].to_vec()),
        ("another media type", version("application/vnd.dev.sigstore.bundle.v9+json")),
        ("no media type", version("")),
        ("other JSON", b"{}".to_vec()),
        ("not UTF-8", vec![b'{', 0xff]),
        ("deep", deep.into_bytes()),
        ("no key", changed("component.json", |bundle| bundle["verificationMaterial"] = json!({}))),
        (
            "no signature",
            changed("component.json", |bundle| drop(bundle.as_object_mut().unwrap().remove("messageSignature"))),
        ),
    ] {
        let reason = reason(bundle(&bytes, &[releases()]));
        assert!(matches!(reason, Reason::Unreadable(_)), "{what}: {reason:?}");
        assert!(reason.to_string().len() < 1000 && !reason.to_string().contains(char::is_control), "{what}: {reason}");
    }
    let huge = changed("component.json", |bundle| bundle["x"] = json!(" ".repeat(MAX_SIGNATURE_BYTES)));
    assert_eq!(reason(bundle(&huge, &[releases()])), Reason::TooLarge);
}

#[test]
fn a_signature_that_does_not_count_spoils_none_that_does() {
    let (good, evil, scan) = (made("component.json"), made("other-subject.json"), made("scan.json"));
    let (good, evil) = (Signature::Bundle(&good), Signature::Bundle(&evil));
    let others = [evil, Signature::Bundle(b"{"), Signature::Minisign(b"x"), Signature::Bundle(&scan)];
    for signatures in [[&others[..], &[good]].concat(), [&[good], &others[..]].concat()] {
        assert_eq!(check(&signatures, &[releases()]).unwrap().all().count(), 1);
        let refused = check(&signatures, &[]).unwrap_err();
        assert_eq!(refused.reasons().count(), 5);
        assert!(refused.to_string().ends_with("\nno signer is trusted"), "{refused}");
    }
    // However many others are attached, the work is bounded.
    let flood = [vec![evil; MAX_SIGNATURES], vec![good]].concat();
    let reasons: Vec<_> = check(&flood, &[releases()]).unwrap_err().reasons().cloned().collect();
    assert_eq!(reasons.last(), Some(&Reason::TooMany));
    assert!(check(&[], &[releases()]).unwrap_err().is_unsigned());
    // Who signed twice is one signer; all are listed in the operator's order.
    let key = SigningKey::from_pem(private_key("P-256")).unwrap();
    let by_key = key.sign(&made("component")).unwrap();
    let by_key = Signature::Bundle(by_key.as_bytes());
    let trusted = [releases(), Trusted::Key(key.public_key().clone())];
    let verified = check(&[by_key, good, evil, good, by_key], &trusted).unwrap();
    let signers: Vec<_> = verified.all().map(|signed| signed.signer.as_str()).collect();
    assert_eq!(signers, [trusted[0].to_string(), trusted[1].to_string()]);
    assert!(verified.by(signers[1]).is_some() && verified.by("somebody").is_none());
}

#[test]
fn keys_sign_and_are_verified() {
    for kind in ["P-256", "Ed25519"] {
        let key = SigningKey::from_pem(private_key(kind)).unwrap();
        let trusted = [Trusted::Key(key.public_key().clone())];
        for bytes in ["component", "manifest.json"] {
            let signature = key.sign(&made(bytes)).unwrap();
            let verified = bundle(signature.as_bytes(), &trusted).unwrap();
            assert_eq!(verified.first().signer, key.public_key().signer());
            assert_eq!(verified.first().at, None);
        }
        let statement = key.sign_manifest(&made("manifest.json")).unwrap();
        assert_eq!(bundle(statement.as_bytes(), &trusted).unwrap().first().signer, key.public_key().signer());

        // Other bytes, other keys, and signatures that somebody changed.
        let elsewhere = key.sign(b"something else").unwrap();
        assert_eq!(reason(bundle(elsewhere.as_bytes(), &trusted)), Reason::OtherKey);
        let elsewhere = key.sign_manifest(b"something else").unwrap();
        assert_eq!(reason(bundle(elsewhere.as_bytes(), &trusted)), Reason::OtherArtifact);
        let mut forged: Value = serde_json::from_str(&statement).unwrap();
        flip(forged.pointer_mut("/dsseEnvelope/signatures/0/sig").unwrap());
        assert_eq!(reason(bundle(forged.to_string().as_bytes(), &trusted)), Reason::OtherKey);
        let other = SigningKey::from_pem(private_key(if kind == "P-256" { "Ed25519" } else { "P-256" })).unwrap();
        let other = [Trusted::Key(other.public_key().clone()), releases()];
        assert_eq!(reason(bundle(statement.as_bytes(), &other)), Reason::OtherKey);
        // The hint is for people; who writes another one gains nothing.
        let mut hinted: Value = serde_json::from_str(&elsewhere).unwrap();
        hinted["verificationMaterial"]["publicKey"]["hint"] = json!("trusted");
        assert!(bundle(hinted.to_string().as_bytes(), &trusted).is_err());
        // With keys alone, a certificate is not looked at.
        assert_eq!(reason(bundle(&made("component.json"), &trusted)), Reason::OnlyKeys);
    }
}

#[test]
fn minisign_is_verified() {
    let read = |name: &str| fs::read(recorded().join("minisign").join(name)).unwrap();
    // These were recorded with the component and the manifest of `tests/data`.
    let own = |name: &str| fs::read(recorded().join(name)).unwrap();
    let (component, manifest) = (own("component"), own("manifest.json"));
    let artifact = Artifact { component: &component, manifest: Some(&manifest) };
    let key = MinisignKey::parse(&String::from_utf8(read("key.pub")).unwrap()).unwrap();
    let trusted = [releases(), Trusted::Minisign(key.clone())];
    let check = |bytes: &[u8]| verify(&artifact, &[Signature::of(bytes)], &trusted, SystemTime::now());
    for name in ["component.minisig", "manifest.minisig"] {
        let verified = check(&read(name)).unwrap();
        assert_eq!(verified.first().signer, key.signer());
        assert_eq!(verified.first().at, None, "what the comment says is not proven");
    }
    assert_eq!(reason(check(&read("other.minisig"))), Reason::OtherKey);
    assert!(matches!(reason(check(&read("legacy.minisig"))), Reason::Unreadable(_)));
    let comment = String::from_utf8(read("component.minisig"))
        .unwrap()
        .replace("trusted comment: component", "trusted comment: newer");
    assert!(matches!(reason(check(comment.as_bytes())), Reason::Forged(_)));
    let other = Artifact { component: b"something else", manifest: None };
    let refused = verify(&other, &[Signature::of(&read("component.minisig"))], &trusted, SystemTime::now());
    assert!(matches!(reason(refused), Reason::Forged(_)));
    for (what, bytes) in [
        ("nothing", ""),
        ("text", "untrusted comment: x\nRW\ntrusted comment: y\nz"),
        ("short", "untrusted comment: x"),
    ] {
        assert!(matches!(reason(check(bytes.as_bytes())), Reason::Unreadable(_)), "{what}");
    }
    assert_eq!(MinisignKey::parse(&key.to_string().replace("minisign ", "")).unwrap(), key);
    for text in ["", "RW", "untrusted comment: minisign public key\n", "RWQ\nRWQ"] {
        assert!(MinisignKey::parse(text).is_err(), "{text}");
    }
}

#[test]
fn keys_that_are_something_else_are_refused_in_words() {
    let public = |pem: &str| PublicKey::from_pem(pem).unwrap_err().to_string();
    assert!(public(private_key("P-256")).contains("this is a private key"));
    assert!(public("RWQ").contains("-----BEGIN PUBLIC KEY-----"));
    let rsa = include_str!("data/rsa.pub");
    assert!(public(rsa).contains("ECDSA on P-256"), "{}", public(rsa));
    let private = |pem: &str| SigningKey::from_pem(pem).unwrap_err().to_string();
    assert!(
        private("-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\nAA==\n-----END ENCRYPTED SIGSTORE PRIVATE KEY-----")
            .contains("cosign")
    );
    assert!(private("-----BEGIN EC PRIVATE KEY-----\nAA==\n-----END EC PRIVATE KEY-----").contains("openssl pkcs8"));
    assert!(private(rsa).contains("-----BEGIN PRIVATE KEY-----"));
    assert!(private("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----").contains("damaged"));
    let debug = format!("{:?}", SigningKey::from_pem(private_key("Ed25519")).unwrap());
    assert!(debug.starts_with("the private key of key sha256:"), "{debug}");
}

#[test]
fn authorities_are_checked_when_they_are_read() {
    Root::public().unwrap();
    Root::github().unwrap();
    let without = |keys: &[&str]| {
        let mut json: Value = serde_json::from_str(&text("root.json")).unwrap();
        keys.iter().for_each(|key| json[*key] = json!([]));
        Root::from_json(&json.to_string()).unwrap_err().to_string()
    };
    assert!(without(&["certificateAuthorities"]).contains("vouches for nobody"));
    assert!(without(&["tlogs", "timestampAuthorities"]).contains("nothing proves"));
    assert!(Root::from_json("{}").is_err() && Root::from_json("").is_err());
    assert!(Root::from_json(&" ".repeat(2 << 20)).unwrap_err().to_string().contains("1 MiB"));
}
