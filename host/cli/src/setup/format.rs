//! The formats of client configs: JSON with comments, TOML and YAML. Each config has one mapping from names to servers.

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value};

use super::{form::Form, json, toml, yaml};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Json,
    Toml,
    Yaml,
}

impl Format {
    /// Returns the text with this server below `key`, added or replacing one of the same name.
    pub fn set(self, text: &str, key: &str, name: &str, server: &Value) -> Result<String> {
        let (plain, form) = Form::take(text)?;
        let edited = match self {
            Self::Json => json::set(&plain, key, name, server),
            Self::Toml => toml::set(&plain, key, name, server),
            Self::Yaml => yaml::set(&plain, key, name, server),
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
            Self::Yaml => yaml::remove(&plain, key, name),
        }?;
        self.check(&plain, &edited, key, name, None)?;
        Ok(form.give(&edited))
    }

    /// Returns the servers below `key`, by their names.
    pub fn servers(self, text: &str, key: &str) -> Result<Map<String, Value>> {
        let (plain, _) = Form::take(text)?;
        match self.read(&plain)?.remove(key) {
            None | Some(Value::Null) => Ok(Map::new()),
            Some(Value::Object(servers)) => Ok(servers),
            Some(_) => anyhow::bail!("`{key}` is not a mapping from names to servers"),
        }
    }

    fn read(self, plain: &str) -> Result<Map<String, Value>> {
        match self {
            Self::Json => json::read(plain),
            Self::Toml => toml::read(plain),
            Self::Yaml => yaml::read(plain),
        }
    }

    /// Checks that an edit made the intended change and no other.
    fn check(self, before: &str, after: &str, key: &str, name: &str, server: Option<&Value>) -> Result<()> {
        let mut expected = self.read(before)?;
        let mut servers = match expected.remove(key) {
            Some(Value::Object(servers)) => servers,
            _ => Map::new(),
        };
        servers.shift_remove(name);
        servers.extend(server.map(|server| (name.to_owned(), server.clone())));
        let mut is = self.read(after).context("the edited text cannot be read again, so nothing was written")?;
        let is_servers = is.remove(key).filter(|servers| !servers.is_null()).unwrap_or_else(|| Map::new().into());
        ensure!(
            is == expected && is_servers == Value::Object(servers),
            "the file cannot be edited without changing something else, so nothing was written; edit the entry by hand"
        );
        Ok(())
    }
}
