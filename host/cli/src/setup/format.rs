//! The formats of client configs: JSON with comments, TOML and YAML. Each config has one mapping from names to servers. YAML is neither read
//! nor edited: a person adds the lines.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value};

use super::{form::Form, json, toml};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Json,
    Toml,
    Yaml,
}

const NOT_YAML: &str = "wharf does not read YAML";

impl Format {
    /// Returns the text with this server below `key`, added or replacing one of the same name.
    pub fn set(self, text: &str, key: &str, name: &str, server: &Value) -> Result<String> {
        let (plain, form) = Form::take(text)?;
        let edited = match self {
            Self::Json => json::set(&plain, key, name, server),
            Self::Toml => toml::set(&plain, key, name, server),
            Self::Yaml => bail!(NOT_YAML),
        }?;
        self.check(&plain, &edited, key, name, Some(server))?;
        Ok(form.give(&edited))
    }

    /// Returns the text without the server of that name.
    pub fn remove(self, text: &str, key: &str, name: &str) -> Result<String> {
        let (plain, form) = Form::take(text)?;
        let edited = match self {
            Self::Json => json::remove(&plain, key, name),
            Self::Toml => toml::remove(&plain, key, name),
            Self::Yaml => bail!(NOT_YAML),
        }?;
        self.check(&plain, &edited, key, name, None)?;
        Ok(form.give(&edited))
    }

    /// Returns the servers below `key`, by their names.
    pub fn servers(self, text: &str, key: &str) -> Result<Map<String, Value>> {
        let (plain, _) = Form::take(text)?;
        Ok(self.parts(&plain, key)?.1)
    }

    /// Returns the members of the whole text except the servers, and the servers.
    fn parts(self, plain: &str, key: &str) -> Result<(Map<String, Value>, Map<String, Value>)> {
        let mut all = match self {
            Self::Json => json::read(plain),
            Self::Toml => toml::read(plain),
            Self::Yaml => bail!(NOT_YAML),
        }?;
        let servers = match all.remove(key) {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(servers)) => servers,
            Some(_) => bail!("`{key}` is not a mapping from names to servers"),
        };
        Ok((all, servers))
    }

    /// Checks that an edit made the intended change and no other.
    fn check(self, before: &str, after: &str, key: &str, name: &str, server: Option<&Value>) -> Result<()> {
        let (others, mut expected) = self.parts(before, key)?;
        expected.shift_remove(name);
        expected.extend(server.map(|server| (name.to_owned(), server.clone())));
        let read = self.parts(after, key).context("the edited text cannot be read again, so nothing was written")?;
        ensure!(
            read == (others, expected),
            "the file cannot be edited without changing something else, so nothing was written; edit the entry by hand"
        );
        Ok(())
    }
}
