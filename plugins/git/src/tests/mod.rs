//! Tests of the tools in repositories that git made, and with what git says about them.

mod ancestry;
mod edits;
mod formats;
mod history;
mod modules;
mod names;
mod states;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::atomic::{AtomicUsize, Ordering},
};

use wharf_sdk::{Directory, Error, Result};

use crate::{
    changes, checkout, edit, identity,
    open::{self, Place},
    patch,
    revision::{Compared, compared as parsed},
    side, status,
    work::{Unknown, compared},
};

/// A folder that is open to the plugin. It is removed at the end.
struct Home(PathBuf);

impl Home {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("wharf-git-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let home = env::temp_dir().canonicalize().unwrap().join(name);
        fs::create_dir(&home).unwrap();
        Self(home)
    }

    /// Makes a repository with one commit: the file a.txt.
    fn repository(&self, name: &str, options: &[&str]) -> Repo {
        let repo = self.empty(name, options);
        repo.write("a.txt", "one\n");
        repo.commit("first");
        repo
    }

    fn empty(&self, name: &str, options: &[&str]) -> Repo {
        let at = self.0.join(name);
        fs::create_dir(&at).unwrap();
        let repo = Repo { at, open: self.0.clone() };
        repo.git(&[&["init", "-q", "-b", "main"], options, &["."]].concat());
        repo.git(&["config", "user.name", "Ann"]);
        repo.git(&["config", "user.email", "ann@example.org"]);
        repo
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

#[derive(Clone)]
struct Repo {
    at: PathBuf,
    open: PathBuf,
}

impl Repo {
    fn run(&self, args: &[&str]) -> Output {
        let mut git = Command::new("git");
        git.args(args).current_dir(&self.at).env_clear().env("PATH", env::var_os("PATH").unwrap());
        for (name, value) in [
            ("HOME", "/nonexistent"),
            ("LC_ALL", "C"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_EDITOR", "true"),
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "protocol.file.allow"),
            ("GIT_CONFIG_VALUE_0", "always"),
            ("GIT_AUTHOR_DATE", "1700000000 +0130"),
            ("GIT_COMMITTER_DATE", "1700000000 +0130"),
        ] {
            git.env(name, value);
        }
        git.output().expect("git has to be installed for the tests of this plugin")
    }

    /// Runs git, which must succeed, and returns what it prints.
    fn git(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned()
    }

    /// Runs git, which stops with a conflict or an error.
    fn stops(&self, args: &[&str]) {
        assert!(!self.run(args).status.success(), "git {args:?} was expected to stop");
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let file = self.at.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
    }

    fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
    }

    /// Another folder, with the same folder open.
    fn at(&self, folder: impl AsRef<Path>) -> Self {
        Self { at: self.at.join(folder), open: self.open.clone() }
    }

    fn open(&self) -> Result<Place> {
        self.open_with("{}")
    }

    fn open_with(&self, config: &str) -> Result<Place> {
        let folder = Directory { path: self.open.to_str().unwrap().to_owned(), writable: true };
        open::place(self.at.to_str().unwrap(), open::Open { folders: vec![folder], config: config.to_owned() })
    }

    fn place(&self) -> Place {
        self.open().unwrap()
    }

    fn status(&self) -> String {
        status::text(&self.place()).unwrap()
    }

    /// Checks that the status is what git says.
    #[track_caller]
    fn same_status(&self) {
        assert_eq!(self.status().trim_end(), self.git(&["status"]));
    }

    fn patch(&self, sides: [side::Side; 2], unknown: &Unknown) -> String {
        crate::differences("", &self.place().repo, None, sides, 3, unknown)
            .unwrap()
            .trim_start_matches(":\n")
            .to_owned()
    }

    fn unstaged(&self) -> String {
        let place = self.place();
        let index = side::index(&place.repo).unwrap();
        let (work, unknown) = crate::work_tree(&place, &index).unwrap();
        self.patch([side::of_index_beside(&index, &work), work], &unknown)
    }

    /// Compares what a text names.
    fn diff(&self, target: &str) -> Result<String> {
        let place = self.place();
        let of = |tree| side::of_tree(&place.repo, tree);
        let mut unknown = Unknown::default();
        let sides = match parsed(&place.repo, target)? {
            Compared::Trees(old, new) => [of(old)?, of(Some(new))?],
            Compared::WithWork(tree) => {
                let index = side::index(&place.repo)?;
                let (work, missed) = crate::work_tree(&place, &index)?;
                unknown = missed;
                [of(Some(tree))?, work]
            }
        };
        let [old, new] = compared(sides, &unknown);
        patch::text(&place.repo, &changes::between(&place.repo, &old, &new)?, 3)
    }

    fn add(&self, files: &[&str]) -> Result<String> {
        edit::add(&self.place(), &files.iter().map(|file| (*file).to_owned()).collect::<Vec<_>>())
    }

    fn committed(&self, message: &str) -> Result<String> {
        let repo = self.place().repo;
        edit::commit(&repo, message, &identity::author(&repo, "{}")?)
    }

    fn checkout(&self, name: &str) -> Result<String> {
        let place = self.place();
        checkout::checkout(&place, name, &identity::author(&place.repo, "{}")?)
    }

    fn create_branch(&self, name: &str, base: Option<&str>) -> Result<String> {
        let repo = self.place().repo;
        edit::create_branch(&repo, name, base, &identity::author(&repo, "{}")?)
    }
}

/// Returns the message of a failure.
#[track_caller]
fn failure<T>(result: Result<T>) -> String {
    match result {
        Err(error @ Error::Failed(_)) => open::words(error),
        Err(_) => panic!("a failure of another kind"),
        Ok(_) => panic!("a failure was expected"),
    }
}

#[track_caller]
fn contains(text: &str, part: &str) {
    assert!(text.contains(part), "{part:?} is missing in: {text}");
}
