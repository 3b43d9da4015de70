//! MCP servers over HTTP: what they offer is served like a plugin's, and each mistake of theirs is an error that names it.

use e2e::{
    Folder, Pipe,
    folder::{stderr, stdout},
    is_error, json, plugin, text, together,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::{names, pipe, tools};

/// Writes the config of the server. `more`: further lines of its table.
fn config(folder: &Folder, more: &str) {
    folder.config(&format!("[plugins.s]\npath = {:?}\n{more}", plugin("http-server")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_offers_is_served_in_each_way_to_speak() {
    for endpoint in ["/mcp", "/legacy", "/plain"] {
        let folder = Folder::new();
        config(&folder, &format!("adapter = \"http\"\nendpoint = {endpoint:?}"));
        let mut pipe = Pipe::start(&folder, &["run"]);
        let hello = pipe.legacy("2025-11-25", json!({})).await;
        let instructions = hello["instructions"].as_str().unwrap_or_default();
        assert_eq!(instructions.contains("Ask twice."), endpoint == "/mcp", "{endpoint}: {hello}");
        let listed = tools(&mut pipe).await;
        assert_eq!(
            names(&listed),
            ["echo", "count", "headers", "ask", "fetch", "fail", "big", "report", "late", "mistake"]
                .map(|name| format!("s_{name}"))
        );
        assert_eq!(listed[0].1["annotations"]["readOnlyHint"], true);
        assert_eq!(listed[0].1["title"], "Echo");
        assert_eq!(text(&pipe.call("s_echo", json!({ "text": "a\n\u{1f600}" })).await), "a\n\u{1f600}", "{endpoint}");
        let counted = pipe.call("s_count", json!({})).await;
        assert_eq!(counted["structuredContent"], json!({ "calls": 1 }));
        // Arguments are checked by wharf before the server gets them.
        assert!(is_error(&pipe.call("s_echo", json!({ "text": 7 })).await));
        let resources = pipe.request("resources/list", json!({})).await.unwrap();
        assert_eq!(resources["resources"][0]["title"], "A");
        let read = async |pipe: &mut Pipe, uri: &str| pipe.request("resources/read", json!({ "uri": uri })).await;
        assert_eq!(read(&mut pipe, "note:///a").await.unwrap()["contents"][0]["text"], "rain");
        assert_eq!(read(&mut pipe, "note:///bytes").await.unwrap()["contents"][0]["blob"], "AAEC");
        assert_eq!(read(&mut pipe, "note:///no").await.unwrap_err()["code"], -32002, "{endpoint}");
        let params = json!({ "name": "s_ask", "arguments": { "about": "rain" } });
        let prompt = pipe.request("prompts/get", params).await.unwrap();
        assert_eq!(prompt["messages"][0]["content"]["text"], "Tell of \"rain\"");
        let argument = json!({ "name": "about", "value": "rai" });
        let params = json!({ "ref": { "type": "ref/prompt", "name": "s_ask" }, "argument": argument });
        let completed = pipe.request("completion/complete", params).await.unwrap();
        assert_eq!(completed["completion"]["values"], json!(["rain"]));
        pipe.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_is_fresh_or_serves_the_same_client_again() {
    for (endpoint, instances, expected) in
        [("/mcp", "fresh", [1, 1, 1]), ("/mcp", "reused", [1, 2, 3]), ("/legacy", "reused", [1, 2, 3])]
    {
        let folder = Folder::new();
        config(&folder, &format!("instances = {instances:?}\nendpoint = {endpoint:?}"));
        let mut pipe = pipe(&folder).await;
        for calls in expected {
            let counted = pipe.call("s_count", json!({})).await;
            assert_eq!(counted["structuredContent"]["calls"], calls, "{endpoint} {instances}");
            // A failure is an answer, after which the instance is used again.
            assert!(pipe.request("tools/call", json!({ "name": "s_fail", "arguments": { "code": 7 } })).await.is_err());
        }
        // After a mistake, it is not.
        assert!(is_error(&pipe.call("s_mistake", json!({ "name": "words" })).await));
        assert_eq!(pipe.call("s_count", json!({})).await["structuredContent"]["calls"], 1);
        pipe.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_come_while_it_answers_and_headers_repeat_the_request() {
    let folder = Folder::new();
    config(&folder, "");
    let mut pipe = pipe(&folder).await;
    let params = json!({ "name": "s_report", "arguments": {}, "_meta": { "progressToken": "mine" } });
    let id = pipe.begin("tools/call", params).await;
    for done in [1.0, 2.0] {
        let progress = pipe.notification("notifications/progress").await;
        let params = &progress["params"];
        assert_eq!((params["progress"].as_f64(), &params["progressToken"]), (Some(done), &json!("mine")));
    }
    let log = pipe.notification("notifications/message").await;
    assert_eq!((&log["params"]["level"], &log["params"]["data"]), (&json!("warning"), &json!({ "heat": 3 })));
    assert_eq!(text(&pipe.answer(&id).await.unwrap()), "done");
    let told = pipe.call("s_headers", json!({ "region": "eu" })).await;
    let headers: Vec<(String, String)> = serde_json::from_str(text(&told)).unwrap();
    let header = |name: &str| headers.iter().find(|(one, _)| one == name).map(|(_, value)| value.as_str());
    for (name, expected) in [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "headers"),
        ("mcp-param-region", "eu"),
        ("host", "localhost"),
    ] {
        assert_eq!(header(name), Some(expected), "{headers:?}");
    }
    pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_is_a_result_reaches_the_person() {
    let folder = Folder::new();
    config(&folder, "grants = { ask = [\"elicitation\"] }");
    let mut pipe = Pipe::start(&folder, &["run"]);
    let able = json!({ "elicitation": { "form": {} } });
    let asked = pipe.modern("tools/call", json!({ "name": "s_ask" }), able.clone()).await.unwrap();
    assert_eq!(asked["inputRequests"]["sure"]["params"]["message"], "[s] Sure?");
    let answer = json!({ "sure": { "action": "accept", "content": { "yes": true } } });
    let params = json!({ "name": "s_ask", "inputResponses": answer, "requestState": asked["requestState"] });
    let done = pipe.modern("tools/call", params, able.clone()).await.unwrap();
    assert_eq!(text(&done), r#"{"action":"accept","content":{"yes":true}} "kept""#);
    pipe.close().await;
    // Without the grant, nobody is asked.
    let folder = Folder::new();
    config(&folder, "");
    let mut pipe = Pipe::start(&folder, &["run"]);
    let refused = pipe.modern("tools/call", json!({ "name": "s_ask" }), able).await.unwrap();
    assert!(is_error(&refused) && text(&refused).contains("ask"), "{refused}");
    pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn its_own_requests_need_a_grant() {
    let upstream = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/a", upstream.local_addr().unwrap());
    let serve = async {
        let (mut stream, _) = upstream.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(stream.read_u8().await.unwrap());
        }
        stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
    };
    let folder = Folder::new();
    config(&folder, "");
    let mut refused = pipe(&folder).await;
    let denied = refused.call("s_fetch", json!({ "url": url })).await;
    assert!(text(&denied).contains("HttpRequestDenied"), "{denied}");
    refused.close().await;
    let folder = Folder::new();
    config(&folder, &format!("grants = {{ http = [{{ url = {url:?}, private = true }}] }}"));
    let mut allowed = pipe(&folder).await;
    let call = async { assert_eq!(text(&allowed.call("s_fetch", json!({ "url": url })).await), "204") };
    tokio::join!(serve, call);
    allowed.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_mistake_of_a_call_is_named() {
    let folder = Folder::new();
    config(&folder, "[limits]\ntimeout_ms = 2000\noutput_kib = 64\n");
    let mut pipe = pipe(&folder).await;
    assert_eq!(tools(&mut pipe).await.len(), 10);
    for (mistake, expected) in [
        ("none", "status 404 and text/html"),
        ("html", "status 200 and text/html"),
        ("redirect", "it redirects to https://elsewhere.test/"),
        ("broken", "status 500 and text/plain"),
        ("denied", "status 401 without a content type"),
        ("words", "is not a message of JSON-RPC"),
        ("batch", "is not a message of JSON-RPC"),
        ("other-id", "another id than the request"),
        ("both", "neither a result nor an error, or both"),
        ("neither", "neither a result nor an error, or both"),
        ("status", "has a result, and status 403"),
        ("accepted", "status 202 without a content type"),
        ("silent", "drops a request without an answer"),
        ("unfinished", "returned before its answer was complete"),
        ("early", "ended without the response"),
        ("asks", "asks its client for `elicitation/create` in the middle of an answer"),
        ("event-words", "an event of its answer is not a message of JSON-RPC"),
        ("endless", "its limit of 2000 ms"),
        ("one-event", "larger than its limit of 64 KiB"),
        ("large", "larger than its limit of 64 KiB"),
        ("many-headers", "it crashed"),
        ("spin", "its limit of 2000 ms"),
        ("trap", "it crashed"),
    ] {
        let answered = pipe.call("s_mistake", json!({ "name": mistake })).await;
        assert!(is_error(&answered) && text(&answered).contains(expected), "{mistake}: {answered}");
        assert!(!text(&answered).contains('\u{1b}'), "{answered}");
    }
    let big = pipe.call("s_big", json!({ "bytes": 60 << 10 })).await;
    assert_eq!(text(&big).len(), 60 << 10);
    assert!(is_error(&pipe.call("s_big", json!({ "bytes": 70 << 10 })).await));
    // What a server does after its answer does not change the answer.
    assert_eq!(text(&pipe.call("s_late", json!({})).await), "done");
    for (code, expected) in [(-32602, -32602), (-32001, -32603), (7, 7), (429, -32603)] {
        let params = json!({ "name": "s_fail", "arguments": { "code": code } });
        match pipe.request("tools/call", params).await {
            Ok(result) => {
                assert!(is_error(&result) && text(&result).contains("it failed") && expected == -32603, "{result}")
            }
            Err(error) => assert_eq!(error["code"], expected, "{error}"),
        }
    }
    pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_mistake_of_a_server_that_is_loaded_is_named_with_what_to_type() {
    let inspected = async |(endpoint, expected): (&str, &str)| {
        let folder = Folder::new();
        config(&folder, &format!("endpoint = {endpoint:?}"));
        let checked = folder.run(&["check"], &[]).await;
        let told = stdout(&checked) + &stderr(&checked);
        assert!(!checked.status.success() && told.contains(expected), "{endpoint}: {told}");
    };
    let cases = [
        ("/none", "`endpoint` in its table is the path"),
        ("/redirect", "redirects are not followed; `endpoint` in its table is the path"),
        ("/old", "it speaks the revision \"2023-01-01\" of MCP, and wharf knows 2025-11-25"),
        ("/html", "status 200 and text/html; charset=utf-8"),
        ("/trap", "it crashed"),
        ("/spin", "its limit of 5000 ms"),
    ];
    together(cases.map(inspected)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_recognised_by_its_export_and_can_be_pinned() {
    let folder = Folder::new();
    let file = folder.plugin("http-server");
    let inspected = stdout(&folder.run(&["inspect", "plugins/http-server.wasm"], &[]).await);
    assert!(inspected.contains("an MCP server over HTTP, and wharf is its only client"), "{inspected}");
    let called = folder.run(&["call", "plugins/http-server.wasm", "echo", r#"{"text":"hello"}"#], &[]).await;
    assert_eq!(stdout(&called).trim(), "hello", "{}", stderr(&called));
    let mut pipe = Pipe::start(&folder, &["run", "plugins/http-server.wasm"]);
    pipe.legacy("2025-11-25", json!({})).await;
    assert_eq!(tools(&mut pipe).await.len(), 10);
    pipe.close().await;
    folder.config(&format!("[plugins.s]\npath = {file:?}\nsurface = \"pinned\"\n"));
    let refused = folder.run(&["check"], &[]).await;
    assert!(!refused.status.success() && (stdout(&refused) + &stderr(&refused)).contains("wharf lock accept s"));
    let printed = folder.run(&["lock", "accept", "s", "--print"], &[]).await;
    let lock = stdout(&printed);
    assert!(printed.status.success() && lock.contains("Ask twice."), "{lock}{}", stderr(&printed));
    folder.write("config/wharf/wharf.lock", lock);
    assert!(folder.run(&["check"], &[]).await.status.success());
    for (lines, expected) in [
        ("adapter = \"command\"", "does not export wasi:cli/run"),
        ("adapter = \"functions\"", "it exports none"),
        ("tools = { echo = { description = \"Echoes\" } }", "it describes its tools itself"),
    ] {
        config(&folder, lines);
        let checked = folder.run(&["check"], &[]).await;
        assert!((stdout(&checked) + &stderr(&checked)).contains(expected), "{lines}");
    }
    for (name, lines, expected) in [
        ("words", "adapter = \"http\"", "does not export wasi:http/incoming-handler"),
        ("words", "endpoint = \"/mcp\"", "`endpoint` is for MCP servers over HTTP"),
        ("echo", "adapter = \"http\"", "leave it out"),
    ] {
        folder.config(&format!("[plugins.s]\npath = {:?}\n{lines}", plugin(name)));
        let checked = folder.run(&["check"], &[]).await;
        assert!((stdout(&checked) + &stderr(&checked)).contains(expected), "{name} {lines}");
    }
}

/// A component with a function that is a tool, and with a handler of HTTP requests that answers none.
const BOTH: &str = r#"(component
    (import "wasi:http/types@0.2.0" (instance $types
        (export "incoming-request" (type (sub resource)))
        (export "response-outparam" (type (sub resource)))))
    (alias export $types "incoming-request" (type $request))
    (alias export $types "response-outparam" (type $out))
    (core module $module
        (func (export "seven") (result i32) (i32.const 7))
        (func (export "handle") (param i32 i32)))
    (core instance $instance (instantiate $module))
    (func (export "seven") (result u32) (canon lift (core func $instance "seven")))
    (func $handle (param "request" (own $request)) (param "response-out" (own $out))
        (canon lift (core func $instance "handle")))
    (instance $handler (export "handle" (func $handle)))
    (export "wasi:http/incoming-handler@0.2.0" (instance $handler)))"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_component_with_functions_is_a_server_only_if_its_table_says_so() {
    let folder = Folder::new();
    let file = folder.write("both.wasm", wat::parse_str(BOTH).unwrap());
    folder.config(&format!("[plugins.both]\npath = {file:?}\n"));
    let checked = stdout(&folder.run(&["check"], &[]).await);
    assert!(
        checked.contains("both: ok, 1 tools") && checked.contains("`adapter = \"http\"` in [plugins.both]"),
        "{checked}"
    );
    folder.config(&format!("[plugins.both]\npath = {file:?}\nadapter = \"http\"\n"));
    let checked = folder.run(&["check"], &[]).await;
    let told = stdout(&checked) + &stderr(&checked);
    // The handler leaves its arguments where they are, so nothing ever answers.
    assert!(!checked.status.success() && told.contains("returned before its answer was complete"), "{told}");
}
