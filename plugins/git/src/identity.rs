//! Who commits are by: the operator's settings, the person's environment, the repository's own config, the person's git config, in this
//! order; and what the person's own ignore file says. wharf finds out what is the person's and passes it as the setting `person`.

use gix::Repository;
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
    own: Entry,
    /// The content of the person's ignore file.
    ignored: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(crate = "serde", default)]
struct Entry {
    name: Option<String>,
    email: Option<String>,
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
    Ok(parsed(config)?.person.ignored)
}

fn parsed(config: &str) -> Result<Config> {
    wharf_sdk::serde_json::from_str(config)
        .map_err(|error| Error::failed(format!("the config of the plugin git is wrong: {error}")))
}

impl Config {
    fn author(self, repo: &Repository) -> Author {
        let Self { name, email, person: Person { environment, own: person, ignored: _ } } = self;
        let own = repo.config_snapshot();
        let of_repository = |key: &str| own.string(key).map(|value| value.to_string());
        let known = |value: &String| !value.trim().is_empty();
        let first = |all: [Option<String>; 4]| all.into_iter().flatten().find(known);
        Author {
            name: first([name, environment.name, of_repository("user.name"), person.name]),
            email: first([email, environment.email, of_repository("user.email"), person.email]),
        }
    }
}
