//! The plugins that are built into the binary. Once loaded, they are treated like all others: they are compiled and sandboxed in the
//! same way, and granted nothing by default.

use anyhow::{Context, Result, bail};
use bytes::Bytes;

use super::source::Component;

/// The names of all built-in plugins.
pub fn names() -> impl Iterator<Item = &'static str> {
    wharf_assets::builtins()
}

/// The component of that name.
pub fn find(name: &str) -> Result<Component> {
    let Some((name, component)) = wharf_assets::builtin(name) else {
        let all: Vec<&str> = names().collect();
        if all.is_empty() {
            bail!("this wharf was built without built-in plugins; `cargo xtask build` builds one that has them");
        }
        bail!("there is no built-in plugin `{}`; there are: {}", name.escape_debug(), all.join(", "));
    };
    let component = component.with_context(|| format!("the built-in plugin `{name}`"))?;
    Ok(Component::built_in(name, Bytes::from(component)))
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
        let expected = if names().next().is_none() { "without built-in" } else { "there are: fetch, files, git" };
        assert!(error.contains(expected), "{error}");
    }
}
