//! Common defects of implementations that the official suite does not find, with one test each.

use e2e::{
    CAPABILITIES_KEY, Folder, LEGACY, MODERN, Pipe, Server, VERSION_KEY, Value, given, json, modern_params, plugin,
    text,
};

const VERSION: (&str, &str) = ("MCP-Protocol-Version", MODERN);

fn folder() -> Folder {
    let schema =
        json!({ "type": "object", "properties": { "region": { "type": "string", "x-mcp-header": "Region" } } });
    let folder = Folder::new();
    folder.config(&format!(
        "[plugins.show]\npath = {:?}\nprefix = \"\"\n[plugins.show.grants]\nask = [\"elicitation\"]\n{}",
        plugin("showcase"),
        given("g", &json!({ "schema": schema }), "")
    ));
    folder
}

async fn started() -> (Folder, Server) {
    let folder = folder();
    let server = Server::start(&folder, &[]).await;
    (folder, server)
}

/// The same request in every revision and over both transports.
async fn everywhere(method: &str, params: Value) -> Vec<(String, Result<Value, Value>)> {
    let (folder, server) = started().await;
    let mut outcomes = Vec::new();
    for revision in LEGACY {
        let mut session = server.legacy(revision, json!({})).await;
        outcomes.push((format!("{revision} over HTTP"), session.request(method, params.clone()).await));
        let mut pipe = Pipe::start(&folder, &["run"]);
        pipe.legacy(revision, json!({})).await;
        outcomes.push((format!("{revision} on a pipe"), pipe.request(method, params.clone()).await));
    }
    let mut pipe = Pipe::start(&folder, &["run"]);
    outcomes.push(("modern on a pipe".into(), pipe.modern(method, params.clone(), json!({})).await));
    outcomes.push(("modern over HTTP".into(), server.modern(method, params, json!({})).await));
    outcomes
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_tools_are_no_success() {
    for (era, outcome) in everywhere("tools/call", json!({ "name": "no_such", "arguments": {} })).await {
        assert_eq!(outcome.expect_err(&era)["code"], -32602, "{era}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_prompts_are_no_empty_list() {
    for (era, outcome) in everywhere("prompts/get", json!({ "name": "no_such" })).await {
        assert_eq!(outcome.expect_err(&era)["code"], -32602, "{era}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn completions_have_at_most_a_hundred_values() {
    let reference = json!({ "type": "ref/resource", "uri": "show:///items/{id}" });
    let params = json!({ "ref": reference, "argument": { "name": "id", "value": "" } });
    for (era, outcome) in everywhere("completion/complete", params).await {
        let completion = &outcome.expect(&era)["completion"];
        assert_eq!(completion["values"].as_array().unwrap().len(), 100, "{era}: the plugin has 150");
        assert_eq!((&completion["total"], &completion["hasMore"]), (&json!(150), &json!(true)), "{era}");
    }
}

const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// Returns the levels of the log messages among these.
fn logged<'a>(messages: impl IntoIterator<Item = &'a Value>) -> Vec<String> {
    let logs = messages.into_iter().filter(|message| message["method"] == "notifications/message");
    logs.map(|log| {
        assert_eq!(log["params"]["data"], log["params"]["level"], "{log}");
        log["params"]["level"].as_str().unwrap().to_owned()
    })
    .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_level_of_a_session_filters_its_logs() {
    let (folder, server) = started().await;
    for (at, level) in LEVELS.iter().enumerate() {
        let mut session = server.legacy("2025-11-25", json!({})).await;
        session.request("logging/setLevel", json!({ "level": level })).await.unwrap();
        session.call("g_t", json!({ "levels": true })).await;
        assert_eq!(logged(&session.notifications), LEVELS[at..], "{level} over HTTP");
        let mut pipe = Pipe::start(&folder, &["run"]);
        pipe.legacy(LEGACY[at % 4], json!({})).await;
        pipe.request("logging/setLevel", json!({ "level": level })).await.unwrap();
        pipe.call("g_t", json!({ "levels": true })).await;
        assert_eq!(logged(pipe.inbox()), LEVELS[at..], "{level} on a pipe");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn modern_logs_are_sent_to_who_wants_them() {
    let (folder, server) = started().await;
    let mut pipe = Pipe::start(&folder, &["run"]);
    for (at, level) in LEVELS.iter().enumerate() {
        let meta = json!({ "io.modelcontextprotocol/logLevel": level });
        let params = json!({ "name": "g_t", "arguments": { "levels": true }, "_meta": meta });
        let mut exchange = server.open_modern(json!(1), "tools/call", params.clone(), json!({})).await;
        let mut messages = Vec::new();
        while let Some(message) = exchange.event().await {
            messages.push(message);
        }
        assert_eq!(logged(&messages), LEVELS[at..], "{level} over HTTP");
        assert!(messages.last().unwrap().get("result").is_some(), "the answer is last: {messages:?}");
        let before = pipe.inbox().len();
        pipe.modern("tools/call", params, json!({})).await.unwrap();
        assert_eq!(logged(pipe.inbox().iter().skip(before)), LEVELS[at..], "{level} on a pipe");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_prompts_and_resources_are_checked() {
    let (_folder, server) = started().await;
    for (method, params, name, other) in [
        ("prompts/get", json!({ "name": "conversation" }), "conversation", "essay"),
        ("resources/read", json!({ "uri": "show:///fixed" }), "show:///fixed", "show:///bytes"),
        ("tools/call", json!({ "name": "every_kind" }), "every_kind", "sum"),
    ] {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": modern_params(params, json!({})) });
        let upper = name.to_uppercase();
        for (given, expected) in [
            (Some(name), (200, 0)),
            (None, (400, -32020)),
            (Some(other), (400, -32020)),
            (Some(upper.as_str()), (400, -32020)),
            (Some(""), (400, -32020)),
        ] {
            let mut headers = vec![VERSION, ("Mcp-Method", method)];
            headers.extend(given.map(|name| ("Mcp-Name", name)));
            let (status, code, answer) = server.probe(&headers, &body).await;
            assert_eq!((status, code), expected, "{method} {given:?}: {answer}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_header_must_be_a_known_version() {
    let (_folder, server) = started().await;
    let session = server.legacy("2025-11-25", json!({})).await;
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    for version in
        ["nonsense", "2024-10-07", "2025-11-26", "2031-01-01", "1", "v2025-11-25", "2025-11-25,2025-06-18", ""]
    {
        let headers = [("MCP-Protocol-Version", version), ("Mcp-Session-Id", session.id.as_str())];
        let (status, code, answer) = server.probe(&headers, &ping).await;
        assert!(status == 400 && code != 0, "{version:?}: {status} {answer}");
        let stream = [headers[0], headers[1], ("Accept", "text/event-stream")];
        assert_eq!(server.send("GET", "/mcp", &stream, b"").await.status(), 400, "GET with {version:?}");
        assert_eq!(server.send("DELETE", "/mcp", &headers, b"").await.status(), 400, "DELETE with {version:?}");
    }
    let headers = [("MCP-Protocol-Version", "2025-11-25"), ("Mcp-Session-Id", session.id.as_str())];
    assert_eq!(server.probe(&headers, &ping).await.0, 200, "the session is still there");
    for version in ["nonsense", "2025-11-25", "2031-01-01"] {
        let params = json!({ "_meta": { VERSION_KEY: version, CAPABILITIES_KEY: {} } });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params });
        let headers = [("MCP-Protocol-Version", version), ("Mcp-Method", "tools/list")];
        assert_eq!(server.probe(&headers, &body).await.0, 400, "{version}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handshake_settles_on_a_version_there_is() {
    let (folder, server) = started().await;
    for offered in ["2024-10-07", "2025-11-26", "9999-01-01", "nonsense", "", MODERN] {
        assert_eq!(server.legacy(offered, json!({})).await.revision, "2025-11-25", "{offered}");
        let mut pipe = Pipe::start(&folder, &["run"]);
        assert_eq!(pipe.legacy(offered, json!({})).await["protocolVersion"], "2025-11-25", "{offered}");
    }
    for offered in LEGACY {
        assert_eq!(server.legacy(offered, json!({})).await.revision, offered);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_have_a_stream_and_changes_come_on_it() {
    let (_folder, server) = started().await;
    for revision in LEGACY {
        let mut session = server.legacy(revision, json!({})).await;
        let mut stream = session.stream().await;
        assert_eq!((stream.status(), stream.is_stream()), (200, true), "{revision}");
        session.request("resources/subscribe", json!({ "uri": "note:///x" })).await.unwrap();
        session.call("g_t", json!({ "updated": "note:///x" })).await;
        let event = stream.event().await.unwrap();
        assert_eq!(event["method"], "notifications/resources/updated", "{revision}: {event}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_json_is_an_error() {
    let (_folder, server) = started().await;
    let session = server.legacy("2025-11-25", json!({})).await;
    let kind = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
    for (body, code) in
        [(&b"{"[..], -32700), (b"", -32700), (b"{} {}", -32700), (b"\xff", -32700), (b"7", -32600), (b"{}", -32600)]
    {
        for more in [&[][..], &[("Mcp-Session-Id", session.id.as_str())], &[VERSION, ("Mcp-Method", "tools/list")]] {
            let headers: Vec<_> = kind.iter().chain(more).copied().collect();
            let mut exchange = server.send("POST", "/mcp", &headers, body).await;
            assert_eq!(exchange.status(), 400, "{body:?} {more:?}");
            let answer = exchange.json().await;
            assert_eq!((&answer["error"]["code"], answer.get("id")), (&json!(code), None), "{body:?}: {answer}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_that_are_unknown_cannot_be_cancelled_or_updated() {
    let (_folder, server) = started().await;
    let able = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    for (method, params) in [
        ("tasks/get", json!({ "taskId": "no-such-task" })),
        ("tasks/cancel", json!({ "taskId": "no-such-task" })),
        ("tasks/update", json!({ "taskId": "no-such-task", "inputResponses": {} })),
    ] {
        let error = server.modern(method, params, able.clone()).await.expect_err(method);
        assert_eq!(error["code"], -32602, "{method}: {error}");
    }
    let mut session = server.legacy("2025-11-25", json!({})).await;
    for method in ["tasks/get", "tasks/cancel", "tasks/result"] {
        let error = session.request(method, json!({ "taskId": "no-such-task" })).await.expect_err(method);
        assert_eq!(error["code"], -32602, "{method}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_letter_of_the_state_is_sealed() {
    let (_folder, server) = started().await;
    let able = json!({ "elicitation": {} });
    let mut params = json!({ "name": "g_t", "arguments": { "ask": [["a"]], "state": "a state of some length" } });
    let first = server.modern("tools/call", params.clone(), able.clone()).await.unwrap();
    let state = first["requestState"].as_str().unwrap().to_owned();
    params["inputResponses"] = json!({ "a": { "action": "accept", "content": { "v": "x" } } });
    for at in 0..state.len() {
        let mut altered = state.clone();
        let other = if &state[at..=at] == "B" { "C" } else { "B" };
        altered.replace_range(at..=at, other);
        params["requestState"] = altered.into();
        let outcome = server.modern("tools/call", params.clone(), able.clone()).await;
        assert_eq!(outcome.expect_err(&format!("altered at {at} of {state}"))["code"], -32602);
    }
    params["requestState"] = state.into();
    assert_eq!(text(&server.modern("tools/call", params, able).await.unwrap()), "a");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_token_there_is_no_progress() {
    let (folder, server) = started().await;
    let params = json!({ "name": "g_t", "arguments": { "steps": 5, "ms": 40 } });
    let mut exchange = server.open_modern(json!(1), "tools/call", params.clone(), json!({})).await;
    let only = exchange.message().await.unwrap();
    assert_eq!(only["id"], 1, "{only}");
    let mut session = server.legacy("2025-11-25", json!({})).await;
    session.request("logging/setLevel", json!({ "level": "emergency" })).await.unwrap();
    let mut stream = session.stream().await;
    session.request("tools/call", params.clone()).await.unwrap();
    assert!(session.notifications.is_empty(), "{:?}", session.notifications);
    session.request("resources/subscribe", json!({ "uri": "note:///x" })).await.unwrap();
    session.call("g_t", json!({ "updated": "note:///x" })).await;
    assert_eq!(stream.event().await.unwrap()["method"], "notifications/resources/updated");
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.modern("tools/call", params.clone(), json!({})).await.unwrap();
    pipe.legacy("2025-06-18", json!({})).await;
    pipe.request("logging/setLevel", json!({ "level": "emergency" })).await.unwrap();
    pipe.request("tools/call", params).await.unwrap();
    assert!(pipe.inbox().is_empty(), "{:?}", pipe.inbox());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_foreign_host_is_refused() {
    let (_folder, server) = started().await;
    let params = modern_params(json!({}), json!({}));
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": params });
    let port = server.address.port();
    for host in
        ["example.com", "attacker.test", "10.0.0.1", "wharf", "localhost.example.com", "[::2]", "127.0.0.1.nip.io"]
    {
        for host in [host.to_owned(), format!("{host}:{port}")] {
            let headers = [VERSION, ("Mcp-Method", "server/discover"), ("Host", host.as_str())];
            assert_eq!(server.post(&headers, &body).await.status(), 403, "{host}");
        }
    }
    for origin in ["http://example.com", "https://attacker.test", "http://localhost.example.com", "null", "file://"] {
        let headers = [VERSION, ("Mcp-Method", "server/discover"), ("Origin", origin)];
        assert_eq!(server.post(&headers, &body).await.status(), 403, "{origin}");
    }
    assert_eq!(server.post(&[VERSION, ("Mcp-Method", "server/discover")], &body).await.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_header_without_its_value_in_the_body_is_a_mismatch() {
    let (_folder, server) = started().await;
    let headers = [VERSION, ("Mcp-Method", "tools/call"), ("Mcp-Name", "g_t"), ("Mcp-Param-Region", "us")];
    for (arguments, expected) in [
        (json!({ "region": "us" }), (200, 0)),
        (json!({}), (400, -32020)),
        (json!({ "region": null }), (400, -32020)),
        (json!({ "Region": "us" }), (400, -32020)),
    ] {
        let params = modern_params(json!({ "name": "g_t", "arguments": arguments }), json!({}));
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let (status, code, answer) = server.probe(&headers, &body).await;
        assert_eq!((status, code), expected, "{arguments}: {answer}");
    }
    let params = modern_params(json!({ "name": "g_t" }), json!({}));
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    assert_eq!(server.probe(&headers, &body).await.1, -32020, "no arguments at all");
}

/// A tool that validates its arguments itself also gets those that do not fit its schema, as they were written; other tools do not.
#[tokio::test(flavor = "multi_thread")]
async fn who_validates_arguments_is_said_by_the_tool() {
    let properties = json!({ "fail": { "type": "string" }, "ms": { "type": "integer" } });
    let schema = json!({ "type": "object", "properties": properties }).to_string();
    let validates = json!({ "_meta": { "dev.wharf/validates": true } }).to_string();
    let folder = Folder::new();
    let own = given("own", &json!({ "schema": schema, "more": validates, "alone": true }), "");
    folder.config(&format!("{own}{}", given("other", &json!({ "schema": schema, "alone": true }), "")));
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy("2025-11-25", json!({})).await;
    let list = pipe.request("tools/list", json!({})).await.unwrap();
    assert!(!list.to_string().contains("dev.wharf/validates"), "it is for wharf: {list}");
    for (tool, expected) in [("own_t", "reached"), ("other_t", "The arguments do not fit the tool's schema: at /ms")] {
        let result = pipe.call(tool, json!({ "fail": "reached", "ms": "0" })).await;
        assert!(text(&result).starts_with(expected), "{tool}: {result}");
    }
    let fits = pipe.call("other_t", json!({ "fail": "reached", "ms": 0 })).await;
    assert_eq!(text(&fits), "reached");
}
