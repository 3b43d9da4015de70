//! `[package]` in `plugin.toml`: what packages of the plugin are called, and what they say about it.

use anyhow::{Result, ensure};
use serde::Deserialize;

/// The longest description that registries of MCP servers take, in characters.
const MAX_DESCRIPTION_CHARS: usize = 100;
/// The longest name of a package at npm, which is the shortest of the bounds.
const MAX_NAME_BYTES: usize = 214;

/// The table as it is written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Written {
    version: String,
    description: String,
    author: String,
    license: Option<String>,
    npm: Option<String>,
    pypi: Option<String>,
    registry: Option<String>,
    repository: Option<String>,
    downloads: Option<String>,
}

/// The table, checked.
#[derive(Debug, Clone)]
pub struct Package {
    /// Three numbers: the one form that npm, PyPI and MCPB all have.
    pub version: String,
    pub description: String,
    pub author: String,
    /// An SPDX expression.
    pub license: Option<String>,
    /// The name at npm.
    pub npm: String,
    /// The name at PyPI.
    pub pypi: String,
    /// The name in registries of MCP servers.
    pub registry: Option<String>,
    /// The URL of the sources.
    pub repository: Option<String>,
    /// The URL of the folder that the `.mcpb` will be downloaded from.
    pub downloads: Option<String>,
}

impl Package {
    /// Checks the table of a plugin with this name. The error begins with a space, as those of `plugin.toml` without a line do.
    pub fn check(written: Written, name: &str) -> Result<Self> {
        let Written { version, description, author, license, npm, pypi, registry, repository, downloads } = written;
        let is_number = |part: &str| {
            part == "0" || (part.len() < 10 && !part.starts_with('0') && part.bytes().all(|byte| byte.is_ascii_digit()))
        };
        ensure!(
            version.split('.').count() == 3 && version.split('.').all(|part| !part.is_empty() && is_number(part)),
            " package.version: {version:?} is not a version that npm, PyPI and desktop clients all take; write three numbers, such as 1.2.0"
        );
        let line = |text: &str, key: &str, most: usize| {
            let is_line = !text.trim().is_empty() && !text.contains(char::is_control) && text.chars().count() <= most;
            ensure!(is_line, " package.{key}: write one line of 1 to {most} characters");
            Ok(())
        };
        line(&description, "description", MAX_DESCRIPTION_CHARS)?;
        line(&author, "author", 200)?;
        license.as_deref().map(|license| line(license, "license", 200)).transpose()?;
        let npm = npm.unwrap_or_else(|| name.to_owned());
        check_npm(&npm)?;
        let pypi = pypi.unwrap_or_else(|| name.to_owned());
        ensure!(
            is_pypi(&pypi),
            " package.pypi: {pypi:?} is not a name that PyPI takes: letters, digits, `-`, `_` and `.`, with a letter or digit at both ends"
        );
        if let Some(registry) = &registry {
            ensure!(
                is_registry(registry),
                " package.registry: {registry:?} is not a name in registries of MCP servers: write your domain backwards, or io.github. and \
                 your name, then `/` and the server's name, such as io.github.acme/{name}"
            );
        }
        for (key, url) in [("repository", &repository), ("downloads", &downloads)] {
            let is_url = url
                .as_ref()
                .is_none_or(|url| url.starts_with("https://") && url.bytes().all(|byte| byte.is_ascii_graphic()));
            ensure!(is_url, " package.{key}: write a URL that begins with https://");
        }
        Ok(Self { version, description, author, license, npm, pypi, registry, repository, downloads })
    }

    /// The plugin's name in the names of modules and files of Python.
    pub fn module(&self) -> String {
        // PEP 503 and the format of wheels: runs of `-`, `_` and `.` are one `_`, and letters are small.
        let words = self.pypi.split(['-', '_', '.']).filter(|word| !word.is_empty());
        words.collect::<Vec<_>>().join("_").to_ascii_lowercase()
    }
}

