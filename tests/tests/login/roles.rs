//! Two people, each of whom can only reach what belongs to them.

use std::path::PathBuf;

use e2e::{Folder, Server, Value, exchange::Exchange, given, http::modern_headers, json, modern_params, text};

use crate::{
    EVERYBODY, RESOURCE, initialize,
    issuer::{Issuer, Key},
};

/// Starts a wharf with two plugins and these roles, and an identity provider.
pub struct Place {
    pub folder: Folder,
    pub issuer: Issuer,
    pub key: Key,
    pub server: Server,
    pub srv: PathBuf,
}

/// Ann reads files of her tenant, Ben uses `echo`.
pub const TWO: &str = "[roles.reader]\nwhen = { scope = \"files:read\" }\ntools = [\"files_read_text_file\", \"files_list_*\"]\n\
    roots = { within = \"SRV/{tenant}\", access = \"read\" }\n\
    [roles.echo]\nwhen = { group = \"echo\" }\nplugins = [\"echo\"]\n";

impl Place {
    pub async fn with(roles: &str) -> Self {
        let (folder, key) = (Folder::new(), Key::ed("one"));
        let issuer = Issuer::start(&[&key]).await;
        folder.plugin("echo");
        folder.plugin("files");
        folder.plugin("showcase");
        let srv = folder.join("srv");
        for (path, content) in [("acme/a.txt", "of acme"), ("other/b.txt", "of other")] {
            folder.write(&format!("srv/{path}"), content);
        }
        folder.config(&config(&issuer, &srv, roles));
        let server = Server::start(&folder, &[]).await;
        // Before everything is loaded, slow answers would be streams.
        for plugin in ["echo", "files", "show", "job"] {
            server.wait_for_log(&format!("serving plugin=\"{plugin}\"")).await;
        }
        Self { folder, issuer, key, server, srv }
    }

    /// Returns a token of this person with these further claims.
    pub fn token(&self, subject: &str, more: Value) -> String {
        let mut claims = self.issuer.with("sub", Some(json!(subject)));
        for (name, value) in more.as_object().unwrap() {
            claims[name] = value.clone();
        }
        format!("Bearer {}", self.key.token(&claims))
    }

    pub fn ann(&self) -> String {
        self.token("ann", json!({ "scope": "mcp files:read", "tenant": "acme" }))
    }

    pub fn ben(&self) -> String {
        self.token("ben", json!({ "groups": ["x", "echo"] }))
    }

    pub async fn send(&self, token: &str, method: &str, params: Value) -> Exchange {
        let tasks = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
        self.send_able(token, method, params, tasks).await
    }

    /// Sends a request of a client with these capabilities.
    pub async fn send_able(&self, token: &str, method: &str, params: Value, capabilities: Value) -> Exchange {
        let params = modern_params(params, capabilities);
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let headers = modern_headers(&body);
        let mut headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        headers.push(("Authorization", token));
        self.server.post(&headers, &body).await
    }

    pub async fn ask(&self, token: &str, method: &str, params: Value) -> Value {
        self.send(token, method, params).await.json().await
    }

