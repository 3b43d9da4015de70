//! Every kind of content, resource, prompt and completion, in every revision. The harness validates each message against the official
//! schema of its revision; the assertions here check what the schemas cannot express.

use e2e::{Folder, LEGACY, MODERN, Pipe, is_error, json, names, text};

const CONFIG: &str = "[plugins.show]\npath = \"../../plugins/showcase.wasm\"\nprefix = \"\"\n";

async fn legacy(folder: &Folder, revision: &str) -> Pipe {
    let mut pipe = Pipe::start(folder, &["run"]);
    pipe.legacy(revision, json!({})).await;
    pipe
}

fn folder() -> Folder {
    let folder = Folder::new();
    folder.plugin("showcase");
    folder.config(CONFIG);
    folder
}

fn kinds(result: &serde_json::Value) -> Vec<String> {
    result["content"].as_array().unwrap().iter().map(|block| block["type"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn content_is_written_as_each_revision_has_it() {
    let folder = folder();
    for (revision, expected) in [
        ("2024-11-05", ["text", "image", "text", "text", "resource", "text"]),
        ("2025-03-26", ["text", "image", "audio", "text", "resource", "text"]),
        ("2025-06-18", ["text", "image", "audio", "resource_link", "resource", "text"]),
        ("2025-11-25", ["text", "image", "audio", "resource_link", "resource", "text"]),
    ] {
        let mut pipe = legacy(&folder, revision).await;
        assert_eq!(kinds(&pipe.call("every_kind", json!({})).await), expected, "{revision}");
        let sum = pipe.call("sum", json!({ "n": 4 })).await;
        assert_eq!(text(&sum), "{\"sum\":10}", "{revision}: clients without structured content find it as text");
        assert_eq!(sum.get("structuredContent").is_some(), revision >= "2025-06-18", "{revision}");
        assert!(
            names(&pipe.request("prompts/list", json!({})).await.unwrap(), "prompts").contains(&"review".to_owned())
        );
        let tools = pipe.request("tools/list", json!({})).await.unwrap();
        let sum = tools["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "sum").unwrap();
        assert_eq!(sum.get("outputSchema").is_some(), revision >= "2025-06-18", "{revision}");
        let every = tools["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "every_kind").unwrap();
        assert_eq!(every.get("annotations").is_some(), revision >= "2025-03-26", "{revision}");
        assert_eq!(every.get("title").is_some(), revision >= "2025-06-18", "{revision}");
        pipe.request("prompts/get", json!({ "name": "conversation" })).await.unwrap();
        pipe.close().await;
    }
    let mut pipe = Pipe::start(&folder, &["run"]);
    let result = pipe.modern("tools/call", json!({ "name": "every_kind" }), json!({})).await.unwrap();
    assert_eq!(kinds(&result), ["text", "image", "audio", "resource_link", "resource", "text"]);
    pipe.modern("prompts/get", json!({ "name": "conversation" }), json!({})).await.unwrap();
    pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn resources_are_read_by_uri_and_by_template() {
    let folder = folder();
    let mut pipe = legacy(&folder, "2025-11-25").await;
    for (uri, expected) in [
        ("show:///fixed", json!([{ "uri": "show:///fixed", "mimeType": "text/plain", "text": "fixed text" }])),
        ("show:///items/7", json!([{ "uri": "show:///items/7", "mimeType": "text/plain", "text": "item 7" }])),
    ] {
        let result = pipe.request("resources/read", json!({ "uri": uri })).await.unwrap();
        assert_eq!(result["contents"], expected, "{uri}");
        let params = json!({ "uri": uri });
        let result = pipe.modern("resources/read", params, json!({})).await.unwrap();
        assert_eq!(result["contents"], expected, "{uri}");
    }
    let bytes = pipe.request("resources/read", json!({ "uri": "show:///bytes" })).await.unwrap();
    assert_eq!(bytes["contents"][0]["blob"], "AP8=");
    assert_eq!(bytes["contents"][0]["_meta"]["com.example/a"], 1);
    for uri in ["show:///items/none", "show:///nothing", "show:///items/a/b", "nonsense"] {
        let error = pipe.request("resources/read", json!({ "uri": uri })).await.unwrap_err();
        assert_eq!((error["code"].as_i64(), error["data"]["uri"].as_str()), (Some(-32002), Some(uri)), "{uri}");
        let error = pipe.modern("resources/read", json!({ "uri": uri }), json!({})).await.unwrap_err();
        assert_eq!((error["code"].as_i64(), error["data"]["uri"].as_str()), (Some(-32602), Some(uri)), "{uri}");
    }
    let templates = pipe.request("resources/templates/list", json!({})).await.unwrap();
    assert_eq!(templates["resourceTemplates"][0]["uriTemplate"], "show:///items/{id}");
    assert_eq!(templates["resourceTemplates"][0]["_meta"]["dev.wharf/plugin"], "show");
    pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_are_results_or_errors_as_the_plugin_says() {
    let folder = folder();
    let mut pipe = legacy(&folder, "2025-06-18").await;
    let failed = pipe.call("fail", json!({})).await;
    assert!(is_error(&failed));
    assert_eq!(text(&failed), "it is Sunday");
    let refused = pipe.request("tools/call", json!({ "name": "refuse", "arguments": {} })).await.unwrap_err();
    assert_eq!((refused["code"].as_i64(), refused["message"].as_str()), (Some(-32602), Some("not today")));
    let error = pipe.request("prompts/get", json!({ "name": "review" })).await.unwrap_err();
    assert_eq!(error["code"], -32602, "a required argument is missing");
    let error = pipe.request("prompts/get", json!({ "name": "nothing" })).await.unwrap_err();
    assert_eq!(error["code"], -32602);
    let review = json!({ "name": "review", "arguments": { "code": "1+1" } });
    let review = pipe.request("prompts/get", review).await.unwrap();
    assert_eq!(review["messages"][0]["content"]["text"], "Review this code: 1+1");
    pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn completions_are_capped_and_know_what_was_chosen() {
    let folder = folder();
    let mut pipe = legacy(&folder, "2025-11-25").await;
    let prompt = json!({
        "ref": { "type": "ref/prompt", "name": "review" },
        "argument": { "name": "language", "value": "p" },
        "context": { "arguments": { "code": "x" } },
    });
    let completed = pipe.request("completion/complete", prompt).await.unwrap();
    assert_eq!(completed["completion"]["values"], json!(["python", "perl", "code=x"]));
    let template = json!({
        "ref": { "type": "ref/resource", "uri": "show:///items/{id}" },
        "argument": { "name": "id", "value": "" },
    });
    let completed = pipe.request("completion/complete", template.clone()).await.unwrap();
    assert_eq!(completed["completion"]["values"].as_array().unwrap().len(), 100);
    assert_eq!(completed["completion"]["total"], 150);
    assert_eq!(completed["completion"]["hasMore"], true);
    pipe.modern("completion/complete", template, json!({})).await.unwrap();
    let unknown = json!({ "ref": { "type": "ref/prompt", "name": "x" }, "argument": { "name": "a", "value": "" } });
    assert_eq!(pipe.request("completion/complete", unknown).await.unwrap_err()["code"], -32602);
    pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_and_logs_go_to_whom_they_concern_before_the_answer() {
    let folder = folder();
    let mut pipe = legacy(&folder, "2025-11-25").await;
    let call = json!({ "name": "progress", "arguments": { "n": 3 }, "_meta": { "progressToken": "t" } });
    let id = pipe.begin("tools/call", call).await;
    for done in 1..=3 {
        let progress = pipe.notification("notifications/progress").await;
        assert_eq!(
            (&progress["params"]["progressToken"], progress["params"]["progress"].as_u64()),
            (&json!("t"), Some(done))
        );
        assert_eq!(pipe.notification("notifications/message").await["params"]["data"], format!("step {done}"));
    }
    pipe.answer(&id).await.unwrap();
    // A level of the session does not apply to modern requests, and one request's level does not apply to another.
    pipe.request("logging/setLevel", json!({ "level": "debug" })).await.unwrap();
    let silent = json!({ "name": "progress", "arguments": { "n": 2 } });
    pipe.modern("tools/call", silent.clone(), json!({})).await.unwrap();
    assert!(pipe.inbox().is_empty(), "{:?}", pipe.inbox());
    let mut told = silent.clone();
    told["_meta"] = json!({ "io.modelcontextprotocol/logLevel": "info" });
    pipe.modern("tools/call", told, json!({})).await.unwrap();
    assert_eq!(pipe.inbox().len(), 2);
    pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn announcements_reach_sessions_and_subscriptions_once_each() {
    let folder = folder();
    let mut pipe = legacy(&folder, "2025-11-25").await;
    pipe.request("resources/subscribe", json!({ "uri": "show:///fixed" })).await.unwrap();
    assert_eq!(pipe.request("resources/subscribe", json!({ "uri": "show:///no" })).await.unwrap_err()["code"], -32002);
    let wanted = json!({ "notifications": { "toolsListChanged": true, "resourceSubscriptions": ["show:///fixed"] } });
    let listen = pipe.begin_modern("subscriptions/listen", wanted, json!({})).await;
    let tag =
        |message: &serde_json::Value| message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"].clone();
    let acknowledged = pipe.notification("notifications/subscriptions/acknowledged").await;
    assert_eq!(tag(&acknowledged), listen);
    pipe.call("announce", json!({})).await;
    for method in ["notifications/tools/list_changed", "notifications/resources/updated"] {
        let mut tags = vec![tag(&pipe.notification(method).await), tag(&pipe.notification(method).await)];
        tags.sort_by_key(ToString::to_string);
        assert!(tags.contains(&listen) && tags.contains(&serde_json::Value::Null), "{method}: {tags:?}");
    }
    // Only the session asked for the other two.
    for method in ["notifications/prompts/list_changed", "notifications/resources/list_changed"] {
        assert_eq!(tag(&pipe.notification(method).await), serde_json::Value::Null);
    }
    // All earlier messages arrive before the answer to this request.
    pipe.request("ping", json!({})).await.unwrap();
    assert!(pipe.inbox().is_empty(), "{:?}", pipe.inbox());
    pipe.cancel(&listen).await;
    pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_plugin_knows_of_a_call_is_true() {
    let folder = folder();
    for revision in LEGACY {
        let mut pipe = legacy(&folder, revision).await;
        let about = pipe.call("about", json!({})).await;
        let about: serde_json::Value = serde_json::from_str(text(&about)).unwrap();
        assert_eq!(about["revision"], *revision);
        assert_eq!(about["client"], json!(["e2e", "1", null]));
        pipe.close().await;
    }
    let mut pipe = Pipe::start(&folder, &["run"]);
    let params = json!({ "name": "about", "_meta": { "com.example/trace": "x" } });
    let about = pipe.modern("tools/call", params, json!({ "roots": {} })).await.unwrap();
    let about: serde_json::Value = serde_json::from_str(text(&about)).unwrap();
    assert_eq!(about["revision"], MODERN);
    assert_eq!(about["capabilities"], json!({ "roots": {} }));
    assert_eq!(about["meta"]["com.example/trace"], "x");
    assert_eq!(about["can"], "ClientCapabilities(ROOTS) Reports(0x0)");
    assert_eq!(about["caller"], serde_json::Value::Null, "the one user of stdio needs no id");
    pipe.close().await;
}
