//! Which tokens are accepted, and the errors for others.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use e2e::{Folder, Server, Value, json};
use ring::hmac;

use crate::{
    RESOURCE, call, get, initialize,
    issuer::{Issuer, Key, now},
    started, status,
};

const METADATA: &str = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp";

async fn ready() -> (Folder, Issuer, Key, Server) {
    let (folder, key) = (Folder::new(), Key::new("one"));
    let issuer = Issuer::start(&[&key]).await;
    let server = started(&folder, &issuer, "").await;
    (folder, issuer, key, server)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_good_token_is_taken_in_every_revision() {
    let (_folder, issuer, key, server) = ready().await;
    let token = format!("Bearer {}", key.token(&issuer.claims()));
    let headers = [("Authorization", token.as_str())];
    let mut answer = call(&server, &headers).await;
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.json().await["result"]["content"][0]["text"], "hello");
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        assert_eq!(initialize(&server, revision, &headers).await.status(), 200, "{revision}");
    }
    // A renewed token has the same principal: it can continue the session of the previous token.
    let opened = initialize(&server, "2025-11-25", &headers).await;
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    for (claims, expected) in
        [(issuer.with("exp", Some(json!(now() + 600))), 200), (issuer.with("sub", Some(json!("bob"))), 404)]
    {
        let token = format!("Bearer {}", key.token(&claims));
        let headers = [
            ("Authorization", token.as_str()),
            ("Mcp-Session-Id", session.as_str()),
            ("MCP-Protocol-Version", "2025-11-25"),
        ];
        assert_eq!(server.post(&headers, &list).await.status(), expected, "{claims}");
    }
    let log = server.terminate().await.2;
    assert!(!log.contains(&token[7..40]), "no token stands in the log: {log}");
}

