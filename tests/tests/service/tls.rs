//! TLS: which handshakes succeed, how certificates change, and how client certificates identify clients.

use std::os::unix::fs::symlink;

use e2e::{Folder, Server, given, http::Over, json};
use rcgen::SanType;

use crate::authority::{Authority, dns, write};

/// Starts a wharf with this certificate, which clients reach with this config.
pub async fn started(folder: &Folder, authority: &Authority, more: &str) -> Server {
    folder.config(&format!(
        "[http]\n{more}\n[http.tls]\ncert = \"cert.pem\"\nkey = \"key.pem\"\n{}",
        given("g", &json!({}), "")
    ));
    serving(folder, Over::Tls(authority.client(None, &[]))).await
}

async fn serving(folder: &Folder, over: Over) -> Server {
    Server::of(folder.command(&["serve", "--listen", "127.0.0.1:0"], &[]), over).await
}

fn with_clients(folder: &Folder, client_cert: &str) {
    folder.config(&format!(
        "[http.tls]\ncert = \"cert.pem\"\nkey = \"key.pem\"\nclient_ca = \"ca.pem\"\n{client_cert}\n\
         [audit]\nfile = \"../../audit/audit.jsonl\"\narguments = \"full\"\n{}",
        given("g", &json!({}), "")
    ));
}

