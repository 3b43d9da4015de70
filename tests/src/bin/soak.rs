//! Everything at once: hostile plugins, hostile clients, ten greedy clients at different addresses that each take as much as they can of
//! one resource, reloads, changes of roots, revocations and clients that are killed; and with them, four clients that do ordinary work.
//! `cargo xtask check soak [SECONDS]`.
//!
//! Fails if one of the four gets a wrong answer or no answer, if memory use exceeds its bound, if anything is left over afterwards, or if
//! wharf does not exit cleanly.

#![expect(clippy::disallowed_methods, reason = "it looks into /proc, and takes plugins away")]
#![expect(clippy::expect_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stdout, reason = "it prints its measurements")]

use std::{
    process::ExitCode,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::{Duration, Instant},
};

use e2e::{Exchange, Folder, Pipe, Server, Value, client::Client, is_error, json, memory_kib, plugin, text};
use tokio::{
    io::AsyncWriteExt,
    net::{TcpSocket, TcpStream},
    time::timeout,
};

const TOTAL_MIB: u64 = 512;
const HOST_MIB: u64 = 256;
const SLACK_MIB: u64 = 128;
/// The most memory that may be in use after the second half, in addition to that after the first.
const LEFT_MIB: u64 = 48;
/// How late a ping may be answered, except one of a hundred. Two slow cores that did nothing else took 280 ms.
const P99: Duration = Duration::from_millis(500);
/// The same for a wharf that is not optimised: they are answered, while everything else takes its cores.
const P99_UNOPTIMISED: Duration = Duration::from_secs(10);

/// Greedy clients, at 127.0.0.11 and the following addresses.
const GREEDY: u8 = 10;
/// How many items a greedy client holds at once; beyond that, it releases the oldest.
const HELD: usize = 400;

struct Soak {
    server: Server,
    folder: Folder,
    over: AtomicBool,
    answers: AtomicU64,
    attacks: AtomicU64,
}

fn config(folder: &Folder, generous: bool) {
    let dirs = if generous {
        format!(
            "[plugins.reach.grants]\ndirs = [{{ host = {:?}, guest = \"/d\", access = \"read\" }}]\n",
            folder.join("d")
        )
    } else {
        String::new()
    };
    folder.config(&format!(
        "plugin_dir = {:?}\n[http]\nin_flight = 512\n[protocol]\nsse = true\n[roots]\nwithin = [{:?}]\n\
         [limits]\ntotal_memory_mib = {TOTAL_MIB}\ntotal_host_memory_mib = {HOST_MIB}\ntimeout_ms = 2000\n\
         [plugins.echo]\npath = {:?}\nprefix = \"by_\"\n[plugins.hostile]\npath = {:?}\nprefix = \"\"\n\
         [plugins.version]\npath = {:?}\nprefix = \"\"\n[plugins.reach]\npath = {:?}\nprefix = \"by_\"\n{dirs}",
        folder.join("plugins"),
        folder.path(),
        plugin("echo"),
        plugin("hostile"),
        folder.join("version.wasm"),
        plugin("reach"),
    ));
}

