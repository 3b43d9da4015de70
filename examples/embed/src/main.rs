//! A program that embeds wharf: it calls a tool itself, and serves the same plugin to MCP clients over HTTP.
//!
//! `cargo run -p embed -- hello.wasm`, then point a client at http://127.0.0.1:7300/mcp.

use std::process::ExitCode;

use anyhow::{Context, Result};
use wharf::{ApprovalRequest, Call, Decision, Plugin, Wharf};

#[tokio::main(flavor = "current_thread")]
async fn serve() -> Result<()> {
    let file = std::env::args().nth(1).context("name a plugin, such as target/plugins/hello.wasm")?;
    let approve = |request: ApprovalRequest| async move {
        match request.name.as_str() {
            "hello_greet" => Decision::Allow,
            _ => Decision::Deny("This program only greets.".into()),
        }
    };
    let wharf = Wharf::builder().plugin(Plugin::file(file).id("hello")).approver(approve).build().await?;

    let greet = Call::tool("hello_greet").arguments(serde_json::json!({ "name": "Ada" }));
    let answer = wharf.call(greet).await?;
    eprintln!("{}", answer.text());

    let app = axum::Router::new().fallback_service(wharf.http_service("/mcp"));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:7300").await?;
    Ok(axum::serve(listener, app).await?)
}

fn main() -> ExitCode {
    // wharf compiles plugins in a child process that runs this program.
    if let Some(compiled) = wharf::compile_if_asked() {
        return compiled;
    }
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
