//! Clients over HTTP and on a pipe that send far too much, read nothing, or disconnect in unusual ways.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use e2e::{Folder, MODERN, PATIENCE, Pipe, Server, json, memory_kib, modern_params, plugin, prompt, together};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::Semaphore,
    task::JoinSet,
    time::timeout,
};

use crate::bystander::{Patience, config, during, during_with, within};

const MIB: usize = 1 << 20;

fn post(server: &Server, headers: &str, body: &str) -> Vec<u8> {
    let mut bytes = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{headers}Content-Length: {}\r\n\r\n",
        server.address,
        body.len()
    )
    .into_bytes();
    bytes.extend_from_slice(body.as_bytes());
    bytes
}

fn modern_post(server: &Server, tool: &str, arguments: &str) -> Vec<u8> {
    let meta = modern_params(json!({}), json!({}))["_meta"].to_string();
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments},"_meta":{meta}}}}}"#
    );
    post(server, &format!("MCP-Protocol-Version: {MODERN}\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"), &body)
}

async fn started(limits: &str) -> (Folder, Server) {
    let folder = Folder::new();
    config(&folder, &format!("{limits}\n[plugins.hostile]\npath = {:?}\nprefix = \"\"\n", plugin("hostile")));
    let server = Server::loaded(&folder).await;
    (folder, server)
}

const SMALL: &str = "[limits]\ntotal_memory_mib = 512\ntotal_host_memory_mib = 256\n";

