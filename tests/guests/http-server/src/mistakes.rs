//! One mistake for each path, and for each tool of this name.

use serde_json::json;
use wasip2::http::types::ResponseOutparam;

use crate::{Request, Response, send, send_json};

const JSON: &[(&str, &str)] = &[("content-type", "application/json")];

/// A result of four megabytes: these members, the last of which is an array of numbers.
fn many(id: &serde_json::Value, members: &str) -> String {
    let numbers = "0,".repeat(2_000_000);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{{members}:[{numbers}0]}}}}"#)
}

/// Answers a request in the way that its path names.
pub fn answer(request: &Request, out: ResponseOutparam) {
    let name = request.path.trim_start_matches('/').to_owned();
    make(&name, request, out);
}

/// Makes a mistake.
pub fn make(name: &str, request: &Request, out: ResponseOutparam) {
    let id = &request.message["id"];
    let result = json!({ "jsonrpc": "2.0", "id": id, "result": {} });
    match name {
        "none" => send(out, 404, &[("content-type", "text/html")], b"<h1>Not here</h1>"),
        "html" => send(out, 200, &[("content-type", "text/html; charset=utf-8")], b"<h1>Hello</h1>"),
        "redirect" => send(out, 307, &[("location", "https://elsewhere.test/")], b""),
        "broken" => send(out, 500, &[("content-type", "text/plain")], b"oh"),
        "denied" => send(out, 401, &[("www-authenticate", "Bearer")], b""),
        "words" => send(out, 200, &[("content-type", "application/json")], b"hello"),
        "batch" => send_json(out, 200, &json!([result])),
        "other-id" => send_json(out, 200, &json!({ "jsonrpc": "2.0", "id": "7", "result": {} })),
        "both" => send_json(out, 200, &json!({ "id": id, "result": {}, "error": { "code": 1, "message": "a" } })),
        "neither" => send_json(out, 200, &json!({ "jsonrpc": "2.0", "id": id })),
        "status" => send_json(out, 403, &result),
        "accepted" => send(out, 202, &[], b""),
        "old" => send_json(out, 200, &json!({ "id": id, "result": { "protocolVersion": "2023-01-01" } })),
        "silent" => drop(out),
        "unfinished" => {
            let response = Response::begin(out, 200, &[("content-type", "application/json")]);
            response.write(b"{\"jsonrpc\":");
            std::mem::forget(response);
        }
        "early" => {
            let response = Response::begin(out, 200, &[("content-type", "text/event-stream")]);
            response.write(b": hello\n\n");
            response.end();
        }
        "asks" => {
            let response = Response::begin(out, 200, &[("content-type", "text/event-stream")]);
            response.event(&json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }));
            response.event(&json!({ "jsonrpc": "2.0", "id": 2, "method": "elicitation/create", "params": {} }));
            response.end();
        }
        "event-words" => {
            let response = Response::begin(out, 200, &[("content-type", "text/event-stream")]);
            response.write(b"data: hello\n\n");
            response.end();
        }
        "endless" => {
            let response = Response::begin(out, 200, &[("content-type", "text/event-stream")]);
            while response.event(&json!({ "jsonrpc": "2.0", "method": "notifications/other", "params": { "a": "b" } }))
            {
            }
        }
        "one-event" => {
            let response = Response::begin(out, 200, &[("content-type", "text/event-stream")]);
            response.write(b"data: ");
            while response.write(&[b'x'; 4096]) {}
        }
        "large" => {
            let response = Response::begin(out, 200, &[("content-type", "application/json")]);
            response.write(b"\"");
            while response.write(&[b'x'; 4096]) {}
        }
        "many-values" => send(out, 200, JSON, many(id, "\"content\"").as_bytes()),
        "many-entries" => {
            let known = r#""supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"tools""#;
            send(out, 200, JSON, many(id, known).as_bytes());
        }
        "many-headers" => {
            let many: Vec<(String, String)> = (0..1000).map(|n| (format!("x-{n}"), "a".repeat(20))).collect();
            let many: Vec<(&str, &str)> = many.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            send(out, 200, &many, b"{}");
        }
        "spin" => loop {
            std::hint::spin_loop();
        },
        "trap" => panic!("it was asked to"),
        other => panic!("there is no mistake {other}"),
    }
}
