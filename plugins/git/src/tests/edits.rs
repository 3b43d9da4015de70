//! What changes the repository: what is said of a commit, and what is refused.

use super::*;

#[test]
fn hooks_that_were_not_run_are_named() {
    let home = Home::new();
    let repo = home.repository("r", &[]);
    let commit = |content: &str| {
        repo.write("a.txt", content);
        repo.git(&["add", "a.txt"]);
        repo.committed(content).unwrap()
    };
    assert_eq!(commit("1").lines().count(), 1);
    repo.write(".git/hooks/pre-commit", "#!/bin/sh\nexit 1\n");
    contains(&commit("2"), "\nHooks of the repository were not run: pre-commit");
    repo.write(".husky/commit-msg", "#!/bin/sh\nexit 1\n");
    repo.git(&["config", "core.hooksPath", ".husky"]);
    let said = commit("3");
    assert!(said.ends_with("\nHooks of the repository were not run: commit-msg"), "{said}");
    repo.git(&["config", "core.hooksPath", ".nothing"]);
    assert_eq!(commit("4").lines().count(), 1);
    for elsewhere in ["~/hooks", "/nowhere/hooks"] {
        repo.git(&["config", "core.hooksPath", elsewhere]);
        contains(
            &commit(elsewhere),
            &format!("Hooks were not run: core.hooksPath is {elsewhere}, which this server cannot"),
        );
    }
    repo.git(&["config", "--unset", "core.hooksPath"]);
    fs::remove_file(repo.at.join(".git/hooks/pre-commit")).unwrap();
    repo.git(&["config", "hook.lint.event", "pre-commit"]);
    contains(&commit("5"), "\nHooks of the repository's config were not run: lint");
}

#[test]
fn a_checkout_names_its_hook() {
    let home = Home::new();
    let repo = home.repository("r", &[]);
    repo.git(&["branch", "other"]);
    repo.write(".git/hooks/post-checkout", "#!/bin/sh\n");
    let said = repo.checkout("other").unwrap();
    assert_eq!(said, "Switched to branch 'other'\nHooks of the repository were not run: post-checkout");
}

#[test]
fn a_commit_that_should_be_signed_says_that_it_is_not() {
    let home = Home::new();
    let repo = home.repository("r", &[]);
    repo.git(&["config", "commit.gpgSign", "true"]);
    repo.write("a.txt", "two\n");
    repo.git(&["add", "a.txt"]);
    contains(&repo.committed("two").unwrap(), "\nThe commit is not signed: commit.gpgSign is set");
    repo.git(&["config", "commit.gpgSign", "false"]);
    // What cannot be read could say so, too.
    repo.git(&["config", "include.path", "~/shared"]);
    repo.git(&["config", "--add", "include.path", "nothing"]);
    repo.write("a.txt", "three\n");
    repo.add(&["a.txt"]).unwrap();
    let said = repo.committed("three").unwrap();
    assert!(said.ends_with("could not be read, and what they say was not followed: ~/shared"), "{said}");
    assert!(!said.contains("not signed"), "{said}");
}

#[test]
fn what_the_config_of_a_repository_includes_is_a_part_of_it() {
    let home = Home::new();
    let repo = home.repository("r", &[]);
    repo.write(".git/shared", "[user]\nname = Cat\nemail = cat@example.org\n[commit]\ngpgSign = true\n");
    for key in ["user.name", "user.email"] {
        repo.git(&["config", "--unset", key]);
    }
    repo.write("a.txt", "two\n");
    repo.add(&["a.txt"]).unwrap();
    repo.git(&["config", "includeIf.gitdir:~/projects/.path", "shared"]);
    let refused = failure(repo.committed("two"));
    contains(&refused, "no author is configured");
    contains(&refused, "\nFiles that the repository's config includes could not be read");
    repo.git(&["config", "include.path", "shared"]);
    contains(&repo.committed("two").unwrap(), "\nThe commit is not signed: commit.gpgSign is set");
    assert_eq!(repo.git(&["log", "-1", "--format=%an %ae"]), "Cat cat@example.org");
}