#[tokio::test(flavor = "multi_thread")]
async fn batches_and_deep_values_cost_no_more_than_there_is() {
    let (_folder, server) = started(SMALL).await;
    let mut session = server.legacy("2025-03-26", json!({})).await;
    let batch = format!("[{}0]", "0,".repeat(4 * MIB - 10));
    let headers = format!("Mcp-Session-Id: {}\r\n", session.id);
    let with_session = post(&server, &headers, &batch);
    let without = post(&server, "", &batch);
    let amplified = modern_post(&server, "ok", &format!(r#"{{"a":[{}[0]]}}"#, "[0],".repeat(2 * MIB - 100)));
    let objects = modern_post(&server, "ok", &format!(r#"{{"a":[{}0]}}"#, r#"{"b":{}},"#.repeat(MIB * 8 / 10)));
    for (what, bytes, statuses) in [
        ("a batch in a session", &with_session, &[400, 413, 429][..]),
        ("a batch without one", &without, &[400, 413, 429]),
        ("an amplified value", &amplified, &[413, 429]),
        ("objects in objects", &objects, &[413, 429]),
    ] {
        let seen = during(&mut session, what, async {
            let sent = (0..8).map(|_| async {
                let mut exchange = server.connect(bytes).await;
                assert!(exchange.read_head().await, "{what}");
                (exchange.status(), exchange.json().await["error"]["message"].as_str().unwrap().to_owned())
            });
            together(sent).await
        })
        .await;
        for (status, said) in seen {
            assert!(statuses.contains(&status), "{what}: {status} {said}");
            assert!(status == 400 || said.contains("total_host_memory_mib"), "{what}: {said}");
        }
    }
    within(&server, 768, "batches and deep values");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_read_keeps_no_one_from_anything() {
    let (_folder, server) = started(SMALL).await;
    let mut session = server.legacy("2025-11-25", json!({})).await;
    // Several on each connection, because a single one fits into the buffers of the system.
    let calls = modern_post(&server, "big", r#"{"bytes":3500000}"#).repeat(4);
    let mut unread = Vec::new();
    during(&mut session, "270 connections with answers unread", async {
        for _ in 0..270 {
            let mut exchange = server.connect(&calls).await;
            assert!(exchange.read_head().await);
            assert!([200, 429, 503].contains(&exchange.status()), "{}", exchange.status());
            unread.push(exchange);
        }
    })
    .await;
    within(&server, 768, "answers that nobody reads");
    // A client that never reads is disconnected after a while, and its memory is free again.
    server.wait_for_log("a client that does not read what it is sent").await;
    drop(unread);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_show_no_right_make_room() {
    let (_folder, server) = started(&format!("[http]\nconnections = 1024\n{SMALL}")).await;
    let mut session = server.legacy("2025-11-25", json!({})).await;
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", server.address).repeat(2000);
    let (mut open, mut begun, steps) = (Vec::new(), JoinSet::new(), Arc::new(AtomicUsize::new(0)));
    // As many at a time wait for their first answer. Without this bound, the slower the build, the more would stand before the other client,
    // which stands in a queue several times: for a connection, for each request, and for the plugin.
    let waiting = Arc::new(Semaphore::new(16));
    let patience = Patience::Steps(&steps, 525);
    during_with(&mut session, "1,050 connections", patience, async {
        for _ in 0..1050 {
            let place = Arc::clone(&waiting).acquire_owned().await.unwrap();
            let Ok(Ok(mut stream)) = timeout(PATIENCE, TcpStream::connect(server.address)).await else {
                panic!("no connection after {}", open.len())
            };
            // Requests that do not fit are refused without waiting.
            let _ = timeout(Duration::from_millis(5), stream.write_all(request.as_bytes())).await;
            let stream = Arc::new(stream);
            let (answered, steps) = (Arc::clone(&stream), Arc::clone(&steps));
            begun.spawn(async move {
                answered.readable().await.ok();
                steps.fetch_add(1, Ordering::Relaxed);
                drop(place);
            });
            open.push(stream);
        }
    })
    .await;
    within(&server, 768, "connections that read nothing");
    begun.shutdown().await;
    drop(open);
    // Sockets that pretend to be about to send.
    let mut idle = Vec::new();
    during(&mut session, "1,050 silent connections", async {
        for _ in 0..1050 {
            idle.push(timeout(PATIENCE, TcpStream::connect(server.address)).await.expect("a connection").unwrap());
        }
    })
    .await;
    let served: usize = idle.len();
    println!("{served} connections were taken in, one after the other");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_shows_no_right_ends_and_one_of_many_clients_does_not() {
    let (_folder, server) = started(SMALL).await;
    let all = async |bytes: Vec<u8>| {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let (mut read, mut write) = stream.split();
        let mut answers = Vec::new();
        // Messages after the last answer may not be accepted any more.
        let (_, read) = tokio::join!(write.write_all(&bytes), timeout(PATIENCE, read.read_to_end(&mut answers)));
        let _ = read.expect("the connection ends");
        String::from_utf8(answers).unwrap().to_lowercase()
    };
    let healthz = |more: &str| format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n{more}\r\n", server.address);
    let answers = all(healthz("").repeat(64).into_bytes()).await;
    assert_eq!((answers.matches("200 ok").count(), answers.matches("connection: close").count()), (64, 1), "{answers}");
    // Like a proxy's connection: one client after the other makes a handshake, and sends nothing else on it.
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"one","version":"1"}}}"#;
    let mut many = post(&server, "", hello).repeat(100);
    many.extend(healthz("").repeat(100).into_bytes());
    many.extend(healthz("Connection: close\r\n").into_bytes());
    let answers = all(many).await;
    assert_eq!(answers.matches("200 ok").count(), 201, "{answers}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_kept_is_counted_in_bytes() {
    let (_folder, server) = started(&format!("{SMALL}[protocol]\nsse = true\n")).await;
    let mut session = server.legacy("2025-11-25", json!({})).await;
    let name = "n".repeat(7 * MIB);
    let initialize = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}},"clientInfo":{{"name":"{name}","version":"1"}}}}}}"#
    );
    let initialize = post(&server, "", &initialize);
    let subscribe = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{{"uri":"note:///{}"}}}}"#,
        "x".repeat(7 * MIB)
    );
    let subscribe = post(&server, &format!("Mcp-Session-Id: {}\r\n", session.id), &subscribe);
    for (what, bytes) in [("a long clientInfo", initialize), ("a long URI", subscribe)] {
        during(&mut session, what, async {
            for _ in 0..10 {
                let mut exchange = server.connect(&bytes).await;
                assert!(exchange.read_head().await);
                let answer = exchange.json().await;
                assert!(answer["error"].is_object() && answer.to_string().len() < 1000, "{what}");
            }
        })
        .await;
    }
    // Unfinished bodies: 7 of 8 MB each, then silence.
    let head = post(&server, "", &"x".repeat(8_000_000));
    let unfinished = head.get(..7_000_000).unwrap().to_vec();
    let mut held = Vec::new();
    // More than fit into the memory in all.
    during(&mut session, "130 unfinished bodies", async {
        for _ in 0..130 {
            let mut stream = TcpStream::connect(server.address).await.unwrap();
            // If it is refused while it still sends, the connection may be reset.
            let _ = timeout(Duration::from_secs(1), stream.write_all(&unfinished)).await;
            held.push(stream);
        }
    })
    .await;
    within(&server, 768, "what is kept for clients");
    drop(held);
    let before = memory_kib(server.pid(), "VmRSS") >> 10;
    println!("{before} MiB in use afterwards");
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_are_only_opened_end_no_one_elses() {
    let (_folder, server) = started("").await;
    let mut session = server.legacy("2025-11-25", json!({})).await;
    session.request("ping", json!({})).await.unwrap();
    let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "n", "version": "1" } } });
    during(&mut session, "1,100 sessions", async {
        for _ in 0..1100 {
            assert_eq!(server.post(&[], &initialize).await.status(), 200);
        }
    })
    .await;
    assert_eq!(session.request("ping", json!({})).await.unwrap(), json!({}), "the session is still there");
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_fill_no_log() {
    let (_folder, server) = started("").await;
    for _ in 0..300 {
        let exchange = server.send("GET", "/mcp", &[("Host", "evil.example")], b"").await;
        assert_eq!(exchange.status(), 403);
    }
    server.wait_for_log("refused").await;
    let told = server.log().matches("refused").count();
    assert!((1..5).contains(&told), "{told} lines: {}", server.log());
}

