//! Attempts by clients, models and plugins to get around approvals, and their outcome.

use e2e::{Folder, Pipe, Server, Value, is_error, json, together};

use crate::{accept, answering, asked, asking, can_ask, files, renew, served, write, written};

/// Starts a modern client that was asked about writing `one` into `a.txt`.
async fn begun(confirm: &str) -> (Folder, Pipe, Value, String) {
    let folder = Folder::new();
    files(&folder, confirm, "");
    let mut pipe = Pipe::start(&folder, &["run"]);
    let arguments = write(&folder, "a.txt", "one");
    let params = json!({ "name": "write_file", "arguments": arguments });
    let first = pipe.modern("tools/call", params, can_ask()).await.unwrap();
    let (_, state) = asked(&first);
    (folder, pipe, arguments, state)
}

fn yes() -> Value {
    json!({ "action": "accept" })
}

/// Starts a legacy client whose user has not answered yet whether `one` may be written into `a.txt`. Returns the call and the question.
async fn open_question() -> (Folder, Pipe, Value, Value) {
    let (folder, mut pipe) = asking("confirm = \"writes\"", "2025-11-25").await;
    let params = json!({ "name": "write_file", "arguments": write(&folder, "a.txt", "one") });
    let call = pipe.begin("tools/call", params).await;
    let question = pipe.server_request("elicitation/create").await;
    (folder, pipe, call, question)
}

