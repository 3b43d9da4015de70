//! Prepares a config that is meant for another environment to be checked here: references to variables and secrets that are missing
//! here are removed, so that everything else can be checked.

use super::raw;

pub fn without_variables(mut config: raw::Config) -> raw::Config {
    let is_unset = |name: &str| std::env::var(name).map_or(true, |value| value.is_empty());
    // Whether the token can be read here does not show whether it can be read where wharf will run.
    config.http.token = None;
    if std::env::var_os("CREDENTIALS_DIRECTORY").is_none() {
        config.secrets.0.iter_mut().for_each(|(_, secret)| secret.forget_credential());
    }
    for (_, header) in config.telemetry.iter_mut().flat_map(|telemetry| &mut telemetry.headers.0) {
        let is_elsewhere = match header {
            raw::Value::Named(raw::FromEnv { env }) => is_unset(env),
            raw::Value::Secret(_) => true,
            raw::Value::Text(_) => false,
        };
        if is_elsewhere {
            *header = raw::Value::Text(String::new());
        }
    }
    for (_, plugin) in &mut config.plugins.0 {
        plugin.config.iter_mut().for_each(|(_, value)| fill(value));
    }
    config
}

/// Replaces each `{ env = "NAME" }` whose variable is not set by an empty text.
fn fill(value: &mut toml::Value) {
    match value {
        toml::Value::Table(table) => match (table.len(), table.get("env").and_then(toml::Value::as_str)) {
            (1, Some(name)) if std::env::var(name).is_err() => *value = toml::Value::String(String::new()),
            _ => table.iter_mut().for_each(|(_, value)| fill(value)),
        },
        toml::Value::Array(items) => items.iter_mut().for_each(fill),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{from_text, from_text_elsewhere};
    use crate::config::CommandLine;

    #[test]
    fn only_what_other_variables_would_mend_is_let_pass() {
        let unset = "WHARF_NO_SUCH_VARIABLE";
        for (text, expected) in [
            (format!("[plugins.a]\npath = 'a'\nconfig = {{ x = [{{ env = '{unset}' }}] }}"), None),
            (format!("[http]\ntoken.env = '{unset}'"), None),
            (format!("[telemetry]\notlp = 'http://a'\nheaders = {{ x = {{ env = '{unset}' }} }}"), None),
            ("[secrets]\nx = { credential = 'x' }".to_owned(), None),
            (
                format!(
                    "[plugins.a]\npath = 'a'\nconfig = {{ x = {{ env = '{unset}' }} }}\n[plugins.b]\npath = 'b'\ninstances = 'x'"
                ),
                Some("`instances` is"),
            ),
            ("[htpp]".to_owned(), Some("wharf.toml:1: unknown key `htpp`")),
        ] {
            let path = Path::new("/etc/wharf.toml");
            assert!(from_text(&text, Some(path), &CommandLine::default()).is_err(), "{text}");
            let problem = from_text_elsewhere(&text, path).err().map(|error| format!("{error:#}"));
            match expected {
                None => assert_eq!(problem, None, "{text}"),
                Some(expected) => assert!(problem.as_ref().is_some_and(|text| text.contains(expected)), "{problem:?}"),
            }
        }
    }
}
