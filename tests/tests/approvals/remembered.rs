//! Approvals that are valid for more than one call.

use e2e::{
    Folder, Pipe, Server, Value,
    folder::{stderr, stdout},
    is_error, json,
};

use crate::{Questions, accept, answering, asked, can_ask, choices, files, renew, write, written};

/// Whether the call of `write_file` for this file of the project is made.
async fn writes(client: &mut Pipe, folder: &Folder, name: &str) -> bool {
    std::fs::create_dir_all(folder.join("project").join(name).parent().unwrap()).unwrap();
    let result = client.call("write_file", write(folder, name, "text")).await;
    assert_eq!(is_error(&result), written(folder, name).is_none(), "{name}: {result}");
    !is_error(&result)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_remembers_what_it_was_told_and_no_more() {
    for (chosen, elsewhere) in [("session", false), ("session-any", true)] {
        let folder = Folder::new();
        files(&folder, "confirm = \"writes\"", "");
        let server = Server::loaded(&folder).await;
        let mut one = server.legacy("2025-11-25", can_ask()).await;
        let mut other = server.legacy("2025-06-18", can_ask()).await;
        let remembering = move |_: &str, _: &Value| Some(accept(json!({ "remember": chosen })));
        let declining = |_: &str, _: &Value| Some(json!({ "action": "decline" }));
        one.answer_with(remembering);
        other.answer_with(declining);
        for name in ["notes", "notes2"] {
            std::fs::create_dir(folder.join("project").join(name)).unwrap();
        }
        assert!(!is_error(&one.call("write_file", write(&folder, "notes/a.txt", "1")).await));
        one.answer_with(declining);
        for (name, expected) in [
            ("notes/b.txt", true),
            ("notes/a.txt", true),
            ("b.txt", elsewhere),
            ("notes2/b.txt", elsewhere),
            ("notes/../c.txt", elsewhere),
        ] {
            let result = one.call("write_file", write(&folder, name, "2")).await;
            assert_eq!(!is_error(&result), expected, "{chosen}, {name}: {result}");
        }
        // Another tool is another kind of call, and another session may belong to another person.
        let made = one.call("create_directory", json!({ "path": folder.join("project/notes/d") })).await;
        assert!(is_error(&made), "{made}");
        assert!(is_error(&other.call("write_file", write(&folder, "notes/c.txt", "3")).await));
        assert_eq!(written(&folder, "notes/c.txt"), None);
        server.terminate().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whom_nobody_knows_again_is_offered_nothing_to_remember() {
    let folder = Folder::new();
    files(&folder, "confirm = \"writes\"", "[approvals]\nremember = \"always\"");
    let server = Server::loaded(&folder).await;
    let arguments = write(&folder, "a.txt", "one");
    let params = json!({ "name": "write_file", "arguments": arguments });
    let (question, state) = asked(&server.modern("tools/call", params.clone(), can_ask()).await.unwrap());
    assert!(choices(&question).is_empty(), "{question}");
    // The person cannot choose a duration that is not offered.
    let params = answering("write_file", &arguments, &state, &accept(json!({ "remember": "session" })));
    let error = server.modern("tools/call", params, can_ask()).await.unwrap_err();
    assert_eq!(error["code"], -32602, "{error}");
    assert_eq!(written(&folder, "a.txt"), None);
    server.terminate().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_modern_client_of_a_known_person_is_remembered_while_wharf_runs() {
    let folder = Folder::new();
    files(&folder, "confirm = \"writes\"", "");
    let mut pipe = Pipe::start(&folder, &["run"]);
    let arguments = write(&folder, "a.txt", "one");
    let params = json!({ "name": "write_file", "arguments": arguments });
    let (question, state) = asked(&pipe.modern("tools/call", params.clone(), can_ask()).await.unwrap());
    assert_eq!(choices(&question), ["once", "session", "session-any"]);
    let answer = answering("write_file", &arguments, &state, &accept(json!({ "remember": "session" })));
    assert!(!is_error(&pipe.modern("tools/call", answer, can_ask()).await.unwrap()));
    let again = json!({ "name": "write_file", "arguments": write(&folder, "a.txt", "two") });
    assert!(!is_error(&pipe.modern("tools/call", again.clone(), can_ask()).await.unwrap()));
    assert_eq!(written(&folder, "a.txt").as_deref(), Some("two"));
    // The operator no longer allows this duration.
    renew(&folder, &pipe, 2, |config| format!("[approvals]\nremember = \"never\"\n{config}")).await;
    let (question, _) = asked(&pipe.modern("tools/call", again, can_ask()).await.unwrap());
    assert!(choices(&question).is_empty(), "{question}");
    pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_for_good_is_good_until_it_is_revoked() {
    let folder = Folder::new();
    files(&folder, "confirm = \"writes\"", "[approvals]\nremember = \"always\"\n[audit]\nfile = \"audit.jsonl\"");
    let none = folder.run(&["approvals", "list"], &[]).await;
    assert_eq!(stdout(&none), "there are no permanent approvals\n", "{}", stderr(&none));
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy("2025-11-25", can_ask()).await;
    let questions = Questions::answered(&mut pipe, accept(json!({ "remember": "always" })));
    assert!(writes(&mut pipe, &folder, "notes/a.txt").await);
    assert_eq!(choices(&questions.last()), ["once", "session", "always", "session-any", "always-any"]);
    let titles = questions.last()["requestedSchema"]["properties"]["remember"]["oneOf"].to_string();
    assert!(
        titles.contains("Until you revoke it by `wharf approvals`: `write_file` with `path` in `")
            && titles.contains("project/notes`"),
        "{titles}"
    );
    let file = folder.join("home/.local/state/wharf/approvals.jsonl");
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&file).unwrap());
    assert_eq!(mode & 0o777, 0o600);
    pipe.close().await;

    // The approval is valid after a restart.
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy("2025-11-25", can_ask()).await;
    let questions = Questions::answered(&mut pipe, json!({ "action": "decline" }));
    assert!(writes(&mut pipe, &folder, "notes/b.txt").await);
    assert_eq!(questions.count(), 0);
    assert!(!writes(&mut pipe, &folder, "b.txt").await);
    assert_eq!(questions.count(), 1);

    let listed = stdout(&folder.run(&["approvals", "list"], &[]).await);
    let id = listed.split(' ').next().unwrap().to_owned();
    for part in ["write_file", "plugin files", "for process", "calls with `path` in `", "project (read-write)"] {
        assert!(listed.contains(part), "{part}: {listed}");
    }
    let json: Value = serde_json::from_str(&stdout(&folder.run(&["approvals", "list", "--json"], &[]).await)).unwrap();
    assert_eq!((&json["id"], &json["name"]), (&json!(id), &json!("write_file")));
    assert_eq!(folder.run(&["approvals", "revoke", "nothing"], &[]).await.status.code(), Some(1));
    assert_eq!(folder.run(&["approvals", "revoke"], &[]).await.status.code(), Some(2));
    let revoked = folder.run(&["approvals", "revoke", &id], &[]).await;
    assert!(revoked.status.success(), "{}", stderr(&revoked));
    // A running wharf asks again at once.
    assert!(!writes(&mut pipe, &folder, "notes/c.txt").await);
    assert_eq!(questions.count(), 2);
    pipe.close().await;

    let log = std::fs::read_to_string(folder.join("config/wharf/audit.jsonl")).unwrap();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let calls: Vec<(&str, &str)> = lines
        .iter()
        .filter(|line| line["event"] == "call")
        .map(|line| (line["outcome"].as_str().unwrap(), line["wharf.approval"].as_str().unwrap_or_default()))
        .collect();
    assert_eq!(calls, [("done", "client"), ("done", "always"), ("refused", "refused"), ("refused", "refused")]);
    let remembered: Vec<&Value> = lines.iter().filter(|line| line["event"] == "approval.remembered").collect();
    assert_eq!(remembered.len(), 1, "{log}");
    assert_eq!(
        (&remembered[0]["wharf.name"], &remembered[0]["wharf.approval"]),
        (&json!("write_file"), &json!("always"))
    );
}

/// No plugin may write the file of approvals, even if it is granted the folder that contains it.
#[tokio::test(flavor = "multi_thread")]
async fn no_plugin_may_write_the_approvals() {
    let folder = Folder::new();
    folder.plugin("files");
    let state = folder.join("home/.local/state/wharf");
    std::fs::create_dir_all(&state).unwrap();
    let home = folder.join("home/.local");
    folder.config(&format!(
        "[plugins.files]\npath = \"../../plugins/files.wasm\"\nprefix = \"\"\n[plugins.files.grants]\n\
         dirs = [{{ host = {home:?}, access = \"read-write\" }}]\n"
    ));
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy("2025-11-25", json!({})).await;
    let arguments = json!({ "path": state.join("approvals.jsonl").display().to_string(), "content": "{}" });
    assert!(is_error(&pipe.call("write_file", arguments).await));
    assert!(!state.join("approvals.jsonl").exists());
    pipe.close().await;
}
