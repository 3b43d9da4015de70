//! Common defects of servers of the modern revision: headers that mirror the body, the schemas that require them, and schemas with
//! references to other documents.

use e2e::{Folder, LEGACY, MODERN, Pipe, Server, Value, given, is_error, json, modern_params, names, plugin, text};

const VERSION: (&str, &str) = ("MCP-Protocol-Version", MODERN);

async fn started(g: &Value) -> (Folder, Server) {
    let folder = Folder::new();
    folder.config(&format!("[plugins.show]\npath = {:?}\nprefix = \"\"\n{}", plugin("showcase"), given("g", g, "")));
    let server = Server::start(&folder, &[]).await;
    (folder, server)
}

/// Makes a call with these headers in addition to those of every call. Returns status and error code.
async fn call(
    server: &Server,
    name: &str,
    arguments: &Value,
    capabilities: Value,
    more: &[(&str, &str)],
) -> (u16, i64, Value) {
    let params = modern_params(json!({ "name": name, "arguments": arguments }), capabilities);
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let mut headers = vec![VERSION, ("Mcp-Method", "tools/call"), ("Mcp-Name", name)];
    headers.extend(more);
    server.probe(&headers, &body).await
}

fn mirrored() -> Value {
    json!({ "type": "object", "properties": {
        "region": { "type": "string", "x-mcp-header": "Region" },
        "count": { "type": "integer", "x-mcp-header": "Count" },
        "flag": { "type": "boolean", "x-mcp-header": "Flag" },
        "inner": { "type": "object", "properties": { "deep": { "type": "string", "x-mcp-header": "Deep" } } },
        "free": { "type": "string" },
    } })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_first_is_told_first() {
    let mut schema = mirrored();
    schema["required"] = json!(["region", "count"]);
    let (_folder, server) = started(&json!({ "schema": schema.to_string(), "sampling": true })).await;
    let region = [("Mcp-Param-Region", "us")];
    let (able, bad) = (json!({ "sampling": {} }), json!({ "region": "us", "count": "many", "text": "x" }));
    let bad_count = [region[0], ("Mcp-Param-Count", "many")];
    // Unknown tool, headers, capability, arguments: each row also has the mistakes of all following rows.
    let (status, code, _) = call(&server, "none", &bad, json!({}), &[]).await;
    assert_eq!((status, code), (200, -32602), "an unknown tool");
    let (status, code, _) = call(&server, "g_t", &bad, json!({}), &bad_count[1..]).await;
    assert_eq!((status, code), (400, -32020), "a header is missing");
    let (status, code, _) = call(&server, "g_t", &json!({ "region": "us" }), json!({}), &region).await;
    assert_eq!((status, code), (400, -32021), "the client lacks something");
    let (status, code, answer) = call(&server, "g_t", &json!({ "region": "us" }), able.clone(), &region).await;
    assert_eq!((status, code), (200, 0), "{answer}");
    assert!(is_error(&answer["result"]) && text(&answer["result"]).contains("count"), "{answer}");
    let good = json!({ "region": "us", "count": 3, "text": "ran" });
    let headers = [region[0], ("Mcp-Param-Count", "3")];
    assert_eq!(text(&call(&server, "g_t", &good, able, &headers).await.2["result"]), "ran");
}

#[tokio::test(flavor = "multi_thread")]
async fn annotations_that_make_tools_vanish_are_refused_at_load() {
    let property = |annotated: Value| json!({ "type": "object", "properties": { "a": annotated } });
    let header = |name: Value, kind: &str| json!({ "type": kind, "x-mcp-header": name });
    let a = || header(json!("A"), "string");
    let bad = [
        ("number", property(header(json!("A"), "number"))),
        ("object", property(header(json!("A"), "object"))),
        ("array", property(header(json!("A"), "array"))),
        ("untyped", property(json!({ "x-mcp-header": "A" }))),
        ("empty", property(header(json!(""), "string"))),
        ("blank", property(header(json!("A B"), "string"))),
        ("colon", property(header(json!("A:"), "string"))),
        ("line", property(header(json!("A\r\nX: y"), "string"))),
        ("letters", property(header(json!("Ä"), "string"))),
        ("seven", property(header(json!(7), "string"))),
        (
            "twice",
            json!({ "type": "object", "properties": { "a": header(json!("Same"), "string"), "b": header(json!("sAME"), "string") } }),
        ),
        (
            "deep_twice",
            json!({ "type": "object", "properties": { "a": a(), "b": { "type": "object", "properties": { "c": a() } } } }),
        ),
        ("items", property(json!({ "type": "array", "items": a() }))),
        ("items_deep", property(json!({ "type": "array", "items": { "type": "object", "properties": { "c": a() } } }))),
        ("any_of", json!({ "type": "object", "anyOf": [{ "properties": { "a": a() } }] })),
        ("all_of", json!({ "type": "object", "allOf": [{ "properties": { "a": a() } }] })),
        ("one_of", property(json!({ "oneOf": [a(), { "type": "null" }] }))),
        ("then", json!({ "type": "object", "if": { "required": ["a"] }, "then": { "properties": { "a": a() } } })),
        ("defs", json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/h" } }, "$defs": { "h": a() } })),
        ("pattern", json!({ "type": "object", "patternProperties": { "^a": a() } })),
        ("rest", json!({ "type": "object", "additionalProperties": a() })),
        ("root", json!({ "type": "object", "x-mcp-header": "A" })),
    ];
    // Values that only look like an annotation, and a real one.
    let good = [
        ("integer", property(header(json!("A"), "integer"))),
        ("boolean", property(header(json!("!#$%&'*+-.^_`|~09"), "boolean"))),
        ("nested", property(json!({ "type": "object", "properties": { "c": a() } }))),
        ("named_so", json!({ "type": "object", "properties": { "x-mcp-header": { "type": "number" } } })),
        (
            "data",
            property(json!({ "type": "object", "default": { "x-mcp-header": 7 }, "enum": [{ "x-mcp-header": "" }] })),
        ),
    ];
    let folder = Folder::new();
    let plugins = bad
        .iter()
        .chain(&good)
        .map(|(id, schema)| given(id, &json!({ "schema": schema.to_string(), "alone": true }), ""));
    let mut config: String = plugins.collect();
    config.push_str(&format!("[plugins.zz]\npath = {:?}\n", plugin("echo")));
    folder.config(&config);
    let mut pipe = Pipe::start(&folder, &["run"]);
    let listed = names(&pipe.modern("tools/list", json!({}), json!({})).await.unwrap(), "tools");
    let mut expected: Vec<String> = good.iter().map(|(id, _)| format!("{id}_t")).collect();
    expected.push("zz_echo".into());
    assert_eq!(listed, expected);
    for (id, schema) in bad {
        let line = pipe.wait_for_log(&format!("plugin=\"{id}\"")).await;
        assert!(line.contains("does not load") && line.contains("x-mcp-header"), "{id} {schema}: {line}");
    }
}

/// Arguments, the headers of a call with them, and whether they match.
type Row = (Value, &'static [(&'static str, &'static str)], bool);

#[tokio::test(flavor = "multi_thread")]
async fn mirrored_arguments_are_compared_as_values() {
    let (folder, server) = started(&json!({ "schema": mirrored().to_string() })).await;
    const REGION: &str = "Mcp-Param-Region";
    let rows: &[Row] = &[
        (json!({}), &[], true),
        (json!({ "free": "x" }), &[("Mcp-Param-Free", "y")], true),
        (json!({ "region": "us" }), &[(REGION, "us")], true),
        (json!({ "region": "us" }), &[("mcp-PARAM-region", " \tus  ")], true),
        (json!({ "region": "us" }), &[], false),
        (json!({ "region": "us" }), &[(REGION, "US")], false),
        (json!({ "region": "us" }), &[(REGION, "us"), (REGION, "us")], false),
        (json!({ "region": "us" }), &[(REGION, "us,us")], false),
        (json!({ "region": "us" }), &[(REGION, "=?base64?dXM=?=")], true),
        (json!({ "region": "us" }), &[(REGION, "=?base64?dXM?=")], false),
        (json!({ "region": "us" }), &[(REGION, "=?base64?dX M=?=")], false),
        (json!({ "region": "us" }), &[(REGION, "=?BASE64?dXM=?=")], false),
        (json!({ "region": "us" }), &[(REGION, "=?base64?dXM=")], false),
        (json!({ "region": "=?base64?dXM=" }), &[(REGION, "=?base64?dXM=")], true),
        (json!({ "region": "=?base64?x?=" }), &[(REGION, "=?base64?PT9iYXNlNjQ/eD89?=")], true),
        (json!({ "region": "=?base64?x?=" }), &[(REGION, "=?base64?x?=")], false),
        (json!({ "region": "grüße" }), &[(REGION, "=?base64?Z3LDvMOfZQ==?=")], true),
        (json!({ "region": "grüße" }), &[(REGION, "grüße")], false),
        (json!({ "region": "gr\u{fffd}" }), &[(REGION, "=?base64?Z3L8?=")], false),
        (json!({ "region": "" }), &[(REGION, "")], true),
        (json!({ "region": "" }), &[], false),
        (json!({ "region": "a\nb" }), &[(REGION, "=?base64?YQpi?=")], true),
        (json!({}), &[(REGION, "us")], false),
        (json!({}), &[(REGION, "")], false),
        (json!({ "count": 42 }), &[("Mcp-Param-Count", "42")], true),
        (json!({ "count": 42 }), &[("Mcp-Param-Count", "42.0")], true),
        (json!({ "count": -7 }), &[("Mcp-Param-Count", "-7")], true),
        (json!({ "count": 9_007_199_254_740_991_u64 }), &[("Mcp-Param-Count", "9007199254740991")], true),
        (json!({ "count": 42 }), &[("Mcp-Param-Count", "43")], false),
        (json!({ "count": 42 }), &[("Mcp-Param-Count", "forty-two")], false),
        (json!({ "count": 42 }), &[("Mcp-Param-Count", "")], false),
        (json!({ "count": 42 }), &[], false),
        (json!({ "count": 0 }), &[], false),
        (json!({ "flag": true }), &[("Mcp-Param-Flag", "true")], true),
        (json!({ "flag": true }), &[("Mcp-Param-Flag", "True")], false),
        (json!({ "flag": true }), &[("Mcp-Param-Flag", "1")], false),
        (json!({ "flag": false }), &[("Mcp-Param-Flag", "false")], true),
        (json!({ "flag": false }), &[], false),
        (json!({ "inner": { "deep": "x" } }), &[("Mcp-Param-Deep", "x")], true),
        (json!({ "inner": { "deep": "x" } }), &[], false),
        (json!({ "inner": {} }), &[("Mcp-Param-Deep", "x")], false),
        (json!({ "inner": {} }), &[], true),
    ];
    let mut wrong = Vec::new();
    for (arguments, headers, fits) in rows {
        let (status, code, answer) = call(&server, "g_t", arguments, json!({}), headers).await;
        let good = if *fits { (status, code) == (200, 0) } else { (status, code) == (400, -32020) };
        if !good {
            wrong.push(format!("{arguments} {headers:?}: {status} {answer}"));
        }
    }
    // Null is treated as absent.
    for (headers, expected) in [(&[][..], (200, 0)), (&[(REGION, "null")], (400, -32020))] {
        let (status, code, answer) = call(&server, "g_t", &json!({ "region": null }), json!({}), headers).await;
        if (status, code) != expected || (status == 200 && is_error(&answer["result"])) {
            wrong.push(format!("null {headers:?}: {status} {answer}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Transports without headers do not require them.
    let arguments = json!({ "region": "us", "count": 3, "text": "served" });
    let params = json!({ "name": "g_t", "arguments": arguments });
    let mut pipe = Pipe::start(&folder, &["run"]);
    assert_eq!(text(&pipe.modern("tools/call", params, json!({})).await.unwrap()), "served");
    for revision in LEGACY {
        let mut session = server.legacy(revision, json!({})).await;
        assert_eq!(text(&session.call("g_t", arguments.clone()).await), "served", "{revision}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_name_of_a_resource_is_its_uri_letter_by_letter() {
    let (_folder, server) = started(&json!({})).await;
    for (uri, header, same) in [
        ("show:///fixed", "show:///fixed", true),
        ("show:///fixed", "SHOW:///fixed", false),
        ("show:///fixed", "show:///fixed/", false),
        ("show:///fixed", "show:///./fixed", false),
        ("show:///items/%41", "show:///items/%41", true),
        ("show:///items/%41", "show:///items/A", false),
        ("show:///items/%C3%BC", "show:///items/%c3%bc", false),
        ("show:///items/ü", "=?base64?c2hvdzovLy9pdGVtcy/DvA==?=", true),
        ("show:///items/ü", "show:///items/%C3%BC", false),
        ("show:///items/a b", "show:///items/a b", true),
    ] {
        let params = modern_params(json!({ "uri": uri }), json!({}));
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": params });
        let headers = [VERSION, ("Mcp-Method", "resources/read"), ("Mcp-Name", header)];
        let (status, code, answer) = server.probe(&headers, &body).await;
        assert_eq!((status, code == -32020), if same { (200, false) } else { (400, true) }, "{uri} {header}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_fetched_for_a_schema() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}/schema.json", listener.local_addr().unwrap());
    let open = || json!({ "type": "object" });
    let refused = [
        ("reference", json!({ "schema": { "type": "object", "properties": { "a": { "$ref": url } } } })),
        ("fragment", json!({ "schema": { "type": "object", "$ref": format!("{url}#/$defs/a") } })),
        ("dynamic", json!({ "schema": { "type": "object", "properties": { "a": { "$dynamicRef": url } } } })),
        ("dialect", json!({ "schema": { "$schema": url, "type": "object" } })),
        ("inside", json!({ "schema": { "type": "object", "$defs": { "x": { "$ref": url } } } })),
        ("output", json!({ "schema": open(), "output": { "type": "object", "$ref": url } })),
    ];
    let folder = Folder::new();
    let mut config = String::new();
    for (id, described) in &refused {
        let mut described = described.clone();
        described["alone"] = json!(true);
        config.push_str(&given(id, &described, ""));
    }
    config.push_str(&format!(
        "[plugins.hostile]\npath = {:?}\nprefix = \"\"\n[plugins.hostile.grants]\nask = [\"elicitation\"]\n",
        plugin("hostile")
    ));
    folder.config(&config);
    let mut pipe = Pipe::start(&folder, &["run"]);
    let listed = names(&pipe.modern("tools/list", json!({}), json!({})).await.unwrap(), "tools");
    for (id, _) in &refused {
        assert!(!listed.contains(&format!("{id}_t")), "{id} is served");
        let line = pipe.wait_for_log(&format!("plugin=\"{id}\"")).await;
        let says = if *id == "dialect" { "schema" } else { "leads outside" };
        assert!(line.contains("does not load") && line.contains(says), "{id}: {line}");
    }
    // The same applies to the form of a question, and to the person's answer.
    let form = json!({ "type": "object", "properties": { "v": { "$ref": url } } });
    let mut params =
        json!({ "name": "ask_odd", "arguments": { "key": "k", "message": "m", "schema": form.to_string() } });
    for answers in [json!({}), json!({ "k": { "action": "accept", "content": { "v": "x" } } })] {
        params["inputResponses"] = answers;
        if let Ok(result) = pipe.modern("tools/call", params.clone(), json!({ "elicitation": {} })).await {
            assert!(
                !result["inputRequests"].to_string().contains(&url),
                "the client is not sent there either: {result}"
            );
        }
    }
    let fetched = listener.accept();
    assert!(fetched.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock), "somebody came for the schema");
}