fn descriptors(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

/// Returns the memory in use, in MiB, once it has stopped falling: work under way ends within its limits.
async fn settled(pid: u32) -> u64 {
    let mut least = memory_kib(pid, "VmRSS") >> 10;
    let mut since = Instant::now();
    let began = Instant::now();
    while since.elapsed() < Duration::from_secs(4) && began.elapsed() < Duration::from_secs(40) {
        tokio::time::sleep(Duration::from_millis(250)).await;
        let now = memory_kib(pid, "VmRSS") >> 10;
        if now + 1 < least {
            (least, since) = (now, Instant::now());
        }
    }
    least
}

impl Soak {
    fn goes_on(&self) -> bool {
        !self.over.load(Ordering::Relaxed)
    }

    /// Makes calls and pings until the end, and checks each answer. Returns the latencies of the pings.
    async fn works(&self, number: u64) -> Vec<Duration> {
        let mut session = self.server.legacy("2025-11-25", json!({})).await;
        let mut latencies = Vec::new();
        let mut round = 0_u64;
        while self.goes_on() {
            round += 1;
            let message = format!("{number}-{round}");
            let result = if number.is_multiple_of(2) {
                session.call("by_echo", json!({ "message": message })).await
            } else {
                let call = json!({ "name": "by_echo", "arguments": { "message": message } });
                self.server.modern("tools/call", call, json!({})).await.expect("an answer")
            };
            assert!(!is_error(&result) && text(&result) == message, "client {number}: {result}");
            let began = Instant::now();
            session.request("ping", json!({})).await.expect("a ping");
            latencies.push(began.elapsed());
            self.answers.fetch_add(2, Ordering::Relaxed);
        }
        latencies
    }

    /// Calls misbehaving guests, one after the other.
    async fn guests(&self, start: usize) {
        let tools: [(&str, Value); 14] = [
            ("spin", json!({})),
            ("allocate", json!({ "mib": 500 })),
            ("big", json!({ "bytes": 4_000_000 })),
            ("structured_array", json!({ "item": "{\"a\":0}", "n": 300_000 })),
            ("flood_log", json!({ "n": 1000, "bytes": 1000 })),
            ("flood_list_changed", json!({ "n": 10_000 })),
            ("methods", json!({ "n": 500, "bytes": 1 << 20 })),
            ("listings", json!({ "n": 60, "path": "/", "ms": 0 })),
            ("panic", json!({ "message": "on purpose" })),
            ("recurse", json!({})),
            ("fields", json!({ "n": 100, "bytes": 1000, "ms": 0 })),
            ("costly", json!({ "item": "0", "n": 500_000 })),
            ("sleep", json!({ "ms": 60_000 })),
            ("blocks", json!({ "n": 100_000 })),
        ];
        for (tool, arguments) in tools.iter().cycle().skip(start) {
            if !self.goes_on() {
                return;
            }
            let call = json!({ "name": tool, "arguments": arguments });
            // Some of these are refused, some fail, some are answered.
            if let Ok(mut sent) = Client::at(&self.server, 30).try_begin("tools/call", call).await {
                sent.read_head().await;
            }
            self.attacks.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Clients that send too much, read nothing, or disconnect in the middle.
    async fn clients(&self) {
        let address = self.server.address;
        let head = |length: usize| {
            format!(
                "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
                 Accept: application/json, text/event-stream\r\nContent-Length: {length}\r\n\r\n"
            )
        };
        let amplified = format!("[{}[0]]", "[0],".repeat(1_900_000));
        let unread = format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\n\r\n").repeat(1000);
        let mut kept: std::collections::VecDeque<TcpStream> = Default::default();
        let mut round = 0;
        while self.goes_on() {
            round += 1;
            // These have their own address, so that the working clients count as other clients.
            let socket = TcpSocket::new_v4().expect("a socket");
            socket.bind(([127, 0, 0, 31], 0).into()).expect("an address");
            let Ok(mut stream) = socket.connect(address).await else { continue };
            let bytes = match round % 4 {
                0 => [head(amplified.len()).as_bytes(), amplified.as_bytes()].concat(),
                1 => unread.clone().into_bytes(),
                2 => [head(8_000_000).as_bytes(), &vec![b'x'; 1_000_000]].concat(),
                _ => format!("POST /mcp HTTP/1.1\r\nHost: {address}\r\n").into_bytes(),
            };
            let _ = timeout(Duration::from_millis(300), stream.write_all(&bytes)).await;
            kept.push_back(stream);
            // Clients that are dropped disconnect in the middle.
            if kept.len() > 200 {
                kept.pop_front();
            }
            let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "n", "version": "1" } } });
            let _ = Client::at(&self.server, 31).try_send("POST", &[], &initialize.to_string()).await;
            self.attacks.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A client that takes as much as it can of one resource, and holds it for as long as it can.
    async fn greedy(&self, number: u8) {
        let client = Client::at(&self.server, 11 + number);
        let mut held: std::collections::VecDeque<Exchange> = Default::default();
        let call = |tool: &str, arguments: Value| json!({ "name": tool, "arguments": arguments });
        let filter = json!({ "notifications": { "toolsListChanged": true } });
        let mut round: u64 = 0;
        while self.goes_on() {
            round += 1;
            let sent = match number {
                0 => client.try_begin("tools/call", call("sleep", json!({ "ms": 60_000 }))).await,
                1 => client.try_begin("tools/call", call("spin", json!({}))).await,
                2 => client.try_begin("tools/call", call("allocate", json!({ "mib": 40 }))).await,
                3 => client.try_begin("subscriptions/listen", filter.clone()).await,
                4 => client.try_send("POST", &[], &" ".repeat(60_000)).await,
                5 => client.try_begin("tools/call", call("big", json!({ "bytes": 3_000_000 }))).await,
                more => {
                    let Ok(mut opened) = client.try_initialize().await else { continue };
                    let session = if opened.read_head().await { opened.header("mcp-session-id") } else { None };
                    let Some(session) = session.map(str::to_owned) else { continue };
                    match more {
                        6 => client.try_in_session(&session, 2, "ping", json!({})).await,
                        7 => client.try_send("GET", &[("Mcp-Session-Id", session.as_str())], "").await,
                        8 => client.try_in_session(&session, 2, "tools/call", call("ask_forever", json!({}))).await,
                        _ => {
                            let task = json!({ "name": "ok", "arguments": {}, "task": { "ttl": 600_000 } });
                            client.try_in_session(&session, 2, "tools/call", task).await
                        }
                    }
                }
            };
            // A request that was ended in favour of others was beyond its share.
            let Ok(sent) = sent else { continue };
            held.push_back(sent);
            if held.len() > HELD {
                held.pop_front();
            }
            self.attacks.fetch_add(1, Ordering::Relaxed);
            // Runs as fast as connections can be made, but lets other tasks in this process run too.
            if round.is_multiple_of(2) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }

    /// Adds, removes and replaces files; revokes grants and restores them.
    async fn operator(&self) {
        let mut round = 0;
        let mut interval = tokio::time::interval(Duration::from_millis(150));
        while self.goes_on() {
            interval.tick().await;
            round += 1;
            let which = if round % 2 == 0 { "version-a" } else { "version-b" };
            self.folder.plugin_as(which, "version.wasm");
            match round % 4 {
                0 => drop(self.folder.plugin("hello")),
                1 => drop(self.folder.write("plugins/broken.wasm", "no component")),
                2 => drop(std::fs::remove_file(self.folder.join("plugins/hello.wasm"))),
                _ => config(&self.folder, round % 8 < 4),
            }
            let read = json!({ "name": "by_read", "arguments": { "path": "/d/f" } });
            let _ = Client::at(&self.server, 32).try_begin("tools/call", read).await;
        }
    }

    /// Clients over stdio that open folders and are killed.
    async fn pipes(&self) {
        while self.goes_on() {
            let mut pipe = Pipe::start(&self.folder, &["run"]);
            let uri = format!("file://{}", self.folder.join("d").display());
            pipe.answer_with(move |method, _| (method == "roots/list").then(|| json!({ "roots": [{ "uri": uri }] })));
            pipe.legacy("2025-11-25", json!({ "roots": { "listChanged": true } })).await;
            for _ in 0..5 {
                pipe.notify("notifications/roots/list_changed", json!({})).await;
                pipe.request("ping", json!({})).await.expect("a ping");
            }
            e2e::pipe::signal(pipe.pid(), rustix::process::Signal::KILL);
            pipe.wait().await;
            self.attacks.fetch_add(1, Ordering::Relaxed);
        }
    }

    async fn clock(&self, seconds: u64) -> u64 {
        let mut most = 0;
        let mut interval = tokio::time::interval(Duration::from_millis(100));
        let end = Instant::now() + Duration::from_secs(seconds);
        while Instant::now() < end {
            interval.tick().await;
            most = most.max(memory_kib(self.server.pid(), "VmRSS") >> 10);
        }
        self.over.store(true, Ordering::Relaxed);
        most
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let seconds: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(60);
    let folder = Folder::new();
    folder.write("d/f", "file");
    folder.plugin_as("version-a", "version.wasm");
    config(&folder, true);
    let server = Server::loaded(&folder).await;
    let pid = server.pid();
    let soak =
        Soak { server, folder, over: AtomicBool::new(false), answers: AtomicU64::new(0), attacks: AtomicU64::new(0) };
    let (memory, files) = (memory_kib(pid, "VmRSS") >> 10, descriptors(pid));
    let mut latencies: Vec<Duration> = Vec::new();
    let (mut most, mut left) = (0, Vec::new());
    // Runs twice, because sandboxes retain some memory after their first use: the rest must not grow from then on.
    for _ in 0..2 {
        soak.over.store(false, Ordering::Relaxed);
        let (peak, pings, ..) = tokio::join!(
            soak.clock(seconds.div_ceil(2)),
            async { tokio::join!(soak.works(0), soak.works(1), soak.works(2), soak.works(3)) },
            async { tokio::join!(soak.guests(0), soak.guests(3), soak.guests(6), soak.guests(9), soak.guests(12)) },
            async { tokio::join!(soak.clients(), soak.clients()) },
            soak.operator(),
            soak.pipes(),
            futures_util::future::join_all((0..GREEDY).map(|number| soak.greedy(number))),
        );
        most = most.max(peak);
        latencies.extend([pings.0, pings.1, pings.2, pings.3].concat());
        // Calls without a waiting client end by their limits, and connections that are not read end by theirs.
        let quiet = Instant::now();
        while descriptors(pid) > files + 8 && quiet.elapsed() < Duration::from_secs(60) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        left.push(settled(pid).await);
    }
    latencies.sort();
    let p99 = latencies.get(latencies.len() * 99 / 100).copied().unwrap_or_default();
    let files_after = descriptors(pid);
    let (after_once, memory_after) =
        (left.first().copied().unwrap_or_default(), left.last().copied().unwrap_or_default());
    let (status, took, log) = soak.server.terminate().await;
    println!(
        "{seconds} s: {} answers for four clients, {} attacks; pings p50 {:?}, p99 {p99:?}, worst {:?}",
        soak.answers.load(Ordering::Relaxed),
        soak.attacks.load(Ordering::Relaxed),
        latencies.get(latencies.len() / 2).copied().unwrap_or_default(),
        latencies.last().copied().unwrap_or_default(),
    );
    println!(
        "memory {memory} MiB before, at most {most} of {} MiB, {after_once} MiB after one half, {memory_after} MiB after both; {files} descriptors before, {files_after} after; ended {status} in {took:?}",
        TOTAL_MIB + HOST_MIB + SLACK_MIB
    );
    let bound = if e2e::is_optimised() { P99 } else { P99_UNOPTIMISED };
    let problems = [
        (p99 > bound, "pings are late"),
        (most > TOTAL_MIB + HOST_MIB + SLACK_MIB, "too much memory was used"),
        (memory_after > after_once + LEFT_MIB, "memory in use grows"),
        (files_after > files + 8, "descriptors are left open"),
        (!status.success() || took > Duration::from_secs(3), "it did not end in order"),
        (log.contains("a defect of wharf"), "the log tells of a defect"),
    ];
    let found: Vec<&str> = problems.iter().filter(|(is, _)| *is).map(|(_, what)| *what).collect();
    if found.is_empty() {
        ExitCode::SUCCESS
    } else {
        eprintln!("failed: {}", found.join(", "));
        ExitCode::FAILURE
    }
}
