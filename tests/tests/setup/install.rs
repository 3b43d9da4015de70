//! `wharf install`: the config that it writes for each client is parsed as that client parses it, and the server is started.

use std::{
    os::unix::fs::{MetadataExt, symlink},
    path::{Path, PathBuf},
};

use e2e::{
    Folder, Pipe, Value,
    folder::{stderr, stdout},
    json, text,
};

/// Each client, its config in an empty home directory, and whether it sends its open folders to servers.
const CLIENTS: [(&str, &str, bool); 22] = [
    ("claude-desktop", "config/Claude/claude_desktop_config.json", false),
    ("claude-code", "home/.claude.json", true),
    ("vscode", "config/Code/User/mcp.json", true),
    ("cursor", "home/.cursor/mcp.json", true),
    ("codex", "home/.codex/config.toml", false),
    ("gemini-cli", "home/.gemini/settings.json", true),
    ("copilot-cli", "home/.copilot/mcp-config.json", false),
    ("opencode", "config/opencode/opencode.json", true),
    ("cline", "home/.cline/data/settings/cline_mcp_settings.json", false),
    ("cline-vscode", "config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json", false),
    ("qwen-code", "home/.qwen/settings.json", true),
    ("windsurf", "home/.codeium/windsurf/mcp_config.json", false),
    ("kilo-code", "config/kilo/kilo.json", false),
    ("kiro", "home/.kiro/settings/mcp.json", false),
    ("kimi-code", "home/.kimi-code/mcp.json", false),
    ("antigravity", "home/.gemini/config/mcp_config.json", false),
    ("grok-build", "home/.grok/config.toml", false),
    ("mastracode", "home/.mastracode/mcp.json", false),
    ("mcporter", "home/.mcporter/mcporter.json", false),
    ("pi", "home/.pi/agent/mcp.json", false),
    ("fx", "home/.fx/mcp.json", false),
    ("zed", "config/zed/settings.json", false),
];

/// The command and the arguments that a client finds in its config. The parsers are independent of wharf's own.
fn named(client: &str, path: &Path) -> (String, Vec<String>) {
    let text = std::fs::read_to_string(path).unwrap();
    let key = match client {
        "vscode" => "servers",
        "codex" | "grok-build" => "mcp_servers",
        "zed" => "context_servers",
        "goose" => "extensions",
        "opencode" | "kilo-code" | "fx" => "mcp",
        _ => "mcpServers",
    };
    let all: Value = match client {
        "codex" | "grok-build" => toml::from_str(&text).unwrap(),
        "goose" | "continue" => serde_norway::from_str(&text).unwrap(),
        _ => serde_json::from_str(&text).unwrap(),
    };
    let of_list = |servers: &Value| servers.as_array()?.iter().find(|one| one["name"] == "files").cloned();
    let server = of_list(&all[key]).unwrap_or_else(|| all[key]["files"].clone());
    match client {
        "vscode" | "claude-code" => assert_eq!(server["type"], "stdio"),
        "goose" => assert_eq!((&server["type"], &server["enabled"]), (&json!("stdio"), &json!(true))),
        "copilot-cli" => assert_eq!((&server["type"], &server["tools"]), (&json!("local"), &json!(["*"]))),
        "opencode" | "kilo-code" | "fx" => {
            assert_eq!((&server["type"], &server["enabled"]), (&json!("local"), &json!(true)));
        }
        "continue" => assert!(["name", "version", "schema"].iter().all(|key| all[key].is_string()), "{text}"),
        _ => {}
    }
    let words = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    if let Some((program, arguments)) =
        server["command"].is_array().then(|| words(&server["command"])).as_deref().and_then(<[_]>::split_first)
    {
        return (program.clone(), arguments.to_vec());
    }
    let command = if client == "goose" { "cmd" } else { "command" };
    (server[command].as_str().unwrap().to_owned(), words(&server["args"]))
}

