//! The fixture that the official MCP conformance suite wants to find on a server: exactly its tools, resources and prompts, under
//! exactly its names. The suite calls them over the wire, so what is wrong on the way there and back shows.
//!
//! `tools` is the list; what each tool does stands in `plain`, `asking` and `tasks`.

mod asking;
mod media;
mod plain;
mod prompts;
mod resources;
mod tasks;
mod tools;

/// The plugin: each of its three lists is in the module of that name.
struct Conformance;

/// The world goes on while a call waits: nothing else runs in its sandbox.
#[allow(clippy::disallowed_methods, reason = "a plugin that has to wait sleeps; wharf runs calls side by side")]
fn wait(time: std::time::Duration) {
    std::thread::sleep(time);
}

fn wait_ms(ms: u64) {
    wait(std::time::Duration::from_millis(ms));
}
