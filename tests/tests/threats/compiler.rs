//! Compiling, and the compiler process: bombs, crashes, a suspended compiler, and folders that cannot be written.

use std::time::Instant;

use e2e::{Folder, PATIENCE, Pipe, Server, compiler, cpu_time, json, memory_kib, names, plugin, prompt};
use rustix::process::{Pid, Signal, kill_process};

use crate::bystander::{config, during, within};

fn assembled(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap()
}

/// A component of components, each of which instantiates the one inside it so many times.
fn nested(levels: usize, width: usize) -> Vec<u8> {
    let mut text = "(component $c (core module $m (memory 1)) (core instance (instantiate $m)))".to_owned();
    for _ in 0..levels {
        text = format!("(component $c {text} {})", "(instance (instantiate $c))".repeat(width));
    }
    assembled(&text)
}

/// A single function that is so large that it takes long to compile.
fn slow() -> Vec<u8> {
    let body = "(local.set 0 (i64.mul (i64.add (local.get 0) (local.get 1)) (i64.rotl (local.get 1) (local.get 0))))
        (local.set 1 (i64.xor (local.get 0) (i64.load (i32.wrap_i64 (local.get 1)))))";
    let module =
        format!("(component (core module (memory 1) (func (export \"f\") (local i64 i64) {})))", body.repeat(200_000));
    assembled(&module)
}

fn globals(instances: usize) -> Vec<u8> {
    let globals = "(global (mut i64) (i64.const 0))".repeat(10_000);
    assembled(&format!(
        "(component (core module $m {globals}) {})",
        "(core instance (instantiate $m))".repeat(instances)
    ))
}

fn good_plugins(folder: &Folder, count: usize) {
    for at in 0..count {
        folder.plugin_as("hello", &format!("plugins/good{at}.wasm"));
    }
}

