//! Built-in plugins by one command each, from an empty home directory and without a config.

use std::os::unix::fs::PermissionsExt;

use e2e::{Folder, Pipe, Value, is_error, json, names, text};

async fn started(folder: &Folder, options: &[&str], environment: &[(&str, &str)]) -> Pipe {
    let mut pipe = Pipe::start_with(folder, &[&["run"], options].concat(), environment);
    pipe.legacy("2025-11-25", json!({})).await;
    pipe
}

/// Returns the text of an answer that is not an error and has nothing but this text.
fn said(result: &Value) -> &str {
    assert!(!is_error(result) && result.get("structuredContent").is_none(), "{result}");
    text(result)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_local_time_is_that_of_the_machine() {
    let folder = Folder::new();
    for (tz, zone, offset) in [
        ("Asia/Kolkata", "Asia/Kolkata", "+05:30"),
        (":Asia/Kolkata", "Asia/Kolkata", "+05:30"),
        ("IST-5:30", "IST-5:30", "+05:30"),
        ("<+0330>-3:30", "<+0330>-3:30", "+03:30"),
        ("", "UTC", "+00:00"),
    ] {
        let mut pipe = started(&folder, &["--builtin", "time"], &[("TZ", tz)]).await;
        let now: Value = serde_json::from_str(said(&pipe.call("get_current_time", json!({})).await)).unwrap();
        assert_eq!(now["timezone"], zone, "{tz}: {now}");
        assert!(now["datetime"].as_str().unwrap().ends_with(offset), "{tz}: {now}");
        pipe.close().await;
    }
    for (tz, expected) in [("Nowhere/Else", "`Nowhere/Else`"), (":/no/such/file", "`/no/such/file`")] {
        let mut pipe = started(&folder, &["--builtin", "time"], &[("TZ", tz)]).await;
        let unknown = pipe.call("get_current_time", json!({})).await;
        assert!(is_error(&unknown) && text(&unknown).contains(expected), "{unknown}");
        let named = pipe.call("get_current_time", json!({ "timezone": "Europe/Paris" })).await;
        assert!(said(&named).contains("Europe/Paris"), "{named}");
        pipe.close().await;
    }
    // A zone in the config takes precedence.
    folder.config("[plugins.time]\nbuiltin = 'time'\nconfig = { timezone = 'Asia/Tokyo' }\n");
    let mut pipe = started(&folder, &[], &[("TZ", "Asia/Kolkata")]).await;
    let now = pipe.call("time_get_current_time", json!({})).await;
    assert!(said(&now).contains("Asia/Tokyo"), "{now}");
    pipe.close().await;
}

/// Makes an empty repository.
fn repository(folder: &Folder, name: &str, config: &str) -> String {
    for place in ["objects", "refs/heads"] {
        std::fs::create_dir_all(folder.join(name).join(".git").join(place)).unwrap();
    }
    folder.write(&format!("{name}/.git/HEAD"), "ref: refs/heads/main\n");
    folder.write(
        &format!("{name}/.git/config"),
        format!("[core]\n\trepositoryformatversion = 0\n\tbare = false\n{config}"),
    );
    folder.write(&format!("{name}/a.txt"), "one\n");
    folder.join(name).display().to_string()
}

/// Commits in a repository. Returns the author, or the error.
async fn committed(folder: &Folder, at: &str, environment: &[(&str, &str)]) -> Result<String, String> {
    let mut pipe = started(folder, &["--builtin", "git", at], environment).await;
    said(&pipe.call("git_add", json!({ "repo_path": at, "files": ["a.txt"] })).await);
    let commit = pipe.call("git_commit", json!({ "repo_path": at, "message": "First" })).await;
    if is_error(&commit) {
        pipe.close().await;
        return Err(text(&commit).to_owned());
    }
    let log = pipe.call("git_show", json!({ "repo_path": at, "revision": "HEAD" })).await;
    let author = said(&log).lines().find_map(|line| line.strip_prefix("Author: ")).unwrap().to_owned();
    pipe.close().await;
    Ok(author)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_has_the_name_of_the_person() {
    let folder = Folder::new();
    let plain = repository(&folder, "plain", "");
    let own = repository(&folder, "own", "[user]\n\tname = Own\n");
    let with_variables = repository(&folder, "variables", "");
    let unknown = committed(&folder, &plain, &[("GIT_CONFIG_NOSYSTEM", "1")]).await.unwrap_err();
    assert!(unknown.contains("no author is configured") && unknown.contains("git config --global"), "{unknown}");
    folder.write("home/.gitconfig", "[user]\n\tname = \"Ann Lee\" ; at home\n[include]\n\tpath = .more\n");
    folder.write("home/.more", "[user]\n\temail = ann@example.org\n");
    for (at, environment, expected) in [
        (&plain, vec![], "Ann Lee <ann@example.org>"),
        (&own, vec![], "Own <ann@example.org>"),
        (&with_variables, vec![("GIT_AUTHOR_NAME", "Ben")], "Ben <ann@example.org>"),
    ] {
        let author = committed(&folder, at, &environment).await.unwrap();
        assert!(author.contains(expected), "{at}: {author}");
    }
    let elsewhere = folder.write("elsewhere", "[user]\nname = Cat\nemail = cat@example.org\n").display().to_string();
    let other = repository(&folder, "other", "");
    let author = committed(&folder, &other, &[("GIT_CONFIG_GLOBAL", &elsewhere)]).await.unwrap();
    assert!(author.contains("Cat <cat@example.org>"), "{author}");
    // A plugin may have written a git in PATH.
    let other_git = folder.write("bin/git", "#!/bin/sh\nprintf 'user.name\\nEve\\0user.email\\neve@example.org\\0'\n");
    std::fs::set_permissions(&other_git, PermissionsExt::from_mode(0o755)).unwrap();
    let path = repository(&folder, "path", "");
    let author = committed(&folder, &path, &[("PATH", &folder.join("bin").display().to_string())]).await.unwrap();
    assert!(author.contains("Ann Lee <ann@example.org>"), "{author}");
    folder.write("home/.gitconfig", "[user\nname = Ann\n");
    let broken = repository(&folder, "broken", "");
    let unknown = committed(&folder, &broken, &[]).await.unwrap_err();
    // The log has the file and the line. A model that could make a config include files would learn here which of them exist.
    assert!(unknown.contains("its log says why") && !unknown.contains(".gitconfig"), "{unknown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_person_ignores_everywhere_is_not_staged() {
    let folder = Folder::new();
    for (config, ignored) in [("", "config/git/ignore"), ("[core]\n\texcludesFile = ~/ignored\n", "home/ignored")] {
        folder.write("home/.gitconfig", format!("[user]\n\tname = Ann\n\temail = ann@example.org\n{config}"));
        folder.write(ignored, ".env\n");
        let at = repository(&folder, ignored.rsplit('/').next().unwrap(), "");
        std::fs::write(folder.join(&at).join(".env"), "SECRET=1\n").unwrap();
        let mut pipe = started(&folder, &["--builtin", "git", &at], &[]).await;
        said(&pipe.call("git_add", json!({ "repo_path": at, "files": ["."] })).await);
        let status = pipe.call("git_status", json!({ "repo_path": at })).await;
        assert!(said(&status).contains("new file:   a.txt") && !said(&status).contains(".env"), "{status}");
        let named = pipe.call("git_add", json!({ "repo_path": at, "files": [".env"] })).await;
        assert!(is_error(&named) && text(&named).contains("are ignored"), "{named}");
        pipe.close().await;
        std::fs::remove_file(folder.join(ignored)).unwrap();
    }
}

fn entity(name: &str) -> Value {
    json!({ "entities": [{ "name": name, "entityType": "person", "observations": ["tall"] }] })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_note_is_remembered_in_the_state_folder() {
    let folder = Folder::new();
    let mut pipe = started(&folder, &["--builtin", "memory"], &[]).await;
    said(&pipe.call("create_entities", entity("Ann")).await);
    pipe.close().await;
    let state = folder.home().join(".local/state/wharf/memory");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&state).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o700);
    let written = std::fs::read_to_string(state.join("memory.jsonl")).unwrap();
    // Another program may append a line.
    std::fs::write(state.join("memory.jsonl"), format!("{written}{}\n", written.trim().replace("Ann", "Ben"))).unwrap();
    let mut pipe = started(&folder, &["--builtin", "memory", "--builtin", "files", "home"], &[]).await;
    let graph = pipe.call("memory_read_graph", json!({})).await;
    assert!(said(&graph).contains("Ann") && said(&graph).contains("Ben"), "{graph}");
    pipe.close().await;
    let called = folder.run(&["call", "--builtin", "memory", "read_graph"], &[]).await;
    assert!(e2e::folder::stdout(&called).contains("Ann"), "{called:?}");
    // A folder for it alone is used instead.
    folder.write("mine/README", "");
    let mut pipe = started(&folder, &["--builtin", "memory", "mine"], &[]).await;
    said(&pipe.call("create_entities", entity("Cat")).await);
    pipe.close().await;
    assert!(std::fs::read_to_string(folder.join("mine/memory.jsonl")).unwrap().contains("Cat"));
}

#[tokio::test(flavor = "multi_thread")]
async fn thoughts_are_kept_for_the_session() {
    let folder = Folder::new();
    let thought = |number: u64| {
        json!({ "thought": "t", "thoughtNumber": number, "totalThoughts": 3, "nextThoughtNeeded": true,
                "branchFromThought": 1, "branchId": format!("b{number}") })
    };
    let check = |result: &Value, number: u64| {
        let progress: Value = serde_json::from_str(said(result)).unwrap();
        assert_eq!(progress["thoughtHistoryLength"], number, "{progress}");
        assert_eq!(progress["branches"].as_array().unwrap().len() as u64, number, "{progress}");
    };
    let mut pipe = started(&folder, &["--builtin", "sequentialthinking"], &[]).await;
    for number in 1..=3 {
        check(&pipe.call("sequentialthinking", thought(number)).await, number);
    }
    pipe.close().await;
    let mut modern = Pipe::start(&folder, &["run", "--builtin", "sequentialthinking"]);
    for number in 1..=3 {
        let params = json!({ "name": "sequentialthinking", "arguments": thought(number) });
        check(&modern.modern("tools/call", params, json!({})).await.unwrap(), number);
    }
    modern.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_name_says_the_same_twice_and_each_plugin_says_what_it_is_for() {
    let folder = Folder::new();
    let all = ["fetch", "files", "git", "memory", "sequentialthinking", "time"];
    let options: Vec<&str> = all.iter().flat_map(|name| ["--builtin", name]).collect();
    let mut pipe = started(&folder, &options, &[]).await;
    let tools = names(&pipe.request("tools/list", json!({})).await.unwrap(), "tools");
    for expected in
        ["fetch", "files_read_text_file", "git_status", "memory_read_graph", "sequentialthinking", "time_convert_time"]
    {
        assert!(tools.contains(&expected.to_owned()), "{tools:?}");
    }
    for name in &tools {
        let words: Vec<&str> = name.split('_').collect();
        assert!(words.array_windows().all(|[one, other]| one != other), "{name}");
    }
    let found = pipe.modern("server/discover", json!({}), json!({})).await.unwrap();
    let instructions = found["instructions"].as_str().unwrap();
    for name in ["fetch", "folders", "git", "memory", "sequentialthinking", "time"] {
        assert!(instructions.contains(name), "{name}: {instructions}");
    }
    pipe.close().await;
}
