//! Registries as they are: busy, behind proxies, without an answer to some questions, and with what strangers have attached.

use base64::{Engine, engine::general_purpose::STANDARD};
use e2e::json;

use super::{
    fake::{Fault, Login},
    *,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_registry_and_an_answer_that_breaks_off_are_asked_again() {
    let (folder, registry) = (Folder::new(), Fake::start().await);
    key(&folder, "acme");
    publish(&folder, &registry, "version-a", "tools/v:1.0.0", Some("acme.pem")).await;
    for fault in [Fault::Busy(429), Fault::Busy(503), Fault::CutOnce] {
        registry.fails(fault);
        done(&folder, &["add", &registry.source("tools/v"), "--signer", "key=acme.pub"]).await;
        done(&folder, &["remove", "v"]).await;
    }
    registry.fails(Fault::Busy(429));
    publish(&folder, &registry, "version-b", "tools/v:1.1.0", Some("acme.pem")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_without_a_list_of_signatures_is_no_obstacle_where_none_is_asked_for() {
    let (folder, registry) = (Folder::new(), Fake::start().await);
    key(&folder, "acme");
    registry.lists_no_referrers();
    publish(&folder, &registry, "version-a", "tools/v:1.0.0", Some("acme.pem")).await;
    let digest = fake::sha256(&std::fs::read(folder.join("made/version-a.wasm")).unwrap());
    publish(&folder, &registry, "version-b", "tools/unsigned:1.0.0", None).await;
    let lists = Fake::start().await;
    publish(&folder, &lists, "version-a", "tools/v:1.0.0", Some("acme.pem")).await;
    for (status, body) in [(401, ""), (403, ""), (500, ""), (200, "<html>"), (200, "{}")] {
        lists.fails(Fault::Referrers(status, body));
        let source = lists.source("tools/v");
        done(&folder, &["add", &source, "--digest", &digest]).await;
        done(&folder, &["remove", "v"]).await;
        // Where a signature is asked for, the answer is what is wrong.
        let said = failed(&folder, &["add", &source, "--signer", "key=acme.pub"]).await;
        let expected = if status == 200 { "malformed" } else { &status.to_string() };
        assert!(said.contains(expected), "{status} {body}: {said}");
    }
    // A tag has the list in its place.
    done(&folder, &["add", &registry.source("tools/v"), "--signer", "key=acme.pub"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_attach_to_a_component_neither_helps_nor_hurts() {
    let (folder, registry) = (Folder::new(), Fake::start().await);
    key(&folder, "acme");
    publish(&folder, &registry, "version-a", "tools/v:1.0.0", Some("acme.pem")).await;
    let subject = registry.manifest("tools/v", "1.0.0");
    let bundle = "application/vnd.dev.sigstore.bundle.v0.3+json";
    let attach = |number: usize, layer: &str, size: usize| {
        let mut junk = fake::manifest(bundle, layer, size);
        junk["artifactType"] = bundle.into();
        junk["annotations"] = json!({ "number": number.to_string() });
        junk["subject"] = json!({ "mediaType": "x", "digest": fake::sha256(&subject), "size": subject.len() });
        registry.put_manifest("tools/v", "junk", &junk);
    };
    let junk = registry.put_blob(b"{}");
    for number in 0..60 {
        attach(2 * number, &junk, 2);
        // Nothing is there.
        attach(2 * number + 1, &fake::sha256(number.to_string().as_bytes()), 5);
    }
    attach(1000, &junk, 3);
    attach(1001, "sha256:0", 3);
    done(&folder, &["add", &registry.source("tools/v:1.0.0"), "--signer", "key=acme.pub"]).await;
    done(&folder, &["lock", "verify"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_had_without_a_password_where_both_are_offered() {
    let (folder, registry) = (Folder::new(), Fake::start().await);
    publish(&folder, &registry, "version-a", "tools/v:1.0.0", None).await;
    let digest = fake::sha256(&std::fs::read(folder.join("made/version-a.wasm")).unwrap());
    registry.wants(Login::Either);
    done(&folder, &["add", &registry.source("tools/v"), "--digest", &digest]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_sent_follows_no_redirect_to_another_host() {
    let (folder, registry, elsewhere) = (Folder::new(), Fake::start().await, Fake::start().await);
    publish(&folder, &registry, "version-a", "tools/v:1.0.0", None).await;
    let auth = json!({ "auth": STANDARD.encode("ann:"), "identitytoken": "precious" });
    let docker = json!({ "auths": { registry.address().to_string(): auth } });
    folder.write("home/.docker/config.json", docker.to_string());
    registry.wants(Login::Token("ann", "a long password of a test"));
    registry.fails(Fault::TokenElsewhere(elsewhere.url("/token")));
    let said = failed(&folder, &["add", &registry.source("tools/v"), "--digest", &"00".repeat(32)]).await;
    assert!(said.contains("redirects what is sent to it to another host"), "{said}");
    assert!(elsewhere.seen().is_empty() && registry.seen().iter().any(|(asked, _)| asked == "POST /token"), "{said}");
}
