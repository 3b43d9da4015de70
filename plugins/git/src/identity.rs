//! Who commits are by: the operator's settings, the person's environment, the repository's own config, the person's git config, in this
//! order; and what the person's own ignore file says. wharf reads what is the person's and passes it as the setting `person`; the conditions
//! in it are evaluated here, for the repository.

use gix::{
    Repository,
    bstr::{BStr, ByteSlice},
    glob::wildmatch::Mode,
};
use wharf_sdk::{Error, Result, serde, serde::Deserialize};

use crate::edit::Author;

/// The plugin's table in the operator's config file, and what wharf adds to it.
#[derive(Deserialize, Default)]
#[serde(crate = "serde", default, deny_unknown_fields)]
struct Config {
    name: Option<String>,
    email: Option<String>,
    person: Person,
}

#[derive(Deserialize, Default)]
#[serde(crate = "serde", default)]
struct Person {
    environment: Entry,
    /// Of several that hold, the last one counts.
    entries: Vec<Entry>,
    /// The contents of ignore files. Of several that hold, the last one counts.
    ignored: Vec<Patterns>,
}

#[derive(Deserialize)]
#[serde(crate = "serde")]
struct Patterns {
    patterns: String,
    #[serde(default)]
    when: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(crate = "serde", default)]
struct Entry {
    name: Option<String>,
    email: Option<String>,
    /// The conditions of `includeIf` under which it holds.
    when: Vec<String>,
}

/// Returns the author of commits to a repository, with a name and an address as far as they are known, from the plugin's config as JSON.
pub fn author(repo: &Repository, config: &str) -> Result<Author> {
    Ok(parsed(config)?.author(repo))
}

/// Returns the contents of the person's own ignore file, which counts for a repository whose config names no other.
pub fn ignored(repo: &Repository, config: &str) -> Result<Option<String>> {
    if repo.config_snapshot().string("core.excludesFile").is_some() {
        return Ok(None);
    }
    let held = |when: &[String]| when.iter().all(|condition| holds(repo, condition));
    Ok(parsed(config)?.person.ignored.into_iter().rfind(|file| held(&file.when)).map(|file| file.patterns))
}

fn parsed(config: &str) -> Result<Config> {
    wharf_sdk::serde_json::from_str(config)
        .map_err(|error| Error::failed(format!("the config of the plugin git is wrong: {error}")))
}

impl Config {
    fn author(self, repo: &Repository) -> Author {
        let Self { name, email, person: Person { environment, entries, ignored: _ } } = self;
        let own = repo.config_snapshot();
        let of_repository = |key: &str| own.string(key).map(|value| value.to_string());
        let held: Vec<Entry> =
            entries.into_iter().filter(|entry| entry.when.iter().all(|condition| holds(repo, condition))).collect();
        let last = |of: fn(&Entry) -> &Option<String>| held.iter().rev().find_map(|entry| of(entry).clone());
        let known = |value: &String| !value.trim().is_empty();
        let first = |all: [Option<String>; 4]| all.into_iter().flatten().find(known);
        Author {
            name: first([name, environment.name, of_repository("user.name"), last(|entry| &entry.name)]),
            email: first([email, environment.email, of_repository("user.email"), last(|entry| &entry.email)]),
        }
    }
}

/// Whether a condition of `includeIf` holds for a repository. git ignores what is included under a condition that it does not know.
fn holds(repo: &Repository, condition: &str) -> bool {
    let Some((kind, pattern)) = condition.split_once(':') else { return false };
    let matches = |pattern: &str, value: &BStr, mode| gix::glob::wildmatch(pattern.into(), value, mode);
    let slashes = Mode::NO_MATCH_SLASH_LITERAL;
    let folder = repo.git_dir().to_string_lossy();
    match kind {
        "gitdir" => matches(pattern, folder.as_bytes().as_bstr(), slashes),
        "gitdir/i" => matches(pattern, folder.as_bytes().as_bstr(), slashes | Mode::IGNORE_CASE),
        "onbranch" => {
            let pattern = if pattern.ends_with('/') { format!("{pattern}**") } else { pattern.to_owned() };
            let branch = repo.head_name().ok().flatten();
            branch.is_some_and(|branch| matches(&pattern, branch.shorten(), slashes))
        }
        "hasconfig" => {
            let Some(pattern) = pattern.strip_prefix("remote.*.url:") else { return false };
            let own = repo.config_snapshot();
            let remotes = own.plumbing().sections_by_name("remote").into_iter().flatten();
            remotes.filter_map(|remote| remote.value("url")).any(|url| matches(pattern, url.as_ref(), slashes))
        }
        _ => false,
    }
}
