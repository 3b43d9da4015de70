//! Tests of edits: for each client, the config before and after adding a server, and that removing it restores the original text.

#![expect(clippy::disallowed_methods, reason = "writes configs of clients into a folder of the test")]

use super::{
    client_list::{ALL, ConfigPaths, find},
    clients::{Client, Undone},
    format::Format,
    server::Server,
};

fn server() -> Server {
    let args = ["run", "--builtin", "files", "/home/ada/My \"Docs\""].map(str::to_owned).to_vec();
    Server { name: "files".into(), command: "/opt/wharf".into(), args }
}

fn client(id: &str) -> &'static Client {
    find(id).unwrap()
}

/// A client, and its config before and after adding the server.
const CASES: &[(&str, &str, &str)] = &[
    (
        "claude-desktop",
        "",
        "{\n  \"mcpServers\": {\n    \"files\": {\n      \"command\": \"/opt/wharf\",\n      \"args\": [\"run\", \"--builtin\", \"files\", \
         \"/home/ada/My \\\"Docs\\\"\"]\n    }\n  }\n}\n",
    ),
    (
        "claude-desktop",
        "{\"theme\":\"dark\",\"mcpServers\":{}}",
        "{\"theme\":\"dark\",\"mcpServers\":{\n    \"files\": {\n      \"command\": \"/opt/wharf\",\n      \
         \"args\": [\"run\", \"--builtin\", \"files\", \"/home/ada/My \\\"Docs\\\"\"]\n    }\n  }}",
    ),
    (
        "claude-code",
        "{\n  \"numStartups\": 7,\n  \"mcpServers\": {\n    \"b\": { \"command\": \"b\" }\n  },\n  \"projects\": {}\n}\n",
        "{\n  \"numStartups\": 7,\n  \"mcpServers\": {\n    \"b\": { \"command\": \"b\" },\n    \"files\": {\n      \"type\": \"stdio\",\n      \
         \"command\": \"/opt/wharf\",\n      \"args\": [\"run\", \"--builtin\", \"files\", \"/home/ada/My \\\"Docs\\\"\"]\n    }\n  },\n  \
         \"projects\": {}\n}\n",
    ),
    (
        "vscode",
        "// mine\n{\n\t\"servers\": {\n\t\t/* one */\n\t\t\"b\": { \"type\": \"http\", \"url\": \"http://b\" }, // two\n\t},\n\t\"inputs\": [],\n}\n",
        "// mine\n{\n\t\"servers\": {\n\t\t/* one */\n\t\t\"b\": { \"type\": \"http\", \"url\": \"http://b\" }, // two\n\t\t\"files\": {\n\t\t\t\
         \"type\": \"stdio\",\n\t\t\t\"command\": \"/opt/wharf\",\n\t\t\t\"args\": [\"run\", \"--builtin\", \"files\", \
         \"/home/ada/My \\\"Docs\\\"\"],\n\t\t},\n\t},\n\t\"inputs\": [],\n}\n",
    ),
    (
        "cursor",
        "\u{feff}{\r\n  \"mcpServers\": {\r\n    \"b\": { \"command\": \"b\" }\r\n  }\r\n}",
        "\u{feff}{\r\n  \"mcpServers\": {\r\n    \"b\": { \"command\": \"b\" },\r\n    \"files\": {\r\n      \"command\": \"/opt/wharf\",\r\n      \
         \"args\": [\"run\", \"--builtin\", \"files\", \"/home/ada/My \\\"Docs\\\"\"]\r\n    }\r\n  }\r\n}",
    ),
    (
        "codex",
        "# mine\nmodel = \"m\" # best\n\n[mcp_servers.b] # b\ncommand = 'b'\n\n[tui]\nx = 1\n",
        "# mine\nmodel = \"m\" # best\n\n[mcp_servers.b] # b\ncommand = 'b'\n\n[mcp_servers.files]\ncommand = \"/opt/wharf\"\nargs = [\"run\", \
         \"--builtin\", \"files\", '/home/ada/My \"Docs\"']\n\n[tui]\nx = 1\n",
    ),
    (
        "codex",
        "",
        "[mcp_servers.files]\ncommand = \"/opt/wharf\"\nargs = [\"run\", \"--builtin\", \"files\", '/home/ada/My \"Docs\"']\n",
    ),
    (
        "zed",
        "{\n  // Zed settings\n  \"vim_mode\": true,\n  \"context_servers\": {}\n}\n",
        "{\n  // Zed settings\n  \"vim_mode\": true,\n  \"context_servers\": {\n    \"files\": {\n      \"source\": \"custom\",\n      \
         \"command\": \"/opt/wharf\",\n      \"args\": [\"run\", \"--builtin\", \"files\", \"/home/ada/My \\\"Docs\\\"\"],\n      \
         \"env\": {}\n    }\n  }\n}\n",
    ),
    (
        "opencode",
        "{\n  \"a\": 1,\n  \"mcp\": {}\n}\n",
        "{\n  \"a\": 1,\n  \"mcp\": {\n    \"files\": {\n      \"type\": \"local\",\n      \"command\": [\"/opt/wharf\", \"run\", \"--builtin\", \
         \"files\", \"/home/ada/My \\\"Docs\\\"\"],\n      \"enabled\": true\n    }\n  }\n}\n",
    ),
    (
        "copilot-cli",
        "{\n  \"a\": 1,\n  \"mcpServers\": {}\n}\n",
        "{\n  \"a\": 1,\n  \"mcpServers\": {\n    \"files\": {\n      \"type\": \"local\",\n      \"command\": \"/opt/wharf\",\n      \
         \"args\": [\"run\", \"--builtin\", \"files\", \"/home/ada/My \\\"Docs\\\"\"],\n      \"tools\": [\"*\"]\n    }\n  }\n}\n",
    ),
];

