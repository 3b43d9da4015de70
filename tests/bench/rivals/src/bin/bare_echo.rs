//! The ceiling of any HTTP server here: a bare handler that parses the request, looks at three members and echoes. With a file
//! as argument, `/list` serves its bytes. `/soon` answers after 20 ms.

#![expect(clippy::disallowed_methods, reason = "the file to serve is its argument")]

use anyhow::Result;
use axum::{
    Json, Router,
    routing::{get, post},
};
use serde_json::{Value, json};

#[tokio::main]
async fn main() -> Result<()> {
    let list: &'static [u8] = match std::env::args().nth(1) {
        Some(path) => std::fs::read(path)?.leak(),
        None => b"{}",
    };
    let json = [("content-type", "application/json")];
    let soon = || async {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        "soon"
    };
    let router = Router::new().route("/mcp", post(echo)).route("/soon", get(soon));
    rivals::serve(router.route("/list", get(move || async move { (json, list) }))).await
}

async fn echo(Json(request): Json<Value>) -> Json<Value> {
    let message = request.pointer("/params/arguments/message").cloned().unwrap_or_default();
    let result = json!({ "content": [{ "type": "text", "text": message }] });
    Json(json!({ "jsonrpc": "2.0", "id": request.get("id"), "result": result }))
}
