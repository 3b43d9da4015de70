//! A plugin that uses all it is allowed to hardly affects another plugin that does ordinary work, or `ping`.

#![expect(clippy::disallowed_methods, reason = "tests write what wharf is to read; what they spawn ends with them")]
#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stdout, reason = "tests print their measurements")]

use std::time::{Duration, Instant};

use e2e::{Folder, Pipe, Value, json, names, plugin, prompt, scaled, text};

/// The limit of a bystander's p99. The design requires 20 ms or three times the value when alone; the rest is for busy machines.
const P99: Duration = Duration::from_millis(100);

async fn started(hostile: &str) -> (Folder, Pipe) {
    started_under("true", hostile).await
}

async fn started_under(limits: &str, hostile: &str) -> (Folder, Pipe) {
    let folder = Folder::new();
    folder.write("d/f", "file");
    folder.config(&format!(
        "plugin_dir = {:?}\n[plugins.hostile]\npath = {:?}\nprefix = \"\"\n{hostile}\n[plugins.echo]\npath = {:?}\nprefix = \"by_\"\n\
         [plugins.reach]\npath = {:?}\nprefix = \"by_\"\n[plugins.reach.grants]\n\
         dirs = [{{ host = {:?}, guest = \"/d\", access = \"read\" }}]\n",
        folder.join("plugins"),
        plugin("hostile"),
        plugin("echo"),
        plugin("reach"),
        folder.join("d"),
    ));
    folder.plugin("hello");
    let mut pipe = Pipe::start_limited(&folder, limits, &["run"]);
    pipe.legacy("2025-11-25", json!({})).await;
    pipe.request("tools/list", json!({})).await.unwrap();
    (folder, pipe)
}

struct Latencies(Vec<Duration>);

impl Latencies {
    fn at(&mut self, share: f64) -> Duration {
        self.0.sort();
        self.0[((self.0.len() - 1) as f64 * share) as usize]
    }
}

/// Makes calls and pings in turn; returns the latencies of each.
async fn measure(pipe: &mut Pipe, rounds: usize) -> (Latencies, Latencies) {
    let (mut calls, mut pings) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let began = Instant::now();
        let result = pipe.call("by_echo", json!({ "message": format!("{round}") })).await;
        calls.push(began.elapsed());
        assert_eq!(text(&result), format!("{round}"));
        let began = Instant::now();
        pipe.request("ping", json!({})).await.unwrap();
        pings.push(began.elapsed());
    }
    (Latencies(calls), Latencies(pings))
}

async fn begin(pipe: &mut Pipe, n: usize, tool: &str, arguments: Value) -> Vec<Value> {
    let mut ids = Vec::new();
    for _ in 0..n {
        ids.push(pipe.begin("tools/call", json!({ "name": tool, "arguments": arguments })).await);
    }
    ids
}

