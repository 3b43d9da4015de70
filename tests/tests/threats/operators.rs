//! Mistakes that an operator may make: configs that are not used yet, folders that other users may write, misleading names.

use e2e::{Folder, Pipe, folder::stderr, is_error, json, plugin, text};

fn reach(folder: &Folder, more: &str) -> String {
    format!(
        "[roots]\nwithin = [{:?}]\n[plugins.reach]\npath = {:?}\nprefix = \"\"\n[plugins.reach.grants]\nroots = \"read-write\"\n{more}",
        folder.path(),
        plugin("reach")
    )
}

/// Opens a root in a client and tries to write below it.
async fn write_below(folder: &Folder, arguments: &[&str], root: &str, file: &str, expected: &str) -> (String, String) {
    let mut pipe = Pipe::start(folder, arguments);
    let uri = format!("file://{}", folder.join(root).display());
    pipe.answer_with(move |method, _| (method == "roots/list").then(|| json!({ "roots": [{ "uri": uri }] })));
    pipe.legacy("2025-11-25", json!({ "roots": {} })).await;
    let path = folder.join(file).display().to_string();
    let result = pipe.call("write", json!({ "path": path, "text": "[plugins.evil]\n" })).await;
    let said = format!("{} {}", is_error(&result), text(&result));
    let log = if expected.is_empty() { pipe.log() } else { pipe.wait_for_log(expected).await };
    (said, log)
}

/// The config that the next start would use cannot be written, even though this process uses another file.
#[tokio::test(flavor = "multi_thread")]
async fn the_default_config_is_trusted_before_it_is_used() {
    for (root, file) in [
        ("config", "config/wharf/wharf.toml"),
        ("config/wharf", "config/wharf/wharf.toml"),
        ("home/.config", "home/.config/wharf/wharf.toml"),
    ] {
        let folder = Folder::new();
        let own = folder.write("elsewhere/op.toml", reach(&folder, ""));
        std::fs::create_dir_all(folder.join(root)).unwrap();
        let arguments = ["run", "-c", own.to_str().unwrap()];
        let (said, log) = write_below(&folder, &arguments, root, file, "is read-only").await;
        assert!(!folder.join(file).exists(), "{root}: {said}\n{log}");
    }
    // In other folders it may write.
    let folder = Folder::new();
    let own = folder.write("elsewhere/op.toml", reach(&folder, ""));
    std::fs::create_dir_all(folder.join("project")).unwrap();
    write_below(&folder, &["run", "-c", own.to_str().unwrap()], "project", "project/file", "").await;
    assert!(folder.join("project/file").exists());
}

/// A plugin folder that is mounted a second time below a root is not writable there. Needs its own mount namespace, which some machines do
/// not allow for every user; the table of names is tested without one.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_name_by_a_mount_is_no_way_in() {
    let folder = Folder::new();
    folder.plugin("reach");
    std::fs::create_dir_all(folder.join("project/mounted")).unwrap();
    let own = folder.write(
        "elsewhere/op.toml",
        format!(
            "plugin_dir = {0:?}\n[roots]\nwithin = [{1:?}]\n[plugins.reach]\npath = {2:?}\nprefix = \"\"\n\
             [plugins.reach.grants]\nroots = \"read-write\"\n",
            folder.join("plugins"),
            folder.path(),
            folder.join("plugins/reach.wasm"),
        ),
    );
    let (mount, paths) = ("mount --bind \"$1\" \"$2\"", [folder.join("plugins"), folder.join("project/mounted")]);
    let Some(command) = folder.mounted(mount, &paths, &["run", "-c", own.to_str().unwrap()]) else {
        println!("no mount namespaces on this machine: not tried");
        return;
    };
    let mut pipe = Pipe::of_command(command);
    let uri = format!("file://{}", folder.join("project").display());
    pipe.answer_with(move |method, _| (method == "roots/list").then(|| json!({ "roots": [{ "uri": uri }] })));
    pipe.legacy("2025-11-25", json!({ "roots": {} })).await;
    let path = folder.join("project/mounted/evil.wasm").display().to_string();
    let result = pipe.call("write", json!({ "path": path, "text": "x" })).await;
    assert!(!folder.join("plugins/evil.wasm").exists(), "{}", text(&result));
    pipe.wait_for_log("is read-only").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_that_others_may_write_are_refused_wherever_they_stand() {
    for (what, open) in [("the folder above its folder", "open"), ("the folder of a link", "open/links")] {
        let folder = Folder::new();
        folder.plugin_as("hello", "open/inner/hello.wasm");
        std::fs::create_dir_all(folder.join("open/links")).unwrap();
        std::os::unix::fs::symlink(folder.join("open/inner/hello.wasm"), folder.join("open/links/hello.wasm")).unwrap();
        folder.set_mode(open, 0o777);
        let named = if open == "open" { "open/inner/hello.wasm" } else { "open/links/hello.wasm" };
        let output = folder.run(&["call", named, "greet", "name=Ada"], &[]).await;
        assert!(!output.status.success(), "{what}");
        assert!(stderr(&output).contains("others may write this folder on the way"), "{what}: {}", stderr(&output));
    }
    let folder = Folder::new();
    folder.write("open/inner/wharf.toml", "");
    folder.set_mode("open", 0o777);
    let output = folder.run(&["check", "-c", "open/inner/wharf.toml"], &[]).await;
    assert!(stderr(&output).contains("others may write this folder on the way"), "{}", stderr(&output));
}

