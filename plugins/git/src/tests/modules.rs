//! Submodules and other repositories in the work tree.

use super::*;

/// A repository with the submodule `lib`.
fn outer(home: &Home) -> Repo {
    home.repository("inner", &[]);
    let outer = home.repository("outer", &[]);
    outer.git(&["submodule", "--quiet", "add", "../inner", "lib"]);
    outer.commit("a submodule");
    for repo in [&outer, &outer.at("lib")] {
        repo.git(&["config", "user.name", "Ann"]);
        repo.git(&["config", "user.email", "ann@example.org"]);
    }
    outer
}

#[test]
fn a_submodule_stays_when_everything_is_added() {
    let home = Home::new();
    let outer = outer(&home);
    let before = outer.git(&["ls-files", "-s"]);
    contains(&outer.add(&["."]).unwrap(), "No changes were staged");
    outer.write("a.txt", "two\n");
    assert_eq!(outer.add(&["."]).unwrap(), "Files staged successfully");
    let after = outer.git(&["ls-files", "-s", "lib", ".gitmodules"]);
    assert!(after.lines().count() == 2 && after.lines().all(|line| before.contains(line)), "{after}");
    outer.same_status();
}

#[test]
fn a_submodule_with_a_new_commit_is_told_and_staged() {
    let home = Home::new();
    let outer = outer(&home);
    outer.at("lib").write("a.txt", "two\n");
    outer.at("lib").commit("second");
    contains(&outer.status(), "modified:   lib (new commits)");
    outer.same_status();
    assert_eq!(outer.unstaged(), outer.git(&["diff"]));
    assert_eq!(outer.diff("HEAD").unwrap().trim_end(), outer.git(&["diff", "HEAD"]));
    assert_eq!(outer.add(&["lib"]).unwrap(), "Files staged successfully");
    contains(&outer.git(&["ls-files", "-s", "lib"]), &outer.at("lib").git(&["rev-parse", "HEAD"]));
    outer.same_status();
    contains(&outer.committed("moved").unwrap(), "Changes committed successfully");
    outer.same_status();
    assert_eq!(outer.git(&["fsck", "--strict"]), "");
}

#[test]
fn changes_inside_a_submodule_are_told() {
    let home = Home::new();
    let outer = outer(&home);
    outer.at("lib").write("new", "new\n");
    contains(&outer.status(), "lib (untracked content)");
    outer.same_status();
    assert_eq!(outer.unstaged(), outer.git(&["diff"]));
    outer.at("lib").write("a.txt", "changed\n");
    contains(&outer.status(), "lib (modified content, untracked content)");
    outer.same_status();
    assert_eq!(outer.unstaged(), outer.git(&["diff"]));
    outer.at("lib").commit("both");
    outer.at("lib").write("a.txt", "again\n");
    outer.same_status();
    assert_eq!(outer.unstaged(), outer.git(&["diff"]));
}

#[test]
fn the_settings_that_ignore_submodules_apply() {
    let home = Home::new();
    let outer = outer(&home);
    outer.at("lib").write("a.txt", "two\n");
    outer.at("lib").commit("second");
    outer.at("lib").write("a.txt", "three\n");
    outer.at("lib").write("new", "new\n");
    for value in ["all", "dirty", "untracked", "none"] {
        outer.git(&["config", "-f", ".gitmodules", "submodule.lib.ignore", value]);
        outer.same_status();
    }
    // The config comes before .gitmodules, and the setting for all submodules after it.
    outer.git(&["config", "submodule.lib.ignore", "untracked"]);
    outer.same_status();
    outer.git(&["config", "--unset", "submodule.lib.ignore"]);
    outer.git(&["config", "-f", ".gitmodules", "--unset", "submodule.lib.ignore"]);
    outer.git(&["config", "diff.ignoreSubmodules", "dirty"]);
    outer.same_status();
}

#[test]
fn a_submodule_without_its_files_is_unchanged_and_one_that_is_gone_is_deleted() {
    let home = Home::new();
    let outer = outer(&home);
    outer.git(&["submodule", "deinit", "-q", "-f", "lib"]);
    outer.same_status();
    contains(&outer.add(&["."]).unwrap(), "No changes were staged");
    fs::remove_dir(outer.at.join("lib")).unwrap();
    contains(&outer.status(), "deleted:    lib");
    outer.same_status();
    outer.write("lib", "a file\n");
    contains(&outer.status(), "typechange: lib");
    outer.same_status();
    assert_eq!(outer.unstaged(), outer.git(&["diff"]));
    outer.add(&["."]).unwrap();
    outer.same_status();
    contains(&outer.git(&["ls-files", "-s", "lib"]), "100644");
}

