//! The plugins that are built into the binary. Once loaded, they are treated like all others: they are compiled and sandboxed in the
//! same way, and granted nothing by default.

use anyhow::{Result, bail};
use bytes::Bytes;

use super::source::Component;

/// The names and the components, compressed with [deflate](https://www.rfc-editor.org/rfc/rfc1951).
const ALL: &[(&str, &[u8])] = &include!(concat!(env!("OUT_DIR"), "/builtins.rs"));

/// An upper bound for the size of a decompressed component.
const MAX_COMPONENT_BYTES: usize = 64 << 20;

pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|(name, _)| *name)
}

/// Returns the component of the built-in plugin with this name.
pub fn find(name: &str) -> Result<Component> {
    let Some((name, deflated)) = ALL.iter().find(|(known, _)| *known == name) else {
        let all: Vec<&str> = names().collect();
        if all.is_empty() {
            bail!("this wharf was built without built-in plugins; `cargo xtask build` builds one that has them");
        }
        bail!("there is no built-in plugin `{}`; there are: {}", name.escape_debug(), all.join(", "));
    };
    match miniz_oxide::inflate::decompress_to_vec_with_limit(deflated, MAX_COMPONENT_BYTES) {
        Ok(component) => Ok(Component::built_in(name, Bytes::from(component))),
        Err(error) => bail!("the built-in plugin `{name}` is damaged: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_are_there_are_whole_and_others_are_named() {
        for name in names() {
            assert_eq!(find(name).unwrap().to_string(), format!("the built-in plugin {name}"));
        }
        let error = find("fiels").unwrap_err().to_string();
        let expected = if ALL.is_empty() { "without built-in" } else { "there are: fetch, files, git" };
        assert!(error.contains(expected), "{error}");
    }
}
