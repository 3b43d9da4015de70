//! Which files a plugin can reach through roots and directories, for all kinds of paths.

use std::{os::unix::fs::symlink, path::Path};

use e2e::{Folder, Pipe, Server, Value, is_error, json, plugin, text};

const REFUSED: &str = "error: Operation not permitted (os error 63)";
const ABSENT: &str = "error: No such file or directory (os error 44)";

/// `reach` without a prefix; `grants` are lines of its grants table.
fn config(folder: &Folder, within: &[&str], grants: &str) {
    let within: Vec<String> = within.iter().map(|path| format!("{:?}", folder.join(path))).collect();
    folder.config(&format!(
        "[roots]\nwithin = [{}]\n[plugins.reach]\npath = {:?}\nprefix = \"\"\n[plugins.reach.grants]\n{grants}\n",
        within.join(", "),
        plugin("reach")
    ));
}

fn uri(path: &Path) -> String {
    format!("file://{}", path.display())
}

fn roots(uris: &[String]) -> Value {
    json!({ "roots": uris.iter().map(|uri| json!({ "uri": uri })).collect::<Vec<_>>() })
}

/// Starts a client that has opened these roots.
async fn client(folder: &Folder, uris: &[String]) -> Pipe {
    let mut pipe = Pipe::start(folder, &["run"]);
    let answer = roots(uris);
    pipe.answer_with(move |method, _| (method == "roots/list").then(|| answer.clone()));
    pipe.legacy("2025-11-25", json!({ "roots": { "listChanged": true } })).await;
    pipe
}

async fn open(pipe: &mut Pipe, uris: &[String]) {
    let answer = roots(uris);
    pipe.answer_with(move |method, _| (method == "roots/list").then(|| answer.clone()));
    pipe.notify("notifications/roots/list_changed", json!({})).await;
}

async fn said(pipe: &mut Pipe, tool: &str, arguments: Value) -> String {
    text(&pipe.call(tool, arguments).await).to_owned()
}

async fn read(pipe: &mut Pipe, path: &Path) -> String {
    said(pipe, "read", json!({ "path": path })).await
}

