//! Checks that SECURITY.md names every place in which the host has `unsafe`.

use std::{fs, path::Path};

use anyhow::{Context, Result};

const DOCUMENT: &str = "SECURITY.md";
/// The attribute without which the linter refuses `unsafe`.
const ALLOWS: &str = "#[expect(unsafe_code";

/// Returns the places that are not named. `sources`: paths and texts.
pub fn problems(root: &Path, sources: &[(String, String)]) -> Result<Vec<String>> {
    let document = fs::read_to_string(root.join(DOCUMENT)).context(DOCUMENT)?;
    let host = sources.iter().filter(|(name, _)| name.starts_with("host/"));
    let places = host.flat_map(|(name, text)| places(name, text));
    let missing = places.filter(|place| !document.contains(&format!("`{place}`")));
    Ok(missing.map(|place| format!("{place}: it has `unsafe`, and {DOCUMENT} does not name it")).collect())
}

/// Returns the files that an attribute in this file allows `unsafe`: the file itself, or that of a module.
fn places<'t>(name: &'t str, text: &'t str) -> impl Iterator<Item = String> + use<'t> {
    let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
    text.split(ALLOWS).skip(1).map(move |rest| {
        let item = rest.lines().skip(1).find(|line| !line.trim_start().starts_with("#["));
        let item = item.unwrap_or_default().trim_start().trim_start_matches("pub ");
        match item.strip_prefix("mod ").and_then(|module| module.strip_suffix(';')) {
            Some(module) => format!("{folder}/{module}.rs"),
            None => name.to_owned(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_the_file_of_the_item() {
        let text = "#[cfg(x)]\n#[expect(unsafe_code, reason = \"a\")]\nmod one;\n#[expect(unsafe_code, reason = \"b\")]\n#[inline]\nfn two() {}\n";
        assert_eq!(places("host/a/src/lib.rs", text).collect::<Vec<_>>(), ["host/a/src/one.rs", "host/a/src/lib.rs"]);
    }
}
