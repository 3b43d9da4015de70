//! Names that are not UTF-8, and other files that cannot be looked at.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

use super::*;

const LATIN: &[u8] = b"caf\xe9.txt";

fn latin(repo: &Repo, content: &str) {
    fs::write(repo.at.join(OsStr::from_bytes(LATIN)), content).unwrap();
}

#[test]
fn a_tracked_name_that_is_not_utf8_is_named_as_not_compared() {
    let home = Home::new();
    let repo = home.repository("r", &[]);
    latin(&repo, "coffee\n");
    repo.commit("latin");
    repo.write("a.txt", "two\n");
    let named = "Not compared:\n\t\"caf\\351.txt\": its name is not UTF-8";
    let status = repo.status();
    contains(&status, "modified:   a.txt");
    contains(&status, named);
    assert!(!status.contains("Untracked"), "{status}");
    for diff in [repo.unstaged(), {
        latin(&repo, "tea\n");
        repo.unstaged()
    }] {
        contains(&diff, "-one\n+two\n");
        contains(&diff, named);
    }
    // What git has stored can be compared whatever its name is.
    assert_eq!(repo.diff("HEAD~1..HEAD").unwrap().trim_end(), repo.git(&["diff", "HEAD~1..HEAD"]));
    contains(&crate::history::show(&repo.place().repo, "HEAD").unwrap(), "+++ \"caf\\351.txt\"\n");
    contains(&crate::history::show(&repo.place().repo, "HEAD:").unwrap(), "\"caf\\351.txt\"");
}

#[test]
fn nothing_is_called_clean_that_was_not_compared() {
    let home = Home::new();
    let repo = home.repository("r", &[]);
    latin(&repo, "coffee\n");
    repo.commit("latin");
    contains(&repo.status(), "\n\nnothing to commit; what was compared is unchanged");
}

#[test]
fn a_name_that_is_not_utf8_does_not_keep_the_others_from_being_added() {
    let home = Home::new();
    let repo = home.repository("r", &[]);
    latin(&repo, "coffee\n");
    repo.commit("latin");
    repo.write("a.txt", "two\n");
    let entry = repo.git(&["ls-files", "-s", "caf*"]);
    contains(
        &repo.add(&["."]).unwrap(),
        "Files staged successfully\nNot staged, even if changed:\n\t\"caf\\351.txt\": ",
    );
    assert_eq!(repo.git(&["ls-files", "-s", "caf*"]), entry);
    assert_eq!(repo.git(&["diff", "--cached", "--name-only"]), "a.txt");
    assert_eq!(repo.add(&["a.txt"]).unwrap().lines().count(), 1);
    contains(&repo.committed("both").unwrap(), "Changes committed successfully");
    contains(&repo.git(&["ls-tree", "HEAD"]), "caf\\351.txt");
}

#[test]
fn an_untracked_name_that_is_not_utf8_is_said() {
    let home = Home::new();
    let repo = home.repository("r", &[]);
    latin(&repo, "coffee\n");
    contains(&repo.status(), "Not compared:\n\t\"caf\u{fffd}.txt\": it is untracked; its name is not UTF-8");
    contains(&repo.add(&["."]).unwrap(), "Not staged, even if changed:\n\t\"caf\u{fffd}.txt\": ");
    // A second one that reads the same as a tracked one is not taken for that.
    repo.git(&["add", "-A"]);
    fs::write(repo.at.join(OsStr::from_bytes(b"caf\xe8.txt")), "").unwrap();
    let status = repo.status();
    contains(&status, "\t\"caf\\351.txt\": its name is not UTF-8");
    contains(&status, "\t\"caf\u{fffd}.txt\": it is untracked");
}

#[test]
fn a_folder_whose_name_is_not_utf8_is_said() {
    let home = Home::new();
    let repo = home.repository("r", &[]);
    let folder = repo.at.join(OsStr::from_bytes(b"d\xe9"));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("x"), "x\n").unwrap();
    contains(&repo.status(), "\t\"d\u{fffd}\": ");
    repo.git(&["add", "-A"]);
    let status = repo.status();
    contains(&status, "new file:   \"d\\351/x\"");
    contains(&status, "\t\"d\\351/x\": its name is not UTF-8");
    assert!(!status.contains('\u{fffd}'), "{status}");
}

#[test]
fn a_name_with_the_replacement_character_itself_is_a_name() {
    let home = Home::new();
    let repo = home.repository("r", &[]);
    repo.write("odd\u{fffd}.txt", "odd\n");
    repo.same_status();
    assert_eq!(repo.add(&["."]).unwrap(), "Files staged successfully");
    repo.same_status();
}

#[test]
fn a_checkout_that_would_write_a_name_that_is_not_utf8_changes_nothing() {
    let home = Home::new();
    let repo = home.repository("r", &[]);
    repo.git(&["branch", "before"]);
    latin(&repo, "coffee\n");
    repo.write("a.txt", "two\n");
    repo.commit("latin");
    repo.git(&["branch", "after"]);
    repo.git(&["checkout", "-q", "before"]);
    contains(&failure(crate::checkout::checkout(&repo.place(), "after")), "\"caf\\351.txt\": its name is not UTF-8");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
}

#[test]
fn what_only_a_filter_could_tell_is_named_as_not_compared() {
    let home = Home::new();
    let repo = home.repository("r", &[]);
    repo.write("big.bin", "stored\n");
    repo.commit("big");
    repo.write(".gitattributes", "*.bin filter=lfs\n");
    repo.git(&["add", ".gitattributes"]);
    repo.write("big.bin", "another length\n");
    let why = "\tbig.bin: it has to go through the filter lfs, which is not run here";
    contains(&repo.status(), why);
    contains(&repo.unstaged(), why);
    contains(&failure(repo.add(&["big.bin"])), "the filter lfs");
    repo.write("new.bin", "new\n");
    contains(&failure(repo.add(&["."])), "new.bin: it has to go through the filter lfs");
}

#[test]
fn a_pipe_in_the_place_of_a_file_is_not_opened() {
    let home = Home::new();
    let repo = home.repository("r", &[]);
    fs::remove_file(repo.at.join("a.txt")).unwrap();
    assert!(Command::new("mkfifo").arg(repo.at.join("a.txt")).status().unwrap().success());
    contains(&repo.status(), "\ta.txt: it is neither a file, nor a link, nor a folder");
}
