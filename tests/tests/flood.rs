//! Clients that do not read, that open far too much, and that use ids of others: memory stays bounded, they get the documented answers, and
//! another client is not affected.

#![expect(clippy::disallowed_methods, reason = "tests write what wharf is to read; what they spawn ends with them")]
#![expect(clippy::expect_used, clippy::indexing_slicing, clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stdout, reason = "tests print their measurements")]

use std::{
    process::Stdio,
    time::{Duration, Instant},
};

use e2e::{
    Exchange, Folder, MODERN, PATIENCE, Pipe, Server, Value, given, json, memory_kib, modern_params, plugin, scaled,
    text, together,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    time::timeout,
};

const VERSION: (&str, &str) = ("MCP-Protocol-Version", MODERN);

/// `g` for the flooding client, `hostile` for large results, and `by_echo` for the other client.
fn folder(more: &str) -> Folder {
    let folder = Folder::new();
    folder.config(&format!(
        "{more}\n[plugins.echo]\npath = {:?}\nprefix = \"by_\"\n[plugins.hostile]\npath = {:?}\nprefix = \"\"\n{}",
        plugin("echo"),
        plugin("hostile"),
        given("g", &json!({}), "")
    ));
    folder
}

async fn started(more: &str) -> (Folder, Server) {
    let folder = folder(more);
    let server = Server::start(&folder, &[]).await;
    for _ in 0..20 {
        bystander(&server).await;
    }
    (folder, server)
}

/// Another client gets an answer quickly.
async fn bystander(server: &Server) {
    let began = Instant::now();
    let call = json!({ "name": "by_echo", "arguments": { "message": "m" } });
    let result = server.modern("tools/call", call, json!({})).await.expect("the bystander is served");
    assert_eq!(text(&result), "m");
    assert!(began.elapsed() < scaled(Duration::from_secs(3)), "the bystander waits {:?}", began.elapsed());
}

