//! `instances = "reused"`: which state a call finds from earlier calls, and when it is dropped. The tool `remember` reports how often its
//! instance was called, and how many files it has open.

use e2e::{Folder, Pipe, Server, Value, http::modern_headers, is_error, json, modern_params, plugin, text, together};

/// The hostile plugin, with reused instances.
fn config(folder: &Folder, more: &str) {
    folder.config(&format!(
        "[plugins.hostile]\npath = {:?}\nprefix = \"\"\ninstances = \"reused\"\n{more}",
        plugin("hostile")
    ));
}

fn count(result: &Value) -> &str {
    text(result).split(' ').next().unwrap()
}

async fn remember(pipe: &mut Pipe, arguments: Value) -> String {
    let result = pipe.call("remember", arguments).await;
    count(&result).to_owned()
}

async fn pipe(folder: &Folder) -> Pipe {
    let mut pipe = Pipe::start(folder, &["run"]);
    pipe.legacy("2025-11-25", json!({})).await;
    pipe
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_finds_what_its_own_calls_left_and_nobody_else_does() {
    let folder = Folder::new();
    config(&folder, "");
    let server = Server::start(&folder, &[]).await;
    let mut one = server.legacy("2025-11-25", json!({})).await;
    let mut other = server.legacy("2025-06-18", json!({})).await;
    for expected in ["1", "2", "3"] {
        assert_eq!(count(&one.call("remember", json!({})).await), expected);
        assert_eq!(count(&other.call("remember", json!({})).await), expected);
        // Anonymous clients cannot be distinguished, so instances are not reused for them.
        let params = json!({ "name": "remember", "arguments": {} });
        assert_eq!(count(&server.modern("tools/call", params, json!({})).await.unwrap()), "1");
    }
    let mut new = server.legacy("2025-11-25", json!({})).await;
    assert_eq!(count(&new.call("remember", json!({})).await), "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_key_every_call_is_the_first() {
    let folder = Folder::new();
    folder
        .config(&format!("[plugins.hostile]\npath = {:?}\nprefix = \"\"\ninstances = \"fresh\"\n", plugin("hostile")));
    let mut pipe = pipe(&folder).await;
    for _ in 0..3 {
        assert_eq!(remember(&mut pipe, json!({})).await, "1");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_anything_but_an_answer_of_its_own_an_instance_is_not_used_again() {
    let folder = Folder::new();
    config(&folder, "[limits]\ntimeout_ms = 1500\noutput_kib = 64\nmemory_mib = 16\n");
    let mut pipe = pipe(&folder).await;
    for (tool, arguments) in [
        ("trap", json!({})),
        ("panic", json!({ "message": "x" })),
        ("exit", json!({ "code": 0 })),
        ("spin", json!({})),
        ("sleep", json!({ "ms": 60_000 })),
        ("big", json!({ "bytes": 100_000 })),
        ("allocate", json!({ "mib": 20 })),
        ("recurse", json!({})),
    ] {
        assert_eq!(remember(&mut pipe, json!({})).await, "1", "before {tool}");
        assert!(is_error(&pipe.call(tool, arguments).await), "{tool}");
        assert_eq!(remember(&mut pipe, json!({})).await, "1", "after {tool}");
        let failed = pipe.call("remember", json!({ "fail": true })).await;
        assert!(is_error(&failed) && text(&failed).contains("as told"), "{failed}");
        assert_eq!(remember(&mut pipe, json!({})).await, "3", "a failure that the plugin tells of is an answer");
        pipe.call("trap", json!({})).await;
    }
    assert_eq!(remember(&mut pipe, json!({})).await, "1");
    let arguments = json!({ "name": "remember", "arguments": { "ms": 60_000 } });
    let sleeping = pipe.begin("tools/call", arguments).await;
    pipe.notification("notifications/message").await;
    pipe.cancel(&sleeping).await;
    // The cancelled call used the warm instance.
    assert_eq!(remember(&mut pipe, json!({})).await, "1", "after a cancelled call");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_that_only_grows_is_let_go_before_it_fails() {
    let folder = Folder::new();
    config(&folder, "[plugins.hostile.limits]\nmemory_mib = 16\n");
    let mut pipe = pipe(&folder).await;
    let mut counts = Vec::new();
    for _ in 0..12 {
        counts.push(remember(&mut pipe, json!({ "bytes": 2 << 20 })).await.parse::<u32>().unwrap());
    }
    let most = *counts.iter().max().unwrap();
    assert!((2..8).contains(&most), "{counts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_what_the_client_opened_ends_what_was_kept() {
    let folder = Folder::new();
    let open = |name: &str| {
        folder.write(&format!("code/{name}/in.txt"), name);
        format!("file://{}", folder.join(&format!("code/{name}")).display())
    };
    let (one, other) = (open("one"), open("other"));
    config(&folder, "[plugins.hostile.grants]\nroots = \"read\"\n[roots]\nwithin = [\"../../code\"]\n");
    let roots = |uris: &[&String]| {
        let answer = json!({ "roots": uris.iter().map(|uri| json!({ "uri": uri })).collect::<Vec<_>>() });
        move |method: &str, _: &Value| (method == "roots/list").then(|| answer.clone())
    };
    let path = json!({ "path": folder.join("code/one/in.txt"), "files": 1 });
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.answer_with(roots(&[&one]));
    pipe.legacy("2025-11-25", json!({ "roots": { "listChanged": true } })).await;
    for expected in ["1 1", "2 2", "3 3"] {
        assert_eq!(text(&pipe.call("remember", path.clone()).await), expected);
    }
    for (uris, expected) in [
        (vec![&one, &other], "1 1"),
        (vec![&other], "1 0"),
        (vec![&one], "1 1"),
        // An identical config is not a change.
        (vec![&one], "2 2"),
    ] {
        pipe.answer_with(roots(&uris));
        pipe.notify("notifications/roots/list_changed", json!({})).await;
        assert_eq!(text(&pipe.call("remember", path.clone()).await), expected, "{uris:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_ends_what_was_kept() {
    let folder = Folder::new();
    config(&folder, "");
    let mut pipe = pipe(&folder).await;
    assert_eq!(remember(&mut pipe, json!({})).await, "1");
    assert_eq!(remember(&mut pipe, json!({})).await, "2");
    config(&folder, "config = { changed = true }\ntools = [\"remember\"]\n");
    pipe.notification("notifications/tools/list_changed").await;
    assert_eq!(remember(&mut pipe, json!({})).await, "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_at_once_have_an_instance_each() {
    let folder = Folder::new();
    config(&folder, "[http]\ntoken.env = \"TOKEN\"\n");
    let server = Server::start_with(&folder, &[], &[("TOKEN", "a-secret-of-tests")]).await;
    let params = modern_params(json!({ "name": "remember", "arguments": {} }), json!({}));
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let headers = modern_headers(&body);
    let mut headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    headers.push(("Authorization", "Bearer a-secret-of-tests"));
    let calls = (0..64).map(|_| {
        let (server, headers, body) = (&server, &headers, &body);
        async move { count(&server.post(headers, body).await.json().await["result"]).parse::<u32>().unwrap() }
    });
    let mut counts = together(calls).await;
    counts.sort_unstable();
    // As many calls begin as there are instances, and each instance counts each call once.
    for count in 2..=*counts.last().unwrap() {
        let (this, before) =
            (counts.iter().filter(|one| **one == count), counts.iter().filter(|one| **one == count - 1));
        assert!(this.count() <= before.count(), "{counts:?}");
    }
    assert!(counts.contains(&2), "{counts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_only_kept_makes_room_for_what_runs() {
    let folder = Folder::new();
    config(&folder, "[plugins.hostile.limits]\nmemory_mib = 16\n[limits]\ntotal_memory_mib = 31\n");
    let server = Server::start(&folder, &[]).await;
    let mut keeps = server.legacy("2025-11-25", json!({})).await;
    let mut needs = server.legacy("2025-11-25", json!({})).await;
    assert_eq!(count(&keeps.call("remember", json!({ "bytes": 3 << 20 })).await), "1");
    assert_eq!(count(&keeps.call("remember", json!({})).await), "2");
    let result = needs.call("allocate", json!({ "mib": 13 })).await;
    assert_eq!(text(&result), "holds 13 MiB");
    assert_eq!(count(&keeps.call("remember", json!({})).await), "1");
}
