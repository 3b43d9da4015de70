//! The memory plugin: concurrent writers, files left by other programs, and notifications of changes.

use e2e::{Folder, Pipe, is_error, json, plugin, text, together};
use serde_json::Value;

const URI: &str = "memory://knowledge-graph";

/// Creates a folder with a config that lets the plugin write its file in `memory`.
fn folder(more: &str) -> Folder {
    let folder = Folder::new();
    folder.write("memory/README", "");
    let host = folder.join("memory");
    folder.config(&format!(
        "[plugins.memory]\npath = {:?}\nprefix = \"\"\n{more}\n[plugins.memory.grants]\n\
         dirs = [{{ host = {host:?}, guest = \"/memory\", access = \"read-write\" }}]\n",
        plugin("memory")
    ));
    folder
}

async fn pipe(folder: &Folder) -> Pipe {
    let mut pipe = Pipe::start(folder, &["run"]);
    pipe.legacy("2025-11-25", json!({})).await;
    pipe
}

fn entity(name: &str) -> Value {
    json!({ "entities": [{ "name": name, "entityType": "thing", "observations": [] }] })
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_that_two_processes_write_at_once() {
    const EACH: usize = 20;
    let folder = folder("");
    together(["a", "b"].map(async |name| {
        let mut pipe = pipe(&folder).await;
        let mut ids = Vec::new();
        for number in 0..EACH {
            let params = json!({ "name": "create_entities", "arguments": entity(&format!("{name}{number}")) });
            ids.push(pipe.begin("tools/call", params).await);
        }
        for id in ids {
            let result = pipe.answer(&id).await.unwrap();
            assert!(!is_error(&result), "{result}");
        }
        pipe.close().await;
    }))
    .await;
    let mut pipe = pipe(&folder).await;
    let graph = pipe.call("read_graph", json!({})).await;
    let graph: Value = serde_json::from_str(text(&graph)).unwrap();
    assert_eq!(graph["entities"].as_array().unwrap().len(), 2 * EACH);
    pipe.close().await;
    let mut left: Vec<_> =
        std::fs::read_dir(folder.join("memory")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["README", "memory.jsonl"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn subscribers_hear_of_changes_and_of_nothing_else() {
    let folder = folder("config = { file = \"own.jsonl\" }");
    let mut pipe = pipe(&folder).await;
    pipe.request("resources/subscribe", json!({ "uri": URI })).await.unwrap();
    pipe.call("create_entities", entity("Ann")).await;
    let told = pipe.notification("notifications/resources/updated").await;
    assert_eq!(told["params"]["uri"], URI);
    // These change nothing, so no notification is sent.
    pipe.call("create_entities", entity("Ann")).await;
    pipe.call("delete_entities", json!({ "entityNames": ["Bob"] })).await;
    pipe.call("add_observations", json!({ "observations": [{ "entityName": "Ann", "contents": ["tall"] }] })).await;
    pipe.notification("notifications/resources/updated").await;
    assert!(pipe.inbox().iter().all(|message| message["method"] != "notifications/resources/updated"));
    let read = pipe.request("resources/read", json!({ "uri": URI })).await.unwrap();
    assert!(read["contents"][0]["text"].as_str().unwrap().contains("tall"), "{read}");
    assert!(folder.join("memory/own.jsonl").is_file());
    pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_was_left_and_a_file_that_is_damaged_are_survived() {
    let folder = folder("");
    folder.write("memory/memory.jsonl.lock", "left");
    folder.set_mode("memory/memory.jsonl.lock", 0o600);
    let mut pipe = pipe(&folder).await;
    let result = pipe.call("create_entities", entity("Ann")).await;
    assert!(!is_error(&result), "{result}");
    let damaged = "{\"type\":\"note\"}\n{\"type\":";
    folder.write("memory/memory.jsonl", damaged);
    let result = pipe.call("create_entities", entity("Bob")).await;
    assert!(is_error(&result) && text(&result).contains("memory.jsonl: line 2 is damaged"), "{result}");
    assert_eq!(std::fs::read_to_string(folder.join("memory/memory.jsonl")).unwrap(), damaged);
    pipe.close().await;
}
