//! Files embedded in the binary, deflated by `build.rs`: the built-in plugins, and the templates of `wharf new`.

#![forbid(unsafe_code)]

use miniz_oxide::inflate::decompress_to_vec_with_limit;

/// The names of the built-in plugins, and their components, each [deflated](https://www.rfc-editor.org/rfc/rfc1951).
const BUILTINS: &[(&str, &[u8])] = &include!(concat!(env!("OUT_DIR"), "/builtins.rs"));
/// The paths and lengths of the templates' files, and their contents one after the other, deflated.
#[cfg(feature = "templates")]
const TEMPLATES: (&[(&str, usize)], &[u8]) = include!(concat!(env!("OUT_DIR"), "/templates.rs"));

/// The limit for inflating a built-in plugin, which is smaller.
const MAX_BUILTIN_BYTES: usize = 64 << 20;
/// The limit for inflating the templates, which are smaller.
#[cfg(feature = "templates")]
const MAX_TEMPLATE_BYTES: usize = 16 << 20;

/// The error of bytes in the binary that cannot be inflated.
#[derive(Debug, thiserror::Error)]
#[error("its bytes in the binary are damaged: {0}")]
pub struct Damaged(String);

/// Returns the names of the built-in plugins.
pub fn builtins() -> impl Iterator<Item = &'static str> {
    BUILTINS.iter().map(|(name, _)| *name)
}

/// Returns the name and the component of a built-in plugin, or `None` if no built-in plugin has that name.
pub fn builtin(name: &str) -> Option<(&'static str, Result<Vec<u8>, Damaged>)> {
    let (name, deflated) = BUILTINS.iter().find(|(known, _)| *known == name)?;
    Some((name, inflate(deflated, MAX_BUILTIN_BYTES)))
}

/// Returns the files of the templates and SDKs, by their paths in the repository.
#[cfg(feature = "templates")]
pub fn templates() -> Result<Vec<(&'static str, Vec<u8>)>, Damaged> {
    let (paths, deflated) = TEMPLATES;
    let contents = inflate(deflated, MAX_TEMPLATE_BYTES)?;
    let mut rest = contents.as_slice();
    let each = paths.iter().map(|&(path, length)| {
        let (file, after) = rest.split_at_checked(length).ok_or_else(|| Damaged("they are truncated".into()))?;
        rest = after;
        Ok((path, file.to_vec()))
    });
    each.collect()
}

/// Returns the templates and SDKs as they are in the binary: other bytes are other SDKs.
#[cfg(feature = "templates")]
pub fn deflated_templates() -> &'static [u8] {
    TEMPLATES.1
}

fn inflate(deflated: &[u8], max: usize) -> Result<Vec<u8>, Damaged> {
    decompress_to_vec_with_limit(deflated, max).map_err(|error| Damaged(error.to_string()))
}
