//! What the views say, and that they say it as text.

use std::collections::BTreeSet;

use super::*;
use crate::state::{SeenFile, SeenPlugin, SeenRequest, SeenSession};

const VIEWS: [&str; 7] = [
    "/",
    "/refused",
    "/waiting",
    "/plugins",
    "/record",
    "/machine",
    "/record?log=%2Fetc%2Fwharf.toml&search=%3Cscript%3E",
];

/// A state all of whose texts would be markup.
fn evil() -> SeenState {
    let text = || EVIL.to_owned();
    let some = || Some(text());
    SeenState {
        process: SeenProcess {
            pid: 7,
            version: text(),
            command: text(),
            folder: text(),
            config: Some("/etc/wharf.toml".into()),
            resident: Some(1),
            ..SeenProcess::default()
        },
        sessions: vec![SeenSession {
            id: text(),
            client: text(),
            revision: text(),
            principal: text(),
            folders: vec![text()],
            ..SeenSession::default()
        }],
        open_sessions: 1,
        calls: vec![SeenCall {
            session: some(),
            plugin: text(),
            name: text(),
            method: text(),
            ended: Some(SeenEnded { how: text(), why: some(), ..SeenEnded::default() }),
            files: vec![SeenFile { path: text(), did: text() }],
            requests: vec![SeenRequest { method: text(), host: text(), ..SeenRequest::default() }],
            refusals: vec![
                SeenRefusal { text: text(), allow: some(), grant: some() },
                SeenRefusal { text: text(), allow: None, grant: Some("http=https://a.example/".into()) },
            ],
            approval: some(),
            ..call(1, 1)
        }],
        questions: vec![SeenQuestion {
            id: 1,
            session: some(),
            plugin: text(),
            name: text(),
            text: text(),
            answers: vec![SeenChoice { word: text(), text: text() }],
            ..SeenQuestion::default()
        }],
        plugins: vec![SeenPlugin {
            id: text(),
            problem: some(),
            version: some(),
            sha256: some(),
            tools: vec![text()],
            granted: vec![text()],
            wanted: vec![text()],
            ..SeenPlugin::default()
        }],
        ..SeenState::default()
    }
}

/// Checks what the page must have for people who hear it or use only the keyboard.
fn assert_usable(path: &str, page: &str) {
    let count = |part: &str| page.matches(part).count();
    for (part, times) in
        [("<html lang=\"en\">", 1), ("<h1", 1), ("<main", 1), ("<nav", 1), ("<title>", 1), (" style=", 0)]
    {
        assert_eq!(count(part), times, "{path}: {part}");
    }
    assert_eq!(count(" aria-current=\"page\""), 1, "{path}");
    let ids: Vec<&str> = page.split(" id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{path}: {ids:?}");
    for input in page.split("<input").skip(1).map(|rest| rest.split('>').next().unwrap()) {
        let id = input.split(" id=\"").nth(1).map(|rest| rest.split('"').next().unwrap());
        let is_labelled = id.is_some_and(|id| page.contains(&format!("<label for=\"{id}\"")));
        assert!(input.contains("type=\"hidden\"") || is_labelled, "{path}: {input}");
    }
    // Headings skip no level.
    let levels = page.split("<h").skip(1).filter_map(|rest| rest.chars().next()?.to_digit(10));
    levels.fold(0, |before, level| {
        assert!(level <= before + 1, "{path}: a heading of level {level} after {before}");
        level
    });
}

#[tokio::test]
async fn texts_of_plugins_and_clients_are_never_markup() {
    let stage = Stage::open().await;
    let _process = stage.process("7-a", &evil()).await;
    let mut all = String::new();
    for path in VIEWS {
        let answer = stage.get(path).await;
        assert_eq!(answer.status, 200, "{path}");
        let page = answer.body;
        assert!(page.contains("&lt;script&gt;"), "{path}");
        assert!(!page.contains("<script>") && !page.contains("\" onmouseover"), "{path}: {page}");
        assert_usable(path, &page);
        all += &page;
    }
    // The only script is the page's own.
    assert_eq!(all.matches("<script").count(), VIEWS.len());
}

