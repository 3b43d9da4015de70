//! Plugins that keep state in memory, as existing MCP servers do: all calls of a client run in one instance, one after the other, and what
//! ends the instance is told. The tool `remember` reports how often its instance was called.

use std::fs;

use e2e::{Folder, Pipe, Server, Value, folder::stdout, is_error, json, plugin, text, together, with_sections};

const SAID: &str = "The server `hostile` was started again";

/// Writes the hostile plugin to `p/hostile.wasm`, with the section that says that it keeps state. `more`: the name of another section.
fn put(folder: &Folder, more: &str) {
    let component = fs::read(plugin("hostile")).unwrap();
    folder.write("p/hostile.wasm", with_sections(component, &[("wharf:instances", "kept"), (more, "")]));
}

/// A folder with the plugin in the plugin folder, and a table for it.
fn keeping(table: &str) -> Folder {
    let folder = Folder::new();
    put(&folder, "a");
    folder.config(&format!(
        "plugin_dir = \"../../p\"\n[plugins.hostile]\npath = \"../../p/hostile.wasm\"\nprefix = \"\"\n{table}"
    ));
    folder
}

async fn started(folder: &Folder) -> Pipe {
    let mut pipe = Pipe::start(folder, &["run"]);
    pipe.legacy("2025-11-25", json!({})).await;
    pipe
}

/// Returns the number of calls in an instance, and what wharf says besides.
fn counted(result: &Value) -> (u32, Option<String>) {
    let count = text(result).split(' ').next().unwrap().parse().unwrap();
    (count, result["content"][1]["text"].as_str().map(str::to_owned))
}

