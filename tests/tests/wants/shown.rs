//! `build --embed`, `inspect` and `check`, and the log.

use std::os::unix::fs::PermissionsExt;

use e2e::{
    Folder, Pipe,
    folder::{stderr, stdout},
    json,
};

use crate::{ALL, wanting};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_embedded_is_shown() {
    let folder = Folder::new();
    let plugin = folder.plugin("outgoing");
    let before = stdout(&folder.run(&["inspect", "plugins/outgoing.wasm"], &[]).await);
    assert!(before.contains("\nit does not say what it wants, could use "), "{before}");
    assert!(before.lines().any(|line| line.starts_with("it does not say") && line.contains("HTTP")), "{before}");
    folder.set_mode("plugins/outgoing.wasm", 0o640);
    wanting(&folder, "outgoing", "other", "roots = 'read'").await;
    folder.write("wants.toml", ALL);
    let embed = [
        "build",
        "--embed",
        "plugins/outgoing.wasm",
        "--wants",
        "wants.toml",
        "--instructions",
        "Ask twice.",
        "-o",
        "plugins/new.wasm",
    ];
    let output = folder.run(&embed, &[]).await;
    assert!(output.status.success(), "{}", stderr(&output));
    let inspected = stdout(&folder.run(&["inspect", "plugins/new.wasm"], &[]).await);
    for line in [
        "wants GET POST https://api.example.com/, with the secret `token` in the header authorization",
        "  | it says: \"reads issues; private repositories\"",
        "wants roots (read)",
        "  | it says: \"to attach files\"",
        "wants the variable TZ",
        "wants asking the client (elicitation)",
        "wants the setting `org` (string, required)",
        "  | it says: \"whose issues\"",
        "wants the setting `pages` (number)",
    ] {
        assert!(inspected.lines().any(|shown| shown == line), "{line}\n{inspected}");
    }
    let digest =
        |text: &str| text.lines().find(|line| line.contains("sha256")).unwrap().rsplit(' ').next().unwrap().to_owned();
    assert_eq!(digest(&inspected), digest(&stdout(&output)));
    assert_ne!(digest(&inspected), digest(&before));
    // In place: the sections are replaced, and the mode is preserved.
    folder.write("less.toml", "ask = ['sampling']");
    assert!(folder.run(&["build", "--embed", "plugins/new.wasm", "--wants", "less.toml"], &[]).await.status.success());
    assert!(
        folder.run(&["build", "--embed", "plugins/outgoing.wasm", "--wants", "less.toml"], &[]).await.status.success()
    );
    let inspected = stdout(&folder.run(&["inspect", "plugins/new.wasm"], &[]).await);
    assert!(inspected.contains("wants asking the client (sampling)\nwants nothing else, could use "), "{inspected}");
    assert!(!inspected.contains("api.example.com"), "{inspected}");
    assert_eq!(std::fs::metadata(&plugin).unwrap().permissions().mode() & 0o777, 0o640);
    let mut pipe = Pipe::start(&folder, &["run", "plugins/new.wasm"]);
    let greeted = pipe.legacy("2025-11-25", json!({})).await;
    assert!(greeted.to_string().contains("Ask twice."), "{greeted}");
    pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_embedded_is_refused() {
    let folder = Folder::new();
    folder.plugin("hello");
    folder.write("plugins/core.wasm", b"\0asm\x01\0\0\0");
    folder.write("plugins/text.wasm", b"text");
    folder.write("good.toml", "roots = 'read'");
    folder.write("long.txt", "x".repeat(3000));
    let before = std::fs::read(folder.join("plugins/hello.wasm")).unwrap();
    for (wants, arguments, expected) in [
        (
            "htpp = []",
            &["plugins/hello.wasm", "--wants", "wrong.toml"][..],
            "wrong.toml:1: unknown key `htpp`; did you mean `http`?",
        ),
        ("\nroots = 'all'", &["plugins/hello.wasm", "--wants", "wrong.toml"], "neither \"read\" nor \"read-write\""),
        ("", &["plugins/core.wasm", "--wants", "good.toml"], "a core WebAssembly module"),
        ("", &["plugins/text.wasm", "--wants", "good.toml"], "not WebAssembly"),
        ("", &["plugins/hello.wasm", "--wants", "none.toml"], "none.toml: cannot be read"),
        ("", &["plugins/none.wasm", "--wants", "good.toml"], "none.wasm: cannot be read"),
        ("", &["plugins/hello.wasm"], "<--wants <FILE>|--instructions <TEXT|@FILE>>"),
        ("", &["plugins/hello.wasm", "--instructions", "@long.txt"], "3000 bytes are more than 2048"),
    ] {
        folder.write("wrong.toml", wants);
        let output = folder.run(&[&["build", "--embed"], arguments].concat(), &[]).await;
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(expected), "{expected}: {}", stderr(&output));
    }
    assert_eq!(std::fs::read(folder.join("plugins/hello.wasm")).unwrap(), before);
}

/// Plugins in Rust declare wants in their code, without another step.
#[tokio::test(flavor = "multi_thread")]
async fn the_plugins_of_the_repository_say_what_they_want() {
    let folder = Folder::new();
    for (name, lines) in [
        (
            "github",
            &[
                "wants GET POST https://api.github.com/, with the secret `github` in the header authorization",
                "  | it says: \"lists, ",
            ][..],
        ),
        (
            "fetch",
            &["wants the setting `user_agent` (string)", "wants nothing else, could use environment variables, HTTP"],
        ),
    ] {
        let plugin = folder.plugin(name);
        let inspected = stdout(&folder.run(&["inspect", plugin.to_str().unwrap()], &[]).await);
        for line in lines {
            assert!(inspected.lines().any(|shown| shown.starts_with(line)), "{line}\n{inspected}");
        }
    }
}

