//! Revoked grants are gone, whatever plugins are doing.

use std::time::{Duration, Instant};

use e2e::{Folder, Pipe, is_error, json, plugin, prompt, scaled, text};

/// The time limit from writing the file: noticing it, reading it, and acting.
const SOON: Duration = Duration::from_millis(1500);

fn config(folder: &Folder, spinning: usize, reach: bool) {
    let mut text = format!("[plugins.echo]\npath = {:?}\nprefix = \"by_\"\n", plugin("echo"));
    for at in 0..spinning {
        text.push_str(&format!(
            "[plugins.hostile{at}]\npath = {:?}\n[plugins.hostile{at}.grants]\n\
             dirs = [{{ host = {:?}, guest = \"/flag\", access = \"read\" }}]\n",
            plugin("hostile"),
            folder.join("flag")
        ));
    }
    text.push_str(&format!("[plugins.reach]\npath = {:?}\nprefix = \"by_\"\n", plugin("reach")));
    if reach {
        text.push_str(&format!(
            "[plugins.reach.grants]\ndirs = [{{ host = {:?}, guest = \"/d\", access = \"read\" }}]\n",
            folder.join("d")
        ));
    }
    folder.config(&text);
}

/// A client of a plugin that can read a file, and of so many plugins that can be made to loop in their lists; all of them loaded.
async fn started(hostile: usize) -> (Folder, Pipe) {
    let folder = Folder::new();
    folder.write("d/f", "file");
    std::fs::create_dir_all(folder.join("flag")).unwrap();
    config(&folder, hostile, true);
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy("2025-11-25", json!({})).await;
    pipe.request("tools/list", json!({})).await.unwrap();
    (folder, pipe)
}

async fn revoked_soon(pipe: &mut Pipe, folder: &Folder, spinning: usize, what: &str) {
    let read = pipe.call("by_read", json!({ "path": "/d/f" })).await;
    assert_eq!(text(&read), "file", "{what}");
    config(folder, spinning, false);
    let began = Instant::now();
    loop {
        let read = pipe.call("by_read", json!({ "path": "/d/f" })).await;
        if is_error(&read) || text(&read) != "file" {
            break;
        }
        assert!(began.elapsed() < scaled(SOON), "{what}: still readable");
    }
    println!("{what}: taken away {:?} after the file was written", began.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn announcements_of_one_plugin_postpone_nothing() {
    let (folder, mut pipe) = started(1).await;
    folder.write("flag/spin", "");
    for _ in 0..3 {
        pipe.call("hostile0_flood_list_changed", json!({ "n": 300 })).await;
    }
    revoked_soon(&mut pipe, &folder, 1, "300 announcements of a plugin whose list spins").await;
    // The looping call is given up, and the plugin's last list is served.
    pipe.wait_for_log("fails when asked what it offers").await;
    let result = pipe.call("hostile0_ok", json!({})).await;
    assert_eq!(text(&result), "fine");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_that_never_end_postpone_nothing() {
    let folder = Folder::new();
    folder.write("d/f", "file");
    folder.write("flag/spin", "");
    config(&folder, 6, true);
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy("2025-11-25", json!({})).await;
    let began = Instant::now();
    let result = pipe.call("by_echo", json!({ "message": "well" })).await;
    println!("the first call during six lists that spin: {:?}", began.elapsed());
    assert_eq!(text(&result), "well");
    assert!(began.elapsed() < 2 * prompt());
    revoked_soon(&mut pipe, &folder, 6, "six plugins whose lists spin").await;
}

/// A plugin that announces as fast as it can is asked at most as often as allowed, and others are notified of their own changes.
#[tokio::test(flavor = "multi_thread")]
async fn a_chatty_plugin_keeps_no_one_elses_changes_waiting() {
    let (folder, mut pipe) = started(1).await;
    let flood = pipe
        .begin("tools/call", json!({ "name": "hostile0_flood_list_changed", "arguments": { "n": 10_000_000 } }))
        .await;
    let began = Instant::now();
    folder.config(&format!(
        "[plugins.echo]\npath = {:?}\nprefix = \"other_\"\n[plugins.hostile0]\npath = {:?}\n",
        plugin("echo"),
        plugin("hostile")
    ));
    loop {
        let result = pipe.request("tools/call", json!({ "name": "other_echo", "arguments": { "message": "m" } })).await;
        if result.is_ok() {
            break;
        }
        assert!(began.elapsed() < prompt(), "the change is not served");
    }
    pipe.cancel(&flood).await;
    let told = pipe.inbox().iter().filter(|one| one["method"] == "notifications/tools/list_changed").count();
    assert!(told < 60, "{told} times");
}
