//! `grant --revoke`, and all commands that ask a person, without a terminal.

use std::os::unix::fs::PermissionsExt;

use e2e::{
    Folder,
    folder::{stderr, stdout},
};

use crate::{ALL, wanting};

const CONFIG: &str = "# what I run\n[plugins.hello]\npath = '../../plugins/hello.wasm' # hello\n\n[plugins.hello.grants]\n\
                      env = [\"TZ\", \"LANG\"] # two\nhttp = [\"https://api.example.com\"]\nroots = \"read\"\n\n# the end\n";

#[tokio::test(flavor = "multi_thread")]
async fn what_is_revoked_is_taken_out_of_the_file() {
    let folder = Folder::new();
    folder.plugin("hello");
    let file = folder.config(CONFIG);
    folder.set_mode("config/wharf/wharf.toml", 0o640);
    for (arguments, expected, left) in [
        (
            &["grant", "hello", "--revoke", "TZ", "--revoke", "https://api.example.com/"][..],
            CONFIG.replace("[\"TZ\", \"LANG\"]", "[\"LANG\"]").replace("http = [\"https://api.example.com\"]\n", ""),
            "  - env = [\"TZ\", \"LANG\"] # two\n  - http = [\"https://api.example.com\"]\n  + env = [\"LANG\"] # two\ngranted: roots (read), LANG\n",
        ),
        (
            &["grant", "hello", "--revoke-all"],
            CONFIG.split("\n[plugins.hello.grants]").next().unwrap().to_owned() + "\n# the end\n",
            "granted: nothing\n",
        ),
    ] {
        let output = folder.run(arguments, &[]).await;
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), expected);
        assert!(stdout(&output).ends_with(left), "{}", stdout(&output));
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_revoked_changes_nothing() {
    let folder = Folder::new();
    folder.plugin("hello");
    let file = folder.config(CONFIG);
    for (arguments, expected) in [
        (
            &["grant", "hello", "--revoke", "http", "--revoke", "HOME"][..],
            "hello has no grant `HOME`, so nothing was written; granted: roots (read), TZ, LANG",
        ),
        (&["grant", "hello", "--revoke", "dirs"], "hello has no grant `dirs`"),
        (
            &["grant", "hello", "--revoke", "https://api.example.com/x"],
            "hello has no grant `https://api.example.com/x`, but GET HEAD https://api.example.com/ opens it, so",
        ),
        // The result of an unset variable in a shell.
        (&["grant", "hello", "--revoke"], "<WHAT>"),
        (&["grant", "hello", "--revoke", ""], "hello has no grant ``"),
        (&["grant", "hello", "--revoke", "TZ", "--revoke-all"], "cannot be used with"),
        (&["grant", "other.one", "--revoke-all"], "there is no [plugins.\"other.one\".grants]"),
        (&["grant", "hello", "--revoke", "TZ", "-c", "none.toml"], "none.toml: there is no such config file"),
    ] {
        let output = folder.run(arguments, &[]).await;
        assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), CONFIG);
    folder.set_mode("config/wharf/wharf.toml", 0o666);
    let output = folder.run(&["grant", "hello", "--revoke", "TZ"], &[]).await;
    assert!(stderr(&output).contains("others may write this config"), "{}", stderr(&output));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), CONFIG);
}

/// Revoking a grant must not fail because of an unrelated problem.
#[tokio::test(flavor = "multi_thread")]
async fn a_variable_that_is_not_set_here_does_not_keep_grants_alive() {
    let folder = Folder::new();
    folder.plugin("hello");
    let file = folder.config(&CONFIG.replace("# hello\n", "# hello\nconfig = { key = { env = \"NOT_SET\" } }\n"));
    let output = folder.run(&["grant", "hello", "--revoke", "roots", "--revoke", "http"], &[]).await;
    assert!(output.status.success(), "{}", stderr(&output));
    let left = std::fs::read_to_string(&file).unwrap();
    assert!(!left.contains("roots") && !left.contains("http") && left.contains("NOT_SET"), "{left}");
}

