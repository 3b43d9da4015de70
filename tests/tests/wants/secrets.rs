//! `add` and `grant`: which secret is sent where, which file is trusted, and what is loaded in the process.

use e2e::{Folder, Terminal, folder::stdout};

use crate::wanting;

fn written(folder: &Folder) -> String {
    std::fs::read_to_string(folder.join("config/wharf/wharf.toml")).unwrap()
}

const TWO_HOSTS: &str = "http = [{ url = 'https://api.example.com/', secret = 'key' }, { url = 'https://evil.example/', secret = 'key', header = 'x-key' }]\n\
                         secrets = [{ name = 'key' }]\n";

/// Allowing a secret for one host does not allow it for another.
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_goes_to_no_host_unasked() {
    let folder = Folder::new();
    wanting(&folder, "outgoing", "out", TWO_HOSTS).await;
    for (known, answers, second) in [
        // Already in the config, but not for the second host.
        (true, ["y", "n", ""], "\"https://evil.example/\""),
        // Entered for the first host, and confirmed as the same for the second.
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
            true => terminal.until("Send the secret `key` of the config, from the command op, to https://api.example.com in the header authorization? [y/N] ").await,
            false => terminal.until("Enter to go without) ").await,
        };
        terminal.types(answers[0]);
        terminal.until("Allow GET HEAD https://evil.example/, with the secret `key` in the header x-key? [y/N] ").await;
        terminal.types("y");
        terminal.until(&format!("Send the secret `key` of the config, from {source}, to https://evil.example in the header x-key? [y/N] ")).await;
        terminal.types(answers[1]);
        if known {
            terminal.until("Enter to go without) ").await;
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
        ("Send the secret `key` of the config, from the variable A, to", ""),
        ("Enter to go without) ", "credential other"),
        ("`key` and `out_key` are taken in [secrets]. What shall this one be called there? ", "key"),
        ("there is a secret `key` already\r\n", "third"),
    ] {
        terminal.until(until).await;
        terminal.types(answer);
    }
    let (code, shown, _) = terminal.end().await;
    assert_eq!(code, Some(2), "there are no credentials here: {shown}");
    assert!(shown.contains("CREDENTIALS_DIRECTORY") && shown.contains("nothing was written"), "{shown}");
}

/// A plugin in the plugin folder gets a table only if the table has contents, and is pinned only if the person says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_in_plugin_is_pinned_if_somebody_says_so() {
    let folder = Folder::new();
    wanting(&folder, "hello", "hello", "env = ['TZ']").await;
    // Without a line end in the last line, which is not a change either.
    let before = "plugin_dir = '../../plugins'";
    for (allow, pin) in [("", None), ("y", Some("")), ("y", Some("y"))] {
        folder.config(before);
        let mut terminal = Terminal::start(&folder, &["grant", "hello"]);
        terminal.until("TZ? [y/N] ").await;
        terminal.types(allow);
        if let Some(pin) = pin {
            terminal.until("until you trust another with `wharf grant hello`? [y/N] ").await;
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

/// The grants that are written apply to the file that the person was shown.
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
    terminal.until("`wharf grant hello`? [y/N] ").await;
    terminal.types("");
    let (code, shown, _) = terminal.end().await;
    assert_eq!(code, Some(2), "{shown}");
    assert!(shown.contains("nothing was written: the file of hello has changed meanwhile"), "{shown}");
    assert_eq!(written(&folder), before);
}

/// Secrets of other plugins are not read when a plugin is added.
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
    // `check` covers all plugins.
    folder.run(&["check"], &[]).await;
    assert!(ran.exists());
}