    pub async fn call(&self, token: &str, tool: &str, arguments: Value) -> Value {
        self.ask(token, "tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// Returns the names in a list.
    pub async fn names(&self, token: &str, method: &str) -> Vec<String> {
        let answer = self.ask(token, method, json!({})).await;
        let list = answer["result"].as_object().unwrap().values().find_map(Value::as_array).unwrap();
        list.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    }

    pub fn read(&self, path: &str) -> Value {
        json!({ "path": self.srv.join(path).display().to_string() })
    }
}

pub fn config(issuer: &Issuer, srv: &std::path::Path, roles: &str) -> String {
    let roles = roles.replace("SRV", &srv.display().to_string());
    format!(
        "[http]\npublic_url = \"{RESOURCE}\"\n[auth]\nscopes = [\"mcp\"]\n\
         includes = {{ \"files:write\" = [\"files:read\"], admin = [\"files:write\"] }}\n\
         [[auth.issuers]]\nurl = \"{}\"\n{roles}\n[roots]\nfixed = [{srv:?}]\n\
         [plugins.echo]\npath = \"../../plugins/echo.wasm\"\n[plugins.files]\npath = \"../../plugins/files.wasm\"\n\
         [plugins.files.grants]\nroots = \"read-write\"\n\
         [plugins.show]\npath = \"../../plugins/showcase.wasm\"\n{}",
        issuer.url(),
        given("job", &json!({ "task": "optional" }), "limits = { timeout_ms = 20000 }")
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn each_sees_and_uses_what_its_roles_name() {
    let place = Place::with(TWO).await;
    let (ann, ben) = (place.ann(), place.ben());
    let of_ann = place.names(&ann, "tools/list").await;
    assert!(of_ann.contains(&"files_read_text_file".to_owned()), "{of_ann:?}");
    assert!(of_ann.iter().all(|name| name == "files_read_text_file" || name.starts_with("files_list_")), "{of_ann:?}");
    let of_ben = place.names(&ben, "tools/list").await;
    assert!(!of_ben.is_empty() && of_ben.iter().all(|name| name.starts_with("echo_")), "{of_ben:?}");
    let unknown = |name: &str| format!("unknown tool: {name}");
    for (token, tool, arguments) in [
        (&ann, "echo_echo", json!({ "message": "hello" })),
        (&ann, "files_write_file", json!({ "path": "x", "content": "y" })),
        (&ben, "files_read_text_file", place.read("acme/a.txt")),
        (&ben, "files_list_directory", place.read("acme")),
        (&ann, "nothing_of_this_name", json!({})),
    ] {
        let mut exchange = place.send(token, "tools/call", json!({ "name": tool, "arguments": arguments })).await;
        assert_eq!(exchange.status(), 200);
        // An item that the caller may not use looks like one that does not exist.
        let answer = exchange.json().await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert_eq!(answer["error"]["message"], unknown(tool), "{answer}");
    }
    let answer = place.call(&ben, "echo_echo", json!({ "message": "hello" })).await;
    assert_eq!(text(&answer["result"]), "hello", "{answer}");
    // The plugin's own prompts and resources are invisible as well.
    for token in [&ann, &ben] {
        assert!(place.names(token, "prompts/list").await.iter().all(|name| *token == ben && name.starts_with("echo_")));
    }
    let nobody = place.token("eve", json!({}));
    let mut exchange = place.send(&nobody, "tools/list", json!({})).await;
    assert_eq!((exchange.status(), exchange.header("www-authenticate")), (403, None));
    assert!(exchange.text().await.contains("no role"), "and it says why");
    place.server.terminate().await;
}

/// The roles open less than the plugin was granted: another tenant's folder is not open, and nothing can be written.
#[tokio::test(flavor = "multi_thread")]
async fn roots_are_narrowed_to_what_the_caller_is_called() {
    let roles = format!(
        "{TWO}[roles.writer]\nwhen = {{ scope = \"files:write\" }}\nplugins = [\"files\"]\n\
        roots = {{ within = \"SRV/{{tenant}}\" }}\n"
    );
    let place = Place::with(&roles).await;
    let ann = place.ann();
    let read = async |token: &str, path: &str| {
        let answer = place.call(token, "files_read_text_file", place.read(path)).await;
        let result = answer["result"].clone();
        (result["isError"] == true, text(&result).to_owned())
    };
    assert_eq!(read(&ann, "acme/a.txt").await, (false, "of acme".to_owned()));
    for path in ["other/b.txt", "acme/../other/b.txt"] {
        let (refused, said) = read(&ann, path).await;
        assert!(refused && !said.contains("of other"), "{path}: {said}");
    }
    for tenant in [json!("../other"), json!(["acme", "other"]), json!(".."), json!(""), json!(7), Value::Null] {
        let eve = place.token("eve", json!({ "scope": "mcp files:read", "tenant": tenant }));
        for path in ["acme/a.txt", "other/b.txt"] {
            assert!(read(&eve, path).await.0, "{tenant} {path}");
        }
    }
    let write = json!({ "path": place.srv.join("acme/new.txt").display().to_string(), "content": "new" });
    let writer = place.token("wes", json!({ "scope": "mcp files:write", "tenant": "acme" }));
    let answer = place.call(&writer, "files_write_file", write.clone()).await;
    assert_ne!(answer["result"]["isError"], true, "{answer}");
    let outside = json!({ "path": place.srv.join("other/new.txt").display().to_string(), "content": "new" });
    assert_eq!(place.call(&writer, "files_write_file", outside).await["result"]["isError"], true);
    // A scope includes others: a writer may read, and an admin may do both.
    let admin = place.token("ada", json!({ "scope": "mcp admin", "tenant": "other" }));
    assert_eq!(read(&admin, "other/b.txt").await, (false, "of other".to_owned()));
    assert_eq!(read(&writer, "acme/new.txt").await, (false, "new".to_owned()));
    place.server.terminate().await;
}

/// Items that one person created do not exist for the other.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_and_streams_are_of_their_owner() {
    let place = Place::with(TWO).await;
    let (ann, ben) = (place.ann(), place.ben());
    let opened = initialize(&place.server, "2025-11-25", &[("Authorization", &ann)]).await;
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let with = |token: &'static str| {
        vec![
            ("Mcp-Session-Id", session.clone()),
            ("MCP-Protocol-Version", "2025-11-25".into()),
            ("Accept", token.into()),
        ]
    };
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    for (token, expected) in [(&ben, 404), (&ann, 200)] {
        let mut headers = with("application/json, text/event-stream");
        headers.push(("Authorization", token.clone()));
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let mut exchange = place.server.post(&headers, &list).await;
        assert_eq!(exchange.status(), expected);
        if expected == 200 {
            let tools = exchange.json().await["result"]["tools"].clone();
            assert!(tools.as_array().unwrap().iter().all(|tool| tool["name"].as_str().unwrap().starts_with("files_")));
        }
        for (method, path) in [("GET", "/mcp"), ("DELETE", "/mcp")] {
            if expected == 404 {
                assert_eq!(place.server.send(method, path, &headers, b"").await.status(), 404, "{method}");
            }
        }
    }
    place.server.terminate().await;
}

/// A caller who lacks only a scope is told which one, and keeps those that it has.
#[tokio::test(flavor = "multi_thread")]
async fn what_takes_another_scope_says_so() {
    let roles = "[roles.reader]\nwhen = { scope = \"files:read\" }\ntools = [\"files_read_*\"]\n\
        [roles.writer]\nwhen = { scope = \"files:write\", group = \"staff\" }\nstep_up = true\ntools = [\"files_write_file\"]\n";
    let place = Place::with(roles).await;
    let claims = |groups: Value| json!({ "scope": "mcp files:read profile", "groups": groups });
    let (staff, guest) = (place.token("ann", claims(json!(["staff"]))), place.token("ben", claims(json!([]))));
    let write = json!({ "path": place.srv.join("acme/new.txt").display().to_string(), "content": "new" });
    assert!(place.names(&staff, "tools/list").await.contains(&"files_write_file".to_owned()));
    assert!(!place.names(&guest, "tools/list").await.contains(&"files_write_file".to_owned()));
    let params = json!({ "name": "files_write_file", "arguments": write });
    let exchange = place.send(&staff, "tools/call", params.clone()).await;
    assert_eq!(exchange.status(), 403);
    assert_eq!(
        exchange.header("www-authenticate"),
        Some(
            "Bearer error=\"insufficient_scope\", \
             resource_metadata=\"https://mcp.example.com/.well-known/oauth-protected-resource/mcp\", \
             scope=\"mcp files:write files:read profile\""
        )
    );
    assert_eq!(place.ask(&guest, "tools/call", params.clone()).await["error"]["code"], -32602);
    // The same in a session.
    let opened = initialize(&place.server, "2025-11-25", &[("Authorization", &staff)]).await;
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let body = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params });
    let headers =
        [("Authorization", staff.as_str()), ("Mcp-Session-Id", &session), ("MCP-Protocol-Version", "2025-11-25")];
    let exchange = place.server.post(&headers, &body).await;
    assert_eq!(exchange.status(), 403);
    assert!(exchange.header("www-authenticate").unwrap().contains("insufficient_scope"));
    // With the scope, in the existing session.
    let more = place.token("ann", json!({ "scope": "mcp files:read files:write", "groups": ["staff"] }));
    let headers =
        [("Authorization", more.as_str()), ("Mcp-Session-Id", &session), ("MCP-Protocol-Version", "2025-11-25")];
    let mut exchange = place.server.post(&headers, &body).await;
    assert_eq!(exchange.status(), 200);
    assert_ne!(exchange.json().await["result"]["isError"], true);
    place.server.terminate().await;
}

