//! Add, update, roll back, move to another machine, remove.

use e2e::{Pipe, Terminal, folder::stdout, json, names, text};

use super::*;

async fn tools(pipe: &mut Pipe) -> Vec<String> {
    names(&pipe.request("tools/list", json!({})).await.unwrap(), "tools")
}

async fn connected(folder: &Folder) -> Pipe {
    let mut pipe = Pipe::start(folder, &["run"]);
    pipe.legacy("2025-11-25", json!({})).await;
    pipe
}

#[tokio::test(flavor = "multi_thread")]
async fn one_command_brings_a_published_plugin_to_connected_clients() {
    let (folder, registry) = (Folder::new(), Fake::start().await);
    key(&folder, "acme");
    let said = publish(&folder, &registry, "version-a", "tools/v:1.0.0", Some("acme.pem")).await;
    assert!(said.contains("signed by key sha256:"), "{said}");
    folder.config("# mine\n");
    let mut pipe = connected(&folder).await;
    assert_eq!(tools(&mut pipe).await, [""; 0]);

    let said = done(&folder, &["add", &registry.source("tools/v:1"), "--signer", "key=acme.pub"]).await;
    assert!(said.contains("1.0.0 sha256:") && said.contains("tool version: "), "{said}");
    pipe.notification("notifications/tools/list_changed").await;
    assert_eq!(text(&pipe.call("v_version", json!({})).await), "a");
    let config = std::fs::read_to_string(folder.join(CONFIG)).unwrap();
    assert!(config.contains("# mine\n") && config.contains("source = \"oci://"), "{config}");
    let locked = lock(&folder);
    assert!(locked.contains("version = \"1.0.0\"") && locked.contains("\"tool version\" = "), "{locked}");

    // An update that tells models something else waits for a person.
    publish(&folder, &registry, "version-b", "tools/v:1.1.0", Some("acme.pem")).await;
    let outdated = done(&folder, &["update", "--dry-run"]).await;
    assert!(outdated.contains("v: 1.0.0, and 1.1.0 is there"), "{outdated}");
    let said = failed(&folder, &["update"]).await;
    assert!(said.contains("tool \"fresh\" is new") && said.contains("the locked version stays"), "{said}");
    assert_eq!(lock(&folder), locked);
    assert_eq!(text(&pipe.call("v_version", json!({})).await), "a");

    let mut terminal = Terminal::start(&folder, &["update", "v"]);
    terminal.until("Take this version of v, and accept what it tells models? [y/N] ").await;
    terminal.types("y");
    let (code, _, printed) = terminal.end().await;
    assert_eq!(code, Some(0), "{printed}");
    pipe.notification("notifications/tools/list_changed").await;
    assert_eq!(text(&pipe.call("v_version", json!({})).await), "b");
    let said = done(&folder, &["update"]).await;
    assert!(said.contains("v: up to date: 1.1.0"), "{said}");

    let said = done(&folder, &["lock", "rollback", "v"]).await;
    assert!(said.contains("v: + 1.0.0") && said.contains("tool \"fresh\" is gone"), "{said}");
    pipe.notification("notifications/tools/list_changed").await;
    assert_eq!(text(&pipe.call("v_version", json!({})).await), "a");

    let said = done(&folder, &["lock", "prune"]).await;
    assert!(said.contains("removed 0 components"), "{said}");
    done(&folder, &["remove", "v"]).await;
    pipe.notification("notifications/tools/list_changed").await;
    assert_eq!(tools(&mut pipe).await, [""; 0]);
    assert!(!lock(&folder).contains("sources"), "{}", lock(&folder));
    let said = done(&folder, &["lock", "prune"]).await;
    assert!(said.contains("removed 2 components"), "{said}");
    assert_eq!(stored(&folder), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn at_a_terminal_a_person_vouches_and_is_told_what_is_added() {
    let (folder, registry) = (Folder::new(), Fake::start().await);
    publish(&folder, &registry, "version-a", "tools/v:1.0.0", None).await;
    let source = registry.source("tools/v");
    let said = failed(&folder, &["add", &source]).await;
    assert!(said.contains("nobody is trusted to sign") && said.contains("--digest sha256:"), "{said}");
    assert!(!folder.join(CONFIG).exists() && lock(&folder).is_empty());

    let mut terminal = Terminal::start(&folder, &["add", &source, "--id", "mine"]);
    terminal.until("Do you vouch for this component yourself, until you trust another one? [y/N] ").await;
    terminal.types("y");
    let told = terminal.until("Add mine, and accept what it tells models? [y/N] ").await;
    assert!(told.contains("tool version: ") && told.contains("the config vouches for its digest"), "{told}");
    terminal.types("n");
    let (code, shown, _) = terminal.end().await;
    assert!(code == Some(1) && shown.contains("nothing was written"), "{code:?} {shown}");
    assert!(!folder.join(CONFIG).exists() && lock(&folder).is_empty());

    let mut terminal = Terminal::start(&folder, &["add", &source, "--id", "mine"]);
    for question in ["until you trust another one? [y/N] ", "accept what it tells models? [y/N] "] {
        terminal.until(question).await;
        terminal.types("y");
    }
    let (code, _, printed) = terminal.end().await;
    assert_eq!(code, Some(0), "{printed}");
    let config = std::fs::read_to_string(folder.join(CONFIG)).unwrap();
    assert!(config.contains("[plugins.mine]") && config.contains("sha256 = \""), "{config}");
    assert!(done(&folder, &["check"]).await.contains("mine"));

    // Another component needs somebody who vouches for it.
    publish(&folder, &registry, "version-b", "tools/v:2.0.0", None).await;
    let said = failed(&folder, &["update", "mine"]).await;
    let digest =
        said.split("--digest sha256:").nth(1).and_then(|rest| rest.get(..64)).unwrap_or_else(|| panic!("{said}"));
    let mut terminal = Terminal::start(&folder, &["update", "mine", "--digest", digest]);
    terminal.until("accept what it tells models? [y/N] ").await;
    terminal.types("y");
    assert_eq!(terminal.end().await.0, Some(0));
    let config = std::fs::read_to_string(folder.join(CONFIG)).unwrap();
    assert!(config.contains(digest), "{config}");
    done(&folder, &["check"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reviewed_change_of_the_lock_file_is_enough_and_a_store_can_be_copied() {
    let (folder, registry) = (Folder::new(), Fake::start().await);
    key(&folder, "acme");
    publish(&folder, &registry, "version-a", "tools/v:1.0.0", Some("acme.pem")).await;
    done(&folder, &["add", &registry.source("tools/v:1"), "--signer", "key=acme.pub"]).await;
    publish(&folder, &registry, "version-b", "tools/v:1.1.0", Some("acme.pem")).await;

    // The author of the pull request.
    let printed = folder.run(&["update", "v", "--print"], &[]).await;
    let (new, old) = (stdout(&printed), lock(&folder));
    assert!(printed.status.success() && new.contains("version = \"1.1.0\"") && lock(&folder) == old, "{new}");

    // The reviewer: another checkout, without a network and without a store.
    let reviewer = Folder::new();
    reviewer.config(&std::fs::read_to_string(folder.join(CONFIG)).unwrap());
    reviewer.write(LOCK, &new);
    reviewer.write("old/wharf.lock", &old);
    let said = done(&reviewer, &["lock", "check", "--since", "old/wharf.lock"]).await;
    assert!(
        said.contains("v: - 1.0.0") && said.contains("v: + 1.1.0") && said.contains("tool \"fresh\" is new"),
        "{said}"
    );
    assert!(!said.contains("another signer"), "{said}");
    let said = done(&reviewer, &["lock", "check"]).await;
    assert!(said.contains("1.1.0 sha256:") && said.contains("signed by key sha256:"), "{said}");

    // The server: the old version goes on until the new one is in the store.
    let mut pipe = connected(&folder).await;
    assert_eq!(text(&pipe.call("v_version", json!({})).await), "a");
    let store = folder.home().join(".local/share/wharf/store");
    std::fs::remove_dir_all(&store).unwrap();
    folder.write(LOCK, &new);
    let log = pipe.wait_for_log("is not in the store").await;
    assert!(log.contains("run `wharf lock fetch`"), "{log}");
    assert_eq!(text(&pipe.call("v_version", json!({})).await), "a");
    let said = done(&folder, &["lock", "fetch"]).await;
    assert!(said.contains("1 fetched, 0 were there already"), "{said}");
    pipe.notification("notifications/tools/list_changed").await;
    assert_eq!(text(&pipe.call("v_version", json!({})).await), "b");

    // An air gap: the folder of the store, and no registry.
    registry.fails(fake::Fault::Status(503));
    let apart = Folder::new();
    let config = std::fs::read_to_string(folder.join(CONFIG)).unwrap();
    apart.config(&format!("{config}\n[sources]\nstore = \"{}\"\n", apart.join("store").display()));
    apart.write(LOCK, &new);
    let said = failed(&apart, &["check"]).await;
    assert!(said.contains("run `wharf lock fetch`"), "{said}");
    for name in stored(&folder) {
        apart.write(&format!("store/{name}"), std::fs::read(store.join(name)).unwrap());
    }
    done(&apart, &["check"]).await;
    assert!(done(&apart, &["lock", "fetch"]).await.contains("0 fetched, 1 were there already"));
    let said = done(&apart, &["lock", "verify"]).await;
    assert!(said.contains("v: 1.1.0 sha256:"), "{said}");

    // A component that was changed is never loaded.
    let component = stored(&folder).into_iter().find(|name| name.ends_with(".wasm")).unwrap();
    apart.plugin_as("echo", &format!("store/{component}"));
    for arguments in [&["check"][..], &["lock", "verify"]] {
        let said = failed(&apart, arguments).await;
        assert!(said.contains("is not its name"), "{said}");
    }
    let said = failed(&apart, &["lock", "fetch"]).await;
    assert!(said.contains("503"), "{said}");
    registry.fails(None);
    done(&apart, &["lock", "fetch"]).await;
    done(&apart, &["check"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_of_others_older_ones_and_moved_ones_are_not_taken() {
    let (folder, registry) = (Folder::new(), Fake::start().await);
    key(&folder, "acme");
    publish(&folder, &registry, "version-a", "tools/v:1.2.0", Some("acme.pem")).await;
    done(&folder, &["add", &registry.source("tools/v"), "--signer", "key=acme.pub"]).await;
    let locked = lock(&folder);

    // A publisher cannot publish a version twice.
    folder.plugin_as("version-b", "made/version-b.wasm");
    let source = registry.source("tools/v:1.2.0");
    let said = failed(&folder, &["publish", &source, "made/version-b.wasm", "--key", "acme.pem"]).await;
    assert!(said.contains("exists already"), "{said}");

    // Somebody who may write to the registry moves the tag, or hides the newer versions.
    publish(&folder, &registry, "version-b", "tools/v:1.1.0", Some("acme.pem")).await;
    let other: e2e::Value = serde_json::from_slice(&registry.manifest("tools/v", "1.1.0")).unwrap();
    registry.put_manifest("tools/v", "1.2.0", &other);
    let said = failed(&folder, &["update"]).await;
    assert!(said.contains("was published again with other contents"), "{said}");
    let said = failed(&folder, &["update", "v", "--to", "1.3.0"]).await;
    assert!(said.contains("the registry does not have it"), "{said}");
    assert_eq!(lock(&folder), locked);
    let said = done(&folder, &["lock", "verify"]).await;
    assert!(said.contains("1.2.0"), "{said}");

    // A young version waits, unless it is named.
    let config = std::fs::read_to_string(folder.join(CONFIG)).unwrap();
    folder.config(&format!("{config}\n[sources]\nmin_age = \"3d\"\n"));
    publish(&folder, &registry, "version-b", "tools/v:1.3.0", Some("acme.pem")).await;
    let said = failed(&folder, &["update"]).await;
    assert!(said.contains("`min_age` in [sources] is 3days"), "{said}");
    let mut terminal = Terminal::start(&folder, &["update", "v", "--to", "1.3.0"]);
    let told = terminal.until("accept what it tells models? [y/N] ").await;
    terminal.types("n");
    let (code, _, printed) = terminal.end().await;
    assert!(code == Some(1) && told.contains("tool \"fresh\" is new"), "{told} {printed}");
    assert_eq!(lock(&folder), locked);

    // Places that are not allowed are not even asked.
    folder.config(&format!("{config}\n[sources]\nallow = [\"registry.example/tools/\"]\n"));
    registry.seen();
    for arguments in [&["update"][..], &["lock", "fetch"], &["check"]] {
        let said = failed(&folder, arguments).await;
        assert!(said.contains("is not in `allow` of [sources]"), "{said}");
    }
    assert!(registry.seen().is_empty());
}