/// The name of a root cannot forge a line of the log.
#[tokio::test(flavor = "multi_thread")]
async fn names_of_roots_forge_no_lines() {
    let folder = Folder::new();
    folder.config(&reach(&folder, ""));
    let mut pipe = Pipe::start(&folder, &["run"]);
    let deceptive = "file:///no/such%0A2026-01-01T00:00:00Z%20%20INFO%20forged%E2%80%AE";
    let inside = format!("file://{}/x%0AINFO%20forged", folder.path().display());
    std::fs::create_dir_all(folder.join("x\nINFO forged")).unwrap();
    pipe.answer_with(move |method, _| {
        (method == "roots/list").then(|| json!({ "roots": [{ "uri": deceptive }, { "uri": inside }] }))
    });
    pipe.legacy("2025-11-25", json!({ "roots": {} })).await;
    pipe.call("list", json!({ "path": "/" })).await;
    pipe.wait_for_log("is ignored").await;
    for line in pipe.log().lines() {
        assert!(!line.starts_with("INFO") && !line.starts_with("2026-01-01") && !line.contains('\u{202e}'), "{line}");
    }
}

/// The output of `wharf call` cannot manipulate a terminal, for all kinds of content blocks.
#[tokio::test(flavor = "multi_thread")]
async fn blocks_on_a_terminal_are_defused() {
    let folder = Folder::new();
    let hostile = plugin("hostile");
    let raw = "{\"type\":\"resource_link\",\"uri\":\"note:///a\u{9b}31m\u{202e}\",\"name\":\"n\u{e0041}\"}";
    let arguments = json!({ "raw": raw }).to_string();
    let output = folder.run(&["call", hostile.to_str().unwrap(), "bad_content", &arguments], &[]).await;
    let said = e2e::folder::stdout(&output);
    assert!(said.contains("resource_link"), "{said} {}", stderr(&output));
    assert!(!said.contains(['\u{9b}', '\u{202e}', '\u{e0041}']), "{said:?}");
}

/// A key that needs a restart is named when it is edited.
#[tokio::test(flavor = "multi_thread")]
async fn keys_that_need_a_restart_are_named() {
    let folder = Folder::new();
    let text = |more: &str| format!("{more}\n[plugins.echo]\npath = {:?}\n", plugin("echo"));
    folder.config(&text(""));
    let pipe = Pipe::start(&folder, &["run"]);
    pipe.wait_for_log("serving").await;
    folder.config(&text("[protocol]\nsse = true\n[limits]\ntotal_tasks = 7\ntotal_host_memory_mib = 300\n"));
    for key in ["[protocol]", "total_tasks", "total_host_memory_mib"] {
        pipe.wait_for_log(&format!("`{key}` changed; it takes effect when wharf is restarted")).await;
    }
}
