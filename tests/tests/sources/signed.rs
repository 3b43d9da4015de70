//! Signatures: who may have signed, and what is refused.

use e2e::Value;

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn only_the_signature_of_a_trusted_signer_for_this_component_counts() {
    let (folder, registry) = (Folder::new(), Fake::start().await);
    key(&folder, "acme");
    key(&folder, "other");
    publish(&folder, &registry, "version-a", "tools/v:1.0.0", Some("acme.pem")).await;
    publish(&folder, &registry, "version-b", "tools/unsigned:1.0.0", None).await;
    let add = |name: &str, signer: &str| {
        let (source, signer) = (registry.source(name), signer.to_owned());
        let folder = &folder;
        async move { failed(folder, &["add", &source, "--signer", &signer, "--id", "x"]).await }
    };
    let said = add("tools/v:1.0.0", "key=other.pub").await;
    assert!(said.contains("is not trusted"), "{said}");
    let said = add("tools/unsigned:1.0.0", "key=acme.pub").await;
    assert!(said.contains("is not trusted"), "{said}");
    let said = add("tools/v:1.0.0", "identity=a@example.com,issuer=https://accounts.example.com").await;
    assert!(said.contains("is not trusted"), "{said}");
    let said = add("tools/v:1.0.0", "key=missing.pub").await;
    assert!(said.contains("missing.pub"), "{said}");

    // The signature of one component is attached to another one.
    let referrer = registry
        .names("tools/v")
        .into_iter()
        .filter(|name| name.starts_with("sha256:"))
        .map(|name| serde_json::from_slice::<Value>(&registry.manifest("tools/v", &name)))
        .find_map(|manifest| manifest.ok().filter(|manifest| manifest["subject"].is_object()));
    let mut referrer = referrer.expect("the signature is an artifact");
    let target = registry.manifest("tools/unsigned", "1.0.0");
    referrer["subject"]["digest"] = fake::sha256(&target).into();
    registry.put_manifest("tools/unsigned", "other", &referrer);
    let said = add("tools/unsigned:1.0.0", "key=acme.pub").await;
    assert!(said.contains("is not trusted"), "{said}");
    assert!(!folder.join(CONFIG).exists() && stored(&folder).is_empty());

    let said = done(&folder, &["inspect", &registry.source("tools/v:1.0.0")]).await;
    assert!(said.contains("not signed by anybody") && said.contains("tool version: "), "{said}");

    // The digest of another component, and the right one.
    let wrong = "00".repeat(32);
    let said = failed(&folder, &["add", &registry.source("tools/v:1.0.0"), "--digest", &wrong]).await;
    assert!(said.contains("its SHA-256 is"), "{said}");
    let right = fake::sha256(&std::fs::read(folder.join("made/version-a.wasm")).unwrap());
    done(&folder, &["add", &registry.source("tools/v:1.0.0"), "--digest", &right]).await;
    done(&folder, &["lock", "verify"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_trusted_signer_needs_a_word() {
    let (folder, registry) = (Folder::new(), Fake::start().await);
    key(&folder, "acme");
    key(&folder, "other");
    let (one, other) = (folder.join("acme.pub"), folder.join("other.pub"));
    folder.config(&format!(
        "[sources]\nsigners = [{{ key = \"{}\" }}, {{ key = \"{}\" }}]\n",
        one.display(),
        other.display()
    ));
    // A registry without the list of what refers to a manifest.
    registry.lists_no_referrers();
    publish(&folder, &registry, "version-a", "tools/v:1.0.0", Some("acme.pem")).await;
    assert!(
        registry.names("tools/v").iter().any(|name| name.starts_with("sha256-")),
        "{:?}",
        registry.names("tools/v")
    );
    done(&folder, &["add", &registry.source("tools/v")]).await;
    let said = done(&folder, &["inspect", &registry.source("tools/v")]).await;
    assert!(said.contains("signed by key sha256:") && said.contains("version 1.0.0\n"), "{said}");
    let locked = lock(&folder);
    // The same component, so that only the signer differs.
    let source = registry.source("tools/v:1.1.0");
    let arguments = ["publish", &source, "made/version-a.wasm", "--key", "other.pem", "--annotation", "a=b"];
    done(&folder, &arguments).await;
    // The same contents are the same version, no matter who signed them again.
    let said = done(&folder, &["update"]).await;
    assert!(said.contains("up to date"), "{said}");

    publish(&folder, &registry, "version-b", "tools/v:1.2.0", Some("other.pem")).await;
    let said = failed(&folder, &["update"]).await;
    assert!(said.contains("`wharf update v --accept-signer`"), "{said}");
    assert_eq!(lock(&folder), locked);
    let said = failed(&folder, &["update", "v", "--accept-signer"]).await;
    assert!(said.contains("tool \"fresh\" is new"), "{said}");

    // A signer that is not trusted any more.
    folder.config(&std::fs::read_to_string(folder.join(CONFIG)).unwrap().replace("acme.pub", "other.pub"));
    let said = failed(&folder, &["lock", "verify"]).await;
    assert!(said.contains("v: "), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_and_urls_have_their_signatures_next_to_them() {
    let (folder, registry) = (Folder::new(), Fake::start().await);
    let component = std::fs::read(folder.plugin_as("version-a", "shared/v.wasm")).unwrap();
    let digest = fake::sha256(&component);
    let source = format!("file:{}", folder.join("shared/v.wasm").display());
    let said = failed(
        &folder,
        &["add", &source, "--signer", "minisign=RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"],
    )
    .await;
    assert!(said.contains("is not trusted"), "{said}");
    done(&folder, &["add", &source, "--digest", &digest]).await;
    assert!(done(&folder, &["lock", "fetch"]).await.contains("1 were there already"));

    registry.put_blob(&component);
    let url = registry.url(&format!("/files/{digest}"));
    done(&folder, &["add", &url, "--digest", &digest, "--id", "web"]).await;
    // Another component at the same place.
    folder.plugin_as("version-b", "shared/v.wasm");
    let said = failed(&folder, &["update", "v"]).await;
    assert!(said.contains("there is another component"), "{said}");
    std::fs::remove_dir_all(folder.home().join(".local/share/wharf/store")).unwrap();
    let said = failed(&folder, &["lock", "fetch"]).await;
    assert!(said.contains("it was published again") && said.contains("1 fetched"), "{said}");
}
