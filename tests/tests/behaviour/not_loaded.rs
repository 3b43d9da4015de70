//! Plugins that are not loaded yet, or do not load at all: what clients wait for, and what they and operators learn.

use e2e::{
    Folder, Pipe, Server, Value, compiler::Halted, folder::stderr, http::modern_headers, is_error, json, modern_params,
    names, plugin, text,
};

/// What the operator is told.
const NOT_WASM: &str = "did not load: not WebAssembly: the file does not start with `\\0asm`";
/// What clients are told.
const UNLOADED: &str =
    "did not load: its file is not a component that this server can load; the server's log says more";

/// A folder with `plugins/hello.wasm`, and files in `plugins/` that are not plugins.
fn folder(broken: &[&str]) -> Folder {
    let folder = Folder::new();
    folder.plugin("hello");
    for name in broken {
        folder.write(&format!("plugins/{name}.wasm"), "not wasm");
    }
    folder
}

/// Without input: a person, or a script, that wants to see whether it starts.
#[tokio::test(flavor = "multi_thread")]
async fn if_no_named_plugin_loads_wharf_exits_and_says_why() {
    let folder = folder(&["one", "two"]);
    for (command, expected) in [
        (&["run", "plugins/one.wasm"][..], &[format!("error: plugin one {NOT_WASM}")][..]),
        (
            &["run", "plugins/one.wasm", "plugins/two.wasm"],
            &[format!("  plugin one {NOT_WASM}\n"), format!("  plugin two {NOT_WASM}\n")],
        ),
        (&["run", "plugins/gone.wasm"], &["error: plugin gone did not load: ".into(), "cannot be read".into()]),
        (&["serve", "--listen", "127.0.0.1:0", "plugins/one.wasm"], &[format!("error: plugin one {NOT_WASM}")]),
    ] {
        let output = folder.run(command, &[]).await;
        assert_eq!(output.status.code(), Some(2), "{command:?}: {}", stderr(&output));
        for expected in expected {
            assert!(stderr(&output).contains(expected), "{command:?}: {}", stderr(&output));
        }
        assert!(output.stdout.is_empty(), "{command:?}");
    }
    let ended = Pipe::start(&folder, &["run", "plugins/one.wasm"]).wait().await;
    assert_eq!(ended.status.code(), Some(2), "with an input that stays open: {}", ended.log);
    assert!(ended.log.contains(NOT_WASM), "{}", ended.log);
    for command in [&["run", "plugins/hello.wasm"][..], &["run", "plugins/one.wasm", "plugins/hello.wasm"]] {
        let output = folder.run(command, &[]).await;
        assert_eq!(output.status.code(), Some(0), "{command:?}: {}", stderr(&output));
        assert_eq!(stderr(&output).contains("not WebAssembly"), command.len() == 3, "{command:?}: {}", stderr(&output));
    }
}

