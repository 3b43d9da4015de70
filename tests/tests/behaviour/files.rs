//! The files plugin: the names, arguments and answers of the reference filesystem server, within an opened root.

use std::os::unix::fs::PermissionsExt;

use e2e::{Folder, Pipe, is_error, json, names, text};
use serde_json::Value;

struct Editor {
    folder: Folder,
    pipe: Pipe,
}

impl Editor {
    /// Starts a client that has opened `project`.
    async fn open(access: &str) -> Self {
        let folder = Folder::new();
        folder.plugin("files");
        folder.config(&format!(
            "[roots]\nwithin = [\"../..\"]\n[plugins.files]\npath = \"../../plugins/files.wasm\"\nprefix = \"\"\n\
             [plugins.files.grants]\nroots = \"{access}\"\n"
        ));
        folder.write("project/notes.txt", "one\ntwo\nthree\n");
        folder.write("project/src/main.rs", "fn main() {\n    println!(\"hello\");\n}\n");
        folder.write("project/logo.png", [137, 80, 78, 71]);
        folder.write("project/data.bin", [0, 159, 146, 150]);
        folder.write("outside.txt", "not opened");
        let mut pipe = Pipe::start(&folder, &["run"]);
        let root = format!("file://{}", folder.join("project").display());
        pipe.answer_with(move |method, _| (method == "roots/list").then(|| json!({ "roots": [{ "uri": root }] })));
        pipe.legacy("2025-11-25", json!({ "roots": {} })).await;
        Self { folder, pipe }
    }

    fn path(&self, name: &str) -> String {
        self.folder.join("project").join(name).display().to_string()
    }

    async fn says(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.pipe.call(tool, arguments).await;
        assert!(!is_error(&result), "{tool}: {result}");
        text(&result).to_owned()
    }

