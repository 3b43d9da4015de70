//! The legacy era on a pipe: handshake, lists, calls and mistakes, in all four revisions.

use e2e::{Folder, LEGACY, Pipe, hello_and_echo, is_error, json, names, text};

#[tokio::test(flavor = "multi_thread")]
async fn each_revision_is_served_from_handshake_to_exit() {
    for revision in LEGACY {
        let (_folder, mut pipe) = hello_and_echo();
        let initialized = pipe.legacy(revision, json!({})).await;
        assert_eq!(initialized["protocolVersion"], revision);
        assert_eq!(initialized["serverInfo"]["name"], "wharf");
        for capability in ["tools", "resources", "prompts"] {
            assert_eq!(initialized["capabilities"][capability]["listChanged"], true, "{revision} {capability}");
        }
        assert_eq!(initialized["capabilities"]["resources"]["subscribe"], true);
        assert!(initialized["capabilities"]["logging"].is_object());
        let completes = initialized["capabilities"].get("completions").is_some();
        assert_eq!(completes, revision >= "2025-03-26", "completions are younger than 2024-11-05");

        assert_eq!(pipe.request("ping", json!({})).await.unwrap(), json!({}));
        let listed = pipe.request("tools/list", json!({})).await.unwrap();
        let mut tools = names(&listed, "tools");
        tools.sort();
        assert_eq!(tools, ["echo_echo", "hello_greet"]);
        let greeted = pipe.call("hello_greet", json!({ "name": "Ada" })).await;
        assert_eq!(text(&greeted), "Hello, Ada!");
        assert!(!is_error(&greeted));
        for (method, list) in [
            ("prompts/list", "prompts"),
            ("resources/list", "resources"),
            ("resources/templates/list", "resourceTemplates"),
        ] {
            assert_eq!(pipe.request(method, json!({})).await.unwrap()[list], json!([]), "{revision} {method}");
        }
        let ended = pipe.close().await;
        assert!(ended.status.success(), "{revision}: {}", ended.log);
        assert_eq!(ended.rest, Vec::<e2e::Value>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revision_that_is_not_legacy_becomes_the_newest_legacy_one() {
    for offered in ["2026-07-28", "2031-01-01", "2024-10-07", "1", "", "v999.0.0"] {
        let (_folder, mut pipe) = hello_and_echo();
        let initialized = pipe.legacy(offered, json!({})).await;
        assert_eq!(initialized["protocolVersion"], "2025-11-25", "offered {offered:?}");
        assert_eq!(names(&pipe.request("tools/list", json!({})).await.unwrap(), "tools").len(), 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_have_the_codes_of_their_revision() {
    for revision in LEGACY {
        let (_folder, mut pipe) = hello_and_echo();
        pipe.legacy(revision, json!({})).await;
        for (method, params, code) in [
            ("no/such", json!({}), -32601),
            ("server/discover", json!({}), -32601),
            ("subscriptions/listen", json!({ "notifications": {} }), -32601),
            ("TOOLS/LIST", json!({}), -32601),
            ("", json!({}), -32601),
            ("tools/call", json!({ "name": "no_such", "arguments": {} }), -32602),
            ("tools/call", json!({ "name": "greet", "arguments": { "name": "x" } }), -32602),
            ("tools/call", json!({}), -32602),
            ("tools/call", json!({ "name": 7 }), -32602),
            ("tools/list", json!({ "cursor": "no such" }), -32602),
            ("tools/list", json!({ "cursor": "" }), -32602),
            ("tools/list", json!({ "cursor": 7 }), -32602),
            ("prompts/list", json!({ "cursor": "no such" }), -32602),
            ("resources/list", json!({ "cursor": "no such" }), -32602),
            ("resources/templates/list", json!({ "cursor": "no such" }), -32602),
            ("prompts/get", json!({ "name": "no such" }), -32602),
            ("resources/read", json!({ "uri": "note:///none" }), -32002),
            ("resources/read", json!({}), -32602),
            ("resources/subscribe", json!({ "uri": "note:///none" }), -32002),
            ("logging/setLevel", json!({ "level": "loud" }), -32602),
            ("logging/setLevel", json!({}), -32602),
            ("completion/complete", json!({}), -32602),
            (
                "completion/complete",
                json!({ "ref": { "type": "ref/prompt", "name": "none" }, "argument": { "name": "a", "value": "" } }),
                -32602,
            ),
            ("initialize", json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": {} }), -32600),
        ] {
            let error = pipe.request(method, params.clone()).await.expect_err(method);
            assert_eq!(error["code"], code, "{revision} {method} {params}: {error}");
        }
        for level in ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"] {
            assert_eq!(pipe.request("logging/setLevel", json!({ "level": level })).await.unwrap(), json!({}));
        }
        assert_eq!(pipe.request("resources/unsubscribe", json!({ "uri": "note:///none" })).await.unwrap(), json!({}));
        let read = pipe.request("resources/read", json!({ "uri": "note:///none" })).await.unwrap_err();
        assert_eq!(read["data"]["uri"], "note:///none");
        assert_eq!(text(&pipe.call("echo_echo", json!({ "message": revision })).await), revision);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_arguments_are_a_result_that_helps_the_model() {
    let (_folder, mut pipe) = hello_and_echo();
    pipe.legacy("2025-11-25", json!({})).await;
    for (arguments, named) in [
        (json!({}), "name"),
        (json!({ "name": 7 }), "name"),
        (json!({ "name": null }), "name"),
        (json!({ "nam": "Ada" }), "name"),
    ] {
        let result = pipe.call("hello_greet", arguments.clone()).await;
        assert!(is_error(&result), "{arguments}: {result}");
        assert!(text(&result).contains(named), "{arguments}: {result}");
    }
    let result = pipe.request("tools/call", json!({ "name": "hello_greet" })).await.unwrap();
    assert!(is_error(&result), "without arguments: {result}");
    for arguments in [json!("Ada"), json!(["Ada"]), json!(7)] {
        // Arguments that are not an object: a protocol error and a tool error are both acceptable.
        let answer = pipe.request("tools/call", json!({ "name": "hello_greet", "arguments": arguments })).await;
        assert!(answer.as_ref().map_or_else(|error| error["code"] == -32602, is_error), "{arguments}: {answer:?}");
    }
    assert_eq!(text(&pipe.call("hello_greet", json!({ "name": "" })).await), "Hello, !");
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_come_back_as_they_went() {
    let (_folder, mut pipe) = hello_and_echo();
    pipe.legacy("2025-06-18", json!({})).await;
    for message in [
        "",
        "\u{0}\u{1}\u{1f}\u{7f}",
        "a\nb\r\nc\u{2028}d\u{2029}",
        "\"\\/\u{8}",
        "grüße 👩‍👩‍👧 \u{10ffff}",
        &"x".repeat(1 << 20),
    ] {
        let result = pipe.call("echo_echo", json!({ "message": message })).await;
        assert_eq!(text(&result), message);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_are_echoed_with_their_type() {
    let (_folder, mut pipe) = hello_and_echo();
    pipe.legacy("2025-11-25", json!({})).await;
    let ids = [
        json!(0),
        json!(-7),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(""),
        json!("1"),
        json!("01"),
        json!(" "),
        json!("grüße\n\"\\"),
        json!("x".repeat(4096)),
    ];
    // All at once, so that 1 and "1" are under way together.
    for id in ids.iter().chain(&[json!(1)]) {
        let params = json!({ "name": "echo_echo", "arguments": { "message": id.to_string() } });
        pipe.send(json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })).await;
    }
    for id in ids.iter().chain(&[json!(1)]) {
        assert_eq!(text(&pipe.answer(id).await.unwrap()), id.to_string());
    }
    for id in ["1.5", "null", "true", "{}", "[]", "1e0", "\"\\ud800\""] {
        pipe.send_raw(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n").as_bytes()).await;
        let refused = pipe.recv().await;
        let code = refused["error"]["code"].as_i64().unwrap();
        assert!(code == -32600 || code == -32700, "{id}: {refused}");
        assert!(refused.get("id").is_none(), "{id}: {refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn before_the_handshake_only_ping_is_answered_with_a_result() {
    let (_folder, mut pipe) = hello_and_echo();
    assert_eq!(pipe.request("ping", json!({})).await.unwrap(), json!({}));
    for (method, params, codes) in [
        ("tools/list", json!({}), [-32600, -32602]),
        ("tools/call", json!({ "name": "hello_greet", "arguments": { "name": "x" } }), [-32600, -32602]),
        ("no/such", json!({}), [-32600, -32602]),
        ("server/discover", json!({}), [-32602, -32602]),
        ("subscriptions/listen", json!({ "notifications": {} }), [-32602, -32602]),
        ("initialize", json!({}), [-32602, -32602]),
        ("initialize", json!({ "protocolVersion": 7, "capabilities": {}, "clientInfo": {} }), [-32602, -32602]),
    ] {
        let error = pipe.request(method, params).await.expect_err(method);
        assert!(codes.iter().any(|code| error["code"] == *code), "{method}: {error}");
    }
    // Invalid notifications and unexpected responses are not answered.
    pipe.notify("notifications/initialized", json!({})).await;
    pipe.notify("notifications/cancelled", json!({ "requestId": 99 })).await;
    pipe.notify("notifications/no/such", json!({})).await;
    pipe.send(json!({ "jsonrpc": "2.0", "id": 99, "result": {} })).await;
    assert_eq!(pipe.legacy("2025-03-26", json!({})).await["protocolVersion"], "2025-03-26");
    assert_eq!(text(&pipe.call("hello_greet", json!({ "name": "Ada" })).await), "Hello, Ada!");
    assert_eq!(pipe.close().await.rest, Vec::<e2e::Value>::new());
}

/// LIFE-07: a client may forget `notifications/initialized`.
#[tokio::test(flavor = "multi_thread")]
async fn a_missing_initialized_is_tolerated() {
    let (_folder, mut pipe) = hello_and_echo();
    let params =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } });
    pipe.request("initialize", params).await.unwrap();
    assert_eq!(text(&pipe.call("hello_greet", json!({ "name": "Ada" })).await), "Hello, Ada!");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_come_in_pages() {
    let folder = Folder::new();
    folder.plugin("hello");
    folder.plugin("echo");
    folder.config(
        "[limits]\npage_items = 1\n[plugins.hello]\npath = '../../plugins/hello.wasm'\n\
         [plugins.echo]\npath = '../../plugins/echo.wasm'\n",
    );
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy("2025-06-18", json!({})).await;
    let first = pipe.request("tools/list", json!({})).await.unwrap();
    assert_eq!(names(&first, "tools"), ["hello_greet"], "in the order of the file");
    let cursor = first["nextCursor"].as_str().unwrap();
    assert!(!cursor.is_empty());
    let second = pipe.request("tools/list", json!({ "cursor": cursor })).await.unwrap();
    assert_eq!(names(&second, "tools"), ["echo_echo"]);
    assert!(second.get("nextCursor").is_none());
    let modern = pipe.modern("tools/list", json!({ "cursor": cursor }), json!({})).await.unwrap();
    assert_eq!(names(&modern, "tools"), ["echo_echo"]);
    assert_eq!(pipe.request("prompts/list", json!({ "cursor": cursor })).await.unwrap_err()["code"], -32602);
}