#[test]
fn each_client_gets_its_own_words_and_nothing_else_changes() {
    for (id, before, expected) in CASES {
        let (client, server) = (client(id), server());
        let after = client.set(before, &server).unwrap();
        assert_eq!(after, *expected, "{id}");
        assert!(client.servers(&after).unwrap().contains(&server), "{id}");
        assert_eq!(client.set(&after, &server).unwrap(), after, "{id}: a second time");
        let was_there = (!before.is_empty()).then_some(*before);
        let undone = client.undo(&after, "files", was_there).unwrap();
        assert_eq!(undone, Undone { text: was_there.map(str::to_owned), is_restored: false }, "{id}: undone");
    }
}

#[test]
fn another_path_takes_the_place_of_the_old_and_what_a_person_added_stays() {
    for (id, before, _) in CASES {
        let client = client(id);
        let older = Server { command: "/old/bin/wharf".into(), args: vec!["run".into()], ..server() };
        let there = client.set(before, &older).unwrap();
        let after = client.set(&there, &server()).unwrap();
        assert_eq!(client.servers(&after).unwrap().iter().filter(|one| one.name == "files").count(), 1, "{id}");
        assert_eq!(after, client.set(before, &server()).unwrap(), "{id}");
    }
    let opencode = client("opencode");
    let there = opencode.set("", &Server { args: vec![], ..server() }).unwrap();
    let off = there.replace("\"enabled\": true", "\"enabled\": false");
    assert!(opencode.set(&off, &server()).unwrap().contains("\"enabled\": false"));
    let cursor = client("cursor");
    let with = |command: &str| {
        format!("{{\"mcpServers\": {{\"files\": {{\"command\": \"{command}\", \"env\": {{\"A\": \"1\"}}}}}}}}")
    };
    assert!(cursor.set(&with("/old/wharf"), &server()).unwrap().contains("\"A\": \"1\""));
    // Members of another program's entry are not taken over.
    assert!(!cursor.set(&with("npx"), &server()).unwrap().contains("\"A\""));
}

#[test]
fn without_a_backup_the_server_goes_and_all_others_stay() {
    for (id, before, after) in CASES {
        let client = client(id);
        let others = |text: &str| {
            client.servers(text).unwrap().into_iter().filter(|one| one.name != "files").collect::<Vec<_>>()
        };
        let Some(undone) = client.undo(after, "files", None).unwrap().text else {
            assert!(before.is_empty(), "{id}: the file was not there");
            continue;
        };
        assert_eq!(others(&undone), others(before), "{id}");
        assert!(!client.has(&undone, "files").unwrap(), "{id}");
        for comment in ["// mine", "/* one */", "// two", "# mine", "# best", "# b", "# first", "# none"] {
            assert_eq!(undone.contains(comment), before.contains(comment), "{id}: {comment}\n{undone}");
        }
    }
}

