//! The server as it should be, in three ways to speak.

use std::cell::{Cell, RefCell};

use serde_json::{Value, json};
use wasip2::http::types::ResponseOutparam;

use crate::{Request, Response, mistakes, outgoing, send, send_json};

thread_local! {
    static CALLS: Cell<u32> = const { Cell::new(0) };
    static SESSION: RefCell<Option<String>> = const { RefCell::new(None) };
}

const MODERN: &str = "2026-07-28";

pub fn answer(request: &Request, out: ResponseOutparam) {
    let message = &request.message;
    let (id, method) = (&message["id"], message["method"].as_str().unwrap_or_default());
    let params = &message["params"];
    let modern = request.path == "/mcp";
    let error =
        |code: i64, text: &str| json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": text } });
    if modern {
        let meta = &params["_meta"];
        let described = meta["io.modelcontextprotocol/protocolVersion"] == MODERN
            && meta["io.modelcontextprotocol/clientCapabilities"].is_object()
            && request.header("mcp-protocol-version") == Some(MODERN)
            && request.header("mcp-method") == Some(method);
        if !described {
            return send_json(out, 400, &error(-32602, "this request does not describe itself"));
        }
    } else {
        match method {
            "initialize" => {}
            _ if method == "server/discover" => return send_json(out, 404, &error(-32601, "unknown method")),
            _ => {
                let known = SESSION.with_borrow(|session| session.as_deref() == request.header("mcp-session-id"));
                if !known {
                    return send_json(out, 404, &error(-32000, "unknown session"));
                }
            }
        }
    }
    let result = match method {
        "server/discover" => {
            json!({ "supportedVersions": [MODERN], "capabilities": able(), "instructions": "Ask twice." })
        }
        "initialize" => {
            SESSION.set((request.path == "/legacy").then(|| "s-1".to_owned()));
            let version = if request.path == "/legacy" { "2025-11-25" } else { "2025-03-26" };
            json!({ "protocolVersion": version, "capabilities": able(), "serverInfo": { "name": "a", "version": "1" } })
        }
        "notifications/initialized" => return send(out, 202, &[], b""),
        "tools/list" => listed_tools(params),
        "tools/call" => match call(request, params) {
            Ok(Some(result)) => result,
            Ok(None) => {
                let name = params["name"].as_str().unwrap_or_default();
                return streamed(name, request, out);
            }
            Err((code, text)) => return send_json(out, 200, &error(code, &text)),
        },
        "resources/list" => json!({ "resources": [
            { "uri": "note:///a", "name": "a", "title": "A", "mimeType": "text/plain", "size": 4 }
        ] }),
        "resources/templates/list" => {
            json!({ "resourceTemplates": [{ "uriTemplate": "note:///{day}", "name": "day" }] })
        }
        "resources/read" => match params["uri"].as_str().unwrap_or_default() {
            "note:///a" => json!({ "contents": [{ "uri": "note:///a", "mimeType": "text/plain", "text": "rain" }] }),
            "note:///bytes" => json!({ "contents": [{ "uri": "note:///bytes", "blob": "AAEC" }] }),
            _ => {
                let code = if modern { -32602 } else { -32002 };
                return send_json(out, 200, &error(code, "no such note"));
            }
        },
        "prompts/list" => {
            json!({ "prompts": [{ "name": "ask", "arguments": [{ "name": "about", "required": true }] }] })
        }
        "prompts/get" => json!({ "messages": [
            { "role": "user", "content": { "type": "text", "text": format!("Tell of {}", params["arguments"]["about"]) } }
        ] }),
        "completion/complete" => {
            json!({ "completion": { "values": [format!("{}n", params["argument"]["value"].as_str().unwrap())] } })
        }
        _ => return send_json(out, 404, &error(-32601, "unknown method")),
    };
    let response = json!({ "jsonrpc": "2.0", "id": id, "result": with_type(result) });
    if method == "initialize" && request.path == "/legacy" {
        let headers = [("content-type", "application/json"), ("mcp-session-id", "s-1")];
        return send(out, 200, &headers, response.to_string().as_bytes());
    }
    if request.path == "/legacy" {
        let stream = Response::begin(out, 200, &[("content-type", "text/event-stream")]);
        stream.event(&response);
        return stream.end();
    }
    send_json(out, 200, &response);
}

/// Adds the type that the newest revision demands, unless the result has one.
fn with_type(mut result: Value) -> Value {
    if result.get("resultType").is_none() {
        result["resultType"] = "complete".into();
    }
    result
}

fn able() -> Value {
    json!({ "tools": {}, "resources": {}, "prompts": {}, "completions": {}, "logging": {} })
}

