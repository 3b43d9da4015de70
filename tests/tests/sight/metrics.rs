//! The metrics of a running wharf: each changes when its event happens, they contain no arguments, and only allowed hosts get them.

use e2e::{Folder, MODERN, Server, is_error, json, plugin, text};

use crate::{
    Web, scrape,
    scrape::{Scraped, admin_of, ask},
};

const ADMIN: &str = "[admin]\nlisten = \"127.0.0.1:0\"\n";

/// The increase of a metric.
fn grown(before: &Scraped, after: &Scraped, name: &str, labels: &[(&str, &str)]) -> f64 {
    after.sum(name, labels) - before.sum(name, labels)
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_counted_by_what_they_were_for_and_how_they_ended() {
    let folder = Folder::new();
    let (echo, hostile) = (plugin("echo"), plugin("hostile"));
    folder.config(&format!(
        "{ADMIN}[plugins.echo]\npath = {echo:?}\n[plugins.hostile]\npath = {hostile:?}\n[plugins.hostile.limits]\ntimeout_ms = 300\n"
    ));
    let server = Server::start(&folder, &[]).await;
    // Its lists take so long that the first load may be over before.
    server.wait_for_log("serving plugin=\"hostile\"").await;
    server.modern("tools/list", json!({}), json!({})).await.unwrap();
    let before = scrape(&server).await;
    let call = |name: &'static str, arguments| {
        let server = &server;
        async move { server.modern("tools/call", json!({ "name": name, "arguments": arguments }), json!({})).await }
    };
    for _ in 0..3 {
        assert_eq!(text(&call("echo_echo", json!({ "message": "hunter2" })).await.unwrap()), "hunter2");
    }
    assert!(is_error(&call("echo_echo", json!({ "message": 7 })).await.unwrap()));
    call("hunter2_no_such", json!({})).await.unwrap_err();
    call("hunter3_no_such", json!({})).await.unwrap_err();
    assert!(is_error(&call("hostile_trap", json!({})).await.unwrap()));
    assert!(is_error(&call("hostile_spin", json!({})).await.unwrap()));
    server.modern("tools/list", json!({}), json!({})).await.unwrap();
    server.modern("prompts/get", json!({ "name": "none" }), json!({})).await.unwrap_err();
    let after = scrape(&server).await;
    let took = "mcp_server_operation_duration_seconds";
    let call = ("mcp_method_name", "tools/call");
    for (labels, count) in [
        (&[call, ("gen_ai_tool_name", "echo_echo"), ("mcp_protocol_version", MODERN)][..], 4.0),
        (&[call, ("gen_ai_tool_name", "echo_echo"), ("error_type", "invalid")], 1.0),
        (&[call, ("gen_ai_tool_name", "_OTHER"), ("error_type", "-32602")], 2.0),
        (&[call, ("gen_ai_tool_name", "hostile_trap"), ("error_type", "crash")], 1.0),
        (&[call, ("gen_ai_tool_name", "hostile_spin"), ("error_type", "timeout")], 1.0),
        (&[("mcp_method_name", "tools/list")], 1.0),
        (&[("mcp_method_name", "prompts/get"), ("error_type", "-32602")], 1.0),
    ] {
        assert_eq!(grown(&before, &after, took, labels), count, "{labels:?} in\n{}", after.text);
    }
    // The call that timed out took exactly its time limit.
    let spun = [("gen_ai_tool_name", "hostile_spin")];
    assert!(after.sum("mcp_server_operation_duration_seconds_sum", &spun) >= 0.3);
    for (plugin, kind, outcome, count) in [
        ("echo", "call", "done", 3.0),
        ("echo", "call", "refused", 1.0),
        ("hostile", "call", "crashed", 1.0),
        ("hostile", "call", "timed_out", 1.0),
    ] {
        let labels = [("plugin", plugin), ("kind", kind), ("outcome", outcome)];
        assert_eq!(grown(&before, &after, "wharf_plugin_runs_total", &labels), count, "{labels:?}");
    }
    let listed = [("plugin", "echo"), ("kind", "list"), ("outcome", "done")];
    assert_eq!(before.sum("wharf_plugin_runs_total", &listed), 1.0);
    assert_eq!(grown(&before, &after, "wharf_plugin_wait_seconds", &[("plugin", "echo")]), 3.0);
    assert_eq!(after.sum("wharf_loads_total", &[("plugin", "echo"), ("outcome", "loaded")]), 1.0);
    assert_eq!(after.sum("wharf_config_reads_total", &[("outcome", "used")]), 1.0);
    let digest = after.label("wharf_catalog_info", &[("plugin", "echo")], "digest");
    assert!(digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()), "{digest}");
    let version = after.label("wharf_build_info", &[], "version");
    assert_eq!(version, env!("CARGO_PKG_VERSION"));
    for name in
        ["process_resident_memory_bytes", "process_open_fds", "process_max_fds", "wharf_host_memory_limit_bytes"]
    {
        assert!(after.sum(name, &[]) > 0.0, "{name} in\n{}", after.text);
    }
    assert!(grown(&before, &after, "process_cpu_seconds_total", &[]) > 0.0, "it spun until its deadline");
    assert!(!after.text.contains("hunter"), "{}", after.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_on_is_seen_while_it_does() {
    let (folder, web) = (Folder::new(), Web::start().await);
    let (out, echo) = (plugin("outgoing"), plugin("echo"));
    let rule = format!("{{ url = \"{}\", private = true }}", web.url(""));
    folder.config(&format!(
        "{ADMIN}[plugins.out]\npath = {out:?}\nprefix = \"\"\n[plugins.out.grants]\nhttp = [{rule}]\n\
         [plugins.echo]\npath = {echo:?}\ninstances = \"reused\"\n"
    ));
    let server = Server::loaded(&folder).await;
    let idle = scrape(&server).await;
    let version = [("mcp_protocol_version", "2025-11-25")];
    let mut session = server.legacy("2025-11-25", json!({})).await;
    assert_eq!(scrape(&server).await.sum("wharf_sessions", &version), 1.0);
    let arguments = json!({ "name": "send", "arguments": { "url": web.url("/wait") } });
    let (id, mut waiting) = session.begin("tools/call", arguments).await;
    web.headers(1).await;
    let busy = scrape(&server).await;
    let running = [("plugin", "out"), ("state", "running")];
    assert_eq!(busy.sum("wharf_plugin_running", &[("plugin", "out")]), 1.0);
    assert_eq!(busy.sum("wharf_plugin_instances", &running), 1.0);
    for name in ["wharf_guest_memory_bytes", "wharf_host_memory_bytes"] {
        assert!(busy.sum(name, &[]) > idle.sum(name, &[]), "{name}");
    }
    assert!(busy.sum("wharf_guest_memory_bytes", &[]) < busy.sum("wharf_guest_memory_limit_bytes", &[]));
    web.release();
    assert!(!is_error(&waiting.response(&id).await["result"]));
    for path in ["/gone", "/ok"] {
        session.call("send", json!({ "url": web.url(path) })).await;
    }
    session.call("send", json!({ "url": "http://127.0.0.1:1/" })).await;
    session.call("echo_echo", json!({ "message": "x" })).await;
    let after = scrape(&server).await;
    assert_eq!(after.sum("wharf_plugin_running", &[]), 0.0);
    assert_eq!(after.sum("wharf_plugin_instances", &[("plugin", "echo"), ("state", "kept")]), 1.0);
    for (outcome, count) in [("2xx", 2.0), ("4xx", 1.0), ("denied", 1.0)] {
        let labels = [("plugin", "out"), ("outcome", outcome)];
        assert_eq!(after.sum("wharf_egress_requests_total", &labels), count, "{outcome} in\n{}", after.text);
    }
    let received = [("plugin", "out"), ("direction", "in")];
    assert_eq!(
        after.sum("wharf_egress_bytes_total", &received),
        ("at last".len() + "gone".len() + "hello".len()) as f64
    );
    assert_eq!(session.delete().await.status(), 204);
    let ended = scrape(&server).await;
    assert_eq!(ended.sum("wharf_sessions", &version), 0.0);
    assert_eq!(ended.sum("mcp_server_session_duration_seconds", &version), 1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_turned_away_is_counted() {
    let folder = Folder::new();
    let echo = plugin("echo");
    folder.write("config/wharf/broken.wasm", b"\0asm no component");
    folder.config(&format!(
        "{ADMIN}[http]\ntoken.env = \"TOKEN\"\n[limits]\ntotal_host_memory_mib = 8\n[audit]\nfile = \"log/audit.jsonl\"\n\
         [plugins.echo]\npath = {echo:?}\n[plugins.broken]\npath = \"broken.wasm\"\n"
    ));
    let server = Server::start_with(&folder, &[], &[("TOKEN", "the-token-of-tests")]).await;
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let own = "Bearer the-token-of-tests";
    for (headers, status) in [
        (&[][..], 401),
        (&[("Authorization", "Bearer hunter2")], 401),
        (&[("Authorization", own), ("Host", "evil.example")], 403),
        (&[("Authorization", own), ("Origin", "https://evil.example")], 403),
    ] {
        assert_eq!(server.post(headers, &body).await.status(), status, "{headers:?}");
    }
    // More than the half of all memory that one client may use.
    let large = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping", "params": { "x": "x".repeat(6 << 20) } });
    let status = server.post(&[("Authorization", own)], &large).await.status();
    assert!([413, 429].contains(&status), "{status}");
    server.wait_for_log("does not load").await;
    let after = scrape(&server).await;
    for (name, labels) in [
        ("wharf_auth_failures_total", ("reason", "no_token")),
        ("wharf_auth_failures_total", ("reason", "wrong_token")),
        ("wharf_rejected_total", ("reason", "host")),
        ("wharf_rejected_total", ("reason", "origin")),
        ("wharf_rejected_total", ("reason", "memory")),
        ("wharf_loads_total", ("outcome", "failed")),
    ] {
        assert_eq!(after.sum(name, &[labels]), 1.0, "{name} {labels:?} in\n{}", after.text);
    }
    for name in ["wharf_audit_lines_lost_total", "wharf_audit_failing"] {
        assert!(after.names().contains(&name), "{name} in\n{}", after.text);
    }
    assert!(!after.text.contains("hunter2") && !after.text.contains("the-token-of-tests"));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_metrics_are_there_and_only_for_who_knows_the_name() {
    let folder = Folder::new();
    let echo = plugin("echo");
    folder.config(&format!(
        "[admin]\nlisten = \"127.0.0.1:0\"\nallowed_hosts = [\"wharf.internal\"]\n[http]\nallowed_hosts = [\"public.example\"]\n\
         allowed_origins = [\"https://app.example\"]\n[plugins.echo]\npath = {echo:?}\n"
    ));
    let server = Server::loaded(&folder).await;
    let address = admin_of(&server).await;
    for (method, path, headers, status) in [
        ("GET", "/metrics", &[][..], 200),
        ("HEAD", "/metrics", &[], 200),
        ("GET", "/metrics", &[("Host", "wharf.internal")], 200),
        ("GET", "/metrics", &[("Host", "public.example")], 403),
        ("GET", "/metrics", &[("Host", "evil.example")], 403),
        ("GET", "/metrics", &[("Origin", "https://app.example")], 403),
        ("GET", "/metrics", &[("Sec-Fetch-Site", "cross-site")], 403),
        ("POST", "/metrics", &[("Content-Length", "0")], 405),
        ("GET", "/mcp", &[], 404),
        ("GET", "/", &[], 404),
        ("GET", "/healthz", &[], 404),
    ] {
        assert_eq!(ask(&address, method, path, headers).await.status(), status, "{method} {path} {headers:?}");
    }
    // The listener for clients serves no metrics.
    assert_eq!(server.send("GET", "/metrics", &[], b"").await.status(), 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_table_there_is_no_listener() {
    let folder = Folder::new();
    let echo = plugin("echo");
    folder.config(&format!("[plugins.echo]\npath = {echo:?}\n"));
    let server = Server::loaded(&folder).await;
    assert!(!server.log().contains("serving metrics"), "{}", server.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_keep_nobody_out() {
    let folder = Folder::new();
    let echo = plugin("echo");
    folder.config(&format!("{ADMIN}[plugins.echo]\npath = {echo:?}\n"));
    let server = Server::loaded(&folder).await;
    let address = admin_of(&server).await;
    let mut idle = Vec::new();
    for _ in 0..16 {
        idle.push(tokio::net::TcpStream::connect(&address).await.unwrap());
    }
    // Another connection exceeds the limit; it is closed instead of waiting.
    assert!(ends(tokio::net::TcpStream::connect(&address).await.unwrap()).await);
    // The idle ones are closed after a while, without a response.
    for stream in idle {
        assert!(ends(stream).await);
    }
    scrape(&server).await;
}

/// Whether a connection ends without a response.
async fn ends(mut stream: tokio::net::TcpStream) -> bool {
    let mut said = Vec::new();
    let read = tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut said);
    // A connection that is closed before it is served may be reset.
    tokio::time::timeout(e2e::PATIENCE, read).await.expect("it ends").unwrap_or(0) == 0
}

/// Sessions that are made again from their ids count as those that were opened, and ids cannot be replayed for more places than there are.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_come_back_count_once() {
    let folder = Folder::new();
    folder.config("[http]\nsessions = 4\n[admin]\nlisten = \"127.0.0.1:0\"");
    let server = Server::start(&folder, &[]).await;
    let id = server.legacy("2025-11-25", json!({})).await.id;
    server.signal(rustix::process::Signal::KILL);
    server.terminated().await;
    let server = Server::start(&folder, &[]).await;
    let ping = async |id: &str, number: u64| {
        let ping = json!({ "jsonrpc": "2.0", "id": number, "method": "ping" });
        server.post(&[("Mcp-Session-Id", id)], &ping).await.status()
    };
    let open = async || scrape(&server).await.sum("wharf_sessions", &[]) as u64;
    assert_eq!(open().await, 0);
    assert_eq!(e2e::together((0..24).map(|number| ping(&id, number))).await, [200; 24]);
    assert_eq!(open().await, 1, "requests that name a session at once make one");
    let mut ids = vec![id];
    for _ in 0..8 {
        ids.push(server.legacy("2025-11-25", json!({})).await.id);
    }
    for (number, id) in (0..).zip(ids.iter().cycle().take(30)) {
        assert_eq!(ping(id, number).await, 200);
        let open = open().await;
        assert!((1..=4).contains(&open), "{open}");
    }
}