/// Fails if memory use grew by more than this, now or at any time.
fn grew_at_most(server: &Server, before: u64, mib: u64, what: &str) {
    let (now, most) = (memory_kib(server.pid(), "VmRSS"), memory_kib(server.pid(), "VmHWM"));
    println!("{what}: {} MiB before, {} MiB now, at most {} MiB", before >> 10, now >> 10, most >> 10);
    assert!(most < before + (mib << 10), "{what}: grew from {} to {} MiB", before >> 10, most >> 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_that_nobody_reads_cost_no_memory() {
    let (_folder, server) = started("").await;
    let uri = format!("note:///{}", "x".repeat(2000));
    let filter = json!({ "notifications": { "resourceSubscriptions": [uri] } });
    let mut unread = Vec::new();
    for _ in 0..4 {
        unread.push(server.open_modern(json!(1), "subscriptions/listen", filter.clone(), json!({})).await);
    }
    let mut session = server.legacy("2025-11-25", json!({})).await;
    session.request("resources/subscribe", json!({ "uri": uri })).await.unwrap();
    unread.push(session.stream().await);
    assert!(unread.iter().all(Exchange::is_stream));
    let before = memory_kib(server.pid(), "VmRSS");
    let other = json!({ "notifications": { "resourceSubscriptions": ["note:///other"] } });
    let mut reading = server.open_modern(json!(1), "subscriptions/listen", other, json!({})).await;
    reading.event().await.unwrap();
    for round in 0..50 {
        let flood = json!({ "name": "g_t", "arguments": { "updated": uri, "times": 1000 } });
        server.modern("tools/call", flood, json!({})).await.unwrap();
        if round % 10 == 0 {
            bystander(&server).await;
            let update = json!({ "name": "g_t", "arguments": { "updated": "note:///other" } });
            server.modern("tools/call", update, json!({})).await.unwrap();
            assert_eq!(reading.event().await.unwrap()["params"]["uri"], "note:///other", "round {round}");
        }
    }
    // Five streams with fifty thousand events of two kilobytes: 500 MB if they were stored.
    grew_at_most(&server, before, 100, "unread streams");
    drop(unread);
    assert_eq!(session.request("ping", json!({})).await.unwrap(), json!({}));
}

/// The limit on requests at once counts until an answer is read, or does not have to be stored.
#[tokio::test(flavor = "multi_thread")]
async fn answers_that_nobody_reads_have_a_bound() {
    let (_folder, server) = started("[http]\nin_flight = 32").await;
    let before = memory_kib(server.pid(), "VmRSS");
    let params = modern_params(json!({ "name": "big", "arguments": { "bytes": 4_000_000 } }), json!({}));
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: {MODERN}\r\nMcp-Method: tools/call\r\nMcp-Name: big\r\nContent-Length: {}\r\n\r\n{body}",
        server.address,
        body.len()
    );
    let mut unread = Vec::new();
    let mut refused = 0;
    for _ in 0..300 {
        let mut exchange = server.connect(request.as_bytes()).await;
        // Only the head: it arrives when the answer can be read.
        assert!(exchange.read_head().await);
        match exchange.status() {
            200 => unread.push(exchange),
            503 => {
                refused += 1;
                assert_eq!(exchange.json().await["id"], 1);
            }
            status => panic!("{status}"),
        }
    }
    println!("{} answers unread, {refused} requests refused", unread.len());
    // Thirty-two answers of four megabytes, and the same amount for those being built.
    grew_at_most(&server, before, 400, "unread answers");
    drop(unread);
    let began = Instant::now();
    while server.open_modern(json!(1), "server/discover", json!({}), json!({})).await.status() != 200 {
        assert!(began.elapsed() < PATIENCE, "the places of clients that left stay taken");
    }
    bystander(&server).await;
}

/// BASE-10: a refusal comes before anything runs, and requests that ran are answered.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_more_than_there_are_places_is_served_or_refused_as_a_whole() {
    let (_folder, server) = started("[http]\nin_flight = 8").await;
    let mut session = server.legacy("2025-03-26", json!({})).await;
    session.request("resources/subscribe", json!({ "uri": "note:///batch" })).await.unwrap();
    let mut stream = session.stream().await;
    let calls = (0..20).map(|at| {
        let arguments = json!({ "updated": format!("note:///batch/{at}") });
        json!({ "jsonrpc": "2.0", "id": at, "method": "tools/call", "params": { "name": "g_t", "arguments": arguments } })
    });
    let mut exchange = session.post(&calls.collect()).await;
    let (status, is_stream) = (exchange.status(), exchange.is_stream());
    let answered = exchange.text().await;
    session.call("g_t", json!({ "updated": "note:///batch/end" })).await;
    let mut done = 0;
    while stream.event().await.unwrap()["params"]["uri"] != "note:///batch/end" {
        done += 1;
    }
    if status == 200 {
        let data = answered.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim);
        let answers: Vec<Value> = if is_stream {
            data.filter(|data| !data.is_empty()).map(|data| data.parse().unwrap()).collect()
        } else {
            vec![answered.parse().unwrap()]
        };
        let answers = answers.iter().flat_map(|one| one.as_array().map_or(vec![one], |all| all.iter().collect()));
        assert_eq!(answers.filter(|one| one.get("method").is_none()).count(), 20, "one for each: {answered}");
    } else {
        assert_eq!(done, 0, "{status}, but {done} of the calls were made: {answered}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipe_that_nobody_reads_stops_its_client_and_no_one_else() {
    const CALLS: u64 = 400;
    let folder = folder("");
    let mut command = folder.command(&["serve", "--stdio", "--listen", "127.0.0.1:0"], &[]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let transcript = e2e::Transcript::default();
    let log = e2e::log::Log::of(child.stderr.take().unwrap(), transcript.recorder());
    let line = log.wait_for("serving MCP at http://").await;
    let address: std::net::SocketAddr =
        line.split("http://").nth(1).unwrap().split('/').next().unwrap().parse().unwrap();
    let pid = child.id().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writing = tokio::spawn(async move {
        for id in 0..CALLS {
            let params = modern_params(json!({ "name": "big", "arguments": { "bytes": 1 << 20 } }), json!({}));
            let line = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
            stdin.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        }
        stdin
    });
    // The other client, in the meantime; its calls take turns with those of the pipe.
    for round in 0..100 {
        let began = Instant::now();
        assert_eq!(echoed(address, round).await, format!("{round}"));
        assert!(began.elapsed() < scaled(Duration::from_secs(3)), "it waited {:?}", began.elapsed());
    }
    let most = memory_kib(pid, "VmHWM");
    println!("{CALLS} results of 1 MiB unread: at most {} MiB", most >> 10);
    assert!(most < 300 << 10, "the server grew to {} MiB", most >> 10);
    // Then it reads, and no message was lost.
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut open: std::collections::HashSet<u64> = (0..CALLS).collect();
    while !open.is_empty() {
        let line = timeout(PATIENCE, lines.next_line()).await.expect("answers in time").unwrap().expect("an answer");
        let answer: Value = line.parse().unwrap();
        assert_eq!(text(&answer["result"]).len(), 1 << 20);
        assert!(open.remove(&answer["id"].as_u64().unwrap()), "answered twice");
    }
    drop(timeout(PATIENCE, writing).await.expect("it could write").unwrap());
    assert!(timeout(PATIENCE, child.wait()).await.expect("it ends").unwrap().success());
}

/// A call over HTTP without the harness's server.
async fn echoed(address: std::net::SocketAddr, round: usize) -> String {
    let params = modern_params(json!({ "name": "by_echo", "arguments": { "message": round.to_string() } }), json!({}));
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: {MODERN}\r\nMcp-Method: tools/call\r\nMcp-Name: by_echo\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let read = tokio::io::AsyncReadExt::read_to_string(&mut stream, &mut answer);
    timeout(PATIENCE, read).await.expect("an answer").unwrap();
    let answer: Value = answer[answer.find("\r\n\r\n").unwrap()..].trim().parse().unwrap();
    text(&answer["result"]).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_sessions_are_cheap_and_the_one_in_use_stays() {
    // One client may have three quarters of them, which are 1,025.
    let (_folder, server) = started("[http]\nsessions = 1366").await;
    let mut used = server.legacy("2025-06-18", json!({})).await;
    let mut first = server.legacy("2025-06-18", json!({})).await;
    first.request("ping", json!({})).await.unwrap();
    let before = memory_kib(server.pid(), "VmRSS");
    let mut sessions = Vec::new();
    for _ in 0..25 {
        sessions.extend(together((0..40).map(|_| server.legacy("2025-11-25", json!({ "roots": {} })))).await);
        assert_eq!(text(&used.call("by_echo", json!({ "message": "used" })).await), "used");
        bystander(&server).await;
    }
    // The design says 8 KiB each.
    grew_at_most(&server, before, 24, "1,000 sessions");
    for session in sessions.iter_mut().step_by(100).chain([&mut first]) {
        assert_eq!(session.request("ping", json!({})).await.unwrap(), json!({}), "there is room for all of them");
    }
    // Beyond its share of 1,025, the session idle for longest makes room, never the one in use.
    for _ in 0..10 {
        together((0..40).map(|_| server.legacy("2025-11-25", json!({})))).await;
        assert_eq!(text(&used.call("by_echo", json!({ "message": "used" })).await), "used");
    }
    // Those that left memory come back, each in the place of another one.
    for session in &mut sessions {
        assert_eq!(session.request("ping", json!({})).await.unwrap(), json!({}));
    }
    assert_eq!(text(&used.call("by_echo", json!({ "message": "used" })).await), "used");
    grew_at_most(&server, before, 28, "1,400 sessions, of which 1,025 are in memory");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_subscriptions_are_cheap_and_have_a_limit() {
    let (_folder, server) = started("[http]\nlistens = 1333").await;
    let before = memory_kib(server.pid(), "VmRSS");
    let filter = json!({ "notifications": { "resourceSubscriptions": ["note:///x"] } });
    // The share of one client.
    let mut streams = Vec::new();
    for _ in 0..25 {
        let opened = (0..40).map(|_| server.open_modern(json!(1), "subscriptions/listen", filter.clone(), json!({})));
        streams.extend(together(opened).await);
        bystander(&server).await;
    }
    for stream in &mut streams {
        assert_eq!(stream.status(), 200);
        assert_eq!(stream.event().await.unwrap()["method"], "notifications/subscriptions/acknowledged");
    }
    grew_at_most(&server, before, 100, "1,000 subscriptions");
    let mut more = server.open_modern(json!("more"), "subscriptions/listen", filter.clone(), json!({})).await;
    assert_eq!(more.status(), 503);
    assert_eq!(more.json().await["id"], "more");
    let update = json!({ "name": "g_t", "arguments": { "updated": "note:///x" } });
    server.modern("tools/call", update, json!({})).await.unwrap();
    for stream in &mut streams {
        assert_eq!(stream.event().await.unwrap()["params"]["uri"], "note:///x");
    }
    bystander(&server).await;
    drop(streams);
    let began = Instant::now();
    while server.open_modern(json!(2), "subscriptions/listen", filter.clone(), json!({})).await.status() != 200 {
        assert!(began.elapsed() < PATIENCE, "the places of clients that left stay taken");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_id_that_nobody_gave_resumes_nothing() {
    let (_folder, server) = started("").await;
    let mut owner = server.legacy("2025-11-25", json!({})).await;
    let mut other = server.legacy("2025-11-25", json!({})).await;
    let slow = json!({ "steps": 10, "ms": 50, "text": "secret" });
    let slow = json!({ "name": "g_t", "arguments": slow, "_meta": { "progressToken": 1 } });
    let (id, mut running) = owner.begin("tools/call", slow).await;
    running.event().await.unwrap();
    let own = running.last_event_id.clone().expect("an event id");
    let before = memory_kib(server.pid(), "VmRSS");
    let long = "9".repeat(8000);
    let altered = format!("{own}0");
    for event_id in ["1", "0", "-1", "none", "%00", "99999999999999999999", &long, &altered] {
        for _ in 0..20 {
            // A new stream begins: a client would take an error for the end of its session.
            let mut begun = other.resume(event_id, "").await;
            assert_eq!(begun.status(), 200, "{event_id}");
            let first = begun.frame().await.expect("an event id of its own");
            assert!(first.id.is_some_and(|id| id != own) && first.data.is_none_or(|data| !data.contains("secret")));
        }
    }
    // The id names a request, and its stream is unknown in this session, so that this request is answered with an error.
    for _ in 0..20 {
        let mut resumed = other.resume(&own, "tools/call").await;
        let answer = resumed.response(&id).await;
        assert_eq!(answer["error"]["code"], -32603, "{answer}");
        assert_eq!(resumed.frame().await, None, "nothing of the other session follows");
    }
    grew_at_most(&server, before, 50, "unknown event ids");
    assert_eq!(other.request("ping", json!({})).await.unwrap(), json!({}), "its session is not lost for that");
    assert_eq!(text(&running.response(&id).await["result"]), "secret", "and the owner's call goes on");
    bystander(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn state_of_another_call_or_of_another_person_is_refused() {
    let key = ("WHARF_STATE_KEY", "0f1e2d3c4b5a6978".repeat(4));
    let folder =
        folder("[protocol]\nstate_keys = [{ env = \"WHARF_STATE_KEY\" }]\n[http]\ntoken.env = \"WHARF_TOKEN\"");
    let tokens = ["first-token-of-tests", "second-token-of-tests"];
    let [mine, theirs] = tokens.map(|token| [("WHARF_TOKEN", token), (key.0, key.1.as_str())]);
    let mine = Server::start_with(&folder, &[], &mine).await;
    let theirs = Server::start_with(&folder, &[], &theirs).await;
    let call = async |server: &Server, token: &str, params: &Value| -> (u16, i64, Value) {
        let bearer = format!("Bearer {token}");
        let params = modern_params(params.clone(), json!({ "elicitation": {} }));
        let name = params["name"].as_str().unwrap().to_owned();
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let headers =
            [VERSION, ("Mcp-Method", "tools/call"), ("Mcp-Name", name.as_str()), ("Authorization", bearer.as_str())];
        server.probe(&headers, &body).await
    };
    let arguments = json!({ "ask": [["a"], ["b"]], "state": "s" });
    let asked = call(&mine, tokens[0], &json!({ "name": "g_t", "arguments": arguments })).await.2;
    let state = asked["result"]["requestState"].clone();
    let answers = json!({ "a": { "action": "accept", "content": { "v": "x" } } });
    let good = json!({ "name": "g_t", "arguments": arguments, "requestState": state, "inputResponses": answers });
    let mut others = Vec::new();
    for arguments in
        [json!({}), json!({ "ask": [["a"]], "state": "s" }), json!({ "ask": [["a"], ["b"]], "state": "t" })]
    {
        others.push(json!({ "name": "g_t", "arguments": arguments, "requestState": state, "inputResponses": answers }));
    }
    others.push(json!({ "name": "by_echo", "arguments": { "message": "m" }, "requestState": state }));
    let before = memory_kib(mine.pid(), "VmRSS");
    for _ in 0..100 {
        for other in &others {
            assert_eq!(call(&mine, tokens[0], other).await.1, -32602, "{other}");
        }
    }
    let (status, code, answer) = call(&theirs, tokens[1], &good).await;
    assert_eq!((status, code), (200, -32602), "the same key, another principal: {answer}");
    grew_at_most(&mine, before, 50, "replayed states");
    // Its own call still works, also after all that.
    let next = call(&mine, tokens[0], &good).await.2;
    assert!(next["result"]["inputRequests"]["b"].is_object(), "{next}");
}

/// The contract promises a thousand log records and a thousand reports of each call to clients that read them.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_reads_gets_all_that_a_call_may_say() {
    const STEPS: usize = 900;
    let (folder, server) = started("").await;
    let meta = json!({ "progressToken": 1, "io.modelcontextprotocol/logLevel": "info" });
    let call = json!({ "name": "g_t", "arguments": { "steps": STEPS }, "_meta": meta });
    let count = |messages: &[Value]| {
        let of = |method: &str| messages.iter().filter(|message| message["method"] == method).count();
        (of("notifications/progress"), of("notifications/message"))
    };
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.modern("tools/call", call.clone(), json!({})).await.unwrap();
    let piped: Vec<Value> = pipe.inbox().iter().cloned().collect();
    let mut exchange = server.open_modern(json!(1), "tools/call", call.clone(), json!({})).await;
    let mut modern = Vec::new();
    while let Some(message) = exchange.event().await {
        modern.push(message);
    }
    let mut session = server.legacy("2025-11-25", json!({})).await;
    session.request("tools/call", call).await.unwrap();
    let legacy: Vec<Value> = session.notifications.iter().cloned().collect();
    let all = (STEPS, STEPS);
    assert_eq!([count(&piped), count(&modern), count(&legacy)], [all; 3], "pipe, modern and legacy HTTP");
}