/// The config can come to name a working plugin later, so nothing exits because of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_of_the_config_that_does_not_load_ends_nothing() {
    let folder = folder(&["one"]);
    folder.config("[plugins.one]\npath = '../../plugins/one.wasm'\n");
    let mut pipe = Pipe::start(&folder, &["run"]);
    let greeted = pipe.legacy("2025-11-25", json!({})).await;
    assert_eq!(greeted["instructions"], format!("The plugin one {UNLOADED}."));
    assert_eq!(names(&pipe.request("tools/list", json!({})).await.unwrap(), "tools"), [""; 0]);
    assert_eq!(pipe.close().await.status.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_client_on_a_pipe_learns_which_plugin_did_not_load_and_why() {
    let folder = folder(&["broken"]);
    let mut pipe = Pipe::start(&folder, &["run", "plugins/hello.wasm", "plugins/broken.wasm"]);
    let said = format!("plugin broken {UNLOADED}");
    let greeted = pipe.legacy("2025-11-25", json!({})).await;
    assert_eq!(greeted["instructions"], format!("The {said}."));
    let discovered = async |pipe: &mut Pipe| pipe.modern("server/discover", json!({}), json!({})).await.unwrap();
    assert_eq!(discovered(&mut pipe).await["instructions"], format!("The {said}."));
    for (method, name, kind) in [
        ("tools/call", "broken_greet", "tool"),
        ("tools/call", "broken", "tool"),
        ("prompts/get", "broken_greeting", "prompt"),
    ] {
        let error = pipe.request(method, json!({ "name": name })).await.unwrap_err();
        assert_eq!(error["code"], -32602);
        assert_eq!(error["message"], format!("unknown {kind}: {name}; {said}"));
    }
    for name in ["other_greet", "brokenly", "hello_none"] {
        let error = pipe.request("tools/call", json!({ "name": name })).await.unwrap_err();
        assert_eq!(error["message"], format!("unknown tool: {name}"));
    }
    // A plugin of the command line is followed like any other: once it loads, nobody is told any more.
    folder.plugin_as("echo", "plugins/broken.wasm");
    pipe.notification("notifications/tools/list_changed").await;
    assert_eq!(text(&pipe.call("broken_echo", json!({ "message": "mended" })).await), "mended");
    assert_eq!(discovered(&mut pipe).await.get("instructions"), None);
    folder.write("plugins/broken.wasm", "not wasm");
    pipe.wait_for_log("its last good version serves").await;
    let said = format!("plugin broken {UNLOADED}; its last good version is served");
    assert_eq!(discovered(&mut pipe).await["instructions"], format!("The {said}."));
    assert_eq!(text(&pipe.call("broken_echo", json!({ "message": "still" })).await), "still");
    let error = pipe.request("tools/call", json!({ "name": "broken_new" })).await.unwrap_err();
    assert_eq!(error["message"], format!("unknown tool: broken_new; {said}"));
}

/// What a plugin says as it fails would come first in what models are told of the server, and nobody has accepted it.
#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_fails_tells_models_nothing_of_its_own() {
    let own = "turned";
    for alone in [true, false] {
        let folder = Folder::new();
        let hello = if alone { String::new() } else { format!("[plugins.hello]\npath = {:?}\n", plugin("hello")) };
        let bad = plugin("badlist");
        folder.config(&format!("[plugins.bad]\npath = {bad:?}\nconfig = {{ mode = \"failure\" }}\n{hello}"));
        let mut pipe = Pipe::start(&folder, &["run"]);
        // The operator is told.
        pipe.wait_for_log(own).await;
        let greeted = pipe.legacy("2025-11-25", json!({})).await;
        let said = "plugin bad did not load: it fails when asked what it offers; the server's log says more";
        assert_eq!(greeted["instructions"], format!("The {said}."));
        let error = pipe.request("tools/call", json!({ "name": "bad_x" })).await.unwrap_err();
        assert_eq!(error["message"], format!("unknown tool: bad_x; {said}"));
    }
}

async fn modern_at(server: &Server, path: &str, method: &str, params: Value) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": modern_params(params, json!({})) });
    let headers = modern_headers(&body);
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    server.post_to(path, &headers, &body).await.json().await
}

/// Clients over HTTP learn no details, which contain paths; and nothing at all of a plugin that their profile leaves out.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_over_http_learns_only_of_what_it_may_see_and_no_paths() {
    let folder = folder(&[]);
    folder.config(
        "[profiles.greet]\nplugins = ['hello']\n[profiles.both]\nplugins = ['hello', 'gone']\n\
         [plugins.hello]\npath = '../../plugins/hello.wasm'\n[plugins.gone]\npath = '../../plugins/gone.wasm'\n",
    );
    let server = Server::loaded(&folder).await;
    let said = "plugin gone did not load: its file cannot be read; the server's log says more";
    for (path, instructions, called) in [
        ("/mcp", json!(format!("The {said}.")), format!("unknown tool: gone_x; {said}")),
        ("/mcp/both", json!(format!("The {said}.")), format!("unknown tool: gone_x; {said}")),
        ("/mcp/greet", Value::Null, "unknown tool: gone_x".into()),
    ] {
        let discovered = modern_at(&server, path, "server/discover", json!({})).await;
        assert_eq!(discovered["result"]["instructions"], instructions, "{path}");
        let answer = modern_at(&server, path, "tools/call", json!({ "name": "gone_x", "arguments": {} })).await;
        assert_eq!(answer["error"]["message"], called, "{path}");
    }
    let found = json!({ "name": "find_tools", "arguments": { "query": "zebra" } });
    let found = modern_at(&server, "/mcp/search", "tools/call", found).await;
    let hint = &found["result"]["structuredContent"]["hint"];
    assert_eq!(*hint, format!("none of the 1 tools fits; try other words. {said}"), "{found}");
    assert!(server.log().contains("plugins/gone.wasm"), "the operator is told the path");
    server.terminate().await;
}

