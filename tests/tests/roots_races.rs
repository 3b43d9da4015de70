//! Directories that change during a call, and special files: nothing outside is ever read, nothing hangs.

#![expect(clippy::disallowed_methods, reason = "tests write what wharf is to read; what they spawn ends with them")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stdout, reason = "tests print their measurements")]

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Instant,
};

use e2e::{Folder, PATIENCE, Pipe, Value, is_error, json, plugin, prompt, text};
use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};

async fn client(folder: &Folder, root: &Path, limits: &str) -> Pipe {
    folder.config(&format!(
        "[roots]\nwithin = [{:?}]\n[plugins.reach]\npath = {:?}\nprefix = \"\"\n{limits}\n[plugins.reach.grants]\nroots = \"read-write\"\n\
         [plugins.by]\npath = {:?}\n[plugins.by.grants]\ndirs = [{{ host = {:?}, guest = \"/by\", access = \"read\" }}]\n",
        folder.join("code"),
        plugin("reach"),
        folder.plugin("reach"),
        folder.join("by"),
    ));
    folder.write("by/f", "by");
    let mut pipe = Pipe::start(folder, &["run"]);
    let answer = json!({ "roots": [{ "uri": format!("file://{}", root.display()) }] });
    pipe.answer_with(move |method, _| (method == "roots/list").then(|| answer.clone()));
    pipe.legacy("2025-11-25", json!({ "roots": { "listChanged": true } })).await;
    pipe
}

/// Swaps two names, again and again, until it is dropped.
struct Swapper {
    stop: Arc<AtomicBool>,
    swaps: Arc<AtomicU64>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Swapper {
    fn of(one: PathBuf, other: PathBuf) -> Self {
        let (stop, swaps) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, count) = (Arc::clone(&stop), Arc::clone(&swaps));
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        Self { stop, swaps, thread: Some(thread) }
    }

    fn swaps(&self) -> u64 {
        self.swaps.load(Ordering::Relaxed)
    }
}

impl Drop for Swapper {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().map(std::thread::JoinHandle::join);
    }
}

async fn said(pipe: &mut Pipe, tool: &str, arguments: Value) -> String {
    text(&pipe.call(tool, arguments).await).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_swapped_for_a_link_out_is_never_followed() {
    let folder = Folder::new();
    folder.write("code/proj/a/f", "inside");
    folder.write("secret/f", "SECRET");
    let root = folder.join("code/proj");
    std::os::unix::fs::symlink("../../secret", root.join("b")).unwrap();
    let mut pipe = client(&folder, &root, "").await;
    assert_eq!(said(&mut pipe, "read", json!({ "path": root.join("a/f") })).await, "inside");
    let swapper = Swapper::of(root.join("a"), root.join("b"));
    let (mut seen, mut rounds) = (Vec::new(), 0);
    while rounds < 200 && (swapper.swaps() < 10_000 || rounds < 5) {
        let got = said(&mut pipe, "read_many", json!({ "path": root.join("a/f"), "times": 2000 })).await;
        seen.extend(got.lines().map(ToOwned::to_owned));
        rounds += 1;
    }
    println!("{} swaps, {rounds} calls of 2000 reads", swapper.swaps());
    assert!(swapper.swaps() >= 10_000, "{} swaps", swapper.swaps());
    drop(swapper);
    assert!(seen.iter().any(|line| line == "inside"), "the race is run");
    assert!(!seen.iter().any(|line| line.contains("SECRET")), "read through a swapped link");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_root_swapped_for_a_link_out_is_never_followed() {
    let folder = Folder::new();
    folder.write("code/proj/f", "inside");
    folder.write("secret/f", "SECRET");
    let root = folder.join("code/proj");
    std::os::unix::fs::symlink(folder.join("secret"), folder.join("code/link")).unwrap();
    let mut pipe = client(&folder, &root, "").await;
    assert_eq!(said(&mut pipe, "read", json!({ "path": root.join("f") })).await, "inside");
    let swapper = Swapper::of(root.clone(), folder.join("code/link"));
    let mut seen = Vec::new();
    for round in 0..1000 {
        if round % 10 == 0 {
            pipe.notify("notifications/roots/list_changed", json!({})).await;
        }
        seen.push(said(&mut pipe, "read", json!({ "path": root.join("f") })).await);
    }
    println!("{} swaps", swapper.swaps());
    drop(swapper);
    assert!(!seen.iter().any(|got| got.contains("SECRET")), "read through a swapped root");
    let last = said(&mut pipe, "read", json!({ "path": root.join("f") })).await;
    assert!(!last.contains("SECRET"), "{last}");
}

fn threads(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipe_among_the_files_ends_with_the_deadline() {
    let folder = Folder::new();
    folder.write("code/proj/f", "inside");
    let root = folder.join("code/proj");
    mknodat(CWD, root.join("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let mut pipe = client(&folder, &root, "[plugins.reach.limits]\ntimeout_ms = 500").await;
    assert_eq!(said(&mut pipe, "read", json!({ "path": root.join("f") })).await, "inside");
    let before = threads(pipe.pid());
    for _ in 0..3 {
        let began = Instant::now();
        let result = pipe.call("head", json!({ "path": root.join("fifo") })).await;
        assert!(began.elapsed() < prompt(), "{:?}", began.elapsed());
        assert!(is_error(&result) || text(&result).is_empty() || text(&result).starts_with("error"), "{result}");
    }
    assert_eq!(said(&mut pipe, "by_read", json!({ "path": "/by/f" })).await, "by");
    // More than all threads that wait for files: opening it must not block one of them each time.
    let mut ids = Vec::new();
    for _ in 0..600 {
        ids.push(pipe.begin("tools/call", json!({ "name": "head", "arguments": { "path": root.join("fifo") } })).await);
        if ids.len() == 16 {
            for id in ids.drain(..) {
                let id: Value = id;
                let answered = pipe.find_within(PATIENCE, |message| message.get("id") == Some(&id)).await;
                assert!(answered.is_some(), "wharf hangs; it has {} threads, {before} before", threads(pipe.pid()));
            }
        }
    }
    assert_eq!(said(&mut pipe, "by_read", json!({ "path": "/by/f" })).await, "by", "{} threads", threads(pipe.pid()));
    assert!(threads(pipe.pid()) < before + 100, "{} threads, {before} before", threads(pipe.pid()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_among_the_files_is_read_within_limits() {
    let folder = Folder::new();
    folder.write("code/proj/f", "inside");
    let root = folder.join("code/proj");
    let mut pipe = client(&folder, &root, "[plugins.reach.limits]\ntimeout_ms = 2000").await;
    let made = mknodat(CWD, root.join("zero"), FileType::CharacterDevice, Mode::RUSR, rustix::fs::makedev(1, 5));
    if made.is_ok() {
        let began = Instant::now();
        let result = pipe.call("read", json!({ "path": root.join("zero") })).await;
        assert!(is_error(&result) || text(&result).starts_with("error"), "an endless file: {}", text(&result).len());
        assert!(began.elapsed() < 2 * prompt(), "{:?}", began.elapsed());
    }
    assert_eq!(said(&mut pipe, "read", json!({ "path": root.join("f") })).await, "inside");
}