#[test]
fn a_branch_and_a_folder_of_branches_cannot_have_one_name() {
    let home = Home::new();
    let repo = home.repository("r", &[]);
    let create = |name: &str| repo.create_branch(name, None);
    create("docs").unwrap();
    let refused = "cannot lock ref 'refs/heads/docs/x': 'refs/heads/docs' exists; cannot create 'refs/heads/docs/x'";
    assert_eq!(failure(create("docs/x")), refused);
    // Also if the branch is not a file of its own.
    repo.git(&["pack-refs", "--all"]);
    assert_eq!(failure(create("docs/x")), refused);
    repo.git(&["branch", "-D", "docs"]);
    create("docs/x/y").unwrap();
    contains(&failure(create("docs")), "'refs/heads/docs/x/y' exists; cannot create 'refs/heads/docs'");
    // What is left of branches that are gone is not in the way.
    repo.git(&["pack-refs", "--all"]);
    repo.git(&["branch", "-D", "docs/x/y"]);
    fs::create_dir_all(repo.at.join(".git/refs/heads/docs/x")).unwrap();
    create("docs").unwrap();
    assert_eq!(repo.git(&["rev-parse", "docs"]), repo.git(&["rev-parse", "main"]));
    assert_eq!(failure(create("a b")), "'a b' is not a valid branch name");
}

#[test]
fn a_commit_and_a_checkout_with_conflicts_are_refused() {
    let home = Home::new();
    let repo = home.repository("r", &[]);
    repo.git(&["checkout", "-q", "-b", "side"]);
    repo.write("a.txt", "side\n");
    repo.commit("side");
    repo.git(&["checkout", "-q", "main"]);
    repo.write("a.txt", "main\n");
    repo.commit("main");
    repo.stops(&["merge", "side"]);
    contains(&failure(repo.committed("early")), "because you have unmerged files");
    contains(&failure(repo.checkout("side")), "because you have unmerged files");
    repo.write("a.txt", "both\n");
    repo.add(&["."]).unwrap();
    repo.same_status();
    repo.committed("both").unwrap();
    repo.same_status();
    assert_eq!(repo.git(&["rev-parse", "HEAD^2"]), repo.git(&["rev-parse", "side"]));
}

#[test]
fn a_checkout_loses_no_file_of_a_folder_in_the_way() {
    let home = Home::new();
    let repo = home.repository("r", &[]);
    repo.git(&["branch", "before"]);
    repo.write("x", "a file\n");
    repo.write("b.txt", "b\n");
    repo.commit("x");
    repo.git(&["branch", "after"]);
    repo.git(&["checkout", "-q", "before"]);
    repo.write("x/mine", "mine\n");
    let refused = failure(repo.checkout("after"));
    contains(&refused, "Updating the following directories would lose untracked files in them:\n\tx");
    assert!(!repo.at.join("b.txt").exists());
    fs::remove_file(repo.at.join("x/mine")).unwrap();
    repo.checkout("after").unwrap();
    assert_eq!(fs::read(repo.at.join("x")).unwrap(), b"a file\n");
    repo.same_status();
}

#[test]
fn an_ignored_file_and_a_missing_one_are_not_added() {
    let home = Home::new();
    let repo = home.repository("r", &[]);
    repo.write(".gitignore", "*.log\n");
    repo.write("x.log", "x\n");
    contains(&failure(repo.add(&["x.log"])), "The following paths are ignored by one of your .gitignore files:\nx.log");
    contains(&failure(repo.add(&["nothing"])), "pathspec 'nothing' did not match any files");
    contains(&failure(repo.add(&["../x"])), "Path '../x' is outside the repository");
}

#[test]
fn new_scripts_are_said_to_be_staged_as_not_executable() {
    let home = Home::new();
    let repo = home.repository("r", &[]);
    repo.write("run.sh", "#!/bin/sh\n");
    repo.write("more.sh", "#!/bin/sh\n");
    contains(&repo.add(&["."]).unwrap(), "new scripts are staged as not executable (more.sh and 1 more)");
    repo.write("run.sh", "#!/bin/bash\n");
    assert_eq!(repo.add(&["."]).unwrap(), "Files staged successfully");
}

