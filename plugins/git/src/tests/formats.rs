//! Kinds of repositories: what is served, and what is refused with the reason.

use super::*;

#[test]
fn a_repository_with_sha256_ids_is_served() {
    let home = Home::new();
    let repo = home.repository("r", &["--object-format=sha256"]);
    repo.write("a.txt", "two\n");
    repo.write("b.txt", "new\n");
    repo.same_status();
    assert_eq!(repo.unstaged(), repo.git(&["diff"]));
    assert_eq!(repo.add(&["."]).unwrap(), "Files staged successfully");
    repo.same_status();
    contains(&repo.committed("second").unwrap(), &repo.git(&["rev-parse", "HEAD"]));
    repo.same_status();
    assert_eq!(repo.diff("HEAD~1..HEAD").unwrap().trim_end(), repo.git(&["diff", "HEAD~1..HEAD"]));
    contains(&crate::history::show(&repo.place().repo, "HEAD").unwrap(), "+two\n");
    contains(&crate::history::log(&repo.place().repo, 10, None, None).unwrap(), "Message: first");
    crate::edit::create_branch(&repo.place().repo, "other", Some("main")).unwrap();
    crate::checkout::checkout(&repo.place(), "other").unwrap();
    repo.same_status();
    repo.git(&["gc", "-q"]);
    assert_eq!(repo.git(&["fsck", "--strict"]), "");
    repo.same_status();
}

#[test]
fn a_reftable_repository_is_refused_with_the_way_out() {
    let home = Home::new();
    let repo = home.repository("r", &["--ref-format=reftable"]);
    let refused = failure(repo.open());
    contains(&refused, "in the format reftable (extensions.refStorage), which this server cannot read");
    contains(&refused, "git refs migrate --ref-format=files");
}

#[test]
fn a_format_that_is_not_known_is_refused() {
    let home = Home::new();
    let repo = home.repository("r", &[]);
    repo.git(&["config", "core.repositoryFormatVersion", "1"]);
    repo.git(&["config", "extensions.noop", "true"]);
    repo.same_status();
    repo.git(&["config", "extensions.curled", "true"]);
    contains(&failure(repo.open()), "the repository extension 'curled'");
    repo.git(&["config", "--file", ".git/config", "--unset", "extensions.curled"]);
    repo.git(&["config", "--file", ".git/config", "core.repositoryFormatVersion", "7"]);
    assert!(repo.open().is_err());
}

#[test]
fn a_shallow_clone_says_where_it_ends() {
    let home = Home::new();
    let full = home.repository("full", &[]);
    full.write("a.txt", "two\n");
    full.commit("second");
    full.write("a.txt", "three\n");
    full.commit("third");
    let source = format!("file://{}", full.at.display());
    full.git(&["clone", "-q", "--depth", "2", &source, "../shallow"]);
    let clone = full.at("../shallow");
    let repo = clone.place().repo;
    let show = |text: &str| crate::history::show(&repo, text);
    contains(&show("HEAD").unwrap(), "-two\n+three\n");
    let first = show("HEAD~1").unwrap();
    contains(&first, "+++ b/a.txt\n@@ -0,0 +1 @@\n+two\n");
    contains(&first, "This clone is shallow: it does not have the commit before this one");
    contains(&failure(show("HEAD~2")), "this clone is shallow");
    contains(&failure(clone.diff("HEAD~2")), "this clone is shallow");
    assert_eq!(clone.diff("HEAD~1").unwrap().trim_end(), clone.git(&["diff", "HEAD~1"]));
    assert_eq!(clone.diff("HEAD~1..HEAD").unwrap().trim_end(), clone.git(&["diff", "HEAD~1..HEAD"]));
    let log = crate::history::log(&repo, 10, None, None).unwrap();
    assert_eq!(log.matches("Commit: ").count(), 2);
    contains(&log, "This clone is shallow: it does not have the commits before these.");
    assert!(!crate::history::log(&repo, 1, None, None).unwrap().contains("shallow"));
    let contained = crate::history::branches(&repo, "all", Some("HEAD~1"), None).unwrap();
    assert_eq!(contained, clone.git(&["branch", "-a", "--contains", "HEAD~1"]));
    clone.same_status();
    clone.git(&["reset", "-q", "--hard", "HEAD~1"]);
    clone.same_status();
}

#[test]
fn a_partial_clone_says_that_it_lacks_an_object() {
    let home = Home::new();
    let full = home.repository("full", &[]);
    full.git(&["config", "uploadpack.allowFilter", "true"]);
    full.write("a.txt", "two\n");
    full.commit("second");
    let source = format!("file://{}", full.at.display());
    full.git(&["clone", "-q", "--filter=blob:none", &source, "../partial"]);
    let clone = full.at("../partial");
    clone.same_status();
    contains(&failure(clone.diff("HEAD~1")), "this clone is partial: git downloads missing objects");
}

#[test]
fn a_folder_of_a_repository_stands_for_it() {
    let home = Home::new();
    let repo = home.repository("r", &[]);
    repo.write("sub/deep/b.txt", "b\n");
    repo.commit("more");
    let sub = repo.at("sub/deep");
    repo.write("a.txt", "two\n");
    repo.write("sub/deep/new.txt", "new\n");
    repo.write("sub/other/x", "x\n");
    repo.git(&["mv", "sub/deep/b.txt", "moved.txt"]);
    contains(&sub.status(), "modified:   ../../a.txt");
    sub.same_status();
    repo.at("sub/other").same_status();
    assert_eq!(sub.unstaged(), sub.git(&["diff"]));
    assert_eq!(sub.add(&["."]).unwrap(), "Files staged successfully");
    sub.same_status();
    assert_eq!(sub.add(&["../../a.txt"]).unwrap(), "Files staged successfully");
    sub.same_status();
    contains(&failure(sub.add(&["a.txt"])), "pathspec 'a.txt' did not match any files");
    contains(&failure(sub.add(&["../../../x"])), "is outside the repository");
}

#[test]
fn a_folder_without_a_repository_is_said_like_in_git() {
    let home = Home::new();
    fs::create_dir(home.0.join("plain")).unwrap();
    let plain = Repo { at: home.0.join("plain"), open: home.0.clone() };
    contains(&failure(plain.open()), "is not a git repository");
    contains(&failure(plain.at("nothing").open()), "there is no such directory");
    // A repository above the open folder does not count.
    let repo = home.repository("r", &[]);
    repo.write("sub/b.txt", "b\n");
    let closed = Repo { at: repo.at.join("sub"), open: repo.at.join("sub") };
    contains(&failure(closed.open()), "is not a git repository");
}
