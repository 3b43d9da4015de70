//! `wharf check --machine`: each problem is created, found, and reported with a remedy.

use std::{
    net::TcpListener,
    os::unix::fs::{DirBuilderExt, symlink},
};

use e2e::{
    Folder,
    folder::{stderr, stdout},
    json,
};

/// A config of wharf with an unused port.
fn quiet(folder: &Folder) -> u16 {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    folder.config(&format!("[http]\nlisten = '127.0.0.1:{port}'\n"));
    port
}

/// Returns the lines about problems, and checks the exit code.
async fn wrong(folder: &Folder, environment: &[(&str, &str)]) -> Vec<String> {
    let output = folder.run(&["check", "--machine"], environment).await;
    let lines: Vec<String> =
        stdout(&output).lines().filter(|line| line.starts_with("WRONG")).map(str::to_owned).collect();
    assert_eq!(output.status.code(), Some(i32::from(!lines.is_empty())), "{}{}", stdout(&output), stderr(&output));
    lines
}

#[tokio::test(flavor = "multi_thread")]
async fn where_all_is_well_it_says_so() {
    let folder = Folder::new();
    quiet(&folder);
    folder.write("home/.cursor/mcp.json", json!({ "mcpServers": { "b": { "command": "b" } } }).to_string());
    assert_eq!(wrong(&folder, &[]).await, Vec::<String>::new());
    let installed = folder.run(&["install", "cursor", "--builtin", "time"], &[]).await;
    assert!(installed.status.success(), "{}", stderr(&installed));
    let output = folder.run(&["check", "--machine", "--json"], &[]).await;
    let lines: Vec<e2e::Value> = stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let cursor = lines.iter().find(|line| line["about"] == "Cursor").unwrap();
    assert_eq!(cursor["state"], "ok", "{cursor}");
    assert!(lines.iter().all(|line| line["state"] != "wrong"), "{lines:?}");
}

