//! The plugins that are in the binary itself. Nothing sets them apart from others once they are loaded: they are compiled, shut in and
//! granted nothing in the same way.

use anyhow::{Result, bail};
use bytes::Bytes;

use super::source::Component;

/// The names, and the components as [deflate](https://www.rfc-editor.org/rfc/rfc1951) makes them smaller.
const ALL: &[(&str, &[u8])] = &include!(concat!(env!("OUT_DIR"), "/builtins.rs"));

/// More than any of them has.
const MAX_BYTES: usize = 64 << 20;

pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|(name, _)| *name)
}

/// The component of that name.
pub fn find(name: &str) -> Result<Component> {
    let Some((name, deflated)) = ALL.iter().find(|(known, _)| *known == name) else {
        let all: Vec<&str> = names().collect();
        if all.is_empty() {
            bail!("this wharf was built without built-in plugins; `cargo xtask build` builds one that has them");
        }
        bail!("there is no built-in plugin `{}`; there are: {}", name.escape_debug(), all.join(", "));
    };
    match miniz_oxide::inflate::decompress_to_vec_with_limit(deflated, MAX_BYTES) {
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