#[test]
fn what_is_yaml_is_printed_for_a_person_to_add() {
    let goose = "extensions:\n  \"files\":\n    enabled: true\n    type: \"stdio\"\n    name: \"files\"\n    \
                 description: \"Sandboxed plugins, served by wharf\"\n    cmd: \"/opt/wharf\"\n    \
                 args: [\"run\",\"--builtin\",\"files\",\"/home/ada/My \\\"Docs\\\"\"]\n    envs: {}\n    timeout: 300\n";
    let named = "mcpServers:\n  - name: \"files\"\n    command: \"/opt/wharf\"\n    \
                 args: [\"run\",\"--builtin\",\"files\",\"/home/ada/My \\\"Docs\\\"\"]\n";
    for (id, is_new, expected) in [
        ("goose", true, goose.to_owned()),
        ("continue", false, named.to_owned()),
        ("continue", true, format!("name: Local Config\nversion: 1.0.0\nschema: v1\n{named}")),
    ] {
        assert_eq!(client(id).lines(&server(), is_new), expected, "{id}");
        assert!(client(id).set("", &server()).is_err() && !client(id).is_edited(), "{id}");
    }
}

#[test]
fn what_cannot_be_read_or_edited_is_refused_with_its_place() {
    for (id, text, expected) in [
        ("cursor", "{\n  \"mcpServers\": {,}\n}", "2:18: "),
        ("cursor", "{\n  \"mcpServers\": {", "2:"),
        ("cursor", "[]", "not a JSON object"),
        ("cursor", "{\"mcpServers\": []}", "not a mapping from names to servers"),
        ("cursor", "{\"mcpServers\": {}, \"mcpServers\": {}}", "cannot be edited"),
        ("cursor", "{\"a\": 1,\r\n\"b\": 2\n}", "use one of the two"),
        ("vscode", "{'servers': {}}", "1:2: "),
        ("codex", "a = 1\nmcp_servers = 2\n", "not a mapping from names to servers"),
        ("codex", "a = 1\n\n[b\n", "3: "),
    ] {
        let error = format!("{:#}", client(id).set(text, &server()).unwrap_err());
        assert!(error.contains(expected), "{id}: {text}\n{error}");
    }
}

#[test]
fn each_client_has_its_own_place() {
    let places = |is_mac| ConfigPaths { home: "/h".into(), variables: Vec::new(), is_mac };
    let path = |id: &str, is_mac| client(id).path(&places(is_mac)).map(|path| path.display().to_string());
    let application = |path: &str| [format!("/h/.config/{path}"), format!("/h/Library/Application Support/{path}")];
    let both = |path: &str| [format!("/h/{path}"), format!("/h/{path}")];
    for (id, [linux, mac]) in [
        ("claude-desktop", application("Claude/claude_desktop_config.json")),
        ("claude-code", both(".claude.json")),
        ("vscode", application("Code/User/mcp.json")),
        ("cursor", both(".cursor/mcp.json")),
        ("codex", both(".codex/config.toml")),
        ("gemini-cli", both(".gemini/settings.json")),
        ("copilot-cli", both(".copilot/mcp-config.json")),
        ("opencode", both(".config/opencode/opencode.json")),
        ("cline", both(".cline/data/settings/cline_mcp_settings.json")),
        (
            "cline-vscode",
            application("Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"),
        ),
        ("qwen-code", both(".qwen/settings.json")),
        ("windsurf", both(".codeium/windsurf/mcp_config.json")),
        ("zed", both(".config/zed/settings.json")),
        ("goose", both(".config/goose/config.yaml")),
        ("continue", both(".continue/config.yaml")),
        ("kilo-code", both(".config/kilo/kilo.json")),
        ("kiro", both(".kiro/settings/mcp.json")),
        ("kimi-code", both(".kimi-code/mcp.json")),
        ("antigravity", both(".gemini/config/mcp_config.json")),
        ("grok-build", both(".grok/config.toml")),
        ("mastracode", both(".mastracode/mcp.json")),
        ("mcporter", both(".mcporter/mcporter.json")),
        ("pi", both(".pi/agent/mcp.json")),
        ("fx", both(".fx/mcp.json")),
    ] {
        assert_eq!((path(id, false), path(id, true)), (Some(linux), Some(mac)), "{id}");
    }
    assert_eq!(path("other", false), None);
}