/// A change of the roles applies to the next request, and its subscribers are notified that their lists changed; others get no
/// notification.
#[tokio::test(flavor = "multi_thread")]
async fn changed_roles_are_heard_of() {
    let place = Place::with(TWO).await;
    let (ann, ben) = (place.ann(), place.ben());
    let listen = json!({ "notifications": { "toolsListChanged": true } });
    let mut of_ann = place.send(&ann, "subscriptions/listen", listen.clone()).await;
    let mut of_ben = place.send(&ben, "subscriptions/listen", listen).await;
    for stream in [&mut of_ann, &mut of_ben] {
        let first = stream.event().await.unwrap();
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
    }
    let more = TWO.replace(
        "plugins = [\"echo\"]",
        "plugins = [\"echo\"]\n[roles.time]\nwhen = { group = \"echo\" }\n\
        tools = [\"files_write_file\"]",
    );
    place.folder.config(&config(&place.issuer, &place.srv, &more));
    let told = of_ben.event().await.unwrap();
    assert_eq!(told["method"], "notifications/tools/list_changed", "{told}");
    assert!(place.names(&ben, "tools/list").await.contains(&"files_write_file".to_owned()));
    // Ann is notified of her own change only.
    let less = TWO.replace(", \"files_list_*\"", "");
    place.folder.config(&config(&place.issuer, &place.srv, &less));
    let told = of_ann.event().await.unwrap();
    assert_eq!(told["method"], "notifications/tools/list_changed", "{told}");
    assert_eq!(place.names(&ann, "tools/list").await, ["files_read_text_file"]);
    place.server.terminate().await;
    while let Some(told) = of_ann.event().await {
        assert_ne!(told["method"], "notifications/tools/list_changed", "{told}");
    }
}

