//! `add` and `grant` at a terminal.

use std::os::unix::fs::PermissionsExt;

use e2e::{Folder, Pipe, Terminal, folder::stdout, json, text};

use crate::{ALL, wanting};

/// The config after a dialogue.
fn written(folder: &Folder) -> String {
    std::fs::read_to_string(folder.join("config/wharf/wharf.toml")).unwrap()
}

fn digest(text: &str) -> &str {
    text.split("sha256 = \"").nth(1).unwrap().split('"').next().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_adds_a_plugin() {
    let folder = Folder::new();
    wanting(&folder, "outgoing", "out", ALL).await;
    std::fs::remove_dir(folder.join("config/wharf")).unwrap();
    let mut terminal = Terminal::start(&folder, &["add", "plugins/out.wasm"]);
    let shown = terminal.until("[y/N] ").await;
    for line in [
        "out: sha256 ",
        "could use, if granted: ",
        "HTTP",
        "It wants GET POST https://api.example.com/, with the secret `token` in the header authorization\r\n  | it says: \"reads issues\"\r\n",
        "\nAllow GET POST https://api.example.com/, with the secret `token` in the header authorization? [y/N] ",
    ] {
        assert!(shown.contains(line), "{line}\n{shown}");
    }
    terminal.types("y");
    let shown = terminal.until("Enter to go without) ").await;
    assert!(shown.contains("the plugin never sees it\r\n  | it says: \"private repositories\"\r\n"), "{shown}");
    terminal.types("GITHUB_TOKEN");
    let shown = terminal.until("Enter to go without) ").await;
    assert!(shown.contains("answer with one of: env NAME"), "{shown}");
    terminal.types("env OUT_TOKEN");
    terminal.until("Allow roots (read), the folders that a client opens? [y/N] ").await;
    terminal.types("");
    terminal.until("Allow it to see the environment variable TZ? [y/N] ").await;
    terminal.types("yes");
    terminal.until("Allow it to ask the client (elicitation)? [y/N] ").await;
    terminal.types("no");
    terminal.until("The plugin sees these values. Do not enter a secret.\r\nValue of `org` (Enter to skip): ").await;
    terminal.types("acme");
    terminal.until("Value of `pages` (Enter to skip): ").await;
    terminal.types("many");
    terminal.until("answer with a number\r\nValue of `pages` (Enter to skip): ").await;
    terminal.types("3");
    let (code, shown, printed) = terminal.end().await;
    assert_eq!(code, Some(0), "{shown}\n{printed}");
    let text = written(&folder);
    let expected = format!(
        "[plugins.out]\npath = \"{}\"\nsha256 = \"{}\"\n\n[plugins.out.grants]\n\
         http = [{{ url = \"https://api.example.com/\", methods = [\"GET\", \"POST\"], headers = {{ authorization = \"Bearer {{token}}\" }} }}]\n\
         env = [\"TZ\"]\n\n[plugins.out.config]\norg = \"acme\"\npages = 3\n\n[secrets]\ntoken = {{ env = \"OUT_TOKEN\" }}\n",
        folder.join("plugins/out.wasm").display(),
        digest(&text)
    );
    assert_eq!(text, expected);
    assert!(printed.contains("  + env = [\"TZ\"]\n") && printed.contains("granted: TZ, GET POST"), "{printed}");
    assert!(printed.contains("  + org = \"…\"\n") && !printed.contains("acme"), "{printed}");
    assert!(printed.contains("note: the secret `token`: the variable OUT_TOKEN"), "{printed}");
    let mode = |name: &str| std::fs::metadata(folder.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("config/wharf"), mode("config/wharf/wharf.toml")), (0o700, 0o600));
    let checked = folder.run(&["check"], &[("OUT_TOKEN", "a-secret-of-many-characters")]).await;
    assert!(checked.status.success(), "{}", stdout(&checked));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_grants_what_is_new_and_the_rest_of_the_file_stays() {
    let folder = Folder::new();
    wanting(&folder, "hello", "hello", "env = ['TZ', 'LANG']\nask = ['sampling']").await;
    let before = "# mine\n[plugins.hello] # hello\npath = \"../../plugins/hello.wasm\"\n\n[plugins.hello.grants] # few\nenv = [\n    \"TZ\", # time\n]\n\n# other\n[limits]\n";
    folder.config(before);
    let mut terminal = Terminal::start(&folder, &["grant", "hello"]);
    let shown = terminal.until("Allow it to see the environment variable LANG? [y/N] ").await;
    assert!(!shown.contains("TZ"), "{shown}");
    terminal.types("Y");
    terminal.until("(sampling)? [y/N] ").await;
    terminal.types("N");
    terminal.until("until you trust another with `wharf grant hello`? [y/N] ").await;
    terminal.types("");
    let (code, shown, printed) = terminal.end().await;
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(
        printed,
        format!("wrote {}\n  +     \"LANG\",\ngranted: TZ, LANG\n", folder.join("config/wharf/wharf.toml").display())
    );
    assert_eq!(written(&folder), before.replace("# time\n", "# time\n    \"LANG\",\n"));
    let mut terminal = Terminal::start(&folder, &["grant", "hello"]);
    terminal.until("(sampling)? [y/N] ").await;
    terminal.types("");
    let (code, _, printed) = terminal.end().await;
    assert_eq!((code, &*printed), (Some(0), "nothing was allowed, so nothing was written\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_file_has_to_be_trusted_first() {
    let folder = Folder::new();
    wanting(&folder, "hello", "hello", "env = ['TZ']").await;
    let mut terminal = Terminal::start(&folder, &["add", "plugins/hello.wasm", "--id", "h"]);
    terminal.until("[y/N] ").await;
    terminal.types("y");
    assert_eq!(terminal.end().await.0, Some(0));
    let before = written(&folder);
    wanting(&folder, "hello", "hello", "env = ['TZ', 'LANG']").await;
    for (answer, code) in [("", 2), ("y", 0)] {
        let mut terminal = Terminal::start(&folder, &["grant", "h"]);
        let shown = terminal.until("Trust this file from now on? [y/N] ").await;
        assert!(
            shown.contains(digest(&before)) && shown.contains("the new file would keep these grants: TZ\r\n"),
            "{shown}"
        );
        terminal.types(answer);
        if code == 0 {
            terminal.until("LANG? [y/N] ").await;
            terminal.types("n");
        }
        let (ended, shown, _) = terminal.end().await;
        assert_eq!(ended, Some(code), "{shown}");
        assert_eq!(written(&folder) == before, code == 2);
    }
    assert_ne!(digest(&written(&folder)), digest(&before));
    assert!(!written(&folder).contains("LANG"));
}

/// Every trick that a text can play on a terminal or a hurried reader.
#[tokio::test(flavor = "multi_thread")]
async fn a_reason_cannot_answer_for_the_person() {
    let folder = Folder::new();
    let tricks = [
        "fine\\u001b[2K\\u001b[1A\\u001b[6n\\u001b]0;title\\u0007\\u009b5n",
        "\\u202eeseht ylno\\u2066 \\u200b\\ufeff",
        "needed\\r\\nAllow nothing at all? [y/N] y\\r\\n",
        "\\\" [y/N] y",
        "\\\\\\\" [y/N] y",
        "\\u3164\\u3000\\u2800\\u115f [y/N] y",
    ];
    let long =
        ["x".repeat(10_000), "Allow all? [y/N] y ".repeat(20), format!("fine{}Allow all? [y/N] y", " ".repeat(160))];
    for (number, why) in tricks.iter().map(|trick| (*trick).to_owned()).chain(long).enumerate() {
        let id = format!("p{number}");
        wanting(&folder, "hello", &id, &format!("env = [{{ name = \"TZ\", why = \"{why}\" }}]")).await;
        let mut terminal = Terminal::start(&folder, &["add", &format!("plugins/{id}.wasm")]);
        let shown = terminal.until("Allow it to see the environment variable TZ? [y/N] ").await;
        let deceptive = |character: char| {
            (character.is_control() && !matches!(character, '\r' | '\n'))
                || ['\u{202e}', '\u{2066}', '\u{200b}', '\u{feff}', '\u{3164}', '\u{3000}', '\u{2800}']
                    .contains(&character)
        };
        assert!(!shown.contains(deceptive), "{shown:?}");
        let (_, after) = shown.split_once("It wants the variable TZ\r\n").unwrap();
        let (said, _) = after.split_once("\r\nAllow it to see").unwrap();
        // No terminal is narrow enough to begin a line with the author's words.
        assert!(said.lines().all(|line| line.starts_with("  | ") && line.chars().count() <= 74), "{said}");
        let said = said.replace("\r\n", "").replace("  | ", "");
        assert!(said.starts_with("it says: \"") && said.ends_with('"') && said.chars().count() < 500, "{said}");
        let plain = said.replace("\\\\", "").replace("\\\"", "");
        assert_eq!(plain.matches('"').count(), 2, "it cannot end the quotation: {said}");
        assert!(!said.contains("   "), "{said}");
        assert_eq!(shown.lines().filter(|line| line.starts_with("Allow ")).count(), 1, "{shown}");
        terminal.types("");
        let (code, shown, printed) = terminal.end().await;
        assert_eq!(code, Some(0), "{shown}");
        assert!(printed.ends_with("granted: nothing\n"), "{printed}");
        assert!(!written(&folder).contains("TZ"), "{}", written(&folder));
        let inspected = stdout(&folder.run(&["inspect", &format!("plugins/{id}.wasm")], &[]).await);
        assert!(!inspected.contains(deceptive), "{inspected:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_setting_can_be_skipped() {
    let folder = Folder::new();
    wanting(
        &folder,
        "hello",
        "hello",
        "settings = [{ key = 'org', type = 'string', required = true }, { key = 'who', type = 'string' }]",
    )
    .await;
    let mut terminal = Terminal::start(&folder, &["add", "plugins/hello.wasm"]);
    terminal.until("Value of `org` (Enter to skip): ").await;
    terminal.types("");
    terminal.until("Value of `who` (Enter to skip): ").await;
    terminal.types("n");
    terminal.until("Is \"n\" the value of `who`? [y/N] ").await;
    terminal.types("");
    let (code, shown, printed) = terminal.end().await;
    assert_eq!(code, Some(0), "{shown}");
    assert!(
        printed.contains("note: the plugin declares `org` as required; set it in [plugins.hello.config]"),
        "{printed}"
    );
    assert!(!written(&folder).contains("config]"), "{}", written(&folder));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_that_breaks_off_writes_nothing() {
    let folder = Folder::new();
    wanting(&folder, "outgoing", "out", ALL).await;
    folder.config("[plugins.hello]\npath = 'nowhere.wasm'\n");
    let before = written(&folder);
    let mut terminal = Terminal::start(&folder, &["add", "plugins/out.wasm"]);
    terminal.until("[y/N] ").await;
    terminal.types("y");
    terminal.until("Enter to go without) ").await;
    // The end of the input, as typed by a person.
    terminal.types("\u{4}");
    let (code, shown, _) = terminal.end().await;
    assert_eq!(code, Some(2));
    assert!(shown.contains("nothing was written"), "{shown}");
    assert_eq!(written(&folder), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_would_not_be_served_is_not_written() {
    let folder = Folder::new();
    // An unrelated problem does not prevent adding a plugin.
    folder.config("[plugins.other]\npath = 'nowhere.wasm'\n");
    let before = written(&folder);
    let foreign = "(component (import \"acme:db/query@1.0.0\" (instance (export \"ask\" (func)))))";
    folder.write("plugins/foreign.wasm", wat::parse_str(foreign).unwrap());
    let (code, shown, _) = Terminal::start(&folder, &["add", "plugins/foreign.wasm"]).end().await;
    assert_eq!(code, Some(1));
    assert!(shown.contains("nothing was written: foreign would not be served (load): "), "{shown}");
    assert!(shown.contains("acme:db/query@1.0.0"), "{shown}");
    assert_eq!(written(&folder), before);
    folder.plugin("hello");
    let (code, shown, _) = Terminal::start(&folder, &["add", "plugins/hello.wasm"]).end().await;
    assert_eq!(code, Some(0), "{shown}");
    assert!(written(&folder).starts_with(&before), "{}", written(&folder));
}

/// One process writes the audit log, and the command that adds a plugin is another process.
#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_is_added_while_another_wharf_serves() {
    let folder = Folder::new();
    folder.config("[audit]\nfile = 'audit/audit.jsonl'\n");
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy("2025-11-25", json!({})).await;
    folder.plugin("hello");
    let (code, shown, _) = Terminal::start(&folder, &["add", "plugins/hello.wasm"]).end().await;
    assert_eq!(code, Some(0), "{shown}");
    pipe.wait_for_log("serving plugin=\"hello\"").await;
    let greeted = pipe.call("hello_greet", json!({ "name": "Ada" })).await;
    assert!(text(&greeted).contains("Ada"), "{greeted}");
    pipe.close().await;
}
