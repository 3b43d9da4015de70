//! The templates of `wharf new` and the SDKs, embedded in the binary and deflated by `build.rs`.

#![forbid(unsafe_code)]

use miniz_oxide::inflate::decompress_to_vec_with_limit;

/// The paths and lengths of the files, and their contents one after the other, deflated.
const TEMPLATES: (&[(&str, usize)], &[u8]) = include!(concat!(env!("OUT_DIR"), "/templates.rs"));

/// The limit for inflating them, which they stay below.
const MAX_BYTES: usize = 16 << 20;

/// The error of bytes in the binary that cannot be inflated.
#[derive(Debug, thiserror::Error)]
#[error("its bytes in the binary are damaged: {0}")]
pub struct Damaged(String);

/// Returns the files of the templates and SDKs, by their paths in the repository.
pub fn templates() -> Result<Vec<(&'static str, Vec<u8>)>, Damaged> {
    let (paths, deflated) = TEMPLATES;
    let contents = decompress_to_vec_with_limit(deflated, MAX_BYTES).map_err(|error| Damaged(error.to_string()))?;
    let mut rest = contents.as_slice();
    let each = paths.iter().map(|&(path, length)| {
        let (file, after) = rest.split_at_checked(length).ok_or_else(|| Damaged("they are truncated".into()))?;
        rest = after;
        Ok((path, file.to_vec()))
    });
    each.collect()
}