fn cold(folder: &Folder) -> [(&'static str, String); 1] {
    [("XDG_CACHE_HOME", folder.join("own-cache").display().to_string())]
}

/// A wharf with an empty cache, before any message. A handshake would wait for the first load.
fn cold_wharf(folder: &Folder) -> Pipe {
    let environment = cold(folder);
    let environment: Vec<(&str, &str)> = environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
    Pipe::start_with(folder, &["run"], &environment)
}

async fn cold_client(folder: &Folder) -> Pipe {
    let mut pipe = cold_wharf(folder);
    pipe.legacy("2025-11-25", json!({})).await;
    pipe
}

/// A config with little time to compile, and plugins that are in the cache, however long it took to compile them.
async fn short_of_time(folder: &Folder) {
    let plugins = format!("plugin_dir = {:?}\n", folder.join("plugins"));
    folder.plugin("hello");
    config(folder, &plugins);
    let mut pipe = cold_client(folder).await;
    assert_eq!(e2e::text(&pipe.call("hello_greet", json!({ "name": "Ada" })).await), "Hello, Ada!");
    assert_eq!(e2e::text(&pipe.call("by_echo", json!({ "message": "well" })).await), "well");
    pipe.close().await;
    config(folder, &format!("{plugins}[limits]\ncompile_timeout_ms = 4000\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn bombs_beside_good_plugins_delay_no_one() {
    let folder = Folder::new();
    config(
        &folder,
        &format!(
            "plugin_dir = {:?}\n[limits]\ntotal_memory_mib = 512\ntotal_host_memory_mib = 256\ncompile_timeout_ms = 20000\n",
            folder.join("plugins")
        ),
    );
    good_plugins(&folder, 20);
    // The harmless plugins are already compiled, as is usual.
    let warm = Server::loaded(&folder).await;
    drop(warm);
    let began = Instant::now();
    let server = Server::loaded(&folder).await;
    let usual = began.elapsed();
    drop(server);
    for (name, bytes) in
        [("instances", nested(2, 900)), ("deep", nested(40, 2)), ("globals", globals(400)), ("slow", slow())]
    {
        println!("{name}: {} bytes", bytes.len());
        folder.write(&format!("plugins/{name}.wasm"), bytes);
    }
    let began = Instant::now();
    let server = Server::loaded(&folder).await;
    let listed = server.modern("tools/list", json!({}), json!({})).await.unwrap();
    println!("20 good plugins next to 4 bombs listed after {:?}, usually {usual:?}", began.elapsed());
    assert_eq!(names(&listed, "tools").len(), 21);
    assert!(began.elapsed() < usual * 3 + prompt(), "{:?}", began.elapsed());
    let mut session = server.legacy("2025-11-25", json!({})).await;
    during(&mut session, "bombs", async {
        for (id, why) in [("instances", "instances"), ("deep", "instances"), ("globals", "globals")] {
            let line = server.wait_for_log(&format!("plugin=\"{id}\"")).await;
            assert!(line.contains(why), "{line}");
        }
    })
    .await;
    within(&server, 768, "bombs");
}

#[tokio::test(flavor = "multi_thread")]
async fn inspect_and_check_say_what_a_bomb_comes_to() {
    let folder = Folder::new();
    let bomb = folder.write("bomb.wasm", nested(2, 900));
    let began = Instant::now();
    let output = folder.run(&["inspect", bomb.to_str().unwrap()], &[]).await;
    let said = e2e::folder::stdout(&output);
    assert!(!output.status.success() && said.contains("nested in it") && said.contains("instances"), "{said}");
    assert!(began.elapsed() < 2 * prompt());
    config(&folder, &format!("[plugins.bomb]\npath = {bomb:?}\n"));
    let output = folder.run(&["check"], &[]).await;
    assert!(!output.status.success() && e2e::folder::stdout(&output).contains("instances"));
}

/// The plugins of a first load wait for the last one, and do not keep a core from its compiler.
#[tokio::test(flavor = "multi_thread")]
async fn a_first_load_that_waits_for_a_compiler_uses_no_cpu_time() {
    let folder = Folder::new();
    short_of_time(&folder).await;
    folder.write("plugins/slow.wasm", slow());
    let pipe = cold_wharf(&folder);
    let child = compiler::begun(pipe.pid()).await;
    kill_process(Pid::from_raw(child).unwrap(), Signal::STOP).unwrap();
    let (before, began) = (cpu_time(pipe.pid()), Instant::now());
    let line = pipe.wait_for_log("compile_timeout_ms").await;
    assert!(line.contains("slow"), "{line}");
    let used = cpu_time(pipe.pid()).saturating_sub(before);
    assert!(used < began.elapsed() / 4, "{used:?} of {:?}", began.elapsed());
}

/// Failures of the compiler process are reported, and the last valid version is served.
#[tokio::test(flavor = "multi_thread")]
async fn a_compiler_that_stands_still_or_is_killed_changes_nothing() {
    let folder = Folder::new();
    short_of_time(&folder).await;
    let mut pipe = cold_client(&folder).await;
    assert_eq!(e2e::text(&pipe.call("hello_greet", json!({ "name": "Ada" })).await), "Hello, Ada!");
    for (signal, told) in [(Signal::STOP, "compile_timeout_ms"), (Signal::KILL, "signal 9")] {
        folder.write("plugins/hello.wasm", [slow(), signal.as_raw().to_string().into_bytes()].concat());
        let child = compiler::begun(pipe.pid()).await;
        kill_process(Pid::from_raw(child).unwrap(), signal).unwrap();
        let line = pipe.wait_for_log(told).await;
        assert!(line.contains("last good version serves"), "{line}");
        let result = pipe.call("hello_greet", json!({ "name": "Ada" })).await;
        assert_eq!(e2e::text(&result), "Hello, Ada!");
        let began = Instant::now();
        while std::path::Path::new(&format!("/proc/{child}")).exists() {
            assert!(began.elapsed() < PATIENCE, "the child is left behind");
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_wharf_leaves_no_compiler_behind() {
    let folder = Folder::new();
    config(&folder, &format!("plugin_dir = {:?}\n", folder.join("plugins")));
    folder.write("plugins/slow.wasm", slow());
    let pipe = cold_wharf(&folder);
    let child = compiler::begun(pipe.pid()).await;
    e2e::pipe::signal(pipe.pid(), Signal::KILL);
    pipe.wait().await;
    let began = Instant::now();
    let ended = || {
        let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        stat.is_empty() || stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim().starts_with('Z'))
    };
    while !ended() {
        assert!(began.elapsed() < prompt(), "the child lives on");
        tokio::task::yield_now().await;
    }
}

/// A cache that is read-only or full causes a warning; the plugin is served.
#[tokio::test(flavor = "multi_thread")]
async fn where_nothing_can_be_written_plugins_still_load() {
    let folder = Folder::new();
    config(&folder, &format!("[plugins.hello]\npath = {:?}\n", plugin("hello")));
    let environment = cold(&folder);
    let environment: Vec<(&str, &str)> = environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
    // Files of at most one kilobyte: like a disk that is full in the middle of a write.
    let mut command = folder.limited("ulimit -f 1", &["run"], &environment);
    command.stdin(std::process::Stdio::piped());
    let mut pipe = Pipe::of_command(command);
    pipe.legacy("2025-11-25", json!({})).await;
    let result = pipe.call("hello_greet", json!({ "name": "Ada" })).await;
    assert_eq!(e2e::text(&result), "Hello, Ada!");
    pipe.wait_for_log("the compiled code is not cached").await;
    assert!(memory_kib(pipe.pid(), "VmRSS") > 0);
}
