//! Config lines for a person who has to write them by hand. Grants are commented out, so that copying the lines grants nothing.

use anyhow::Result;

use super::{answers::text, edit::Edited, file::File};
use wharf_base as base;
use wharf_policy::access::wants::want::Wants;

/// Returns the error of a command that needs a terminal for its questions, with the lines to write instead.
pub fn by_hand(command: &str, file: &File, lines: &str) -> String {
    format!(
        "`wharf {command}` asks questions at a terminal, and there is no terminal; write the lines that you agree to into {}:\n{}",
        base::text::path(&file.path),
        lines.trim_end()
    )
}

/// Returns the table of a plugin that is not in the config yet.
pub fn table(id: &str, key: &str, value: &str, sha256: Option<&str>) -> Result<String> {
    let mut lines = Edited::parse("")?;
    lines.set(id, key, &text(value))?;
    if let Some(sha256) = sha256 {
        lines.set(id, "sha256", &text(sha256))?;
    }
    Ok(lines.text())
}

/// Returns commented-out lines that grant everything that a plugin wants. `has_secret`: whether the config has a secret of that name.
pub fn wanted(id: &str, wants: &Wants, has_secret: impl Fn(&str) -> bool) -> Result<String> {
    let mut edited = Edited::parse("")?;
    for want in &wants.grants {
        edited.allow(id, &want.what, None)?;
    }
    for setting in &wants.settings {
        edited.set_setting(id, &setting.key, setting.kind.example())?;
    }
    let mut known = Vec::new();
    for secret in &wants.secrets {
        match has_secret(&secret.name) {
            true => known.push(&secret.name),
            false => edited.add_secret(&secret.name, "{ env = \"NAME\" }")?,
        }
    }
    let lines = edited.text();
    let lines = lines.lines().filter(|line| !line.is_empty()).map(|line| format!("# {line}\n"));
    let known = known.into_iter().map(|name| {
        format!("# It would send the secret `{name}` that is already in [secrets]; if that is not the right one, name another.\n")
    });
    Ok(lines.chain(known).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_policy::access::wants::parse;

    #[test]
    fn what_is_suggested_is_commented_out_and_would_load() {
        let wants = parse::toml(
            "http = [{ url = 'https://a.example', secret = 't' }, { url = 'https://b.example', secret = 'u' }]\nroots = 'read'\n\
             secrets = [{ name = 't' }, { name = 'u' }]\n\
             settings = [{ key = 'org', type = 'string' }, { key = 'n', type = 'number' }, { key = 'b', type = 'boolean' }]",
        );
        let lines = wanted("my.plugin", &wants.unwrap().0, |name| name == "u").unwrap();
        assert_eq!(
            lines,
            "# [plugins.\"my.plugin\".grants]\n\
             # http = [{ url = \"https://a.example\", headers = { authorization = \"Bearer {t}\" } }, \
             { url = \"https://b.example\", headers = { authorization = \"Bearer {u}\" } }]\n\
             # roots = \"read\"\n# [plugins.\"my.plugin\".config]\n# org = \"…\"\n# n = 0\n# b = false\n# [secrets]\n\
             # t = { env = \"NAME\" }\n\
             # It would send the secret `u` that is already in [secrets]; if that is not the right one, name another.\n"
        );
        let agreed: String =
            lines.lines().map(|line| format!("{}\n", line.strip_prefix("# ").unwrap_or(line))).collect();
        let agreed = agreed.replace("It would", "# It would");
        let text = table("my.plugin", "path", "a.wasm", Some(&"0".repeat(64))).unwrap() + "\n" + &agreed;
        let text = text.replace("[secrets]\n", "[secrets]\nu = { env = \"U\" }\n");
        wharf_config::config::from_text(&text, None, &wharf_config::config::CommandLine::default()).unwrap();
    }
}
