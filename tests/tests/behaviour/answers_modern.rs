//! Common defects of servers of the modern revision: the contents of answers, questions and their sealed state, errors and limits.

use e2e::{
    Folder, LEGACY, MODERN, Pipe, Server, Value, given, is_error, json, modern_params, names, pipe::outcome, plugin,
    text,
};

const VERSION: (&str, &str) = ("MCP-Protocol-Version", MODERN);

fn able() -> Value {
    json!({ "elicitation": { "form": {}, "url": {} } })
}

fn accept(value: Value) -> Value {
    json!({ "action": "accept", "content": value })
}

/// `showcase` without a prefix, which may ask, and a plugin `g` with the config of the test.
fn folder(more: &str, g: &Value) -> Folder {
    let folder = Folder::new();
    folder.config(&format!(
        "{more}\n[plugins.show]\npath = {:?}\nprefix = \"\"\n[plugins.show.grants]\nask = [\"elicitation\"]\n{}",
        plugin("showcase"),
        given("g", g, "")
    ));
    folder
}

async fn started(more: &str, g: &Value) -> (Folder, Server) {
    let folder = folder(more, g);
    let server = Server::start(&folder, &[]).await;
    (folder, server)
}

/// A call of `g_t` over a pipe, with the raw text of its parameters.
async fn raw_call(pipe: &mut Pipe, id: &str, params: &str) -> Result<Value, Value> {
    let meta = modern_params(json!({}), able())["_meta"].to_string();
    let line = format!(
        r#"{{"jsonrpc":"2.0","id":"{id}","method":"tools/call","params":{{"name":"g_t",{params},"_meta":{meta}}}}}"#
    );
    pipe.send_raw(format!("{line}\n").as_bytes()).await;
    pipe.answer(&json!(id)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn sealed_state_survives_another_way_of_writing_and_no_other_change() {
    let folder = folder("", &json!({}));
    let mut pipe = Pipe::start(&folder, &["run"]);
    let said = r#""ask":[["a"]],"state":"s","n":100,"o":{"p":1,"q":[1,2.5]},"t":"gr\u00fc\u00dfe/""#;
    let first = raw_call(&mut pipe, "first", &format!(r#""arguments":{{{said}}}"#)).await.unwrap();
    let state = first["requestState"].to_string();
    let answered = r#""inputResponses":{"a":{"action":"accept","content":{"v":"x"}}}"#;
    for (round, (arguments, fits)) in [
        (said, true),
        (r#""t":"grüße\/", "o":{"q":[1.0,2.50],"p":1e0}, "n":1e2, "state":"s", "ask":[["a"]]"#, true),
        (r#""ask":[["a"]],"state":"s","n":101,"o":{"p":1,"q":[1,2.5]},"t":"grüße/""#, false),
        (r#""ask":[["a"]],"state":"s","n":"100","o":{"p":1,"q":[1,2.5]},"t":"grüße/""#, false),
        (r#""ask":[["a"]],"state":"s","n":100,"o":{"p":1,"q":[2.5,1]},"t":"grüße/""#, false),
        (r#""ask":[["a"]],"state":"s","n":100,"o":{"p":1,"q":[1,2.5]},"t":"grüße/","more":1"#, false),
        (r#""ask":[["a"]],"state":"s","n":100,"o":{"p":1,"q":[1,2.5]}"#, false),
        (r#""ask":[["a"]],"state":"s","o":{"n":100,"p":1,"q":[1,2.5]},"t":"grüße/""#, false),
    ]
    .into_iter()
    .enumerate()
    {
        let params = format!(r#""arguments":{{{arguments}}},{answered},"requestState":{state}"#);
        let outcome = raw_call(&mut pipe, &format!("r{round}"), &params).await;
        match outcome {
            Ok(result) => assert!(fits && text(&result) == "a", "{arguments}: {result}"),
            Err(error) => assert!(!fits && error["code"] == -32602, "{arguments}: {error}"),
        }
    }
    // Values that are not arguments do not count either.
    let mut params = json!({ "name": "g_t", "arguments": { "ask": [["a"]], "state": "s" } });
    let first = pipe.modern("tools/call", params.clone(), able()).await.unwrap();
    params["requestState"] = first["requestState"].clone();
    params["inputResponses"] = json!({ "a": accept(json!({ "v": "x" })) });
    params["_meta"] =
        json!({ "progressToken": 9, "io.modelcontextprotocol/clientInfo": { "name": "x", "version": "2" } });
    assert_eq!(text(&pipe.modern("tools/call", params, able()).await.unwrap()), "a");
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_with_one_key_finish_each_others_rounds() {
    let (ours, other) = ("0f1e2d3c4b5a6978".repeat(4), "f0e1d2c3b4a59687".repeat(4));
    let keyed = "[protocol]\nstate_keys = [{ env = \"WHARF_STATE_KEY\" }]";
    let key = |value| [("WHARF_STATE_KEY", value)];
    let folder = folder(keyed, &json!({}));
    let one = Server::start_with(&folder, &[], &key(ours.as_str())).await;
    let two = Server::start_with(&folder, &[], &key(ours.as_str())).await;
    let stranger = Server::start_with(&folder, &[], &key(other.as_str())).await;
    let (_unkeyed, random) = started("", &json!({})).await;
    let mut params = json!({ "name": "g_t", "arguments": { "ask": [["a"], ["b"]], "state": "s" } });
    let mut next = one.modern("tools/call", params.clone(), able()).await.unwrap();
    for (server, key) in [(&two, "a"), (&one, "b")] {
        params["requestState"] = next["requestState"].clone();
        params["inputResponses"] = json!({ key: accept(json!({ "v": "x" })) });
        for wrong in [&stranger, &random] {
            assert_eq!(wrong.modern("tools/call", params.clone(), able()).await.unwrap_err()["code"], -32602);
        }
        next = server.modern("tools/call", params.clone(), able()).await.unwrap();
    }
    assert_eq!(text(&next), "a b");
    // An invalid key is reported at the start.
    for value in ["", "short", &format!("{}g", &ours[1..])] {
        let ended = folder.run(&["serve", "--listen", "127.0.0.1:0"], &key(value)).await;
        let said = e2e::folder::stderr(&ended);
        assert!(ended.status.code() == Some(2) && said.contains("WHARF_STATE_KEY"), "{value:?}: {said}");
        assert!(value.is_empty() || !said.contains(value), "the key is not told: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_be_cached_says_for_how_long_and_questions_do_not() {
    let (_folder, server) = started("", &json!({})).await;
    let cached = |result: &Value| (result.get("ttlMs").cloned(), result.get("cacheScope").cloned());
    for (method, params) in [
        ("server/discover", json!({})),
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({ "uri": "show:///fixed" })),
        ("resources/read", json!({ "uri": "show:///items/7" })),
    ] {
        let result = server.modern(method, params, json!({})).await.unwrap();
        assert_eq!(cached(&result), (Some(json!(0)), Some(json!("private"))), "{method}: {result}");
    }
    let completion =
        json!({ "ref": { "type": "ref/prompt", "name": "review" }, "argument": { "name": "language", "value": "" } });
    for (method, params) in [
        ("tools/call", json!({ "name": "sum", "arguments": { "n": 3 } })),
        ("prompts/get", json!({ "name": "conversation" })),
        ("completion/complete", completion),
        ("tools/call", json!({ "name": "purge" })),
        ("prompts/get", json!({ "name": "essay" })),
        ("resources/read", json!({ "uri": "show:///secret" })),
    ] {
        let result = server.modern(method, params, able()).await.unwrap();
        assert_eq!(cached(&result), (None, None), "{method}: {result}");
    }
    let answers = json!({ "sure": accept(json!({ "really": true })) });
    let read = json!({ "uri": "show:///secret", "inputResponses": answers });
    let read = server.modern("resources/read", read, able()).await.unwrap();
    assert_eq!(cached(&read), (Some(json!(0)), Some(json!("private"))), "an answer given to one person: {read}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_page_of_a_list_may_be_cached() {
    let (_folder, server) = started("[limits]\npage_items = 1", &json!({})).await;
    for (method, list) in [
        ("tools/list", "tools"),
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
        ("server/discover", ""),
    ] {
        let (mut params, mut pages) = (json!({}), 0);
        loop {
            let page = server.modern(method, params.clone(), json!({})).await.unwrap();
            assert_eq!((&page["ttlMs"], &page["cacheScope"]), (&json!(0), &json!("private")), "{method}: {page}");
            assert!(list.is_empty() || page[list].as_array().unwrap().len() == 1, "{page}");
            pages += 1;
            match page.get("nextCursor") {
                Some(cursor) => params["cursor"] = cursor.clone(),
                None => break,
            }
        }
        assert!(pages > 1 || list.is_empty(), "{method} has {pages} pages");
    }
    let read = server.modern("resources/read", json!({ "uri": "show:///fixed" }), json!({})).await.unwrap();
    assert_eq!((&read["ttlMs"], &read["cacheScope"]), (&json!(0), &json!("private")), "contents are not lists");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_the_same_for_everyone() {
    let (_folder, server) = started("", &json!({})).await;
    let mut session = server.legacy("2025-11-25", json!({})).await;
    let mut gifted = server.legacy("2025-11-25", json!({ "roots": {}, "sampling": {}, "elicitation": {} })).await;
    gifted.answer_with(|_, _| Some(json!({ "action": "decline" })));
    for (method, list) in [("tools/list", "tools"), ("prompts/list", "prompts"), ("resources/list", "resources")] {
        let first = server.modern(method, json!({}), json!({})).await.unwrap();
        let mut params =
            json!({ "_meta": { "io.modelcontextprotocol/clientInfo": { "name": "other", "version": "9" } } });
        params["unknown"] = json!("x");
        for tool in ["announce", "purge", "every_kind"] {
            // One client's actions must not change another's view.
            let _ = server.modern("tools/call", json!({ "name": tool }), able()).await;
            gifted.call(tool, json!({})).await;
        }
        for capabilities in [json!({}), able(), json!({ "sampling": {}, "roots": {} })] {
            assert_eq!(server.modern(method, params.clone(), capabilities).await.unwrap(), first, "{method}");
        }
        for session in [&mut session, &mut gifted] {
            let legacy = session.request(method, json!({})).await.unwrap();
            assert_eq!(names(&legacy, list), names(&first, list), "{method}");
        }
    }
}

/// The harness rejects event ids in any modern stream; here they are checked explicitly.
#[tokio::test(flavor = "multi_thread")]
async fn modern_streams_have_no_event_ids() {
    let (_folder, server) = started("", &json!({})).await;
    let call = json!({ "name": "g_t", "arguments": { "steps": 3, "ms": 60 }, "_meta": { "progressToken": 1 } });
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    for (method, params) in [("tools/call", call), ("subscriptions/listen", filter)] {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": modern_params(params, json!({})) });
        let mut headers = vec![VERSION, ("Mcp-Method", method), ("Last-Event-ID", "1"), ("Mcp-Session-Id", "none")];
        if method == "tools/call" {
            headers.push(("Mcp-Name", "g_t"));
        }
        let mut exchange = server.post(&headers, &body).await;
        assert_eq!((exchange.status(), exchange.is_stream()), (200, true), "{method}");
        assert_eq!(exchange.header("mcp-session-id"), None);
        let mut frames = vec![exchange.frame().await.unwrap()];
        if method == "tools/call" {
            while let Some(frame) = exchange.frame().await {
                frames.push(frame);
            }
        }
        for frame in frames {
            assert_eq!((&frame.id, frame.retry), (&None, None), "{frame:?}");
            assert!(frame.data.is_some_and(|data| data.starts_with('{')), "no priming event either");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_asked_for_as_each_era_has_it() {
    let folder = folder("", &json!({}));
    let mut pipe = Pipe::start(&folder, &["run"]);
    let call = json!({ "name": "sign_in" });
    let asked = pipe.modern("tools/call", call.clone(), able()).await.unwrap();
    let page = &asked["inputRequests"]["page"]["params"];
    assert_eq!((&page["mode"], page.get("elicitationId")), (&json!("url"), None), "{asked}");
    for forms_only in [json!({ "elicitation": {} }), json!({ "elicitation": { "form": {} } }), json!({})] {
        let error = pipe.modern("tools/call", call.clone(), forms_only.clone()).await.unwrap_err();
        assert_eq!(error["code"], -32021, "{forms_only}: never -32042");
        assert_eq!(error["data"]["requiredCapabilities"], json!({ "elicitation": { "url": {} } }));
    }
    for (capabilities, can) in [(able(), true), (json!({ "elicitation": {} }), false)] {
        let mut legacy = Pipe::start(&folder, &["run"]);
        legacy.legacy("2025-11-25", capabilities).await;
        legacy.answer_with(|_, _| Some(json!({ "action": "accept" })));
        let result = legacy.call("sign_in", json!({})).await;
        assert_eq!(is_error(&result), !can, "{result}");
        assert_eq!(legacy.handled.len(), usize::from(can));
        let ids = legacy.handled.iter().map(|request| request["params"]["elicitationId"].as_str());
        assert!(ids.clone().all(|id| id.is_some_and(|id| !id.is_empty())), "{:?}", legacy.handled);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn structured_content_of_any_kind_is_kept_from_older_clients() {
    for (schema, good, bad) in [
        (json!({ "type": "array", "items": { "type": "integer" } }), json!([1, 2]), json!(["x"])),
        (json!({ "type": "integer" }), json!(7), json!("seven")),
        (json!({ "enum": ["a", false] }), json!(false), json!({ "a": 1 })),
    ] {
        let (folder, server) = started("", &json!({ "output": schema.to_string() })).await;
        let call = |answer: &Value| json!({ "name": "g_t", "arguments": { "answer": answer } });
        let listed = server.modern("tools/list", json!({}), json!({})).await.unwrap();
        let of =
            |listed: &Value| listed["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "g_t").cloned();
        assert_eq!(of(&listed).unwrap()["outputSchema"], schema);
        let result = server.modern("tools/call", call(&good), json!({})).await.unwrap();
        assert_eq!(result["structuredContent"], good);
        assert_eq!(text(&result), good.to_string());
        let wrong = server.modern("tools/call", call(&bad), json!({})).await.unwrap();
        assert!(is_error(&wrong) && wrong.get("structuredContent").is_none(), "{bad} breaks {schema}: {wrong}");
        for revision in LEGACY {
            let mut pipe = Pipe::start(&folder, &["run"]);
            pipe.legacy(revision, json!({})).await;
            let listed = pipe.request("tools/list", json!({})).await.unwrap();
            assert_eq!(of(&listed).unwrap().get("outputSchema"), None, "{revision}");
            let result = pipe.request("tools/call", call(&good)).await.unwrap();
            assert_eq!(
                (text(&result), result.get("structuredContent")),
                (good.to_string().as_str(), None),
                "{revision}"
            );
            assert!(!is_error(&result));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn plugins_cannot_borrow_reserved_codes() {
    let (folder, server) = started("", &json!({})).await;
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy("2025-11-25", json!({})).await;
    // Codes in the specification are reserved for it; the rest of the range may not be used.
    for code in [-32000, -32001, -32003, -32019, -32020, -32021, -32022, -32023, -32042, -32050, -32099] {
        let call = json!({ "name": "g_t", "arguments": { "refuse": code } });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": modern_params(call.clone(), json!({})) });
        let headers = [VERSION, ("Mcp-Method", "tools/call"), ("Mcp-Name", "g_t")];
        let mut exchange = server.post(&headers, &body).await;
        let modern = outcome(serde_json_of(&exchange.text().await));
        for outcome in [modern, pipe.request("tools/call", call).await] {
            let told = outcome.as_ref().err().map(|error| error["code"].as_i64().unwrap());
            let reserved = told.is_some_and(|told| (-32099..=-32000).contains(&told));
            assert!(!reserved, "{code} of a plugin came out as {told:?}");
        }
    }
    // Codes outside the reserved range pass.
    for code in [-32602, -32603, -31999, 1, 42] {
        let call = json!({ "name": "g_t", "arguments": { "refuse": code } });
        assert_eq!(server.modern("tools/call", call, json!({})).await.unwrap_err()["code"], code);
    }
}

/// Read without the harness's validation, for answers that are wrong on purpose.
fn serde_json_of(text: &str) -> Value {
    text.parse().unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_is_refused_and_nothing_else_suffers() {
    let (_folder, server) = started("", &json!({})).await;
    let list =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": modern_params(json!({}), json!({})) });
    let good = [VERSION, ("Mcp-Method", "tools/list")];
    let (long, many) = ("x".repeat(1 << 20), "1".to_owned());
    let mut large = good.to_vec();
    large.push(("X-Long", &long));
    assert_eq!(server.post(&large, &list).await.status(), 431);
    let mut numerous = good.to_vec();
    numerous.extend(std::iter::repeat_n(("X-Many", many.as_str()), 1000));
    assert_eq!(server.post(&numerous, &list).await.status(), 431);
    let name = "n".repeat(100_000);
    for params in [
        json!({ "name": "purge", "requestState": "v1.".to_owned() + &"A".repeat(4 << 20) }),
        json!({ "name": "purge", "requestState": "v1.".to_owned() + &"A".repeat(100_000) }),
        json!({ "name": name }),
    ] {
        let mut exchange = server.open_modern(json!(1), "tools/call", params, able()).await;
        let status = exchange.status();
        assert!([200, 431].contains(&status), "{status}");
        if status == 200 {
            let error = exchange.json().await;
            assert_eq!(error["error"]["code"], -32602);
            assert!(error.to_string().len() < 2000, "what was sent is not sent back");
        }
    }
    let filter: Vec<String> = (0..100_000).map(|at| format!("note:///{at}")).collect();
    let filter = json!({ "notifications": { "resourceSubscriptions": filter } });
    let mut listen = server.open_modern(json!(1), "subscriptions/listen", filter, json!({})).await;
    assert!(!listen.is_stream(), "a subscription to a hundred thousand resources");
    assert_eq!(listen.json().await["error"]["code"], -32602);
    assert_eq!(server.probe(&good, &list).await.0, 200);
}
