//! The transport of requests: TLS, and proxies.

use std::sync::Arc;

use e2e::{Folder, json};

use crate::{
    config, connected, send,
    web::{Relay, Web},
};

/// A certificate for `localhost` as PEM, and the config of a server with it.
fn certificate() -> (String, Arc<rustls::ServerConfig>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let server = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let server = server.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key).unwrap();
    (made.cert.pem(), Arc::new(server))
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_checked_and_the_operator_can_add_some() {
    let folder = Folder::new();
    let (pem, server) = certificate();
    let web = Web::start_tls(server).await;
    let port = web.address.port();
    let rule = format!("{{ url = \"https://localhost:{port}\", private = true }}");
    let url = json!({ "url": format!("https://localhost:{port}/ok") });
    config(&folder, &rule, "");
    let mut pipe = connected(&folder, &[]).await;
    let refused = send(&mut pipe, url.clone()).await.unwrap_err();
    assert!(refused.contains("TlsCertificateError"), "{refused}");
    pipe.close().await;
    let own = folder.write("own.pem", pem);
    config(&folder, &rule, &format!("[egress]\nroots = \"built-in\"\nca = [{own:?}]"));
    let mut pipe = connected(&folder, &[]).await;
    for _ in 0..3 {
        assert_eq!(send(&mut pipe, url.clone()).await.unwrap()["body"], "ok");
    }
    assert_eq!(web.connections(), 2, "the connection is kept");
    pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_is_used_only_if_it_is_named() {
    let folder = Folder::new();
    let (pem, server) = certificate();
    let (web, secure, relay) = (Web::start().await, Web::start_tls(server).await, Relay::start().await);
    let own = folder.write("own.pem", pem);
    let (port, secure_port) = (web.address.port(), secure.address.port());
    let rules = format!("{{ url = \"http://localhost:{port}\", private = true }}, \"https://localhost:{secure_port}\"");
    let proxy = format!("http://ada:secret@{}", relay.address);
    let variable = [("https_proxy", proxy.as_str()), ("HTTP_PROXY", proxy.as_str()), ("OUR_PROXY", proxy.as_str())];
    config(&folder, &rules, &format!("[egress]\nca = [{own:?}]"));
    let mut pipe = connected(&folder, &variable).await;
    assert_eq!(send(&mut pipe, json!({ "url": web.url("/ok") })).await.unwrap()["status"], 200);
    assert!(relay.seen.lock().is_empty());
    pipe.close().await;
    config(&folder, &rules, &format!("[egress]\nca = [{own:?}]\nproxy = {{ env = \"OUR_PROXY\" }}"));
    let mut pipe = connected(&folder, &variable).await;
    for url in [web.url("/ok"), format!("https://localhost:{secure_port}/ok")] {
        assert_eq!(send(&mut pipe, json!({ "url": url })).await.unwrap()["body"], "ok", "{url}");
    }
    let seen = relay.seen.lock().clone();
    let basic = "Basic YWRhOnNlY3JldA==".to_owned();
    assert_eq!(
        seen,
        [
            (format!("GET http://localhost:{port}/ok HTTP/1.1"), basic.clone()),
            (format!("CONNECT localhost:{secure_port} HTTP/1.1"), basic)
        ]
    );
    let checked = folder.run(&["check"], &variable).await;
    let out = e2e::folder::stdout(&checked);
    assert!(out.contains("the proxy looks names up"), "{out}");
    pipe.close().await;
}
