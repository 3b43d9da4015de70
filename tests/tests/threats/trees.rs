//! JSON of plugins, which is far larger in memory than as a text, and what plugins say of their failures.

use e2e::{Folder, Server, is_error, json, plugin, text};

use crate::bystander::config;

/// The limits for wharf's own memory for plugins and clients, and for all guests together.
const HOST_MIB: u64 = 256;
const GUESTS_MIB: u64 = 256;

fn limited(folder: &Folder, guests_mib: u64, plugins: &str) {
    config(
        folder,
        &format!("[limits]\ntotal_memory_mib = {guests_mib}\ntotal_host_memory_mib = {HOST_MIB}\n{plugins}"),
    );
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