#[test]
fn a_submodule_in_a_submodule_is_looked_into() {
    let home = Home::new();
    let outer = outer(&home);
    let lib = outer.at("lib");
    lib.git(&["submodule", "--quiet", "add", "../inner", "deep"]);
    lib.commit("deeper");
    outer.commit("deeper");
    outer.same_status();
    outer.at("lib/deep").write("new", "new\n");
    contains(&outer.status(), "lib (untracked content)");
    outer.same_status();
    outer.at("lib/deep").write("a.txt", "changed\n");
    contains(&outer.status(), "lib (modified content, untracked content)");
    outer.same_status();
}

#[test]
fn a_file_of_a_submodule_is_not_added_to_the_repository_around_it() {
    let home = Home::new();
    let outer = outer(&home);
    outer.at("lib").write("a.txt", "two\n");
    contains(&failure(outer.add(&["lib/a.txt"])), "Pathspec 'lib/a.txt' is in submodule 'lib'");
    assert_eq!(outer.at("lib").add(&["a.txt"]).unwrap(), "Files staged successfully");
    outer.same_status();
}

#[test]
fn another_repository_is_added_as_its_commit_and_said() {
    let home = Home::new();
    let outer = home.repository("outer", &[]);
    fs::create_dir_all(outer.at.join("empty")).unwrap();
    outer.at("empty").git(&["init", "-q"]);
    outer.same_status();
    contains(&failure(outer.add(&["."])), "'empty/' does not have a commit checked out");
    fs::remove_dir_all(outer.at.join("empty")).unwrap();
    let other = Home(outer.at.join("other"));
    fs::create_dir_all(&other.0).unwrap();
    let nested = other.repository("nested", &[]);
    contains(&outer.add(&["."]).unwrap(), "warning: adding embedded git repository: other/nested");
    let expected = format!("160000 {} 0\tother/nested", nested.git(&["rev-parse", "HEAD"]));
    assert_eq!(outer.git(&["ls-files", "-s", "other"]), expected);
    outer.same_status();
}

#[test]
fn a_submodule_that_cannot_be_opened_is_named_as_not_compared() {
    let home = Home::new();
    let outer = outer(&home);
    outer.write("a.txt", "two\n");
    outer.write("lib/.git", "gitdir: /nowhere/lib\n");
    let status = outer.status();
    contains(&status, "modified:   a.txt");
    contains(
        &status,
        "Not compared:\n\tlib: the submodule cannot be looked at: the repository itself lies in /nowhere/lib",
    );
    contains(&outer.unstaged(), "Not compared:\n\tlib: ");
    contains(&outer.add(&["."]).unwrap(), "Not staged, even if changed:\n\tlib: ");
    contains(&outer.git(&["ls-files", "-s", "lib"]), "160000");
}

#[test]
fn a_submodule_is_shown_as_one() {
    let home = Home::new();
    let outer = outer(&home);
    let commit = outer.at("lib").git(&["rev-parse", "HEAD"]);
    let show = |text: &str| crate::history::show(&outer.place().repo, text).unwrap();
    contains(&show("HEAD:lib"), &format!("lib is a submodule at the commit {commit}"));
    contains(&show("HEAD"), &format!("+Subproject commit {commit}"));
}

#[test]
fn a_checkout_says_that_a_submodule_keeps_its_files() {
    let home = Home::new();
    let outer = outer(&home);
    outer.git(&["branch", "before", "HEAD~1"]);
    outer.git(&["branch", "with"]);
    outer.git(&["checkout", "-q", "before"]);
    fs::remove_dir_all(outer.at.join("lib")).unwrap();
    contains(&crate::checkout::checkout(&outer.place(), "with").unwrap(), "lib is a submodule");
    outer.same_status();
    outer.git(&["checkout", "-q", "before"]);
    outer.write("lib", "mine\n");
    let refused = failure(crate::checkout::checkout(&outer.place(), "with"));
    contains(&refused, "would be overwritten by checkout:\n\tlib");
    assert_eq!(fs::read(outer.at.join("lib")).unwrap(), b"mine\n");
}
