//! What wharf is measured against: the same echo tool, native, on the official Rust SDK, without any sandbox.
//!
//! `sdk_echo stdio`, `sdk_echo json` (HTTP, no sessions, JSON answers) or `sdk_echo sessions` (HTTP, sessions). The HTTP servers
//! print the address they listen on.

use std::sync::Arc;

use anyhow::{Result, bail};
use rmcp::{
    ServerHandler, ServiceExt,
    handler::server::wrapper::Parameters,
    schemars, tool, tool_handler, tool_router,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};

#[derive(Clone)]
struct Echo;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Message {
    message: String,
}

#[tool_router]
impl Echo {
    #[tool(description = "Answers the message unchanged.")]
    fn echo(&self, Parameters(Message { message }): Parameters<Message>) -> String {
        message
    }
}

#[tool_handler]
impl ServerHandler for Echo {}

#[tokio::main]
async fn main() -> Result<()> {
    let sessions = match std::env::args().nth(1).as_deref() {
        Some("stdio") => {
            Echo.serve(rmcp::transport::stdio()).await?.waiting().await?;
            return Ok(());
        }
        Some("json") => false,
        Some("sessions") => true,
        _ => bail!("usage: sdk_echo stdio | json | sessions"),
    };
    let config = StreamableHttpServerConfig::default().with_legacy_session_mode(sessions).with_json_response(!sessions);
    let service = StreamableHttpService::new(|| Ok(Echo), Arc::new(LocalSessionManager::default()), config);
    rivals::serve(axum::Router::new().nest_service("/mcp", service)).await
}
