//! Access tokens of identity providers and API keys: which are accepted, what clients are told, what each caller may use, and what happens
//! while a provider changes its keys or is unreachable.

#![expect(clippy::disallowed_methods, reason = "tests read what wharf wrote")]
#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test fails by panicking")]

mod closed;
mod issuer;
mod keys;
mod parts;
mod providers;
mod quotas;
mod roles;
mod taken;
mod tokens;

use e2e::{Folder, Server, Value, exchange::Exchange, http::modern_headers, json, modern_params};

use crate::issuer::Issuer;

/// The URL that clients are told, whatever port the server listens at.
pub const RESOURCE: &str = "https://mcp.example.com/mcp";

/// A role that grants everything to everybody who logs in.
pub const EVERYBODY: &str = "[roles.everybody]\nwhen = \"anyone\"\nplugins = [\"*\"]\n";

/// A config for introspection at the issuer, as this client.
pub fn introspecting(folder: &Folder, issuer: &Issuer, client: &str) {
    folder.plugin("echo");
    folder.write("config/wharf/secret", "a secret of wharf&co=");
    folder.set_mode("config/wharf/secret", 0o600);
    folder.config(&format!(
        "[http]\npublic_url = \"{RESOURCE}\"\n[secrets]\nown = {{ file = \"secret\" }}\n[auth]\nscopes = [\"mcp\"]\n\
         [[auth.issuers]]\nurl = \"{}\"\nintrospection = {{ client_id = {client:?}, secret = \"own\" }}\n\
         [plugins.echo]\npath = \"../../plugins/echo.wasm\"\nprefix = \"\"\n{EVERYBODY}",
        issuer.url()
    ));
}

/// Starts a wharf that accepts tokens of this issuer. `more`: further lines of the issuer.
pub async fn started(folder: &Folder, issuer: &Issuer, more: &str) -> Server {
    folder.plugin("echo");
    folder.config(&format!(
        "[http]\npublic_url = \"{RESOURCE}\"\n[auth]\nscopes = [\"mcp\"]\n[[auth.issuers]]\nurl = \"{}\"\n{more}\n\
         [plugins.echo]\npath = \"../../plugins/echo.wasm\"\nprefix = \"\"\n{EVERYBODY}",
        issuer.url()
    ));
    Server::start(folder, &[]).await
}

/// Sends a modern call with these headers in addition to the required ones.
pub async fn call(server: &Server, more: &[(&str, &str)]) -> Exchange {
    let params = json!({ "name": "echo", "arguments": { "message": "hello" } });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": modern_params(params, json!({})) });
    let headers = modern_headers(&body);
    let headers: Vec<(&str, &str)> =
        headers.iter().map(|(name, value)| (*name, value.as_str())).chain(more.iter().copied()).collect();
    server.post(&headers, &body).await
}

/// The status of a call with this token.
pub async fn status(server: &Server, token: &str) -> u16 {
    call(server, &[("Authorization", &format!("Bearer {token}"))]).await.status()
}

/// A handshake of a legacy revision with these headers.
pub async fn initialize(server: &Server, revision: &str, more: &[(&str, &str)]) -> Exchange {
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": { "protocolVersion": revision, "capabilities": {}, "clientInfo": { "name": "e2e", "version": "1" } },
    });
    server.post(more, &body).await
}

/// Returns the response at a path, without a token.
pub async fn get(server: &Server, path: &str) -> (u16, Value) {
    let mut exchange = server.send("GET", path, &[("Origin", "https://any.example")], b"").await;
    let text = exchange.text().await;
    (exchange.status(), serde_json::from_str(&text).unwrap_or_default())
}
