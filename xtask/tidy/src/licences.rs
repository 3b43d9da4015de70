//! Checks where dependencies come from and their licences, by the rules in `deny.toml`. `cargo xtask check deny` checks the same and more with
//! cargo-deny, which takes minutes to install; so before a release only.

use std::{collections::HashMap, fs, path::Path};

use anyhow::{Context, Result};
use cargo_metadata::{CargoOpt, MetadataCommand, Package};

/// Returns the dependencies that the rules do not allow.
pub fn problems(root: &Path) -> Result<Vec<String>> {
    let rules = Rules::parse(&fs::read_to_string(root.join("deny.toml")).context("deny.toml")?)?;
    let mut metadata = MetadataCommand::new();
    metadata.current_dir(root).features(CargoOpt::AllFeatures).other_options(["--locked".to_owned()]);
    Ok(metadata.exec()?.packages.iter().filter_map(|package| rules.problem(package)).collect())
}

/// The part of `deny.toml` that is checked here.
struct Rules {
    licences: Vec<String>,
    /// Licences of single crates.
    exceptions: HashMap<String, Vec<String>>,
    banned: Vec<String>,
}

impl Rules {
    fn parse(text: &str) -> Result<Self> {
        let all: toml::Table = text.parse()?;
        let list = |table: &str, key: &str| all.get(table)?.get(key)?.as_array().cloned();
        let texts = |list: Option<&Vec<toml::Value>>| -> Vec<String> {
            list.into_iter().flatten().filter_map(|one| one.as_str().map(str::to_owned)).collect()
        };
        // cargo-deny knows other forms, which this would take for nothing.
        let named = |one: &toml::Value| {
            let name = one.get("crate").and_then(toml::Value::as_str).map(str::to_owned);
            name.with_context(|| format!("deny.toml: write {{ crate = \"NAME\" }} for {one}"))
        };
        let exceptions = list("licenses", "exceptions").context("deny.toml: licenses.exceptions")?;
        let banned = list("bans", "deny").context("deny.toml: bans.deny")?;
        Ok(Self {
            licences: texts(list("licenses", "allow").as_ref()),
            exceptions: exceptions
                .iter()
                .map(|one| Ok((named(one)?, texts(one.get("allow").and_then(toml::Value::as_array)))))
                .collect::<Result<_>>()?,
            banned: banned.iter().map(named).collect::<Result<_>>()?,
        })
    }

    fn problem(&self, package: &Package) -> Option<String> {
        let (name, licence) = (package.name.as_str(), package.license.as_deref().unwrap_or("none"));
        if package.source.as_ref().is_some_and(|source| !source.is_crates_io()) {
            return Some(format!("{name}: it does not come from the registry of crates"));
        }
        if self.banned.iter().any(|banned| banned == name) {
            return Some(format!("{name}: deny.toml bans it"));
        }
        let own = self.exceptions.get(name);
        let allows = |word: &str| self.licences.iter().chain(own.into_iter().flatten()).any(|known| known == word);
        (!fits(licence, &allows)).then(|| format!("{name}: its licence is {licence}, which deny.toml does not allow"))
    }
}

/// Whether a licence expression can be fulfilled with licences that are allowed.
fn fits(expression: &str, allows: &impl Fn(&str) -> bool) -> bool {
    // Older crates write a slash for OR.
    let words = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = words.split_whitespace().peekable();
    any(&mut words, allows) && words.next().is_none()
}

type Words<'w> = std::iter::Peekable<std::str::SplitWhitespace<'w>>;

fn any(words: &mut Words<'_>, allows: &impl Fn(&str) -> bool) -> bool {
    let mut fits = all(words, allows);
    while words.next_if_eq(&"OR").is_some() {
        fits |= all(words, allows);
    }
    fits
}

fn all(words: &mut Words<'_>, allows: &impl Fn(&str) -> bool) -> bool {
    let mut fits = one(words, allows);
    while words.next_if_eq(&"AND").is_some() {
        fits &= one(words, allows);
    }
    fits
}

fn one(words: &mut Words<'_>, allows: &impl Fn(&str) -> bool) -> bool {
    match words.next() {
        Some("(") => any(words, allows) & words.next_if_eq(&")").is_some(),
        Some(licence) if words.next_if_eq(&"WITH").is_some() => {
            let exception = words.next().unwrap_or_default();
            allows(&format!("{licence} WITH {exception}")) || allows(licence)
        }
        Some(licence) => allows(licence),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_fulfilled_by_what_is_allowed() {
        let allows = |word: &str| ["MIT", "Apache-2.0 WITH LLVM-exception", "Unicode-3.0"].contains(&word);
        for (expression, expected) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("MIT/GPL-3.0", true),
            ("GPL-3.0 OR MIT", true),
            ("GPL-3.0 AND MIT", false),
            ("(GPL-3.0 OR MIT) AND Unicode-3.0", true),
            ("MIT OR Apache-2.0 WITH LLVM-exception AND GPL-3.0", true),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("Apache-2.0 WITH other", false),
            ("MIT MIT", false),
            ("(MIT", false),
            ("", false),
            ("none", false),
        ] {
            assert_eq!(fits(expression, &allows), expected, "{expression}");
        }
    }
}
