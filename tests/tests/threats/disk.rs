//! A plugin with a folder writes as much as it can.

use e2e::{Folder, Pipe, is_error, json, plugin, text};

/// `hostile` with a folder, and memory of which it may write sixteen times as much to files.
fn config(folder: &Folder) {
    folder.config(&format!(
        "[plugins.hostile]\npath = {:?}\nprefix = \"\"\n[plugins.hostile.limits]\nmemory_mib = 8\n\
         [plugins.hostile.grants]\ndirs = [{{ host = {:?}, guest = \"/d\", access = \"read-write\" }}]\n",
        plugin("hostile"),
        folder.join("d"),
    ));
}

/// Writes so many MiB to a file. Returns the answer, or the error.
async fn fill(pipe: &mut Pipe, mib: u64) -> Result<String, String> {
    let result = pipe.call("fill", json!({ "mib": mib, "path": "/d/f" })).await;
    let told = text(&result).to_owned();
    if is_error(&result) { Err(told) } else { Ok(told) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_writes_no_more_than_its_limit() {
    let folder = Folder::new();
    std::fs::create_dir(folder.join("d")).unwrap();
    config(&folder);
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy("2025-11-25", json!({})).await;
    assert_eq!(fill(&mut pipe, 100).await.as_deref(), Ok("written"));
    let refused = fill(&mut pipe, 200).await.unwrap_err();
    assert!(refused.contains("more than 128 MiB to files in one call") && refused.contains("memory_mib"), "{refused}");
    assert!(std::fs::metadata(folder.join("d/f")).unwrap().len() <= 128 << 20);
    assert_eq!(fill(&mut pipe, 100).await.as_deref(), Ok("written"), "the next call has a limit of its own");
}

/// Needs its own mount namespace, which some machines do not allow for every user; the rule is tested without one.
#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_a_file_system_stays_free() {
    let folder = Folder::new();
    std::fs::create_dir(folder.join("d")).unwrap();
    config(&folder);
    let mount = "mount -t tmpfs -o size=64m tmpfs \"$1\"";
    let Some(command) = folder.mounted(mount, &[folder.join("d")], &["run"]) else {
        println!("no mount namespaces on this machine: not tried");
        return;
    };
    let mut pipe = Pipe::of_command(command);
    pipe.legacy("2025-11-25", json!({})).await;
    let refused = fill(&mut pipe, 100).await.unwrap_err();
    assert!(refused.contains("no more than 4 MiB left, which wharf keeps free"), "{refused}");
    assert_eq!(fill(&mut pipe, 40).await.as_deref(), Ok("written"), "the file that is replaced is free again");
}

/// Directories, links and files without content have no bytes, and take the place of others all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_the_files_that_a_file_system_can_hold_stays_free() {
    let folder = Folder::new();
    std::fs::create_dir(folder.join("d")).unwrap();
    let mount = "mount -t tmpfs -o size=64m,nr_inodes=320 tmpfs \"$1\"";
    let grants =
        format!("[plugins.files.grants]\ndirs = [{{ host = {:?}, access = \"read-write\" }}]\n", folder.join("d"));
    folder.config(&format!("[plugins.files]\nbuiltin = \"files\"\n{grants}"));
    let Some(command) = folder.mounted(mount, &[folder.join("d")], &["run"]) else {
        println!("no mount namespaces on this machine: not tried");
        return;
    };
    let mut pipe = Pipe::of_command(command);
    pipe.legacy("2025-11-25", json!({})).await;
    let mut refused = None;
    for at in 0..320 {
        let path = folder.join("d").join(at.to_string());
        let result = pipe.call("files_create_directory", json!({ "path": path })).await;
        if is_error(&result) {
            refused = Some((at, text(&result).to_owned()));
            break;
        }
    }
    let (made, why) = refused.expect("it ends");
    assert!((280..310).contains(&made) && why.contains("room for no more than 20 files"), "{made}: {why}");
}
