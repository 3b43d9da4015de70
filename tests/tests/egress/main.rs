//! Outgoing requests of plugins, with real servers on this machine: rules, addresses, limits, secrets, TLS and proxies.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod pages;
mod parts;
mod rules;
mod secrets;
mod transport;
mod upstream;
mod web;

use e2e::{Folder, Pipe, Value, json, text};

/// A config with the plugin `out`, these rules, and further lines of its table.
pub fn config(folder: &Folder, rules: &str, more: &str) {
    folder.plugin("outgoing");
    folder.config(&format!(
        "{more}\n[plugins.out]\npath = \"../../plugins/outgoing.wasm\"\nprefix = \"\"\n[plugins.out.grants]\nhttp = [{rules}]\n"
    ));
}

/// Starts a pipe to a wharf with that config.
pub async fn connected(folder: &Folder, environment: &[(&str, &str)]) -> Pipe {
    let mut pipe = Pipe::start_with(folder, &["run"], environment);
    pipe.legacy("2025-11-25", json!({})).await;
    pipe
}

/// Sends a request through the plugin, and returns the response.
pub async fn send(pipe: &mut Pipe, arguments: Value) -> Result<Value, String> {
    let result = pipe.call("send", arguments).await;
    let text = text(&result);
    match text.strip_prefix("error: ") {
        Some(error) => Err(error.to_owned()),
        None => Ok(serde_json::from_str(text).unwrap_or_else(|_| panic!("{text}"))),
    }
}