/// A section written by a hostile author, with a tool that checks nothing.
fn section(component: &[u8], text: &str) -> Vec<u8> {
    let number = |mut number: usize| {
        let mut bytes = Vec::new();
        while number >= 0x80 {
            bytes.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
        bytes
    };
    let body = [&number("wharf:wants".len())[..], b"wharf:wants", text.as_bytes()].concat();
    [component, &[0], &number(body.len()), &body].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_section_keeps_a_plugin_from_loading() {
    let folder = Folder::new();
    let hello = std::fs::read(e2e::plugin("hello")).unwrap();
    for (text, expected) in [
        ("{", "FAILED (list): the section wharf:wants: EOF"),
        (r#"{"htpp":[]}"#, "FAILED (list): the section wharf:wants: unknown key `htpp`; did you mean `http`?"),
        ("{\"\\u001b[2J\":1}", r"unknown key `\u{1b}[2J`"),
        ("{\"roots\":\"\u{1b}[31mall\"}", "FAILED (list)"),
    ] {
        folder.write("plugins/bad.wasm", section(&hello, text));
        let output = folder.run(&["inspect", "plugins/bad.wasm"], &[]).await;
        let said = stdout(&output);
        assert!(said.contains(expected) && !said.contains('\u{1b}'), "{said}");
        assert_eq!(output.status.code(), Some(1));
        let added = folder.run(&["add", "plugins/bad.wasm"], &[]).await;
        assert!(stderr(&added).contains("the section wharf:wants: ") && !stderr(&added).contains('\u{1b}'));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn check_says_what_is_wanted_and_what_is_granted() {
    let folder = Folder::new();
    wanting(&folder, "outgoing", "out", ALL).await;
    folder.plugin("hello");
    folder.config(
        "[plugins.out]\npath = '../../plugins/out.wasm'\nconfig = { org = 'acme' }\n[plugins.out.grants]\nenv = ['TZ', 'LANG']\n\
         http = ['https://api.example.com', 'https://other.example']\n[plugins.hello]\npath = '../../plugins/hello.wasm'\n",
    );
    let checked = stdout(&folder.run(&["check"], &[]).await);
    for lines in [
        "  wanted, not granted: GET POST https://api.example.com/, with the secret `token` in the header authorization\n  | it says: \"reads issues; private repositories\"\n    \
         add { url = \"https://api.example.com/\", methods = [\"GET\", \"POST\"], headers = { authorization = \"Bearer {token}\" } } to `http` in [plugins.out.grants]; it needs a secret `token` in [secrets]\n",
        "  wanted, not granted: roots (read)\n  | it says: \"to attach files\"\n    add roots = \"read\" to [plugins.out.grants]\n",
        "    add \"elicitation\" to `ask` in [plugins.out.grants]\n",
        "  wanted, not granted: the setting `pages` (number)\n    add pages = 0 to [plugins.out.config]\n",
        "  granted, not wanted: the variable LANG; GET HEAD https://other.example/\n",
        "hello: ok, 1 tools",
        "  it does not say what it wants\n",
    ] {
        assert!(checked.contains(lines), "{lines}\n{checked}");
    }
    assert!(!checked.contains("wanted, not granted: the variable TZ") && !checked.contains("`org`"), "{checked}");
}

/// The suggested lines must load: ids with dots need quotation marks, and a table needs the path of its file.
#[tokio::test(flavor = "multi_thread")]
async fn the_lines_for_a_dropped_in_plugin_are_complete() {
    let folder = Folder::new();
    wanting(&folder, "hello", "my.plugin", "env = ['TZ']").await;
    let file = folder.config(&format!("plugin_dir = {:?}\n", folder.join("plugins")));
    let checked = stdout(&folder.run(&["check"], &[]).await);
    let path = folder.join("plugins/my.plugin.wasm");
    let line = format!(
        "    add \"TZ\" to `env` in [plugins.\"my.plugin\".grants]; [plugins.\"my.plugin\"] must contain path = \"{}\"\n",
        path.display()
    );
    assert!(checked.contains(&line), "{line}\n{checked}");
    // Without a terminal, `grant` says the same.
    let said = stderr(&folder.run(&["grant", "my.plugin"], &[]).await);
    assert!(said.contains("\n[plugins.\"my.plugin\"]\npath = \"") && said.contains("\nsha256 = \""), "{said}");
    assert!(said.contains("\n# [plugins.\"my.plugin\".grants]\n# env = [\"TZ\"]"), "{said}");
    folder
        .config(&format!("[plugins.\"my.plugin\"]\npath = {path:?}\n[plugins.\"my.plugin\".grants]\nenv = [\"TZ\"]\n"));
    assert!(folder.run(&["check"], &[]).await.status.success(), "{}", file.display());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_that_wants_more_keeps_its_grants() {
    let folder = Folder::new();
    wanting(&folder, "hello", "hello", "env = ['TZ']").await;
    folder.config("[plugins.hello]\npath = '../../plugins/hello.wasm'\n[plugins.hello.grants]\nenv = ['TZ']\n");
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy("2025-11-25", json!({})).await;
    wanting(&folder, "hello", "new", "env = ['TZ', 'LANG']\nroots = 'read'").await;
    std::fs::rename(folder.join("plugins/new.wasm"), folder.join("plugins/hello.wasm")).unwrap();
    pipe.wait_for_log(
        "it now also wants roots (read); the variable LANG, which is not granted; `wharf grant hello` asks for it",
    )
    .await;
    let ended = pipe.close().await;
    assert!(!ended.log.contains("it wants "), "at first it had all that it wanted: {}", ended.log);
}
