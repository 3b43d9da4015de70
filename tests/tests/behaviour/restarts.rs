//! Sessions over HTTP whose wharf is restarted, killed or another one: their ids make them again, with everything that the client declared.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use e2e::{Exchange, Folder, LEGACY, Server, Session, Value, given, json, plugin, text};
use rustix::process::Signal;

/// `showcase`, which may ask, `reach`, which reads roots, and `g`, which does what its arguments say.
fn config(folder: &Folder, more: &str) {
    folder.write("code/note.txt", "of a root");
    let code = folder.join("code");
    folder.config(&format!(
        "{more}\n[roots]\nwithin = [{code:?}]\n\
         [plugins.show]\npath = {:?}\nprefix = \"\"\n[plugins.show.grants]\nask = [\"elicitation\", \"sampling\"]\n\
         [plugins.reach]\npath = {:?}\nprefix = \"\"\n[plugins.reach.grants]\nroots = \"read\"\n{}",
        plugin("showcase"),
        plugin("reach"),
        given("g", &json!({}), "limits = { timeout_ms = 60000 }")
    ));
}

/// Ends a server in this way, and starts the next one.
async fn next(server: Server, folder: &Folder, signal: Signal) -> Server {
    server.signal(signal);
    let (status, _, log) = server.terminated().await;
    assert_eq!(status.success(), signal == Signal::TERM, "{log}");
    Server::loaded(folder).await
}

fn able() -> Value {
    json!({ "elicitation": {}, "roots": { "listChanged": true } })
}

/// Answers questions as a person would, and counts how often roots are asked for.
fn answers(session: &mut Session<'_>, folder: &Folder, asked: &Arc<AtomicUsize>) {
    let (root, asked) = (format!("file://{}", folder.join("code").display()), Arc::clone(asked));
    session.answer_with(move |method, _| match method {
        "roots/list" => {
            asked.fetch_add(1, Ordering::Relaxed);
            Some(json!({ "roots": [{ "uri": root }] }))
        }
        "elicitation/create" => Some(json!({ "action": "accept", "content": { "really": true, "reason": "old" } })),
        _ => None,
    });
}

/// Uses what a session can do.
async fn works(session: &mut Session<'_>, folder: &Folder) {
    let revision = session.revision.clone();
    assert_eq!(text(&session.call("sum", json!({ "n": 3 })).await), "{\"sum\":6}", "{revision}");
    let note = folder.join("code/note.txt");
    assert_eq!(text(&session.call("read", json!({ "path": note })).await), "of a root", "{revision}");
    if revision.as_str() >= "2025-06-18" {
        assert_eq!(text(&session.call("purge", json!({})).await), "deleted: old", "{revision}");
    }
}

/// Makes the stream say that a resource has changed, and returns the methods of what it said before.
async fn said(session: &mut Session<'_>, stream: &mut Exchange) -> Vec<String> {
    session.request("resources/subscribe", json!({ "uri": "note:///x" })).await.unwrap();
    session.call("g_t", json!({ "updated": "note:///x" })).await;
    let mut said = Vec::new();
    loop {
        let event = stream.event().await.expect("the stream goes on");
        if event["params"]["uri"] == "note:///x" {
            return said;
        }
        said.push(event["method"].as_str().unwrap_or_default().to_owned());
    }
}