/// Removing an entry can open more than it closes.
#[tokio::test(flavor = "multi_thread")]
async fn what_another_entry_leaves_open_is_not_revoked() {
    let folder = Folder::new();
    folder.plugin("hello");
    std::fs::create_dir_all(folder.join("home/data/inner")).unwrap();
    let data = folder.join("home/data");
    for (grants, what, code, expected) in [
        (
            "http = [\"https://a.example/public\", { url = \"https://a.example\", headers = { authorization = \"Bearer {admin}\" } }]".to_owned(),
            &["https://a.example/public"][..],
            2,
            "would leave it open through GET HEAD https://a.example/ (with authorization), so nothing was written; revoke that as well",
        ),
        (
            "http = [\"https://api.a.example\", \"https://*.a.example\"]".to_owned(),
            &["https://api.a.example"],
            2,
            "would leave it open through GET HEAD https://*.a.example/, so nothing was written",
        ),
        (
            "http = [\"https://api.a.example\", \"https://*.a.example\"]".to_owned(),
            &["https://api.a.example", "https://*.a.example"],
            0,
            "granted: nothing",
        ),
        (
            "http = [\"https://a.example/x\", \"https://a.example\"]".to_owned(),
            &["https://a.example"],
            0,
            "note: GET HEAD https://a.example/x stays\n",
        ),
        (
            "dirs = [{ host = \"~/data\", access = \"read-write\" }, { host = \"~/data/inner\", access = \"read\" }]".to_owned(),
            &["home/data/inner"],
            2,
            "/home/data (read-write), so nothing was written",
        ),
        (format!("dirs = [{{ host = {data:?}, access = \"read\" }}]"), &["home/data/"], 0, "granted: nothing"),
        ("dirs = [{ host = \"~/data\", access = \"read\" }]".to_owned(), &[data.to_str().unwrap()], 0, "granted: nothing"),
        ("ask = [\"roots\"]".to_owned(), &["roots"], 0, "granted: nothing"),
    ] {
        let config = format!(
            "[secrets]\nadmin = {{ env = \"ADMIN\" }}\n[plugins.hello]\npath = '../../plugins/hello.wasm'\n[plugins.hello.grants]\n{grants}\n"
        );
        let file = folder.config(&config);
        let revoked = what.iter().flat_map(|what| ["--revoke", what]);
        let arguments: Vec<&str> = ["grant", "hello"].into_iter().chain(revoked).collect();
        let output = folder.run(&arguments, &[]).await;
        let said = stdout(&output) + &stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{grants}\n{said}");
        assert!(said.contains(expected), "{expected}\n{said}");
        assert_eq!(std::fs::read_to_string(&file).unwrap() == config, code == 2, "{said}");
    }
}