/// Starts the command in a config, as a client does: from any folder, without the shell's environment.
fn start(folder: &Folder, (program, arguments): &(String, Vec<String>)) -> Pipe {
    assert!(Path::new(program).is_absolute(), "{program}");
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let plain = folder.command(&words, &[]);
    let mut command = tokio::process::Command::new(program);
    command.args(plain.as_std().get_args()).env_clear().current_dir("/").kill_on_drop(true);
    command.envs(plain.as_std().get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    Pipe::of_command(command)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_client_starts_what_was_written_and_reads_a_file() {
    for (client, config, _) in CLIENTS {
        let folder = Folder::new();
        folder.write("home/my docs/a.txt", "hello");
        let install = ["install", client, "--builtin", "files", "home/my docs"];
        let dry = folder.run(&[install.as_slice(), &["--dry-run"]].concat(), &[]).await;
        assert!(dry.status.success() && !folder.join(config).exists(), "{client}: {dry:?}");
        let output = folder.run(&install, &[]).await;
        assert!(output.status.success(), "{client}: {}", stderr(&output));
        let written = named(client, &folder.join(config));
        let mut pipe = start(&folder, &written);
        pipe.legacy("2025-06-18", json!({})).await;
        let path = folder.join("home/my docs/a.txt");
        let result = pipe.call("read_text_file", json!({ "path": path })).await;
        assert_eq!(text(&result), "hello", "{client}");
        pipe.close().await;
        let before = std::fs::metadata(folder.join(config)).unwrap();
        let again = folder.run(&install, &[]).await;
        assert!(stdout(&again).contains("nothing was changed"), "{client}: {}", stdout(&again));
        assert_eq!(std::fs::metadata(folder.join(config)).unwrap().ino(), before.ino(), "{client}");
        let listed = stdout(&folder.run(&["install", "--list"], &[]).await);
        assert!(
            listed.lines().any(|line| line.starts_with(client) && line.ends_with("with wharf as files")),
            "{listed}"
        );
        let undone = folder.run(&["install", client, "--uninstall"], &[]).await;
        assert!(undone.status.success() && !folder.join(config).exists(), "{client}: {undone:?}");
    }
}

/// wharf does not edit YAML: a person adds the lines to the config, which the client then starts.
#[tokio::test(flavor = "multi_thread")]
async fn what_wharf_does_not_edit_is_printed_with_its_place() {
    for (client, config, key) in
        [("goose", "config/goose/config.yaml", "extensions"), ("continue", "home/.continue/config.yaml", "mcpServers")]
    {
        let folder = Folder::new();
        folder.write("home/my docs/a.txt", "hello");
        let install = ["install", client, "--builtin", "files", "home/my docs"];
        let output = folder.run(&install, &[]).await;
        assert_eq!(output.status.code(), Some(2), "{client}: {output:?}");
        let said = stderr(&output);
        for expected in [&format!("{config}: wharf does not edit YAML"), &format!("`{key}:`")] {
            assert!(said.contains(expected), "{client}: {said}");
        }
        assert!(!folder.join(config).exists(), "{client}");
        let path = folder.write(config, stdout(&output));
        let mut pipe = start(&folder, &named(client, &path));
        pipe.legacy("2025-06-18", json!({})).await;
        let read = json!({ "path": folder.join("home/my docs/a.txt") });
        assert_eq!(text(&pipe.call("read_text_file", read).await), "hello", "{client}");
        pipe.close().await;
        let listed = stdout(&folder.run(&["install", "--list"], &[]).await);
        assert!(
            listed.lines().any(|line| line.starts_with(client) && line.ends_with("does not read YAML")),
            "{listed}"
        );
        let removed = folder.run(&["install", client, "--uninstall"], &[]).await;
        assert!(stderr(&removed).contains("remove the entry by hand"), "{client}: {removed:?}");
        let found = folder.run(&["install", client, "--builtin", "nothing"], &[]).await;
        assert!(stdout(&found).is_empty(), "{client}: {found:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_are_named_or_come_from_clients_that_have_them() {
    for (client, config, has_roots) in CLIENTS {
        let folder = Folder::new();
        let output = folder.run(&["install", client, "--builtin", "files"], &[]).await;
        assert_eq!(output.status.success(), has_roots, "{client}: {}", stderr(&output));
        if has_roots {
            let (_, arguments) = named(client, &folder.join(config));
            assert_eq!(arguments, ["run", "--builtin", "files", "--allow", "roots=read-write"], "{client}");
        } else {
            assert!(stderr(&output).contains("name the folders that `files` may use"), "{client}: {}", stderr(&output));
            assert!(!folder.join(config).exists(), "{client}");
        }
    }
    let folder = Folder::new();
    let given = ["--config-path", "p/.vscode/mcp.json", "--builtin", "files", "--read-only", "${workspaceFolder}"];
    let output = folder.run(&[&["install", "vscode"], given.as_slice()].concat(), &[]).await;
    assert!(output.status.success(), "{}", stderr(&output));
    let (_, arguments) = named("vscode", &folder.join("p/.vscode/mcp.json"));
    assert_eq!(arguments, ["run", "--builtin", "files", "--read-only", "${workspaceFolder}"]);
    let output = folder.run(&["install", "codex", "--builtin", "files", "${workspaceFolder}"], &[]).await;
    assert!(stderr(&output).contains("Codex does not expand variables"), "{}", stderr(&output));
}

/// A client that does not list again is offered the search, and finds what it asks for there.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_hear_of_changes_is_offered_the_search() {
    for (client, hears) in [("claude-code", true), ("codex", false)] {
        let folder = Folder::new();
        folder.write("home/docs/a.txt", "hello");
        let install = ["install", client, "--builtin", "files", "home/docs"];
        let said = stdout(&folder.run(&install, &[]).await);
        assert_eq!(said.contains("--profile search"), !hears, "{client}: {said}");
    }
    let folder = Folder::new();
    folder.write("home/docs/a.txt", "hello");
    let install = ["install", "codex", "--profile", "search", "--builtin", "files", "home/docs"];
    let output = folder.run(&install, &[]).await;
    assert!(output.status.success() && !stdout(&output).contains("list tools again"), "{output:?}");
    let mut pipe = start(&folder, &named("codex", &folder.join("home/.codex/config.toml")));
    pipe.legacy("2025-06-18", json!({})).await;
    let found = pipe.call("find_tools", json!({ "query": "read a file" })).await;
    assert_eq!(found["structuredContent"]["tools"][0]["name"], "read_text_file", "{found}");
    pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_config_that_is_there_keeps_its_links_its_mode_and_all_else() {
    let folder = Folder::new();
    let before = "{\r\n\t\"theme\": \"dark\",\r\n\t\"mcpServers\": {\r\n\t\t\"b\": { \"command\": \"b\", \"env\": { \"T\": \"s\" } }\r\n\t}\r\n}";
    let real = folder.write("dotfiles/mcp.json", before);
    folder.set_mode("dotfiles/mcp.json", 0o640);
    std::fs::create_dir_all(folder.join("home/.cursor")).unwrap();
    symlink(&real, folder.join("home/.cursor/mcp.json")).unwrap();
    let install = ["install", "cursor", "--builtin", "time"];
    let output = folder.run(&install, &[]).await;
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(std::fs::symlink_metadata(folder.join("home/.cursor/mcp.json")).unwrap().is_symlink());
    assert_eq!(std::fs::metadata(&real).unwrap().mode() & 0o777, 0o640);
    let after = std::fs::read_to_string(&real).unwrap();
    assert!(after.starts_with(before.strip_suffix("\r\n\t}\r\n}").unwrap()), "{after}");
    assert!(!after.replace("\r\n", "").contains('\n'), "{after:?}");
    let backup = folder.join("home/.cursor/mcp.json.wharf-backup");
    assert_eq!(std::fs::read_to_string(&backup).unwrap(), before);
    // The existing contents were not printed: they may be secret.
    assert!(!stdout(&output).contains("\"s\""));
    let undone = folder.run(&[install.as_slice(), &["--uninstall"]].concat(), &[]).await;
    assert!(undone.status.success(), "{}", stderr(&undone));
    assert_eq!(std::fs::read_to_string(&real).unwrap(), before);
    let again = folder.run(&[install.as_slice(), &["--uninstall"]].concat(), &[]).await;
    assert!(again.status.success() && stdout(&again).contains("nothing was changed"), "{again:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_installed_twice_is_gone_without_a_trace() {
    for (client, config, _) in CLIENTS {
        let before = match client {
            "codex" | "grok-build" => "# mine\nmodel = 'm'\n",
            _ => "{ \"mine\": 1 }\n",
        };
        for (first, second) in [("one", "two"), ("two", "one")] {
            for text in [Some(before), Some(""), None] {
                let folder = Folder::new();
                let path = folder.join(config);
                if let Some(text) = text {
                    folder.write(config, text);
                }
                let run = async |more: &[&str]| {
                    let output = folder.run(&[&["install", client], more].concat(), &[]).await;
                    assert!(output.status.success(), "{client}: {}", stderr(&output));
                };
                run(&["--builtin", "time", "--name", "one"]).await;
                run(&["--builtin", "sequentialthinking", "--name", "two"]).await;
                run(&["--uninstall", "--name", first]).await;
                run(&["--uninstall", "--name", second]).await;
                assert_eq!(std::fs::read_to_string(&path).ok().as_deref(), text, "{client}: {first} went first");
                let backup = format!("{config}.wharf-backup");
                assert!(!folder.join(&backup).exists(), "{client}: {backup}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_wharfs_or_does_not_work_is_left_alone() {
    let folder = Folder::new();
    folder.write("docs/a.txt", "hello");
    folder.write("broken.wasm", "no component");
    let config = "home/.cursor/mcp.json";
    let other = "{ \"mcpServers\": { \"time\": { \"command\": \"uvx\", \"args\": [\"mcp-server-time\"] } } }";
    for (before, arguments, expected) in [
        (other, ["--builtin", "time"].as_slice(), "a server `time` that is not wharf"),
        (other, &["--name", "time", "--uninstall"], "the server `time` is not wharf"),
        ("{\n  \"mcpServers\": {,}\n}", &["--builtin", "time"], "mcp.json:2:18: "),
        ("{\n  \"mcpServers\": {,}\n}", &["--uninstall"], "mcp.json:2:18: "),
        ("{}", &["broken.wasm"], "nothing was written: "),
        ("{}", &["--builtin", "tiem"], "there is no built-in plugin `tiem`"),
        ("{}", &["--builtin", "fetch"], "--allow http="),
        (
            "{}",
            &["--builtin", "files", "dosc"],
            "dosc does not exist: there is no such folder, and no such plugin; did you mean ",
        ),
        ("{}", &["--builtin", "files", "--root", "/gone"], "--root /gone does not exist"),
        ("{}", &[], "nothing to serve"),
        ("{}", &["--builtin", "time", "--profile", "nope"], "--profile: there is no profile `nope`; choose one of: "),
    ] {
        let path: PathBuf = folder.write(config, before);
        let output = folder.run(&[&["install", "cursor"], arguments].concat(), &[]).await;
        // The command line is valid, and the plugin is not.
        let code = if expected == "nothing was written: " { 1 } else { 2 };
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stdout(&output));
        assert!(stderr(&output).contains(expected), "{arguments:?}: {}", stderr(&output));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), before, "{arguments:?}");
        assert!(!folder.join("home/.cursor/mcp.json.wharf-backup").exists(), "{arguments:?}");
    }
    folder.write(config, other);
    let run = async |arguments: &[&str]| {
        let output = folder.run(&[&["install", "cursor"], arguments].concat(), &[]).await;
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    run(&["--builtin", "time", "--force"]).await;
    let after = std::fs::read_to_string(folder.join(config)).unwrap();
    assert!(after.contains("--builtin") && !after.contains("uvx"), "{after}");
    // What was replaced is kept until it is wanted back, whatever else was installed.
    run(&["--builtin", "sequentialthinking"]).await;
    let said = run(&["--name", "time", "--uninstall"]).await;
    assert!(said.contains("put back the one that it had replaced"), "{said}");
    run(&["--uninstall"]).await;
    assert_eq!(std::fs::read_to_string(folder.join(config)).unwrap(), other);
    assert!(!folder.join("home/.cursor/mcp.json.wharf-backup").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_opened_is_told_and_what_was_open_stays_open() {
    let folder = Folder::new();
    for name in ["home/a", "home/b"] {
        std::fs::create_dir_all(folder.join(name)).unwrap();
    }
    let [home, a, b] = ["home", "home/a", "home/b"].map(|name| folder.join(name).display().to_string());
    let install = async |arguments: &[&str], code: i32| {
        let output = folder.run(&[&["install", "cursor", "--builtin", "files"], arguments].concat(), &[]).await;
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}{}", stdout(&output), stderr(&output));
        stdout(&output) + &stderr(&output)
    };
    let said = install(&["--dry-run"], 0).await;
    assert!(said.contains("opens the folders that Cursor has open to `files` for reading and writing"), "{said}");
    let said = install(&["--dry-run", &home], 0).await;
    let whole = "your whole home directory, with all hidden files, such as the keys in .ssh";
    assert!(said.contains(&format!("opens {home} to `files` for reading")) && said.contains(whole), "{said}");
    let said = install(&[&a], 0).await;
    assert!(said.contains(&format!("opens {a} to `files` for reading and writing\n")), "{said}");
    let said = install(&[&b], 0).await;
    assert!(said.contains(&format!("{a} was open before, and stays open")), "{said}");
    let config = folder.join("home/.cursor/mcp.json");
    let (_, arguments) = named("cursor", &config);
    assert_eq!(arguments, ["run", "--builtin", "files", b.as_str(), a.as_str()]);
    let said = install(&[], 0).await;
    assert!(said.contains("already up to date") || named("cursor", &config).1.contains(&a), "{said}");
    // Less access is given to what stays, and never more.
    install(&["--read-only", &a], 0).await;
    let said = install(&[&a], 2).await;
    assert!(said.contains(&format!("{b} was open for reading only, and would be open for writing")), "{said}");
}

/// A package runner's folder is emptied at any time, so the client is to use the package runner as well.
#[tokio::test(flavor = "multi_thread")]
async fn what_npx_and_uvx_started_is_started_by_them() {
    let folder = Folder::new();
    let own = std::path::absolute(e2e::binary()).unwrap();
    for (at, program, words, typed) in [
        ("npm/_npx/0a/node_modules/@wharf-mcp/cli-linux-x64/wharf", "npx", ["-y", "wharf-mcp@0.9.1"].as_slice(), true),
        ("uv/archive-v0/0a/bin/wharf", "uvx", &["wharf-mcp"], false),
    ] {
        let binary = folder.join(at);
        std::fs::create_dir_all(binary.parent().unwrap()).unwrap();
        if std::fs::hard_link(&own, &binary).is_err() {
            std::fs::copy(&own, &binary).unwrap();
        }
        if typed {
            folder.write("npm/_npx/0a/package.json", "{ \"_npx\": { \"packages\": [\"wharf-mcp@0.9.1\"] } }");
        }
        // Something for `wharf check --machine` to find on PATH.
        folder.write(&format!("bin/{program}"), "");
        let path = ("PATH", folder.join("bin").display().to_string());
        let run = async |arguments: &[&str]| {
            let plain = folder.command(arguments, &[(path.0, &path.1)]);
            let mut command = tokio::process::Command::new(&binary);
            command.args(arguments).env_clear().current_dir(folder.path());
            command.envs(plain.as_std().get_envs().filter_map(|(name, value)| Some((name, value?))));
            stdout(&command.output().await.unwrap())
        };
        let said = run(&["install", "cursor", "--builtin", "time", "--name", "files"]).await;
        let (command, arguments) = named("cursor", &folder.join("home/.cursor/mcp.json"));
        assert_eq!(
            (command.as_str(), arguments),
            (program, [words, &["run", "--builtin", "time"]].concat().iter().map(ToString::to_string).collect()),
            "{said}"
        );
        assert!(run(&["install", "--list"]).await.contains("with wharf as files"));
        let found = run(&["check", "--machine"]).await;
        assert!(found.lines().any(|line| line.starts_with("ok") && line.contains("has wharf as `files`")), "{found}");
        run(&["install", "cursor", "--uninstall"]).await;
        assert!(!folder.join("home/.cursor/mcp.json").exists());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_config_of_wharf_or_arguments_as_they_are_may_be_what_is_run() {
    let folder = Folder::new();
    folder.config("[plugins.clock]\nbuiltin = 'time'\n");
    let named = |text: &str| serde_json::from_str::<Value>(text).unwrap()["mcpServers"]["wharf"]["args"].clone();
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    for (arguments, expected) in [
        ([].as_slice(), json!(["run"])),
        (&["-c", "config/wharf/wharf.toml"], json!(["run", "-c", folder.join("config/wharf/wharf.toml")])),
        (&["--profile", "search"], json!(["run", "--profile", "search"])),
        (&["--", "run", "--log-format", "json"], json!(["run", "--log-format", "json"])),
    ] {
        let all = [&["install", "other", "--config-path", "client.json"], arguments].concat();
        let output = folder.run(&all, &[]).await;
        assert!(output.status.success(), "{all:?}: {}", stderr(&output));
        assert_eq!(named(&read("client.json")), expected, "{all:?}");
    }
    let output = folder.run(&["install", "other"], &[]).await;
    assert!(stderr(&output).contains("--config-path"), "{}", stderr(&output));
}