/// The problem, the headers, and the status, error and part of the reason that the sender gets.
type Bad<'a> = (&'a str, Vec<(&'a str, String)>, u16, &'a str, &'a str);

/// Each invalid token, with the status, the error and a part of the reason that its sender gets.
#[tokio::test(flavor = "multi_thread")]
async fn no_other_token_is_taken() {
    let (_folder, issuer, key, server) = ready().await;
    let stranger = Key::new("one");
    let good = key.token(&issuer.claims());
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let unsigned = |header: Value| format!("{}.{}.", part(&header), part(&issuer.claims()));
    let claims = |key_: &str, value: Option<Value>| key.token(&issuer.with(key_, value));
    let header = |name: &str, value: &str| {
        let mut header = key.header();
        header[name] = json!(value);
        key.sign(&header, &issuer.claims())
    };
    // The public key, used as the secret of a symmetric signature.
    let confused = {
        let message = unsigned(json!({ "alg": "HS256", "kid": "one" }));
        let secret = hmac::Key::new(hmac::HMAC_SHA256, key.public().to_string().as_bytes());
        let signature = hmac::sign(&secret, message.trim_end_matches('.').as_bytes());
        format!("{message}{}", URL_SAFE_NO_PAD.encode(signature))
    };
    let swapped = {
        let other = key.token(&issuer.with("sub", Some(json!("root"))));
        let (body, _) = other.rsplit_once('.').unwrap();
        format!("{body}.{}", good.rsplit_once('.').unwrap().1)
    };
    let bearer = |token: &str| vec![("Authorization", format!("Bearer {token}"))];
    let invalid = "invalid_token";
    let table: Vec<Bad> = vec![
        ("nothing", vec![], 401, "", ""),
        ("another scheme", vec![("Authorization", "Basic YTpi".into())], 401, "", ""),
        ("no token", bearer(""), 400, "invalid_request", "one token"),
        ("two tokens", [bearer(&good), bearer(&good)].concat(), 400, "invalid_request", "two headers"),
        ("no JWT", bearer("opaque"), 401, invalid, "not a JSON Web Token"),
        ("too long", bearer(&"a".repeat(20_000)), 401, invalid, "longer than"),
        ("alg none", bearer(&unsigned(json!({ "alg": "none" }))), 401, invalid, "not signed"),
        (
            "alg none, signed",
            bearer(&format!("{}c2ln", unsigned(json!({ "alg": "none" })))),
            401,
            invalid,
            "not accepted",
        ),
        ("HS256 with the public key", bearer(&confused), 401, invalid, "not accepted"),
        ("another's key", bearer(&stranger.token(&issuer.claims())), 401, invalid, "signature is invalid"),
        ("another's signature", bearer(&swapped), 401, invalid, "signature is invalid"),
        ("an unknown key", bearer(&header("kid", "none")), 401, invalid, "does not publish"),
        ("an ID token's type", bearer(&header("typ", "id+jwt")), 401, invalid, "access token"),
        ("expired", bearer(&claims("exp", Some(json!(now() - 60)))), 401, invalid, "expired"),
        ("no end", bearer(&claims("exp", None)), 401, invalid, "no expiry"),
        ("the end as a text", bearer(&claims("exp", Some(json!("9999999999")))), 401, invalid, "not a time"),
        ("not yet", bearer(&claims("nbf", Some(json!(now() + 600)))), 401, invalid, "not valid yet"),
        ("nbf as a text", bearer(&claims("nbf", Some(json!("0")))), 401, invalid, "not a time"),
        ("from the future", bearer(&claims("iat", Some(json!(now() + 600)))), 401, invalid, "future"),
        ("no issuer", bearer(&claims("iss", None)), 401, invalid, "issuer"),
        ("another issuer", bearer(&claims("iss", Some(json!("https://evil.example")))), 401, invalid, "issuer"),
        ("no audience", bearer(&claims("aud", None)), 401, invalid, "no audience"),
        (
            "another audience",
            bearer(&claims("aud", Some(json!("https://other.example/mcp")))),
            401,
            invalid,
            "another audience",
        ),
        (
            "the host alone",
            bearer(&claims("aud", Some(json!("https://mcp.example.com")))),
            401,
            invalid,
            "another audience",
        ),
        ("an ID token", bearer(&claims("nonce", Some(json!("n")))), 401, invalid, "not an access token"),
        ("bound to a key", bearer(&claims("cnf", Some(json!({ "jkt": "x" })))), 401, invalid, "bound to a key"),
        ("nobody", bearer(&claims("sub", None)), 401, invalid, "no subject"),
        ("too few scopes", bearer(&claims("scope", Some(json!("other")))), 403, "insufficient_scope", ""),
        ("no scopes", bearer(&claims("scope", None)), 403, "insufficient_scope", ""),
    ];
    assert!(table.len() > 20);
    for (what, headers, status, error, why) in &table {
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let mut all = vec![("2026-07-28", call(&server, &headers).await)];
        for revision in ["2025-03-26", "2025-06-18", "2025-11-25"] {
            all.push((revision, initialize(&server, revision, &headers).await));
        }
        for (revision, exchange) in &all {
            assert_eq!(exchange.status(), *status, "{what}, {revision}");
            let challenge = exchange.header("www-authenticate").expect("a challenge");
            // A caller with other, useless scopes is told to ask for them as well, so that it does not lose them.
            let scopes = if *what == "too few scopes" { "mcp other" } else { "mcp" };
            let expected = format!("resource_metadata=\"{METADATA}\", scope=\"{scopes}\"");
            assert!(challenge.starts_with("Bearer ") && challenge.ends_with(&expected), "{what}: {challenge}");
            assert_eq!(challenge.contains("error="), !error.is_empty(), "{what}: {challenge}");
            assert!(challenge.contains(error) && challenge.contains(why), "{what}: {challenge}");
        }
    }
    // A token in the URL is not accepted either, even a valid one.
    let exchange = server.send("POST", &format!("/mcp?access_token={good}"), &[], b"{}").await;
    assert_eq!(exchange.status(), 400);
    assert_eq!(status(&server, &good).await, 200);
    server.terminate().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_are_told_where_to_log_in() {
    let (_folder, issuer, _key, server) = ready().await;
    for (path, resource) in [
        ("/.well-known/oauth-protected-resource", RESOURCE),
        ("/.well-known/oauth-protected-resource/mcp", RESOURCE),
        ("/.well-known/oauth-protected-resource/mcp/", "https://mcp.example.com/mcp/"),
    ] {
        let (status, document) = get(&server, path).await;
        assert_eq!(status, 200, "{path}");
        assert_eq!(
            document,
            json!({
                "resource": resource,
                "authorization_servers": [issuer.url()],
                "bearer_methods_supported": ["header"],
                "scopes_supported": ["mcp"],
            }),
            "{path}"
        );
    }
    assert_eq!(get(&server, "/.well-known/oauth-protected-resource/other").await.0, 404);
    let mirrored = get(&server, "/.well-known/oauth-authorization-server").await;
    assert_eq!((mirrored.0, &mirrored.1["issuer"]), (200, &json!(issuer.url())));
    let exchange = server.send("GET", "/.well-known/oauth-protected-resource", &[("Host", "evil.example")], b"").await;
    assert_eq!(exchange.status(), 403);
    let exchange =
        server.send("GET", "/.well-known/oauth-protected-resource", &[("Origin", "https://any.example")], b"").await;
    assert_eq!(exchange.header("access-control-allow-origin"), Some("*"));
    server.terminate().await;
}

/// Streams that only wait for changes end with their token; running calls do not.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_with_its_token() {
    let (_folder, issuer, key, server) = ready().await;
    // The leeway for clock differences does not apply here.
    let claims = issuer.with("exp", Some(json!(now() + 2)));
    let token = format!("Bearer {}", key.token(&claims));
    let opened = initialize(&server, "2025-11-25", &[("Authorization", token.as_str())]).await;
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let headers = [
        ("Authorization", token.as_str()),
        ("Mcp-Session-Id", session.as_str()),
        ("MCP-Protocol-Version", "2025-11-25"),
        ("Accept", "text/event-stream"),
    ];
    let mut stream = server.send("GET", "/mcp", &headers, b"").await;
    assert_eq!(stream.status(), 200);
    while stream.event().await.is_some() {}
    assert!(now() >= claims["exp"].as_u64().unwrap(), "it ends no earlier");
    server.terminate().await;
}

/// The id of a stream is part of a URL, so others may learn it. They cannot use it.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_speaks_for_another_on_the_old_transport() {
    let (folder, key) = (Folder::new(), Key::new("one"));
    let issuer = Issuer::start(&[&key]).await;
    let server = started(&folder, &issuer, "[protocol]\nsse = true").await;
    let bearer = |subject: &str| format!("Bearer {}", key.token(&issuer.with("sub", Some(json!(subject)))));
    let (ann, bob) = (bearer("ann"), bearer("bob"));
    let mut stream = server.send("GET", "/sse", &[("Authorization", &ann), ("Accept", "text/event-stream")], b"").await;
    let endpoint = stream.frame().await.unwrap();
    let path = format!("/{}", endpoint.data.unwrap());
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    for (token, expected) in [(&bob, 404), (&ann, 202)] {
        let headers = [("Authorization", token.as_str()), ("Content-Type", "application/json")];
        assert_eq!(server.send("POST", &path, &headers, body.as_bytes()).await.status(), expected);
    }
    server.terminate().await;
}