#[tokio::test]
async fn each_view_says_what_there_is_and_what_there_is_not() {
    let stage = Stage::open().await;
    for (path, part) in [
        ("/", "No wharf runs."),
        ("/refused", "Nothing was refused"),
        ("/waiting", "No call waits"),
        ("/plugins", "No wharf that runs has plugins."),
        ("/machine", "No wharf runs."),
        ("/record", "turns on an audit log"),
    ] {
        let page = stage.get(path).await.body;
        assert!(page.contains(part), "{path}: {page}");
        assert_usable(path, &page);
    }
    let sessions = (0..200).map(|id| SeenSession {
        id: format!("s{id}"),
        client: format!("client {id}"),
        ..SeenSession::default()
    });
    let request =
        SeenRequest { method: "GET".into(), host: "a.example:443".into(), status: Some(200), ..SeenRequest::default() };
    let busy = SeenCall {
        session: Some("s7".into()),
        files: vec![SeenFile { path: "/docs/a.txt".into(), did: "write".into() }],
        requests: vec![request],
        ..call(3, 1_700_000_000_000)
    };
    let plugin = SeenPlugin {
        id: "files".into(),
        served: true,
        tokens: 812,
        tools: vec!["read".into()],
        ..SeenPlugin::default()
    };
    let questions = vec![question(1), question(2)];
    let state = SeenState { sessions: sessions.collect(), open_sessions: 230, questions, ..state(1) };
    let state = SeenState { calls: vec![busy], plugins: vec![plugin], ..state };
    let _process = stage.process("1-a", &state).await;
    for (path, parts) in [
        (
            "/",
            vec![
                "<title>(2) wharf: Now</title>",
                "<h3>client 0</h3>",
                "<h3>client 199</h3>",
                "30 more are not shown.",
                "2023-11-14 22:13:20 UTC",
                "1.5 ms, about 100 tokens",
                "client 7</p>",
                "/docs/a.txt</span>: written",
                "a.example:443</span>: status 200",
            ],
        ),
        ("/waiting", vec!["files asks to run write", "write a.txt</pre>", "Yes, once</button>"]),
        ("/plugins", vec!["served", "1 time in the calls", "812 tokens", "nothing</dd>"]),
        ("/machine", vec!["wharf run (1)", "50 MiB are taken; plugins may take 1.0 GiB"]),
    ] {
        let page = stage.get(path).await.body;
        for part in parts {
            assert!(page.contains(part), "{path}: {part}: {page}");
        }
        assert_usable(path, &page);
    }
}

#[tokio::test]
async fn what_was_refused_is_allowed_and_taken_back() {
    let stage = Stage::open().await;
    let grant = "http=https://a.example/?a=1&b='2'";
    let mut calls = vec![refused("files", Some(grant)), SeenCall { id: 2, ..refused("files", Some(grant)) }];
    calls.push(SeenCall { id: 3, ..refused("elsewhere", Some("env=TZ")) });
    calls.push(SeenCall { id: 4, ..refused("none", None) });
    let mut process = stage.process("1-a", &SeenState { calls, ..state(1) }).await;
    let page = stage.get("/refused").await.body;
    assert!(page.contains("2 times, last ") && page.contains("Allow always") && !page.contains("Take back"), "{page}");
    assert!(page.contains("--allow env=TZ</pre>") && page.contains("No grant allows this."), "{page}");
    assert!(page.contains("--allow 'http=https://a.example/?a=1&amp;b='\\''2'\\'''</code>"), "{page}");
    let form = "config=%2Fetc%2Fwharf.toml&process=1-a.sock&plugin=files&grant=http%3Dhttps%3A%2F%2Fa.example%2F%3Fa%3D1%26b%3D%272%27";
    let page = stage.act("/allow", form).await;
    assert!(page.contains("did allow /etc/wharf.toml files") && page.contains("Take back"), "{page}");
    let page = stage.act("/take-back", form).await;
    assert!(page.contains("did take back") && page.contains("Allow always"), "{page}");
    // Nothing else can be granted, and no other file is written.
    for other in [
        "config=%2Fetc%2Fwharf.toml&process=1-a.sock&plugin=files&grant=roots%3Dread-write",
        "config=%2Fetc%2Fwharf.toml&process=1-a.sock&plugin=time&grant=env%3DTZ",
        "config=%2Fetc%2Fwharf.toml&process=2-b.sock&plugin=elsewhere&grant=env%3DTZ",
        // The process has named another config than the one that was shown.
        "config=%2Fother.toml&process=1-a.sock&plugin=files&grant=http%3Dhttps%3A%2F%2Fa.example%2F%3Fa%3D1%26b%3D%272%27",
        "",
    ] {
        let page = stage.act("/allow", other).await;
        assert!(page.contains("Not done") && page.contains("nothing was written"), "{other}: {page}");
    }
    assert_eq!(stage.actions.done.lock().len(), 2);
    // A process without a config can only be started with an option.
    let none = SeenProcess { config: None, ..state(1).process };
    let calls = vec![refused("files", Some(grant))];
    process.tell(&SeenState { process: none, calls, ..SeenState::default() }).await;
    stage
        .until("the state without a config", |view| view.process("1-a.sock").unwrap().state.process.config.is_none())
        .await;
    let page = stage.get("/refused").await.body;
    assert!(page.contains("start wharf with this option") && !page.contains("Allow always"), "{page}");
}

