//! The modern era on a pipe: independent requests, with or without a legacy session on the same pipe.

use e2e::{
    CAPABILITIES_KEY, Folder, MODERN, Pipe, SERVER_INFO_KEY, SUBSCRIPTION_KEY, VERSION_KEY, Value, hello_and_echo,
    is_error, json, names, prompt, text,
};

#[tokio::test(flavor = "multi_thread")]
async fn discover_list_and_call_need_no_handshake() {
    let (_folder, mut pipe) = hello_and_echo();
    let discovered = pipe.modern("server/discover", json!({}), json!({})).await.unwrap();
    assert_eq!(discovered["supportedVersions"], json!([MODERN]));
    assert_eq!(discovered["resultType"], "complete");
    assert!(discovered["ttlMs"].is_u64());
    assert!(discovered["cacheScope"].is_string());
    assert_eq!(discovered["_meta"][SERVER_INFO_KEY]["name"], "wharf");
    assert!(discovered.get("serverInfo").is_none());
    for capability in ["tools", "resources", "prompts"] {
        assert_eq!(discovered["capabilities"][capability]["listChanged"], true, "{capability}");
    }
    let mut listed = pipe.modern("tools/list", json!({}), json!({})).await.unwrap();
    assert!(listed["ttlMs"].is_u64() && listed["cacheScope"].is_string(), "{listed}");
    let mut tools = names(&listed, "tools");
    tools.sort();
    assert_eq!(tools, ["echo_echo", "hello_greet"]);
    for tool in listed["tools"].as_array_mut().unwrap() {
        let plugin = tool["name"].as_str().unwrap().split('_').next().unwrap().to_owned();
        assert_eq!(tool["_meta"]["dev.wharf/plugin"], plugin);
    }
    let params = json!({ "name": "hello_greet", "arguments": { "name": "Ada" } });
    let called = pipe.modern("tools/call", params, json!({})).await.unwrap();
    assert_eq!(text(&called), "Hello, Ada!");
    assert_eq!(called["resultType"], "complete");
    assert!(called.get("ttlMs").is_none(), "only lists, reads and discovery are cached");
    for method in ["prompts/list", "resources/list", "resources/templates/list"] {
        let listed = pipe.modern(method, json!({}), json!({})).await.unwrap();
        assert!(listed["ttlMs"].is_u64() && listed["cacheScope"].is_string(), "{method}: {listed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_request_says_of_itself_is_checked() {
    let (_folder, mut pipe) = hello_and_echo();
    let capable = json!({ CAPABILITIES_KEY: {} });
    for (meta, code) in [
        (json!({ VERSION_KEY: MODERN }), -32602),
        (json!({ VERSION_KEY: 7, CAPABILITIES_KEY: {} }), -32602),
        (json!({ VERSION_KEY: null, CAPABILITIES_KEY: {} }), -32602),
        (json!({ VERSION_KEY: MODERN, CAPABILITIES_KEY: [] }), -32602),
        (json!({ VERSION_KEY: MODERN, CAPABILITIES_KEY: null }), -32602),
        (json!({ VERSION_KEY: "v999.0.0", CAPABILITIES_KEY: {} }), -32022),
        (json!({ VERSION_KEY: "2031-01-01", CAPABILITIES_KEY: {} }), -32022),
        (json!({ VERSION_KEY: "2025-11-25", CAPABILITIES_KEY: {} }), -32022),
        (json!({ VERSION_KEY: "", CAPABILITIES_KEY: {} }), -32022),
        (json!({ VERSION_KEY: MODERN, CAPABILITIES_KEY: {}, "io.modelcontextprotocol/logLevel": "loud" }), -32602),
        (json!({ VERSION_KEY: MODERN, CAPABILITIES_KEY: {}, "progressToken": 1.5 }), -32602),
    ] {
        for method in ["tools/list", "tools/call"] {
            let params = json!({ "_meta": meta, "name": "hello_greet", "arguments": { "name": "x" } });
            let error = pipe.request(method, params).await.expect_err(method);
            assert_eq!(error["code"], code, "{method} {meta}: {error}");
            if code == -32022 {
                assert_eq!(error["data"], json!({ "supported": [MODERN], "requested": meta[VERSION_KEY] }));
            }
        }
    }
    // Without the claim it is not a modern request, whatever else it contains.
    let error = pipe.request("tools/list", json!({ "_meta": capable })).await.unwrap_err();
    assert!(error["code"] == -32600 || error["code"] == -32602, "{error}");
    // Undefined and optional members are accepted.
    let mut meta =
        json!({ "io.modelcontextprotocol/clientInfo": { "name": "desk", "version": "4" }, "x.example/y": [1] });
    meta[VERSION_KEY] = MODERN.into();
    meta[CAPABILITIES_KEY] = json!({ "roots": { "listChanged": true }, "extensions": {}, "unknown": 7 });
    pipe.request("server/discover", json!({ "_meta": meta, "more": true })).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_have_modern_codes() {
    let (_folder, mut pipe) = hello_and_echo();
    for (method, params, code) in [
        ("ping", json!({}), -32601),
        ("initialize", json!({ "protocolVersion": MODERN, "capabilities": {}, "clientInfo": {} }), -32601),
        ("logging/setLevel", json!({ "level": "info" }), -32601),
        ("resources/subscribe", json!({ "uri": "note:///a" }), -32601),
        ("resources/unsubscribe", json!({ "uri": "note:///a" }), -32601),
        ("tasks/list", json!({}), -32601),
        ("tasks/result", json!({ "taskId": "t" }), -32601),
        ("roots/list", json!({}), -32601),
        ("no/such", json!({}), -32601),
        ("notifications/initialized", json!({}), -32601),
        ("tools/call", json!({ "name": "no_such", "arguments": {} }), -32602),
        ("tools/call", json!({}), -32602),
        ("tools/list", json!({ "cursor": "no such" }), -32602),
        ("prompts/get", json!({ "name": "none" }), -32602),
        ("resources/read", json!({ "uri": "note:///none" }), -32602),
        ("subscriptions/listen", json!({}), -32602),
        (
            "tools/call",
            json!({ "name": "hello_greet", "arguments": { "name": "x" }, "requestState": "v1.made-up" }),
            -32602,
        ),
        ("tools/call", json!({ "name": "hello_greet", "arguments": { "name": "x" }, "inputResponses": [] }), -32602),
    ] {
        let error = pipe.modern(method, params.clone(), json!({})).await.expect_err(method);
        assert_eq!(error["code"], code, "{method} {params}: {error}");
        if method == "resources/read" {
            assert_eq!(error["data"]["uri"], params["uri"]);
        }
    }
    let params = json!({ "name": "hello_greet", "arguments": { "name": 7 } });
    let result = pipe.modern("tools/call", params, json!({})).await.unwrap();
    assert!(is_error(&result) && text(&result).contains("name"), "{result}");
}

/// On a pipe, each message alone decides the era.
#[tokio::test(flavor = "multi_thread")]
async fn both_eras_share_a_pipe() {
    let (_folder, mut pipe) = hello_and_echo();
    pipe.modern("server/discover", json!({}), json!({})).await.unwrap();
    pipe.legacy("2025-06-18", json!({})).await;
    assert!(pipe.modern("tools/list", json!({}), json!({})).await.unwrap()["resultType"].is_string());
    assert!(pipe.request("tools/list", json!({})).await.unwrap().get("resultType").is_none());
    // Under way at the same time, and answered in their own era: the harness validates each with its schema.
    let mut ids = Vec::new();
    for round in 0..50 {
        let params = json!({ "name": "echo_echo", "arguments": { "message": round.to_string() } });
        ids.push(match round % 2 {
            0 => pipe.begin("tools/call", params).await,
            _ => pipe.begin_modern("tools/call", params, json!({})).await,
        });
    }
    for (round, id) in ids.iter().enumerate() {
        let result = pipe.answer(id).await.unwrap();
        assert_eq!(text(&result), round.to_string());
        assert_eq!(result.get("resultType").is_some(), round % 2 == 1);
    }
    assert_eq!(pipe.modern("ping", json!({}), json!({})).await.unwrap_err()["code"], -32601);
    assert_eq!(pipe.request("ping", json!({})).await.unwrap(), json!({}));
    assert_eq!(pipe.request("server/discover", json!({})).await.unwrap_err()["code"], -32601);
    // The legacy session gets its own error for a missing resource, and so does the modern request.
    let params = json!({ "uri": "note:///none" });
    assert_eq!(pipe.request("resources/read", params.clone()).await.unwrap_err()["code"], -32002);
    assert_eq!(pipe.modern("resources/read", params, json!({})).await.unwrap_err()["code"], -32602);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_under_way_is_refused_in_both_eras_and_free_again_afterwards() {
    let (_folder, mut pipe) = hello_and_echo();
    pipe.legacy("2025-11-25", json!({})).await;
    let listen = json!({ "notifications": { "toolsListChanged": true } });
    let listen = e2e::modern_params(listen, json!({}));
    pipe.send(json!({ "jsonrpc": "2.0", "id": 7000, "method": "subscriptions/listen", "params": listen })).await;
    let acknowledged = pipe.notification("notifications/subscriptions/acknowledged").await;
    assert_eq!(acknowledged["params"]["_meta"][SUBSCRIPTION_KEY], 7000);
    let modern = e2e::modern_params(json!({}), json!({}));
    for params in [json!({}), modern] {
        pipe.send(json!({ "jsonrpc": "2.0", "id": 7000, "method": "tools/list", "params": params })).await;
        assert_eq!(pipe.answer(&json!(7000)).await.unwrap_err()["code"], -32600);
        // The same digits as a string are a different id.
        pipe.send(json!({ "jsonrpc": "2.0", "id": "7000", "method": "tools/list", "params": params })).await;
        pipe.answer(&json!("7000")).await.unwrap();
    }
    pipe.cancel(&json!("7000")).await;
    pipe.send(json!({ "jsonrpc": "2.0", "id": 7000, "method": "tools/list", "params": {} })).await;
    assert_eq!(pipe.answer(&json!(7000)).await.unwrap_err()["code"], -32600, "another id was cancelled");
    pipe.cancel(&json!(7000)).await;
    let mut tries = 0;
    loop {
        pipe.send(json!({ "jsonrpc": "2.0", "id": 7000, "method": "ping", "params": {} })).await;
        match pipe.answer(&json!(7000)).await {
            Ok(result) => break assert_eq!(result, json!({})),
            Err(error) => assert_eq!(error["code"], -32600),
        }
        tries += 1;
        assert!(tries < 1000, "a cancelled id stays taken");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_is_acknowledged_and_ends_by_cancellation_in_silence() {
    let (_folder, mut pipe) = hello_and_echo();
    for id in [json!(31), json!("31"), json!("")] {
        let filter = json!({
            "toolsListChanged": true, "promptsListChanged": false, "resourceSubscriptions": ["note:///a"], "unknown": true,
        });
        let params = e2e::modern_params(json!({ "notifications": filter }), json!({}));
        pipe.send(json!({ "jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": params })).await;
        let first = pipe.recv().await;
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
        assert_eq!(first["params"]["_meta"][SUBSCRIPTION_KEY], id);
        assert_eq!(first["params"]["notifications"]["toolsListChanged"], true);
        assert!(first["params"]["notifications"].get("promptsListChanged").is_none_or(|flag| flag == false));
        assert!(first["params"]["notifications"].get("unknown").is_none());
        pipe.cancel(&id).await;
    }
    let empty = pipe.begin_modern("subscriptions/listen", json!({ "notifications": {} }), json!({})).await;
    let acknowledged = pipe.notification("notifications/subscriptions/acknowledged").await;
    assert_eq!(acknowledged["params"]["notifications"], json!({}));
    pipe.cancel(&empty).await;
    pipe.modern("server/discover", json!({}), json!({})).await.unwrap();
    let ended = pipe.close().await;
    assert!(ended.rest.is_empty(), "cancelled subscriptions say nothing more: {:?}", ended.rest);
    assert!(ended.status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_that_wharf_ends_has_a_result_and_then_a_cancellation() {
    for terminate in [false, true] {
        let (_folder, mut pipe) = hello_and_echo();
        let id = pipe
            .begin_modern("subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }), json!({}))
            .await;
        pipe.notification("notifications/subscriptions/acknowledged").await;
        let ended = if terminate { pipe.terminate().await } else { pipe.close().await };
        assert!(ended.status.success(), "{}", ended.log);
        assert!(ended.took < prompt(), "took {:?}", ended.took);
        let rest: Vec<(&Value, &Value)> = ended.rest.iter().map(|one| (&one["id"], &one["method"])).collect();
        assert_eq!(
            rest,
            [(&id, &Value::Null), (&Value::Null, &json!("notifications/cancelled"))],
            "terminated: {terminate}"
        );
        assert_eq!(ended.rest[0]["result"]["_meta"][SUBSCRIPTION_KEY], id);
        assert_eq!(ended.rest[1]["params"]["requestId"], id);
    }
}

/// Step 13: parameters match the method's type. An array is not an object.
#[tokio::test(flavor = "multi_thread")]
async fn an_array_does_not_pass_for_an_object() {
    let (_folder, mut pipe) = hello_and_echo();
    let mut wrong = Vec::new();
    let reference = json!({ "type": "ref/prompt", "name": "none" });
    for (method, params) in [
        ("subscriptions/listen", json!({ "notifications": [] })),
        ("subscriptions/listen", json!({ "notifications": [true] })),
        ("completion/complete", json!({ "ref": reference, "argument": { "name": "a", "value": "" }, "context": [] })),
        ("completion/complete", json!({ "ref": reference, "argument": ["a", ""] })),
    ] {
        pipe.begin_modern(method, params.clone(), json!({})).await;
        let answer = pipe.recv().await;
        let refused = answer["error"]["code"] == -32602;
        // The prompt is looked up only after the parameters are accepted.
        if !refused || answer["error"]["message"].as_str().unwrap().contains("unknown prompt") {
            wrong.push(format!("{method} {params}: {answer}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The TypeScript client starts a second process of the same command as a probe.
#[tokio::test(flavor = "multi_thread")]
async fn two_processes_do_not_disturb_each_other() {
    let folder = Folder::new();
    folder.plugin("hello");
    let mut one = Pipe::start(&folder, &["run", "plugins/hello.wasm"]);
    let mut other = Pipe::start(&folder, &["run", "plugins/hello.wasm"]);
    one.modern("server/discover", json!({}), json!({})).await.unwrap();
    other.legacy("2025-11-25", json!({})).await;
    assert!(one.close().await.status.success());
    assert_eq!(text(&other.call("hello_greet", json!({ "name": "Ada" })).await), "Hello, Ada!");
}
