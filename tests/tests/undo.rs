//! What calls have changed in folders is listed and taken back, with the real binary.

#![expect(clippy::disallowed_methods, reason = "tests write what plugins are to change")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{collections::BTreeMap, fs, path::PathBuf, process::Output};

use e2e::{
    Folder, Pipe, Value,
    folder::{stderr, stdout},
    is_error, json,
    pipe::signal,
};
use rustix::process::Signal;

/// A client that has the folder `docs` open to the plugin `files`, with two files in it.
async fn client(options: &[&str]) -> (Folder, Pipe) {
    let folder = Folder::new();
    folder.write("docs/a.txt", "one\n");
    folder.write("docs/sub/b.txt", "two\n");
    let pipe = serving(&folder, options).await;
    (folder, pipe)
}

async fn serving(folder: &Folder, options: &[&str]) -> Pipe {
    let mut pipe = Pipe::start(folder, &[&["run"], options, &["--builtin", "files", "docs"]].concat());
    pipe.legacy("2025-11-25", json!({})).await;
    pipe
}

/// Calls a tool of `files`, whose arguments that are paths lie in `docs`.
async fn call(folder: &Folder, pipe: &mut Pipe, tool: &str, mut arguments: Value) {
    for (key, value) in arguments.as_object_mut().unwrap() {
        if ["path", "source", "destination"].contains(&key.as_str()) {
            *value = json!(folder.join("docs").join(value.as_str().unwrap()));
        }
    }
    let result = pipe.call(tool, arguments).await;
    assert!(!is_error(&result), "{result}");
}

fn tree(folder: &Folder) -> BTreeMap<PathBuf, Option<String>> {
    let mut all = BTreeMap::new();
    let mut folders = vec![folder.join("docs")];
    while let Some(open) = folders.pop() {
        for entry in fs::read_dir(open).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path.clone());
            }
            all.insert(path.clone(), fs::read_to_string(path).ok());
        }
    }
    all
}

async fn undo(folder: &Folder, arguments: &[&str]) -> Output {
    folder.run(&[&["undo"], arguments].concat(), &[]).await
}

/// The last word of a line of the list: the session.
fn session(list: &str) -> String {
    list.lines().find_map(|line| line.split_once("  session ")).unwrap().1.to_owned()
}

#[tokio::test]
async fn a_session_is_listed_and_taken_back_after_wharf_was_killed() {
    let (folder, mut pipe) = client(&[]).await;
    assert_eq!(stdout(&undo(&folder, &[]).await), "no call of the last seven days has changed anything\n");
    let before = tree(&folder);
    call(&folder, &mut pipe, "write_file", json!({ "path": "a.txt", "content": "changed\n" })).await;
    call(&folder, &mut pipe, "create_directory", json!({ "path": "new/deep" })).await;
    call(&folder, &mut pipe, "move_file", json!({ "source": "sub/b.txt", "destination": "new/deep/b.txt" })).await;
    call(&folder, &mut pipe, "move_file", json!({ "source": "sub", "destination": "other" })).await;
    let edits = json!([{ "oldText": "two", "newText": "three" }]);
    call(&folder, &mut pipe, "edit_file", json!({ "path": "new/deep/b.txt", "edits": edits })).await;
    call(&folder, &mut pipe, "read_text_file", json!({ "path": "a.txt" })).await;
    signal(pipe.pid(), Signal::KILL);
    let list = stdout(&undo(&folder, &[]).await);
    let names: Vec<&str> =
        list.lines().filter_map(|line| Some(line.split_once("files: ")?.1.split_once(' ')?.0)).collect();
    assert_eq!(names, ["write_file", "create_directory", "move_file", "move_file", "edit_file"], "{list}");
    assert_eq!(list.matches(".wharf-").count(), 0, "a file that was there for a moment is not listed: {list}");
    // The first call alone: no later one has changed the same file.
    let first = list.split(' ').next().unwrap();
    let undone = undo(&folder, &[first]).await;
    assert!(undone.status.success(), "{}", stdout(&undone));
    let restored = format!("{first}, files: write_file\n    restored {}\n", folder.join("docs/a.txt").display());
    assert_eq!(stdout(&undone), restored);
    let undone = undo(&folder, &[&session(&list)]).await;
    assert!(undone.status.success(), "{}{}", stdout(&undone), stderr(&undone));
    assert_eq!(tree(&folder), before, "{}", stdout(&undone));
    let nothing_left = undo(&folder, &["--last"]).await;
    assert!(
        stderr(&nothing_left).contains("no call of the last seven days has changed anything that was not taken back")
    );
}

#[tokio::test]
async fn what_a_person_has_changed_since_stays() {
    let (folder, mut pipe) = client(&[]).await;
    call(&folder, &mut pipe, "write_file", json!({ "path": "a.txt", "content": "by a call\n" })).await;
    call(&folder, &mut pipe, "write_file", json!({ "path": "sub/b.txt", "content": "by a call\n" })).await;
    folder.write("docs/sub/b.txt", "by hand\n");
    let refused = undo(&folder, &["--last"]).await;
    assert_eq!(refused.status.code(), Some(1));
    let said = stdout(&refused);
    assert!(said.contains("/docs/sub/b.txt has changed since\nnothing of it was changed; `wharf undo "), "{said}");
    assert_eq!(fs::read_to_string(folder.join("docs/sub/b.txt")).unwrap(), "by hand\n");
    assert!(undo(&folder, &["--last", "--force"]).await.status.success());
    assert_eq!(fs::read_to_string(folder.join("docs/sub/b.txt")).unwrap(), "two\n");
    let unknown = undo(&folder, &["7"]).await;
    assert_eq!(stderr(&unknown), "error: there is no call or session 7; `wharf undo` lists them\n");
}

/// Nothing is kept if the operator wants nothing kept, of a call that cannot write, or of a test.
#[tokio::test]
async fn nothing_is_kept_without_need() {
    let (folder, mut pipe) = client(&["--read-only"]).await;
    call(&folder, &mut pipe, "read_text_file", json!({ "path": "a.txt" })).await;
    pipe.close().await;
    let config = folder.config("[limits]\nundo_mib = 0\n").display().to_string();
    let mut pipe = serving(&folder, &["-c", &config]).await;
    call(&folder, &mut pipe, "files_write_file", json!({ "path": "a.txt", "content": "changed\n" })).await;
    assert!(!folder.home().join(".local/state/wharf/undo").exists());
}

/// A plugin that may write in the state folder cannot change what is kept there.
#[tokio::test]
async fn what_is_kept_is_out_of_reach() {
    let (folder, mut pipe) = client(&[]).await;
    call(&folder, &mut pipe, "write_file", json!({ "path": "a.txt", "content": "changed\n" })).await;
    pipe.close().await;
    let store = folder.home().join(".local/state/wharf/undo/of-files");
    let record =
        fs::read_dir(&store).unwrap().find_map(|entry| entry.unwrap().path().join("lines").canonicalize().ok());
    let record = record.unwrap();
    let open = store.display().to_string();
    let mut pipe = Pipe::start(&folder, &["run", "--builtin", "files", &open]);
    pipe.legacy("2025-11-25", json!({})).await;
    let written = pipe.call("write_file", json!({ "path": record, "content": "" })).await;
    assert!(is_error(&written), "{written}");
    assert!(fs::read_to_string(record).unwrap().starts_with("{\"call\":"));
}
