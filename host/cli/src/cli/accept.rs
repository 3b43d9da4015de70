//! `wharf lock accept`: shows how what a pinned plugin tells models and wants differs from what was accepted, asks, and writes it into
//! `wharf.lock`.

use std::{collections::BTreeSet, process::ExitCode};

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::{Map, Value};

use super::{
    arguments::OnePlugin,
    check::all_or_nothing,
    file::File,
    load::{look, print},
    lock_file::LockFile,
    person::Person,
};
use wharf_base::{
    failed::failed,
    text::{self, escaped, toml_header},
};
use wharf_config::{config::Config, lock::Difference};

/// Runs `wharf lock accept`. `only_print`: prints the new contents of the lock file, and asks and writes nothing.
pub async fn run(OnePlugin { id, config }: &OnePlugin, only_print: bool) -> Result<ExitCode> {
    let file = File::open(config.config.as_deref())?;
    let config = file.config()?;
    check_pinned(&config, id).with_context(|| text::path(&file.path))?;
    let mut locked = LockFile::open(&file.path)?;
    let path = text::path(&locked.path);
    let now = look(config, id).await?.surface;
    let before = locked.lock.accepted(id).cloned();
    let is_new = before.is_none();
    let before = before.unwrap_or_default();
    let differences = before.differences(&now);
    if only_print {
        locked.lock.accept(id, now);
        print(locked.lock.text()?.trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    if differences.is_empty() && !is_new {
        print(&format!("{path} accepts all of {id} already"))?;
        return Ok(ExitCode::SUCCESS);
    }
    print(&format!("{id} tells models and wants, compared with what {path} accepts:"))?;
    for line in differences.iter().flat_map(lines) {
        print(&line)?;
    }
    let Some(mut person) = Person::here() else {
        bail!(
            "nothing was accepted: `wharf lock accept` asks a person, and this is not a terminal; run it at a terminal, or write the \
             output of `wharf lock accept {id} --print` into {path}"
        );
    };
    if !person.agrees(&format!("Accept this of {id}?"))? {
        return Err(failed(anyhow!("nothing was accepted, and nothing was written")));
    }
    locked.lock.accept(id, now);
    locked.write()?;
    print(&format!("wrote {path}"))?;
    Ok(ExitCode::SUCCESS)
}

/// Fails if the surface of a plugin is not pinned.
fn check_pinned(config: &Config, id: &str) -> Result<()> {
    let Some(plugin) = config.plugins.iter().find(|plugin| plugin.id == id) else {
        let pinned: Vec<&str> =
            config.plugins.iter().filter(|plugin| plugin.lock.is_some()).map(|plugin| plugin.id.as_str()).collect();
        bail!("there is no plugin `{}`; the pinned plugins are: {}", escaped(id), all_or_nothing(&pinned));
    };
    ensure!(
        plugin.lock.is_some(),
        "{id} is not pinned, so it needs no accepting; to pin it, write surface = \"pinned\" into {}",
        toml_header(&["plugins", id])
    );
    Ok(())
}

/// Returns the lines that show a difference: its name, and the members that differ.
pub fn lines(difference: &Difference<'_>) -> Vec<String> {
    let object = |text: Option<&str>| -> Option<Map<String, Value>> { serde_json::from_str(text?).ok() };
    let mut lines = vec![difference.to_string()];
    let mut show = |name: &str, sign: char, text: &str| {
        // The names of members are wharf's own or, in wants, those of the plugin.
        lines.push(format!("  {sign} {}{}", escaped(name), escaped(text)));
    };
    match (object(difference.before), object(difference.now)) {
        (Some(before), Some(now)) => {
            let names: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
            for name in names.into_iter().filter(|name| before.get(*name) != now.get(*name)) {
                for (sign, object) in [('-', &before), ('+', &now)] {
                    if let Some(value) = object.get(name).filter(|value| !value.is_null()) {
                        show(&format!("{name}: "), sign, &text::escaped_json(&value.to_string()));
                    }
                }
            }
        }
        _ => {
            for (sign, text) in [('-', difference.before), ('+', difference.now)] {
                if let Some(text) = text {
                    show("", sign, text);
                }
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use wharf_config::lock::Surface;

    use super::*;

    #[test]
    fn the_members_that_differ_are_shown() {
        let surface = |text: &str| Surface([("tool a".to_owned(), text.to_owned())].into());
        let before = surface(r#"{"description":"Reads.","title":null,"inputSchema":{"type":"object"}}"#);
        let now = surface(r#"{"description":"Reads, and \u202e sends.","title":"A","inputSchema":{"type":"object"}}"#);
        let all = |before: &Surface, now: &Surface| -> Vec<String> {
            before.differences(now).iter().flat_map(lines).collect()
        };
        assert_eq!(
            all(&before, &now),
            [
                "tool \"a\" has changed",
                "  - description: \"Reads.\"",
                "  + description: \"Reads, and \\u202e sends.\"",
                "  + title: \"A\"",
            ]
        );
        let gone = all(&before, &Surface::default());
        assert_eq!(gone.len(), 2);
        assert!(gone.iter().any(|line| line.starts_with("  - {\"description\":\"Reads.\"")), "{gone:?}");
    }
}
