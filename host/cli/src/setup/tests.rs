//! Tests of edits: for each client, the config before and after adding a server, and that removing it restores the original text.

use super::{
    clients::{ALL, Client, Places, Server, find},
    format::Format,
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
        "goose",
        "GOOSE_MODEL: m # best\nextensions:\n  # first\n  developer:\n    enabled: true\n    type: builtin\n    instructions: |\n      a\n        b\n\nkeyring: true\n",
        "GOOSE_MODEL: m # best\nextensions:\n  # first\n  \"files\":\n    enabled: true\n    type: \"stdio\"\n    name: \"files\"\n    \
         description: \"Sandboxed plugins, served by wharf\"\n    cmd: \"/opt/wharf\"\n    \
         args: [\"run\",\"--builtin\",\"files\",\"/home/ada/My \\\"Docs\\\"\"]\n    envs: {}\n    timeout: 300\n  \
         developer:\n    enabled: true\n    type: builtin\n    instructions: |\n      a\n        b\n\nkeyring: true\n",
    ),
    (
        "goose",
        "extensions: {} # none\nb: 1",
        "extensions: # none\n  \"files\":\n    enabled: true\n    type: \"stdio\"\n    name: \"files\"\n    \
         description: \"Sandboxed plugins, served by wharf\"\n    cmd: \"/opt/wharf\"\n    \
         args: [\"run\",\"--builtin\",\"files\",\"/home/ada/My \\\"Docs\\\"\"]\n    envs: {}\n    timeout: 300\nb: 1",
    ),
    (
        "goose",
        "",
        "extensions:\n  \"files\":\n    enabled: true\n    type: \"stdio\"\n    name: \"files\"\n    \
         description: \"Sandboxed plugins, served by wharf\"\n    cmd: \"/opt/wharf\"\n    \
         args: [\"run\",\"--builtin\",\"files\",\"/home/ada/My \\\"Docs\\\"\"]\n    envs: {}\n    timeout: 300\n",
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
        assert_eq!(client.undo(&after, "files", was_there).unwrap().as_deref(), was_there, "{id}: undone");
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
    let goose = client("goose");
    let off = goose.set("", &Server { args: vec![], ..server() }).unwrap().replace("enabled: true", "enabled: false");
    assert!(goose.set(&off, &server()).unwrap().contains("enabled: false"));
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
        let Some(undone) = client.undo(after, "files", None).unwrap() else {
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
        ("goose", "a: 1\nb: [\n", "3:"),
        ("goose", "a: 1\na: 2\n", "2: the key `a` stands here a second time"),
        ("goose", "extensions: {b: {cmd: b}}\n", "not in block style"),
        ("goose", "a: 1\n---\nb: 2\n", "more than one document"),
        ("goose", "- a\n", "not a mapping"),
        ("goose", "extensions: &all\n  b:\n    cmd: b\n", "not a plain mapping"),
    ] {
        let error = format!("{:#}", client(id).set(text, &server()).unwrap_err());
        assert!(error.contains(expected), "{id}: {text}\n{error}");
    }
}

#[test]
fn each_client_has_its_own_place() {
    let places = |is_mac| Places { home: "/h".into(), config: None, codex: None, claude: None, is_mac };
    let path = |id: &str, is_mac| client(id).path(&places(is_mac)).map(|path| path.display().to_string());
    for (id, linux, mac) in [
        (
            "claude-desktop",
            "/h/.config/Claude/claude_desktop_config.json",
            "/h/Library/Application Support/Claude/claude_desktop_config.json",
        ),
        ("claude-code", "/h/.claude.json", "/h/.claude.json"),
        ("vscode", "/h/.config/Code/User/mcp.json", "/h/Library/Application Support/Code/User/mcp.json"),
        ("cursor", "/h/.cursor/mcp.json", "/h/.cursor/mcp.json"),
        ("codex", "/h/.codex/config.toml", "/h/.codex/config.toml"),
        ("zed", "/h/.config/zed/settings.json", "/h/.config/zed/settings.json"),
        ("goose", "/h/.config/goose/config.yaml", "/h/.config/goose/config.yaml"),
    ] {
        assert_eq!((path(id, false).as_deref(), path(id, true).as_deref()), (Some(linux), Some(mac)), "{id}");
    }
    assert_eq!(path("other", false), None);
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
    (
        Format::Yaml,
        &[
            "",
            "# mine\n",
            "a: 1",
            "a: 1\n",
            "KEY:\n",
            "KEY: {}\n",
            "KEY: null # none\nz: 1\n",
            "KEY:\n    b:\n        cmd: b\n\n# after\nz: 1",
            "a: 1\r\nKEY:\r\n  b:\r\n    cmd: b\r\n",
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
                    let mut left = Some(text);
                    for server in *order {
                        left = client.undo(&left.unwrap(), &server.name, was_there).unwrap();
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
    let undone = client.undo(&changed, "files", Some(before)).unwrap().unwrap();
    assert!(undone.contains("\"theme\": 1") && !undone.contains("wharf"), "{undone}");
    // A server that was wharf before it was replaced is not restored.
    let again = client.set(&with, &Server { args: vec!["serve".into()], ..server() }).unwrap();
    let undone = client.undo(&again, "files", Some(&with)).unwrap().unwrap();
    assert!(!client.has(&undone, "files").unwrap(), "{undone}");
}
