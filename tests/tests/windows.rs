//! What a wharf shows the windows of its user: read from its socket, with the real binary.

#![expect(clippy::disallowed_methods, reason = "tests write what plugins are to read, and look for sockets")]
#![expect(clippy::expect_used, clippy::indexing_slicing, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    fs,
    os::unix::fs::{FileTypeExt, PermissionsExt},
    path::PathBuf,
    time::Duration,
};

use e2e::{Folder, Pipe, Value, is_error, json, pipe::signal};
use rustix::process::Signal;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, UnixStream},
    time::timeout,
};

/// How long a state may take that has to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// A window on one process.
struct Window {
    socket: BufReader<UnixStream>,
    /// The calls that have ended and were not asked for yet.
    ended: Vec<Value>,
}

impl Window {
    async fn open(folder: &Folder) -> Self {
        let socket = UnixStream::connect(&sockets(folder)[0]).await.unwrap();
        Self { socket: BufReader::new(socket), ended: Vec::new() }
    }

    async fn line(&mut self) -> Value {
        let mut line = String::new();
        self.socket.read_line(&mut line).await.unwrap();
        let state: Value = serde_json::from_str(&line).unwrap();
        let calls = state["calls"].as_array().unwrap().iter();
        self.ended.extend(calls.filter(|call| !call["ended"].is_null()).cloned());
        state
    }

    /// Returns the first state of which this is true.
    async fn until(&mut self, is_so: impl Fn(&Value) -> bool) -> Value {
        let found = async {
            loop {
                let state = self.line().await;
                if is_so(&state) {
                    return state;
                }
            }
        };
        timeout(PATIENCE, found).await.expect("a state")
    }

    /// Returns the next call of this tool that has ended.
    async fn ended(&mut self, tool: &str) -> Value {
        loop {
            if let Some(at) = self.ended.iter().position(|call| call["name"] == tool) {
                return self.ended.remove(at);
            }
            self.until(|state| state["calls"] != json!([])).await;
        }
    }

    async fn answer(&mut self, question: &Value, word: &str) {
        let line = format!("{}\n", json!({ "question": question["id"], "word": word }));
        self.socket.get_mut().write_all(line.as_bytes()).await.unwrap();
    }
}

fn folder_of_sockets(folder: &Folder) -> PathBuf {
    folder.home().join(".local/state/wharf/window")
}

fn sockets(folder: &Folder) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder_of_sockets(folder)).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

async fn serving(folder: &Folder, options: &[&str]) -> Pipe {
    folder.write("docs/a.txt", "one\n");
    let mut pipe = Pipe::start(folder, &[&["run"], options].concat());
    pipe.legacy("2025-11-25", json!({ "elicitation": {} })).await;
    pipe
}

fn at(folder: &Folder, name: &str) -> String {
    fs::canonicalize(folder.join("docs")).unwrap().join(name).display().to_string()
}

#[tokio::test]
async fn a_window_shows_sessions_calls_files_and_plugins() {
    let folder = Folder::new();
    let mut pipe = serving(&folder, &["--builtin", "files", "docs"]).await;
    let path = at(&folder, "a.txt");
    pipe.call("read_text_file", json!({ "path": path })).await;
    let mut window = Window::open(&folder).await;
    // What was called before the window was opened is shown too.
    let read = window.ended("read_text_file").await;
    assert_eq!(read["files"], json!([{ "path": path, "did": "read" }]), "{read}");
    assert_eq!((&read["ended"]["how"], &read["plugin"]), (&json!("done"), &json!("files")));
    let written = at(&folder, "b.txt");
    pipe.call("write_file", json!({ "path": written, "content": "x" })).await;
    let write = window.ended("write_file").await;
    assert_eq!(write["files"], json!([{ "path": written, "did": "write" }]), "{write}");
    let state = window.line().await;
    assert_eq!(state["sessions"][0]["id"], write["session"], "{state}");
    assert_eq!(state["sessions"][0]["folders"][0], at(&folder, "").trim_end_matches('/'), "{state}");
    assert_eq!(state["process"]["calls"], 2, "{state}");
    assert!(state["process"]["resident"].as_u64().unwrap() > 1 << 20, "{state}");
    let plugin = &state["plugins"][0];
    assert_eq!((&plugin["id"], &plugin["served"]), (&json!("files"), &json!(true)));
    assert!(plugin["tools"].as_array().unwrap().contains(&json!("write_file")), "{plugin}");
    assert!(plugin["tokens"].as_u64().unwrap() > 100, "{plugin}");
    pipe.close().await;
    assert_eq!(sockets(&folder), [] as [PathBuf; 0], "the socket goes with its process");
}

