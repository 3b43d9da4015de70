//! Plugins whose functions have names of megabytes, which are in the text of a trap.

use e2e::{Folder, Server, is_error, json, text};

use crate::bystander::{config, during, within};

/// Functions that call each other until one of them traps, at the end of many frames with a name of 4 MiB.
fn deep(name: &str) -> String {
    let name = name.repeat((4 << 20) / name.len());
    format!(
        "(memory (export \"memory\") 1)
        (func ${name} (param i32)
            (if (i32.eqz (local.get 0)) (then unreachable))
            (call 0 (i32.sub (local.get 0) (i32.const 1))))
        (func $go (call 0 (i32.const 30)))"
    )
}

/// The limits of the host and of all guests together.
const HOST_MIB: u64 = 128;
const GUESTS_MIB: u64 = 64;

#[tokio::test(flavor = "multi_thread")]
async fn names_of_megabytes_take_no_memory_when_a_call_traps_or_a_listing_does() {
    let folder = Folder::new();
    let plugins = folder.join("plugins");
    config(
        &folder,
        &format!(
            "plugin_dir = {plugins:?}\n[limits]\ntotal_memory_mib = {GUESTS_MIB}\ntotal_host_memory_mib = {HOST_MIB}\n\
             [plugins.deep]\npath = {:?}\n[plugins.deep.tools.go]\ndescription = \"Traps.\"\nargv = []\n",
            folder.join("deep.wasm")
        ),
    );
    let command = format!("(module {} (export \"_start\" (func $go)))", deep("name"));
    folder.write("deep.wasm", wat::parse_str(command).unwrap());
    folder.plugin("hello");
    let server = Server::loaded(&folder).await;
    let mut session = server.legacy("2025-11-25", json!({})).await;
    during(&mut session, "calls that trap", async {
        for _ in 0..3 {
            let call = json!({ "name": "deep_go", "arguments": {} });
            let result = server.modern("tools/call", call, json!({})).await.unwrap();
            assert!(is_error(&result) && text(&result).contains("it gave up"), "{result}");
        }
    })
    .await;
    let log = server.wait_for_log(&"name".repeat(64)).await;
    assert!(!log.contains(&"name".repeat(65)), "{log}");
    // A file is listed as soon as it is there, without a call.
    let listed = format!(
        "(component (core module $m {} (start $go) (func (export \"f\")))
            (core instance $i (instantiate $m))
            (func $f (canon lift (core func $i \"f\")))
            (instance $tools (export \"list-tools\" (func $f)) (export \"call-tool\" (func $f)))
            (export \"wharf:plugin/tools@0.1.0\" (instance $tools)))",
        deep("list")
    );
    let listed = wat::parse_str(listed).unwrap();
    during(&mut session, "a listing that traps", async {
        folder.write("plugins/listed.wasm", listed);
        server.wait_for_log("the plugin fails when asked what it offers").await;
    })
    .await;
    within(&server, HOST_MIB + GUESTS_MIB, "long names");
    let log = server.log();
    assert!(log.len() < 1 << 20, "{} bytes of log", log.len());
}