const HELLO: &str = "[plugins.hello]\npath = '../../plugins/hello.wasm'\n";

/// The table of a plugin that takes a moment to compile.
fn large(more: &str) -> String {
    format!("[plugins.large]\npath = {:?}\nprefix = 'l_'\n{more}\n", plugin("time"))
}

/// The environment of a wharf with an empty cache.
fn cold(folder: &Folder) -> [(&'static str, String); 1] {
    [("XDG_CACHE_HOME", folder.join("own-cache").display().to_string())]
}

/// A wharf on a pipe that serves `hello`, while the compilation of `large`, which the config got later, is halted.
async fn compiling(arguments: &[&str], more: &str) -> (Folder, Pipe, Halted) {
    let folder = folder(&[]);
    folder.config(HELLO);
    let [(name, value)] = cold(&folder);
    let arguments: Vec<&str> = ["run"].iter().chain(arguments).copied().collect();
    let mut pipe = Pipe::start_with(&folder, &arguments, &[(name, &value)]);
    pipe.legacy("2025-11-25", json!({})).await;
    pipe.wait_for_log("serving plugin=\"hello\"").await;
    folder.config(&format!("{HELLO}{}", large(more)));
    let halted = Halted::next(pipe.pid()).await;
    (folder, pipe, halted)
}

const NOW: &str = "l_get_current_time";

fn now() -> Value {
    json!({ "name": NOW, "arguments": { "timezone": "UTC" } })
}

fn with_progress(mut params: Value) -> Value {
    params["_meta"] = json!({ "progressToken": "p" });
    params
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_waits_until_its_plugin_is_compiled() {
    let (_folder, mut pipe, halted) = compiling(&[], "").await;
    let id = pipe.begin("tools/call", with_progress(now())).await;
    let progress = pipe.notification("notifications/progress").await;
    assert_eq!(progress["params"]["message"], "the plugin large is still being compiled");
    // What no plugin can have is unknown at once, and other plugins are called as usual.
    let error = pipe.request("tools/call", json!({ "name": "none_x" })).await.unwrap_err();
    assert_eq!(error["message"], "unknown tool: none_x");
    assert_eq!(text(&pipe.call("hello_greet", json!({ "name": "Ada" })).await), "Hello, Ada!");
    halted.go_on();
    let result = pipe.answer(&id).await.unwrap();
    assert!(!is_error(&result) && text(&result).contains("UTC"), "{result}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_time_is_over_says_that_its_plugin_is_being_compiled() {
    let (_folder, mut pipe, halted) = compiling(&[], "limits = { timeout_ms = 300 }").await;
    let result = pipe.request("tools/call", now()).await.unwrap();
    assert!(is_error(&result), "{result}");
    assert_eq!(text(&result), "The plugin large is still being compiled; try again in a moment.");
    halted.go_on();
    pipe.wait_for_log("serving plugin=\"large\"").await;
    assert!(text(&pipe.request("tools/call", now()).await.unwrap()).contains("UTC"));
}

/// A plugin that turns out not to load is not waited for any longer.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waits_for_a_plugin_that_does_not_load_says_so() {
    let (folder, mut pipe, _halted) = compiling(&[], "").await;
    let id = pipe.begin("tools/call", with_progress(now())).await;
    pipe.notification("notifications/progress").await;
    folder.config(&format!("{HELLO}[plugins.large]\npath = 'gone.wasm'\nprefix = 'l_'\n"));
    let error = pipe.answer(&id).await.unwrap_err();
    let message = error["message"].as_str().unwrap();
    assert!(message.starts_with(&format!("unknown tool: {NOW}; plugin large did not load: ")), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_waits_for_plugins_of_which_nothing_is_known() {
    let folder = folder(&[]);
    folder.config(HELLO);
    let [(name, value)] = cold(&folder);
    let warm = Pipe::start_with(&folder, &["run"], &[(name, &value)]);
    warm.wait_for_log("serving plugin=\"hello\"").await;
    warm.close().await;
    folder.config(&format!("{HELLO}{}", large("")));
    let mut pipe = Pipe::start_with(&folder, &["run"], &[(name, &value)]);
    let halted = Halted::next(pipe.pid()).await;
    pipe.legacy("2025-11-25", json!({})).await;
    let id = pipe.begin("tools/list", with_progress(json!({}))).await;
    let progress = pipe.notification("notifications/progress").await;
    // The other plugin comes in the same first list.
    let message = progress["params"]["message"].as_str().unwrap();
    assert!(message.contains("large") && message.contains("still being compiled"), "{message}");
    halted.go_on();
    let listed = names(&pipe.answer(&id).await.unwrap(), "tools");
    assert!(listed[0] == "hello_greet" && listed.iter().any(|name| name == NOW), "{listed:?}");
}

/// The search tools are listed before anything is loaded, and a call through them waits.
#[tokio::test(flavor = "multi_thread")]
async fn the_search_tools_are_listed_at_once() {
    let folder = folder(&[]);
    folder.config(&large(""));
    let [(name, value)] = cold(&folder);
    let mut pipe = Pipe::start_with(&folder, &["run", "--profile", "search"], &[(name, &value)]);
    let halted = Halted::next(pipe.pid()).await;
    pipe.legacy("2025-11-25", json!({})).await;
    let listed = pipe.request("tools/list", json!({})).await.unwrap();
    assert_eq!(names(&listed, "tools"), ["find_tools", "call_tool", "read_resource"]);
    let call = json!({ "name": "call_tool", "arguments": now() });
    let id = pipe.begin("tools/call", with_progress(call)).await;
    pipe.notification("notifications/progress").await;
    halted.go_on();
    let result = pipe.answer(&id).await.unwrap();
    assert!(!is_error(&result) && text(&result).contains("UTC"), "{result}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_says_that_more_is_coming() {
    let (_folder, mut pipe, halted) = compiling(&["--profile", "search"], "").await;
    let query = json!({ "name": "find_tools", "arguments": { "query": "current time" } });
    let found = pipe.request("tools/call", query.clone()).await.unwrap();
    let hint = found["structuredContent"]["hint"].as_str().unwrap();
    assert!(hint.ends_with("the plugin large is still being compiled; look again in a moment"), "{found}");
    halted.go_on();
    pipe.wait_for_log("serving plugin=\"large\"").await;
    let found = pipe.request("tools/call", query).await.unwrap();
    assert_eq!(found["structuredContent"].get("hint"), None, "{found}");
}

/// A client whose profile leaves the plugin out does not wait for it, so it cannot even learn that there is one.
#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_see_a_plugin_does_not_wait_for_it() {
    let folder = folder(&[]);
    let hello = format!("[profiles.greet]\nplugins = ['hello']\n{HELLO}");
    folder.config(&hello);
    let [(name, value)] = cold(&folder);
    let server = Server::start_with(&folder, &[], &[(name, &value)]).await;
    server.wait_for_log("serving plugin=\"hello\"").await;
    folder.config(&format!("{hello}{}", large("limits = { timeout_ms = 300 }")));
    let halted = Halted::next(server.pid()).await;
    let answer = modern_at(&server, "/mcp/greet", "tools/call", now()).await;
    assert_eq!(answer["error"]["message"], format!("unknown tool: {NOW}"));
    let answer = modern_at(&server, "/mcp", "tools/call", now()).await;
    assert!(text(&answer["result"]).contains("large is still being compiled"), "{answer}");
    halted.go_on();
    server.terminate().await;
}
