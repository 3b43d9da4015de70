//! What somebody who may write to a registry, or to the lock file, cannot do with components that are signed: bring back an old one, exchange one
//! plugin for another, or have a component trusted that is in the store for another plugin.

use e2e::json;

use super::*;

/// A folder with the key of acme, and a registry.
async fn start() -> (Folder, Fake) {
    let (folder, registry) = (Folder::new(), Fake::start().await);
    key(&folder, "acme");
    (folder, registry)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_version_does_not_come_back_under_a_higher_tag() {
    let (folder, registry) = start().await;
    publish_variant(&folder, &registry, 1, "tools/v:1.0.0").await;
    publish_variant(&folder, &registry, 2, "tools/v:1.4.2").await;
    let signer = ["--signer", "key=acme.pub"];
    let said = done(&folder, &[&["add", &registry.source("tools/v")], &signer[..]].concat()).await;
    assert!(said.contains("its signer calls it tools/v"), "{said}");
    let locked = lock(&folder);
    assert!(locked.contains("version = \"1.4.2\"") && locked.contains("name = \"tools/v\""), "{locked}");
    registry.retag(("tools/v", "1.0.0"), ("tools/v", "9.9.9"));
    let source = registry.source("tools/v");
    for arguments in
        [&["update"][..], &["update", "v", "--to", "9.9.9"], &[&["add", &source, "--id", "w"], &signer[..]].concat()]
    {
        let said = failed(&folder, arguments).await;
        assert!(said.contains("what is there as version 9.9.9 was signed as version 1.0.0"), "{said}");
        assert_eq!(lock(&folder), locked);
    }

    // The lock file cannot say that it is another version either.
    let lied = locked.replace("version = \"1.4.2\"", "version = \"1.5.0\"");
    folder.write(LOCK, &lied);
    for arguments in [&["lock", "fetch"][..], &["lock", "verify"]] {
        let said = failed(&folder, arguments).await;
        assert!(said.contains("what is there as version 1.5.0 was signed as version 1.4.2"), "{said}");
    }
    let said = failed(&folder, &["check"]).await;
    assert!(said.contains("run `wharf lock fetch`, which checks it"), "{said}");
    folder.write(LOCK, &locked);
    done(&folder, &["check"]).await;

    // Going back is what a person can ask for, by the version that was signed.
    let said = done(&folder, &["update", "v", "--to", "1.0.0"]).await;
    assert!(said.contains("v: + 1.0.0"), "{said}");
    let annotation = "org.opencontainers.image.version=2.0.0";
    let (to, made) = (registry.source("tools/v:1.5.0"), variant(&folder, 3));
    let said = failed(&folder, &["publish", &to, &made, "--annotation", annotation]).await;
    assert!(said.contains("is not the version 1.5.0"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_moved_tag_brings_nothing_old_without_a_person() {
    let (folder, registry) = start().await;
    publish_variant(&folder, &registry, 1, "tools/v:1.0.0").await;
    registry.retag(("tools/v", "1.0.0"), ("tools/v", "stable"));
    done(&folder, &["add", &registry.source("tools/v:stable"), "--signer", "key=acme.pub"]).await;
    publish_variant(&folder, &registry, 2, "tools/v:1.4.2").await;
    registry.retag(("tools/v", "1.4.2"), ("tools/v", "stable"));
    let said = done(&folder, &["update"]).await;
    assert!(said.contains("v: + 1.4.2"), "{said}");
    let locked = lock(&folder);

    registry.retag(("tools/v", "1.0.0"), ("tools/v", "stable"));
    for arguments in [&["update"][..], &["update", "v", "--to", "stable"]] {
        let said = failed(&folder, arguments).await;
        assert!(said.contains("the version is 1.0.0, and 1.4.2 is locked"), "{said}");
    }
    // The signer says no version.
    publish_variant(&folder, &registry, 3, "tools/v:stable").await;
    let said = failed(&folder, &["update"]).await;
    assert!(said.contains("nothing that is signed says that it is newer than the locked one, so"), "{said}");
    // A higher version of a component that was replaced.
    publish_variant(&folder, &registry, 1, "tools/v:1.5.0").await;
    registry.retag(("tools/v", "1.5.0"), ("tools/v", "stable"));
    let said = failed(&folder, &["update"]).await;
    assert!(said.contains("it was locked before, as 1.0.0"), "{said}");
    assert_eq!(lock(&folder), locked);
    let mut terminal = e2e::Terminal::start(&folder, &["update", "v"]);
    let told = terminal.until("accept what it tells models? [y/N] ").await;
    terminal.types("y");
    let (code, _, printed) = terminal.end().await;
    assert!(code == Some(0) && told.contains("it was locked before"), "{told} {printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_plugin_of_the_same_signer_is_not_taken() {
    let (folder, registry) = start().await;
    publish_variant(&folder, &registry, 1, "tools/v:1.0.0").await;
    publish_variant(&folder, &registry, 2, "tools/other:1.1.0").await;
    done(&folder, &["add", &registry.source("tools/v"), "--signer", "key=acme.pub"]).await;
    let locked = lock(&folder);
    registry.retag(("tools/other", "1.1.0"), ("tools/v", "1.1.0"));
    for arguments in [&["update"][..], &["update", "v", "--to", "1.1.0"]] {
        let said = failed(&folder, arguments).await;
        assert!(said.contains("its signer calls it tools/other, and the locked one is tools/v"), "{said}");
        assert_eq!(lock(&folder), locked);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_in_the_store_is_trusted_only_for_plugins_whose_signer_signed_it() {
    let (folder, registry) = start().await;
    key(&folder, "eve");
    for (plugin, id, by) in [("version-a", "a", "acme"), ("version-b", "e", "eve")] {
        publish(&folder, &registry, plugin, &format!("tools/{id}:1.0.0"), Some(&format!("{by}.pem"))).await;
        done(&folder, &["add", &registry.source(&format!("tools/{id}")), "--signer", &format!("key={by}.pub")]).await;
    }
    let locked = lock(&folder);
    let (of_a, of_e) = locked.split_once("[sources.e]").unwrap();
    let line = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(&format!("{name} = ")));
        line.unwrap_or_else(|| panic!("{name}: {text}")).to_owned()
    };
    let with = |names: &[&str]| {
        let lied = names.iter().fold(of_a.to_owned(), |text, name| text.replace(&line(of_a, name), &line(of_e, name)));
        format!("{lied}[sources.e]{of_e}")
    };

    // The digest of a component that is there for another plugin, under the name of the right signer.
    folder.write(LOCK, with(&["digest", "size", "manifest"]));
    for _ in 0..2 {
        let said = failed(&folder, &["lock", "fetch"]).await;
        assert!(said.contains("which is not trusted for a") && said.contains("1 were there already"), "{said}");
    }
    let said = failed(&folder, &["check"]).await;
    assert!(said.contains("the store") && said.contains("does not say that this signature counts for a"), "{said}");
    // The same with the name of the signer who did sign it.
    folder.write(LOCK, with(&["digest", "size", "manifest", "signer", "name"]));
    let said = failed(&folder, &["check"]).await;
    assert!(said.contains("does not say that this signature counts for a"), "{said}");
    let said = failed(&folder, &["lock", "check"]).await;
    assert!(said.contains("a: it is locked as signed by key sha256:") && !said.contains("e: it is"), "{said}");

    // A store that says nothing about signatures is checked again, without a network.
    folder.write(LOCK, &locked);
    done(&folder, &["check"]).await;
    for name in stored(&folder).iter().filter(|name| name.ends_with(".json")) {
        let path = format!("home/.local/share/wharf/store/{name}");
        let mut record: e2e::Value = serde_json::from_slice(&std::fs::read(folder.join(&path)).unwrap()).unwrap();
        record["verdicts"] = json!([]);
        folder.write(&path, record.to_string());
    }
    let said = failed(&folder, &["check"]).await;
    assert!(said.contains("run `wharf lock fetch`"), "{said}");
    registry.fails(fake::Fault::Status(503));
    let said = done(&folder, &["lock", "fetch"]).await;
    assert!(said.contains("0 fetched, 2 were there already"), "{said}");
    done(&folder, &["check"]).await;
    // Another key at the same path is another signer.
    std::fs::copy(folder.join("eve.pub"), folder.join("acme.pub")).unwrap();
    let said = failed(&folder, &["check"]).await;
    assert!(said.contains("counts for a"), "{said}");
}