/// Calls that a caller's roles no longer grant are stopped at once, also waiting ones; other callers' calls continue.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_taken_away_stops() {
    let both = "[roles.one]\nwhen = { group = \"one\" }\nplugins = [\"job\"]\n\
        [roles.other]\nwhen = { group = \"other\" }\nplugins = [\"job\"]\n";
    let place = Place::with(both).await;
    let (ann, ben) =
        (place.token("ann", json!({ "groups": ["one"] })), place.token("ben", json!({ "groups": ["other"] })));
    let spin = json!({ "name": "job_t", "arguments": { "steps": 1, "spin": true }, "_meta": { "progressToken": 1 } });
    let mut running = place.send_able(&ann, "tools/call", spin.clone(), json!({})).await;
    let told = running.event().await.unwrap();
    assert_eq!(told["method"], "notifications/progress", "{told}");
    let made = place.ask(&ben, "tools/call", spin.clone()).await;
    let of_ben = json!({ "taskId": made["result"]["taskId"] });
    let made = place.ask(&ann, "tools/call", spin).await;
    let of_ann = json!({ "taskId": made["result"]["taskId"] });
    // A change that does not affect their grants stops nothing.
    let more = format!("{both}[roles.third]\nwhen = {{ group = \"third\" }}\nplugins = [\"echo\"]\n");
    place.folder.config(&config(&place.issuer, &place.srv, &more));
    place.server.wait_for_log("the config was reloaded").await;
    let less = both.replace("{ group = \"one\" }", "{ group = \"none\" }");
    place.folder.config(&config(&place.issuer, &place.srv, &less));
    let answer = running.event().await.unwrap();
    let said = "The operator took away the role that allowed this call.";
    assert_eq!((&answer["result"]["isError"], text(&answer["result"])), (&json!(true), said), "{answer}");
    // Her task ends like the call; if the role were restored before that, the task would continue.
    place.server.wait_for_nth_log("stopped a call that its caller's roles do not allow any more", 2).await;
    // With her role restored, Ann sees how it ended.
    place.folder.config(&config(&place.issuer, &place.srv, both));
    let began = std::time::Instant::now();
    let ended = loop {
        let task = place.ask(&ann, "tasks/get", of_ann.clone()).await;
        if task["result"]["status"].as_str().is_some_and(|status| status != "working") {
            break task;
        }
        assert!(began.elapsed() < e2e::PATIENCE, "{task}");
    };
    assert!(ended.to_string().contains(said), "{ended}");
    assert_eq!(place.ask(&ben, "tasks/get", of_ben.clone()).await["result"]["status"], "working");
    place.ask(&ben, "tasks/cancel", of_ben).await;
    place.server.terminate().await;
}

