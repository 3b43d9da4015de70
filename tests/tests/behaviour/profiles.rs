//! Two profiles in one process: each client sees only the part of the catalog that it asked for.

use e2e::{Folder, MODERN, Pipe, Server, Value, http::modern_headers, json, modern_params, names, text};

const CONFIG: &str = "[profiles.greet]\nplugins = [\"hello\"]\n\
    [profiles.talk]\nplugins = [\"echo\"]\ntools = [\"echo_echo\"]\n\
    [plugins.hello]\npath = '../../plugins/hello.wasm'\n[plugins.echo]\npath = '../../plugins/echo.wasm'\n";

fn folder(config: &str) -> Folder {
    let folder = Folder::new();
    folder.plugin("hello");
    folder.plugin("echo");
    folder.config(config);
    folder
}

async fn modern_at(server: &Server, path: &str, method: &str, params: Value) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": modern_params(params, json!({})) });
    let headers = modern_headers(&body);
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    server.post_to(path, &headers, &body).await.json().await
}

#[tokio::test(flavor = "multi_thread")]
async fn two_clients_of_one_process_have_different_tools() {
    let folder = folder(CONFIG);
    let server = Server::loaded(&folder).await;
    for revision in ["2025-06-18", "2025-11-25"] {
        for (path, has, lacks) in
            [("/mcp/greet", "hello_greet", "echo_echo"), ("/mcp/talk", "echo_echo", "hello_greet")]
        {
            let mut session = server.legacy_at(path, revision, json!({})).await;
            let listed = session.request("tools/list", json!({})).await.unwrap();
            assert_eq!(names(&listed, "tools"), [has], "{path}");
            let hidden = session.request("tools/call", json!({ "name": lacks })).await.unwrap_err();
            let unknown = session.request("tools/call", json!({ "name": "nothing" })).await.unwrap_err();
            assert_eq!(hidden["code"], -32602);
            assert_eq!(hidden["message"], format!("unknown tool: {lacks}"));
            assert_eq!(unknown["message"], "unknown tool: nothing", "what is hidden looks as what is not there");
        }
    }
    for (path, tools) in [
        ("/mcp", vec!["hello_greet", "echo_echo"]),
        ("/mcp/", vec!["hello_greet", "echo_echo"]),
        ("/mcp/greet", vec!["hello_greet"]),
        ("/mcp/greet/", vec!["hello_greet"]),
        ("/mcp/talk", vec!["echo_echo"]),
    ] {
        let answer = modern_at(&server, path, "tools/list", json!({})).await;
        assert_eq!(names(&answer["result"], "tools"), tools, "{path}");
    }
    for path in ["/mcp/none", "/mcp/Greet", "/mcp/greet/more"] {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
        assert_eq!(server.post_to(path, &[], &body).await.status(), 404, "{path}");
    }
    server.terminate().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_good_only_where_it_was_opened() {
    let folder = folder(CONFIG);
    let server = Server::loaded(&folder).await;
    let session = server.legacy_at("/mcp/greet", "2025-11-25", json!({})).await;
    let body = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {} });
    let headers = [("MCP-Protocol-Version", "2025-11-25"), ("Mcp-Session-Id", session.id.as_str())];
    for (path, status) in [("/mcp/talk", 404), ("/mcp", 404), ("/mcp/search", 404), ("/mcp/greet", 200)] {
        assert_eq!(server.post_to(path, &headers, &body).await.status(), status, "{path}");
        let stream = [("Accept", "text/event-stream"), ("Mcp-Session-Id", session.id.as_str())];
        let opened = server.send("GET", path, &stream, b"").await;
        assert_eq!(opened.status(), status, "GET {path}");
    }
    let deleted = server.send("DELETE", "/mcp/talk", &[("Mcp-Session-Id", &session.id)], b"").await;
    assert_eq!(deleted.status(), 404, "nobody else's client can end it");
    assert_eq!(session.delete().await.status(), 204);
    server.terminate().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_hears_of_changes_of_its_own_lists_only() {
    let config = format!("plugin_dir = '../../dropped'\n{}", CONFIG.replace("[\"hello\"]", "[\"hello\", \"more\"]"));
    let folder = folder(&config);
    folder.write("dropped/none.txt", "");
    let server = Server::loaded(&folder).await;
    let greet = server.legacy_at("/mcp/greet", "2025-11-25", json!({})).await;
    let talk = server.legacy_at("/mcp/talk", "2025-11-25", json!({})).await;
    let (mut greeted, mut talked) = (greet.stream().await, talk.stream().await);
    folder.plugin_as("version-a", "dropped/more.wasm");
    let told = greeted.event().await.unwrap();
    assert_eq!(told["method"], "notifications/tools/list_changed");
    // The other client is notified of its own change, and of that one first.
    folder.config(&format!(
        "plugin_dir = '../../dropped'\n{}",
        CONFIG.replace("\ntools = [\"echo_echo\"]", "\ntools = []")
    ));
    let told = talked.event().await.unwrap();
    assert_eq!(told["method"], "notifications/tools/list_changed");
    let listed = modern_at(&server, "/mcp/talk", "tools/list", json!({})).await;
    assert_eq!(names(&listed["result"], "tools"), [""; 0]);
    server.terminate().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_that_is_taken_away_leaves_nothing() {
    let folder = folder(CONFIG);
    let mut pipe = Pipe::start(&folder, &["run", "--profile", "greet"]);
    pipe.legacy("2025-11-25", json!({})).await;
    let listed = pipe.request("tools/list", json!({})).await.unwrap();
    assert_eq!(names(&listed, "tools"), ["hello_greet"]);
    folder.config(&CONFIG.replace("[profiles.greet]\nplugins = [\"hello\"]\n", ""));
    pipe.notification("notifications/tools/list_changed").await;
    let listed = pipe.request("tools/list", json!({})).await.unwrap();
    assert_eq!(names(&listed, "tools"), [""; 0]);
    assert_eq!(pipe.request("tools/call", json!({ "name": "hello_greet" })).await.unwrap_err()["code"], -32602);
    pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_that_is_not_there_is_refused_by_its_name() {
    let folder = folder(CONFIG);
    for (arguments, expected) in [
        (vec!["run", "--profile", "great"], "there is no profile `great`; there are: greet, search, talk"),
        (vec!["serve", "--profile", "greet"], "needs --stdio"),
    ] {
        let output = folder.run(&arguments, &[]).await;
        assert!(!output.status.success());
        assert!(e2e::folder::stderr(&output).contains(expected), "{}", e2e::folder::stderr(&output));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_says_what_each_profile_has() {
    let folder = folder(&format!("{CONFIG}[profiles.typo]\nplugins = [\"helo\"]\n"));
    let output = folder.run(&["check"], &[]).await;
    let said = e2e::folder::stdout(&output);
    assert!(said.contains("profile greet: 1 tools, 0 prompts, 0 resources"), "{said}");
    assert!(said.contains("profile typo: NOTHING"), "{said}");
    assert_eq!(output.status.code(), Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_of_one_profile_are_not_there_for_another() {
    let folder = Folder::new();
    folder.config(&format!(
        "[profiles.one]\nplugins = [\"job\"]\n[profiles.two]\nplugins = [\"job\"]\n{}",
        e2e::given("job", &json!({ "task": "optional" }), "limits = { timeout_ms = 20000 }")
    ));
    let server = Server::loaded(&folder).await;
    let tasks = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let ask = async |path: &str, method: &str, params: Value| {
        let params = modern_params(params, tasks.clone());
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let headers = modern_headers(&body);
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        server.post_to(path, &headers, &body).await.json().await
    };
    let begun = ask("/mcp/one", "tools/call", json!({ "name": "job_t", "arguments": {} })).await;
    let id = begun["result"]["taskId"].as_str().unwrap_or_else(|| panic!("no task in {begun}")).to_owned();
    let own = ask("/mcp/one", "tasks/get", json!({ "taskId": id })).await;
    assert_eq!(own["result"]["taskId"], id.as_str(), "{own}");
    for path in ["/mcp/two", "/mcp", "/mcp/search"] {
        let other = ask(path, "tasks/get", json!({ "taskId": id })).await;
        let none = ask(path, "tasks/get", json!({ "taskId": "none" })).await;
        assert_eq!(other["error"]["code"], none["error"]["code"], "{path}: {other}");
        assert!(other.get("result").is_none(), "{path}: {other}");
    }
    server.terminate().await;
}

/// A profile narrows a role, and a role narrows a profile.
#[tokio::test(flavor = "multi_thread")]
async fn roles_and_profiles_narrow_each_other() {
    let folder = folder(&format!(
        "{CONFIG}[profiles.all]\nplugins = [\"*\"]\n[roles.everybody]\nwhen = \"anyone\"\nplugins = [\"hello\"]\n"
    ));
    let server = Server::loaded(&folder).await;
    for (path, tools) in [
        ("/mcp", &["hello_greet"][..]),
        ("/mcp/all", &["hello_greet"]),
        ("/mcp/greet", &["hello_greet"]),
        ("/mcp/talk", &[]),
    ] {
        let answer = modern_at(&server, path, "tools/list", json!({})).await;
        assert_eq!(names(&answer["result"], "tools"), tools, "{path}");
    }
    let found = modern_at(
        &server,
        "/mcp/search",
        "tools/call",
        json!({ "name": "find_tools", "arguments": { "query": "echo a message, or greet somebody", "limit": 20 } }),
    )
    .await;
    assert_eq!(names(&found["result"]["structuredContent"], "tools"), ["hello_greet"], "{found}");
    let called = modern_at(
        &server,
        "/mcp/search",
        "tools/call",
        json!({ "name": "call_tool", "arguments": { "name": "echo_echo", "arguments": { "message": "x" } } }),
    )
    .await;
    assert!(text(&called["result"]).starts_with("unknown tool: echo_echo"), "{called}");
    let greeted = modern_at(
        &server,
        "/mcp/search",
        "tools/call",
        json!({ "name": "call_tool", "arguments": { "name": "hello_greet", "arguments": { "name": MODERN } } }),
    )
    .await;
    assert_eq!(text(&greeted["result"]), format!("Hello, {MODERN}!"));
    server.terminate().await;
}