    async fn refuses(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.pipe.call(tool, arguments).await;
        assert!(is_error(&result), "{tool}: {result}");
        text(&result).to_owned()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn has_the_tools_of_the_reference_server() {
    let mut editor = Editor::open("read").await;
    let listed = editor.pipe.request("tools/list", json!({})).await.unwrap();
    let with_schema = listed["tools"].as_array().unwrap().iter().filter(|tool| tool.get("outputSchema").is_some());
    assert_eq!(with_schema.count(), 0, "a text is sent once");
    let tools = names(&listed, "tools");
    for name in [
        "read_text_file",
        "read_media_file",
        "read_file",
        "read_multiple_files",
        "write_file",
        "edit_file",
        "create_directory",
        "list_directory",
        "list_directory_with_sizes",
        "directory_tree",
        "move_file",
        "search_files",
        "get_file_info",
        "list_allowed_directories",
        "search_content",
    ] {
        assert!(tools.contains(&name.to_owned()), "{name}");
    }
    editor.pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_whole_and_in_part() {
    let mut editor = Editor::open("read").await;
    let notes = editor.path("notes.txt");
    for (arguments, expected) in [
        (json!({ "path": notes }), "one\ntwo\nthree\n"),
        (json!({ "path": "notes.txt" }), "one\ntwo\nthree\n"),
        (json!({ "path": notes, "head": 1 }), "one"),
        (json!({ "path": notes, "head": 1.0 }), "one"),
        (json!({ "path": notes, "tail": 2 }), "two\nthree\n"),
        (json!({ "path": notes, "tail": 9 }), "one\ntwo\nthree\n"),
        (json!({ "path": notes, "head": null, "tail": 1 }), "three\n"),
        (json!({ "path": notes, "startLine": 2, "endLine": 2 }), "two"),
        (json!({ "path": notes, "startLine": 3 }), "three"),
        (json!({ "path": notes, "startLine": 3.0 }), "three"),
        (json!({ "path": notes, "offset": 2, "limit": 1 }), "two"),
        (json!({ "path": notes, "offset": 2.0, "limit": 9e0 }), "two\nthree"),
    ] {
        assert_eq!(editor.says("read_text_file", arguments.clone()).await, expected, "{arguments}");
    }
    assert!(
        editor
            .refuses("read_text_file", json!({ "path": notes, "head": 1, "tail": 1 }))
            .await
            .contains("Cannot specify both")
    );
    let binary = editor.path("data.bin");
    let refused = editor.refuses("read_text_file", json!({ "path": binary })).await;
    assert!(refused.contains("binary data") && refused.contains("read_media_file"), "{refused}");
    let outside = editor.folder.join("outside.txt").display().to_string();
    let refused = editor.refuses("read_text_file", json!({ "path": outside })).await;
    assert!(refused.contains("outside allowed directories") && !refused.contains("not opened"), "{refused}");

    let several = editor.says("read_multiple_files", json!({ "paths": [notes, outside] })).await;
    assert!(several.contains("two") && several.contains("Error - Access denied"), "{several}");
    let picture = editor.path("logo.png");
    let picture = editor.pipe.call("read_media_file", json!({ "path": picture })).await;
    assert_eq!(picture["content"][0], json!({ "type": "image", "mimeType": "image/png", "data": "iVBORw==" }));
    let said = picture["content"][1]["text"].as_str().unwrap();
    assert!(said.ends_with("logo.png: image/png, 4 bytes]"), "for models whose clients drop pictures: {said}");
    let bytes = editor.path("data.bin");
    let bytes = editor.pipe.call("read_media_file", json!({ "path": bytes })).await;
    assert_eq!(bytes["content"][0]["resource"]["blob"], "AJ+Slg==");
    editor.pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_edits_and_moves() {
    let mut editor = Editor::open("read-write").await;
    let (notes, fresh) = (editor.path("notes.txt"), editor.path("deep/er/new.txt"));
    let edit = json!({ "path": notes, "edits": [{ "oldText": "two", "newText": "2" }], "dryRun": true });
    let shown = editor.says("edit_file", edit.clone()).await;
    assert!(shown.contains("-two\n+2\n"), "{shown}");
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "one\ntwo\nthree\n");
    let mut real = edit;
    real["dryRun"] = false.into();
    editor.says("edit_file", real.clone()).await;
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "one\n2\nthree\n");
    assert!(editor.refuses("edit_file", real).await.contains("Could not find"));

    assert!(editor.refuses("write_file", json!({ "path": fresh, "content": "x" })).await.contains("no such"));
    let folder = editor.path("deep/er");
    editor.says("create_directory", json!({ "path": folder })).await;
    editor.says("create_directory", json!({ "path": folder })).await;
    editor.says("write_file", json!({ "path": fresh, "content": "x" })).await;
    assert_eq!(std::fs::read_to_string(&fresh).unwrap(), "x");
    let moved = editor.path("moved.txt");
    assert!(
        editor
            .refuses("move_file", json!({ "source": fresh, "destination": notes }))
            .await
            .contains("Destination already exists")
    );
    editor.says("move_file", json!({ "source": fresh, "destination": moved })).await;
    assert_eq!(std::fs::read_to_string(&moved).unwrap(), "x");
    let left: Vec<_> = std::fs::read_dir(editor.folder.join("project/deep/er")).unwrap().collect();
    assert!(left.is_empty(), "nothing half written stays: {left:?}");
    editor.pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_root_is_read_only() {
    let mut editor = Editor::open("read").await;
    let notes = editor.path("notes.txt");
    for (tool, arguments) in [
        ("write_file", json!({ "path": notes, "content": "x" })),
        ("edit_file", json!({ "path": notes, "edits": [{ "oldText": "one", "newText": "1" }] })),
        ("create_directory", json!({ "path": editor.path("made") })),
        ("move_file", json!({ "source": notes, "destination": editor.path("moved") })),
    ] {
        let refused = editor.refuses(tool, arguments).await;
        assert!(refused.contains("Access denied"), "{tool}: {refused}");
    }
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "one\ntwo\nthree\n");
    assert!(editor.says("list_allowed_directories", json!({})).await.contains("(read only)"));
    editor.pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_and_searches() {
    let mut editor = Editor::open("read").await;
    let root = editor.folder.join("project").display().to_string();
    std::os::unix::fs::symlink("/etc", editor.path("out")).unwrap();
    let listed = editor.says("list_directory", json!({ "path": root })).await;
    assert!(listed.contains("[DIR] src") && listed.contains("[FILE] notes.txt"), "{listed}");
    let sizes = editor.says("list_directory_with_sizes", json!({ "path": root, "sortBy": "size" })).await;
    assert!(sizes.contains("[FILE] notes.txt") && sizes.contains("14 B") && sizes.contains("Total: "), "{sizes}");
    let tree = editor.pipe.call("directory_tree", json!({ "path": root, "excludePatterns": ["*.bin"] })).await;
    let tree = text(&tree).to_owned();
    let parsed: Value = serde_json::from_str(&tree).unwrap();
    assert!(parsed.is_array(), "{tree}");
    assert!(tree.contains("main.rs") && !tree.contains("data.bin") && !tree.contains("passwd"), "{tree}");
    let found = editor.says("search_files", json!({ "path": root, "pattern": "**/*.rs" })).await;
    assert_eq!(found, editor.path("src/main.rs"));
    let found = editor.says("search_content", json!({ "path": root, "pattern": "print\\w+" })).await;
    assert_eq!(found, format!("{}:2:     println!(\"hello\");", editor.path("src/main.rs")));
    let info = editor.says("get_file_info", json!({ "path": "notes.txt" })).await;
    assert!(info.starts_with("size: 14\n") && info.ends_with("isDirectory: false\nisFile: true"), "{info}");
    editor.pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_resources_by_template() {
    let mut editor = Editor::open("read").await;
    let resources = editor.pipe.request("resources/list", json!({})).await.unwrap();
    assert_eq!(resources["resources"], json!([]));
    let uri = format!("file://{}", editor.path("notes.txt"));
    let read = editor.pipe.request("resources/read", json!({ "uri": uri })).await.unwrap();
    assert_eq!(read["contents"][0]["text"], "one\ntwo\nthree\n");
    let missing = format!("file://{}", editor.path("missing.txt"));
    assert_eq!(editor.pipe.request("resources/read", json!({ "uri": missing })).await.unwrap_err()["code"], -32002);
    let outside = format!("file://{}", editor.folder.join("outside.txt").display());
    assert_eq!(editor.pipe.request("resources/read", json!({ "uri": outside })).await.unwrap_err()["code"], -32603);
    editor.pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_takes_the_place_of_a_file_keeps_its_mode() {
    let mut editor = Editor::open("read-write").await;
    let mode = |path: &str| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    for wanted in [0o600, 0o755, 0o640, 0o4755] {
        let path = editor.path(&format!("mode-{wanted:o}"));
        std::fs::write(&path, "one\n").unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(wanted)).unwrap();
        editor.says("write_file", json!({ "path": path, "content": "two\n" })).await;
        assert_eq!(mode(&path), wanted & 0o777, "written");
        let edits = json!([{ "oldText": "two", "newText": "three" }]);
        editor.says("edit_file", json!({ "path": path, "edits": edits })).await;
        assert_eq!((mode(&path), &*std::fs::read_to_string(&path).unwrap()), (wanted & 0o777, "three\n"));
    }
    editor.pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_writes_at_the_same_time_writes_whole_files_and_nobody_elses() {
    let mut editor = Editor::open("read-write").await;
    let own = editor.path(".notes.txt.partial");
    std::fs::write(&own, "mine").unwrap();
    let (path, long) = (editor.path("notes.txt"), editor.path(&"n".repeat(255)));
    editor.says("write_file", json!({ "path": long, "content": "x" })).await;
    let mut asked = Vec::new();
    for writer in 0..12 {
        let content = writer.to_string().repeat(100_000);
        let params = json!({ "name": "write_file", "arguments": { "path": path, "content": content } });
        asked.push(editor.pipe.begin("tools/call", params).await);
    }
    for id in asked {
        let answer = editor.pipe.answer(&id).await.unwrap();
        assert!(!is_error(&answer), "{answer}");
    }
    let written = std::fs::read_to_string(&path).unwrap();
    assert!((0..12).any(|writer| written == writer.to_string().repeat(100_000)), "two writers in one file");
    assert_eq!(std::fs::read_to_string(&own).unwrap(), "mine");
    let left: Vec<String> = std::fs::read_dir(editor.folder.join("project"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with(".wharf-"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    editor.pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_large_files_only_what_is_asked_for_is_read() {
    let mut editor = Editor::open("read").await;
    let path = editor.path("large.log");
    let lines: String = (0..2_000_000).map(|line| format!("{line:08} and what was logged there\n")).collect();
    std::fs::write(&path, &lines).unwrap();
    let refused = editor.refuses("read_text_file", json!({ "path": path })).await;
    assert!(refused.contains("read it in parts, with offset and limit"), "{refused}");
    let line = lines.find('\n').unwrap() + 1;
    let of = |from: usize, count: usize| &lines[from * line..(from + count) * line];
    for (arguments, expected) in [
        (json!({ "path": path, "head": 1 }), of(0, 1).trim_end()),
        (json!({ "path": path, "tail": 1 }), of(1_999_999, 1)),
        (json!({ "path": path, "tail": 5000 }), of(1_995_000, 5000)),
        (json!({ "path": path, "startLine": 1_000_001, "endLine": 1_000_001 }), of(1_000_000, 1).trim_end()),
    ] {
        assert_eq!(editor.says("read_text_file", arguments).await, expected);
    }
    editor.pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn links_lead_wherever_is_open_and_nowhere_else() {
    let mut editor = Editor::open("read-write").await;
    let link = |editor: &Editor, name: &str, target: &str| {
        std::os::unix::fs::symlink(target, editor.path(name)).unwrap();
    };
    link(&editor, "absolute", &editor.path("src"));
    link(&editor, "twice", &editor.path("absolute/main.rs"));
    link(&editor, "outside", &editor.folder.join("outside.txt").display().to_string());
    link(&editor, "round", "round");
    let read = editor.says("read_text_file", json!({ "path": editor.path("absolute/main.rs"), "head": 1 })).await;
    assert_eq!(read, "fn main() {");
    assert!(editor.says("read_text_file", json!({ "path": editor.path("twice") })).await.starts_with("fn main"));
    editor.says("write_file", json!({ "path": editor.path("absolute/new.rs"), "content": "x" })).await;
    assert_eq!(std::fs::read_to_string(editor.path("src/new.rs")).unwrap(), "x");
    for name in ["outside", "round"] {
        let refused = editor.refuses("read_text_file", json!({ "path": editor.path(name) })).await;
        assert!(!refused.contains("not opened"), "{refused}");
        editor.refuses("write_file", json!({ "path": editor.path(name), "content": "x" })).await;
    }
    assert_eq!(std::fs::read_to_string(editor.folder.join("outside.txt")).unwrap(), "not opened");
    // The link itself is moved, not its target.
    editor.says("move_file", json!({ "source": editor.path("absolute"), "destination": editor.path("moved") })).await;
    assert!(std::fs::symlink_metadata(editor.path("moved")).unwrap().is_symlink());
    assert!(std::path::Path::new(&editor.path("src/new.rs")).exists());
    link(&editor, "absolute", &editor.path("src"));
    let root = editor.folder.join("project").display().to_string();
    let found = editor.says("search_files", json!({ "path": root, "pattern": "*" })).await;
    assert!(found.contains("/twice") && !found.contains("/outside") && !found.contains("/round"), "{found}");
    editor.pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_accented_name_is_found_however_it_is_written() {
    let mut editor = Editor::open("read-write").await;
    std::fs::write(editor.path("cafe\u{301}.txt"), "macOS").unwrap();
    let composed = editor.path("caf\u{e9}.txt");
    assert_eq!(editor.says("read_text_file", json!({ "path": composed })).await, "macOS");
    editor.says("write_file", json!({ "path": composed, "content": "same file" })).await;
    assert_eq!(std::fs::read_to_string(editor.path("cafe\u{301}.txt")).unwrap(), "same file");
    assert!(!std::path::Path::new(&composed).exists(), "no twin");
    std::fs::write(editor.path("o\u{302}\u{323}"), "").unwrap();
    std::fs::write(editor.path("o\u{323}\u{302}"), "").unwrap();
    let refused = editor.refuses("read_text_file", json!({ "path": editor.path("\u{1ed9}") })).await;
    assert!(refused.contains("Ambiguous"), "{refused}");
    editor.pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_that_mean_something_elsewhere_are_refused() {
    let mut editor = Editor::open("read-write").await;
    for path in ["~", "~/proj/new", "C:\\x", "c:/x"] {
        let refused = editor.refuses("create_directory", json!({ "path": path })).await;
        assert!(refused.contains("home directory") || refused.contains("Windows"), "{path}: {refused}");
    }
    let (notes, lost) = (editor.path("notes.txt"), editor.path("missing/notes.txt"));
    let refused = editor.refuses("move_file", json!({ "source": notes, "destination": lost })).await;
    assert!(refused.contains("missing/notes.txt: its folder is not there"), "{refused}");
    editor.pipe.close().await;
}
