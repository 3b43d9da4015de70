//! Revisions, ranges, and the texts of commits.

use super::*;

fn show(repo: &Repo, text: &str) -> Result<String> {
    crate::history::show(&repo.place().repo, text)
}

fn log(repo: &Repo) -> String {
    crate::history::log(&repo.place().repo, -1, None, None).unwrap()
}

/// Two branches that differ from their common commit.
fn branched(home: &Home) -> Repo {
    let repo = home.repository("r", &[]);
    repo.git(&["branch", "side"]);
    repo.write("a.txt", "main\n");
    repo.commit("on main");
    repo.git(&["checkout", "-q", "side"]);
    repo.write("b.txt", "side\n");
    repo.commit("on the side");
    repo.git(&["checkout", "-q", "main"]);
    repo
}

#[test]
fn ranges_are_compared_like_in_git() {
    let home = Home::new();
    let repo = branched(&home);
    // The work tree has no part in it.
    repo.write("a.txt", "uncommitted\n");
    for range in ["main..side", "side..main", "main...side", "side...main", "side..", "..side", "side...", "main^!"] {
        assert_eq!(repo.diff(range).unwrap().trim_end(), repo.git(&["diff", range]), "{range}");
    }
    repo.git(&["checkout", "-q", "--orphan", "alone"]);
    repo.commit("alone");
    contains(&failure(repo.diff("main...alone")), "main...alone: no merge base");
    contains(&failure(repo.diff("main..nothing")), "ambiguous argument 'nothing': unknown revision");
    contains(&failure(repo.diff("nothing")), "ambiguous argument 'nothing': unknown revision");
    contains(&failure(repo.diff("^main")), "does not name two things to compare");
    contains(&failure(show(&repo, "main..alone")), "'main..alone' names a range");
}

#[test]
fn a_path_that_a_revision_does_not_have_is_said_in_the_words_of_git() {
    let home = Home::new();
    let repo = branched(&home);
    assert_eq!(failure(show(&repo, "main:nothing")), "path 'nothing' does not exist in 'main'");
    repo.write("new.txt", "new\n");
    assert_eq!(failure(show(&repo, "main:new.txt")), "path 'new.txt' exists on disk, but not in 'main'");
    contains(&failure(show(&repo, "0123456789012345678901234567890123456789")), "unknown revision");
}

#[test]
fn a_branch_with_the_name_of_a_folder_or_file_is_a_branch() {
    let home = Home::new();
    let repo = branched(&home);
    repo.write("docs/x.txt", "x\n");
    repo.commit("docs");
    repo.git(&["branch", "docs", "side"]);
    repo.git(&["branch", "a.txt", "side"]);
    for name in ["docs", "a.txt"] {
        assert_eq!(repo.diff(name).unwrap().trim_end(), repo.git(&["diff", name, "--"]), "{name}");
        assert_eq!(show(&repo, name).unwrap(), show(&repo, "side").unwrap());
        let said = crate::checkout::checkout(&repo.place(), name).unwrap();
        assert_eq!(said, format!("Switched to branch '{name}'"));
        assert_eq!(repo.git(&["symbolic-ref", "HEAD"]), format!("refs/heads/{name}"));
        crate::checkout::checkout(&repo.place(), "main").unwrap();
        repo.same_status();
    }
}

#[test]
fn a_branch_of_a_remote_is_named_when_it_is_asked_for() {
    let home = Home::new();
    let repo = branched(&home);
    repo.git(&["update-ref", "refs/remotes/origin/feature", "side"]);
    let refused = failure(crate::checkout::checkout(&repo.place(), "feature"));
    contains(&refused, "origin/feature is a branch of a remote: git_create_branch with base_branch 'origin/feature'");
}

#[test]
fn commits_are_read_in_the_encoding_that_they_name() {
    let home = Home::new();
    let repo = home.repository("r", &[]);
    for (encoding, message, expected) in [
        ("ISO-8859-1", &b"caf\xe9 latin"[..], "café latin"),
        ("CP1252", b"a \x80 euro", "a € euro"),
        ("SHIFT-JIS", b"\x93\xfa\x96\x7b", "日本"),
        ("KOI8-R", b"\xcd\xc9\xd2", "мир"),
    ] {
        repo.write("a.txt", encoding);
        repo.git(&["add", "-A"]);
        fs::write(home.0.join("message"), message).unwrap();
        let setting = format!("i18n.commitEncoding={encoding}");
        repo.git(&["-c", &setting, "commit", "-q", "-F", "../message"]);
        contains(&repo.git(&["cat-file", "commit", "HEAD"]), &format!("encoding {encoding}"));
        contains(&show(&repo, "HEAD").unwrap(), &format!("    {expected}\n"));
        contains(&log(&repo), &format!("Message: {expected}\n"));
    }
}

#[test]
fn an_author_is_read_in_the_encoding_of_the_commit() {
    let home = Home::new();
    let repo = home.repository("r", &[]);
    let tree = repo.git(&["rev-parse", "HEAD^{tree}"]);
    let commit = |encoding: &str| {
        let mut text = format!("tree {tree}\nauthor Ren").into_bytes();
        text.extend(b"\xe9 <r@example.org> 1700000000 +0000\ncommitter R <r@example.org> 1700000000 +0000\n");
        text.extend(format!("encoding {encoding}\n\n").into_bytes());
        text.extend(b"\xe9t\xe9\n");
        fs::write(home.0.join("commit"), text).unwrap();
        repo.git(&["hash-object", "-t", "commit", "-w", "../commit"])
    };
    let latin = show(&repo, &commit("latin1")).unwrap();
    contains(&latin, "Author: René <r@example.org>");
    contains(&latin, "    été\n");
    let odd = show(&repo, &commit("x-curled")).unwrap();
    contains(&odd, "    \u{fffd}t\u{fffd}\n");
    contains(&odd, "in the encoding x-curled, which is not known here");
}

#[test]
fn a_missing_object_is_said_and_not_left_out() {
    let home = Home::new();
    let repo = branched(&home);
    let tree = repo.git(&["rev-parse", "HEAD~1^{tree}"]);
    let (folder, file) = tree.split_at(2);
    fs::remove_file(repo.at.join(".git/objects").join(folder).join(file)).unwrap();
    contains(&failure(show(&repo, "HEAD")), &format!("the object {tree} is not in this repository"));
    let commit = repo.git(&["rev-parse", "HEAD~1"]);
    let (folder, file) = commit.split_at(2);
    fs::remove_file(repo.at.join(".git/objects").join(folder).join(file)).unwrap();
    assert!(crate::history::log(&repo.place().repo, -1, None, None).is_err());
}
