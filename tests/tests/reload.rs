//! Plugins that are added, changed and removed while clients use them: no call is lost, and each change is announced once.

#![expect(clippy::disallowed_methods, reason = "tests write what wharf is to read; what they spawn ends with them")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stdout, reason = "tests print their measurements")]

use std::{io::Write, os::unix::fs::symlink, path::PathBuf, time::Instant};

use e2e::{Folder, PATIENCE, Pipe, Server, Value, is_error, json, names, plugin, text};

const CHANGED: &str = "notifications/tools/list_changed";

async fn client(folder: &Folder) -> Pipe {
    let mut pipe = Pipe::start(folder, &["run"]);
    pipe.legacy("2025-11-25", json!({})).await;
    tools(&mut pipe).await;
    pipe
}

/// One configured plugin at `plugins/v.wasm`, and `echo`. The folder `marks` is for [`silence`].
async fn versioned() -> (Folder, Pipe) {
    let folder = Folder::new();
    folder.plugin_as("version-a", "plugins/v.wasm");
    std::fs::create_dir(folder.join("marks")).unwrap();
    folder.config(&format!(
        "plugin_dir = \"../../marks\"\n[plugins.v]\npath = \"../../plugins/v.wasm\"\nprefix = \"\"\n[plugins.echo]\npath = {:?}\nprefix = \"\"\n",
        plugin("echo")
    ));
    let pipe = client(&folder).await;
    (folder, pipe)
}

async fn tools(pipe: &mut Pipe) -> Vec<String> {
    names(&pipe.request("tools/list", json!({})).await.unwrap(), "tools")
}

async fn version(pipe: &mut Pipe) -> String {
    text(&pipe.call("version", json!({})).await).to_owned()
}

async fn serves(pipe: &mut Pipe, wanted: &str) {
    let began = Instant::now();
    while version(pipe).await != wanted {
        assert!(began.elapsed() < PATIENCE, "{wanted} is not served:\n{}", pipe.log());
    }
}

/// Checks that no more messages about lists arrive, and that there were no earlier ones. A plugin that is dropped in or taken out changes
/// the list of resources. wharf looks at all files whenever one of them changes, and announces tools and prompts before resources: when
/// this change is announced, everything that wharf had to say about earlier ones was sent.
async fn silence(pipe: &mut Pipe, folder: &Folder, what: &str) {
    let mark = folder.join("marks/mark.wasm");
    if mark.exists() {
        std::fs::remove_file(mark).unwrap();
    } else {
        folder.plugin_as("mark", "marks/mark.wasm");
    }
    pipe.notification("notifications/resources/list_changed").await;
    let is_change = |message: &Value| message["method"].as_str().is_some_and(|method| method.ends_with("list_changed"));
    assert_eq!(pipe.inbox().iter().find(|message| is_change(message)), None, "{what}");
}

