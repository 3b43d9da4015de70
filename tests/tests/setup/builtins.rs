//! `--builtin`, and folders named on the command line.

use std::path::Path;

use e2e::{
    Folder, Pipe, Terminal,
    folder::{stderr, stdout},
    json, text,
};

/// Calls a tool of `files`; the text of its answer, and whether it is an error.
async fn call(pipe: &mut Pipe, tool: &str, arguments: e2e::Value) -> (String, bool) {
    let result = pipe.call(tool, arguments).await;
    (text(&result).to_owned(), result["isError"] == true)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_folders_of_the_command_line_are_open_and_no_others() {
    let folder = Folder::new();
    folder.write("docs/a.txt", "hello");
    folder.write("home/open/b.txt", "secret");
    let mut pipe = Pipe::start(&folder, &["run", "--builtin", "files", "docs"]);
    let open = format!("file://{}", folder.join("home/open").display());
    pipe.answer_with(move |_, _| Some(json!({ "roots": [{ "uri": open }] })));
    pipe.legacy("2025-11-25", json!({ "roots": {} })).await;
    let (at, theirs) = (folder.join("docs"), folder.join("home/open/b.txt"));
    assert_eq!(call(&mut pipe, "read_text_file", json!({ "path": at.join("a.txt") })).await, ("hello".into(), false));
    let (_, failed) = call(&mut pipe, "write_file", json!({ "path": at.join("new.txt"), "content": "x" })).await;
    assert!(!failed && at.join("new.txt").is_file());
    assert!(call(&mut pipe, "read_text_file", json!({ "path": theirs })).await.1, "what only the client opened");
    pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_for_reading_only_is_not_written() {
    let folder = Folder::new();
    folder.write("docs/a.txt", "hello");
    let plugin = folder.plugin("files");
    for arguments in [["--builtin", "files"], ["--prefix", "files_"]] {
        let file = if arguments[0] == "--prefix" { vec![plugin.to_str().unwrap()] } else { vec![] };
        let all = [&["run", "--read-only"], arguments.as_slice(), file.as_slice(), &["docs"]].concat();
        let mut pipe = Pipe::start(&folder, &all);
        pipe.legacy("2025-11-25", json!({})).await;
        let at = folder.join("docs");
        let prefix = if file.is_empty() { "" } else { "files_" };
        let read = format!("{prefix}read_text_file");
        let read = call(&mut pipe, &read, json!({ "path": at.join("a.txt") })).await;
        assert_eq!(read, ("hello".into(), false), "{all:?}");
        // What a built-in plugin cannot do is not offered.
        let write = json!({ "name": format!("{prefix}write_file"), "arguments": { "path": at.join("new.txt"), "content": "x" } });
        let written = pipe.request("tools/call", write).await;
        let offered = e2e::names(&pipe.request("tools/list", json!({})).await.unwrap(), "tools");
        assert_eq!(offered.iter().any(|name| name.ends_with("write_file")), !file.is_empty(), "{all:?}: {offered:?}");
        assert_eq!(written.is_err(), file.is_empty(), "{all:?}: {written:?}");
        assert!(written.map_or(true, |result| result["isError"] == true) && !at.join("new.txt").exists(), "{all:?}");
        pipe.close().await;
    }
}

/// The folders of the command line are for the plugins there: no config can give them to others, or give these plugins more.
#[tokio::test(flavor = "multi_thread")]
async fn folders_are_for_the_plugins_beside_them_only() {
    let folder = Folder::new();
    folder.write("docs/a.txt", "hello");
    let other = "[plugins.other]\nbuiltin = 'files'\n[plugins.other.grants]\nroots = 'read-write'\n";
    folder.config(other);
    let given = ["--builtin", "time", "--builtin", "files", "--read-only", "docs"];
    let mut pipe = Pipe::start(&folder, &[&["run"], given.as_slice()].concat());
    pipe.legacy("2025-11-25", json!({})).await;
    let listed = e2e::names(&pipe.request("tools/list", json!({})).await.unwrap(), "tools");
    assert!(listed.contains(&"files_read_text_file".to_owned()), "{listed:?}");
    assert!(!listed.iter().any(|name| name.starts_with("other_")), "the default config is not read: {listed:?}");
    pipe.close().await;
    let named = folder.write("named.toml", other).display().to_string();
    let from = folder.write("from.toml", "[roots]\nfrom = \"client\"\n").display().to_string();
    for (more, expected) in [
        (["-c", named.as_str()], "[plugins.other]: this plugin has `roots`"),
        (["-c", from.as_str()], "`from` says whose roots count"),
        (["--root", "home"], "use one of the two"),
    ] {
        let output = folder.run(&[&["run"], more.as_slice(), given.as_slice()].concat(), &[]).await;
        assert!(!output.status.success() && stderr(&output).contains(expected), "{more:?}: {}", stderr(&output));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_config_names_one_as_well_and_grants_it_what_it_says() {
    let folder = Folder::new();
    folder.write("docs/a.txt", "hello");
    let config = folder.config(&format!(
        "[plugins.mine]\nbuiltin = 'files'\n[plugins.mine.grants]\nroots = 'read'\n[roots]\nfixed = [{:?}]\n",
        folder.join("docs")
    ));
    let checked = folder.run(&["check"], &[]).await;
    assert!(
        stdout(&checked).contains("mine: ok, ") && stdout(&checked).contains("granted: roots (read)"),
        "{checked:?}"
    );
    let path = format!("path={}", Path::new(&folder.join("docs/a.txt")).display());
    // A built-in plugin on the command line has the grants of the same component in the config, as a file would, if the config is named.
    let called =
        folder.run(&["call", "-c", config.to_str().unwrap(), "--builtin", "files", "read_text_file", &path], &[]).await;
    assert_eq!(stdout(&called).trim(), "hello", "{}", stderr(&called));
    let called = folder.run(&["call", "--builtin", "files", "read_text_file", &path], &[]).await;
    assert_eq!(called.status.code(), Some(1), "{}{}", stdout(&called), stderr(&called));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_single_call_has_the_folders_of_its_command_line() {
    let folder = Folder::new();
    folder.write("docs/a.txt", "hello");
    folder.write("home/b.txt", "secret");
    let path = |name: &str| format!("path={}", folder.join(name).display());
    let call = ["call", "--builtin", "files"];
    for (more, expected, code) in [
        (vec!["docs".to_owned(), "read_text_file".into(), path("docs/a.txt")], "hello", 0),
        (vec!["docs".into(), "read_text_file".into(), path("home/b.txt")], "", 1),
        (vec!["docs".into(), "write_file".into(), path("docs/c.txt"), "content=x".into()], "", 0),
        (vec!["--read-only".into(), "docs".into(), "write_file".into(), path("docs/d.txt"), "content=x".into()], "", 2),
        (vec!["./dosc".into(), "list_allowed_directories".into()], "", 2),
    ] {
        let words: Vec<&str> = call.into_iter().chain(more.iter().map(String::as_str)).collect();
        let output = folder.run(&words, &[]).await;
        assert_eq!(output.status.code(), Some(code), "{words:?}: {}{}", stdout(&output), stderr(&output));
        assert!(stdout(&output).contains(expected), "{words:?}: {}", stdout(&output));
    }
    assert!(folder.join("docs/c.txt").exists() && !folder.join("docs/d.txt").exists());
}

/// A reader that has gone, such as `head`, is not told as an error of the command line.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_whose_output_is_not_read_ends_without_a_word() {
    let folder = Folder::new();
    for arguments in [
        ["print", "schema"].as_slice(),
        &["print", "completions", "zsh"],
        &["check", "--machine"],
        &["install", "--list"],
        &["--help"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let child = folder.command(arguments, &[]).stdout(writer).stderr(std::process::Stdio::piped()).spawn();
        let output = child.unwrap().wait_with_output().await.unwrap();
        assert_eq!(stderr(&output), "", "{arguments:?}");
        // As shells report a program that SIGPIPE ended; clap ignores that nobody reads its help.
        let expected = if arguments[0] == "--help" { 0 } else { 141 };
        assert_eq!(output.status.code(), Some(expected), "{arguments:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_has_colours_only_where_the_person_wants_them() {
    let folder = Folder::new();
    for (value, has_colours) in [("", true), ("1", false)] {
        let mut terminal = Terminal::start_with(&folder, &["run", "--builtin", "time"], &[("NO_COLOR", value)]);
        let shown = terminal.until("serving").await;
        assert_eq!(shown.contains("\u{1b}["), has_colours, "NO_COLOR={value}: {shown:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn shells_complete_the_names_of_plugins_and_clients() {
    let folder = Folder::new();
    let clients = ["claude-desktop", "qwen-code"].as_slice();
    // In the scripts for fish, only options have values.
    for (shell, clients) in [("bash", clients), ("zsh", clients), ("fish", &[])] {
        let script = stdout(&folder.run(&["print", "completions", shell], &[]).await);
        for name in clients.iter().chain(&["sequentialthinking"]) {
            assert!(script.contains(name), "{shell}: {name}");
        }
    }
    let help = stdout(&folder.run(&["install", "--help"], &[]).await);
    assert!(!help.contains("possible values: claude-desktop"), "{help}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_is_told() {
    let folder = Folder::new();
    folder.write("docs/a.txt", "hello");
    for (arguments, expected) in [
        (["run", "--builtin", "fiels"].as_slice(), "there is no built-in plugin `fiels`; there are: fetch, files, git"),
        (
            &["run", "--builtin", "files", "dcos"],
            "dcos does not exist: there is no such folder, and no such plugin; did",
        ),
        (&["run", "docs"], "add `--builtin files`"),
        (&["run", "--builtin", "files", "--prefix", "a b", "docs"], "--prefix: `prefix` may have letters"),
        (&["run", "--builtin", "fetch", "--allow", "http=ftp://x"], "--allow: "),
        (&["inspect", "--builtin", "tiem"], "there is no built-in plugin `tiem`"),
        (&["call", "--builtin", "time", "now"], "the plugin has no tool `now`; it has: get_current_time"),
        (&["call", "--builtin", "files", "dcos", "read_text_file", "path=a.txt"], "there is no folder `dcos`"),
        (&["call", "--builtin", "files", "docs"], "`docs` is a folder, and a tool has to follow it: read_"),
        (
            &["call", "--builtin", "files", "--read-only", "docs", "write_file", "path=a"],
            "`write_file` with --read-only, which",
        ),
        (&["call", "plugin.wasm"], "name the tool"),
    ] {
        let output = folder.run(arguments, &[]).await;
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(expected), "{arguments:?}: {}", stderr(&output));
    }
    let inspected = stdout(&folder.run(&["inspect", "--builtin", "time"], &[]).await);
    assert!(inspected.contains("tool get_current_time: "), "{inspected}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_fails_says_why_its_folder_is_read_only() {
    let folder = Folder::new();
    let config = folder.config("").display().to_string();
    let (all, file) = (folder.path().display().to_string(), folder.write("a.txt", "hello").display().to_string());
    let (path, note) =
        (format!("path={file}"), format!("note: {all} is read-only, because files that a wharf of this user"));
    for (tool, fails) in [("write_file", true), ("read_text_file", false)] {
        let words = ["call", "-c", &config, "--builtin", "files", &all, tool, &path, "content=new"];
        let called = folder.run(&words[..if fails { 9 } else { 8 }], &[]).await;
        let said = stderr(&called);
        assert_eq!((called.status.success(), said.contains(&note)), (!fails, fails), "{tool}: {said}");
    }
}
