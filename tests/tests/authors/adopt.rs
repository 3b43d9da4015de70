//! `wharf adopt`: servers that clients start without wharf.

use std::fs;

use e2e::{
    Terminal, Value,
    folder::{stderr, stdout},
    json,
};

use super::existing::{Existing, names};

#[tokio::test(flavor = "multi_thread")]
async fn the_servers_of_clients_are_shown_and_put_into_wharf_where_a_person_agrees() {
    let existing = Existing::new("hello", "");
    let folder = &existing.folder;
    let docs = folder.join("home/docs").display().to_string();
    fs::create_dir_all(&docs).unwrap();
    let config = json!({ "other": [1, 2], "mcpServers": {
        "notes": { "command": "npx", "args": ["-y", "@own/notes@1", docs], "env": { "KEY": "k" }, "disabled": false },
        "boxed": { "command": "docker", "args": ["run", "-i", "own/boxed"] },
        "native": { "command": "/opt/native", "args": [] },
        "refused": { "command": "bunx", "args": ["@own/other"] },
        "web": { "type": "http", "url": "https://web.example/mcp" },
    } });
    let before = serde_json::to_string_pretty(&config).unwrap();
    let path = folder.write("home/.claude.json", &before);
    folder.write(
        ".vscode/mcp.json",
        r#"{ "servers": { "ours": { "command": "npx", "args": ["own", "a b"] }, "far": { "url": "https://far.example" } } }"#,
    );
    let read = || fs::read_to_string(&path).unwrap();
    let shown = folder.run(&["adopt", "--dry-run"], &existing.environment()).await;
    let printed = stdout(&shown);
    for expected in [
        "Claude Code, ",
        "  notes: 1 tools, about ",
        "    --allow env=KEY\n",
        "/home/docs, for reading and writing\n",
        "  boxed: stays as it is: `docker` starts a container, which wharf does not",
        "  native: stays as it is: /opt/native is a program of this machine",
        "  web: remote: left as it is\n",
        "this project, .vscode/mcp.json\n  far: remote: left as it is\n  ours: left as it is, since others share the file; to put wharf \
         before it: wharf install vscode --config-path .vscode/mcp.json --name ours --force npx own 'a b'\n",
    ] {
        assert!(printed.contains(expected), "{expected}: {printed}{}", stderr(&shown));
    }
    assert_eq!(read(), before);
    let refused = folder.run(&["adopt"], &existing.environment()).await;
    assert!(stderr(&refused).contains("--dry-run shows the servers"), "{}", stderr(&refused));
    let mut terminal = Terminal::start_with(folder, &["adopt"], &existing.environment());
    for answer in ["y", "n"] {
        terminal.until("by wharf in Claude Code, with this access? [y/N] ").await;
        terminal.types(answer);
    }
    let (code, shown, printed) = terminal.end().await;
    assert_eq!(code, Some(0), "{shown}{printed}");
    assert!(printed.contains("next: start a new session of Claude Code\n"), "{printed}");
    let after: Value = serde_json::from_str(&read()).unwrap();
    let entry = &after["mcpServers"]["notes"];
    assert_eq!((&entry["env"], &entry["disabled"]), (&json!({ "KEY": "k" }), &json!(false)), "{after}");
    assert_eq!(after["mcpServers"]["refused"], config["mcpServers"]["refused"]);
    assert_eq!(entry["args"], json!(["run", "--allow", "env=KEY", docs, "npx", "-y", "@own/notes@1", docs]));
    let words: Vec<&str> = entry["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    let mut pipe = existing.start(&words);
    pipe.legacy("2025-11-25", json!({})).await;
    assert_eq!(names(&pipe.request("tools/list", json!({})).await.unwrap()), ["greet"]);
    assert!(pipe.close().await.status.success());
    let undone = folder.run(&["install", "claude-code", "--name", "notes", "--uninstall"], &[]).await;
    assert!(undone.status.success(), "{}", stderr(&undone));
    assert_eq!(read(), before);
}
