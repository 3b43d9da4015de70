//! Unix sockets: who may connect, who clients are, and whose file is replaced.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use e2e::{Folder, Server, folder::stderr, given, http::Over, json};
use rustix::process::Signal;

fn config(folder: &Folder, more: &str) {
    std::fs::create_dir_all(folder.join("run")).unwrap();
    folder.set_mode("run", 0o755);
    folder.config(&format!(
        "[http]\nlisten = \"unix:../../run/mcp.sock\"\n{more}\n[audit]\nfile = \"../../audit/audit.jsonl\"\n{}",
        given("g", &json!({}), "")
    ));
}

async fn started(folder: &Folder) -> Server {
    Server::of(folder.command(&["serve"], &[]), Over::Unix(folder.join("run/mcp.sock"))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_are_the_users_that_their_programs_run_as() {
    let folder = Folder::new();
    config(&folder, "");
    let server = started(&folder).await;
    let metadata = std::fs::symlink_metadata(folder.join("run/mcp.sock")).unwrap();
    assert_eq!(metadata.permissions().mode() & 0o777, 0o660);
    let mut session = server.legacy("2025-11-25", json!({})).await;
    assert_eq!(e2e::text(&session.call("g_t", json!({ "text": "legacy" })).await), "legacy");
    let call = json!({ "name": "g_t", "arguments": { "text": "modern" } });
    assert_eq!(e2e::text(&server.modern("tools/call", call, json!({})).await.unwrap()), "modern");
    let log = std::fs::read_to_string(folder.join("audit/audit.jsonl")).unwrap();
    let principal = format!("\"wharf.principal\":\"local {}\"", metadata.uid());
    assert_eq!(log.matches(&principal).count(), 2, "{log}");
    assert_eq!(log.matches("\"network.transport\":\"unix\"").count(), 2, "{log}");
    assert_eq!(log.matches("\"wharf.request_id\":\"").count(), 2, "{log}");
    // Web pages cannot connect to a socket, but a proxy may forward their requests.
    for (headers, expected) in [
        (vec![("Host", "any.example")], 200),
        (vec![("Host", "any.example"), ("Origin", "http://any.example")], 403),
        (vec![("Origin", "https://evil.example")], 403),
    ] {
        assert_eq!(server.send("GET", "/healthz", &headers, b"").await.status(), expected, "{headers:?}");
    }
    drop(session);
    assert!(server.terminate().await.0.success());
    assert!(!folder.join("run/mcp.sock").exists(), "wharf removes what it made");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_socket_that_nobody_listens_at_is_replaced() {
    let folder = Folder::new();
    config(&folder, "socket_mode = 0o600");
    let server = started(&folder).await;
    assert_eq!(std::fs::symlink_metadata(folder.join("run/mcp.sock")).unwrap().permissions().mode() & 0o777, 0o600);
    // With its own audit log, so that only the socket prevents it from starting.
    let config = std::fs::read_to_string(folder.join("config/wharf/wharf.toml")).unwrap();
    let other =
        folder.write("config/wharf/other.toml", config.replace("[audit]", "[approvals]").replace("file =", "# file ="));
    let second = folder.run(&["serve", "-c", other.to_str().unwrap()], &[]).await;
    assert!(!second.status.success());
    let said = stderr(&second);
    assert!(said.contains("another program listens there"), "{said}");
    assert_eq!(server.send("GET", "/livez", &[], b"").await.status(), 200);
    // It leaves its socket file behind.
    server.signal(Signal::KILL);
    assert!(!server.terminated().await.0.success());
    assert!(folder.join("run/mcp.sock").exists());
    let server = started(&folder).await;
    assert_eq!(server.send("GET", "/livez", &[], b"").await.status(), 200);
    // Another process has put another socket in its place when it exits.
    std::fs::remove_file(folder.join("run/mcp.sock")).unwrap();
    let _other = std::os::unix::net::UnixListener::bind(folder.join("run/mcp.sock")).unwrap();
    assert!(server.terminate().await.0.success());
    assert!(folder.join("run/mcp.sock").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_others_could_change_is_refused() {
    let folder = Folder::new();
    config(&folder, "");
    folder.set_mode("run", 0o777);
    let refused = stderr(&folder.run(&["serve"], &[]).await);
    assert!(refused.contains("others may write this folder of a socket"), "{refused}");
    folder.set_mode("run", 0o755);
    folder.write("run/mcp.sock", "a file");
    let refused = stderr(&folder.run(&["serve"], &[]).await);
    assert!(refused.contains("is not a socket"), "{refused}");
    assert_eq!(std::fs::read(folder.join("run/mcp.sock")).unwrap(), b"a file");
}