/// The tools, a page for each.
fn listed_tools(params: &Value) -> Value {
    let object = |properties: Value| json!({ "type": "object", "properties": properties });
    let tools = [
        json!({ "name": "echo", "description": "Returns the text", "title": "Echo",
            "inputSchema": object(json!({ "text": { "type": "string" } })), "annotations": { "readOnlyHint": true } }),
        json!({ "name": "count", "description": "Counts the calls in this instance", "inputSchema": object(json!({})),
            "outputSchema": object(json!({ "calls": { "type": "integer" } })) }),
        json!({ "name": "headers", "description": "Returns the headers of the request",
            "inputSchema": object(json!({ "region": { "type": "string", "x-mcp-header": "Region" } })) }),
        json!({ "name": "ask", "description": "Asks a person", "inputSchema": object(json!({})) }),
        json!({ "name": "fetch", "description": "Requests a URL", "inputSchema": object(json!({ "url": { "type": "string" } })) }),
        json!({ "name": "fail", "description": "Fails with this code", "inputSchema": object(json!({ "code": { "type": "integer" } })) }),
        json!({ "name": "big", "description": "Returns much", "inputSchema": object(json!({ "bytes": { "type": "integer" } })) }),
        json!({ "name": "report", "description": "Reports its progress", "inputSchema": object(json!({})) }),
        json!({ "name": "late", "description": "Answers, and goes on", "inputSchema": object(json!({})) }),
        json!({ "name": "mistake", "description": "Makes a mistake", "inputSchema": object(json!({ "name": { "type": "string" } })) }),
    ];
    let at: usize = params["cursor"].as_str().map_or(0, |cursor| cursor.parse().unwrap());
    let next = (at + 1 < tools.len()).then(|| (at + 1).to_string());
    let mut page = json!({ "tools": [tools[at]], "ttlMs": 0, "cacheScope": "private" });
    if let Some(next) = next {
        page["nextCursor"] = next.into();
    }
    page
}

/// Calls a tool. Returns `None` if it answers with a stream.
fn call(request: &Request, params: &Value) -> Result<Option<Value>, (i64, String)> {
    let arguments = &params["arguments"];
    let text = |text: String| Ok(Some(json!({ "content": [{ "type": "text", "text": text }] })));
    match params["name"].as_str().unwrap_or_default() {
        "echo" => text(arguments["text"].as_str().unwrap_or_default().to_owned()),
        "count" => {
            let calls = CALLS.get() + 1;
            CALLS.set(calls);
            Ok(Some(json!({ "content": [], "structuredContent": { "calls": calls } })))
        }
        "headers" => text(json!(request.headers).to_string()),
        "ask" => {
            let answer = &params["inputResponses"]["sure"];
            if answer.is_null() {
                let form = json!({ "message": "Sure?", "requestedSchema": { "type": "object", "properties": { "yes": { "type": "boolean" } } } });
                return Ok(Some(json!({ "resultType": "input_required", "requestState": "kept",
                    "inputRequests": { "sure": { "method": "elicitation/create", "params": form } } })));
            }
            text(format!("{answer} {}", params["requestState"]))
        }
        "fetch" => text(outgoing::fetch(arguments["url"].as_str().unwrap_or_default())),
        "fail" => Err((arguments["code"].as_i64().unwrap_or_default(), "it failed".into())),
        "big" => text("x".repeat(arguments["bytes"].as_u64().unwrap_or_default() as usize)),
        "report" | "late" | "mistake" => Ok(None),
        other => Err((-32602, format!("there is no tool {other}"))),
    }
}

fn streamed(name: &str, request: &Request, out: ResponseOutparam) {
    let message = &request.message;
    let response = json!({ "jsonrpc": "2.0", "id": message["id"],
        "result": { "resultType": "complete", "content": [{ "type": "text", "text": "done" }] } });
    match name {
        "report" => {
            let stream = Response::begin(out, 200, &[("content-type", "text/event-stream")]);
            let token = &message["params"]["_meta"]["progressToken"];
            for done in 1..=2 {
                stream.event(&json!({ "jsonrpc": "2.0", "method": "notifications/progress",
                    "params": { "progressToken": token, "progress": done, "total": 2, "message": "half" } }));
            }
            stream.event(&json!({ "jsonrpc": "2.0", "method": "notifications/message",
                "params": { "level": "warning", "data": { "heat": 3 } } }));
            stream.event(&response);
            stream.end();
        }
        "late" => {
            let stream = Response::begin(out, 200, &[("content-type", "text/event-stream")]);
            stream.event(&response);
            while stream.event(&json!({ "jsonrpc": "2.0", "method": "notifications/other" })) {}
            loop {
                std::hint::spin_loop();
            }
        }
        _ => mistakes::make(message["params"]["arguments"]["name"].as_str().unwrap_or_default(), request, out),
    }
}