/// Clients compare the metadata with the URL that they were given, and ask for tokens for that URL.
#[tokio::test(flavor = "multi_thread")]
async fn a_profile_is_the_same_resource_at_a_url_of_its_own() {
    let place = Place::with(&format!("[profiles.review]\nplugins = [\"echo\"]\n{EVERYBODY}")).await;
    let body =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": modern_params(json!({}), json!({})) });
    let headers = modern_headers(&body);
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    for name in ["review", "search", "nothing-of-this-name"] {
        let path = format!("/mcp/{name}");
        let refused = place.server.post_to(&path, &headers, &body).await;
        let challenge = refused.header("www-authenticate").unwrap_or_default().to_owned();
        assert_eq!(refused.status(), 401);
        assert!(challenge.contains(&format!("/.well-known/oauth-protected-resource/mcp/{name}\"")), "{challenge}");
        for slash in ["", "/"] {
            let metadata = format!("/.well-known/oauth-protected-resource{path}{slash}");
            let document = place.server.send("GET", &metadata, &[], b"").await.text().await;
            let document: Value = document.parse().unwrap();
            assert_eq!(document["resource"], format!("{RESOURCE}/{name}{slash}"), "{document}");
        }
    }
    let odd = place.server.send("GET", "/.well-known/oauth-protected-resource/mcp/a/b", &[], b"").await;
    assert_eq!(odd.status(), 404);
    for (audience, status) in [
        (RESOURCE.to_owned(), 200),
        (format!("{RESOURCE}/review"), 200),
        (format!("{RESOURCE}/review/"), 200),
        (format!("{RESOURCE}/search"), 200),
        (format!("{RESOURCE}/nothing-of-this-name"), 401),
        (format!("{RESOURCE}/a/b"), 401),
        (format!("{RESOURCE}er"), 401),
    ] {
        let token = place.token("ann", json!({ "aud": audience }));
        let headers: Vec<(&str, &str)> = headers.iter().copied().chain([("Authorization", token.as_str())]).collect();
        assert_eq!(place.server.post_to("/mcp/review", &headers, &body).await.status(), status, "{audience}");
    }
    // A token for a profile is valid as long as the profile exists, even if it was valid a moment ago.
    let token = place.token("ann", json!({ "aud": format!("{RESOURCE}/review") }));
    let headers: Vec<(&str, &str)> = headers.iter().copied().chain([("Authorization", token.as_str())]).collect();
    for (profiles, nth, status) in [("", 1, 401), ("[profiles.review]\nplugins = [\"echo\"]\n", 2, 200)] {
        place.folder.config(&config(&place.issuer, &place.srv, &format!("{profiles}{EVERYBODY}")));
        place.server.wait_for_nth_log("the config was reloaded", nth).await;
        assert_eq!(place.server.post_to("/mcp", &headers, &body).await.status(), status, "{profiles}");
    }
    place.server.terminate().await;
}

/// When the role for everybody is replaced by others, calls that these do not grant are stopped.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_roles_stop_what_they_do_not_give() {
    let place = Place::with(EVERYBODY).await;
    let ann = place.token("ann", json!({ "groups": ["one"] }));
    let spin = json!({ "name": "job_t", "arguments": { "steps": 1, "spin": true }, "_meta": { "progressToken": 1 } });
    let mut running = place.send_able(&ann, "tools/call", spin, json!({})).await;
    let told = running.event().await.unwrap();
    assert_eq!(told["method"], "notifications/progress", "{told}");
    let roles = "[roles.other]\nwhen = { group = \"other\" }\nplugins = [\"job\"]\n";
    place.folder.config(&config(&place.issuer, &place.srv, roles));
    let answer = running.event().await.unwrap();
    let said = "The operator took away the role that allowed this call.";
    assert_eq!((&answer["result"]["isError"], text(&answer["result"])), (&json!(true), said), "{answer}");
    place.server.terminate().await;
}

