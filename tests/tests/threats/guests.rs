//! A single plugin, with at most a grant to read one folder.

use std::time::{Duration, Instant};

use e2e::{Folder, Server, Value, given, is_error, json, names, plugin, scaled, text};

use crate::bystander::{config, during, within};

/// A chain of definitions, each with so many nested `not`s, which ends in the elements of the value.
fn winding(definitions: usize, nots: usize) -> Value {
    let chain = |at: usize| {
        let next = if at + 1 < definitions {
            json!({ "$ref": format!("#/$defs/d{}", at + 1) })
        } else {
            json!({ "items": { "$ref": "#/$defs/d0" } })
        };
        (0..nots).fold(next, |inner, _| json!({ "not": inner }))
    };
    let definitions: serde_json::Map<String, Value> =
        (0..definitions).map(|at| (format!("d{at}"), chain(at))).collect();
    json!({ "type": "object", "properties": { "v": { "$ref": "#/$defs/d0" } }, "$defs": definitions })
}

fn nested(levels: usize) -> Value {
    json!({ "v": (0..levels).fold(json!([]), |inner, _| json!([inner])) })
}

#[tokio::test(flavor = "multi_thread")]
async fn schemas_that_wind_end_no_process() {
    let folder = Folder::new();
    // The schema found in an audit, and the largest schema that is accepted.
    let audited = given("audited", &json!({ "output": winding(20, 26) }), "");
    let passing = given("passing", &json!({ "output": winding(3, 26), "alone": true }), "");
    config(&folder, &format!("{audited}\n{passing}"));
    let server = Server::loaded(&folder).await;
    server.wait_for_log("nested more than 100 deep").await;
    let mut session = server.legacy("2025-11-25", json!({})).await;
    during(&mut session, "a winding schema", async {
        let call = json!({ "name": "passing_t", "arguments": { "answer": nested(110) } });
        server.modern("tools/call", call, json!({})).await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn schemas_that_multiply_are_refused_and_others_are_ended() {
    let folder = Folder::new();
    let patterns = |tool: usize| {
        let properties: serde_json::Map<String, Value> =
            (0..250).map(|at| (format!("p{at}"), json!({ "pattern": format!("\\w{{8}}{tool}-{at}") }))).collect();
        json!({ "type": "object", "properties": properties })
    };
    let mut all = String::new();
    for tool in 0..8 {
        all.push_str(&given(&format!("p{tool}"), &json!({ "schema": patterns(tool), "alone": true }), ""));
    }
    let many: serde_json::Map<String, Value> =
        (0..1500).map(|at| (format!("p{at}"), json!({ "pattern": format!("\\w{{8}}{at}") }))).collect();
    all.push_str(&given("many", &json!({ "schema": { "type": "object", "properties": many }, "alone": true }), ""));
    let slow = json!({ "type": "object", "properties": { "answer": { "items": { "pattern": "^([^a]{150})*a$" } } } });
    all.push_str(&given(
        "slow",
        &json!({ "schema": slow, "alone": true }),
        "[plugins.slow.limits]\ntimeout_ms = 2000\n",
    ));
    config(&folder, &format!("[limits]\ntotal_host_memory_mib = 512\ntotal_memory_mib = 512\n{all}"));
    let began = Instant::now();
    let server = Server::loaded(&folder).await;
    println!("loaded after {:?}", began.elapsed());
    server.wait_for_log("more than 256 patterns").await;
    let mut session = server.legacy("2025-11-25", json!({})).await;
    during(&mut session, "patterns", async {
        let long = json!({ "name": "slow_t", "arguments": { "answer": ["b".repeat(2_000_000)] } });
        let result = server.modern("tools/call", long, json!({})).await.unwrap();
        assert!(is_error(&result), "{}", text(&result));
    })
    .await;
    within(&server, 1024, "patterns");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_host_keeps_for_a_guest_is_the_guests() {
    let folder = Folder::new();
    let full = folder.join("full");
    std::fs::create_dir_all(&full).unwrap();
    for at in 0..20_000 {
        std::fs::write(full.join(format!("{at:0>200}")), b"").unwrap();
    }
    std::fs::write(full.join("file"), b"some text").unwrap();
    config(
        &folder,
        &format!(
            "[limits]\ntotal_host_memory_mib = 256\ntotal_memory_mib = 1024\n[plugins.hostile]\npath = {:?}\nprefix = \"\"\n\
             [plugins.hostile.grants]\ndirs = [{{ host = {full:?}, guest = \"/full\", access = \"read\" }}]\n",
            plugin("hostile")
        ),
    );
    let server = Server::loaded(&folder).await;
    let mut session = server.legacy("2025-11-25", json!({})).await;
    for (tool, arguments, expected) in [
        ("methods", json!({ "n": 900, "bytes": 4 << 20 }), "900 requests, 900 refused"),
        ("authorities", json!({ "n": 900, "bytes": 4 << 20 }), "900 requests, 900 refused"),
        ("bodies", json!({ "n": 300, "ms": 0 }), "bytes in 300 requests"),
        ("clones", json!({ "n": 900, "bytes": 4000 }), "copies"),
        ("listings", json!({ "n": 60, "path": "/full", "ms": 0 }), "60 open, 180 entries"),
        ("streams", json!({ "n": 1000, "path": "/full/file", "ms": 0 }), " "),
        ("write_wide", json!({ "bytes": 1 << 20 }), "crashed"),
    ] {
        let call = json!({ "name": tool, "arguments": arguments });
        let results = during(&mut session, tool, async {
            let calls = (0..6).map(|_| server.modern("tools/call", call.clone(), json!({})));
            e2e::together(calls).await
        })
        .await;
        for result in results {
            let result = result.unwrap();
            let said = text(&result);
            let refused = said.contains("memory") || said.contains("Out of memory") || said.contains("crashed");
            assert!(said.contains(expected) || refused, "{tool}: {said}");
        }
    }
    within(&server, 1280, "what the host keeps for guests");
}

#[tokio::test(flavor = "multi_thread")]
async fn links_tell_nothing_of_what_is_not_open() {
    let folder = Folder::new();
    let shared = folder.join("shared");
    std::fs::create_dir_all(shared.join("folder")).unwrap();
    std::fs::write(shared.join("file"), b"text").unwrap();
    let own = shared.display().to_string();
    for (name, target) in [
        ("inside", format!("{own}/folder")),
        ("near", "file".into()),
        ("outside", "/etc/hostname".into()),
        ("adjacent", format!("{own}x/file")),
        ("up", format!("{own}/../outside")),
    ] {
        std::os::unix::fs::symlink(target, shared.join(name)).unwrap();
    }
    let config_of = |id: &str, guest: &str| {
        format!(
            "[plugins.{id}]\npath = {:?}\n[plugins.{id}.grants]\ndirs = [{{ host = {shared:?}, access = \"read\"{guest} }}]\n",
            plugin("hostile")
        )
    };
    // With another name than its own, the folder's links reveal nothing that the guest could use.
    let guests = [("same", ""), ("other", ", guest = \"/d\""), ("all", ", guest = \"/\"")];
    config(&folder, &guests.map(|(id, guest)| config_of(id, guest)).concat());
    let server = Server::loaded(&folder).await;
    let mut session = server.legacy("2025-11-25", json!({})).await;
    for (id, path, inside) in [("same", own.as_str(), true), ("other", "/d", false), ("all", "/", false)] {
        let result = session.call(&format!("{id}_identities"), json!({ "path": path })).await;
        let inside = if inside { format!("{own}/folder") } else { "not-permitted".into() };
        let expected = [
            "adjacent true not-permitted",
            "file true ",
            "folder true ",
            &format!("inside true {inside}"),
            "near true file",
            "outside true not-permitted",
            "up true not-permitted",
        ];
        assert_eq!(text(&result), expected.join("\n"), "{id}");
    }
}

/// Pipes in place of files, and links to pipes: no thread waits for their other end.
#[tokio::test(flavor = "multi_thread")]
async fn pipes_among_files_hold_no_thread() {
    let folder = Folder::new();
    let shared = folder.join("shared");
    std::fs::create_dir_all(&shared).unwrap();
    let made = std::process::Command::new("mkfifo").arg(shared.join("pipe")).status().unwrap();
    assert!(made.success());
    std::os::unix::fs::symlink("pipe", shared.join("link")).unwrap();
    std::fs::write(shared.join("file"), b"text").unwrap();
    config(
        &folder,
        &format!(
            "[plugins.hostile]\npath = {:?}\nprefix = \"\"\n[plugins.hostile.limits]\ntimeout_ms = 5000\n\
             [plugins.hostile.grants]\ndirs = [{{ host = {shared:?}, guest = \"/d\", access = \"read-write\" }}]\n",
            plugin("hostile")
        ),
    );
    let server = Server::loaded(&folder).await;
    let mut session = server.legacy("2025-11-25", json!({})).await;
    for (tool, arguments, expected) in [
        ("open_many", json!({ "n": 2, "path": "/d/pipe", "ms": 0 }), "0 "),
        ("open_many", json!({ "n": 2, "path": "/d/link", "ms": 0 }), "0 "),
        ("touch", json!({ "path": "/d/pipe" }), "refused"),
        ("touch", json!({ "path": "/d/link" }), "refused"),
        ("touch", json!({ "path": "/d/file" }), "touched"),
        ("read_after", json!({ "path": "/d/file", "ms": 0 }), "text"),
    ] {
        let began = Instant::now();
        let result = session.call(tool, arguments).await;
        assert!(text(&result).starts_with(expected), "{tool}: {}", text(&result));
        assert!(began.elapsed() < scaled(Duration::from_secs(3)), "{tool} took {:?}", began.elapsed());
    }
    // Swapped while it is opened, again and again.
    let swapping = {
        let shared = shared.clone();
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                std::fs::rename(shared.join("file"), shared.join("was")).unwrap();
                std::fs::rename(shared.join("pipe"), shared.join("file")).unwrap();
                std::fs::rename(shared.join("file"), shared.join("pipe")).unwrap();
                std::fs::rename(shared.join("was"), shared.join("file")).unwrap();
            }
        });
        (stop, thread)
    };
    during(&mut session, "a pipe in a file's place", async {
        for _ in 0..20 {
            let call = json!({ "name": "open_many", "arguments": { "n": 100, "path": "/d/file", "ms": 0 } });
            let began = Instant::now();
            let result = server.modern("tools/call", call, json!({})).await.unwrap();
            assert!(!is_error(&result) && began.elapsed() < scaled(Duration::from_secs(3)), "{result}");
        }
    })
    .await;
    drop(swapping.0);
    swapping.1.join().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_of_the_config_reach_neither_clients_nor_logs() {
    let folder = Folder::new();
    config(
        &folder,
        &format!(
            "[plugins.bad]\npath = {:?}\nconfig = {{ mode = \"panic_config\", token = {{ env = \"WHARF_TEST_TOKEN\" }} }}\n",
            plugin("badlist")
        ),
    );
    let secret = "s3cr3t-\"quoted\"-value";
    let server = Server::start_with(&folder, &[], &[("WHARF_TEST_TOKEN", secret)]).await;
    let session = server.legacy("2025-11-25", json!({})).await;
    let mut stream = session.stream().await;
    server.wait_for_log("does not load").await;
    server.wait_for_log("[secret]").await;
    // Subscribers are notified again when the failure changes.
    config(
        &folder,
        &format!(
            "[plugins.bad]\npath = {:?}\nconfig = {{ mode = \"panic_config\", more = \"x\", token = {{ env = \"WHARF_TEST_TOKEN\" }} }}\n",
            plugin("badlist")
        ),
    );
    loop {
        let message = stream.event().await.expect("the failure is told");
        assert!(!message.to_string().contains("s3cr3t"), "{message}");
        if message["method"] == "notifications/message" {
            let said = message["params"]["data"].as_str().unwrap();
            assert!(said.contains("`bad` does not load (list)"), "{said}");
            break;
        }
    }
    assert!(!server.log().contains("s3cr3t"), "{}", server.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_plugin_takes_over_what_another_serves() {
    let folder = Folder::new();
    // `first` has the template note:///{+x}; the other plugin lists note:///a.
    let later = format!("[plugins.later]\npath = {:?}\nconfig = {{ mode = \"ansi\" }}\n", plugin("badlist"));
    config(&folder, &format!("{}\n{later}", given("first", &json!({}), "")));
    let server = Server::loaded(&folder).await;
    let served = server.modern("resources/list", json!({}), json!({})).await.unwrap();
    let templates = server.modern("resources/templates/list", json!({}), json!({})).await.unwrap();
    println!("{served} {templates}");
    let owner = |uri: &str| {
        let entries = served["resources"].as_array().unwrap();
        let entry = entries.iter().find(|entry| entry["uri"] == uri)?;
        Some(entry["_meta"]["dev.wharf/plugin"].as_str().unwrap().to_owned())
    };
    for uri in names(&served, "resources").iter().filter(|uri| uri.starts_with("note:///")) {
        assert_eq!(owner(uri).as_deref(), Some("first"), "{uri}");
    }
    server.wait_for_log("is already taken by the plugin `first`").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn templates_and_updates_hold_up_no_one() {
    let folder = Folder::new();
    config(
        &folder,
        &format!(
            "[limits]\ntotal_host_memory_mib = 512\n[plugins.many]\npath = {0:?}\nconfig = {{ mode = \"templates\", n = 20000 }}\n\
             [plugins.some]\npath = {0:?}\nconfig = {{ mode = \"templates\", n = 250 }}\n{1}",
            plugin("badlist"),
            given("g", &json!({ "alone": true }), "")
        ),
    );
    let server = Server::loaded(&folder).await;
    server.wait_for_log("more than 256 templates").await;
    let mut session = server.legacy("2025-11-25", json!({})).await;
    during(&mut session, "updates of long URIs", async {
        let uri = format!("many:///{}", "x".repeat(8_000));
        let call = json!({ "name": "g_t", "arguments": { "updated": uri, "times": 300 } });
        let calls = (0..4).map(|_| server.modern("tools/call", call.clone(), json!({})));
        for result in e2e::together(calls).await {
            result.unwrap();
        }
    })
    .await;
}