#[tokio::test]
async fn answers_are_sent_once_and_what_becomes_of_them_is_said() {
    let stage = Stage::open().await;
    let mut process = stage.process("1-a", &SeenState { questions: vec![question(4)], ..state(1) }).await;
    let page = stage.act("/answer", "process=1-a.sock&question=4&word=forever").await;
    assert!(page.contains("no such answer"), "{page}");
    let page = stage.act("/answer", "process=1-a.sock&question=4&word=once").await;
    assert!(page.contains("Your answer was sent.") && page.contains("You have answered: Yes, once"), "{page}");
    assert!(page.contains("<title>wharf: Waiting</title>"), "{page}");
    assert_eq!(process.hear().await, SeenAnswer { question: 4, word: "once".into() });
    let page = stage.act("/answer", "process=1-a.sock&question=4&word=no").await;
    assert!(page.contains("was answered already"), "{page}");
    process.tell(&state(1)).await;
    stage.until("the end of the question", |view| view.process("1-a.sock").unwrap().state.questions.is_empty()).await;
    let page = stage.act("/answer", "process=1-a.sock&question=4&word=no").await;
    assert!(page.contains("does not wait any more"), "{page}");
    drop(process);
    stage.until("the end of the process", |view| view.processes()[0].is_gone).await;
    for form in
        ["process=1-a.sock&question=4&word=no", "process=9-z.sock&question=4&word=no", "question=x", "%ff&&=%00"]
    {
        let page = stage.act("/answer", form).await;
        assert!(page.contains("Not done"), "{form}: {page}");
    }
}

#[tokio::test]
async fn changes_are_taken_back_and_logs_are_searched() {
    let stage = Stage::open().await;
    let page = stage.act("/undo", "id=4-2").await;
    assert!(page.contains("did undo 4-2") && page.contains("Done"), "{page}");
    let page = stage.act("/undo", "id=9-9").await;
    assert!(page.contains("a.txt has changed since") && page.contains("Not done"), "{page}");
    let _process = stage.process("1-a", &state(1)).await;
    let page = stage.get("/record?log=%2Fetc%2Fwharf.toml&search=x%20y").await.body;
    assert!(page.contains("line with x y") && page.contains("the chain is broken"), "{page}");
    assert!(page.contains(" value=\"x y\"") && page.contains("data-still"), "{page}");
    // Only the logs of wharfs that run are read.
    let page = stage.get("/record?log=%2Fetc%2Fpasswd&search=root").await.body;
    assert!(!page.contains("line with") && !page.contains("data-still"), "{page}");
}

#[tokio::test]
async fn what_a_process_did_that_has_ended_stays() {
    let stage = Stage::open().await;
    let running = SeenCall { ended: None, ..call(1, 1) };
    let process = stage.process("1-a", &SeenState { calls: vec![running], ..state(1) }).await;
    assert!(stage.get("/").await.body.contains(">runs</span>"));
    drop(process);
    stage.until("the end of the process", |view| view.processes()[0].is_gone).await;
    let page = stage.get("/").await.body;
    assert!(page.contains("<li class=\"gone\">") && page.contains("its process has ended"), "{page}");
    assert!(stage.get("/machine").await.body.contains("has ended, or does not listen"));
    let _process = FakeProcess::new(stage.folder.path(), "2-b");
    let shown = stage.get("/?said=99").await.body;
    assert!(!shown.contains("Done"), "{shown}");
}