/// A running wharf does not accept an invalid file, whatever is wrong with it.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_no_wharf_takes_is_no_success() {
    let folder = Folder::new();
    folder.plugin("hello");
    let file = folder.config(&format!("{CONFIG}[plugins.other]\npath = 'x'\ninstances = 'many'\n"));
    let output = folder.run(&["grant", "hello", "--revoke", "TZ"], &[]).await;
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let said = stdout(&output);
    assert!(said.contains("`instances` is") && said.contains("keeps its grants until this is fixed"), "{said}");
    assert!(!std::fs::read_to_string(&file).unwrap().contains("TZ"));
    folder.config("[plugins.hello]\npath = \n");
    let output = folder.run(&["grant", "hello", "--revoke", "TZ"], &[]).await;
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("wharf.toml:2: "), "{}", stderr(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_form_of_a_file_stays() {
    let folder = Folder::new();
    folder.plugin("hello");
    let odd = format!("\u{feff}{}", CONFIG.replace('\n', "\r\n"));
    let file = folder.config(&odd);
    let output = folder.run(&["grant", "hello", "--revoke", "TZ"], &[]).await;
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), odd.replace("\"TZ\", ", ""));
    folder.config(&CONFIG.replacen('\n', "\r\n", 1));
    let output = folder.run(&["grant", "hello", "--revoke", "TZ"], &[]).await;
    assert!(stderr(&output).contains("use one of the two"), "{}", stderr(&output));
    // A dangling link is not replaced.
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("nowhere.toml", &file).unwrap();
    let output = folder.run(&["grant", "hello", "--revoke", "TZ"], &[]).await;
    assert!(stderr(&output).contains("this link leads nowhere"), "{}", stderr(&output));
    assert!(std::fs::symlink_metadata(&file).unwrap().is_symlink());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_written_is_said_even_if_nobody_reads_it() {
    let folder = Folder::new();
    folder.plugin("hello");
    let file = folder.config(CONFIG);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = folder
        .command(&["grant", "hello", "--revoke", "TZ"], &[])
        .stdout(full)
        .spawn()
        .unwrap()
        .wait_with_output()
        .await
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("wharf.toml was written, but its changes could not be printed"),
        "{}",
        stderr(&output)
    );
    assert!(!std::fs::read_to_string(&file).unwrap().contains("TZ"));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_terminal_nobody_is_asked() {
    let folder = Folder::new();
    wanting(&folder, "outgoing", "out", ALL).await;
    let output = folder.run(&["add", "plugins/out.wasm"], &[]).await;
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    for line in [
        "error: `wharf add` asks questions at a terminal, and there is no terminal; write the lines that you agree to into ",
        "\n[plugins.out]\npath = \"",
        "\nsha256 = \"",
        "\n# [plugins.out.grants]\n# http = [{ url = \"https://api.example.com/\", methods = [\"GET\", \"POST\"], headers = { authorization = \"Bearer {token}\" } }]\n# roots = \"read\"\n",
        "\n# [secrets]\n# token = { env = \"NAME\" }",
    ] {
        assert!(said.contains(line), "{line}\n{said}");
    }
    assert!(!folder.join("config/wharf/wharf.toml").exists());
    let config = "[plugins.out]\npath = '../../plugins/out.wasm'\n";
    let file = folder.config(config);
    let output = folder.run(&["grant", "out"], &[]).await;
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("error: `wharf grant` asks questions at a terminal"), "{}", stderr(&output));
    folder.config(&format!("{config}sha256 = '{}'\n[secrets]\ntoken = {{ env = 'T' }}\n", "0".repeat(64)));
    let said = stderr(&folder.run(&["grant", "out"], &[]).await);
    let zeros = "0".repeat(64);
    assert!(said.contains("error: the file of out has the sha256 ") && said.contains(&zeros), "{said}");
    assert!(said.contains("\n# It would send the secret `token` that is already in [secrets]"), "{said}");
    folder.config(config);
    for (arguments, expected) in [
        (&["add", "plugins/out.wasm"][..], "already has a plugin `out`; run `wharf grant out`"),
        (&["add", "plugins/out.wasm", "--id", "wharf-out"], "ids that begin with `wharf` are reserved"),
        (&["add", "plugins/out.wasm", "--id", "a b"], "is not a valid id for a plugin"),
        (&["grant", "none"], "there is no plugin `none`; the config has: out"),
        (&["grant", "out", "-c", "none.toml"], "none.toml: there is no such config file"),
    ] {
        let output = folder.run(arguments, &[]).await;
        assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), config);
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_that_begin_with_wharf_are_reserved() {
    let folder = Folder::new();
    folder.plugin_as("hello", "plugins/wharfs.wasm");
    let run = folder.run(&["run", "plugins/wharfs.wasm"], &[]).await;
    assert!(stderr(&run).contains("`wharfs`: ids that begin with `wharf` are reserved"), "{}", stderr(&run));
    folder.config("plugin_dir = '../../plugins'");
    let checked = stdout(&folder.run(&["check"], &[]).await);
    assert!(checked.contains("wharfs.wasm: FAILED (name): `wharfs`: ids that begin with"), "{checked}");
}
