//! Reading text whole or in part, and replacing a file so that it is never half written.

use std::{fs, path::Path};

use wharf_sdk::{Error, Result};

use crate::paths::at_path;

pub fn read(path: &Path) -> Result<String> {
    let bytes = fs::read(path).map_err(|error| at_path(path, error))?;
    String::from_utf8(bytes)
        .map_err(|_| Error::failed(format!("{}: not a text file; use read_media_file", path.display())))
}

/// The lines that were asked for; the whole text if none were.
pub fn part(
    text: String,
    head: Option<u32>,
    tail: Option<u32>,
    start_line: Option<u32>,
    end_line: Option<u32>,
) -> Result<String> {
    let range = start_line.is_some() || end_line.is_some();
    let lines = || text.split_inclusive('\n');
    match (head, tail, range) {
        (None, None, false) => Ok(text),
        (Some(head), None, false) => Ok(lines().take(head as usize).collect()),
        (None, Some(tail), false) => Ok(lines().skip(lines().count().saturating_sub(tail as usize)).collect()),
        (None, None, true) => {
            let (start, end) = (start_line.unwrap_or(1), end_line.unwrap_or(u32::MAX));
            if start == 0 || end < start {
                return Err(Error::failed("lines are counted from 1, and startLine comes before endLine"));
            }
            Ok(lines().skip(start as usize - 1).take((end - start) as usize + 1).collect())
        }
        _ => Err(Error::failed("give only one of head, tail, and startLine with endLine")),
    }
}

/// Writes beside the file and renames, so that readers see the old text or the new one.
pub fn replace(path: &Path, text: &str) -> Result<()> {
    if path.is_dir() {
        return Err(Error::failed(format!("{}: is a directory", path.display())));
    }
    // Through a link, the file it leads to is written, and the link stays.
    if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_symlink()) {
        return fs::write(path, text).map_err(|error| at_path(path, error));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.partial"));
    let written = fs::write(&beside, text).and_then(|()| fs::rename(&beside, path));
    written.map_err(|error| {
        // If it was made at all.
        fs::remove_file(&beside).ok();
        at_path(path, error)
    })
}