#[tokio::test]
async fn a_question_is_answered_in_the_window_or_in_the_client() {
    let folder = Folder::new();
    folder.plugin("files");
    folder.write("docs/a.txt", "one\n");
    let docs = folder.join("docs");
    folder.config(&format!(
        "[roots]\nfixed = [{docs:?}]\n[plugins.files]\npath = \"../../plugins/files.wasm\"\nprefix = \"\"\nconfirm = \"writes\"\n\
         [plugins.files.grants]\nroots = \"read-write\"\n"
    ));
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy("2025-11-25", json!({ "elicitation": {} })).await;
    let mut window = Window::open(&folder).await;
    let (path, content) = (at(&folder, "b.txt"), "first\nsecond");
    let params = json!({ "name": "write_file", "arguments": { "path": path, "content": content } });
    let asked = |state: &Value| state["questions"][0].is_object();

    // A yes in the window: the question to the client is withdrawn, and the call runs.
    let call = pipe.begin("tools/call", params.clone()).await;
    let question = pipe.server_request("elicitation/create").await;
    let shown = window.until(asked).await["questions"][0].clone();
    let text = shown["text"].as_str().unwrap();
    assert!(
        text.starts_with("wharf asks: run `write_file` on ") && text.contains("\n    | first\n    | second\n"),
        "{text}"
    );
    window.answer(&shown, "once").await;
    let withdrawn = pipe.notification("notifications/cancelled").await;
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    assert!(!is_error(&pipe.answer(&call).await.unwrap()));
    assert_eq!(fs::read_to_string(&path).unwrap(), content);
    assert_eq!(window.ended("write_file").await["approval"], "window");

    // A no in the window.
    fs::remove_file(&path).unwrap();
    let call = pipe.begin("tools/call", params.clone()).await;
    pipe.server_request("elicitation/create").await;
    let shown = window.until(asked).await["questions"][0].clone();
    window.answer(&shown, "no").await;
    let said = pipe.answer(&call).await.unwrap();
    assert!(is_error(&said) && said.to_string().contains("said no in the window"), "{said}");
    assert_eq!(window.ended("write_file").await["approval"], "refused");
    assert!(!fs::exists(&path).unwrap());

    // A yes in the client: the question leaves the window, where an answer has no effect any more.
    let call = pipe.begin("tools/call", params).await;
    let question = pipe.server_request("elicitation/create").await;
    let shown = window.until(asked).await["questions"][0].clone();
    pipe.respond(&question, json!({ "action": "accept", "content": {} })).await;
    assert!(!is_error(&pipe.answer(&call).await.unwrap()));
    window.until(|state| !asked(state)).await;
    window.answer(&shown, "no").await;
    assert!(fs::exists(&path).unwrap());
    assert_eq!(window.ended("write_file").await["approval"], "client");
    pipe.close().await;
}

#[tokio::test]
async fn a_client_that_cannot_ask_is_answered_by_an_open_window() {
    let folder = Folder::new();
    folder.plugin("files");
    folder.write("docs/a.txt", "one\n");
    let docs = folder.join("docs");
    folder.config(&format!(
        "[roots]\nfixed = [{docs:?}]\n[plugins.files]\npath = \"../../plugins/files.wasm\"\nprefix = \"\"\nconfirm = \"writes\"\n\
         [plugins.files.grants]\nroots = \"read-write\"\n"
    ));
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy("2025-11-25", json!({})).await;
    let arguments = json!({ "path": at(&folder, "b.txt"), "content": "x" });
    let alone = pipe.call("write_file", arguments.clone()).await;
    assert!(is_error(&alone), "nobody can be asked: {alone}");
    let mut window = Window::open(&folder).await;
    window.line().await;
    let call = pipe.begin("tools/call", json!({ "name": "write_file", "arguments": arguments })).await;
    let shown = window.until(|state| state["questions"][0].is_object()).await["questions"][0].clone();
    window.answer(&shown, "once").await;
    assert!(!is_error(&pipe.answer(&call).await.unwrap()));
    pipe.close().await;
}

#[tokio::test]
async fn a_cancelled_call_shows_what_it_reached() {
    let folder = Folder::new();
    let site = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = site.local_addr().unwrap();
    let allow = format!("http-private=http://{address}");
    let mut pipe = serving(&folder, &["--builtin", "fetch", "--allow", &allow]).await;
    let mut window = Window::open(&folder).await;
    let arguments = json!({ "url": format!("http://{address}/page") });
    let call = pipe.begin("tools/call", json!({ "name": "fetch", "arguments": arguments })).await;
    // It has sent its request, and gets no answer.
    let (_connection, _) = timeout(PATIENCE, site.accept()).await.unwrap().unwrap();
    pipe.cancel(&call).await;
    let ended = window.ended("fetch").await;
    assert_eq!(ended["ended"]["how"], "cancelled");
    assert_eq!(ended["requests"][0]["host"], address.to_string(), "{ended}");
    pipe.close().await;
}

#[tokio::test]
async fn a_plugin_reaches_no_socket_and_a_killed_process_leaves_none_for_long() {
    let folder = Folder::new();
    folder.write("docs/a.txt", "one\n");
    // The whole folder is open, and the state folder lies in it.
    let whole = folder.join("").display().to_string();
    let mut pipe = serving(&folder, &["--builtin", "files", &whole]).await;
    let there = sockets(&folder);
    let socket = fs::symlink_metadata(&there[0]).unwrap();
    assert!(socket.file_type().is_socket());
    assert_eq!(socket.permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(folder_of_sockets(&folder)).unwrap().permissions().mode() & 0o777, 0o700);
    let windows = folder_of_sockets(&folder);
    for (tool, arguments) in [
        ("write_file", json!({ "path": windows.join("9-a.sock"), "content": "x" })),
        ("move_file", json!({ "source": there[0], "destination": folder.join("docs/moved") })),
        ("move_file", json!({ "source": folder.join("docs/a.txt"), "destination": there[0] })),
        ("create_directory", json!({ "path": windows.join("more") })),
    ] {
        let said = pipe.call(tool, arguments).await;
        assert!(is_error(&said), "{tool}: {said}");
    }
    assert_eq!(sockets(&folder), there);
    signal(pipe.pid(), Signal::KILL);
    pipe.wait().await;
    assert_eq!(sockets(&folder), there, "nobody could remove it");
    let other = serving(&folder, &["--builtin", "files", "docs"]).await;
    let now = sockets(&folder);
    assert!(now.len() == 1 && now != there, "{now:?}");
    other.close().await;
}