async fn status(session: &mut Session<'_>) -> u16 {
    session.begin("ping", json!({})).await.1.status()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_goes_on_after_a_restart_and_after_a_kill() {
    let folder = Folder::new();
    config(&folder, "");
    let mut server = Server::loaded(&folder).await;
    for (revision, signal) in LEGACY.into_iter().zip([Signal::TERM, Signal::KILL, Signal::TERM, Signal::KILL]) {
        let asked = Arc::<AtomicUsize>::default();
        let mut session = server.legacy(revision, able()).await;
        answers(&mut session, &folder, &asked);
        works(&mut session, &folder).await;
        let mut stream = session.stream().await;
        assert_eq!(said(&mut session, &mut stream).await, [""; 0], "{revision}");
        let before = asked.load(Ordering::Relaxed);
        let detached = session.detach();
        server = next(server, &folder, signal).await;
        let mut session = server.attach(detached);
        works(&mut session, &folder).await;
        assert_eq!(asked.load(Ordering::Relaxed), before + 1, "{revision}: roots are asked for again, once");
        let mut stream = session.stream().await;
        assert_eq!(said(&mut session, &mut stream).await, [""; 0], "{revision}: the lists are the same");
        // GET is the first that the next server hears of the session.
        let detached = session.detach();
        server = next(server, &folder, signal).await;
        let mut session = server.attach(detached);
        assert_eq!(session.stream().await.status(), 200, "{revision}");
        assert_eq!(status(&mut session).await, 200, "{revision}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_that_a_restart_changed_are_announced_once_each() {
    let folder = Folder::new();
    config(&folder, "");
    let server = Server::loaded(&folder).await;
    let session = server.legacy("2025-11-25", json!({})).await;
    let detached = session.detach();
    server.signal(Signal::TERM);
    server.terminated().await;
    // `hello` has one tool, and nothing else.
    let hello = format!("[plugins.hello]\npath = {:?}\n", plugin("hello"));
    config(&folder, &hello);
    let server = Server::loaded(&folder).await;
    let mut session = server.attach(detached);
    let mut stream = session.stream().await;
    let first = said(&mut session, &mut stream).await;
    assert!(first.contains(&"notifications/tools/list_changed".to_owned()), "{first:?}");
    let mut once = first.clone();
    once.dedup();
    assert_eq!(first, once);
    let mut again = session.stream().await;
    assert_eq!(said(&mut session, &mut again).await, [""; 0], "it has been told");
    // The lists are those of the beginning again, and the client knows others.
    let detached = session.detach();
    server.signal(Signal::TERM);
    server.terminated().await;
    config(&folder, "");
    let server = Server::loaded(&folder).await;
    let mut session = server.attach(detached);
    let mut stream = session.stream().await;
    let back = said(&mut session, &mut stream).await;
    assert!(back.contains(&"notifications/tools/list_changed".to_owned()), "{back:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_has_ended_does_not_come_back() {
    let folder = Folder::new();
    config(&folder, "");
    let server = Server::loaded(&folder).await;
    let mut sessions = Vec::new();
    for _ in 0..3 {
        sessions.push(server.legacy("2025-11-25", json!({})).await);
    }
    let [ended, later, stays] = sessions.try_into().ok().unwrap();
    assert_eq!(ended.delete().await.status(), 204);
    let [ended, later, stays] = [ended, later, stays].map(Session::detach);
    let server = next(server, &folder, Signal::KILL).await;
    let [mut ended, mut later, mut stays] = [ended, later, stays].map(|detached| server.attach(detached));
    let (_, mut gone) = ended.begin("ping", json!({})).await;
    let unknown = Session::detach(server.legacy("2025-11-25", json!({})).await);
    let mut unknown = server.attach(unknown);
    unknown.id = format!("{}A", unknown.id);
    let (_, mut never) = unknown.begin("ping", json!({})).await;
    assert_eq!((gone.status(), never.status()), (404, 404));
    let (gone, never) = (gone.json().await, never.json().await);
    assert_eq!(gone["error"], never["error"], "nothing tells an ended session from one that never was");
    assert_eq!((ended.stream().await.status(), ended.delete().await.status()), (404, 404));
    // DELETE is the first that this server hears of the session.
    assert_eq!(later.delete().await.status(), 204);
    assert_eq!((status(&mut later).await, status(&mut stays).await), (404, 200));
    let [later, stays] = [later, stays].map(Session::detach);
    let server = next(server, &folder, Signal::TERM).await;
    let [mut later, mut stays] = [later, stays].map(|detached| server.attach(detached));
    assert_eq!((status(&mut later).await, status(&mut stays).await), (404, 200));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_under_way_gets_a_clear_answer() {
    let folder = Folder::new();
    config(&folder, "");
    let server = Server::loaded(&folder).await;
    let mut session = server.legacy("2025-11-25", json!({})).await;
    let mut standing = session.stream().await;
    let standing_id = standing.frame().await.unwrap().id.unwrap();
    let call = json!({ "name": "g_t", "arguments": { "ms": 30_000, "text": "late" } });
    let (id, mut call) = session.begin("tools/call", call).await;
    let call_id = call.frame().await.unwrap().id.unwrap();
    let detached = session.detach();
    let server = next(server, &folder, Signal::KILL).await;
    assert_eq!((call.frame().await, standing.frame().await), (None, None));
    let mut session = server.attach(detached);
    // Streams of the next server must not be taken for those of the first one.
    let mut others = Vec::new();
    for _ in 0..3 {
        others.push(session.stream().await);
    }
    let mut lost = session.resume(&call_id, "tools/call").await;
    assert_eq!(lost.status(), 200);
    let event = lost.frame().await.unwrap();
    let answer: Value = event.data.as_deref().unwrap().parse().unwrap();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(-32603)));
    assert!(answer["error"]["message"].as_str().unwrap().contains("send it again if that is safe"), "{answer}");
    assert_eq!(lost.frame().await, None);
    let over = session.resume(&event.id.unwrap(), "").await;
    assert_eq!(over.status(), 204, "clients do not come back after this");
    let mut standing = session.resume(&standing_id, "").await;
    assert_eq!(said(&mut session, &mut standing).await, [""; 0], "the standing stream begins again");
    // A client would take 404 for the end of its session. The last one names answers to a batch, which are lost.
    for (unknown, status) in [("1-2", 200), ("1-2-x", 200), ("x", 200), ("1-2-b", 400)] {
        assert_eq!(session.resume(unknown, "").await.status(), status, "{unknown}");
    }
}

/// The id of a question that a session asked before it was made again is not that of another question.
#[tokio::test(flavor = "multi_thread")]
async fn a_late_answer_is_not_that_of_another_question() {
    let folder = Folder::new();
    config(&folder, "");
    let server = Server::loaded(&folder).await;
    let mut session = server.legacy("2025-11-25", able()).await;
    let (_, mut asked) = session.begin("tools/call", json!({ "name": "purge", "arguments": {} })).await;
    let before = asked.event().await.unwrap();
    assert_eq!(before["method"], "elicitation/create");
    let detached = session.detach();
    let server = next(server, &folder, Signal::KILL).await;
    let mut session = server.attach(detached);
    let (id, mut asked) = session.begin("tools/call", json!({ "name": "purge", "arguments": {} })).await;
    let now = asked.event().await.unwrap();
    assert_ne!(before["id"], now["id"]);
    for (question, reason) in [(&before, "late"), (&now, "new")] {
        let content = json!({ "really": true, "reason": reason });
        let answer =
            json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "accept", "content": content } });
        assert_eq!(session.post(&answer).await.status(), 202);
    }
    assert_eq!(text(&asked.response(&id).await["result"]), "deleted: new");
}

