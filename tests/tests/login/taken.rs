//! Revoked rights are gone wherever they are in use: a table of all kinds of rights and of all places where one can be in use. A cell that
//! does not apply says why.

use e2e::{
    Folder, Server, Value,
    exchange::Exchange,
    folder::{stderr, stdout},
    http::modern_headers,
    json, modern_params, plugin,
};

/// The rights that can be revoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Right {
    Plugin,
    TrustInItsFile,
    ToolOfThePlugin,
    Dirs,
    Roots,
    Http,
    Env,
    Ask,
    RoleOfTheCaller,
    ToolOfTheRole,
    FolderOfTheRole,
    ApiKey,
    Profile,
    /// The right to call without approval.
    Unasked,
    Quota,
}

const RIGHTS: [Right; 15] = [
    Right::Plugin,
    Right::TrustInItsFile,
    Right::ToolOfThePlugin,
    Right::Dirs,
    Right::Roots,
    Right::Http,
    Right::Env,
    Right::Ask,
    Right::RoleOfTheCaller,
    Right::ToolOfTheRole,
    Right::FolderOfTheRole,
    Right::ApiKey,
    Right::Profile,
    Right::Unasked,
    Right::Quota,
];

/// The places where a right can be in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    Running,
    Queued,
    /// The result of a finished task.
    Finished,
    /// An instance that is retained for the next call of its client.
    Kept,
    /// A stream of `subscriptions/listen`.
    Listening,
}

enum Cell {
    Gone,
    /// The reason why nothing has to be removed.
    NotApplicable(#[expect(dead_code, reason = "it explains the cell of the table")] &'static str),
}

fn cell(right: Right, held: Held) -> Cell {
    use Cell::{Gone, NotApplicable};
    match (right, held) {
        (Right::Profile, Held::Running | Held::Queued) => {
            NotApplicable("a profile is a view and no right: the same call may be made without it")
        }
        (Right::Unasked, Held::Finished) => NotApplicable(
            "the call could not reach anything that it cannot reach now, and nobody can be asked about the past",
        ),
        (Right::Quota, _) => NotApplicable("a quota counts calls as they begin, and these have begun"),
        (
            Right::Dirs
            | Right::Roots
            | Right::Http
            | Right::Env
            | Right::Ask
            | Right::FolderOfTheRole
            | Right::Unasked,
            Held::Listening,
        ) => NotApplicable("a stream tells of lists, resources and tasks, and reaches nothing itself"),
        _ => Gone,
    }
}

/// The config, without one right if one is to be revoked.
fn config(folder: &Folder, without: Option<Right>) -> String {
    let has = |right| without != Some(right);
    let choose = |right, with: &'static str, other: &'static str| if has(right) { with } else { other };
    let srv = folder.join("srv").display().to_string();
    let grants = [
        choose(
            Right::Dirs,
            "dirs = [{ host = \"SRV/data\", guest = \"/data\", access = \"read-write\" }]",
            "dirs = [{ host = \"SRV/data\", guest = \"/data\", access = \"read\" }]",
        ),
        choose(Right::Roots, "roots = \"read-write\"", "roots = \"read\""),
        choose(Right::Http, "http = [\"https://a.example\", \"https://b.example\"]", "http = [\"https://a.example\"]"),
        choose(Right::Env, "env = [\"TZ\", \"LANG\"]", "env = [\"TZ\"]"),
        choose(Right::Ask, "ask = [\"elicitation\", \"roots\"]", "ask = [\"roots\"]"),
    ]
    .join("\n");
    let table = |id: &str, file: &str, tool: &str, more: &str| {
        let tools = if has(Right::ToolOfThePlugin) { tool } else { "nothing" };
        let sha256 = if has(Right::TrustInItsFile) { String::new() } else { format!("sha256 = \"{:064}\"\n", 0) };
        let confirm = choose(Right::Unasked, "", "confirm = \"all\"\n");
        let calls = if has(Right::Quota) { 1000 } else { 1 };
        format!(
            "[plugins.{id}]\npath = {:?}\ntools = [{tools:?}]\n{sha256}{confirm}{more}\n\
             [plugins.{id}.limits]\ntimeout_ms = 25000\nconcurrency = 2\ncalls_per_minute = {calls}\n\
             [plugins.{id}.grants]\n{grants}\n",
            plugin(file)
        )
    };
    let plugins = if has(Right::Plugin) {
        table("job", "badlist", "t", "config = { mode = \"given\", task = \"optional\" }")
            + &table("kept", "hostile", "remember", "instances = \"reused\"")
    } else {
        String::new()
    };
    let when = choose(Right::RoleOfTheCaller, "ann", "ben");
    let tools = choose(Right::ToolOfTheRole, "tools = [\"*\"]", "tools = [\"nothing\"]");
    let within = choose(Right::FolderOfTheRole, "SRV", "SRV/less");
    let profile = choose(Right::Profile, "[profiles.part]\nplugins = [\"*\"]\n", "");
    format!(
        "[auth]\nkeys_file = \"keys.toml\"\n[roles.one]\nwhen = {{ key = \"{when}\" }}\nplugins = [\"*\"]\n{tools}\n\
         roots = {{ within = \"{within}\" }}\n{profile}[roots]\nfixed = [\"SRV/open\"]\n[limits]\ntask_timeout_ms = 25000\n{plugins}"
    )
    .replace("SRV", &srv)
}

/// Starts a wharf in which Ann uses the right in every place.
struct Place {
    folder: Folder,
    server: Server,
    key: String,
    path: &'static str,
}

impl Place {
    async fn new(right: Right) -> Self {
        let folder = Folder::new();
        for path in ["srv/data/a", "srv/open/a", "srv/less/a"] {
            folder.write(path, "");
        }
        folder.config(&config(&folder, None));
        let made = folder.run(&["keys", "new", "ann"], &[]).await;
        assert!(made.status.success(), "{}", stderr(&made));
        let key = format!("Bearer {}", stdout(&made).trim());
        let server = Server::start(&folder, &[]).await;
        for plugin in ["job", "kept"] {
            server.wait_for_log(&format!("serving plugin=\"{plugin}\"")).await;
        }
        Self { folder, server, key, path: if right == Right::Profile { "/mcp/part" } else { "/mcp" } }
    }

