//! Plugins with `surface = "pinned"`: what models are told changes only when a person accepts it.

use e2e::{
    Folder, Pipe, Terminal,
    folder::{stderr, stdout},
    json, names, text,
};

use crate::wanting;

const LOCK: &str = "config/wharf/wharf.lock";

/// One pinned plugin at `plugins/v.wasm`, of the version `a`.
fn pinned() -> Folder {
    let folder = Folder::new();
    folder.plugin_as("version-a", "plugins/v.wasm");
    folder.config("[plugins.v]\npath = \"../../plugins/v.wasm\"\nprefix = \"\"\nsurface = \"pinned\"\n");
    folder
}

async fn accept(folder: &Folder) -> String {
    let mut terminal = Terminal::start(folder, &["lock", "accept", "v"]);
    terminal.until("Accept this of v? [y/N] ").await;
    terminal.types("y");
    let (code, _, printed) = terminal.end().await;
    assert_eq!(code, Some(0), "{printed}");
    printed
}

async fn tools(pipe: &mut Pipe) -> Vec<String> {
    names(&pipe.request("tools/list", json!({})).await.unwrap(), "tools")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_models_are_told_changes_when_a_person_accepts_it() {
    let folder = pinned();
    let checked = folder.run(&["check"], &[]).await;
    let said = stdout(&checked) + &stderr(&checked);
    assert!(!checked.status.success() && said.contains("accepts nothing of it yet"), "{said}");
    assert!(said.contains("`wharf lock accept v`"), "{said}");

    let printed = accept(&folder).await;
    assert!(printed.contains("tool \"version\" is new") && printed.contains("wrote "), "{printed}");
    assert!(folder.run(&["check"], &[]).await.status.success());

    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy("2025-11-25", json!({})).await;
    let accepted = tools(&mut pipe).await;
    // The new version has another tool, which nobody has accepted.
    folder.plugin_as("version-b", "plugins/v.wasm");
    let log = pipe.wait_for_log("tool \"fresh\" is new").await;
    assert!(log.contains("`wharf lock accept v`"), "{log}");
    assert_eq!(tools(&mut pipe).await, accepted);
    assert_eq!(text(&pipe.call("version", json!({})).await), "a", "the accepted version is served");

    let printed = accept(&folder).await;
    assert!(printed.contains("tool \"fresh\" is new\n  + {"), "{printed}");
    pipe.notification("notifications/tools/list_changed").await;
    assert!(tools(&mut pipe).await.contains(&"fresh".to_owned()));
    assert_eq!(text(&pipe.call("version", json!({})).await), "b");
    let again = folder.run(&["lock", "accept", "v"], &[]).await;
    assert!(again.status.success() && stdout(&again).contains("accepts all of v already"), "{}", stdout(&again));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wider_want_is_a_change() {
    let folder = pinned();
    accept(&folder).await;
    wanting(&folder, "version-a", "v", "env = [\"TZ\"]").await;
    let checked = folder.run(&["check"], &[]).await;
    let said = stdout(&checked) + &stderr(&checked);
    assert!(!checked.status.success() && said.contains("its wants are new"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_terminal_nothing_is_accepted_and_a_reviewer_can_write_the_file() {
    let folder = pinned();
    let asked = folder.run(&["lock", "accept", "v"], &[]).await;
    assert!(!asked.status.success() && stderr(&asked).contains("`wharf lock accept v --print`"), "{}", stderr(&asked));
    assert!(!folder.join(LOCK).exists());
    let printed = folder.run(&["lock", "accept", "v", "--print"], &[]).await;
    assert!(printed.status.success() && !folder.join(LOCK).exists());
    folder.write(LOCK, stdout(&printed));
    let checked = folder.run(&["check"], &[]).await;
    assert!(checked.status.success(), "{}{}", stdout(&checked), stderr(&checked));
    folder.set_mode(LOCK, 0o666);
    let checked = folder.run(&["check"], &[]).await;
    let said = stdout(&checked) + &stderr(&checked);
    assert!(!checked.status.success() && said.contains("wharf.lock"), "other users may write it: {said}");
    folder.set_mode(LOCK, 0o600);
    folder.write(LOCK, "version = 1\n[plugins.v]\n\"tool version\" = 1\n");
    let checked = folder.run(&["check"], &[]).await;
    let said = stdout(&checked) + &stderr(&checked);
    assert!(!checked.status.success() && said.contains("expected a string"), "{said}");
}
