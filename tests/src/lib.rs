//! Shared code of the tests: a folder to work in, the real wharf on a pipe or a socket, and the official schemas.
//!
//! Every message of wharf is validated against the schema of its revision when it is read; a violation fails the test. This code never
//! sleeps: each wait is for an event and has a timeout.

#![expect(clippy::disallowed_methods, reason = "tests write what wharf is to read; what they spawn ends with them")]
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use std::{
    path::{Path, PathBuf},
    task::Poll,
    time::Duration,
};

pub mod client;
pub mod compiler;
pub mod debian;
pub mod exchange;
pub mod folder;
pub mod held;
pub mod http;
pub mod log;
pub mod patience;
pub mod pipe;
pub mod random;
pub mod redis;
pub mod schema;
pub mod terminal;
pub mod transcript;
pub mod wire;

pub use exchange::{Exchange, Frame};
pub use folder::Folder;
pub use held::Held;
pub use http::{Detached, Server, Session, Turns, modern_headers};
pub use patience::{PATIENCE, is_optimised, prompt, scaled};
pub use pipe::{Ended, Pipe};
pub use redis::Redis;
pub use serde_json::{Value, json};
pub use terminal::Terminal;
pub use transcript::{Recorder, Transcript};
pub use wire::Wire;

pub const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
pub const MODERN: &str = "2026-07-28";

pub const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
pub const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
pub const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";
pub const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";

/// The folder of the project.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn target() -> PathBuf {
    root().join("target")
}

/// The folder that cargo has built this program into, such as `target/release`.
fn built() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let folder = program.parent().unwrap();
    if folder.ends_with("deps") { folder.parent().unwrap().to_path_buf() } else { folder.to_path_buf() }
}

/// The binary under test: `WHARF_BIN`, relative to the project's folder, else the binary of the same profile as this program.
pub fn binary() -> PathBuf {
    let binary = std::env::var_os("WHARF_BIN").map_or_else(|| built().join("wharf"), |given| root().join(given));
    assert!(
        binary.is_file(),
        "{} is missing: cargo build --bin wharf, with the profile of the tests",
        binary.display()
    );
    binary
}

/// A plugin of this repository, by its name without `.wasm`.
pub fn plugin(name: &str) -> PathBuf {
    let path = target().join("plugins").join(format!("{name}.wasm"));
    assert!(path.is_file(), "{} is missing: cargo xtask build plugins", path.display());
    path
}

/// The config of a `badlist` with one tool, `<id>_t`, which is described by `described` and does what its arguments say; it may ask the
/// user with forms. `more` are further lines of the plugin's table.
pub fn given(id: &str, described: &Value, more: &str) -> String {
    let described = described.as_object().expect("an object").iter().map(|(key, value)| match value {
        Value::String(text) => format!(", {key} = {text:?}"),
        Value::Bool(flag) => format!(", {key} = {flag}"),
        schema => format!(", {key} = {:?}", schema.to_string()),
    });
    let config: String = described.collect();
    let path = plugin("badlist");
    format!(
        "[plugins.{id}]\npath = {path:?}\nconfig = {{ mode = \"given\"{config} }}\n{more}\n\
         [plugins.{id}.grants]\nask = [\"elicitation\"]\n"
    )
}

/// A pipe to a wharf that serves the plugins `hello` and `echo`.
pub fn hello_and_echo() -> (Folder, Pipe) {
    let folder = Folder::new();
    folder.plugin("hello");
    folder.plugin("echo");
    let pipe = Pipe::start(&folder, &["run", "plugins/hello.wasm", "plugins/echo.wasm"]);
    (folder, pipe)
}

/// Runs futures concurrently until all are done; returns their outputs in order.
pub async fn together<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut running: Vec<_> = futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(|context| {
        for (future, output) in running.iter_mut().filter(|(_, output)| output.is_none()) {
            if let Poll::Ready(done) = future.as_mut().poll(context) {
                *output = Some(done);
            }
        }
        if running.iter().all(|(_, output)| output.is_some()) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    running.into_iter().filter_map(|(_, output)| output).collect()
}

/// Returns a line of `/proc/<pid>/status`, in KiB: `VmRSS` is the memory in use, `VmHWM` its peak.
pub fn memory_kib(pid: u32, key: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find(|line| line.starts_with(key)).expect("such a line");
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
}

/// Returns the time that the threads of a process have been on a core.
pub fn cpu_time(pid: u32) -> Duration {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
    let of = |thread: std::io::Result<std::fs::DirEntry>| {
        // A thread may end meanwhile.
        let stat = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        stat.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
    };
    threads.filter_map(of).sum()
}

/// Returns `params` with the `_meta` of a modern request; existing keys of `_meta` are preserved.
pub fn modern_params(params: Value, capabilities: Value) -> Value {
    let mut params = params;
    let meta = params.as_object_mut().expect("params are an object").entry("_meta").or_insert_with(|| json!({}));
    let meta = meta.as_object_mut().expect("_meta is an object");
    meta.entry(VERSION_KEY).or_insert_with(|| MODERN.into());
    meta.entry(CAPABILITIES_KEY).or_insert(capabilities);
    params
}

/// Appends custom sections to a component: their names and contents.
pub fn with_sections(mut component: Vec<u8>, sections: &[(&str, &str)]) -> Vec<u8> {
    for (name, contents) in sections {
        let length = |bytes: usize| u8::try_from(bytes).ok().filter(|length| *length < 0x80).expect("a short section");
        component.extend([0, length(1 + name.len() + contents.len()), length(name.len())]);
        component.extend([*name, *contents].concat().into_bytes());
    }
    component
}

/// The text of the first content block of a tool's result.
pub fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {result}"))
}

/// Whether a tool's result has `isError`.
pub fn is_error(result: &Value) -> bool {
    result["isError"] == true
}

/// The names in the result of a list, under the key `name` or `uri`.
pub fn names(result: &Value, list: &str) -> Vec<String> {
    let items = result[list].as_array().unwrap_or_else(|| panic!("no {list} in {result}"));
    items.iter().map(|item| item["name"].as_str().or(item["uri"].as_str()).unwrap_or_default().to_owned()).collect()
}
