//! A plugin's own config as the plugin gets it. The secrets in it are remembered, so that they can be redacted from logs.

use std::{fmt, sync::Arc};

use anyhow::{Result, bail};
use serde_json::Value;

/// Shorter values are not replaced in texts, since they occur by chance in too many.
const MIN_SECRET_BYTES: usize = 4;

#[derive(Clone, PartialEq, Eq)]
pub struct Settings {
    json: Arc<str>,
    keys: Vec<String>,
    /// The values that came from the environment, as they are and as they are escaped in JSON. The longest is first, so that no
    /// part of one is replaced before the whole.
    secrets: Vec<String>,
    /// The names of the environment variables that these values came from.
    variables: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { json: "{}".into(), keys: Vec::new(), secrets: Vec::new(), variables: Vec::new() }
    }
}

/// Shows none of the values, which may be secrets.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Settings(…)")
    }
}

impl Settings {
    /// Replaces each table that is just `{ env = "NAME" }` by the variable's value.
    pub fn resolve(table: toml::Table) -> Result<Self> {
        let mut values = Vec::new();
        let keys = table.keys().cloned().collect();
        let json = resolve(&toml::Value::Table(table), &mut values)?.to_string().into();
        let (variables, mut secrets): (Vec<String>, Vec<String>) = values.into_iter().unzip();
        let written: Vec<String> = secrets.iter().map(|secret| Value::from(secret.as_str()).to_string()).collect();
        secrets.extend(written.iter().map(|text| text.trim_matches('"').to_owned()));
        secrets.retain(|secret| secret.len() >= MIN_SECRET_BYTES);
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        Ok(Self { json, keys, secrets, variables })
    }

    /// The names of the variables whose values the plugin sees.
    pub fn variables(&self) -> &[String] {
        &self.variables
    }

    /// The keys that have a value.
    pub fn keys(&self) -> &[String] {
        &self.keys
    }

    pub fn json(&self) -> Arc<str> {
        Arc::clone(&self.json)
    }

    /// Replaces in a plugin's text the secrets that the operator gave it.
    pub fn redacted(&self, text: &str) -> String {
        self.secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret, "[secret]"))
    }
}

/// Converts TOML to JSON, and adds the names and values of the variables that it uses to `values`.
fn resolve(value: &toml::Value, values: &mut Vec<(String, String)>) -> Result<Value> {
    Ok(match value {
        toml::Value::Table(table) => match (table.len(), table.get("env").and_then(toml::Value::as_str)) {
            (1, Some(name)) => match std::env::var(name) {
                Ok(value) => {
                    values.push((name.to_owned(), value.clone()));
                    value.into()
                }
                Err(_) => bail!("the environment variable {name} is not set, or not UTF-8"),
            },
            _ => {
                let entries: Result<serde_json::Map<_, _>> =
                    table.iter().map(|(key, value)| Ok((key.clone(), resolve(value, values)?))).collect();
                entries?.into()
            }
        },
        toml::Value::Array(items) => items.iter().map(|item| resolve(item, values)).collect::<Result<_>>()?,
        plain => to_json(plain),
    })
}

/// Converts TOML to JSON. Dates and times become strings.
pub fn to_json(value: &toml::Value) -> Value {
    match value {
        toml::Value::Table(table) => table.iter().map(|(key, value)| (key.clone(), to_json(value))).collect(),
        toml::Value::Array(items) => items.iter().map(to_json).collect(),
        toml::Value::String(text) => text.clone().into(),
        toml::Value::Integer(number) => (*number).into(),
        toml::Value::Float(number) => (*number).into(),
        toml::Value::Boolean(flag) => (*flag).into(),
        toml::Value::Datetime(time) => time.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_kept_out_of_texts() {
        let path = std::env::var("PATH").unwrap();
        let table = toml::toml! {
            plain = "visible"
            token = { env = "PATH" }
        };
        let settings = Settings::resolve(table).unwrap();
        assert!(settings.json().contains(&path));
        assert_eq!(settings.keys(), ["plain", "token"]);
        let printed = format!("config {} and {path} again", settings.json());
        let redacted = settings.redacted(&printed);
        assert!(!redacted.contains(&path) && redacted.contains("visible"), "{redacted}");
        assert!(!format!("{settings:?}").contains("visible"));
    }
}
