//! What is in progress in a repository, and the rest of `git status` and `git branch`.

use super::*;

/// A repository whose branches `main` and `topic` both have the file f2, with other contents.
fn history(home: &Home) -> Repo {
    let repo = home.repository("r", &[]);
    for name in ["f1", "f2", "f3"] {
        repo.write(name, format!("{name}\n"));
        repo.commit(name);
    }
    repo.git(&["checkout", "-q", "-b", "topic", "HEAD~2"]);
    repo.write("f2", "topic\n");
    repo.commit("topic f2");
    repo.write("u", "u\n");
    repo.commit("topic u");
    repo
}

fn branches(repo: &Repo) -> String {
    crate::history::branches(&repo.place().repo, "local", None, None).unwrap()
}

/// Checks that status and branches are what git says, and that the status has a text.
#[track_caller]
fn same(repo: &Repo, part: &str) {
    contains(&repo.status(), part);
    repo.same_status();
    assert_eq!(branches(repo), repo.git(&["branch"]));
}

#[test]
fn a_merge_is_told() {
    let home = Home::new();
    let repo = history(&home);
    repo.stops(&["merge", "main"]);
    same(&repo, "You have unmerged paths.");
    repo.write("f2", "both\n");
    repo.git(&["add", "f2"]);
    same(&repo, "All conflicts fixed but you are still merging.");
    repo.git(&["checkout", "topic", "--", "f2"]);
    repo.git(&["rm", "-q", "--cached", "f3"]);
    repo.git(&["add", "f3"]);
    same(&repo, "still merging");
}

#[test]
fn a_rebase_is_told() {
    let home = Home::new();
    let repo = history(&home);
    repo.stops(&["rebase", "-q", "main"]);
    same(&repo, "You are currently rebasing branch 'topic' on '");
    repo.write("f2", "both\n");
    repo.git(&["add", "f2"]);
    same(&repo, "(all conflicts fixed: run \"git rebase --continue\")");
    repo.git(&["rebase", "--abort"]);
    repo.stops(&["rebase", "-q", "--apply", "main"]);
    same(&repo, "rebase in progress; onto ");
}

#[test]
fn an_interactive_rebase_is_told() {
    let home = Home::new();
    let repo = history(&home);
    for name in ["g1", "g2", "g3"] {
        repo.write("g", name);
        repo.commit(name);
    }
    let edit = |line: usize| {
        let editor = format!("sequence.editor=sed -i -e '{line}s/^pick/edit/'");
        repo.git(&["-c", &editor, "rebase", "-q", "-i", "HEAD~4"]);
    };
    edit(1);
    same(&repo, "You are currently editing a commit while rebasing branch 'topic' on '");
    repo.write("u", "changed\n");
    same(&repo, "You are currently editing a commit");
    repo.git(&["add", "u"]);
    same(&repo, "You are currently editing a commit");
    repo.git(&["reset", "-q", "--hard"]);
    repo.git(&["rebase", "--abort"]);
    edit(3);
    repo.git(&["reset", "-q", "HEAD~1"]);
    same(&repo, "You are currently splitting a commit");
    contains(&repo.status(), "(see more in file .git/rebase-merge/done)");
    repo.git(&["reset", "-q", "--hard"]);
    repo.git(&["rebase", "--abort"]);
    edit(4);
    same(&repo, "No commands remaining.");
}

#[test]
fn a_cherry_pick_and_a_revert_are_told() {
    let home = Home::new();
    let repo = history(&home);
    repo.git(&["checkout", "-q", "main"]);
    repo.stops(&["cherry-pick", "topic~1", "topic"]);
    same(&repo, "You are currently cherry-picking commit ");
    repo.write("f2", "both\n");
    repo.git(&["add", "f2"]);
    same(&repo, "(all conflicts fixed: run \"git cherry-pick --continue\")");
    repo.git(&["commit", "-q", "-m", "picked"]);
    same(&repo, "Cherry-pick currently in progress.");
    // HEAD has moved, so git does not take the commit back.
    repo.git(&["cherry-pick", "--abort"]);
    repo.write("f2", "again\n");
    repo.commit("again");
    repo.stops(&["revert", "--no-edit", "HEAD~3"]);
    same(&repo, "You are currently reverting commit ");
    contains(&repo.status(), "(use \"git add/rm <file>...\" as appropriate to mark resolution)");
    repo.git(&["add", "f2"]);
    same(&repo, "(all conflicts fixed: run \"git revert --continue\")");
}

#[test]
fn a_bisection_and_a_series_of_patches_are_told() {
    let home = Home::new();
    let repo = history(&home);
    let patch = repo.git(&["format-patch", "-q", "-1", "topic~1", "--stdout"]);
    repo.git(&["checkout", "-q", "main"]);
    fs::write(home.0.join("patch"), patch).unwrap();
    repo.stops(&["am", "../patch"]);
    same(&repo, "You are in the middle of an am session.");
    repo.git(&["am", "--abort"]);
    repo.git(&["bisect", "start", "HEAD", "HEAD~3"]);
    same(&repo, "You are currently bisecting, started from branch 'main'.");
}