/// Requests on the stream of 2024-11-05 count like any others.
#[tokio::test(flavor = "multi_thread")]
async fn the_old_transport_counts_what_it_works_for() {
    let (_folder, server) =
        started("[http]\nin_flight = 4\n[protocol]\nsse = true\n[limits]\ntotal_host_memory_mib = 256").await;
    let mut session = server.legacy("2025-11-25", json!({})).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let open = format!("GET /sse HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\n\r\n", server.address);
    stream.write_all(open.as_bytes()).await.unwrap();
    let mut seen = String::new();
    while !seen.contains("data: messages?session=") || !seen.ends_with("\n\n\r\n") {
        let mut bytes = [0; 1024];
        let read = timeout(PATIENCE, stream.read(&mut bytes)).await.expect("a stream").unwrap();
        seen.push_str(std::str::from_utf8(&bytes[..read]).unwrap());
    }
    let path = format!("/{}", seen.split("data: ").nth(1).unwrap().split('\n').next().unwrap());
    let say = |body: serde_json::Value| {
        let (server, path) = (&server, path.clone());
        async move {
            let headers = [("Content-Type", "application/json")];
            server.send("POST", &path, &headers, body.to_string().as_bytes()).await.status()
        }
    };
    let initialize = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": { "name": "n", "version": "1" } } });
    assert_eq!(say(initialize).await, 202);
    let mut statuses = Vec::new();
    for id in 1..=8 {
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "name": "sleep", "arguments": { "ms": 3000 } } });
        statuses.push(say(call).await);
    }
    // A single client gets three of four places.
    assert_eq!(statuses.iter().filter(|status| **status == 503).count(), 5, "{statuses:?}");
    drop(stream);
    let began = Instant::now();
    while session.request("ping", json!({})).await.is_err() {
        assert!(began.elapsed() < PATIENCE, "the places of a client that left stay taken");
    }
}

/// When a client is killed, its wharf exits, even if another process holds the pipe.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_client_leaves_no_wharf_behind() {
    let folder = Folder::new();
    config(&folder, "");
    // The client is a shell that starts wharf and a sibling process, which inherits the pipe and survives.
    let plain = folder.command(&["run"], &[]);
    let plain = plain.as_std();
    let mut client = tokio::process::Command::new("sh");
    client
        .arg("-c")
        .arg("mkfifo pipe; sleep 60 > pipe & \"$@\" < pipe > /dev/null 2> log & echo $!; wait")
        .arg("sh")
        .arg(plain.get_program())
        .args(plain.get_args())
        .env_clear()
        .envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .current_dir(folder.path())
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true);
    let mut client = client.spawn().unwrap();
    let mut line = String::new();
    let mut out = tokio::io::BufReader::new(client.stdout.take().unwrap());
    tokio::io::AsyncBufReadExt::read_line(&mut out, &mut line).await.unwrap();
    let wharf: u32 = line.trim().parse().unwrap();
    let state = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')').and_then(|(_, rest)| rest.trim().chars().next())
    };
    let began = Instant::now();
    while !std::fs::read_to_string(folder.join("log")).unwrap_or_default().contains("serving") {
        assert!(began.elapsed() < PATIENCE, "it does not start");
        tokio::task::yield_now().await;
    }
    e2e::pipe::signal(client.id().unwrap(), rustix::process::Signal::KILL);
    let began = Instant::now();
    while !matches!(state(wharf), None | Some('Z')) {
        assert!(began.elapsed() < prompt(), "it lives on");
        tokio::task::yield_now().await;
    }
    println!("ended after {:?}", began.elapsed());
}

/// The same amplification on a pipe: the answer names the limit, and the pipe continues to work.
#[tokio::test(flavor = "multi_thread")]
async fn a_pipe_is_bounded_in_bytes_too() {
    let folder = Folder::new();
    config(&folder, SMALL);
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy("2025-11-25", json!({})).await;
    let line = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":\"big\",\"method\":\"tools/call\",\"params\":{{\"name\":\"by_echo\",\"arguments\":{{\"a\":[{}[0]]}}}}}}\n",
        "[0],".repeat(2 * MIB - 100)
    );
    pipe.send_raw(line.as_bytes()).await;
    let refused = pipe.response(&json!("big")).await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("total_host_memory_mib"), "{refused}");
    let result = pipe.call("by_echo", json!({ "message": "well" })).await;
    assert_eq!(e2e::text(&result), "well");
    let most = memory_kib(pipe.pid(), "VmHWM") >> 10;
    assert!(most < 768 + 128, "{most} MiB");
}