#[test]
fn variables_and_files_that_exist_move_a_config() {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| folder.path().join(path);
    let moved = |id: &str, variable, path: &str| {
        let places = ConfigPaths { home: "/h".into(), variables: vec![(variable, at("moved"))], is_mac: false };
        assert_eq!(client(id).path(&places), Some(at(path)), "{id}");
    };
    moved("claude-code", "CLAUDE_CONFIG_DIR", "moved/.claude.json");
    moved("codex", "CODEX_HOME", "moved/config.toml");
    moved("gemini-cli", "GEMINI_CLI_HOME", "moved/.gemini/settings.json");
    moved("copilot-cli", "COPILOT_HOME", "moved/mcp-config.json");
    moved("cline", "CLINE_MCP_SETTINGS_PATH", "moved");
    moved("qwen-code", "QWEN_HOME", "moved/settings.json");
    moved("continue", "CONTINUE_GLOBAL_DIR", "moved/config.yaml");
    moved("opencode", "XDG_CONFIG_HOME", "moved/opencode/opencode.json");
    std::fs::create_dir_all(at("moved/opencode")).unwrap();
    std::fs::write(at("moved/opencode/opencode.jsonc"), "{}").unwrap();
    moved("opencode", "XDG_CONFIG_HOME", "moved/opencode/opencode.jsonc");
}

#[test]
fn what_was_replaced_by_force_comes_back() {
    let before = "{ \"mcpServers\": { \"files\": { \"command\": \"npx\", \"args\": [\"-y\", \"other\"] } } }";
    let client = client("cursor");
    let forced = client.set(before, &server()).unwrap();
    let both = client.set(&forced, &Server { name: "time".into(), ..server() }).unwrap();
    assert!(client.only_adds_servers(before, &forced) && client.only_adds_servers(before, &both));
    let one = client.undo(&both, "files", Some(before)).unwrap();
    assert!(one.is_restored && client.has(one.text.as_deref().unwrap(), "time").unwrap());
    let undone = client.undo(&one.text.unwrap(), "time", Some(before)).unwrap();
    assert_eq!(undone, Undone { text: Some(before.into()), is_restored: false });
    // Even if somebody else has changed the file since.
    let changed = forced.replace("{ \"mcp", "{ \"theme\": 1, \"mcp");
    let undone = client.undo(&changed, "files", Some(before)).unwrap();
    let text = undone.text.unwrap();
    assert!(undone.is_restored && text.contains("\"theme\": 1"), "{text}");
    assert_eq!(client.servers(&text).unwrap(), client.servers(before).unwrap());
}

