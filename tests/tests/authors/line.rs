//! `wharf run npx -y NAME` and the like: the line that starts a server without wharf, with one word in front.

use std::os::unix::fs::symlink;

use e2e::{
    Value,
    folder::{stderr, stdout},
    json,
};

use super::existing::{Existing, names};

#[tokio::test(flavor = "multi_thread")]
async fn a_package_is_built_once_for_each_version_and_arguments() {
    let existing = Existing::new("hello", "");
    for (line, installed, built) in [
        (
            "npx -y @own/notes@1.2.3 --token s3cret bin",
            1,
            "build --mcp npm:@own/notes@1.2.3 -o dist/plugin.wasm -- --token s3cret bin",
        ),
        ("npx -y @own/notes@1.2.3 --token s3cret bin", 1, ""),
        ("bunx @own/notes@1.2.3", 1, "build --mcp npm:@own/notes@1.2.3 -o dist/plugin.wasm"),
        ("npx -y @own/notes@1.2.3 --token s3cret bin", 1, ""),
        ("npx -y @own/notes", 2, "build --mcp npm:@own/notes -o dist/plugin.wasm"),
        ("npm:@own/notes", 2, ""),
        ("npm:@own/notes -- it's", 2, "build --mcp npm:@own/notes -o dist/plugin.wasm -- it's"),
        ("npx --package=@own/notes other", 3, "build --mcp npm:@own/notes#other -o dist/plugin.wasm"),
        ("node notes/index.ts -v", 4, "notes/index.ts -o dist/plugin.wasm -- -v"),
        ("notes/index.ts -- -v", 4, ""),
    ] {
        let before = existing.counts().1;
        let words: Vec<&str> = ["run"].into_iter().chain(line.split(' ')).collect();
        let mut pipe = existing.start(&words);
        pipe.legacy("2025-11-25", json!({})).await;
        assert_eq!(names(&pipe.request("tools/list", json!({})).await.unwrap()), ["greet"], "{line}");
        let ended = pipe.close().await;
        assert!(ended.status.success() && !ended.log.contains("s3cret"), "{}", ended.log);
        let warns = ended.log.contains("bin is an argument of the server, which opens nothing");
        assert_eq!(warns, line.ends_with(" bin"), "{}", ended.log);
        assert_eq!(existing.counts(), (installed, before + usize::from(!built.is_empty())), "{line}");
        assert!(existing.log().lines().any(|said| said.ends_with(built)), "{line}: {}", existing.log());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_files_say_of_a_server_is_shown_without_its_build() {
    let existing = Existing::new("hello", "");
    existing.folder.write(
        "weather/server.py",
        "# /// script\n# dependencies = ['mcp', 'httpx>=0.27']\n# ///\nimport os, subprocess\nfrom mcp.server import Server\n\
         # see https://docs.example\nKEY = os.environ['API_KEY']\nurl = \"https://api.example:8443/v1\"\n",
    );
    existing.folder.write(
        "notes/index.ts",
        "import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';\nspawn(process.env.TOKEN);\nimport { spawn } from 'node:child_process';\n",
    );
    existing.folder.write("notes/package.json", "{ \"dependencies\": { \"zod\": \"^4\" } }");
    existing.folder.write("other/plain.py", "print('\\x1b[2J')\n");
    existing.folder.write("secret.txt", "hunter2\n");
    symlink("../secret.txt", existing.folder.join("other/requirements.txt")).unwrap();
    for (file, expected, absent) in [
        (
            "weather/server.py",
            "language: Python\npackages: httpx>=0.27, mcp\nits source names the variable API_KEY (server.py:7)\n\
             its source names https://api.example:8443 (server.py:8)\nits source names subprocess (server.py:4): a plugin cannot start programs\n\
             note: --build",
            "docs.example",
        ),
        (
            "notes/index.ts",
            "packages: zod ^4\nits source names the variable TOKEN (index.ts:2)\nits source names child_process (index.ts:3): a plugin",
            "SDK",
        ),
        ("other/plain.py", "none of its files names an SDK for MCP", "packages:"),
    ] {
        let shown = existing.folder.run(&["inspect", file], &existing.environment()).await;
        let said = stdout(&shown);
        assert!(
            shown.status.success() && said.contains(expected) && !said.contains(absent),
            "{said}{}",
            stderr(&shown)
        );
    }
    assert_eq!(existing.counts(), (0, 0), "nothing of them has run");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_is_called_after_the_arguments_of_its_server() {
    let existing = Existing::new("hello", "");
    let line = ["npx", "-y", "@own/notes", "--stdio"];
    let refused = existing.folder.run(&[&["inspect"], &line[..]].concat(), &existing.environment()).await;
    assert!(stderr(&refused).contains("npm:@own/notes: this package is not built"), "{}", stderr(&refused));
    assert_eq!(existing.counts(), (0, 0), "nothing of it has run");
    let words = [&["call"], &line[..], &["greet", "name=Ada"]].concat();
    let called = existing.folder.run(&words, &existing.environment()).await;
    assert_eq!(stdout(&called), "Hello, Ada!\n", "{}", stderr(&called));
    let shown = existing.folder.run(&[&["inspect"], &line[..]].concat(), &existing.environment()).await;
    assert!(stdout(&shown).contains("tool greet"), "{}", stderr(&shown));
    for (words, expected) in [
        (
            "call npx -y @own/new greet Ada",
            " call npx -y @own/new greet KEY=Ada; if it is not, write {} after the tool: ",
        ),
        ("call npx -y @own/new", "name the tool, after the server: "),
        ("call npx -y @own/new", " call npx -y @own/new TOOL key=value\n"),
        ("call npx -y @own/new name=Ada", " call npx -y @own/new TOOL name=Ada\n"),
        ("call notes/index.ts", "name the tool, after the plugin: "),
        ("call notes/index.ts greet Ada", "`Ada` is neither key=value nor a JSON object"),
        ("call notes/index.ts greet {", "the arguments are not JSON: "),
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let said = stderr(&existing.folder.run(&words, &existing.environment()).await);
        assert!(said.contains(expected), "{words:?}: {said}");
    }
    assert_eq!(existing.counts(), (1, 1), "nothing was built for a mistake");
    let words = [&["call"], &line[..], &["gret", "name=Ada"]].concat();
    let said = stderr(&existing.folder.run(&words, &existing.environment()).await);
    assert!(said.ends_with("; did you mean `greet`?\n"), "{said}");
    let words = [&["call"], &line[..], &["greet", "Ada"]].concat();
    let odd = stderr(&existing.folder.run(&words, &existing.environment()).await);
    assert!(
        odd.contains("no tool `Ada`; it has: greet; what the server got as its arguments is: --stdio greet"),
        "{odd}"
    );
}

/// What a server lacks is said before it runs, as a line to paste.
#[tokio::test(flavor = "multi_thread")]
async fn the_line_that_grants_is_complete() {
    let existing = Existing::new("hello", "");
    let folder = &existing.folder;
    folder.write("wants.toml", "http = ['https://a.example/']\nenv = ['KEY']\n");
    let embedded = folder.run(&["build", "--embed", "bin/made.wasm", "--wants", "wants.toml"], &[]).await;
    assert!(embedded.status.success(), "{}", stderr(&embedded));
    folder.write("docs/a.txt", "");
    let docs = folder.join("docs").display().to_string();
    let words = ["call", "--allow", "env=OTHER", "npx", "-y", "@own/notes", "docs", "greet", "name=Ada"];
    let called = folder.run(&words, &existing.environment()).await;
    let said = stderr(&called);
    assert!(called.status.success() && !said.contains("not granted"), "it lacked nothing: {said}");
    let opens = format!(" call --allow env=OTHER {docs} npx -y @own/notes {docs} greet name=Ada\n");
    assert!(said.contains("docs is an argument of the server, which opens nothing") && said.contains(&opens), "{said}");
    let words = [&words[..8], &["x=1"]].concat();
    let failed = stderr(&folder.run(&words, &existing.environment()).await);
    let grants = " call --allow http=https://a.example/ --allow env=KEY --allow env=OTHER npx -y @own/notes docs greet x=1` grants it";
    assert!(failed.contains("note: the variable OTHER is granted, but") && failed.contains(grants), "{failed}");
    let open =
        ["call", "--allow", "http=https://a.example/", "--allow", "env=KEY", &docs, "npx", "-y", "@own/notes", &docs];
    let said = folder.run(&[&open[..], &["greet", "name=Ada"]].concat(), &existing.environment()).await;
    assert_eq!(stdout(&said), "Hello, Ada!\n", "{}", stderr(&said));
    assert!(!stderr(&said).contains("opens nothing") && !stderr(&said).contains("not granted"), "{}", stderr(&said));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_starts_the_same_line() {
    let existing = Existing::new("hello", "");
    let folder = &existing.folder;
    let entry = folder.join("notes/index.ts").display().to_string();
    for (line, expected) in [
        (
            "--allow env=KEY npx -y @own/notes@1 --stdio",
            json!(["run", "--allow", "env=KEY", "npx", "-y", "@own/notes@1", "--stdio"]),
        ),
        ("npm:@own/notes@1 -- --stdio", json!(["run", "npm:@own/notes@1", "--", "--stdio"])),
        ("node notes/index.ts --stdio", json!(["run", "node", entry, "--stdio"])),
    ] {
        let words =
            ["install", "other", "--config-path", "client.json", "--name", "notes"].into_iter().chain(line.split(' '));
        let installed = folder.run(&words.collect::<Vec<_>>(), &existing.environment()).await;
        assert!(installed.status.success(), "{line}: {}", stderr(&installed));
        let text = std::fs::read_to_string(folder.join("client.json")).unwrap();
        let entry = serde_json::from_str::<Value>(&text).unwrap()["mcpServers"]["notes"]["args"].clone();
        assert_eq!(entry, expected);
        let words: Vec<&str> = entry.as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
        let mut pipe = existing.start(&words);
        pipe.legacy("2025-11-25", json!({})).await;
        assert_eq!(names(&pipe.request("tools/list", json!({})).await.unwrap()), ["greet"]);
        assert!(pipe.close().await.status.success());
    }
    let installs = existing.counts();
    for _ in 0..2 {
        let words = [
            "install",
            "other",
            "--config-path",
            "client.json",
            "--name",
            "notes",
            "node",
            "notes/index.ts",
            "--stdio",
        ];
        let again = stdout(&folder.run(&words, &existing.environment()).await);
        assert!(again.contains("already up to date"), "{again}");
    }
    assert_eq!(existing.counts(), installs, "it was built when it was installed");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_file_of_a_line_is_developed() {
    let existing = Existing::new("hello", "");
    let mut pipe = existing.start(&["dev", "--stdio", "node", "notes/index.ts"]);
    pipe.legacy("2025-11-25", json!({})).await;
    assert_eq!(names(&pipe.request("tools/list", json!({})).await.unwrap()), ["greet"]);
    assert!(pipe.close().await.status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_cannot_be_run_says_what_to_type() {
    let existing = Existing::new("hello", "");
    for (words, expected) in [
        ("run docker run -i mcp/git", "wharf run npx -y NAME"),
        ("npx -y @own/notes --stdio", " run npx -y @own/notes --stdio\n"),
        ("notes/index.ts -v", " run notes/index.ts -v\n"),
        ("run npx --node-options=x notes", "wharf does not know this option"),
        ("run npx github:own/notes", "name the server's file"),
        ("run npx -y notes --allow env=KEY", "write wharf's options before `npx`"),
        ("run python -m notes", "wharf run uvx NAME"),
        ("run a.wasm -- --verbose", "the one server that is named before"),
        ("run mcp-server-git", "`uvx mcp-server-git` if it is on PyPI"),
        ("run oci://r.example/x:1", "`wharf add oci://r.example/x:1`"),
        ("call https://x.example/x.wasm greet", "`wharf add https://x.example/x.wasm`"),
        ("run https://x.example/mcp", "https://x.example/mcp is the address of a server that runs elsewhere"),
        ("install codex git+https://x.example/own/notes", "type git clone https://x.example/own/notes, and then name"),
        ("run files docs", "the built-in plugin is --builtin files"),
        ("run notes", "opened to plugins, and not run; the server in it is notes/index.ts"),
        ("run mcp-server-time", "the built-in plugin is --builtin time"),
        (
            "call --builtin time get_current_time notes",
            "`notes` is a folder, which stands after the plugin and before the tool",
        ),
        ("call --builtin files --root notes list_directory path=.", "add --allow roots=read or"),
        ("run --builtin files --root notes", "add --allow roots=read or"),
        ("run --builtin fetch --allow http=example.com", "write http=https://example.com"),
        ("install claude", "did you mean claude-desktop or claude-code?"),
        ("add npx", "`wharf add npm:NAME`"),
        ("dev npx -y notes", "a package has none"),
        ("new --from npm:notes@../x x", "not a version"),
    ] {
        let said = existing.folder.run(&words.split(' ').collect::<Vec<_>>(), &existing.environment()).await;
        assert_eq!(said.status.code(), Some(2), "{words}: {}", stderr(&said));
        assert!(stderr(&said).contains(expected), "{words}: {}", stderr(&said));
    }
    existing.folder.config("[plugins.notes]\nsource = 'npm:notes'\nsigner = { minisign = 'RW' }\n");
    let said = stderr(&existing.folder.run(&["check"], &[]).await);
    assert!(said.contains("packages of npm and PyPI are not signed"), "{said}");
    assert_eq!(existing.counts(), (0, 0));
}
