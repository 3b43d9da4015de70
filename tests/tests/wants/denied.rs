//! `deny`, and everything that asks a person where there is no terminal.

use std::os::unix::fs::PermissionsExt;

use e2e::{
    Folder,
    folder::{stderr, stdout},
};

use crate::{ALL, wanting};

const CONFIG: &str = "# what I run\n[plugins.hello]\npath = '../../plugins/hello.wasm' # hello\n\n[plugins.hello.grants]\n\
                      env = [\"TZ\", \"LANG\"] # two\nhttp = [\"https://api.example.com\"]\nroots = \"read\"\n\n# the end\n";

#[tokio::test(flavor = "multi_thread")]
async fn what_is_denied_is_taken_out_of_the_file() {
    let folder = Folder::new();
    folder.plugin("hello");
    let file = folder.config(CONFIG);
    folder.set_mode("config/wharf/wharf.toml", 0o640);
    for (arguments, expected, left) in [
        (
            &["deny", "hello", "TZ", "https://api.example.com/"][..],
            CONFIG.replace("[\"TZ\", \"LANG\"]", "[ \"LANG\"]").replace("http = [\"https://api.example.com\"]\n", ""),
            "granted: roots (read), $LANG\n",
        ),
        (
            &["deny", "hello"],
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
async fn what_cannot_be_denied_changes_nothing() {
    let folder = Folder::new();
    folder.plugin("hello");
    let file = folder.config(CONFIG);
    for (arguments, expected) in [
        (
            &["deny", "hello", "http", "HOME"][..],
            "hello is not granted `HOME`, so nothing was written; granted: roots (read), $TZ, $LANG",
        ),
        (&["deny", "hello", "dirs"], "hello is not granted `dirs`"),
        (&["deny", "other"], "[plugins.other.grants] is not there"),
        (&["deny", "hello", "-c", "none.toml"], "none.toml: there is no such config file"),
    ] {
        let output = folder.run(arguments, &[]).await;
        assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), CONFIG);
    folder.set_mode("config/wharf/wharf.toml", 0o666);
    let output = folder.run(&["deny", "hello"], &[]).await;
    assert!(stderr(&output).contains("others may write this config"), "{}", stderr(&output));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), CONFIG);
}

/// Taking away must not fail because of something that has nothing to do with it.
#[tokio::test(flavor = "multi_thread")]
async fn a_variable_that_is_not_set_here_does_not_keep_grants_alive() {
    let folder = Folder::new();
    folder.plugin("hello");
    let file = folder.config(&CONFIG.replace("# hello\n", "# hello\nconfig = { key = { env = \"NOT_SET\" } }\n"));
    let output = folder.run(&["deny", "hello", "roots", "http"], &[]).await;
    assert!(output.status.success(), "{}", stderr(&output));
    let left = std::fs::read_to_string(&file).unwrap();
    assert!(!left.contains("roots") && !left.contains("http") && left.contains("NOT_SET"), "{left}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_terminal_nobody_is_asked() {
    let folder = Folder::new();
    wanting(&folder, "outgoing", "out", ALL).await;
    let output = folder.run(&["add", "plugins/out.wasm"], &[]).await;
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    for line in [
        "error: `wharf add` asks a person, and there is no terminal to ask at; write into ",
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
    assert!(stderr(&output).contains("`wharf grant` asks a person"), "{}", stderr(&output));
    for (arguments, expected) in [
        (&["add", "plugins/out.wasm"][..], "has a plugin `out` already; `wharf grant out` asks"),
        (&["add", "plugins/out.wasm", "--id", "wharf-out"], "ids that begin with `wharf` are reserved"),
        (&["add", "plugins/out.wasm", "--id", "a b"], "is no id for a plugin"),
        (&["grant", "none"], "there is no plugin `none`; there are: out"),
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