    async fn send(&self, method: &str, params: Value, tasks: bool) -> Exchange {
        let extension = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
        let params = modern_params(params, if tasks { extension } else { json!({}) });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let headers = modern_headers(&body);
        let mut headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        headers.push(("Authorization", &self.key));
        self.server.post_to(self.path, &headers, &body).await
    }

    /// Returns the text of the answer, of any kind.
    async fn said(&self, method: &str, params: Value) -> String {
        self.send(method, params, true).await.text().await
    }

    async fn begin_task(&self, arguments: Value) -> Value {
        let said = self.said("tools/call", json!({ "name": "job_t", "arguments": arguments })).await;
        let answer: Value = said.parse().unwrap_or_default();
        assert!(answer["result"]["taskId"].is_string(), "{said}");
        json!({ "taskId": answer["result"]["taskId"] })
    }

    /// How often the instance of this call has been called.
    async fn remembered(&self) -> Option<String> {
        let said =
            self.send("tools/call", json!({ "name": "kept_remember", "arguments": {} }), false).await.text().await;
        let answer: Value = said.parse().ok()?;
        let text = answer["result"]["content"][0]["text"].as_str()?;
        text.split(' ').next().filter(|count| count.parse::<u32>().is_ok()).map(str::to_owned)
    }

    /// Revokes the right, and waits until that takes effect.
    async fn take(&self, right: Right) {
        if right != Right::ApiKey {
            self.folder.config(&config(&self.folder, Some(right)));
            self.server.wait_for_log("the config was reloaded").await;
            return;
        }
        let revoked = self.folder.run(&["keys", "revoke", "ann"], &[]).await;
        assert!(revoked.status.success(), "{}", stderr(&revoked));
        let began = std::time::Instant::now();
        while self.send("tools/list", json!({}), false).await.status() != 401 {
            assert!(began.elapsed() < e2e::PATIENCE, "the key is still good");
        }
    }
}

const SECRET: &str = "what the task found out";

async fn taken(right: Right) {
    let place = Place::new(right).await;
    let ended = place.begin_task(json!({ "text": SECRET })).await;
    let began = std::time::Instant::now();
    while !place.said("tasks/get", ended.clone()).await.contains(SECRET) {
        assert!(began.elapsed() < e2e::PATIENCE, "{right:?}: the task does not end");
    }
    for expected in ["1", "2"] {
        assert_eq!(place.remembered().await.as_deref(), Some(expected), "{right:?}");
    }
    let spin = json!({ "steps": 1, "spin": true });
    let first = place.begin_task(json!({ "levels": true, "spin": true })).await;
    place.server.wait_for_log("emergency").await;
    // One task of a plugin with two places runs, so the next one waits for its turn.
    let queued = place.begin_task(json!({ "text": "it ran" })).await;
    let call = json!({ "name": "job_t", "arguments": spin, "_meta": { "progressToken": 1 } });
    let mut running = place.send("tools/call", call, false).await;
    let told = running.event().await.unwrap();
    assert_eq!(told["method"], "notifications/progress", "{right:?}: {told}");
    let ids = [&first, &queued, &ended].map(|one| one["taskId"].clone());
    let wanted = json!({ "notifications": { "toolsListChanged": true, "taskIds": ids } });
    let mut stream = place.send("subscriptions/listen", wanted, true).await;
    let told = stream.event().await.unwrap();
    assert_eq!(told["params"]["notifications"]["taskIds"], json!(ids), "{right:?}: {told}");

    place.take(right).await;

    if matches!(cell(right, Held::Running), Cell::Gone) {
        let answer = running.event().await.unwrap();
        let said = answer.to_string();
        assert!(said.contains("The operator took away"), "{right:?}, running: {said}");
    }
    if matches!(cell(right, Held::Queued), Cell::Gone) {
        // It is stopped while it waits, or refused when its turn comes because the task before it was stopped.
        let began = std::time::Instant::now();
        let said = loop {
            let said = place.said("tasks/get", queued.clone()).await;
            if !said.contains("\"working\"") {
                break said;
            }
            assert!(began.elapsed() < e2e::PATIENCE, "{right:?}, queued: {said}");
        };
        assert!(!said.contains("it ran"), "{right:?}, queued: {said}");
    }
    if matches!(cell(right, Held::Finished), Cell::Gone) {
        for (method, params) in
            [("tasks/get", ended.clone()), ("tasks/list", json!({})), ("tasks/result", ended.clone())]
        {
            let said = place.said(method, params).await;
            assert!(!said.contains(SECRET), "{right:?}, finished: {method}: {said}");
        }
    }
    if matches!(cell(right, Held::Kept), Cell::Gone) {
        // Either the call is refused, or its instance is new.
        let count = place.remembered().await;
        assert!(count.as_deref().is_none_or(|count| count == "1"), "{right:?}, kept: {count:?}");
    }
    if matches!(cell(right, Held::Listening), Cell::Gone) {
        loop {
            let Some(told) = stream.event().await else {
                // A caller who is unknown now gets no further messages.
                assert_eq!(right, Right::ApiKey, "listening: the stream ended");
                break;
            };
            assert!(!told.to_string().contains("it ran"), "{right:?}, listening: {told}");
            if told["method"] == "notifications/tools/list_changed" {
                break;
            }
        }
        let said = place.said("tools/list", json!({})).await;
        assert!(!said.contains("job_t"), "{right:?}, listening: {said}");
    }
    // After the right is restored, items that could reach too much for a while stay removed; those that only depend on names are visible
    // again.
    if right != Right::ApiKey {
        place.folder.config(&config(&place.folder, None));
        place.server.wait_for_nth_log("the config was reloaded", 2).await;
        let withdrawn = matches!(
            right,
            Right::Plugin | Right::TrustInItsFile | Right::Dirs | Right::Roots | Right::Http | Right::Env | Right::Ask
        );
        if withdrawn {
            let said = place.said("tasks/get", ended.clone()).await;
            assert!(!said.contains(SECRET), "{right:?}, after it came back: {said}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_taken_away_is_gone_wherever_it_is_held() {
    let mut open = Vec::new();
    for right in RIGHTS {
        // Checked separately, so that all problems are seen at once.
        let mut alone = tokio::task::JoinSet::new();
        alone.spawn(taken(right));
        if alone.join_next().await.is_none_or(|ended| ended.is_err()) {
            open.push(right);
        }
    }
    assert!(open.is_empty(), "still open: {open:?}");
}