/// What a client's config names is a text that nobody has signed.
#[tokio::test(flavor = "multi_thread")]
async fn no_program_that_a_config_names_is_started() {
    let folder = Folder::new();
    quiet(&folder);
    let other = folder.write("other/wharf", format!("#!/bin/sh\necho x > {}\n", folder.join("ran").display()));
    folder.set_mode("other/wharf", 0o755);
    let server = json!({ "command": other, "args": ["run", "--builtin", "time"] });
    folder.write("home/.cursor/mcp.json", json!({ "mcpServers": { "mine": server } }).to_string());
    let output = folder.run(&["check", "--machine"], &[]).await;
    let said = stdout(&output);
    let note = said.lines().find(|line| line.contains("other/wharf")).unwrap();
    assert!(note.starts_with("note") && note.contains("neither its version nor its arguments were checked"), "{said}");
    assert!(note.contains("run `wharf install cursor --name mine -- run --builtin time`"), "{said}");
    assert!(output.status.success() && !folder.join("ran").exists(), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_clients_cannot_start_is_found() {
    let folder = Folder::new();
    quiet(&folder);
    let own = e2e::binary();
    let own = std::path::absolute(own).unwrap();
    let plain = folder.write("plain/wharf", "");
    std::fs::create_dir_all(folder.join("bin")).unwrap();
    symlink(&own, folder.join("bin/wharf")).unwrap();
    let linked = folder.join("bin/wharf");
    let install = "run `wharf install cursor --name mine ";
    for (command, arguments, expected, remedy) in [
        (json!("wharf"), json!(["run"]), "`wharf` is not an absolute path", format!("{install}-- run`")),
        (json!(folder.join("gone/wharf")), json!(["run"]), "gone/wharf does not exist", format!("{install}-- run`")),
        (json!(plain), json!(["run"]), "is not a program that you may run", format!("{install}-- run`")),
        (
            json!(linked),
            json!(["run", "--bulitin", "files"]),
            "unexpected argument '--bulitin'",
            "correct the arguments".into(),
        ),
        (json!(linked), json!(["serve"]), "so it does not serve MCP", "begin the arguments with `run`".into()),
        (
            json!(linked),
            json!(["run", "--builtin", "files", "/gone"]),
            "/gone does not exist",
            "create it, or correct".into(),
        ),
        (
            json!(linked),
            json!(["run", "--builtin", "files", "docs"]),
            "docs is not an absolute path",
            "the whole path".into(),
        ),
        (json!(linked), json!(["run", "/gone.wasm"]), "/gone.wasm: there is no such plugin", "put it there".into()),
        (
            json!(linked),
            json!(["run", "-c", "/gone.toml"]),
            "/gone.toml: there is no such config",
            "write it, or".into(),
        ),
        (
            json!(linked),
            json!(["run", "--builtin", "tiem"]),
            "there is no built-in plugin `tiem`",
            "correct the arg".into(),
        ),
        (
            json!(linked),
            json!(["run", "--builtin", "files"]),
            "`files` may not use any folder",
            format!("{install}DIR --builtin files`"),
        ),
        (
            json!(linked),
            json!(["run", "--builtin", "fetch"]),
            "`fetch` may not reach any URL",
            format!("{install}--allow http=https://example.com/ --builtin fetch`"),
        ),
        (json!(linked), json!("run --builtin time"), "`args` is not a list of texts", "write a list".into()),
        (
            json!(format!("{} run", linked.display())),
            json!([]),
            "the whole command line",
            "each argument into `args`".into(),
        ),
        (
            json!("npx"),
            json!(["-y", "wharf-mcp", "run", "--builtin", "files"]),
            "may not use any folder",
            "DIR --builtin files`".into(),
        ),
    ] {
        let config = json!({ "mcpServers": { "mine": { "command": command, "args": arguments } } });
        folder.write("home/.cursor/mcp.json", config.to_string());
        folder.write("bin/npx", "");
        let found = wrong(&folder, &[("PATH", folder.join("bin").to_str().unwrap())]).await;
        let [line] = found.as_slice() else { panic!("{config}: {found:?}") };
        assert!(line.starts_with("WRONG Cursor: ") && line.contains("`mine`") && line.contains(expected), "{line}");
        let (_, says) = line.rsplit_once("; ").unwrap();
        assert!(line.contains(&remedy), "{remedy}: {says}");
    }
    for (client, config, text, expected) in [
        (
            "Cline",
            "home/.cline/data/settings/cline_mcp_settings.json",
            json!({ "mcpServers": { "mine": { "command": linked, "args": ["run"], "disabled": true } } }),
            "it is disabled",
        ),
        (
            "opencode",
            "config/opencode/opencode.json",
            json!({ "mcp": { "mine": { "command": [linked, "run"], "enabled": false } } }),
            "it is disabled",
        ),
        ("Codex", "home/.codex/config.toml", json!(null), "Codex does not tell servers which folders are open"),
    ] {
        std::fs::remove_file(folder.join("home/.cursor/mcp.json")).ok();
        let written = if text.is_null() {
            format!(
                "[mcp_servers.mine]\ncommand = {linked:?}\nargs = ['run', '--builtin', 'files', '--allow', 'roots=read']\n"
            )
        } else {
            text.to_string()
        };
        let path = folder.write(config, written);
        let found = wrong(&folder, &[]).await;
        assert!(
            found.len() == 1 && found[0].starts_with(&format!("WRONG {client}: ")) && found[0].contains(expected),
            "{found:?}"
        );
        std::fs::remove_file(path).unwrap();
    }
    folder.write("home/.cursor/mcp.json", "{\n  \"mcpServers\": {,\n");
    let found = wrong(&folder, &[]).await;
    assert!(
        found.len() == 1 && found[0].contains("mcp.json: 2:18: ") && found[0].contains("fix the file"),
        "{found:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_the_config_and_its_files_is_found() {
    let folder = Folder::new();
    let port = quiet(&folder);
    folder.write("config/wharf/token", "0123456789abcdef");
    let http = format!("[http]\nlisten = '127.0.0.1:{port}'\n");
    folder.config(&format!(
        "{http}[secrets]\nt = {{ file = 'token' }}\n[roots]\nfixed = ['/gone']\n[plugins.a]\npath = 'a.wasm'\n\
         [plugins.b]\nbuiltin = 'time'\n[plugins.b.grants]\ndirs = [{{ host = '/gone/too', access = 'read' }}]\n"
    ));
    let found = wrong(&folder, &[]).await;
    for (about, expected) in [
        ("secret t", "run `chmod 600` on it"),
        ("[roots]", "/gone: there is no such folder; create it"),
        ("plugin a", "a.wasm: cannot be read"),
        ("plugin b", "/gone/too: there is no such folder; create it"),
    ] {
        let is_told = |line: &&String| line.starts_with(&format!("WRONG {about}: ")) && line.contains(expected);
        assert_eq!(found.iter().filter(is_told).count(), 1, "{about}: {found:?}");
    }
    assert_eq!(found.len(), 4, "{found:?}");
    folder.config(&format!("{http}[plugins.mine]\nbuiltin = 'files'\n"));
    let found = wrong(&folder, &[]).await;
    let line = "WRONG plugin mine: `mine` may not use any folder; run `wharf grant mine`";
    assert!(found.len() == 1 && found[0].starts_with(line), "{found:?}");
    folder.config(&format!("{http}frobnicate = 1\n"));
    let found = wrong(&folder, &[]).await;
    assert!(found.iter().any(|line| line.starts_with("WRONG config: ") && line.contains("frobnicate")), "{found:?}");
    quiet(&folder);
    folder.set_mode("config/wharf/wharf.toml", 0o666);
    let found = wrong(&folder, &[]).await;
    assert!(found.iter().any(|line| line.starts_with("WRONG config: ") && line.contains("chmod go-w")), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_machine_does_not_give_is_found() {
    let folder = Folder::new();
    let port = quiet(&folder);
    let cache = folder.join("cache");
    std::fs::DirBuilder::new().mode(0o700).create(&cache).unwrap();
    std::fs::DirBuilder::new().mode(0o755).create(cache.join("wharf")).unwrap();
    let cache = ("XDG_CACHE_HOME", cache.to_str().unwrap());
    let found = wrong(&folder, &[cache]).await;
    assert!(found.len() == 1 && found[0].contains("; chmod 700 "), "{found:?}");
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let found = wrong(&folder, &[]).await;
    drop(listener);
    let says = format!("WRONG port {port}: another program (");
    assert!(found.len() == 1 && found[0].starts_with(&says) && found[0].contains("--listen"), "{found:?}");
    let limited = folder.limited("ulimit -n 256", &["check", "--machine"], &[]).output().await.unwrap();
    assert!(stdout(&limited).contains("WRONG open files: at most 256"), "{}", stdout(&limited));
    assert_eq!(limited.status.code(), Some(1));
}
