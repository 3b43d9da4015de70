//! The built-in plugins files and memory on unusual files: names and contents that are not UTF-8, links, pipes and sockets, ignored
//! files, large pictures.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{
        ffi::OsStrExt,
        fs::{FileTypeExt, MetadataExt, symlink},
        net::UnixListener,
    },
    path::Path,
};

use e2e::{Folder, Pipe, is_error, json};
use serde_json::Value;

/// A client of a built-in plugin for the folder `docs`.
struct Client {
    folder: Folder,
    pipe: Pipe,
}

impl Client {
    async fn of(builtin: &str, open: &str) -> Self {
        let folder = Folder::new();
        fs::create_dir(folder.join("docs")).unwrap();
        symlink("docs", folder.join("link")).unwrap();
        let mut pipe = Pipe::start(&folder, &["run", "--builtin", builtin, open]);
        pipe.legacy("2025-11-25", json!({})).await;
        Self { folder, pipe }
    }

    async fn files() -> Self {
        Self::of("files", "docs").await
    }

    fn path(&self, name: &str) -> String {
        self.folder.join("docs").join(name).display().to_string()
    }

    fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> String {
        let path = self.folder.join("docs").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, contents).unwrap();
        path.display().to_string()
    }

    /// Calls a tool; returns the texts of the blocks of its answer, each as a line, and whether it is an error.
    async fn call(&mut self, tool: &str, arguments: Value) -> (String, bool) {
        let result = self.pipe.call(tool, arguments).await;
        let blocks = result["content"].as_array().unwrap_or_else(|| panic!("no content in {result}"));
        let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
        (texts.join("\n"), is_error(&result))
    }

    async fn says(&mut self, tool: &str, arguments: Value) -> String {
        let (said, is_error) = self.call(tool, arguments).await;
        assert!(!is_error, "{tool}: {said}");
        said
    }

    async fn refuses(&mut self, tool: &str, arguments: Value) -> String {
        let (said, is_error) = self.call(tool, arguments).await;
        assert!(is_error, "{tool}: {said}");
        said
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_are_not_utf_8_are_shown_and_cannot_be_opened() {
    let mut client = Client::files().await;
    let docs = client.folder.join("docs");
    fs::write(docs.join(OsStr::from_bytes(b"caf\xe9.txt")), "x").unwrap();
    fs::create_dir(docs.join(OsStr::from_bytes(b"f\xfcr"))).unwrap();
    let genuine = client.write("genuine-\u{fffd}.txt", "this is its name");
    let root = client.path("");
    for (tool, more) in [
        ("list_directory", json!({})),
        ("list_directory_with_sizes", json!({})),
        ("directory_tree", json!({})),
        ("search_files", json!({ "pattern": "**" })),
    ] {
        let mut arguments = json!({ "path": root });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let said = client.says(tool, arguments).await;
        for shown in ["caf\u{fffd}.txt", "f\u{fffd}r", "genuine-\u{fffd}.txt", "Names that are not UTF-8: 2"] {
            assert!(said.contains(shown), "{tool}, {shown}: {said}");
        }
        // The folder below cannot be read, and the others are there all the same.
        let is_deep = matches!(tool, "directory_tree" | "search_files");
        assert_eq!(said.contains("Could not be read: "), is_deep, "{tool}: {said}");
    }
    let odd = client.path("caf\u{fffd}.txt");
    for (tool, arguments) in [
        ("read_text_file", json!({ "path": odd })),
        ("read_media_file", json!({ "path": odd })),
        ("get_file_info", json!({ "path": odd })),
        ("write_file", json!({ "path": odd, "content": "twin" })),
        ("move_file", json!({ "source": odd, "destination": client.path("new.txt") })),
    ] {
        let refused = client.refuses(tool, arguments).await;
        assert!(refused.contains("bytes that are not UTF-8"), "{tool}: {refused}");
    }
    assert!(!Path::new(&odd).exists());
    assert_eq!(client.says("read_text_file", json!({ "path": genuine })).await, "this is its name");
    client.pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pipes_and_sockets_are_neither_opened_nor_replaced() {
    let mut client = Client::files().await;
    let (pipe, socket) = (client.path("pipe"), client.path("socket"));
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let _listener = UnixListener::bind(&socket).unwrap();
    client.write("a.txt", "found\n");
    for path in [&pipe, &socket] {
        for (tool, arguments) in [
            ("write_file", json!({ "path": path, "content": "x" })),
            ("read_text_file", json!({ "path": path })),
            ("read_media_file", json!({ "path": path })),
            ("edit_file", json!({ "path": path, "edits": [{ "oldText": "a", "newText": "b" }] })),
        ] {
            let refused = client.refuses(tool, arguments).await;
            assert!(refused.contains("a named pipe, a socket or a device"), "{tool}: {refused}");
        }
    }
    assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
    assert!(fs::symlink_metadata(&socket).unwrap().file_type().is_socket());
    let root = client.path("");
    let found = client.says("search_content", json!({ "path": root, "pattern": "found" })).await;
    assert!(found.contains("a.txt:1: found"), "{found}");
    client.pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_several_names_is_written_for_all_of_them() {
    let mut client = Client::files().await;
    let real = client.write("real.txt", "a long first text\n");
    let (link, hard) = (client.path("link.txt"), client.path("hard.txt"));
    symlink("real.txt", &link).unwrap();
    client.says("write_file", json!({ "path": link, "content": "one\n" })).await;
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&real).unwrap(), "one\n");
    fs::hard_link(&real, &hard).unwrap();
    let before = fs::metadata(&real).unwrap().ino();
    client.says("write_file", json!({ "path": hard, "content": "two, which is longer\n" })).await;
    assert_eq!(fs::read_to_string(&real).unwrap(), "two, which is longer\n");
    let edits = json!([{ "oldText": "two, which is longer", "newText": "3" }]);
    client.says("edit_file", json!({ "path": real, "edits": edits })).await;
    assert_eq!(fs::read_to_string(&hard).unwrap(), "3\n");
    assert_eq!(fs::metadata(&hard).unwrap().ino(), before);
    client.pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_behind_a_link_is_open_by_both_names() {
    let mut client = Client::of("files", "link").await;
    client.write("in/a.txt", "A");
    symlink(client.path("in/a.txt"), client.path("absolute.txt")).unwrap();
    let link = client.folder.join("link");
    for base in [link.clone(), client.folder.join("docs")] {
        for name in ["in/a.txt", "absolute.txt"] {
            assert_eq!(client.says("read_text_file", json!({ "path": base.join(name) })).await, "A", "{base:?} {name}");
        }
        let new = base.join("in/new.txt");
        client.says("write_file", json!({ "path": new, "content": "x" })).await;
        assert_eq!(fs::read_to_string(&new).unwrap(), "x");
        let listed = client.says("list_directory", json!({ "path": base })).await;
        assert!(listed.contains("[DIR] in"), "{listed}");
    }
    let allowed = client.says("list_allowed_directories", json!({})).await;
    assert_eq!(allowed, format!("Allowed directories:\n{}", link.display()));
    client.refuses("read_text_file", json!({ "path": client.folder.join("home/x") })).await;
    client.pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tilde_is_the_home_directory() {
    let mut client = Client::of("files", "home").await;
    client.folder.write("home/notes/a.txt", "hello\n");
    for path in ["~/notes/a.txt", "~/notes/../notes/a.txt"] {
        assert_eq!(client.says("read_text_file", json!({ "path": path })).await, "hello\n");
    }
    // wharf itself keeps state there.
    assert_eq!(client.says("list_directory", json!({ "path": "~" })).await, "[DIR] .local\n[DIR] notes");
    // This is a name like any other.
    let refused = client.refuses("read_text_file", json!({ "path": "~other/x" })).await;
    assert!(refused.contains("/home/~other/x: there is no such file"), "{refused}");
    client.pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_to_another_file_system_is_refused_in_words() {
    let other = Path::new("/dev/shm");
    let mut client = Client::files().await;
    let device = |path: &Path| fs::metadata(path).unwrap().dev();
    assert_ne!(device(other), device(client.folder.path()), "this test needs two file systems");
    let there = tempfile::tempdir_in(other).unwrap();
    let source = client.write("a.txt", "kept");
    let open = [client.path(""), there.path().display().to_string()];
    let arguments = ["run", "--builtin", "files", &open[0], &open[1]];
    let before = std::mem::replace(&mut client.pipe, Pipe::start(&client.folder, &arguments));
    before.close().await;
    client.pipe.legacy("2025-11-25", json!({})).await;
    let destination = there.path().join("a.txt");
    let refused = client.refuses("move_file", json!({ "source": source, "destination": destination })).await;
    assert!(refused.contains("is on another file system") && refused.contains("Nothing was changed"), "{refused}");
    assert!(fs::read_to_string(&source).unwrap() == "kept" && !destination.exists());
    client.pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_utf_8_inside_is_said() {
    let mut client = Client::files().await;
    let latin = client.write("latin.txt", b"caf\xe9\nsecond\n");
    let wide: Vec<u8> = "\u{feff}first\nzweite ü\nthird\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let wide = client.write("wide.txt", wide);
    let binary = client.write("binary", b"\x7fELF\0\xff\0");
    client.write("large.txt", "x".repeat(9 << 20));
    let said = client.says("read_text_file", json!({ "path": latin })).await;
    assert!(
        said.starts_with("caf\u{fffd}\nsecond\n") && said.contains("not UTF-8") && said.contains("Latin-1"),
        "{said}"
    );
    assert_eq!(client.says("read_text_file", json!({ "path": latin, "tail": 1 })).await, "second\n");
    let said = client.says("read_text_file", json!({ "path": wide, "offset": 2, "limit": 1 })).await;
    assert_eq!(said, "zweite ü\n[Decoded from UTF-16LE]\n[More lines follow, from offset 3.]");
    assert!(client.refuses("read_text_file", json!({ "path": binary })).await.contains("binary data"));
    for (path, what) in [(&latin, "not UTF-8"), (&wide, "UTF-16LE"), (&binary, "binary data")] {
        let edits = json!([{ "oldText": "second", "newText": "x" }]);
        let refused = client.refuses("edit_file", json!({ "path": path, "edits": edits })).await;
        assert!(refused.contains(what) && refused.contains("Nothing was changed"), "{refused}");
    }
    let several = client.says("read_multiple_files", json!({ "paths": [latin, binary] })).await;
    assert!(several.contains("[This is not UTF-8") && several.contains("Error - "), "{several}");
    let found = client.says("search_content", json!({ "path": client.path(""), "pattern": "second|zweite" })).await;
    for expected in ["latin.txt:2: second", "wide.txt:2: zweite ü", "because they are not text: 1", "more than 8 MiB: "]
    {
        assert!(found.contains(expected), "{expected}: {found}");
    }
    client.pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_ignored_is_left_out_and_said_to_be() {
    let mut client = Client::files().await;
    for name in [
        "src/main.rs",
        "src/gen/out.rs",
        "target/x.rs",
        "node_modules/a/i.rs",
        ".git/config.rs",
        "app/.git/c.rs",
        "keep.rs",
    ] {
        client.write(name, "found\n");
    }
    client.write(".gitignore", "target/\n*.rs\n!src/*.rs\n!keep.rs\n");
    client.write("src/.gitignore", "gen\n");
    for (folder, expected, note) in [
        ("", vec!["keep.rs", "src/main.rs"], "2 named .git, 1 named node_modules, 2 that .gitignore names"),
        // The rules of the folders above count, and so does asking for a folder by its own path.
        ("src", vec!["src/main.rs"], "1 that .gitignore names"),
        ("node_modules/a", vec![], "1 that .gitignore names"),
    ] {
        for (tool, more) in
            [("search_files", json!({ "pattern": "**/*.rs" })), ("search_content", json!({ "pattern": "found" }))]
        {
            let mut arguments = json!({ "path": client.path(folder) });
            arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let said = client.says(tool, arguments.clone()).await;
            let lines: Vec<&str> = said.lines().collect();
            let (notes, found): (Vec<&str>, Vec<&str>) = lines.iter().partition(|line| line.starts_with('['));
            let found: Vec<&str> = found.iter().map(|line| line.trim_end_matches(":1: found")).collect();
            let paths: Vec<String> = expected.iter().map(|name| client.path(name)).collect();
            match paths.is_empty() {
                true => assert_eq!(found, ["No matches found"], "{tool}: {said}"),
                false => assert_eq!(found, paths, "{tool}: {said}"),
            }
            assert_eq!(notes, [format!("[Left out: {note}. With includeIgnored they are here too.]")], "{tool}");
            arguments["includeIgnored"] = true.into();
            let all = client.says(tool, arguments).await;
            assert!(!all.contains("Left out") && all.lines().count() > expected.len(), "{tool}: {all}");
        }
    }
    let root = client.path("");
    let tree = client.says("directory_tree", json!({ "path": root })).await;
    assert!(tree.contains("main.rs") && !tree.contains("i.rs") && tree.contains("[Left out: "), "{tree}");
    let tree = client.says("directory_tree", json!({ "path": root, "includeIgnored": true })).await;
    assert!(tree.contains("config.rs") && tree.contains("out.rs") && !tree.contains("[Left out: "), "{tree}");
    client.pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_of_a_camera_is_read() {
    let mut client = Client::files().await;
    let data: Vec<u8> = [0xff, 0xd8, 0xff].into_iter().chain((0..5_u32 << 20).map(|at| (at % 251) as u8)).collect();
    let photo = client.write("photo.jpg", &data);
    let result = client.pipe.call("read_media_file", json!({ "path": photo })).await;
    assert!(!is_error(&result));
    assert_eq!(result["content"][0]["data"].as_str().unwrap().len(), data.len().div_ceil(3) * 4);
    client.pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn misspelt_arguments_are_named_with_what_was_meant_and_others_are_ignored() {
    let mut client = Client::files().await;
    let path = client.write("a.txt", "one\n");
    for (tool, arguments, meant) in [
        ("read_text_file", json!({ "path": path, "limits": 1 }), "`limit`"),
        ("search_content", json!({ "path": path, "pattern": "o", "max_result": 1 }), "`maxResults`"),
    ] {
        let refused = client.refuses(tool, arguments).await;
        assert!(refused.contains("there is no argument") && refused.contains(meant), "{tool}: {refused}");
    }
    // What clients add to the arguments of the model, also to tools without arguments.
    let added =
        json!({ "path": path, "toolCallId": "call_1", "tool": { "name": "x" }, "sessionId": 1, "recursive": true });
    assert_eq!(client.says("read_text_file", added).await, "one\n");
    client.says("list_allowed_directories", json!({ "random_string": "" })).await;
    client.pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_memory_behind_a_link_is_kept_there_and_can_be_appended_to() {
    let mut client = Client::of("memory", "docs").await;
    let line = |name: &str| format!(r#"{{"type":"entity","name":"{name}","entityType":"t","observations":[]}}"#);
    let real = client.write("real.jsonl", line("Ann"));
    symlink(&real, client.path("memory.jsonl")).unwrap();
    let entities = json!({ "entities": [{ "name": "Bob", "entityType": "t", "observations": [] }] });
    client.says("create_entities", entities).await;
    assert!(fs::symlink_metadata(client.path("memory.jsonl")).unwrap().is_symlink());
    let text = fs::read_to_string(&real).unwrap();
    assert!(text.ends_with("}\n"), "{text:?}");
    fs::write(&real, text + &line("Cid")).unwrap();
    let graph = client.says("read_graph", json!({})).await;
    assert!(["Ann", "Bob", "Cid"].iter().all(|name| graph.contains(name)), "{graph}");
    let names: Vec<_> =
        fs::read_dir(client.folder.join("docs")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    client.pipe.close().await;
}
