//! Users of this machine: who may connect to a Unix socket or a loopback address, who clients are, and whose socket's file is replaced.

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

/// Sends `initialize` from a process, and returns the status line of the answer.
async fn status(server: &Server, before: &[&str], header: &str) -> String {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}}"#;
    let request = format!(
        "POST /mcp HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Type: application/json\\r\\nAccept: application/json, text/event-stream\\r\\n\
         {header}Content-Length: {}\\r\\n\\r\\n{body}",
        body.len()
    );
    let script = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{}; printf '{request}' >&3; read -r line <&3; echo \"$line\"",
        server.address.port()
    );
    let command = [before, &["bash", "-c", &script]].concat();
    let output = tokio::process::Command::new(command[0]).args(&command[1..]).output().await.unwrap();
    String::from_utf8_lossy(&output.stdout).trim().to_owned() + &stderr(&output)
}

/// Only root can run a program as another user. Without root, the user is the same, and so is the answer.
#[tokio::test(flavor = "multi_thread")]
async fn at_a_loopback_address_without_a_login_only_the_owner_is_served() {
    let other = ["setpriv", "--reuid=65532", "--regid=65532", "--clear-groups", "--"];
    let other = if rustix::process::geteuid().is_root() { &other[..] } else { &[] };
    let folder = Folder::new();
    folder.config(&given("g", &json!({}), ""));
    let server = Server::start(&folder, &[]).await;
    assert_eq!(status(&server, &[], "").await, "HTTP/1.1 200 OK");
    assert_eq!(
        status(&server, other, "").await,
        if other.is_empty() { "HTTP/1.1 200 OK" } else { "HTTP/1.1 403 Forbidden" }
    );
    if !other.is_empty() {
        let said = server.wait_for_log("only the user who started this server is served").await;
        assert!(said.contains("another user at 127.0.0.1"), "{said}");
    }
    // With a token, a program of any user that knows it is served.
    let server = Folder::new();
    server.config(&format!("[http]\ntoken.env = \"TOKEN\"\n{}", given("g", &json!({}), "")));
    let server = Server::start_with(&server, &[], &[("TOKEN", "hunter22-of-tests")]).await;
    assert_eq!(status(&server, other, "").await, "HTTP/1.1 401 Unauthorized");
    let bearer = "Authorization: Bearer hunter22-of-tests\\r\\n";
    assert_eq!(status(&server, other, bearer).await, "HTTP/1.1 200 OK");
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