/// The component with a custom section of this size: different bytes, the same plugin.
fn padded(name: &str, bytes: usize) -> Vec<u8> {
    let mut component = std::fs::read(plugin(name)).unwrap();
    let mut size = bytes;
    component.push(0);
    loop {
        let low = u8::try_from(size & 0x7f).unwrap();
        size >>= 7;
        component.push(if size > 0 { low | 0x80 } else { low });
        if size == 0 {
            break;
        }
    }
    component.extend([3, b'p', b'a', b'd']);
    component.resize(component.len() + bytes - 4, b'x');
    component
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_under_way_ends_on_the_old_code_and_the_next_runs_the_new() {
    let (folder, mut pipe) = versioned().await;
    let slow = json!({ "name": "slow", "arguments": { "ms": 3000 }, "_meta": { "progressToken": 1 } });
    let id = pipe.begin("tools/call", slow).await;
    pipe.notification("notifications/progress").await;
    let began = Instant::now();
    folder.plugin_as("version-b", "plugins/v.wasm");
    pipe.notification(CHANGED).await;
    println!("write to list_changed: {:?}", began.elapsed());
    assert_eq!(version(&mut pipe).await, "b");
    assert!(tools(&mut pipe).await.contains(&"fresh".to_owned()));
    let old = pipe.answer(&id).await.unwrap();
    assert!(!is_error(&old), "{old}");
    assert_eq!(text(&old), "a");
    silence(&mut pipe, &folder, "one change is told once, of tools only").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_replacements_lose_no_call() {
    let (folder, mut pipe) = versioned().await;
    let mut ids = Vec::new();
    for round in 0..200 {
        folder.plugin_as(if round % 2 == 0 { "version-b" } else { "version-a" }, "plugins/v.wasm");
        for (tool, arguments) in
            [("version", json!({})), ("slow", json!({ "ms": 30 })), ("echo", json!({ "message": "x" }))]
        {
            ids.push(pipe.begin("tools/call", json!({ "name": tool, "arguments": arguments })).await);
        }
        // Calls are made as long as the file is being replaced.
        assert!(!is_error(&pipe.call("slow", json!({ "ms": 5 })).await));
    }
    let mut answers = std::collections::BTreeMap::new();
    for id in &ids {
        let result = pipe.answer(id).await.unwrap_or_else(|error| panic!("lost: {error}"));
        assert!(!is_error(&result), "{result}");
        *answers.entry(text(&result).to_owned()).or_insert(0) += 1;
    }
    println!("{answers:?}");
    assert_eq!(answers.values().sum::<i32>(), 600);
    assert!(answers.get("a") > Some(&0) && answers.get("b") > Some(&0), "{answers:?}");
    folder.plugin_as("version-b", "plugins/v.wasm");
    serves(&mut pipe, "b").await;
    assert!(!pipe.log().contains("ERROR"), "{}", pipe.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_changes_is_told() {
    let (folder, mut pipe) = versioned().await;
    // The same bytes, then different bytes with the same list.
    folder.plugin_as("version-a", "plugins/v.wasm");
    silence(&mut pipe, &folder, "the same file again").await;
    folder.write("plugins/v.wasm", padded("version-a", 1000));
    pipe.wait_for_nth_log("serving plugin=\"v\"", 2).await;
    silence(&mut pipe, &folder, "the same list").await;
    assert_eq!(version(&mut pipe).await, "a");
    // A burst: many writes, one message.
    for _ in 0..10 {
        folder.write("plugins/v.wasm", "half a file");
        folder.plugin_as("version-b", "plugins/v.wasm");
    }
    pipe.notification(CHANGED).await;
    serves(&mut pipe, "b").await;
    silence(&mut pipe, &folder, "one burst").await;
    // Written in place, in pieces, like a slow copy.
    let bytes = std::fs::read(plugin("version-a")).unwrap();
    let path = folder.join("plugins/v.wasm");
    std::fs::write(&path, &bytes[..1000]).unwrap();
    std::fs::write(&path, &bytes).unwrap();
    pipe.notification(CHANGED).await;
    serves(&mut pipe, "a").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn plugins_are_dropped_in_and_taken_out() {
    let folder = Folder::new();
    folder.config("plugin_dir = \"../../plugins\"");
    let mut pipe = client(&folder).await;
    assert_eq!(tools(&mut pipe).await, Vec::<String>::new());
    let dropped = folder.plugin("hello");
    pipe.notification(CHANGED).await;
    assert_eq!(tools(&mut pipe).await, ["hello_greet"]);
    std::fs::rename(&dropped, folder.join("plugins/other.wasm")).unwrap();
    pipe.notification(CHANGED).await;
    assert_eq!(tools(&mut pipe).await, ["other_greet"]);
    std::fs::remove_file(folder.join("plugins/other.wasm")).unwrap();
    pipe.notification(CHANGED).await;
    assert_eq!(tools(&mut pipe).await, Vec::<String>::new());
    assert!(pipe.request("tools/call", json!({ "name": "other_greet", "arguments": { "name": "x" } })).await.is_err());
    // The folder itself is removed and restored.
    std::fs::rename(folder.join("plugins"), folder.join("away")).unwrap();
    pipe.wait_for_log("plugin_dir").await;
    folder.plugin("echo");
    pipe.notification(CHANGED).await;
    assert_eq!(tools(&mut pipe).await, ["echo_echo"]);
    let result = pipe.call("echo_echo", json!({ "message": "well" })).await;
    assert_eq!(text(&result), "well");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_config_is_followed() {
    let (folder, mut pipe) = versioned().await;
    let config =
        |prefix: &str| folder.config(&format!("[plugins.v]\npath = \"../../plugins/v.wasm\"\nprefix = {prefix:?}\n"));
    config("x_");
    pipe.notification(CHANGED).await;
    assert_eq!(tools(&mut pipe).await, ["x_version", "x_slow"]);
    config("y_");
    pipe.notification(CHANGED).await;
    assert_eq!(tools(&mut pipe).await, ["y_version", "y_slow"]);
    folder.config("[plugins.v]\npath = \"../../plugins/v.wasm\"\nprefix = \"y_\"\ntools = [\"slow\"]\n");
    pipe.notification(CHANGED).await;
    assert_eq!(tools(&mut pipe).await, ["y_slow"]);
    config("x_");
    pipe.notification(CHANGED).await;
    folder.config("[plugins.v]\npath = \"../../plugins/v.wasm\"\nprefx = \"y_\"\n");
    let problem = pipe.wait_for_log("the config is not used").await;
    assert!(problem.contains("prefix"), "it names the nearest key: {problem}");
    assert_eq!(tools(&mut pipe).await, ["x_version", "x_slow"]);
    std::fs::remove_file(folder.join("config/wharf/wharf.toml")).unwrap();
    config("z_");
    pipe.notification(CHANGED).await;
    assert_eq!(tools(&mut pipe).await, ["z_version", "z_slow"]);
    let before = pipe.log().matches("the config was reloaded").count();
    e2e::pipe::signal(pipe.pid(), rustix::process::Signal::HUP);
    let began = Instant::now();
    while pipe.log().matches("the config was reloaded").count() == before {
        assert!(began.elapsed() < PATIENCE, "SIGHUP is not followed");
        tokio::task::yield_now().await;
    }
    assert_eq!(tools(&mut pipe).await, ["z_version", "z_slow"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_file_leaves_the_last_good_one() {
    let (folder, mut pipe) = versioned().await;
    let good = std::fs::read(plugin("version-b")).unwrap();
    let core: &[u8] = b"\0asm\x01\0\0\0";
    let mut flipped = good.clone();
    flipped.iter_mut().skip(60).step_by(1000).for_each(|byte| *byte ^= 0xff);
    for (what, bytes, says) in [
        ("empty", &b""[..], "not WebAssembly"),
        ("script", b"#!/bin/sh\n", "not WebAssembly"),
        ("core", core, "neither exports `_start`"),
        ("half", &good[..good.len() / 2], "does not compile"),
        ("flipped", &flipped, "does not compile"),
    ] {
        folder.write("plugins/v.wasm", bytes);
        let told = pipe.notification("notifications/message").await;
        assert_eq!(told["params"]["level"], "error", "{what}: {told}");
        // The client learns which plugin failed, and no more: the details are for the operator.
        let problem = told["params"]["data"].as_str().unwrap();
        assert!(problem.contains("`v` does not load (load)") && !problem.contains(says), "{what}: {told}");
        let line = pipe.wait_for_log(says).await;
        assert!(line.contains("its last good version serves"), "{what}: {line}");
        assert_eq!(version(&mut pipe).await, "a", "{what}");
        silence(&mut pipe, &folder, what).await;
        for good in ["version-b", "version-a"] {
            folder.plugin_as(good, "plugins/v.wasm");
            pipe.notification(CHANGED).await;
            serves(&mut pipe, &good[8..]).await;
        }
    }
    std::fs::remove_file(folder.join("plugins/v.wasm")).unwrap();
    pipe.wait_for_log("v.wasm: cannot be read").await;
    assert_eq!(version(&mut pipe).await, "a", "a configured plugin outlives its file");
    folder.plugin_as("version-b", "plugins/v.wasm");
    pipe.notification(CHANGED).await;
    assert_eq!(version(&mut pipe).await, "b");
}

#[tokio::test(flavor = "multi_thread")]
async fn large_components_load_up_to_the_limit() {
    let (folder, mut pipe) = versioned().await;
    folder.write("plugins/v.wasm", padded("version-b", 120 << 20));
    pipe.notification(CHANGED).await;
    assert_eq!(version(&mut pipe).await, "b");
    folder.write("plugins/v.wasm", padded("version-a", 129 << 20));
    pipe.wait_for_log("are more than the 134217728 a plugin may have").await;
    assert_eq!(version(&mut pipe).await, "b");
}

#[tokio::test(flavor = "multi_thread")]
async fn links_on_the_way_are_followed() {
    let folder = Folder::new();
    folder.plugin_as("version-a", "releases/1/v.wasm");
    folder.plugin_as("version-b", "releases/2/v.wasm");
    // As in deployments: the file is a link into a folder that is a link.
    symlink("1", folder.join("releases/current")).unwrap();
    symlink("../releases/current/v.wasm", folder.join("plugins/v.wasm")).unwrap();
    folder.config("[plugins.v]\npath = \"../../plugins/v.wasm\"\nprefix = \"\"\n");
    let mut pipe = client(&folder).await;
    assert_eq!(version(&mut pipe).await, "a");
    let point = |to: &str, at: &str| {
        let link: PathBuf = folder.join("link");
        symlink(to, &link).unwrap();
        std::fs::rename(link, folder.join(at)).unwrap();
    };
    point("2", "releases/current");
    pipe.notification(CHANGED).await;
    assert_eq!(version(&mut pipe).await, "b");
    point("../releases/1/v.wasm", "plugins/v.wasm");
    pipe.notification(CHANGED).await;
    assert_eq!(version(&mut pipe).await, "a");
    // And when the file at the end of the new path changes.
    folder.plugin_as("version-b", "releases/1/v.wasm");
    pipe.notification(CHANGED).await;
    assert_eq!(version(&mut pipe).await, "b");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_in_the_plugin_folder_is_followed_to_what_a_build_writes() {
    let folder = Folder::new();
    folder.plugin_as("version-a", "build/v.wasm");
    folder.config("plugin_dir = \"../../plugins\"");
    let mut pipe = client(&folder).await;
    // The link comes while the folder is watched.
    symlink("../build/v.wasm", folder.join("plugins/v.wasm")).unwrap();
    pipe.notification(CHANGED).await;
    let version = async |pipe: &mut Pipe| text(&pipe.call("v_version", json!({})).await).to_owned();
    assert_eq!(version(&mut pipe).await, "a");
    folder.plugin_as("version-b", "build/new.wasm");
    std::fs::rename(folder.join("build/new.wasm"), folder.join("build/v.wasm")).unwrap();
    pipe.notification(CHANGED).await;
    assert_eq!(version(&mut pipe).await, "b");
    std::fs::remove_file(folder.join("build/v.wasm")).unwrap();
    folder.plugin_as("version-a", "build/v.wasm");
    pipe.notification(CHANGED).await;
    assert_eq!(version(&mut pipe).await, "a");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_may_write_is_refused() {
    let (folder, mut pipe) = versioned().await;
    folder.plugin_as("version-b", "next.wasm");
    folder.set_mode("next.wasm", 0o666);
    std::fs::rename(folder.join("next.wasm"), folder.join("plugins/v.wasm")).unwrap();
    pipe.wait_for_log("others may write this plugin").await;
    assert_eq!(version(&mut pipe).await, "a");
    folder.set_mode("plugins/v.wasm", 0o644);
    pipe.notification(CHANGED).await;
    assert_eq!(version(&mut pipe).await, "b");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_operator_narrows_counts_for_the_last_good_version_too() {
    for (what, narrowed) in
        [("tools", "tools = [\"slow\"]".to_owned()), ("sha256", format!("sha256 = \"{}\"", "0".repeat(64)))]
    {
        let (folder, mut pipe) = versioned().await;
        folder.write("plugins/v.wasm", "no plugin any more");
        pipe.wait_for_log("its last good version serves").await;
        folder.config(&format!("[plugins.v]\npath = \"../../plugins/v.wasm\"\nprefix = \"\"\n{narrowed}\n"));
        pipe.wait_for_log("the config was reloaded").await;
        pipe.wait_for_log("removed plugin=\"echo\"").await;
        pipe.notification(CHANGED).await;
        let outcome = pipe.request("tools/call", json!({ "name": "version", "arguments": {} })).await;
        assert!(outcome.is_err(), "{what}: {outcome:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_follow_a_config_that_came_while_the_file_was_bad() {
    let folder = Folder::new();
    folder.plugin_as("badlist", "plugins/v.wasm");
    let config = |name: &str| {
        let schema = json!({ "type": "object", "properties": { name: {} } }).to_string();
        let plugin =
            "[plugins.v]\npath = \"../../plugins/v.wasm\"\nprefix = \"\"\n[plugins.v.config]\nmode = \"given\"\n";
        format!("{plugin}schema = '{schema}'\n")
    };
    folder.config(&config("before"));
    let mut pipe = client(&folder).await;
    folder.write("plugins/v.wasm", "no plugin any more");
    pipe.wait_for_log("its last good version serves").await;
    folder.config(&config("after"));
    pipe.wait_for_log("the config was reloaded").await;
    pipe.wait_for_log("its last good version serves").await;
    folder.plugin_as("badlist", "plugins/v.wasm");
    pipe.notification(CHANGED).await;
    let listed = pipe.request("tools/list", json!({})).await.unwrap();
    assert!(listed["tools"][0]["inputSchema"]["properties"].get("after").is_some(), "{listed}");
}

/// A config that is written in place, its head first, is used when it is complete: the rest may contain restrictions.
#[tokio::test(flavor = "multi_thread")]
async fn a_config_counts_when_it_is_whole() {
    let folder = Folder::new();
    folder.plugin_as("version-a", "other/v.wasm");
    let head = "plugin_dir = \"../../plugins\"\n[plugins.v]\npath = \"../../other/v.wasm\"\nprefix = \"\"\n";
    let tail = "tools = [\"nothing\"]\n[plugins.v.limits]\n";
    let config = folder.config(&format!("{head}{tail}"));
    let server = Server::loaded(&folder).await;
    let tools = async || names(&server.modern("tools/list", json!({}), json!({})).await.unwrap(), "tools");
    // When another, later change has taken effect, the watcher of the config has looked at it as well.
    let looked = async |name: &str| {
        folder.plugin_as("echo", &format!("plugins/{name}.wasm"));
        server.wait_for_log(&format!("serving plugin=\"{name}\"")).await;
        let tools = tools().await;
        assert!(!tools.contains(&"version".to_owned()), "{name}: {tools:?}\n{}", server.log());
        assert!(!server.log().contains("the config was reloaded"), "{name}: {}", server.log());
    };
    let mut file = std::fs::File::create(&config).unwrap();
    looked("one").await;
    file.write_all(head.as_bytes()).unwrap();
    looked("two").await;
    server.signal(rustix::process::Signal::HUP);
    server.wait_for_log("a program writes the config").await;
    looked("three").await;
    file.write_all(tail.as_bytes()).unwrap();
    looked("four").await;
    file.write_all(b"concurrency = 1\n").unwrap();
    drop(file);
    server.wait_for_log("the config was reloaded").await;
    let tools = tools().await;
    assert!(!tools.contains(&"version".to_owned()), "{tools:?}");
    // An emptied file does not mean that everything is to be removed.
    std::fs::File::create(&config).unwrap();
    server.wait_for_log("the file contains no settings").await;
    // A file that is renamed into place is complete, and is used at once.
    folder.config(head);
    server.wait_for_nth_log("the config was reloaded", 2).await;
    let (_, _, log) = server.terminate().await;
    assert_eq!(log.matches("the config was reloaded").count(), 2, "{log}");
}