#[tokio::test(flavor = "multi_thread")]
async fn spinning_sleeping_and_hungry_calls_hardly_delay_others() {
    let (_folder, mut pipe) = started("[plugins.hostile.limits]\ntimeout_ms = 20000").await;
    measure(&mut pipe, 50).await;
    let (mut alone, mut ping_alone) = measure(&mut pipe, 400).await;
    println!("alone: echo p50 {:?} p99 {:?}, ping p99 {:?}", alone.at(0.5), alone.at(0.99), ping_alone.at(0.99));
    for (what, n, tool, arguments) in [
        ("4 spinning", 4, "spin", json!({})),
        ("40 spinning", 40, "spin", json!({})),
        ("40 sleeping", 40, "sleep", json!({ "ms": 60_000 })),
        ("100 hungry", 100, "allocate", json!({ "mib": 500 })),
        ("100 printing", 100, "print", json!({ "bytes": 1 << 24 })),
    ] {
        let ids = begin(&mut pipe, n, tool, arguments).await;
        let (mut calls, mut pings) = measure(&mut pipe, 400).await;
        println!(
            "{what}: echo p50 {:?} p99 {:?} max {:?}, ping p50 {:?} p99 {:?} max {:?}",
            calls.at(0.5),
            calls.at(0.99),
            calls.at(1.0),
            pings.at(0.5),
            pings.at(0.99),
            pings.at(1.0)
        );
        for id in &ids {
            pipe.cancel(id).await;
        }
        let limit = scaled(P99).max(alone.at(0.99) * 3);
        assert!(calls.at(0.99) <= limit, "{what}: echo p99 {:?}", calls.at(0.99));
        assert!(pings.at(0.99) <= limit, "{what}: ping p99 {:?}", pings.at(0.99));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn results_that_are_hard_to_check_delay_no_one() {
    let (_folder, mut pipe) = started("[plugins.hostile.limits]\ntimeout_ms = 3000").await;
    let began = Instant::now();
    let ids = begin(&mut pipe, 4, "costly", json!({ "item": "0", "n": 2_000_000 })).await;
    let mut worst = Duration::ZERO;
    let mut open = ids.clone();
    while !open.is_empty() && began.elapsed() < Duration::from_secs(25) {
        let asked = Instant::now();
        let result = pipe.call("by_echo", json!({ "message": "m" })).await;
        assert_eq!(text(&result), "m");
        worst = worst.max(asked.elapsed());
        let done: Vec<Value> = pipe.inbox().iter().filter_map(|message| message.get("id").cloned()).collect();
        open.retain(|id| !done.contains(id));
    }
    println!("worst echo {worst:?}; the four calls took {:?}", began.elapsed());
    assert!(
        worst < scaled(Duration::from_secs(1)),
        "an echo waited {worst:?} for the checking of another plugin's result"
    );
    assert!(began.elapsed() < 2 * prompt(), "the deadline of 3 s does not count while a result is checked");
}

#[tokio::test(flavor = "multi_thread")]
async fn large_results_leave_the_host_its_memory() {
    let (_folder, mut pipe) = started("").await;
    let ids = begin(&mut pipe, 16, "structured_array", json!({ "item": "{\"a\":0}", "n": 500_000 })).await;
    let began = Instant::now();
    let (mut calls, mut pings) = measure(&mut pipe, 50).await;
    for id in &ids {
        pipe.answer(id).await.unwrap();
    }
    let peak = e2e::memory_kib(pipe.pid(), "VmHWM");
    println!(
        "16 results of 4 MiB: peak {} MiB, {:?}, echo p50 {:?} max {:?}, ping max {:?}",
        peak >> 10,
        began.elapsed(),
        calls.at(0.5),
        calls.at(1.0),
        pings.at(1.0)
    );
    assert!(peak < 2048 * 1024, "the host grew to {peak} KiB");
}

/// JSON in other places of an answer takes no more than structured content does, and what there is no memory for is refused.
#[tokio::test(flavor = "multi_thread")]
async fn large_json_beside_the_structured_content_leaves_the_host_its_memory() {
    for tool in ["raw_array", "more_array", "data_array"] {
        let (_folder, mut pipe) = started("[limits]\ntotal_host_memory_mib = 256\ntotal_memory_mib = 512\n").await;
        let small = pipe.request("tools/call", json!({ "name": tool, "arguments": { "item": "0", "n": 1000 } })).await;
        let told = format!("{small:?}");
        assert!(!told.contains("not enough memory") && told.len() > 1000, "{tool}: {told}");
        let ids = begin(&mut pipe, 12, tool, json!({ "item": "{\"\":0}", "n": 500_000 })).await;
        let (mut calls, mut pings) = measure(&mut pipe, 50).await;
        for id in &ids {
            let answer = format!("{:?}", pipe.answer(id).await);
            assert!(answer.contains("not enough memory"), "{tool}: {}", answer.get(..300).unwrap_or(&answer));
        }
        let peak = e2e::memory_kib(pipe.pid(), "VmHWM");
        println!(
            "12 of 4 MiB, {tool}: peak {} MiB, echo p50 {:?} max {:?}, ping max {:?}",
            peak >> 10,
            calls.at(0.5),
            calls.at(1.0),
            pings.at(1.0)
        );
        assert!(peak < 896 << 10, "{tool}: the host grew to {peak} KiB");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn open_files_of_one_plugin_leave_some_for_others() {
    let shared = Folder::new();
    shared.write("f", "file");
    let dirs = format!("dirs = [{{ host = {:?}, guest = \"/d\", access = \"read\" }}]", shared.path());
    let (folder, mut pipe) =
        // The usual limit of a shell or a service, which cannot be raised.
        started_under("ulimit -n 1024", &format!("[plugins.hostile.limits]\ntimeout_ms = 20000\n[plugins.hostile.grants]\n{dirs}")).await;
    let tools = names(&pipe.request("tools/list", json!({})).await.unwrap(), "tools");
    let held = begin(&mut pipe, 4, "open_many", json!({ "n": 2000, "path": "/d/f", "ms": 15_000 })).await;
    let fds = format!("/proc/{}/fd", pipe.pid());
    let began = Instant::now();
    let mut open = 0;
    // They wait, and hold the places that they got.
    while open < 400 && began.elapsed() < prompt() {
        open = std::fs::read_dir(&fds).unwrap().count();
        pipe.request("ping", json!({})).await.unwrap();
    }
    println!("{open} files open");
    let read = pipe.call("by_read", json!({ "path": "/d/f" })).await;
    assert_eq!(text(&read), "file", "a plugin that holds many files keeps others from theirs");
    // The plugin folder changes in the meantime.
    folder.plugin_as("time", "plugins/another.wasm");
    pipe.notification("notifications/tools/list_changed").await;
    let now = names(&pipe.request("tools/list", json!({})).await.unwrap(), "tools");
    assert!(
        tools.iter().all(|tool| now.contains(tool)),
        "dropped-in plugins are gone: {} tools before, {} now",
        tools.len(),
        now.len()
    );
    assert!(now.len() > tools.len(), "and the new one is there: {now:?}");
    for id in &held {
        pipe.cancel(id).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn plugins_that_hold_every_place_leave_one_for_others() {
    let folder = Folder::new();
    let mut config = format!("[plugins.echo]\npath = {:?}\nprefix = \"by_\"\n", plugin("echo"));
    for id in ["a", "b", "c", "d"] {
        config.push_str(&format!("[plugins.{id}]\npath = {:?}\n", plugin("hostile")));
    }
    folder.config(&config);
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy("2025-11-25", json!({})).await;
    let mut ids = Vec::new();
    for id in ["a", "b", "c", "d"] {
        ids.extend(begin(&mut pipe, 16, &format!("{id}_sleep"), json!({ "ms": 25_000 })).await);
    }
    let began = Instant::now();
    let (mut calls, _) = measure(&mut pipe, 50).await;
    println!("echo during 64 sleeping calls: p50 {:?}, max {:?}", calls.at(0.5), calls.at(1.0));
    assert!(began.elapsed() < 2 * prompt(), "an echo waits for sleepers of other plugins");
    for id in &ids {
        pipe.cancel(id).await;
    }
}