#[test]
fn entries_are_read_in_every_form_that_a_client_accepts() {
    for (id, text) in [
        (
            "cline",
            r#"{ "mcpServers": { "files": { "transport": { "type": "stdio", "command": "/opt/wharf", "args": ["run"] } } } }"#,
        ),
        ("zed", r#"{ "context_servers": { "files": { "command": { "path": "/opt/wharf", "args": ["run"] } } } }"#),
        (
            "kilo-code",
            r#"{ "mcp": { "files": { "type": "local", "command": ["/opt/wharf", "run"] }, "off": { "enabled": false } } }"#,
        ),
    ] {
        let (client, expected) = (client(id), Server { args: vec!["run".into()], ..server() });
        assert_eq!(client.servers(text).unwrap(), [expected], "{id}");
        let after = client.set(text, &server()).unwrap();
        assert_eq!(client.servers(&after).unwrap(), [server()], "{id}: {after}");
        assert_eq!(client.fault(&after, "files").unwrap(), None, "{id}: {after}");
    }
}

#[test]
fn entries_that_the_client_does_not_start_are_known() {
    let fault = |id: &str, key: &str, entry: &str| {
        client(id).fault(&format!("{{ \"{key}\": {{ \"a\": {entry} }} }}"), "a").unwrap().unwrap_or_default().0
    };
    for (id, key, entry, expected) in [
        ("cursor", "mcpServers", r#"{ "command": "wharf", "args": "run --builtin time" }"#, "`args` is not a list"),
        ("cursor", "mcpServers", r#"{ "command": "wharf", "args": ["run", 7] }"#, "`args` is not a list"),
        ("opencode", "mcp", r#"{ "command": ["wharf", 7] }"#, "`command` is not a list"),
        ("cline", "mcpServers", r#"{ "command": "wharf", "disabled": true }"#, "it is disabled (`disabled` is true)"),
        ("opencode", "mcp", r#"{ "command": ["wharf"], "enabled": false }"#, "it is disabled (`enabled` is false)"),
    ] {
        let says = fault(id, key, entry);
        assert!(says.starts_with(expected), "{entry}: {says}");
    }
    for entry in
        [r#"{ "command": "wharf" }"#, r#"{ "command": "wharf", "disabled": false, "enabled": true, "args": [] }"#]
    {
        assert_eq!(fault("cursor", "mcpServers", entry), "", "{entry}");
    }
}

/// Configs of various shapes, by format.
const SHAPES: &[(Format, &[&str])] = &[
    (
        Format::Json,
        &[
            "",
            "{}",
            "{}\n",
            "\n",
            "{\n}\n",
            "{\"KEY\": {}}",
            "{\n  \"KEY\": {\n  }\n}\n",
            "{\"a\": 1}",
            "{\n\t\"a\": 1,\n}\n",
            "// mine\n{ \"a\": [] } // end\n",
            "{ \"KEY\": { \"b\": { \"command\": \"b\" } }, \"z\": 1 }\n",
            "{\r\n  \"KEY\": {\r\n    \"b\": { \"url\": \"http://b\" }, // two\r\n  },\r\n}\r\n",
            "\u{feff}{\n    \"KEY\": {\n        /* none */\n    }\n}",
        ],
    ),
    (
        Format::Toml,
        &[
            "",
            "# mine\n",
            "a = 1",
            "a = 1\n\n[b]\nc = 2\n",
            "[KEY]\n",
            "[KEY.b]\ncommand = 'b'\n\n# after\n[z]\n",
            "KEY = { b = { command = 'b' } }\n",
            "[KEY]\nb.command = 'b' # b\n",
            "\u{feff}a = 1\r\n",
        ],
    ),
];

#[test]
fn several_servers_leave_nothing_behind_in_whatever_order_they_go() {
    let [first, second, third] = ["files", "time", "a-b"].map(|name| Server { name: name.into(), ..server() });
    let orders: &[&[&Server]] = &[
        &[&first],
        &[&first, &second],
        &[&second, &first],
        &[&first, &second, &third],
        &[&third, &first, &second],
        &[&second, &third, &first],
    ];
    for client in ALL {
        let shapes = SHAPES.iter().filter(|(format, _)| *format == client.format).flat_map(|(_, shapes)| *shapes);
        for shape in shapes.map(|shape| shape.replace("KEY", client.key)) {
            for was_there in [Some(shape.as_str()), None].into_iter().filter(|one| one.is_some() || shape.is_empty()) {
                for order in orders {
                    let mut installed: Vec<&Server> = order.to_vec();
                    installed.sort_by_key(|server| server.name.len());
                    let mut text = shape.clone();
                    for server in &installed {
                        let next = client.set(&text, server).unwrap();
                        assert!(client.only_adds_servers(&shape, &next), "{}: {shape:?} became {next:?}", client.id);
                        text = next;
                    }
                    // The same server a second time, with other arguments.
                    for server in &installed {
                        let other = Server { args: vec!["run".into()], ..(*server).clone() };
                        text = client.set(&text, &other).unwrap();
                        assert!(client.only_adds_servers(&shape, &text), "{}: {shape:?} became {text:?}", client.id);
                    }
                    let mut left = Some(text);
                    for server in *order {
                        left = client.undo(&left.unwrap(), &server.name, was_there).unwrap().text;
                    }
                    assert_eq!(left.as_deref(), was_there, "{}: {shape:?}", client.id);
                }
            }
        }
    }
}

#[test]
fn what_somebody_else_changed_is_no_trace_of_a_server() {
    let client = client("cursor");
    let before = "{ \"mcpServers\": {} }";
    let with = client.set(before, &server()).unwrap();
    let changed = with.replace("{ \"mcp", "{ \"theme\": 1, \"mcp");
    assert!(client.only_adds_servers(before, before) && client.only_adds_servers(before, &with));
    assert!(!client.only_adds_servers(before, &changed) && !client.only_adds_servers(&with, before));
    let undone = client.undo(&changed, "files", Some(before)).unwrap().text.unwrap();
    assert!(undone.contains("\"theme\": 1") && !undone.contains("wharf"), "{undone}");
    // A server that was wharf before it was replaced is not restored.
    let again = client.set(&with, &Server { args: vec!["serve".into()], ..server() }).unwrap();
    let undone = client.undo(&again, "files", Some(&with)).unwrap().text.unwrap();
    assert!(!client.has(&undone, "files").unwrap(), "{undone}");
}