async fn refused(pipe: &mut Pipe, params: Value) -> String {
    let error = pipe.modern("tools/call", params.clone(), can_ask()).await.expect_err("it is refused");
    assert_eq!(error["code"], -32602, "{params}");
    error["message"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_without_its_question_counts_for_nothing() {
    let (folder, mut pipe, arguments, state) = begun("confirm = \"writes\"").await;
    let unasked = json!({ "name": "write_file", "arguments": arguments, "inputResponses": { "wharf.approve": yes() } });
    assert!(refused(&mut pipe, unasked).await.contains("send it with the `requestState` that came with the question"));
    let other_arguments = write(&folder, "b.txt", "one");
    for params in [
        answering("write_file", &other_arguments, &state, &yes()),
        answering("edit_file", &arguments, &state, &yes()),
        answering("write_file", &arguments, &format!("{state}A"), &yes()),
        answering("write_file", &arguments, "v1.AAAA", &yes()),
    ] {
        assert!(refused(&mut pipe, params).await.contains("belongs to another request, or has expired"));
    }
    for malformed in [json!(true), json!({ "action": "yes" }), accept(json!({ "remember": "forever" }))] {
        let (_, state) = asked(
            &pipe
                .modern("tools/call", json!({ "name": "write_file", "arguments": arguments }), can_ask())
                .await
                .unwrap(),
        );
        refused(&mut pipe, answering("write_file", &arguments, &state, &malformed)).await;
    }
    assert_eq!((written(&folder, "a.txt"), written(&folder, "b.txt")), (None, None));
    pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_is_good_once() {
    let (folder, mut pipe, arguments, state) = begun("confirm = \"writes\"").await;
    let params = answering("write_file", &arguments, &state, &yes());
    let result = pipe.modern("tools/call", params.clone(), can_ask()).await.unwrap();
    assert!(!is_error(&result), "{result}");
    std::fs::remove_file(folder.join("project/a.txt")).unwrap();
    assert!(refused(&mut pipe, params).await.contains("was used already"));
    assert_eq!(written(&folder, "a.txt"), None);
    pipe.close().await;
}

/// Two uses at the same moment do not help either.
#[tokio::test(flavor = "multi_thread")]
async fn of_many_uses_at_once_one_counts() {
    let folder = Folder::new();
    files(&folder, "confirm = \"writes\"", "");
    let server = Server::loaded(&folder).await;
    let arguments = write(&folder, "a.txt", "one");
    let params = json!({ "name": "write_file", "arguments": arguments });
    let (_, state) = asked(&server.modern("tools/call", params, can_ask()).await.unwrap());
    let params = answering("write_file", &arguments, &state, &yes());
    let all = together((0..16).map(|_| server.modern("tools/call", params.clone(), can_ask()))).await;
    assert_eq!(all.iter().filter(|one| one.is_ok()).count(), 1, "{all:?}");
    for error in all.iter().filter_map(|one| one.as_ref().err()) {
        assert!(error["message"].as_str().unwrap().contains("was used already"), "{error}");
    }
    server.terminate().await;
}

/// A call continues in rounds if its plugin asks as well. Each round is accepted once.
#[tokio::test(flavor = "multi_thread")]
async fn the_rounds_after_an_approval_are_good_once() {
    let folder = Folder::new();
    folder.plugin("showcase");
    folder.config(
        "[plugins.show]\npath = \"../../plugins/showcase.wasm\"\nprefix = \"\"\nconfirm = \"all\"\n\
         [plugins.show.grants]\nask = [\"elicitation\"]\n",
    );
    let mut pipe = Pipe::start(&folder, &["run"]);
    let first = pipe.modern("tools/call", json!({ "name": "purge" }), can_ask()).await.unwrap();
    let (_, state) = asked(&first);
    let params = answering("purge", &json!({}), &state, &yes());
    let second = pipe.modern("tools/call", params.clone(), can_ask()).await.unwrap();
    assert!(second["inputRequests"]["sure"].is_object(), "{second}");
    assert!(refused(&mut pipe, params).await.contains("was used already"));
    let answers = json!({ "sure": accept(json!({ "really": true, "reason": "old" })) });
    let params = json!({ "name": "purge", "requestState": second["requestState"], "inputResponses": answers });
    let done = pipe.modern("tools/call", params.clone(), can_ask()).await.unwrap();
    assert_eq!(e2e::text(&done), "deleted: old");
    assert!(refused(&mut pipe, params).await.contains("was used already"));
    // Without the state, answering the plugin's question does not bypass the approval.
    let params = json!({ "name": "purge", "inputResponses": answers });
    let again = pipe.modern("tools/call", params, can_ask()).await.unwrap();
    asked(&again);
    pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_changes_what_was_shown_is_asked_about_it_again() {
    let (folder, mut pipe, arguments, state) = begun("confirm = \"writes\"").await;
    // This call would have more than was shown: another folder.
    let other = folder.join("other");
    std::fs::create_dir_all(&other).unwrap();
    let more = format!("dirs = [{{ host = {other:?}, access = \"read-write\" }}]\n");
    renew(&folder, &pipe, 2, |config| config + &more).await;
    let params = answering("write_file", &arguments, &state, &yes());
    let again = pipe.modern("tools/call", params, can_ask()).await.unwrap();
    let (question, state) = asked(&again);
    assert!(question["message"].as_str().unwrap().contains(&other.display().to_string()), "{question}");
    assert_eq!(written(&folder, "a.txt"), None);
    let params = answering("write_file", &arguments, &state, &yes());
    let result = pipe.modern("tools/call", params, can_ask()).await.unwrap();
    assert!(!is_error(&result), "{result}");
    pipe.close().await;
}

/// An approval, also one for a session, does not apply to another component in place of the one that was shown.
#[tokio::test(flavor = "multi_thread")]
async fn another_component_is_asked_about_anew() {
    let (folder, mut pipe, arguments, state) = begun("confirm = \"writes\"").await;
    let plugin = folder.join("plugins/files.wasm").display().to_string();
    let another = async |folder: &Folder, pipe: &Pipe, nth: usize, text: &str| {
        let embedded = folder.run(&["build", "--embed", &plugin, "--instructions", text], &[]).await;
        assert!(embedded.status.success(), "{}", e2e::folder::stderr(&embedded));
        served(pipe, nth).await;
    };
    another(&folder, &pipe, 2, "one").await;
    // The person is asked again, about the component that would run.
    let late = answering("write_file", &arguments, &state, &yes());
    let (_, again) = asked(&pipe.modern("tools/call", late, can_ask()).await.unwrap());
    assert_ne!(again, state);
    assert_eq!(written(&folder, "a.txt"), None);

    let call = json!({ "name": "write_file", "arguments": arguments });
    let (_, state) = asked(&pipe.modern("tools/call", call.clone(), can_ask()).await.unwrap());
    let remembering = answering("write_file", &arguments, &state, &accept(json!({ "remember": "session" })));
    assert!(!is_error(&pipe.modern("tools/call", remembering, can_ask()).await.unwrap()));
    assert!(!is_error(&pipe.modern("tools/call", call.clone(), can_ask()).await.unwrap()));
    another(&folder, &pipe, 3, "two").await;
    asked(&pipe.modern("tools/call", call, can_ask()).await.unwrap());
    pipe.close().await;
}

/// The answer to an open question approves nothing any more if the plugin's access was revoked in the meantime.
#[tokio::test(flavor = "multi_thread")]
async fn a_late_yes_does_not_bring_back_what_was_taken_away() {
    let (folder, mut pipe, call, question) = open_question().await;
    renew(&folder, &pipe, 2, |config| config.replace("read-write", "read")).await;
    pipe.respond(&question, yes()).await;
    let result = pipe.answer(&call).await.unwrap();
    assert!(is_error(&result), "{result}");
    assert!(e2e::text(&result).contains("took away access"), "{result}");
    assert_eq!(written(&folder, "a.txt"), None);
    pipe.close().await;
}

/// If a client cancels a call, its user does not have to answer an obsolete question.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_taken_back_with_its_call() {
    let (folder, mut pipe, call, question) = open_question().await;
    pipe.cancel(&call).await;
    let taken_back = pipe.notification("notifications/cancelled").await;
    assert_eq!(taken_back["params"]["requestId"], question["id"], "{taken_back}");
    // An answer that arrives anyway is ignored.
    pipe.respond(&question, yes()).await;
    pipe.request("ping", json!({})).await.unwrap();
    assert_eq!(written(&folder, "a.txt"), None);
    pipe.close().await;
}

/// While a plugin with `confirm` lists what it offers, it can only do what needs no approval.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_where_nobody_is_asked() {
    let folder = Folder::new();
    folder.plugin("badlist");
    let open = folder.join("open");
    std::fs::create_dir_all(&open).unwrap();
    let config = |confirm: &str| {
        format!(
            "[plugins.list]\npath = \"../../plugins/badlist.wasm\"\nprefix = \"\"\nconfig = {{ mode = \"writes\" }}\n{confirm}\n\
             [plugins.list.grants]\ndirs = [{{ host = {open:?}, guest = \"/open\", access = \"read-write\" }}]\n"
        )
    };
    for (confirm, written) in [("confirm = \"writes\"", false), ("", true)] {
        folder.config(&config(confirm));
        let mut pipe = Pipe::start(&folder, &["run"]);
        pipe.legacy("2025-11-25", json!({})).await;
        pipe.request("tools/list", json!({})).await.unwrap();
        assert_eq!(open.join("listed").exists(), written, "{confirm}");
        pipe.close().await;
    }
}

/// An approval is only valid for the process that asked: another process with the same key, such as one after a restart, asks again.
#[tokio::test(flavor = "multi_thread")]
async fn another_process_asks_again() {
    let folder = Folder::new();
    files(&folder, "confirm = \"writes\"", "[protocol]\nstate_keys = [{ env = \"KEY\" }]");
    let (ours, other) = ("0f1e2d3c4b5a6978".repeat(4), "f0e1d2c3b4a59687".repeat(4));
    let start = |key: &str| Pipe::start_with(&folder, &["run"], &[("KEY", key)]);
    let arguments = write(&folder, "a.txt", "one");
    let call = json!({ "name": "write_file", "arguments": arguments });
    let mut pipe = start(&ours);
    let (_, first) = asked(&pipe.modern("tools/call", call.clone(), can_ask()).await.unwrap());
    pipe.close().await;
    // With another key, the approval cannot be distinguished from a forged one.
    let mut pipe = start(&other);
    let said = refused(&mut pipe, answering("write_file", &arguments, &first, &yes())).await;
    pipe.close().await;
    let mut pipe = start(&ours);
    let changed = answering("write_file", &arguments, &format!("{first}A"), &yes());
    assert!(refused(&mut pipe, changed).await.contains("was not issued here"));
    for _ in 0..2 {
        let late = answering("write_file", &arguments, &first, &yes());
        let (_, again) = asked(&pipe.modern("tools/call", late, can_ask()).await.unwrap());
        assert_eq!(written(&folder, "a.txt"), None);
        let unsealed =
            json!({ "name": "write_file", "arguments": arguments, "inputResponses": { "wharf.approve": yes() } });
        assert!(refused(&mut pipe, unsealed).await.contains("send it with the `requestState`"));
        assert_ne!(again, first);
    }
    let late = answering("write_file", &arguments, &first, &yes());
    let (_, again) = asked(&pipe.modern("tools/call", late, can_ask()).await.unwrap());
    let approved = answering("write_file", &arguments, &again, &yes());
    assert!(!is_error(&pipe.modern("tools/call", approved.clone(), can_ask()).await.unwrap()));
    assert_eq!(written(&folder, "a.txt").as_deref(), Some("one"));
    assert!(said.contains("call again without it"), "{said}");
    assert!(refused(&mut pipe, approved).await.contains("was used already"));
    pipe.close().await;
}