fn dir(host: &Path, guest: &str, access: &str) -> String {
    format!("{{ host = {host:?}, guest = {guest:?}, access = {access:?} }}")
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_lies_in_the_root_is_reached() {
    let folder = Folder::new();
    let inside = folder.write("code/proj/in.txt", "inside");
    folder.write("code/other/x.txt", "other");
    let secret = folder.write("secret/s.txt", "SECRET");
    let root = folder.join("code/proj");
    symlink("in.txt", root.join("link-in")).unwrap();
    symlink(&inside, root.join("link-absolute")).unwrap();
    symlink(&secret, root.join("link-out")).unwrap();
    symlink("../../secret/s.txt", root.join("link-up")).unwrap();
    symlink("/etc", root.join("etc")).unwrap();
    config(&folder, &["code"], "roots = \"read-write\"");
    let mut pipe = client(&folder, &[uri(&root)]).await;
    assert_eq!(said(&mut pipe, "dirs", json!({})).await, format!("rw {}", root.display()));
    for (path, expected) in [
        ("in.txt", "inside"),
        ("./in.txt", "inside"),
        ("link-in", "inside"),
        // An absolute link is refused even if its target is inside: it cannot be followed below the handle.
        ("link-absolute", REFUSED),
        ("link-out", REFUSED),
        ("link-up", REFUSED),
        ("etc/passwd", REFUSED),
        ("../other/x.txt", REFUSED),
        ("./../proj/in.txt", REFUSED),
        ("../../secret/s.txt", REFUSED),
        ("missing", ABSENT),
    ] {
        assert_eq!(read(&mut pipe, &root.join(path)).await, expected, "{path}");
    }
    for path in [
        "/",
        "/etc/passwd",
        "/proc/self/environ",
        secret.to_str().unwrap(),
        folder.join("code/other/x.txt").to_str().unwrap(),
    ] {
        assert_eq!(read(&mut pipe, Path::new(path)).await, ABSENT, "{path}");
    }
    let at = |name: &str| root.join(name);
    for (tool, arguments) in [
        ("write", json!({ "path": at("link-out"), "text": "x" })),
        ("write", json!({ "path": at("../x"), "text": "x" })),
        ("rename", json!({ "from": at("in.txt"), "to": at("../other/in.txt") })),
        ("link", json!({ "from": at("link-out"), "to": at("../hard") })),
        ("link", json!({ "from": at("../../secret/s.txt"), "to": at("hard") })),
        ("symlink", json!({ "from": "/etc", "to": at("made") })),
        ("mkdir", json!({ "path": at("../made") })),
        ("remove", json!({ "path": at("../other/x.txt") })),
        ("list", json!({ "path": at("..") })),
        ("list", json!({ "path": at("etc") })),
        ("stat", json!({ "path": at("link-out") })),
    ] {
        let got = said(&mut pipe, tool, arguments.clone()).await;
        assert!(got.starts_with("error: "), "{tool} {arguments}: {got}");
    }
    // A link with a target outside may be created, but cannot be followed.
    assert_eq!(said(&mut pipe, "symlink", json!({ "from": "../../secret", "to": at("made") })).await, "()");
    assert_eq!(read(&mut pipe, &at("made/s.txt")).await, REFUSED);
    assert_eq!(said(&mut pipe, "write", json!({ "path": at("new"), "text": "new" })).await, "()");
    assert_eq!(std::fs::read_to_string(at("new")).unwrap(), "new");
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "SECRET");
    assert_eq!(said(&mut pipe, "environ", json!({})).await, " []");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_directory_is_not_changed_by_any_way() {
    let folder = Folder::new();
    folder.write("ro/f.txt", "ro");
    folder.write("rw/g.txt", "rw");
    let dirs = format!(
        "dirs = [{}, {}]",
        dir(&folder.join("rw"), "/rw", "read-write"),
        dir(&folder.join("ro"), "/ro", "read")
    );
    config(&folder, &[], &dirs);
    let mut pipe = client(&folder, &[]).await;
    for (tool, arguments) in [
        ("link", json!({ "from": "/ro/f.txt", "to": "/rw/l" })),
        ("link", json!({ "from": "/rw/g.txt", "to": "/ro/l" })),
        ("rename", json!({ "from": "/ro/f.txt", "to": "/rw/m" })),
        ("rename", json!({ "from": "/rw/g.txt", "to": "/ro/m" })),
        ("rename", json!({ "from": "/ro/f.txt", "to": "/ro/m" })),
        ("write", json!({ "path": "/ro/f.txt", "text": "x" })),
        ("write", json!({ "path": "/rw/../ro/f.txt", "text": "x" })),
        ("append", json!({ "path": "/ro/f.txt", "text": "x" })),
        ("truncate", json!({ "path": "/ro/f.txt", "times": 0 })),
        ("remove", json!({ "path": "/ro/f.txt" })),
        ("mkdir", json!({ "path": "/ro/d" })),
        ("symlink", json!({ "from": "f.txt", "to": "/ro/s" })),
    ] {
        let got = said(&mut pipe, tool, arguments.clone()).await;
        assert!(got.starts_with("error: "), "{tool} {arguments}: {got}");
    }
    assert_eq!(said(&mut pipe, "read", json!({ "path": "/ro/f.txt" })).await, "ro");
    assert_eq!(std::fs::read_dir(folder.join("ro")).unwrap().count(), 1);
    assert_eq!(std::fs::read_dir(folder.join("rw")).unwrap().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_cannot_move_a_directory_the_operator_gave_it() {
    // It may write in `data`, so it can replace `data/sub`, which the operator also granted, by a link.
    let folder = Folder::new();
    folder.write("data/sub/f.txt", "f");
    let secret = folder.write("secret/s.txt", "SECRET");
    let (data, sub) = (folder.join("data"), folder.join("data/sub"));
    config(
        &folder,
        &[],
        &format!("dirs = [{}, {}]", dir(&data, "/data", "read-write"), dir(&sub, "/sub", "read-write")),
    );
    let mut pipe = client(&folder, &[]).await;
    said(&mut pipe, "remove", json!({ "path": "/data/sub/f.txt" })).await;
    said(&mut pipe, "remove", json!({ "path": "/data/sub" })).await;
    said(&mut pipe, "symlink", json!({ "from": "../secret", "to": "/data/sub" })).await;
    let got = said(&mut pipe, "read", json!({ "path": "/sub/s.txt" })).await;
    assert!(!got.contains("SECRET"), "a link made by the plugin became a grant: {got}");
    said(&mut pipe, "write", json!({ "path": "/sub/s.txt", "text": "overwritten" })).await;
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "SECRET");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_cannot_move_a_directory_of_another_plugin() {
    let folder = Folder::new();
    folder.write("code/proj/sub/f.txt", "f");
    folder.write("secret/s.txt", "SECRET");
    let (root, sub) = (folder.join("code/proj"), folder.join("code/proj/sub"));
    config(
        &folder,
        &["code"],
        &format!(
            "roots = \"read-write\"\n[plugins.b]\npath = {:?}\nprefix = \"b_\"\n[plugins.b.grants]\ndirs = [{}]",
            folder.plugin("reach"),
            dir(&sub, "/sub", "read")
        ),
    );
    let mut pipe = client(&folder, &[uri(&root)]).await;
    assert_eq!(said(&mut pipe, "b_read", json!({ "path": "/sub/f.txt" })).await, "f");
    said(&mut pipe, "remove", json!({ "path": sub.join("f.txt") })).await;
    said(&mut pipe, "remove", json!({ "path": sub })).await;
    said(&mut pipe, "symlink", json!({ "from": "../../secret", "to": sub })).await;
    let got = said(&mut pipe, "b_read", json!({ "path": "/sub/s.txt" })).await;
    assert!(!got.contains("SECRET"), "a link that one plugin made became the grant of another: {got}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_directory_that_moves_into_a_writable_one_stays_read_only() {
    // The operator's path is a link; the directory moves, the link follows, and the two grants overlap from then on.
    let folder = Folder::new();
    let file = folder.write("away/r/f", "ro");
    std::fs::create_dir_all(folder.join("w")).unwrap();
    let link = folder.join("l");
    symlink(folder.join("away/r"), &link).unwrap();
    config(
        &folder,
        &[],
        &format!("dirs = [{}, {}]", dir(&folder.join("w"), "/w", "read-write"), dir(&link, "/l", "read")),
    );
    let mut pipe = client(&folder, &[]).await;
    assert_eq!(said(&mut pipe, "dirs", json!({})).await, "rw /w\nro /l");
    std::fs::rename(file.parent().unwrap(), folder.join("w/r")).unwrap();
    std::fs::remove_file(&link).unwrap();
    symlink(folder.join("w/r"), &link).unwrap();
    let got = said(&mut pipe, "write", json!({ "path": "/w/r/f", "text": "changed" })).await;
    assert!(got.starts_with("error: "), "written around the read-only grant: {got}");
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_uris_are_dropped_or_mean_what_they_say() {
    let folder = Folder::new();
    for name in ["code/a b", "code/ü", "code/%41"] {
        folder.write(&format!("{name}/f"), name);
    }
    let strange = std::ffi::OsString::from(folder.join("code/").display().to_string());
    let strange = [std::os::unix::ffi::OsStringExt::into_vec(strange), vec![0xff, 0xfe]].concat();
    std::fs::create_dir(<std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(strange)).unwrap();
    folder.write("code/file", "file");
    config(&folder, &["code"], "roots = \"read\"");
    let base = uri(&folder.join("code"));
    let open: Vec<(String, Option<&str>)> = vec![
        (format!("{base}/a%20b"), Some("a b")),
        (format!("{base}/%C3%BC"), Some("ü")),
        (format!("{base}/%2541"), Some("%41")),
        (format!("{base}/%FF%FE"), None),
        (format!("{base}/file"), None),
        (format!("{base}/missing"), None),
        (format!("{base}/a%20b/%2e%2e/%2e%2e"), None),
        (format!("{base}/../secret"), None),
        (format!("{base}/a%20b%00"), None),
        (format!("{base}/%41?x"), None),
        ("file:///".into(), None),
        ("file://elsewhere/etc".into(), None),
        ("https://example.com/".into(), None),
        ("untitled:1".into(), None),
        (String::new(), None),
    ];
    let uris: Vec<String> = open.iter().map(|(uri, _)| uri.clone()).collect();
    let mut pipe = client(&folder, &uris).await;
    let expected: Vec<String> = open
        .iter()
        .filter_map(|(_, name)| Some(format!("ro {}", folder.join(&format!("code/{}", (*name)?)).display())))
        .collect();
    assert_eq!(said(&mut pipe, "dirs", json!({})).await, expected.join("\n"));
    let refused = open.iter().filter(|(_, name)| name.is_none()).count();
    let log = pipe.wait_for_log("is ignored").await;
    let told = format!("refused: roots of a client ({refused} of {}; \"{base}", open.len());
    assert!(log.contains(&told), "{told}:\n{log}");
    assert_eq!(log.matches("is ignored").count(), 1, "one line for all:\n{log}");
    assert_eq!(said(&mut pipe, "read", json!({ "path": folder.join("code/a b/f") })).await, "code/a b");
}

/// Neither what a client lists nor what it answers instead: a line for each would fill a disk.
#[tokio::test(flavor = "multi_thread")]
async fn roots_that_are_refused_fill_no_log() {
    let folder = Folder::new();
    let file = folder.write("code/one/f", "one");
    config(&folder, &["code"], "roots = \"read\"");
    let refused: Vec<String> = (0..64).map(|at| format!("file:///{}{at}", "long".repeat(1000))).collect();
    let mut pipe = client(&folder, &refused).await;
    for _ in 0..50 {
        assert_eq!(read(&mut pipe, &file).await, ABSENT);
        open(&mut pipe, &refused).await;
    }
    pipe.wait_for_log("is ignored").await;
    pipe.answer_with(|_, _| None);
    pipe.notify("notifications/roots/list_changed", json!({})).await;
    let asked = pipe.server_request("roots/list").await;
    let error = json!({ "code": -32603, "message": "\u{1b}".repeat(1 << 20) });
    pipe.send(json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error })).await;
    let log = pipe.wait_for_log("asked for its roots").await;
    assert!(log.matches("refused: roots").count() <= 5, "{} lines", log.lines().count());
    assert!(log.len() < 64 << 10, "{} bytes", log.len());
}

/// One task asks for the roots, however often the client says that they are others.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_whose_roots_change_all_the_time_takes_no_memory() {
    let folder = Folder::new();
    let file = folder.write("code/one/f", "one");
    config(&folder, &["code"], "roots = \"read\"");
    let mut pipe = client(&folder, &[]).await;
    assert_eq!(read(&mut pipe, &file).await, ABSENT);
    let before = e2e::memory_kib(pipe.pid(), "VmHWM");
    let changed = json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" });
    let many = format!("{changed}\n").repeat(100);
    for _ in 0..1000 {
        pipe.send_raw(many.as_bytes()).await;
    }
    open(&mut pipe, &[uri(&folder.join("code/one"))]).await;
    assert_eq!(read(&mut pipe, &file).await, "one", "the last state counts");
    let most = e2e::memory_kib(pipe.pid(), "VmHWM");
    println!("{} MiB before, at most {} MiB", before >> 10, most >> 10);
    assert!(most < before + (32 << 10), "it grew from {} to {} MiB", before >> 10, most >> 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn roots_come_and_go_with_the_client() {
    let folder = Folder::new();
    let one = folder.write("code/one/f", "one");
    let two = folder.write("code/two/f", "two");
    config(&folder, &["code"], "roots = \"read\"");
    let (first, second) = (uri(&folder.join("code/one")), uri(&folder.join("code/two")));
    let mut pipe = client(&folder, std::slice::from_ref(&first)).await;
    assert_eq!(read(&mut pipe, &one).await, "one");
    assert_eq!(read(&mut pipe, &two).await, ABSENT);
    open(&mut pipe, &[first.clone(), second.clone()]).await;
    assert_eq!(read(&mut pipe, &two).await, "two");
    open(&mut pipe, &[]).await;
    assert_eq!(read(&mut pipe, &one).await, ABSENT);
    open(&mut pipe, std::slice::from_ref(&second)).await;
    assert_eq!(read(&mut pipe, &two).await, "two");
    // Missing, replaced by a file, and restored.
    let place = folder.join("code/two");
    std::fs::rename(&place, folder.join("code/away")).unwrap();
    assert_eq!(read(&mut pipe, &two).await, ABSENT);
    std::fs::write(&place, "a file").unwrap();
    assert_eq!(read(&mut pipe, &two).await, ABSENT);
    std::fs::remove_file(&place).unwrap();
    folder.write("code/two/f", "two again");
    assert_eq!(read(&mut pipe, &two).await, "two again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_loses_what_is_taken_away_and_at_once() {
    let folder = Folder::new();
    let file = folder.write("code/one/f", "one");
    config(&folder, &["code"], "roots = \"read-write\"");
    let root = uri(&folder.join("code/one"));
    let slow =
        json!({ "name": "read_late", "arguments": { "path": file, "ms": 20_000 }, "_meta": { "progressToken": 1 } });
    for (what, says) in [("root", "was closed"), ("grant", "took away"), ("plugin", "took away"), ("ceiling", "")] {
        config(&folder, &["code"], "roots = \"read-write\"");
        let mut pipe = client(&folder, std::slice::from_ref(&root)).await;
        assert_eq!(read(&mut pipe, &file).await, "one");
        let id = pipe.begin("tools/call", slow.clone()).await;
        pipe.notification("notifications/progress").await;
        let began = std::time::Instant::now();
        match what {
            "root" => open(&mut pipe, &[]).await,
            "grant" => config(&folder, &["code"], "roots = \"read\""),
            "ceiling" => {
                std::fs::create_dir_all(folder.join("elsewhere")).unwrap();
                config(&folder, &["elsewhere"], "roots = \"read-write\"");
            }
            _ => drop(folder.config("[limits]\n")),
        }
        let result = pipe.answer(&id).await.unwrap();
        assert!(is_error(&result) && text(&result).contains(says), "{what}: {result}");
        assert!(began.elapsed().as_secs() < 10, "{what}: {:?}", began.elapsed());
        if what == "ceiling" {
            assert_eq!(read(&mut pipe, &file).await, ABSENT, "the ceiling no longer holds the root");
        }
    }
}

/// A client cannot close the operator's roots: a long call retains them.
#[tokio::test(flavor = "multi_thread")]
async fn the_operators_roots_serve_clients_without_any() {
    let folder = Folder::new();
    let file = folder.write("code/in.txt", "inside");
    folder.config(&format!(
        "[plugins.hostile]\npath = {:?}\nprefix = \"\"\n[plugins.hostile.grants]\nroots = \"read\"\n",
        plugin("hostile")
    ));
    let root = folder.join("code").display().to_string();
    let mut pipe = Pipe::start(&folder, &["run", "--root", &root]);
    pipe.legacy("2025-11-25", json!({})).await;
    for ms in [0, 20, 100] {
        let result = pipe.call("read_after", json!({ "path": file, "ms": ms })).await;
        assert_eq!(text(&result), "inside", "{ms} ms");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_do_not_see_each_others_roots() {
    let folder = Folder::new();
    let one = folder.write("code/one/f", "one");
    let two = folder.write("code/two/f", "two");
    config(&folder, &["code"], "roots = \"read\"");
    let server = Server::start(&folder, &[]).await;
    let capabilities = json!({ "roots": { "listChanged": true } });
    let mut sessions = Vec::new();
    for name in ["one", "two"] {
        let mut session = server.legacy("2025-11-25", capabilities.clone()).await;
        let answer = roots(&[uri(&folder.join(&format!("code/{name}")))]);
        session.answer_with(move |method, _| (method == "roots/list").then(|| answer.clone()));
        sessions.push(session);
    }
    for _ in 0..20 {
        for (at, session) in sessions.iter_mut().enumerate() {
            let (own, other) = if at == 0 { (&one, &two) } else { (&two, &one) };
            let got = session.call("read", json!({ "path": own })).await;
            assert_eq!(text(&got), if at == 0 { "one" } else { "two" });
            let got = session.call("read", json!({ "path": other })).await;
            assert_eq!(text(&got), ABSENT);
        }
    }
}

/// Guests cannot set modes, so no way of renaming gives anybody a right to a file that was there before.
#[tokio::test(flavor = "multi_thread")]
async fn a_rename_gives_no_file_more_rights_than_it_had() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let root = folder.join("root");
    std::fs::create_dir_all(&root).unwrap();
    let path = |name: &str| root.join(name).display().to_string();
    let make = |name: &str, mode: u32| {
        std::fs::write(root.join(name), name).unwrap();
        std::fs::set_permissions(root.join(name), PermissionsExt::from_mode(mode)).unwrap();
    };
    let mode = |name: &str| std::fs::metadata(root.join(name)).unwrap().permissions().mode() & 0o7777;
    folder.config(&format!(
        "[plugins.reach]\npath = {:?}\nprefix = \"\"\n[plugins.reach.grants]\ndirs = [{{ host = {root:?}, access = \"read-write\" }}]\n",
        plugin("reach")
    ));
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy("2025-11-25", json!({})).await;
    make("private", 0o600);
    make("public", 0o666);
    make("tool", 0o755);
    make("note", 0o644);
    let mut rename = async |from: &str, to: &str| {
        let result = pipe.call("rename", json!({ "from": path(from), "to": path(to) })).await;
        assert_eq!(text(&result), "()", "{from} {to}");
    };
    // A text does not become a program, and a private file stays private.
    rename("note", "tool").await;
    assert_eq!(mode("tool"), 0o644);
    rename("private", "public").await;
    assert_eq!(mode("public"), 0o600);
    // What replaces a private file is private.
    make("open", 0o666);
    rename("open", "public").await;
    assert_eq!(mode("public"), 0o600);
    // The other name of the file is not to be changed.
    make("private", 0o600);
    make("public", 0o666);
    make("shown", 0o644);
    std::fs::hard_link(root.join("shown"), root.join("other")).unwrap();
    rename("other", "private").await;
    assert_eq!((mode("shown"), mode("private")), (0o644, 0o644));
    std::fs::hard_link(root.join("private"), root.join("link")).unwrap();
    rename("link", "public").await;
    assert_eq!(mode("shown"), 0o644);
    pipe.close().await;
}
