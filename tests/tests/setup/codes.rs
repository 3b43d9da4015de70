//! Exit codes of commands: 0 success, 1 failure, 2 an invalid command line or config.

use e2e::{
    Folder,
    folder::{stderr, stdout},
};

/// A plugin that is built by this command.
fn project(folder: &Folder, name: &str, build: &str) {
    folder.write(
        &format!("{name}/plugin.toml"),
        format!("name = 'hello'\n[build]\ncommand = \"{build}\"\nartifact = 'hello.wasm'\n"),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_is_told_from_a_mistake() {
    let folder = Folder::new();
    let hello = folder.plugin("hello");
    let text = folder.write("text.wasm", "not wasm");
    project(&folder, "good", &format!("cp {} hello.wasm", hello.display()));
    project(&folder, "fails", "echo 'src/lib.rs:1: expected `;`' >&2; exit 101");
    project(&folder, "missing", "no-such-compiler");
    project(&folder, "nothing", "true");
    project(&folder, "text", &format!("cp {} hello.wasm", text.display()));
    folder.write(
        "unset/plugin.toml",
        "name = 'a'\n[build]\ncommand = 'true'\nartifact = 'a'\nsetup = { command = 'false', makes = 'b' }\n",
    );
    folder.write(
        "needs/plugin.toml",
        "name = 'a'\n[build]\ncommand = 'true'\nartifact = 'a'\nneeds = { no-such-tool = 'get it' }\n",
    );
    folder.write("typo/plugin.toml", "name = 'a'\n[build]\ncomand = 'true'\nartifact = 'a'\n");
    folder.write("good/tests/a.toml", "[[case]]\nname = 'a'\ntool = 'greet'\nargs = { name = 'Ada' }\ntext = 'Bye'\n");
    folder.write("fails/tests/a.toml", "[[case]]\nname = 'a'\ntool = 'greet'\n");
    folder.write("bad.toml", "nonsense = 1\n");
    folder.write("good.toml", format!("[plugins.hello]\npath = '{}'\n", hello.display()));
    folder.write("text.toml", format!("[plugins.text]\npath = '{}'\n", text.display()));
    folder.write("mcp.json", "{}");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let install = |path: &'static str, plugin: &'static str| {
        vec!["install", "other", "--config-path", path, plugin, "--name", "x"]
    };
    let table: Vec<(Vec<&str>, i32)> = vec![
        (vec!["--version"], 0),
        (vec!["--no-such-option"], 2),
        (vec!["frobnicate"], 2),
        (vec!["build", "good"], 0),
        (vec!["build", "fails"], 1),
        (vec!["build", "missing"], 1),
        (vec!["build", "nothing"], 1),
        (vec!["build", "text"], 1),
        (vec!["build", "needs"], 1),
        (vec!["build", "unset"], 2),
        (vec!["build", "unset", "--setup"], 1),
        (vec!["build", "typo"], 2),
        (vec!["build", "no-such-folder"], 2),
        (vec!["test", "good"], 1),
        (vec!["test", "good", "--filter", "zebra"], 2),
        (vec!["test", "fails"], 1),
        (vec!["test", "fails", "--plugin", "text.wasm"], 1),
        (vec!["test", "fails", "--plugin", "none.wasm"], 2),
        (vec!["dev", "typo"], 2),
        (vec!["inspect", "plugins/hello.wasm"], 0),
        (vec!["inspect", "text.wasm"], 1),
        (vec!["check", "-c", "good.toml"], 0),
        (vec!["check", "-c", "text.toml"], 1),
        (vec!["check", "-c", "bad.toml"], 2),
        (vec!["check", "-c", "none.toml"], 2),
        (vec!["call", "plugins/hello.wasm", "greet", "name=Ada"], 0),
        (vec!["call", "plugins/hello.wasm", "greet", "name"], 2),
        (vec!["call", "plugins/hello.wasm", "frobnicate"], 2),
        (vec!["call", "text.wasm", "greet", "name=Ada"], 1),
        (vec!["run"], 2),
        (vec!["run", "-c", "bad.toml"], 2),
        (vec!["serve", "-c", "good.toml", "--listen", &taken], 1),
        (vec!["serve", "-c", "good.toml", "--listen", "nonsense"], 2),
        (vec!["new", "good"], 2),
        (vec!["new", "A B"], 2),
        (vec!["new", "new-one"], 0),
        (install("mcp.json", "plugins/hello.wasm"), 0),
        (install("mcp.json", "text.wasm"), 1),
        (install("mcp.json", "none.wasm"), 1),
        (vec!["install", "no-such-client"], 2),
        (vec!["build", "--embed", "plugins/hello.wasm"], 2),
        (vec!["build", "--wants", "good.toml"], 2),
        (vec!["build", "good", "--embed", "plugins/hello.wasm", "--instructions", "a"], 2),
        (vec!["check", "--json"], 2),
        (vec!["grant", "hello", "--revoke", "TZ", "--revoke-all"], 2),
        (vec!["update", "--dry-run", "--print"], 2),
        (vec!["lock"], 2),
        (vec!["print", "schema"], 0),
        (vec!["print", "completions", "bash"], 0),
        (vec!["keys", "list", "-c", "good.toml"], 2),
        (vec!["approvals", "list"], 0),
        (vec!["audit", "verify", "-c", "good.toml"], 2),
    ];
    for (arguments, expected) in table {
        let output = folder.run(&arguments, &[]).await;
        let said = format!("{}{}", stdout(&output), stderr(&output));
        assert_eq!(output.status.code(), Some(expected), "wharf {arguments:?}: {said}");
    }
}
