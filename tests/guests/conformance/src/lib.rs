//! The fixture that the official MCP conformance suite expects on a server: exactly its tools, resources and prompts, with exactly its
//! names. The suite calls them over the wire, so it also finds errors in the transport and the encoding.
//!
//! `tools` is the list; the tools are implemented in `plain`, `asking` and `tasks`.

mod asking;
mod media;
mod plain;
mod prompts;
mod resources;
mod tasks;
mod tools;

/// The plugin: each of its three lists is in the module of that name.
struct Conformance;

/// Blocking is fine here: nothing else runs in the sandbox of this call.
#[allow(clippy::disallowed_methods, reason = "a plugin that has to wait sleeps; wharf runs calls side by side")]
fn wait(time: std::time::Duration) {
    std::thread::sleep(time);
}

fn wait_ms(ms: u64) {
    wait(std::time::Duration::from_millis(ms));
}
