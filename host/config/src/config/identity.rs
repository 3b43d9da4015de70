//! The person's name and address for commits: the variables that git reads, and what git says of the person's own config. And the person's
//! own ignore file, without which `git_add` would take what git leaves alone: no plugin can read it.

use std::{
    io::Read,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, anyhow, bail};
use tokio::runtime;

use super::default_paths::{absolute, base_dirs};
use wharf_base::{
    paths::open_regular,
    program::{self, Command},
    text,
};

/// Where git may be. PATH is not searched: a folder in it may be one in which a plugin may write. /usr/bin/git of macOS is a window that
/// offers to install git; the one that it installs is here.
pub const PROGRAMS: [&str; 3] = if cfg!(target_os = "macos") {
    ["/opt/homebrew/bin/git", "/usr/local/bin/git", "/Library/Developer/CommandLineTools/usr/bin/git"]
} else {
    ["/usr/local/bin/git", "/usr/bin/git", "/run/current-system/sw/bin/git"]
};
/// The variables that tell git where the person's config is.
const VARIABLES: [&str; 5] =
    ["HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"];
/// The most bytes of a config, and how long git may take to print it.
const MAX_CONFIG_BYTES: usize = 1 << 20;
const TIMEOUT: Duration = Duration::from_secs(5);
/// The most bytes of an ignore file.
const MAX_PATTERN_BYTES: u64 = 64 << 10;

/// A name, an address, or both.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Entry {
    name: Option<String>,
    email: Option<String>,
}

/// The person's names, addresses and ignore file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// What the environment says. As in git, it counts before the config of a repository.
    environment: Entry,
    /// What the person's config says. It counts after the config of a repository.
    own: Entry,
    /// What git is to ignore in every repository.
    ignored: Option<String>,
}

impl Identity {
    /// Returns what git would find for the person who runs wharf.
    pub fn of_person() -> Self {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        let config = listed().unwrap_or_else(|problem| {
            // The plugin is not told: a config may include a file that a plugin can write, which would then learn which files exist.
            tracing::warn!(
                "your git config is not known, only GIT_AUTHOR_NAME and GIT_AUTHOR_EMAIL count: {problem:#}"
            );
            String::new()
        });
        let environment = Entry { name: variable("GIT_AUTHOR_NAME"), email: variable("GIT_AUTHOR_EMAIL") };
        let (mut own, file) = read(&config);
        // The last resort of git for an address.
        own.email = own.email.or_else(|| variable("EMAIL"));
        let usual = || base_dirs("XDG_CONFIG_HOME", ".config").next().map(|base| base.join("git/ignore"));
        let ignored = file.or_else(usual).and_then(|file| {
            patterns(&file).unwrap_or_else(|problem| {
                tracing::warn!("{}: this ignore file of git does not count: {problem:#}", text::path(&file));
                None
            })
        });
        Self { environment, own, ignored }
    }

    /// Writes it as settings of the plugin `git`.
    pub fn write(self, settings: &mut toml::Table) {
        let Self { environment, own, ignored } = self;
        let mut person = toml::Table::new();
        person.insert("environment".into(), environment.table());
        person.insert("own".into(), own.table());
        person.extend(ignored.map(|ignored| ("ignored".to_owned(), ignored.into())));
        settings.insert("person".into(), person.into());
    }
}

impl Entry {
    fn table(self) -> toml::Value {
        let Self { name, email } = self;
        let mut table = toml::Table::new();
        table.extend(name.map(|name| ("name".to_owned(), name.into())));
        table.extend(email.map(|email| ("email".to_owned(), email.into())));
        table.into()
    }
}

/// Returns the person's git config, with what it includes, as git lists it.
#[expect(clippy::disallowed_methods, reason = "only looks where git is")]
fn listed() -> Result<String> {
    let git = PROGRAMS.iter().find(|program| Path::new(program).is_file());
    let git = git.with_context(|| format!("git is at none of these places: {}", PROGRAMS.join(", ")))?;
    let list = Command::at(git, &["--git-dir=/nonexistent", "config", "--null", "--list"], &VARIABLES);
    // A config is resolved by functions that do not wait, in a runtime or without one.
    let listing = move || -> Result<String> {
        let own = runtime::Builder::new_current_thread().enable_all().build()?;
        own.block_on(program::run(&list, b"", MAX_CONFIG_BYTES, TIMEOUT))
    };
    thread::spawn(listing).join().map_err(|_| anyhow!("its thread failed"))?
}

/// Reads a listed config: the name and the address, and the ignore file that it names. Of several, the last one holds, and an author counts
/// before a user.
fn read(config: &str) -> (Entry, Option<PathBuf>) {
    let lines = config.split('\0').filter_map(|line| line.split_once('\n'));
    let last = |key: &str| lines.clone().rfind(|(known, _)| *known == key).map(|(_, value)| value.to_owned());
    let known = |key: &str| last(key).filter(|value| !value.trim().is_empty());
    let own = Entry {
        name: known("author.name").or_else(|| known("user.name")),
        email: known("author.email").or_else(|| known("user.email")),
    };
    if config.split('\0').any(|line| line.starts_with("includeif.")) {
        tracing::warn!(
            "your git config includes files by `includeIf`; what they say of the author counts in no repository: set `user` in the \
             repository, or `name` and `email` in the plugin's config"
        );
    }
    // An empty value means no file.
    let file = last("core.excludesfile").map(|file| absolute(&file, Some(Path::new("/"))).unwrap_or_default());
    (own, file)
}

/// Returns the content of an ignore file, or `None` if there is no such file.
fn patterns(file: &Path) -> Result<Option<String>> {
    // /dev/null is what people write for no file.
    let Some(file) = open_regular(file)
        .map_or_else(|error| if error.kind() == std::io::ErrorKind::NotFound { Ok(None) } else { Err(error) }, Ok)?
    else {
        return Ok(None);
    };
    let mut text = String::new();
    file.take(MAX_PATTERN_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_PATTERN_BYTES {
        bail!("it has more than {} KiB", MAX_PATTERN_BYTES >> 10);
    }
    Ok(Some(text).filter(|text| !text.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_a_config_counts() {
        let entry = |name: &str, email: &str| Entry { name: Some(name.into()), email: Some(email.into()) };
        let config = "user.name\nAnn\0user.email\nann@example.org\0user.name\nAnn Lee\0core.excludesfile\n/one\0flag\0";
        assert_eq!(read(config), (entry("Ann Lee", "ann@example.org"), Some("/one".into())));
        let authors = format!("author.name\nBen\0{config}author.email\n\0core.excludesfile\n~/two\0");
        let home = std::env::home_dir().unwrap();
        assert_eq!(read(&authors), (entry("Ben", "ann@example.org"), Some(home.join("two"))));
        assert_eq!(read("core.excludesfile\n\0"), (Entry::default(), Some(PathBuf::new())));
        assert_eq!(read(""), (Entry::default(), None));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test writes ignore files")]
    fn an_ignore_file_is_read_or_not_there() {
        let held = tempfile::tempdir().unwrap();
        let written = |text: &str| {
            let file = held.path().join("ignore");
            std::fs::write(&file, text).unwrap();
            file
        };
        assert_eq!(patterns(&written("*.one\n")).unwrap().as_deref(), Some("*.one\n"));
        for none in [written(""), held.path().join("gone"), "/dev/null".into(), PathBuf::new()] {
            assert_eq!(patterns(&none).unwrap(), None, "{}", none.display());
        }
        let error = patterns(&written(&"x".repeat(70_000))).unwrap_err();
        assert!(error.to_string().contains("more than 64 KiB"), "{error}");
    }
}
