//! A registry that lies, fails or never ends: each is an error in words, the last good version is served, and nothing unfinished is loaded.

use std::time::Duration;

use e2e::{PATIENCE, Pipe, json, text};
use tokio::time::timeout;

use super::{fake::*, *};

#[tokio::test(flavor = "multi_thread")]
async fn each_fault_is_an_error_in_words_and_the_last_good_version_is_served() {
    let (folder, registry) = (Folder::new(), Fake::start().await);
    key(&folder, "acme");
    publish(&folder, &registry, "version-a", "tools/v:1.0.0", Some("acme.pem")).await;
    done(&folder, &["add", &registry.source("tools/v"), "--signer", "key=acme.pub"]).await;
    let (locked, had) = (lock(&folder), stored(&folder));
    publish(&folder, &registry, "version-b", "tools/v:1.1.0", Some("acme.pem")).await;
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy("2025-11-25", json!({})).await;
    for (fault, said) in [
        (Fault::CutBlob, "broke off"),
        (Fault::OtherBlob, "has another digest"),
        (Fault::HugeManifest, "more than 4194304 bytes"),
        (Fault::Page, "is not JSON"),
        (Fault::Status(500), "500"),
        (Fault::Status(403), "403"),
        (Fault::Redirect(registry.url("/v2/tools/v/blobs/{}")), "redirects more than"),
        (Fault::Redirect("ftp://files.example/x".into()), "not a URL"),
        (Fault::Redirect(registry.url("/elsewhere/nothing")), "404"),
    ] {
        registry.fails(fault.clone());
        let printed = failed(&folder, &["update"]).await;
        assert!(printed.contains(said), "{fault:?}: {printed}");
        assert_eq!((lock(&folder), stored(&folder)), (locked.clone(), had.clone()), "{fault:?}");
    }
    assert_eq!(text(&pipe.call("v_version", json!({})).await), "a");

    // A blob may be elsewhere.
    registry.fails(Fault::Redirect(registry.url("/elsewhere/{}")));
    let printed = failed(&folder, &["update"]).await;
    assert!(printed.contains("tool \"fresh\" is new"), "{printed}");
    registry.fails(None);

    // A manifest that was exchanged for one of the same name.
    std::fs::remove_dir_all(folder.home().join(".local/share/wharf/store")).unwrap();
    registry.fails(Fault::OtherManifest);
    let printed = failed(&folder, &["lock", "fetch"]).await;
    assert!(printed.contains("a manifest of another digest"), "{printed}");
    assert!(stored(&folder).is_empty());
}

/// It takes the half minute that a registry may send nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_download_that_stops_halfway_ends_in_an_error() {
    let (folder, registry) = (Folder::new(), Fake::start().await);
    let component = std::fs::read(e2e::plugin("version-a")).unwrap();
    let digest = registry.put_blob(&component);
    registry.put_manifest("x", "1.0.0", &manifest("application/wasm", &digest, component.len()));
    registry.fails(Fault::HalfBlob);
    let add = ["add", &registry.source("x:1.0.0"), "--digest", &digest];
    let ended = timeout(PATIENCE + Duration::from_secs(30), folder.command(&add, &[]).output()).await.unwrap().unwrap();
    assert!(!ended.status.success());
    let printed = stderr(&ended);
    assert!(printed.contains("nothing of it came for 30 s"), "{printed}");
    assert!(!folder.join(CONFIG).exists() && lock(&folder).is_empty() && stored(&folder).is_empty());
    registry.fails(None);
    done(&folder, &add).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn artifacts_that_are_not_components_are_refused() {
    let (folder, registry) = (Folder::new(), Fake::start().await);
    let bomb = registry.put_blob(b"\x1f\x8b");
    let text_digest = registry.put_blob(b"not a component");
    let size = 15;
    for (name, manifest, said) in [
        ("archive", manifest("application/vnd.oci.image.layer.v1.tar+gzip", &bomb, 2), "not a component"),
        ("large", manifest("application/wasm", &bomb, 129 << 20), "at most 134217728"),
        ("other", manifest("application/wasm", &text_digest, size), "not WebAssembly"),
        ("absent", manifest("application/wasm", &sha256(b"?"), 1), "404"),
        ("sha512", manifest("application/wasm", "sha512:00", 1), "is not a SHA-256"),
        ("short", manifest("application/wasm", &text_digest, size + 1), "has 15 bytes in place of 16"),
        ("longer", manifest("application/wasm", &text_digest, size - 1), "more than 14 bytes"),
        ("index", json!({ "schemaVersion": 2, "manifests": [] }), "several artifacts"),
    ] {
        registry.put_manifest("x", name, &manifest);
        let printed = failed(&folder, &["add", &registry.source(&format!("x:{name}")), "--digest", &text_digest]).await;
        assert!(printed.contains(said), "{name}: {printed}");
    }
    assert!(!folder.join(CONFIG).exists(), "nothing was written");
    let printed = failed(&folder, &["add", &registry.source("x"), "--digest", &text_digest]).await;
    assert!(printed.contains("has no tag that is a version"), "{printed}");
    let printed = failed(&folder, &["add", &registry.source("missing:1.0.0"), "--digest", &text_digest]).await;
    assert!(printed.contains("the registry does not have it"), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_is_killed_leaves_nothing_that_could_be_loaded() {
    let (folder, registry) = (Folder::new(), Fake::start().await);
    key(&folder, "acme");
    publish(&folder, &registry, "version-a", "tools/v:1.0.0", Some("acme.pem")).await;
    let source = registry.source("tools/v:1.0.0");
    let add = ["add", &source, "--signer", "key=acme.pub"];
    for part in ["/manifests/1.0.0", "/blobs/", "/referrers/"] {
        registry.hold(Some(part));
        let mut child = folder.command(&add, &[]).spawn().unwrap();
        timeout(PATIENCE, registry.holds()).await.unwrap();
        child.kill().await.unwrap();
        registry.hold(None);
        assert!(!folder.join(CONFIG).exists() && lock(&folder).is_empty(), "{part}");
        assert!(stored(&folder).iter().all(|name| !name.ends_with(".wasm")), "{part}: {:?}", stored(&folder));
    }
    // What a process leaves that was killed while it wrote.
    folder.write("home/.local/share/wharf/store/.fetching-abc", b"half");
    done(&folder, &add).await;
    done(&folder, &["check"]).await;
    done(&folder, &["lock", "prune"]).await;
    assert_eq!(stored(&folder).len(), 3, "{:?}", stored(&folder));
}
