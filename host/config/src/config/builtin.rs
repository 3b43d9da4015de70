//! The plugins that are built into the binary. Once loaded, they are treated like all others: they are compiled and sandboxed in the
//! same way, and granted nothing by default.

use anyhow::{Context, Result, bail};
use bytes::Bytes;

use super::{defaults, source::Component};
use crate::access::grants::env::RawEnv;

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

/// The environment variables that a built-in plugin sees if it is named on the command line, where variables cannot be granted.
pub fn env(name: &str) -> Vec<RawEnv> {
    match name {
        // For paths that begin with `~`.
        "files" => vec![RawEnv::Variable("HOME".to_owned())],
        _ => Vec::new(),
    }
}

/// Returns the maximum size of a result of a built-in plugin that has no limit of its own. `general`: that of `[limits]`.
pub fn output_bytes(name: &str, general: usize) -> usize {
    match name {
        // Another general limit was set by the operator.
        "files" if general == defaults::OUTPUT_KIB << 10 => defaults::FILES_OUTPUT_KIB << 10,
        _ => general,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_may_send_pictures_unless_the_operator_says_otherwise() {
        assert_eq!(output_bytes("files", 4 << 20), 16 << 20);
        assert_eq!(output_bytes("files", 1 << 20), 1 << 20);
        assert_eq!(output_bytes("git", 4 << 20), 4 << 20);
    }

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