/// Items of one of two people, and the answers when the other asks for them: none reveals that the item exists.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_one_is_there_for_the_other() {
    let roles = "[roles.one]\nwhen = { group = \"one\" }\nplugins = [\"show\", \"job\"]\n\
        [roles.other]\nwhen = { group = \"other\" }\nplugins = [\"echo\", \"job\"]\n";
    let place = Place::with(roles).await;
    let (ann, ben) =
        (place.token("ann", json!({ "groups": ["one"] })), place.token("ben", json!({ "groups": ["other"] })));
    let made = place.call(&ann, "job_t", json!({ "spin": true })).await;
    let task = made["result"]["taskId"].clone();
    assert!(task.is_string(), "{made}");
    let id = json!({ "taskId": task });
    let unknown = json!({ "taskId": "no-such-task" });
    let template = |text: &str| json!({ "ref": { "type": "ref/resource", "uri": text }, "argument": { "name": "id", "value": "1" } });
    let prompt = |name: &str| json!({ "ref": { "type": "ref/prompt", "name": name }, "argument": { "name": "language", "value": "p" } });
    // Each is compared, in the same form, with an item that does not exist.
    for (method, theirs, nowhere) in [
        ("tasks/get", id.clone(), unknown.clone()),
        ("tasks/cancel", id.clone(), unknown.clone()),
        (
            "tasks/update",
            json!({ "taskId": task, "inputResponses": {} }),
            json!({ "taskId": "no-such-task", "inputResponses": {} }),
        ),
        ("resources/read", json!({ "uri": "show:///fixed" }), json!({ "uri": "none:///fixed" })),
        ("resources/read", json!({ "uri": "show:///items/1" }), json!({ "uri": "none:///items/1" })),
        (
            "prompts/get",
            json!({ "name": "show_review", "arguments": { "code": "x" } }),
            json!({ "name": "none", "arguments": {} }),
        ),
        ("completion/complete", template("show:///items/{id}"), template("none:///items/{id}")),
        ("completion/complete", template("show:///items/1"), template("none:///items/1")),
        ("completion/complete", prompt("show_review"), prompt("none")),
        ("tools/call", json!({ "name": "show_about", "arguments": {} }), json!({ "name": "none", "arguments": {} })),
    ] {
        let (refused, missing) =
            (place.ask(&ben, method, theirs.clone()).await, place.ask(&ben, method, nowhere.clone()).await);
        let code = |answer: &Value| answer["error"]["code"].clone();
        assert!(code(&refused).is_i64(), "{method} {theirs}: {refused}");
        assert_eq!(code(&refused), code(&missing), "{method}: {refused} {missing}");
        let without_names = |answer: &Value, params: &Value| {
            let named = params.pointer("/ref/uri").or(params.pointer("/ref/name")).or(params.get("uri"));
            let named = named.or(params.get("name")).or(params.get("taskId")).and_then(Value::as_str).unwrap();
            answer["error"].to_string().replace(named, "")
        };
        assert_eq!(without_names(&refused, &theirs), without_names(&missing, &nowhere), "{method}");
        // The owner gets another answer.
        let own = place.ask(&ann, method, theirs.clone()).await;
        assert_ne!(code(&own), code(&refused), "{method} {theirs}: {own}");
    }
    // Lists and subscriptions.
    for (method, key) in [
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
        ("prompts/list", "prompts"),
    ] {
        let entries = place.ask(&ben, method, json!({})).await["result"][key].clone();
        let shown = entries.as_array().unwrap().iter().any(|one| one.to_string().contains("show"));
        assert!(!shown, "{method}: {entries}");
    }
    let wanted = json!({ "notifications": { "resourceSubscriptions": ["show:///fixed"], "taskIds": [task] } });
    let mut of_ben = place.send(&ben, "subscriptions/listen", wanted.clone()).await;
    let mut of_ann = place.send(&ann, "subscriptions/listen", wanted).await;
    let acknowledged = of_ben.event().await.unwrap();
    assert_eq!(acknowledged["params"]["notifications"]["taskIds"], json!([]), "{acknowledged}");
    of_ann.event().await.unwrap();
    place.call(&ann, "show_announce", json!({})).await;
    let told = of_ann.event().await.unwrap();
    assert_eq!(told["method"], "notifications/resources/updated", "{told}");
    place.ask(&ann, "tasks/cancel", id).await;
    place.server.terminate().await;
    while let Some(told) = of_ben.event().await {
        let method = told["method"].as_str().unwrap_or_default();
        assert!(!method.contains("updated") && !method.contains("tasks"), "{told}");
    }
}