async fn remember(pipe: &mut Pipe) -> (u32, Option<String>) {
    counted(&pipe.call("remember", json!({})).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_client_has_an_instance_of_its_own_unless_the_operator_says_otherwise() {
    let folder = keeping("");
    let server = Server::start(&folder, &[]).await;
    let mut one = server.legacy("2025-11-25", json!({})).await;
    let mut other = server.legacy("2025-06-18", json!({})).await;
    for expected in 1..4 {
        assert_eq!(counted(&one.call("remember", json!({})).await), (expected, None));
        assert_eq!(counted(&other.call("remember", json!({})).await), (expected, None));
        let params = json!({ "name": "remember", "arguments": {} });
        let anonymous = server.modern("tools/call", params, json!({})).await.unwrap();
        assert_eq!(counted(&anonymous), (1, None), "who cannot be told apart shares nothing");
    }
    let shown = stdout(&folder.run(&["check"], &[]).await);
    assert!(shown.contains("instances: one for each client"), "{shown}");
    for (table, arguments, expected) in [
        ("", &["run"][..], 2),
        ("instances = \"reused\"\n", &["run"], 2),
        ("instances = \"fresh\"\n", &["run"], 1),
        ("", &["run", "--prefix", "", "p/hostile.wasm"], 2),
        ("", &["run", "--prefix", "", "--instances", "fresh", "p/hostile.wasm"], 1),
    ] {
        let folder = keeping(table);
        if arguments.len() > 1 {
            folder.config("");
        }
        let mut pipe = Pipe::start(&folder, arguments);
        pipe.legacy("2025-11-25", json!({})).await;
        assert_eq!(remember(&mut pipe).await, (1, None));
        assert_eq!(remember(&mut pipe).await, (expected, None), "{table} {arguments:?}");
    }
    // A plugin in the plugin folder that the config does not name.
    folder.config("plugin_dir = \"../../p\"\n");
    let mut pipe = started(&folder).await;
    for expected in [1, 2] {
        assert_eq!(counted(&pipe.call("hostile_remember", json!({})).await), (expected, None));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_at_once_see_one_state() {
    let folder = keeping("");
    let server = Server::start(&folder, &[]).await;
    let session = server.legacy("2025-11-25", json!({})).await;
    let calls = (1..40).map(|id| {
        let params = json!({ "name": "remember", "arguments": {} });
        let body = json!({ "jsonrpc": "2.0", "id": id + 100, "method": "tools/call", "params": params });
        let session = &session;
        async move { counted(&session.post(&body).await.response(&body["id"]).await["result"]) }
    });
    let mut counts = together(calls).await;
    counts.sort_unstable();
    assert_eq!(counts, (1..40).map(|count| (count, None)).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ends_the_instance_is_told_once_and_logged() {
    let folder = keeping("[limits]\ntimeout_ms = 1500\noutput_kib = 64\nmemory_mib = 16\n");
    let mut pipe = started(&folder).await;
    assert_eq!(remember(&mut pipe).await, (1, None), "nothing was lost before the first call");
    for (nth, (tool, arguments, why)) in [
        ("trap", json!({}), "after it crashed"),
        ("exit", json!({ "code": 3 }), "after it crashed"),
        ("spin", json!({}), "after a call took too long"),
        ("sleep", json!({ "ms": 60_000 }), "after a call took too long"),
        ("big", json!({ "bytes": 100_000 }), "after a call exceeded a limit"),
        ("allocate", json!({ "mib": 20 }), "after a call exceeded a limit"),
    ]
    .into_iter()
    .enumerate()
    {
        assert!(is_error(&pipe.call(tool, arguments).await), "{tool}");
        pipe.wait_for_nth_log("what it kept in memory for this client is gone", nth + 1).await;
        let said = format!("{SAID} {why}: what it kept in memory is gone.");
        assert_eq!(remember(&mut pipe).await, (1, Some(said)), "{tool}");
        assert_eq!(remember(&mut pipe).await, (2, None), "{tool}");
        let failed = pipe.call("remember", json!({ "fail": true })).await;
        assert!(is_error(&failed), "a failure that the plugin tells of ends nothing");
        assert_eq!(remember(&mut pipe).await, (4, None), "{tool}");
    }
    let sleeping = pipe.begin("tools/call", json!({ "name": "remember", "arguments": { "ms": 60_000 } })).await;
    pipe.notification("notifications/message").await;
    pipe.cancel(&sleeping).await;
    assert_eq!(
        remember(&mut pipe).await,
        (1, Some(format!("{SAID} after a call was stopped: what it kept in memory is gone.")))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_code_config_or_access_is_told() {
    let folder = keeping("");
    let mut pipe = started(&folder).await;
    let changed =
        Some(format!("{SAID} because its code, its config or its access has changed: what it kept in memory is gone."));
    assert_eq!(remember(&mut pipe).await, (1, None));
    assert_eq!(remember(&mut pipe).await, (2, None));
    put(&folder, "b");
    pipe.wait_for_nth_log("serving", 2).await;
    assert_eq!(remember(&mut pipe).await, (1, changed.clone()), "its file");
    let config = fs::read_to_string(folder.join("config/wharf/wharf.toml")).unwrap();
    folder.config(&format!("{config}config = {{ changed = true }}\n"));
    pipe.wait_for_nth_log("serving", 3).await;
    assert_eq!(remember(&mut pipe).await, (1, changed), "its table");
    assert_eq!(remember(&mut pipe).await, (2, None));
    pipe.wait_for_nth_log("what it kept in memory for this client is gone", 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_no_room_is_told() {
    let folder = keeping("[plugins.hostile.limits]\nmemory_mib = 16\n[limits]\ntotal_memory_mib = 31\n");
    let server = Server::start(&folder, &[]).await;
    let mut keeps = server.legacy("2025-11-25", json!({})).await;
    let mut needs = server.legacy("2025-11-25", json!({})).await;
    assert_eq!(counted(&keeps.call("remember", json!({ "bytes": 3 << 20 })).await), (1, None));
    assert_eq!(counted(&keeps.call("remember", json!({})).await), (2, None));
    let said = format!("{SAID} because there was no room for it in memory: what it kept in memory is gone.");
    // Everything that is kept has a quarter of the memory, so this instance cannot be.
    let allocated = needs.call("allocate", json!({ "mib": 13 })).await;
    assert_eq!((text(&allocated), &allocated["content"][1]["text"]), ("holds 13 MiB", &json!(said)));
    assert_eq!(counted(&keeps.call("remember", json!({})).await), (1, Some(said)));
}

/// Where other plugins are dropped at half of their memory, the state of this one stays until its memory is full.
#[tokio::test(flavor = "multi_thread")]
async fn an_instance_with_state_grows_until_it_is_full() {
    let folder = keeping("[plugins.hostile.limits]\nmemory_mib = 24\n");
    let mut pipe = started(&folder).await;
    for expected in 1..8 {
        assert_eq!(counted(&pipe.call("remember", json!({ "bytes": 2 << 20 })).await), (expected, None));
    }
}