/// Checks a name by npm's rules for new packages.
fn check_npm(name: &str) -> Result<()> {
    let is_part = |part: &str| {
        !part.is_empty()
            && !part.starts_with(['.', '_', '-'])
            && part.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.'))
    };
    let is_name = match name.strip_prefix('@') {
        Some(scoped) => scoped.split_once('/').is_some_and(|(scope, name)| is_part(scope) && is_part(name)),
        None => is_part(name),
    };
    ensure!(
        is_name && name.len() <= MAX_NAME_BYTES,
        " package.npm: {name:?} is not a name that npm takes: small letters, digits, `-`, `_` and `.`, which it does not begin with, at most \
         {MAX_NAME_BYTES} characters; or such a name after a scope, as in @acme/notes"
    );
    ensure!(
        !["node_modules", "favicon.ico"].contains(&name),
        " package.npm: npm does not take the name {name:?}; write another one"
    );
    Ok(())
}

fn is_pypi(name: &str) -> bool {
    let ends = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = name.as_bytes();
    let first_is_letter = name.starts_with(|first: char| first.is_ascii_alphabetic());
    first_is_letter
        && ends(bytes.last())
        && bytes.len() <= MAX_NAME_BYTES
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

fn is_registry(name: &str) -> bool {
    let Some((namespace, server)) = name.split_once('/') else { return false };
    let ends = |text: &str| {
        let is_end = |one: Option<char>| one.is_some_and(|one| one.is_ascii_alphanumeric());
        is_end(text.chars().next()) && is_end(text.chars().next_back())
    };
    let is_label = |label: &str| ends(label) && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let is_server = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (3..=200).contains(&name.len())
        && namespace.contains('.')
        && namespace.split('.').all(is_label)
        && ends(server)
        && server.bytes().all(is_server)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(more: &str) -> Result<Package> {
        let mut table: toml::Table = toml::from_str("version = '1.2.0'\ndescription = 'Keeps notes'\nauthor = 'Ada'")?;
        table.extend(toml::from_str::<toml::Table>(more)?);
        Package::check(table.try_into()?, "my-notes")
    }

    #[test]
    fn names_default_to_the_plugin() {
        let package = check("").unwrap();
        assert_eq!([package.npm.as_str(), &package.pypi, &package.module()], ["my-notes", "my-notes", "my_notes"]);
        let package = check("npm = '@acme/notes'\npypi = 'Acme.Notes--x'\nregistry = 'io.github.acme/notes'").unwrap();
        assert_eq!(package.module(), "acme_notes_x");
    }

    #[test]
    fn what_registries_refuse_is_refused_here() {
        for (more, expected) in [
            ("version = '1.2'", "three numbers"),
            ("version = '01.2.0'", "three numbers"),
            ("version = '1.2.0-rc.1'", "three numbers"),
            ("version = '1..0'", "three numbers"),
            ("description = ''", "one line of 1 to 100 characters"),
            ("description = \"a\\nb\"", "one line"),
            (&format!("description = '{}'", "x".repeat(101)), "one line"),
            ("author = ' '", "package.author"),
            ("npm = 'Notes'", "not a name that npm takes"),
            ("npm = '.notes'", "not a name that npm takes"),
            ("npm = '@acme'", "not a name that npm takes"),
            ("npm = '@acme/a/b'", "not a name that npm takes"),
            ("npm = 'node_modules'", "npm does not take the name"),
            (&format!("npm = '{}'", "x".repeat(215)), "not a name that npm takes"),
            ("pypi = '-notes'", "not a name that PyPI takes"),
            ("pypi = 'notes.'", "not a name that PyPI takes"),
            ("pypi = 'no tes'", "not a name that PyPI takes"),
            ("registry = 'notes'", "write your domain backwards"),
            ("registry = 'acme/notes'", "write your domain backwards"),
            ("registry = 'io.github.acme/notes/x'", "write your domain backwards"),
            ("registry = 'io..acme/notes'", "write your domain backwards"),
            ("registry = 'io.github.acme/-notes'", "write your domain backwards"),
            ("repository = 'http://forge.example/x'", "https://"),
            ("downloads = 'https://forge.example/a b'", "package.downloads"),
            ("homepage = 'x'", "homepage"),
        ] {
            let error = format!("{:#}", check(more).unwrap_err());
            assert!(error.contains(expected), "{more}: {error}");
        }
    }
}