#[tokio::test(flavor = "multi_thread")]
async fn wharfs_with_one_key_share_sessions_and_a_key_can_be_replaced() {
    let folder = Folder::new();
    let key = |name: &str, digits: &str| {
        folder.write(name, format!("{digits}f3").repeat(16));
        folder.set_mode(name, 0o600);
        format!("{{ file = {:?} }}", folder.join(name))
    };
    let (old, new) = (key("old", "a1"), key("new", "b2"));
    let mut servers = Vec::new();
    for keys in [old.clone(), old.clone(), format!("{new}, {old}"), new.clone()] {
        config(&folder, &format!("[protocol]\nstate_keys = [{keys}]"));
        servers.push(Server::loaded(&folder).await);
    }
    let [one, two, both, only_new] = servers.try_into().ok().unwrap();
    let mut detached = one.legacy("2025-11-25", able()).await.detach();
    for server in [&two, &one, &both, &two] {
        let mut session = server.attach(detached);
        answers(&mut session, &folder, &Arc::default());
        works(&mut session, &folder).await;
        detached = session.detach();
    }
    let mut session = only_new.attach(detached);
    assert_eq!(status(&mut session).await, 404, "its key is gone");
    let mut session = only_new.attach(both.legacy("2025-11-25", json!({})).await.detach());
    assert_eq!(status(&mut session).await, 200, "the first key seals");
    // A config can be checked where its keys cannot be read.
    config(&folder, "[protocol]\nstate_keys = [{ file = '/nowhere/at/all' }, { credential = 'k' }]");
    let checked = folder.run(&["check"], &[]).await;
    assert!(checked.status.success(), "{}", e2e::folder::stderr(&checked));
    let shown = e2e::folder::stdout(&checked);
    let problems = shown.lines().filter(|line| line.starts_with("[protocol] a key cannot be read here: ")).count();
    assert!(problems == 2 && shown.contains("/nowhere/at/all"), "{shown}");
    let served = folder.run(&["serve", "--listen", "127.0.0.1:0"], &[]).await;
    let said = e2e::folder::stderr(&served);
    assert!(served.status.code() == Some(2) && said.contains("/nowhere/at/all"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_is_good_for_its_caller_and_its_profile_only() {
    let folder = Folder::new();
    let profile = |name: &str| format!("[profiles.{name}]\nplugins = [\"show\"]\n");
    let protected = format!("[http]\ntoken.env = \"TOKEN\"\n{}{}", profile("one"), profile("two"));
    config(&folder, &protected);
    let token = |token| [("TOKEN", token)];
    let first = Server::start_with(&folder, &[], &token("first-token-of-tests")).await;
    let initialize = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "n", "version": "1" } } });
    let bearer = ("Authorization", "Bearer first-token-of-tests");
    let opened = first.post_to("/mcp/one", &[bearer], &initialize).await;
    let id = opened.header("mcp-session-id").unwrap().to_owned();
    first.signal(Signal::KILL);
    first.terminated().await;
    let same = Server::start_with(&folder, &[], &token("first-token-of-tests")).await;
    let other = Server::start_with(&folder, &[], &token("other-token-of-tests")).await;
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let other_bearer = ("Authorization", "Bearer other-token-of-tests");
    let mut bodies = Vec::new();
    for (server, path, bearer, expected) in [
        (&same, "/mcp/two", bearer, 404),
        (&same, "/mcp", bearer, 404),
        (&other, "/mcp/one", other_bearer, 404),
        (&same, "/mcp/one", bearer, 200),
    ] {
        let mut answer = server.post_to(path, &[bearer, ("Mcp-Session-Id", &id)], &ping).await;
        assert_eq!(answer.status(), expected, "{path}");
        if expected == 404 {
            bodies.push(answer.json().await);
        }
    }
    let unknown = same.post_to("/mcp", &[bearer, ("Mcp-Session-Id", "s1.unknown")], &ping).await.json().await;
    assert!(bodies.iter().all(|body| *body == unknown), "{bodies:?} {unknown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_state_folder_it_is_said_and_sessions_end_with_the_process() {
    let folder = Folder::new();
    config(&folder, "");
    folder.write("file", "not a folder");
    let nowhere = folder.join("file/state");
    let environment = [("XDG_STATE_HOME", nowhere.to_str().unwrap())];
    let server = Server::start_with(&folder, &[], &environment).await;
    server.wait_for_log("clients lose their sessions when wharf restarts").await;
    let detached = server.legacy("2025-11-25", json!({})).await.detach();
    server.signal(Signal::TERM);
    server.terminated().await;
    let server = Server::start_with(&folder, &[], &environment).await;
    assert_eq!(status(&mut server.attach(detached)).await, 404);
    assert_eq!(server.log().matches("clients lose their sessions").count(), 1);
}
