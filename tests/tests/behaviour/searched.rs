//! The tool search: three tools that find the others, call them, and read resources.

use e2e::{Folder, LEGACY, Pipe, Server, Value, is_error, json, names, text};

const OWN: [&str; 3] = ["find_tools", "call_tool", "read_resource"];

fn folder(config: &str) -> Folder {
    let folder = Folder::new();
    folder.plugin("hello");
    folder.plugin("showcase");
    folder.write("dropped/none.txt", "");
    folder.config(&format!(
        "plugin_dir = '../../dropped'\n{config}\n[plugins.hello]\npath = '../../plugins/hello.wasm'\n\
         [plugins.show]\npath = '../../plugins/showcase.wasm'\n"
    ));
    folder
}

fn found(result: &Value) -> Vec<String> {
    names(&result["structuredContent"], "tools")
}

#[tokio::test(flavor = "multi_thread")]
async fn three_tools_lead_to_all_others_in_every_revision() {
    let folder = folder("");
    for revision in LEGACY {
        let mut pipe = Pipe::start(&folder, &["run", "--profile", "search"]);
        pipe.legacy(revision, json!({})).await;
        let listed = pipe.request("tools/list", json!({})).await.unwrap();
        assert_eq!(names(&listed, "tools"), OWN, "{revision}");
        let result = pipe.call("find_tools", json!({ "query": "say hello to a person" })).await;
        // Before 2025-06-18 there is no structured content, so the text contains the same data.
        let answer: Value = serde_json::from_str(text(&result)).unwrap();
        assert_eq!(answer["tools"][0]["name"], "hello_greet", "{revision}: {answer}");
        assert_eq!(answer["tools"][0]["inputSchema"]["type"], "object");
        if revision >= "2025-06-18" {
            assert_eq!(result["structuredContent"], answer);
        }
        let called = pipe.call("call_tool", json!({ "name": "hello_greet", "arguments": { "name": "Ada" } })).await;
        assert_eq!(text(&called), "Hello, Ada!");
        // A client that knows a tool's name may call it directly.
        assert_eq!(text(&pipe.call("hello_greet", json!({ "name": "Ben" })).await), "Hello, Ben!");
        // A tool's error about invalid arguments is returned unchanged.
        assert!(is_error(&pipe.call("call_tool", json!({ "name": "hello_greet", "arguments": {} })).await));
        pipe.close().await;
    }
    let mut pipe = Pipe::start(&folder, &["run", "--profile", "search"]);
    let listed = pipe.modern("tools/list", json!({}), json!({})).await.unwrap();
    assert_eq!(names(&listed, "tools"), OWN);
    let result = pipe
        .modern("tools/call", json!({ "name": "find_tools", "arguments": { "query": "greet" } }), json!({}))
        .await
        .unwrap();
    assert_eq!(found(&result), ["hello_greet"]);
    pipe.close().await;
}

