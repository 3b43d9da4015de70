//! `add` and `grant`: which secret goes where, which file is trusted, and what is looked at on the way.

use e2e::{Folder, Terminal, folder::stdout};

use crate::wanting;

fn written(folder: &Folder) -> String {
    std::fs::read_to_string(folder.join("config/wharf/wharf.toml")).unwrap()
}

const TWO_HOSTS: &str = "http = [{ url = 'https://api.example.com/', secret = 'key' }, { url = 'https://evil.example/', secret = 'key', header = 'x-key' }]\n\
                         secrets = [{ name = 'key' }]\n";

/// Whoever lets a secret go to one host has said nothing about another.
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_goes_to_no_host_unasked() {
    let folder = Folder::new();
    wanting(&folder, "outgoing", "out", TWO_HOSTS).await;
    for (known, answers, second) in [
        // In the config already, and for the second host not.
        (true, ["y", "n", ""], "\"https://evil.example/\""),
        // Said for the first host, and said to be the same for the second.
        (false, ["env KEY", "y", ""], "{ url = \"https://evil.example/\", headers = { x-key = \"{key}\" } }"),
    ] {
        folder.config(if known { "[secrets]\nkey = { command = [\"op\", \"read\"] }\n" } else { "" });
        let mut terminal = Terminal::start(&folder, &["add", "plugins/out.wasm"]);
        terminal
            .until("Allow GET HEAD https://api.example.com/, with the secret `key` in the header authorization? [y/N] ")
            .await;
        terminal.types("y");
        let source = if known { "the command op" } else { "the variable KEY" };
        match known {
            true => terminal.until("Is it the secret `key` of the config, from the command op, and is that to go to https://api.example.com in the header authorization? [y/N] ").await,
            false => terminal.until("nothing to go without) ").await,
        };
        terminal.types(answers[0]);
        terminal.until("Allow GET HEAD https://evil.example/, with the secret `key` in the header x-key? [y/N] ").await;
        terminal.types("y");
        terminal.until(&format!("Is it the secret `key` of the config, from {source}, and is that to go to https://evil.example in the header x-key? [y/N] ")).await;
        terminal.types(answers[1]);
        if known {
            terminal.until("nothing to go without) ").await;
            terminal.types(answers[2]);
        }
        let (code, shown, _) = terminal.end().await;
        assert_eq!(code, Some(0), "{shown}");
        let first = "{ url = \"https://api.example.com/\", headers = { authorization = \"Bearer {key}\" } }";
        assert!(written(&folder).contains(&format!("http = [{first}, {second}]\n")), "{}", written(&folder));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_finds_a_name() {
    let folder = Folder::new();
    wanting(
        &folder,
        "outgoing",
        "out",
        "http = [{ url = 'https://api.example.com/', secret = 'key' }]\nsecrets = [{ name = 'key' }]",
    )
    .await;
    folder.config("[secrets]\nkey = { env = \"A\" }\nout_key = { env = \"B\" }\n");
    let mut terminal = Terminal::start(&folder, &["add", "plugins/out.wasm"]);
    for (until, answer) in [
        ("[y/N] ", "y"),
        ("Is it the secret `key` of the config, from the variable A, and", ""),
        ("nothing to go without) ", "credential other"),
        ("`key` and `out_key` are taken in [secrets]. What is this one called there? ", "key"),
        ("there is a secret `key` already\r\n", "third"),
    ] {
        terminal.until(until).await;
        terminal.types(answer);
    }
    let (code, shown, _) = terminal.end().await;
    assert_eq!(code, Some(2), "there are no credentials here: {shown}");
    assert!(shown.contains("CREDENTIALS_DIRECTORY") && shown.contains("nothing was written"), "{shown}");
}

/// A plugin that was dropped in gets a table only with something in it, and is pinned only if somebody says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_in_plugin_is_pinned_if_somebody_says_so() {
    let folder = Folder::new();
    wanting(&folder, "hello", "hello", "env = ['TZ']").await;
    // Without an end of its last line, which is no change either.
    let before = "plugin_dir = '../../plugins'";
    for (allow, pin) in [("", None), ("y", Some("")), ("y", Some("y"))] {
        folder.config(before);
        let mut terminal = Terminal::start(&folder, &["grant", "hello"]);
        terminal.until("TZ? [y/N] ").await;
        terminal.types(allow);
        if let Some(pin) = pin {
            terminal.until("until `wharf grant hello` is told of another? [y/N] ").await;
            terminal.types(pin);
        }
        let (code, shown, printed) = terminal.end().await;
        assert_eq!(code, Some(0), "{shown}");
        let text = written(&folder);
        assert_eq!(text == before, pin.is_none(), "{text}");
        assert_eq!(printed == "nothing was allowed, so nothing was written\n", pin.is_none(), "{printed}");
        assert_eq!(text.contains("sha256 = \""), pin == Some("y"), "{text}");
        let checked = stdout(&folder.run(&["check"], &[]).await);
        assert_eq!(checked.contains("granted: TZ"), pin.is_some(), "{checked}");
    }
}

/// What is written is for the file that the person was told of.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_replaced_meanwhile_is_not_trusted() {
    let folder = Folder::new();
    wanting(&folder, "hello", "hello", "env = ['TZ']").await;
    wanting(&folder, "hello", "other", "env = ['LANG']").await;
    let before = "[plugins.hello]\npath = '../../plugins/hello.wasm'\n";
    folder.config(before);
    let mut terminal = Terminal::start(&folder, &["grant", "hello"]);
    terminal.until("TZ? [y/N] ").await;
    std::fs::rename(folder.join("plugins/other.wasm"), folder.join("plugins/hello.wasm")).unwrap();
    terminal.types("y");
    terminal.until("told of another? [y/N] ").await;
    terminal.types("");
    let (code, shown, _) = terminal.end().await;
    assert_eq!(code, Some(2), "{shown}");
    assert!(shown.contains("nothing was written: the file of hello is another by now"), "{shown}");
    assert_eq!(written(&folder), before);
}

/// What others have secrets for is of no concern to the one that is added.
#[tokio::test(flavor = "multi_thread")]
async fn no_command_of_another_plugin_runs() {
    let folder = Folder::new();
    folder.plugin("hello");
    folder.plugin("outgoing");
    let ran = folder.join("ran");
    let before = format!(
        "[secrets]\nx = {{ command = [\"touch\", {ran:?}] }}\n[plugins.other]\npath = '../../plugins/outgoing.wasm'\n\
         [plugins.other.grants]\nhttp = [{{ url = \"https://a.example\", headers = {{ authorization = \"{{x}}\" }} }}]\n"
    );
    folder.config(&before);
    let (code, shown, _) = Terminal::start(&folder, &["add", "plugins/hello.wasm"]).end().await;
    assert_eq!(code, Some(0), "{shown}");
    assert!(!ran.exists());
    // `check` is for all of them.
    folder.run(&["check"], &[]).await;
    assert!(ran.exists());
}