#[test]
fn a_sparse_checkout_is_told() {
    let home = Home::new();
    let repo = history(&home);
    repo.write("d/1", "1\n");
    repo.commit("d");
    repo.git(&["sparse-checkout", "set", "--no-cone", "d"]);
    same(&repo, "You are in a sparse checkout with ");
}

#[test]
fn what_a_sparse_checkout_leaves_out_is_not_deleted() {
    for index in ["--no-sparse-index", "--sparse-index"] {
        let home = Home::new();
        let repo = history(&home);
        for name in ["d/1", "e/1", "e/in/1"] {
            repo.write(name, "1\n");
        }
        repo.commit("folders");
        repo.git(&["checkout", "-q", "-b", "other"]);
        for name in ["d/1", "e/1", "f2"] {
            repo.write(name, "other\n");
        }
        repo.commit("other");
        repo.git(&["checkout", "-q", "topic"]);
        repo.git(&["sparse-checkout", "set", "--cone", index, "d"]);
        let left_out = || repo.git(&["ls-files", "-t", "e"]);
        let expected = "S e/1\nS e/in/1";
        assert_eq!(left_out(), expected);
        repo.same_status();
        repo.write("d/2", "2\n");
        repo.add(&["."]).unwrap();
        assert_eq!(repo.git(&["status", "--porcelain"]), "A  d/2");
        repo.same_status();
        contains(&repo.add(&["e/1"]).unwrap(), "No changes were staged");
        repo.committed("d/2").unwrap();
        assert_eq!(repo.git(&["diff", "--name-status", "HEAD~1"]), "A\td/2");
        // They stay out of the work tree when another commit has others.
        repo.git(&["reset", "-q", "--soft", "other"]);
        crate::edit::reset(&repo.place().repo).unwrap();
        assert_eq!(left_out(), expected);
        repo.git(&["checkout", "-q", "-f", "topic"]);
        repo.checkout("other").unwrap();
        assert_eq!(left_out(), expected);
        repo.same_status();
        assert!(!repo.at.join("e").exists());
        // One that is there nevertheless counts.
        repo.write("e/1", "mine\n");
        repo.same_status();
        contains(&repo.status(), "modified:   e/1");
        contains(&failure(repo.checkout("main")), "e/1");
    }
}

#[test]
fn a_head_on_no_branch_is_told() {
    let home = Home::new();
    let repo = history(&home);
    repo.git(&["checkout", "-q", "HEAD~1"]);
    same(&repo, "HEAD detached at ");
    repo.write("x", "x\n");
    repo.commit("x");
    same(&repo, "HEAD detached from ");
    repo.git(&["tag", "v1"]);
    repo.git(&["checkout", "-q", "main"]);
    repo.git(&["checkout", "-q", "v1"]);
    same(&repo, "HEAD detached at v1");
}

#[test]
fn every_kind_of_change_is_told() {
    let home = Home::new();
    let repo = history(&home);
    repo.git(&["mv", "f1", "moved"]);
    repo.git(&["rm", "-q", "u"]);
    fs::remove_file(repo.at.join("a.txt")).unwrap();
    fs::remove_file(repo.at.join("f2")).unwrap();
    std::os::unix::fs::symlink("moved", repo.at.join("f2")).unwrap();
    repo.write("new/one", "1\n");
    repo.write("announced", "text\n");
    repo.git(&["add", "--intent-to-add", "announced"]);
    for part in
        ["renamed:    f1 -> moved", "deleted:    u", "deleted:    a.txt", "typechange: f2", "new file:   announced"]
    {
        same(&repo, part);
    }
    contains(&repo.status(), "\tnew/\n");
    assert_eq!(repo.unstaged(), repo.git(&["diff"]));
    // What is only announced is not committed.
    repo.committed("without it").unwrap();
    assert_eq!(repo.git(&["ls-tree", "HEAD", "announced"]), "");
    fs::remove_file(repo.at.join("announced")).unwrap();
    same(&repo, "deleted:    announced");
}

#[test]
fn a_branch_of_another_work_tree_is_marked_and_not_checked_out() {
    let home = Home::new();
    let repo = history(&home);
    repo.git(&["worktree", "add", "-q", "../second", "main"]);
    assert_eq!(branches(&repo), repo.git(&["branch"]));
    let refused = failure(repo.checkout("main"));
    assert_eq!(refused, format!("'main' is already used by worktree at '{}'", home.0.join("second").display()));
    let second = repo.at("../second");
    assert_eq!(branches(&second), second.git(&["branch"]));
    contains(&failure(second.checkout("topic")), "is already used by worktree at '");
    second.same_status();
}

#[test]
fn a_broken_branch_is_said() {
    let home = Home::new();
    let repo = history(&home);
    repo.write(".git/refs/heads/odd", "not an id\n");
    let said = branches(&repo);
    contains(&said, "* topic");
    contains(&said, "Not shown, because they are broken:\n\t");
    contains(&said, "odd");
    contains(&failure(repo.checkout("odd")), "refs/heads/odd cannot be read: ");
    contains(&failure(repo.create_branch("new", Some("odd"))), "refs/heads/odd cannot be read: ");
    contains(&failure(repo.create_branch("new", Some("HEAD~1"))), "it is neither a branch nor a tag");
}
