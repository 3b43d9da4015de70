//! Turns the answers of a person into TOML, for questions that need more than yes or no.

use anyhow::{Result, bail, ensure};
use toml_edit::Value;

use wharf_policy::access::wants::want::SettingKind;

/// The possible sources of a secret, as questions and errors list them.
pub const SOURCES: &str = "env NAME, file PATH, credential NAME, command WORDS";

/// Formats a text as a TOML string.
pub fn text(value: &str) -> String {
    Value::from(value).to_string()
}

/// Parses the source of a secret. An empty answer means that there is no secret.
pub fn source(answer: &str) -> Result<Option<String>> {
    if answer.is_empty() {
        return Ok(None);
    }
    let (kind, rest) = answer.split_once(char::is_whitespace).unwrap_or((answer, ""));
    let rest = rest.trim();
    ensure!(!rest.is_empty(), "answer with one of: {SOURCES}");
    Ok(Some(match kind {
        "env" => {
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            ensure!(
                rest.bytes().all(is_name) && !rest.starts_with(|first: char| first.is_ascii_digit()),
                "env takes the name of a variable, not its value; a name has letters, digits and `_`"
            );
            format!("{{ env = {} }}", text(rest))
        }
        "file" if rest.starts_with("~/") => format!("{{ file = {} }}", text(rest)),
        "file" => {
            // A typed path is relative to the current folder, but a path in the config is relative to the config.
            let path = std::path::absolute(rest)?;
            format!("{{ file = {} }}", text(path.to_str().unwrap_or(rest)))
        }
        "credential" => {
            ensure!(!rest.contains(['/', ' ']) && rest != "..", "a credential's name has no slashes and no spaces");
            format!("{{ credential = {} }}", text(rest))
        }
        "command" => {
            ensure!(
                !rest.contains(['"', '\'', '\\']),
                "the command runs without a shell and is split at spaces, so quotation marks and backslashes would be passed on \
                 to it; leave them out, or write the command into the config by hand"
            );
            let words: Vec<String> = rest.split_whitespace().map(text).collect();
            format!("{{ command = [{}] }}", words.join(", "))
        }
        // The answer may be the secret itself, so the error does not repeat it.
        _ => bail!("the answer names no known source; answer with one of: {SOURCES}"),
    }))
}

/// Parses the name of a secret.
pub fn name(answer: &str) -> Result<String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    ensure!(!answer.is_empty() && answer.bytes().all(plain), "a name has letters, digits, `_` and `-`");
    Ok(answer.to_owned())
}

/// Parses the value of a setting, and returns it as TOML.
pub fn value(kind: SettingKind, answer: &str) -> Result<String> {
    match kind {
        SettingKind::String => Ok(text(answer)),
        SettingKind::Boolean => {
            ensure!(["true", "false"].contains(&answer), "answer with true or false");
            Ok(answer.to_owned())
        }
        SettingKind::Number => {
            let value: Option<Value> = answer.parse().ok();
            let is_number = |value: Value| value.is_integer() || value.as_float().is_some_and(f64::is_finite);
            ensure!(value.is_some_and(is_number), "answer with a number");
            Ok(answer.to_owned())
        }
    }
}

/// Whether a text looks like the answer to a yes-or-no question.
pub fn is_yes_or_no(answer: &str) -> bool {
    ["y", "n", "yes", "no"].contains(&answer.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_become_toml() {
        for (answer, expected) in [
            ("", None),
            ("env GITHUB_TOKEN", Some(r#"{ env = "GITHUB_TOKEN" }"#)),
            ("file /run/a b", Some(r#"{ file = "/run/a b" }"#)),
            ("file ~/t", Some(r#"{ file = "~/t" }"#)),
            ("credential github", Some(r#"{ credential = "github" }"#)),
            ("command  op read x", Some(r#"{ command = ["op", "read", "x"] }"#)),
        ] {
            assert_eq!(source(answer).unwrap().as_deref(), expected, "{answer}");
        }
        for wrong in [
            "env",
            "file ",
            "ghp_0123456789",
            "env TOKEN=x",
            "env ghp-012",
            "env 1A",
            "env A B",
            "credential ../x",
            "command op read \"my vault\"",
            "command a\\ b",
            "command 'x'",
        ] {
            let error = source(wrong).unwrap_err().to_string();
            assert!(!error.contains("ghp"), "an answer that may be a secret is not repeated: {error}");
        }
        for (kind, answer, expected) in [
            (SettingKind::String, r#"a "b" = {}"#, Some(r#"'a "b" = {}'"#)),
            (SettingKind::Number, "1.5", Some("1.5")),
            (SettingKind::Number, "x", None),
            (SettingKind::Number, "nan", None),
            (SettingKind::Number, "\"1\"", None),
            (SettingKind::Boolean, "true", Some("true")),
            (SettingKind::Boolean, "yes", None),
        ] {
            assert_eq!(value(kind, answer).ok().as_deref(), expected, "{answer}");
        }
        for (answer, expected) in [("n", true), ("YES", true), ("new", false), ("", false)] {
            assert_eq!(is_yes_or_no(answer), expected, "{answer}");
        }
        assert!(name("a b").is_err() && name("").is_err() && name("a-b_1").is_ok());
    }
}
