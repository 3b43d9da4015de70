//! Whatever roots a client opens, no plugin can write to files that wharf trusts: config, plugins, their folder, the cache.

use std::{os::unix::fs::symlink, path::Path};

use e2e::{Folder, Pipe, Value, json, plugin, text};

async fn client(folder: &Folder, root: &Path, environment: &[(&str, &str)]) -> Pipe {
    let mut pipe = Pipe::start_with(folder, &["run"], environment);
    let answer = json!({ "roots": [{ "uri": format!("file://{}", root.display()) }] });
    pipe.answer_with(move |method, _| (method == "roots/list").then(|| answer.clone()));
    pipe.legacy("2025-11-25", json!({ "roots": { "listChanged": true } })).await;
    pipe
}

fn config(folder: &Folder, reach: &Path, before: &str) {
    folder.config(&format!(
        "{before}\n[roots]\nwithin = [{:?}]\n[plugins.reach]\npath = {reach:?}\nprefix = \"\"\n[plugins.reach.grants]\nroots = \"read-write\"\n",
        folder.path()
    ));
}

async fn said(pipe: &mut Pipe, tool: &str, arguments: Value) -> String {
    text(&pipe.call(tool, arguments).await).to_owned()
}

/// The directory is shown as read-only and a write into it fails.
async fn is_closed(pipe: &mut Pipe, root: &Path, what: &str) {
    let shown = said(pipe, "dirs", json!({})).await;
    assert_eq!(shown, format!("ro {}", root.display()), "{what}");
    let written = said(pipe, "write", json!({ "path": root.join("new.wasm"), "text": "x" })).await;
    assert!(written.starts_with("error: "), "{what}: {written}");
    assert!(!root.join("new.wasm").exists(), "{what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_root_from_which_wharf_can_be_changed_is_read_only() {
    for what in ["config", "above", "plugin", "plugin folder", "inside the cache"] {
        let folder = Folder::new();
        let reach = folder.plugin_as("reach", "own/reach.wasm");
        std::fs::create_dir_all(folder.join("cache")).unwrap();
        std::fs::create_dir_all(folder.join("dropped")).unwrap();
        config(&folder, &reach, &format!("plugin_dir = {:?}", folder.join("dropped")));
        let root = match what {
            "config" => folder.join("config"),
            "above" => folder.path().to_path_buf(),
            "plugin" => folder.join("own"),
            "plugin folder" => folder.join("dropped"),
            _ => folder.join("cache"),
        };
        let cache = folder.join("cache");
        let mut pipe = client(&folder, &root, &[("XDG_CACHE_HOME", cache.to_str().unwrap())]).await;
        is_closed(&mut pipe, &root, what).await;
        pipe.wait_for_log("is read-only, because files that a wharf of this user runs or obeys are in it").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cache_that_is_made_at_the_start_is_not_writable() {
    let folder = Folder::new();
    config(&folder, &plugin("reach"), "");
    let cache = folder.join("cache");
    let mut pipe = client(&folder, &cache.join("wharf"), &[("XDG_CACHE_HOME", cache.to_str().unwrap())]).await;
    is_closed(&mut pipe, &cache.join("wharf"), "native code lies there").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_folder_that_is_made_later_is_not_writable() {
    let folder = Folder::new();
    let dropped = folder.join("project/dropped");
    config(&folder, &plugin("reach"), &format!("plugin_dir = {dropped:?}"));
    let mut pipe = client(&folder, &dropped, &[]).await;
    assert_eq!(said(&mut pipe, "dirs", json!({})).await, "");
    std::fs::create_dir_all(&dropped).unwrap();
    pipe.notify("notifications/roots/list_changed", json!({})).await;
    is_closed(&mut pipe, &dropped, "made after the start").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_folder_a_dropped_in_link_leads_to_is_not_writable() {
    let folder = Folder::new();
    let build = folder.plugin_as("hello", "project/build/hello.wasm");
    std::fs::create_dir_all(folder.join("dropped")).unwrap();
    symlink(&build, folder.join("dropped/hello.wasm")).unwrap();
    config(&folder, &plugin("reach"), &format!("plugin_dir = {:?}", folder.join("dropped")));
    let root = folder.join("project");
    let mut pipe = client(&folder, &root, &[]).await;
    pipe.wait_for_log("serving plugin=\"hello\"").await;
    is_closed(&mut pipe, &root, "a plugin file lies in it").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_put_in_the_place_of_a_trusted_one_is_not_writable() {
    let folder = Folder::new();
    let reach = folder.plugin_as("reach", "project/reach.wasm");
    config(&folder, &reach, "");
    let root = folder.join("project");
    let mut pipe = client(&folder, &root, &[]).await;
    is_closed(&mut pipe, &root, "the folder of the plugin").await;
    // Like a build that deletes its output first, or a checkout of another branch.
    folder.plugin_as("reach", "next/reach.wasm");
    std::fs::rename(&root, folder.join("previous")).unwrap();
    std::fs::rename(folder.join("next"), &root).unwrap();
    is_closed(&mut pipe, &root, "the folder of the plugin, again").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_with_a_link_on_the_way_to_a_plugin_is_not_writable() {
    // The link is in the middle of the path, so a user who may replace it chooses what wharf runs.
    let folder = Folder::new();
    folder.plugin_as("reach", "data/releases/1/reach.wasm");
    std::fs::create_dir_all(folder.join("links")).unwrap();
    symlink(folder.join("data/releases/1"), folder.join("links/current")).unwrap();
    std::fs::create_dir_all(folder.join("own")).unwrap();
    symlink("../links/current/reach.wasm", folder.join("own/reach.wasm")).unwrap();
    config(&folder, &folder.join("own/reach.wasm"), "");
    let root = folder.join("links");
    let mut pipe = client(&folder, &root, &[]).await;
    is_closed(&mut pipe, &root, "a link to the plugin's folder lies in it").await;
}