#[test]
fn what_the_person_ignores_everywhere_is_not_added() {
    let home = Home::new();
    let repo = home.repository("r", &[]);
    let ignored = home.0.join("ignored");
    let patterns = ".env\nbuild/\n*.tmp\n!kept.tmp\n/only\n";
    fs::write(&ignored, patterns).unwrap();
    repo.write(".gitignore", "!back.tmp\n");
    repo.write("tracked/build/x", "x\n");
    repo.commit("tracked");
    for name in [
        "a/.env",
        "b/.env",
        "b/new",
        "build/y",
        "tracked/build/new",
        "back.tmp",
        "kept.tmp",
        "c/x.tmp",
        "only",
        "d/only",
    ] {
        repo.write(name, "new\n");
    }
    let person = format!(r#"{{"person": {{"ignored": {patterns:?}}}}}"#);
    let place = || repo.open_with(&person).unwrap();
    let setting = format!("core.excludesFile={}", ignored.display());
    let said = status::text(&place()).unwrap();
    assert_eq!(said.trim_end(), repo.git(&["-c", &setting, "status"]));
    let add = |files: &[&str]| edit::add(&place(), &files.iter().map(|file| (*file).to_owned()).collect::<Vec<_>>());
    contains(&failure(add(&["a/.env"])), "The following paths are ignored by one of your .gitignore files:\na/.env");
    add(&["."]).unwrap();
    let staged = repo.git(&["diff", "--cached", "--name-only"]);
    repo.git(&["reset", "-q"]);
    repo.git(&["-c", &setting, "add", "."]);
    assert_eq!(staged, repo.git(&["diff", "--cached", "--name-only"]));
    assert_eq!(staged, "b/new\nback.tmp\nd/only\nkept.tmp");
    repo.git(&["reset", "-q"]);
    // A repository that names a file of its own.
    repo.git(&["config", "core.excludesFile", ""]);
    contains(&status::text(&place()).unwrap(), "\ta/\n");
}

#[test]
fn a_reset_forgets_what_was_only_announced() {
    let home = Home::new();
    let repo = home.repository("r", &[]);
    repo.write("announced", "text\n");
    repo.git(&["add", "--intent-to-add", "announced"]);
    repo.write("a.txt", "two\n");
    repo.git(&["add", "a.txt"]);
    crate::edit::reset(&repo.place().repo).unwrap();
    assert_eq!(repo.git(&["status", "--porcelain"]), "M a.txt\n?? announced".replacen("M", " M", 1));
    repo.same_status();
}

#[test]
fn a_merge_that_cannot_be_read_is_not_committed_without_it() {
    let home = Home::new();
    let repo = home.repository("r", &[]);
    repo.write("a.txt", "two\n");
    repo.git(&["add", "-A"]);
    fs::create_dir(repo.at.join(".git/MERGE_HEAD")).unwrap();
    contains(&failure(repo.committed("two")), "MERGE_HEAD cannot be read: ");
    assert_eq!(repo.git(&["log", "--format=%s"]), "first");
}

#[test]
fn the_author_is_the_first_who_is_named() {
    let home = Home::new();
    let repo = home.repository("r", &[]);
    let author = |config: &str| {
        let author = identity::author(&repo.place().repo, config).unwrap();
        [author.name, author.email].map(Option::unwrap_or_default).join(" ")
    };
    let own = r#""own": {"name": "Cat", "email": "cat@example.org"}"#;
    assert_eq!(author(&format!(r#"{{"person": {{{own}}}}}"#)), "Ann ann@example.org");
    let environment = r#""environment": {"name": "Ben"}"#;
    assert_eq!(author(&format!(r#"{{"person": {{{environment}, {own}}}}}"#)), "Ben ann@example.org");
    assert_eq!(author(&format!(r#"{{"name": "Dan", "person": {{{environment}}}}}"#)), "Dan ann@example.org");
    repo.git(&["config", "--unset", "user.email"]);
    assert_eq!(author(&format!(r#"{{"person": {{{own}}}}}"#)), "Ann cat@example.org");
    contains(&failure(repo.committed("second")), "No changes staged for commit");
    repo.write("a.txt", "two\n");
    repo.git(&["add", "-A"]);
    contains(&failure(repo.committed("second")), "no author is configured");
    contains(
        &failure(identity::author(&repo.place().repo, r#"{"nam": "Dan"}"#)),
        "the config of the plugin git is wrong: ",
    );
}
