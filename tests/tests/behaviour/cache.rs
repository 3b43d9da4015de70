//! The cache of compiled code: if it is broken, missing, full or hostile, the only effects are a warning and a compilation.

use std::{
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    time::Instant,
};

use e2e::{Folder, PATIENCE, Pipe, json, names, plugin, prompt};
use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};

fn config(folder: &Folder) {
    folder.config(&format!(
        "[plugins.hello]\npath = {:?}\n[plugins.time]\npath = {:?}\n",
        plugin("hello"),
        plugin("time")
    ));
}

fn base(folder: &Folder) -> PathBuf {
    folder.join("own-cache")
}

fn start(folder: &Folder) -> Pipe {
    let base = base(folder);
    Pipe::start_with(folder, &["run"], &[("XDG_CACHE_HOME", base.to_str().unwrap())])
}

/// Waits until both plugins are served; returns the log.
async fn serves(folder: &Folder) -> String {
    let mut pipe = start(folder);
    pipe.legacy("2025-11-25", json!({})).await;
    let listed = pipe.request("tools/list", json!({})).await.unwrap();
    assert_eq!(names(&listed, "tools").len(), 3, "{}", pipe.log());
    let greeted = pipe.call("hello_greet", json!({ "name": "Ada" })).await;
    assert_eq!(e2e::text(&greeted), "Hello, Ada!");
    let ended = pipe.close().await;
    assert!(ended.status.success(), "{ended:?}");
    ended.log
}

/// Writes an artifact in place of the one that is there, which cannot be written.
fn write(file: &Path, bytes: impl AsRef<[u8]>) {
    std::fs::remove_file(file).unwrap();
    std::fs::write(file, bytes).unwrap();
}

fn artifacts(folder: &Folder) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(base(folder).join("wharf")) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_in_the_middle_leaves_nothing_that_hurts() {
    let folder = Folder::new();
    config(&folder);
    // Killed when the first file appears, when there are two, and so on: often in the middle of a write.
    for files in 1..=3 {
        let mut pipe = start(&folder);
        pipe.legacy("2025-11-25", json!({})).await;
        let began = Instant::now();
        while artifacts(&folder).len() < files && began.elapsed() < prompt() {
            tokio::task::yield_now().await;
        }
        e2e::pipe::signal(pipe.pid(), Signal::KILL);
        pipe.wait().await;
        serves(&folder).await;
        if let Some(path) = artifacts(&folder).into_iter().next() {
            std::fs::remove_file(path).unwrap();
        }
    }
    let log = serves(&folder).await;
    assert!(!log.contains("WARN"), "{log}");
    for path in artifacts(&folder) {
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o400, "{}", path.display());
    }
    assert_eq!(std::fs::metadata(base(&folder).join("wharf")).unwrap().permissions().mode() & 0o777, 0o700);
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_artifacts_are_noticed_and_made_anew() {
    let folder = Folder::new();
    config(&folder);
    serves(&folder).await;
    for damage in ["one bit", "cut", "emptied", "link", "swapped"] {
        let files = artifacts(&folder);
        assert_eq!(files.len(), 2, "{damage}: {files:?}");
        let bytes = std::fs::read(&files[0]).unwrap();
        match damage {
            "one bit" => {
                let mut bytes = bytes;
                let middle = bytes.len() / 2;
                bytes[middle] ^= 1;
                write(&files[0], bytes);
            }
            "cut" => write(&files[0], &bytes[..bytes.len() / 2]),
            "emptied" => write(&files[0], ""),
            // A complete artifact, but of another component.
            "swapped" => write(&files[0], std::fs::read(&files[1]).unwrap()),
            "link" => {
                let elsewhere = folder.write("elsewhere", bytes);
                std::fs::remove_file(&files[0]).unwrap();
                symlink(elsewhere, &files[0]).unwrap();
            }
            _ => unreachable!("{damage}"),
        }
        let log = serves(&folder).await;
        if damage != "link" {
            assert!(log.contains("a cached artifact is damaged"), "{damage}: {log}");
        }
        let again = serves(&folder).await;
        assert!(!again.contains("WARN"), "{damage}: {again}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_is_no_good_means_compiling_each_time() {
    for what in ["dangling", "link", "file", "open", "unwritable"] {
        let folder = Folder::new();
        config(&folder);
        let place = base(&folder).join("wharf");
        std::fs::create_dir_all(base(&folder)).unwrap();
        match what {
            "dangling" => symlink("/nowhere/at/all", &place).unwrap(),
            "link" => {
                std::fs::create_dir(folder.join("real")).unwrap();
                symlink(folder.join("real"), &place).unwrap();
            }
            "file" => std::fs::write(&place, "").unwrap(),
            "open" => {
                std::fs::create_dir(&place).unwrap();
                folder.set_mode("own-cache/wharf", 0o755);
            }
            _ => {
                std::fs::remove_dir(base(&folder)).unwrap();
                std::fs::write(base(&folder), "").unwrap();
            }
        }
        let log = serves(&folder).await;
        assert!(log.contains("compiled plugins are not cached"), "{what}: {log}");
        assert!(!folder.join("real").exists() || std::fs::read_dir(folder.join("real")).unwrap().next().is_none());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_on_file_sizes_costs_the_cache_and_nothing_else() {
    let folder = Folder::new();
    folder.config("plugin_dir = \"../../plugins\"");
    let mut pipe = start(&folder);
    pipe.legacy("2025-11-25", json!({})).await;
    assert!(names(&pipe.request("tools/list", json!({})).await.unwrap(), "tools").is_empty());
    let pid = Pid::from_raw(i32::try_from(pipe.pid()).unwrap());
    prlimit(pid, Resource::Fsize, Rlimit { current: Some(200_000), maximum: None }).unwrap();
    folder.plugin("hello");
    folder.plugin("echo");
    pipe.wait_for_log("serving plugin=\"hello\"").await;
    pipe.wait_for_log("serving plugin=\"echo\"").await;
    let listed = pipe.request("tools/list", json!({})).await.unwrap();
    assert_eq!(names(&listed, "tools").len(), 2, "{}", pipe.log());
    assert!(pipe.log().contains("the compiled code is not cached"), "{}", pipe.log());
    assert!(artifacts(&folder).is_empty(), "{:?}", artifacts(&folder));
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_survive_a_limit_on_file_sizes() {
    let folder = Folder::new();
    config(&folder);
    folder.plugin("hello");
    let base = base(&folder);
    for arguments in
        [&["check"][..], &["inspect", "plugins/hello.wasm"], &["call", "plugins/hello.wasm", "greet", "name=Ada"]]
    {
        let mut limited = folder.limited("ulimit -f 300", arguments, &[("XDG_CACHE_HOME", base.to_str().unwrap())]);
        let output = tokio::time::timeout(PATIENCE, limited.output()).await.unwrap().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {} {said}", output.status);
        std::fs::remove_dir_all(&base).ok();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cache_that_vanishes_is_not_missed() {
    let folder = Folder::new();
    folder.config("plugin_dir = \"../../plugins\"");
    let mut pipe = start(&folder);
    pipe.legacy("2025-11-25", json!({})).await;
    pipe.request("tools/list", json!({})).await.unwrap();
    std::fs::remove_dir_all(base(&folder)).unwrap();
    folder.plugin("hello");
    pipe.notification("notifications/tools/list_changed").await;
    let greeted = pipe.call("hello_greet", json!({ "name": "Ada" })).await;
    assert_eq!(e2e::text(&greeted), "Hello, Ada!");
}
