//! JSON of plugins, which is far larger in memory than as a text, and what plugins say of their failures.

use e2e::{Folder, Server, is_error, json, plugin, text};

use crate::bystander::{config, during, within};

/// The limits for wharf's own memory for plugins and clients, and for all guests together.
const HOST_MIB: u64 = 256;
const GUESTS_MIB: u64 = 256;

fn limited(folder: &Folder, guests_mib: u64, plugins: &str) {
    config(
        folder,
        &format!("[limits]\ntotal_memory_mib = {guests_mib}\ntotal_host_memory_mib = {HOST_MIB}\n{plugins}"),
    );
}

/// Each plugin may return one large result at a time, so this needs several plugins.
#[tokio::test(flavor = "multi_thread")]
async fn results_of_several_plugins_become_no_larger_than_there_is_memory() {
    let folder = Folder::new();
    let plugins: String = (0..8).map(|at| format!("[plugins.h{at}]\npath = {:?}\n", plugin("hostile"))).collect();
    limited(&folder, GUESTS_MIB, &plugins);
    let server = Server::loaded(&folder).await;
    let mut session = server.legacy("2025-11-25", json!({})).await;
    let results = during(&mut session, "results of eight plugins", async {
        let call = |at: usize| {
            json!({ "name": format!("h{at}_structured_array"), "arguments": { "item": "{\"\":0}", "n": 590_000 } })
        };
        e2e::together((0..8).map(|at| server.modern("tools/call", call(at), json!({})))).await
    })
    .await;
    for result in results {
        let result = result.unwrap();
        let refused = text(&result).contains("not enough memory") || text(&result).contains("memory of all running");
        assert!(is_error(&result) && refused, "{}", text(&result));
    }
    within(&server, HOST_MIB + GUESTS_MIB, "results of eight plugins");
    let call = json!({ "name": "h0_structured_array", "arguments": { "item": "{\"\":0}", "n": 50_000 } });
    let result = server.modern("tools/call", call, json!({})).await.unwrap();
    assert_eq!(result["structuredContent"]["all"].as_array().map(Vec::len), Some(50_000), "there is room again");
}

/// Each value in a list of a server's becomes a block or an entry.
#[tokio::test(flavor = "multi_thread")]
async fn lists_of_servers_become_no_larger_than_there_is_memory() {
    let folder = Folder::new();
    let served = |id: &str, path: &str| {
        format!("[plugins.{id}]\npath = {:?}\nadapter = \"http\"\nendpoint = {path:?}\n", plugin("http-server"))
    };
    // One call at a time leaves memory for the other client.
    let few = "limits = { concurrency = 1 }\n";
    limited(&folder, GUESTS_MIB, &[&served("s", "/mcp"), few, &served("many", "/many-entries"), few].concat());
    let server = Server::loaded(&folder).await;
    server.wait_for_log("memory of all running calls").await;
    let call = json!({ "name": "s_mistake", "arguments": { "name": "many-values" } });
    // They use up what their client may have, so its other calls would be refused too.
    let results = e2e::together((0..6).map(|_| server.modern("tools/call", call.clone(), json!({})))).await;
    for result in results {
        let result = result.unwrap();
        assert!(is_error(&result) && text(&result).contains("memory of all running calls"), "{}", text(&result));
    }
    within(&server, HOST_MIB + GUESTS_MIB, "lists of servers");
}

/// A failure, and a mistake that the parser quotes.
#[tokio::test(flavor = "multi_thread")]
async fn what_plugins_say_of_failures_is_cut() {
    let folder = Folder::new();
    let failing = |at: usize| {
        format!("[plugins.f{at}]\npath = {:?}\nconfig = {{ mode = \"long_failure\" }}\n", plugin("badlist"))
    };
    let failing: String = (0..10).map(failing).collect();
    limited(&folder, GUESTS_MIB, &format!("{failing}[plugins.hostile]\npath = {:?}\n", plugin("hostile")));
    let server = Server::loaded(&folder).await;
    server.wait_for_nth_log("does not load", 10).await;
    let mut session = server.legacy("2025-11-25", json!({})).await;
    let more = format!("\"{}\"", "x".repeat(3 << 20));
    let result = session.call("hostile_bad_more", json!({ "more": more })).await;
    assert!(is_error(&result) && text(&result).contains("`more` is not a JSON object"), "{}", text(&result).len());
    server.wait_for_log("a defect of the plugin").await;
    let (said, log) = (text(&result).len(), server.log().len());
    println!("{said} bytes of an answer, {log} bytes of log");
    assert!(said < 4 << 10 && log < 128 << 10, "{said} bytes of an answer, {log} bytes of log");
}

/// Who can make a plugin fail chooses how often the log says so, up to a point.
#[tokio::test(flavor = "multi_thread")]
async fn the_log_says_the_same_of_a_plugin_only_so_often() {
    let folder = Folder::new();
    let hostile = plugin("hostile").display().to_string();
    let mut pipe = e2e::Pipe::start(&folder, &["run", &hostile]);
    pipe.legacy("2025-11-25", json!({})).await;
    for at in 0..200 {
        let result = pipe.call("hostile_panic", json!({ "message": format!("{at} {}", "m".repeat(1000)) })).await;
        assert!(is_error(&result), "{result}");
    }
    let log = pipe.close().await.log;
    let (failed, seconds) = (log.matches("a call failed").count(), 60);
    assert!((50..50 + seconds).contains(&failed), "{failed} lines");
}