/// A client that ignores `list_changed`, or never gets it, uses a tool that was added a second ago.
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_was_just_added_is_found_without_listing_again() {
    let folder = folder("[server]\ncatalog = \"search\"\n");
    let server = Server::loaded(&folder).await;
    let mut session = server.legacy("2025-11-25", json!({})).await;
    let listed = session.request("tools/list", json!({})).await.unwrap();
    assert_eq!(names(&listed, "tools"), OWN, "`catalog` in [server] is for those who name no profile");
    let before = session.call("find_tools", json!({ "query": "version" })).await;
    assert!(!found(&before).contains(&"added_version".to_owned()), "{before}");
    folder.plugin_as("version-a", "dropped/added.wasm");
    server.wait_for_log("serving plugin=\"added\"").await;
    let after = session.call("find_tools", json!({ "query": "version" })).await;
    assert!(found(&after).contains(&"added_version".to_owned()), "{after}");
    let called = session.call("call_tool", json!({ "name": "added_version" })).await;
    assert!(!is_error(&called), "{called}");
    server.terminate().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn its_list_never_changes_but_resources_do() {
    let folder = folder("");
    let mut pipe = Pipe::start(&folder, &["run", "--profile", "search"]);
    pipe.legacy("2025-11-25", json!({})).await;
    pipe.request("tools/list", json!({})).await.unwrap();
    // Adds tools, resources and prompts.
    folder.plugin_as("conformance", "dropped/added.wasm");
    pipe.notification("notifications/resources/list_changed").await;
    let told = pipe.inbox().iter().filter(|one| one["method"] == "notifications/tools/list_changed").count();
    assert_eq!(told, 0, "the list of tools is the same");
    pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn resources_are_listed_and_read_by_a_tool() {
    let folder = folder("");
    let mut pipe = Pipe::start(&folder, &["run", "--profile", "search"]);
    pipe.legacy("2025-11-25", json!({})).await;
    let own = pipe.request("resources/list", json!({})).await.unwrap();
    let listed = pipe.call("read_resource", json!({})).await;
    assert_eq!(listed["structuredContent"]["resources"], own["resources"]);
    for resource in own["resources"].as_array().unwrap() {
        let uri = &resource["uri"];
        let read = pipe.request("resources/read", json!({ "uri": uri })).await;
        let by_tool = pipe.request("tools/call", json!({ "name": "read_resource", "arguments": { "uri": uri } })).await;
        match read {
            Ok(read) => {
                let (contents, by_tool) = (&read["contents"][0], by_tool.unwrap());
                let block = &by_tool["content"][0];
                if contents.get("text").is_some() {
                    assert_eq!(block["text"], contents["text"], "{uri}");
                } else {
                    assert_eq!(block["resource"]["blob"], contents["blob"], "{uri}");
                }
            }
            Err(error) => match by_tool {
                Err(other) => assert_eq!(error["code"], other["code"], "{uri}"),
                Ok(result) => assert!(is_error(&result), "{uri}: {error} {result}"),
            },
        }
    }
    let none = pipe.call("read_resource", json!({ "uri": "no:///such" })).await;
    assert!(is_error(&none) && text(&none).contains("lists what there is"), "{none}");
    pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_meant_is_answered_in_words_for_a_model() {
    let folder = folder("");
    let mut pipe = Pipe::start(&folder, &["run", "--profile", "search"]);
    pipe.legacy("2025-11-25", json!({})).await;
    for (tool, arguments) in [
        ("find_tools", json!({})),
        ("find_tools", json!({ "query": 7 })),
        ("find_tools", json!({ "query": "x", "limit": "many" })),
        ("find_tools", json!({ "query": "x", "more": 1 })),
        ("call_tool", json!({})),
        ("call_tool", json!({ "arguments": {} })),
        ("read_resource", json!({ "uri": 1 })),
    ] {
        let result = pipe.call(tool, arguments.clone()).await;
        assert!(is_error(&result) && text(&result).contains("do not fit"), "{tool} {arguments}: {result}");
    }
    for query in ["", "   ", "…", "qqqqqq zzzzzz", &"word ".repeat(200)] {
        let result = pipe.call("find_tools", json!({ "query": query, "limit": 3.0 })).await;
        assert!(!is_error(&result), "{result}");
    }
    let long = pipe.call("find_tools", json!({ "query": "ay".repeat(1_000_000) })).await;
    assert!(is_error(&long) && text(&long).contains("1024 characters"), "{long}");
    let nothing = pipe.call("find_tools", json!({ "query": "qqqqqq" })).await;
    assert_eq!(nothing["structuredContent"]["total"], 0);
    assert!(nothing["structuredContent"]["hint"].as_str().unwrap().contains("try other words"), "{nothing}");
    for name in ["none", "call_tool"] {
        let result = pipe.call("call_tool", json!({ "name": name })).await;
        let expected = format!("unknown tool: {name}. Look for it with find_tools.");
        assert!(is_error(&result) && text(&result) == expected, "{result}");
    }
    let wrong = pipe.call("call_tool", json!({ "name": "hello_greet", "arguments": "{}" })).await;
    assert!(is_error(&wrong), "{wrong}");
    pipe.close().await;
}

/// A tool that only a UI page may call is not found or called through the search. The client itself sees it.
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_for_a_page_alone_is_not_for_models() {
    let folder = Folder::new();
    let given = |id: &str, visibility: &[&str]| {
        let more = json!({ "_meta": { "ui": { "visibility": visibility } } }).to_string();
        format!(
            "[plugins.{id}]\npath = {:?}\nconfig = {{ mode = \"given\", alone = true, more = {more:?} }}\n",
            e2e::plugin("badlist")
        )
    };
    folder.config(&[given("page", &["app"]), given("nobody", &[]), given("both", &["app", "model"])].concat());
    let mut pipe = Pipe::start(&folder, &["run", "--profile", "search"]);
    pipe.legacy("2025-11-25", json!({})).await;
    assert_eq!(found(&pipe.call("find_tools", json!({ "query": "does what it is told" })).await), ["both_t"]);
    let none = pipe.call("find_tools", json!({ "query": "zzz" })).await;
    assert_eq!(none["structuredContent"]["hint"], "none of the 1 tools fits; try other words");
    let call = |name: &str| json!({ "name": name, "arguments": { "text": "hi" } });
    assert_eq!(text(&pipe.call("call_tool", call("both_t")).await), "hi");
    for arguments in [json!({ "text": "hi" }), json!({ "text": 7 }), json!({})] {
        let unknown = pipe.call("call_tool", json!({ "name": "none_t", "arguments": arguments })).await;
        assert_eq!(text(&unknown), "unknown tool: none_t. Look for it with find_tools.");
        for name in ["page_t", "nobody_t"] {
            let mut refused = pipe.call("call_tool", json!({ "name": name, "arguments": arguments })).await;
            assert!(is_error(&refused), "{refused}");
            let said = text(&refused).replace(name, "none_t");
            refused["content"][0]["text"] = said.into();
            assert_eq!(refused, unknown, "it tells nothing of what is there");
        }
    }
    // The page's client calls it by its name, as without the search.
    assert_eq!(text(&pipe.call("page_t", json!({ "text": "hi" })).await), "hi");
    pipe.close().await;
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy("2025-11-25", json!({})).await;
    let listed = pipe.request("tools/list", json!({})).await.unwrap();
    let page = listed["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "page_t").unwrap();
    assert_eq!(page["_meta"]["ui"]["visibility"], json!(["app"]));
    pipe.close().await;
}

/// All good matches are found, even if they are tools of one plugin, and a deprecated one is the last.
#[tokio::test(flavor = "multi_thread")]
async fn the_best_matches_are_found_whatever_plugin_they_come_from() {
    let folder = Folder::new();
    let tools = |kind: &str| {
        let one = |number: usize| {
            json!({
                "name": format!("peel_{kind}_{number}"),
                "description": format!("Peels a {kind} of kind {number}"),
                "inputSchema": { "type": "object", "properties": {} },
            })
        };
        (1..=5).map(one).collect::<Vec<_>>()
    };
    let old = json!({
        "name": "peel", "description": "Peels an apple. DEPRECATED: Use peel_apple_1 instead.",
        "inputSchema": { "type": "object", "properties": {} },
    });
    let given = |id: &str, tools: Vec<Value>| {
        let tools = json!(tools).to_string();
        format!(
            "[plugins.{id}]\npath = {:?}\nconfig = {{ mode = \"listed\", tools = {tools:?} }}\n",
            e2e::plugin("badlist")
        )
    };
    let apples = [vec![old], tools("apple")].concat();
    folder.config(&format!("{}{}", given("one", apples), given("two", tools("pear"))));
    let mut pipe = Pipe::start(&folder, &["run", "--profile", "search"]);
    pipe.legacy("2025-11-25", json!({})).await;
    let first = found(&pipe.call("find_tools", json!({ "query": "I want to peel an apple" })).await);
    assert!(first.len() == 5 && first.iter().all(|name| name.starts_with("one_peel_apple_")), "{first:?}");
    let all = found(&pipe.call("find_tools", json!({ "query": "I want to peel an apple", "limit": 20 })).await);
    assert_eq!((all.len(), all.last().map(String::as_str)), (11, Some("one_peel")), "{all:?}");
    pipe.close().await;
}
