//! Answers to questions with a name twice in an object. Parsers differ in which of the two counts, so they are refused, in each era and over
//! each transport.

use e2e::{Folder, Pipe, Server, Value, is_error, json, modern_params, text};

/// Each tool, with the key of its question and the answers that are refused.
const ANSWERS: [(&str, &str, &[&str]); 2] = [
    (
        "purge",
        "sure",
        &[
            r#"{"action":"accept","content":{"really":true,"reason":"old","really":false}}"#,
            r#"{"action":"decline","action":"accept","content":{"really":true,"reason":"old"}}"#,
        ],
    ),
    ("write_poem", "poem", &[r#"{"role":"assistant","content":{"type":"text","text":"a","text":"b"},"model":"m"}"#]),
];
const TWICE: &str = "a name twice";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.plugin("showcase");
    folder.config(
        "[plugins.show]\npath = \"../../plugins/showcase.wasm\"\nprefix = \"\"\n[plugins.show.grants]\nask = [\"elicitation\", \"sampling\"]\n",
    );
    folder
}

fn able() -> Value {
    json!({ "elicitation": { "form": {} }, "sampling": {} })
}

/// Returns the text of a message in which an answer stands as it is, since no JSON value has a name twice.
fn written(message: &Value, answer: &str) -> String {
    message.to_string().replace("\"ANSWER\"", answer)
}

fn answering(question: &Value, answer: &str) -> String {
    written(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": "ANSWER" }), answer)
}

fn calling_again(id: u64, tool: &str, key: &str, answer: &str) -> (Value, String) {
    let params = modern_params(json!({ "name": tool, "inputResponses": { key: "ANSWER" } }), able());
    let message = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
    let text = written(&message, answer);
    (message, text)
}

fn refused_to_plugin(result: &Value) {
    assert!(is_error(result) && text(result).contains(TWICE), "{result}");
}

fn refused_to_client(error: &Value) {
    let said = error["message"].as_str().unwrap_or_default();
    assert!(error["code"] == -32602 && said.contains(TWICE), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn over_a_pipe() {
    let folder = folder();
    let mut modern = Pipe::start(&folder, &["run"]);
    for (tool, key, answers) in ANSWERS {
        let asked = modern.modern("tools/call", json!({ "name": tool }), able()).await.unwrap();
        assert!(asked["inputRequests"][key].is_object(), "{asked}");
        for (answer, id) in answers.iter().zip(100..) {
            let (_, line) = calling_again(id, tool, key, answer);
            modern.send_raw(format!("{line}\n").as_bytes()).await;
            refused_to_client(&modern.answer(&json!(id)).await.unwrap_err());
        }
    }
    modern.close().await;
    let mut legacy = Pipe::start(&folder, &["run"]);
    legacy.legacy("2025-11-25", able()).await;
    for (tool, _, answers) in ANSWERS {
        for answer in answers {
            let id = legacy.begin("tools/call", json!({ "name": tool })).await;
            let question = legacy.find("a question", |message| message.get("method").is_some()).await;
            legacy.send_raw(format!("{}\n", answering(&question, answer)).as_bytes()).await;
            refused_to_plugin(&legacy.answer(&id).await.unwrap());
        }
    }
    legacy.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_http() {
    let folder = folder();
    let server = Server::start(&folder, &[]).await;
    let content = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
    for (tool, key, answers) in ANSWERS {
        for (answer, id) in answers.iter().zip(100..) {
            let (message, body) = calling_again(id, tool, key, answer);
            let named = e2e::modern_headers(&message);
            let named = named.iter().map(|(name, value)| (*name, value.as_str()));
            let headers: Vec<(&str, &str)> = content.into_iter().chain(named).collect();
            let mut exchange = server.send("POST", "/mcp", &headers, body.as_bytes()).await;
            refused_to_client(&exchange.json().await["error"]);
        }
    }
    let mut session = server.legacy("2025-11-25", able()).await;
    for (tool, _, answers) in ANSWERS {
        for answer in answers {
            let (id, mut exchange) = session.begin("tools/call", json!({ "name": tool })).await;
            let question = loop {
                let message = exchange.event().await.expect("a question");
                if message.get("method").is_some() {
                    break message;
                }
            };
            let named = [("Mcp-Session-Id", session.id.as_str()), ("MCP-Protocol-Version", "2025-11-25")];
            let headers: Vec<(&str, &str)> = content.into_iter().chain(named).collect();
            let sent = server.send("POST", "/mcp", &headers, answering(&question, answer).as_bytes()).await;
            assert_eq!(sent.status(), 202);
            refused_to_plugin(&exchange.response(&id).await["result"]);
        }
    }
}
