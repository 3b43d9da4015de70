//! What the tests have in common: a folder to work in, the real wharf on a pipe or a socket, and the official schemas.
//!
//! Everything wharf says is checked against the schema of its revision as it is read; what breaks it fails the test. Nothing
//! here sleeps: each wait is for an event and has a limit.

use std::{path::PathBuf, time::Duration};

pub mod folder;
pub mod http;
pub mod log;
pub mod pipe;
pub mod random;
pub mod schema;

pub use folder::Folder;
pub use http::{Exchange, Server, Session};
pub use pipe::{Ended, Pipe};
pub use serde_json::{Value, json};

/// How long anything may take that is not itself about time.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
pub const MODERN: &str = "2026-07-28";

pub const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
pub const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
pub const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";
pub const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";

fn target() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("target")
}

/// The binary under test: `WHARF_BIN`, else the one that `cargo xtask test` builds.
pub fn binary() -> PathBuf {
    let binary = std::env::var_os("WHARF_BIN").map_or_else(|| target().join("ci/wharf"), PathBuf::from);
    assert!(binary.is_file(), "{} is missing: cargo build --profile ci -p wharf", binary.display());
    binary
}

/// A plugin of this repository, by its name without `.wasm`.
pub fn plugin(name: &str) -> PathBuf {
    let path = target().join("plugins").join(format!("{name}.wasm"));
    assert!(path.is_file(), "{} is missing: cargo xtask guests", path.display());
    path
}

/// The same `params` with the `_meta` of a modern request; keys of `_meta` that are there already stay.
pub fn modern_params(params: Value, capabilities: Value) -> Value {
    let mut params = params;
    let meta = params.as_object_mut().expect("params are an object").entry("_meta").or_insert_with(|| json!({}));
    let meta = meta.as_object_mut().expect("_meta is an object");
    meta.entry(VERSION_KEY).or_insert_with(|| MODERN.into());
    meta.entry(CAPABILITIES_KEY).or_insert(capabilities);
    params
}

/// The text of the first content block of a tool's result.
pub fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {result}"))
}

/// Whether a tool's result says that the call failed.
pub fn is_error(result: &Value) -> bool {
    result["isError"] == true
}

/// The names in the result of a list, under the key `name` or `uri`.
pub fn names(result: &Value, list: &str) -> Vec<String> {
    let items = result[list].as_array().unwrap_or_else(|| panic!("no {list} in {result}"));
    items.iter().map(|item| item["name"].as_str().or(item["uri"].as_str()).unwrap_or_default().to_owned()).collect()
}