/// Calls the tool, and returns its text.
async fn call(server: &Server, text: &str) -> String {
    let called = server.modern("tools/call", json!({ "name": "g_t", "arguments": { "text": text } }), json!({})).await;
    e2e::text(&called.unwrap()).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn both_eras_are_served_and_only_over_tls() {
    let (folder, authority) = (Folder::new(), Authority::new());
    write(&folder, &authority.localhost());
    let mut server = started(&folder, &authority, "").await;
    assert!(server.log().contains("serving MCP at https://127.0.0.1:"), "{}", server.log());
    assert_eq!(call(&server, "modern").await, "modern");
    let mut session = server.legacy("2025-11-25", json!({})).await;
    assert_eq!(e2e::text(&session.call("g_t", json!({ "text": "legacy" })).await), "legacy");
    // A page that was loaded without TLS is not from this server.
    let origin = |scheme: &str| format!("{scheme}://{}", server.address);
    for (origin, expected) in [(origin("https"), 200), (origin("http"), 403)] {
        let headers = [("Origin", origin.as_str())];
        assert_eq!(server.send("GET", "/healthz", &headers, b"").await.status(), expected, "{origin}");
    }
    server.over = Over::Tls(Authority::new().client(None, &[]));
    let error = server.open().await.err().expect("the client trusts another authority");
    assert!(error.to_string().contains("certificate"), "{error}");
    server.over = Over::Tcp;
    let plain = server.connect(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.drain().await;
    assert!(!plain.starts_with(b"HTTP"), "{}", String::from_utf8_lossy(&plain));
    server.wait_for_log("TLS handshake failed").await;
    assert!(server.terminate().await.0.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_speaks_only_http2_is_refused() {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let (folder, authority) = (Folder::new(), Authority::new());
    write(&folder, &authority.localhost());
    let mut server = started(&folder, &authority, "").await;
    let over = |protocols| Over::Tls(authority.client(None, protocols));
    server.over = over(&["h2"]);
    let error = server.open().await.err().expect("nothing else is offered");
    assert!(error.to_string().contains("NoApplicationProtocol"), "{error}");
    server.wait_for_log("TLS handshake failed").await;
    // Whatever was agreed on, the connection is closed without an answer.
    for protocols in [&[][..], &["h2", "http/1.1"]] {
        server.over = over(protocols);
        let answer = server.connect(PREFACE).await.drain().await;
        assert!(answer.is_empty(), "{protocols:?}: {}", String::from_utf8_lossy(&answer));
        assert_eq!(call(&server, "one").await, "one", "{protocols:?}");
    }
    let (folder, plain) = (Folder::new(), json!({}));
    folder.config(&given("g", &plain, ""));
    let plain = Server::start(&folder, &[]).await;
    let answer = plain.connect(PREFACE).await.drain().await;
    assert!(answer.is_empty(), "{}", String::from_utf8_lossy(&answer));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_certificate_is_taken_when_it_is_whole_and_ends_no_connection() {
    let folder = Folder::new();
    let (old, new) = (Authority::new(), Authority::new());
    // As in Kubernetes: files are links into a folder that is a link.
    let versions = ["config/wharf/v1", "config/wharf/v2"].map(|name| folder.join(name));
    for (authority, version) in [&old, &new].into_iter().zip(["v1", "v2"]) {
        let made = authority.localhost();
        folder.write(&format!("config/wharf/{version}/cert.pem"), &made.pem);
        folder.write(&format!("config/wharf/{version}/key.pem"), &made.key_pem);
        folder.set_mode(&format!("config/wharf/{version}/key.pem"), 0o600);
    }
    symlink("v1", folder.join("config/wharf/data")).unwrap();
    for name in ["cert.pem", "key.pem"] {
        symlink(format!("data/{name}"), folder.join("config/wharf").join(name)).unwrap();
    }
    let mut server = started(&folder, &old, "").await;
    let mut session = server.legacy("2025-11-25", json!({})).await;
    let (id, mut slow) =
        session.begin("tools/call", json!({ "name": "g_t", "arguments": { "ms": 1500, "text": "s" } })).await;
    // A key that does not match changes nothing.
    let fitting = std::fs::read(versions[0].join("key.pem")).unwrap();
    folder.write("config/wharf/v1/key.pem", Authority::new().localhost().key_pem);
    folder.set_mode("config/wharf/v1/key.pem", 0o600);
    server.wait_for_log("the last valid one stays").await;
    assert!(server.open().await.is_ok());
    folder.write("config/wharf/v1/key.pem", fitting);
    // It was written with a mode that lets everybody read it, which is refused until the mode is fixed.
    server.wait_for_log("others may read this private key").await;
    symlink("v2", folder.join("config/wharf/next")).unwrap();
    std::fs::rename(folder.join("config/wharf/next"), folder.join("config/wharf/data")).unwrap();
    server.wait_for_log("the certificate was reloaded").await;
    assert!(server.open().await.is_err(), "clients that trust only the old authority");
    assert_eq!(e2e::text(&slow.response(&id).await["result"]), "s", "the connection from before goes on");
    drop(session);
    server.over = Over::Tls(new.client(None, &[]));
    assert_eq!(call(&server, "new").await, "new");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_the_files_is_said_before_anything_is_served() {
    let (folder, authority) = (Folder::new(), Authority::new());
    let (made, other) = (authority.localhost(), authority.localhost());
    folder.config(&format!("[http.tls]\ncert = \"cert.pem\"\nkey = \"key.pem\"\n{}", given("g", &json!({}), "")));
    for (cert, key, mode, expected) in [
        (made.pem.as_str(), other.key_pem.as_str(), 0o600, "cannot be used together"),
        (made.pem.as_str(), made.key_pem.as_str(), 0o644, "others may read this private key"),
        (made.pem.as_str(), "none", 0o600, "there is no private key in it"),
        ("none", made.key_pem.as_str(), 0o600, "there is no certificate in it"),
    ] {
        folder.write("config/wharf/cert.pem", cert);
        folder.write("config/wharf/key.pem", key);
        folder.set_mode("config/wharf/key.pem", mode);
        let output = folder.run(&["serve", "--listen", "127.0.0.1:0"], &[]).await;
        let said = e2e::folder::stderr(&output);
        assert!(!output.status.success() && said.contains(expected), "{expected}: {said}");
        assert!(!said.contains("PRIVATE"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_are_who_their_certificates_say() {
    let (folder, authority, strangers) = (Folder::new(), Authority::new(), Authority::new());
    write(&folder, &authority.localhost());
    folder.write("config/wharf/ca.pem", authority.pem());
    with_clients(&folder, "");
    let uri = SanType::URI("spiffe://example.com/agent".try_into().unwrap());
    let mail = SanType::Rfc822Name("ann@example.com".try_into().unwrap());
    let mut server = serving(&folder, Over::Tls(authority.client(None, &[]))).await;
    let mut opened = Vec::new();
    for (names, expected) in [
        (vec![dns("agent.example.com"), mail.clone(), uri], "certificate spiffe://example.com/agent"),
        (vec![mail.clone(), dns("agent.example.com")], "certificate agent.example.com"),
        (vec![mail], "certificate ann@example.com"),
        (vec![], "certificate sha256:"),
    ] {
        let made = authority.make(&names);
        server.over = Over::Tls(authority.client(Some(&made), &[]));
        assert_eq!(call(&server, expected).await, expected);
        let log = std::fs::read_to_string(folder.join("audit/audit.jsonl")).unwrap();
        let line = log.lines().rfind(|line| line.contains("g_t") || line.contains(expected)).unwrap_or_default();
        assert!(line.contains(&format!("\"wharf.principal\":\"{expected}")), "{expected}: {line}");
        opened.push((server.over.clone(), server.legacy("2025-11-25", json!({})).await.id));
    }
    // A session belongs to the client that opened it.
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    let sessions: Vec<String> = opened.iter().map(|(_, id)| id.clone()).collect();
    for (at, (over, _)) in opened.into_iter().enumerate() {
        server.over = over;
        for (of, id) in sessions.iter().enumerate() {
            let headers = [("Mcp-Session-Id", id.as_str()), ("MCP-Protocol-Version", "2025-11-25")];
            let expected = if at == of { 200 } else { 404 };
            assert_eq!(server.post(&headers, &list).await.status(), expected, "{at} {of}");
        }
    }
    // Without a certificate, or with one of another authority, the connection fails.
    for over in [authority.client(None, &[]), authority.client(Some(&strangers.localhost()), &[])] {
        server.over = Over::Tls(over);
        let answered = match server.open().await {
            Err(_) => Vec::new(),
            // The client may notice it only when it reads.
            Ok(_) => server.connect(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n").await.drain().await,
        };
        assert!(answered.is_empty(), "{}", String::from_utf8_lossy(&answered));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_certificates_are_optional_only_what_is_for_everybody_goes_without() {
    let (folder, authority) = (Folder::new(), Authority::new());
    write(&folder, &authority.localhost());
    folder.write("config/wharf/ca.pem", authority.pem());
    with_clients(&folder, "client_cert = \"optional\"");
    let mut server = serving(&folder, Over::Tls(authority.client(None, &[]))).await;
    assert_eq!(server.send("GET", "/livez", &[], b"").await.status(), 200);
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    assert_eq!(server.post(&[], &list).await.status(), 403);
    server.wait_for_log("a client certificate is needed").await;
    server.over = Over::Tls(authority.client(Some(&authority.make(&[dns("agent")])), &[]));
    assert_eq!(call(&server, "shown").await, "shown");
}
