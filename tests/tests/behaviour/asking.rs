//! Plugins that ask: the same guest in both eras. Modern clients get the questions as a result and call again; legacy clients get requests
//! while their call waits.

use std::sync::{Arc, Mutex};

use e2e::{Folder, Pipe, is_error, json, text};
use serde_json::Value;

const ALLOWED: &str = "[plugins.show]\npath = \"../../plugins/showcase.wasm\"\nprefix = \"\"\n\
                       [plugins.show.grants]\nask = [\"elicitation\", \"sampling\", \"roots\"]\n";
const REFUSED: &str = "[plugins.show]\npath = \"../../plugins/showcase.wasm\"\nprefix = \"\"\n";

fn folder(config: &str) -> Folder {
    let folder = Folder::new();
    folder.plugin("showcase");
    folder.config(config);
    folder
}

fn everything() -> Value {
    json!({ "elicitation": { "form": {}, "url": {} }, "sampling": { "tools": {} }, "roots": {} })
}

async fn modern(pipe: &mut Pipe, params: Value) -> Result<Value, Value> {
    pipe.modern("tools/call", params, everything()).await
}

fn accept(content: Value) -> Value {
    json!({ "action": "accept", "content": content })
}

#[tokio::test(flavor = "multi_thread")]
async fn one_question_needs_no_state() {
    let folder = folder(ALLOWED);
    let mut pipe = Pipe::start(&folder, &["run"]);
    let asked = modern(&mut pipe, json!({ "name": "purge" })).await.unwrap();
    assert_eq!(asked["resultType"], "input_required");
    assert!(asked.get("requestState").is_none());
    let question = &asked["inputRequests"]["sure"];
    assert_eq!(question["method"], "elicitation/create");
    assert_eq!(question["params"]["message"], "[show] Delete 14 notes?", "the person sees who asks");
    for (reply, expected) in [
        (accept(json!({ "really": true, "reason": "old" })), "deleted: old"),
        (accept(json!({ "really": false })), "kept"),
        (json!({ "action": "decline" }), "declined"),
        (json!({ "action": "cancel" }), "cancelled"),
    ] {
        let params = json!({ "name": "purge", "inputResponses": { "sure": reply, "unasked": 7 } });
        assert_eq!(text(&modern(&mut pipe, params).await.unwrap()), expected);
    }
    for malformed in
        [json!(7), json!({}), json!({ "action": "maybe" }), accept(json!({ "really": "yes" })), accept(json!({}))]
    {
        let params = json!({ "name": "purge", "inputResponses": { "sure": malformed } });
        assert_eq!(modern(&mut pipe, params).await.unwrap_err()["code"], -32602, "{malformed}");
    }
    for malformed in [json!(null), json!([]), json!("x")] {
        let params = json!({ "name": "purge", "inputResponses": malformed });
        assert_eq!(modern(&mut pipe, params).await.unwrap_err()["code"], -32602, "{malformed}");
    }
    let missing = json!({ "name": "purge", "inputResponses": { "other": {} } });
    assert_eq!(modern(&mut pipe, missing).await.unwrap()["resultType"], "input_required");
    pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn earlier_answers_travel_sealed() {
    let folder = folder(ALLOWED);
    let mut pipe = Pipe::start(&folder, &["run"]);
    let first = modern(&mut pipe, json!({ "name": "introduce" })).await.unwrap();
    let state = first["requestState"].as_str().unwrap().to_owned();
    let answer = json!({ "first": accept(json!({ "name": "Ada" })) });
    let params = json!({ "name": "introduce", "inputResponses": answer, "requestState": state });
    let second = modern(&mut pipe, params.clone()).await.unwrap();
    let state = second["requestState"].as_str().unwrap().to_owned();
    assert!(second["inputRequests"]["last"].is_object());
    assert!(!state.contains("Ada"));
    let answer = json!({ "last": accept(json!({ "name": "Lovelace" })) });
    let done = json!({ "name": "introduce", "inputResponses": answer, "requestState": state });
    assert_eq!(text(&modern(&mut pipe, done.clone()).await.unwrap()), "Ada Lovelace after 2 rounds");

    let mut altered = state.clone();
    altered.replace_range(10..11, if &altered[10..11] == "A" { "B" } else { "A" });
    let (other_tool, unknown) = (json!("purge"), json!("v1.AAAA"));
    for (key, value) in
        [("requestState", json!(altered)), ("requestState", unknown), ("requestState", json!(7)), ("name", other_tool)]
    {
        let mut params = done.clone();
        params[key] = value;
        assert_eq!(modern(&mut pipe, params.clone()).await.unwrap_err()["code"], -32602, "{params}");
    }
    pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_questions_and_other_methods() {
    let folder = folder(ALLOWED);
    let mut pipe = Pipe::start(&folder, &["run"]);
    let both = modern(&mut pipe, json!({ "name": "both" })).await.unwrap();
    assert_eq!(both["inputRequests"].as_object().unwrap().len(), 2);
    let one = json!({ "name": "both", "inputResponses": { "a": accept(json!({ "v": "1" })) } });
    let rest = modern(&mut pipe, one).await.unwrap();
    assert_eq!(rest["inputRequests"].as_object().unwrap().keys().collect::<Vec<_>>(), ["b"]);
    let other = json!({
        "name": "both", "requestState": rest["requestState"], "inputResponses": { "b": accept(json!({ "v": "2" })) },
    });
    assert_eq!(text(&modern(&mut pipe, other).await.unwrap()), "2 answers");

    let asked = pipe.modern("resources/read", json!({ "uri": "show:///secret" }), everything()).await.unwrap();
    assert_eq!(asked["resultType"], "input_required");
    assert!(asked.get("ttlMs").is_none());
    let yes = json!({ "sure": accept(json!({ "really": true })) });
    let read = json!({ "uri": "show:///secret", "inputResponses": yes });
    let read = pipe.modern("resources/read", read, everything()).await.unwrap();
    assert_eq!(read["contents"][0]["text"], "the secret");
    let topic = json!({ "name": "essay", "inputResponses": { "name": accept(json!({ "name": "cranes" })) } });
    let essay = pipe.modern("prompts/get", topic, everything()).await.unwrap();
    assert_eq!(essay["messages"][0]["content"]["text"], "Write about cranes.");

    let page = modern(&mut pipe, json!({ "name": "sign_in" })).await.unwrap();
    assert_eq!(page["inputRequests"]["page"]["params"]["url"], "https://example.com/sign-in");
    let poem = modern(&mut pipe, json!({ "name": "write_poem" })).await.unwrap();
    assert!(
        poem["inputRequests"]["poem"]["params"].get("includeContext").is_none(),
        "other servers' context is not asked for"
    );
    let roots = json!({ "name": "client_roots", "inputResponses": { "roots": { "roots": [{ "uri": "file:///a" }] } } });
    assert_eq!(text(&modern(&mut pipe, roots).await.unwrap()), "file:///a");
    pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_cannot_answer_is_told_what_it_lacks() {
    let folder = folder(ALLOWED);
    let mut pipe = Pipe::start(&folder, &["run"]);
    for (tool, capabilities, required) in [
        ("purge", json!({}), json!({ "elicitation": { "form": {} } })),
        ("purge", json!({ "elicitation": { "url": {} } }), json!({ "elicitation": { "form": {} } })),
        ("sign_in", json!({ "elicitation": {} }), json!({ "elicitation": { "url": {} } })),
        ("write_poem", json!({}), json!({ "sampling": {} })),
        ("client_roots", json!({}), json!({ "roots": {} })),
    ] {
        let error = pipe.modern("tools/call", json!({ "name": tool }), capabilities).await.unwrap_err();
        assert_eq!(error["code"], -32021, "{tool}");
        assert_eq!(error["data"]["requiredCapabilities"], required, "{tool}");
    }
    pipe.legacy("2025-11-25", json!({})).await;
    let result = pipe.call("purge", json!({})).await;
    assert!(is_error(&result) && text(&result).contains("elicitation"), "{result}");
    let error = pipe.request("prompts/get", json!({ "name": "essay" })).await.unwrap_err();
    assert_eq!(error["code"], -32603);
    pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn legacy_clients_get_real_requests() {
    let folder = folder(ALLOWED);
    for revision in ["2025-06-18", "2025-11-25"] {
        let mut pipe = Pipe::start(&folder, &["run"]);
        pipe.legacy(revision, everything()).await;
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = Arc::clone(&asked);
        pipe.answer_with(move |method, params| {
            let message = params["message"].as_str().unwrap_or_default().to_owned();
            seen.lock().unwrap().push(format!("{method} {message}").trim().to_owned());
            Some(match method {
                "sampling/createMessage" => {
                    json!({ "role": "assistant", "content": { "type": "text", "text": "roses" }, "model": "m" })
                }
                "roots/list" => json!({ "roots": [{ "uri": "file:///b" }] }),
                _ if message.contains("first") => accept(json!({ "name": "Ada" })),
                _ if message.contains("last") => accept(json!({ "name": "Lovelace" })),
                _ if params["mode"] == "url" => json!({ "action": "accept" }),
                _ => accept(json!({ "really": true, "reason": "old" })),
            })
        });
        assert_eq!(text(&pipe.call("purge", json!({})).await), "deleted: old");
        assert_eq!(text(&pipe.call("introduce", json!({})).await), "Ada Lovelace after 2 rounds");
        assert_eq!(text(&pipe.call("write_poem", json!({})).await), "roses");
        assert_eq!(text(&pipe.call("client_roots", json!({})).await), "file:///b");
        if revision == "2025-11-25" {
            assert_eq!(text(&pipe.call("sign_in", json!({})).await), "signed in");
        }
        let read = pipe.request("resources/read", json!({ "uri": "show:///secret" })).await.unwrap();
        assert_eq!(read["contents"][0]["text"], "the secret");
        assert_eq!(
            asked.lock().unwrap()[..3],
            [
                "elicitation/create [show] Delete 14 notes?",
                "elicitation/create [show] Your first name?",
                "elicitation/create [show] Your last name?",
            ]
        );
        pipe.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn asking_is_a_grant() {
    let folder = folder(REFUSED);
    let mut pipe = Pipe::start(&folder, &["run"]);
    for tool in ["purge", "sign_in", "write_poem", "client_roots"] {
        let result = modern(&mut pipe, json!({ "name": tool })).await.unwrap();
        assert!(is_error(&result) && text(&result).contains("has not allowed"), "{tool}: {result}");
    }
    pipe.wait_for_log("[plugins.show.grants]").await;
    pipe.close().await;
}

/// After a question, a plugin starts again and so do its progress reports; its request does not.
#[tokio::test(flavor = "multi_thread")]
async fn progress_grows_over_all_rounds() {
    let folder = folder(ALLOWED);
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.answer_with(|_, _| Some(accept(json!({ "really": true, "reason": "old" }))));
    pipe.legacy("2025-11-25", everything()).await;
    let params = json!({ "name": "purge", "_meta": { "progressToken": "p" } });
    let result = pipe.request("tools/call", params).await.unwrap();
    assert_eq!(text(&result), "deleted: old");
    let reports: Vec<f64> = pipe
        .inbox()
        .iter()
        .filter(|message| message["method"] == "notifications/progress")
        .filter_map(|message| message["params"]["progress"].as_f64())
        .collect();
    assert_eq!(reports, [1.0, 2.0]);
}
