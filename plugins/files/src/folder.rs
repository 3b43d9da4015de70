//! Reads folders with WASI's own functions. std would also ask for the identity of each entry, which is not needed here and takes as long
//! as reading the folder.

use std::{io, path::Path};

use wasip2::filesystem::{
    preopens::get_directories,
    types::{Descriptor, DescriptorFlags, DescriptorType, ErrorCode, OpenFlags, PathFlags},
};
use wharf_sdk::Result;

use crate::paths::at_path;

/// The kind of an entry of a folder.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Folder,
    Link,
    File,
}

/// The maximum number of open directories. Each takes a handle while another folder is read, and handles are limited.
const MAX_OPEN_DIRECTORIES: usize = 8;

/// Returns the entries of a folder, in no particular order.
pub fn read(path: &Path) -> Result<Vec<(String, Kind)>> {
    if wharf_sdk::host::directories().len() <= MAX_OPEN_DIRECTORIES
        && let Ok(entries) = read_in_open(path)
    {
        return Ok(entries);
    }
    let failed = |error: io::Error| at_path(path, error);
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let kind = match entry.file_type().map_err(failed)? {
            kind if kind.is_dir() => Kind::Folder,
            kind if kind.is_symlink() => Kind::Link,
            _ => Kind::File,
        };
        entries.push((entry.file_name().to_string_lossy().into_owned(), kind));
    }
    Ok(entries)
}

fn read_in_open(path: &Path) -> std::result::Result<Vec<(String, Kind)>, ErrorCode> {
    let open = get_directories().into_iter().filter(|(_, base)| path.starts_with(base));
    let (base, name) = open.max_by_key(|(_, base)| base.len()).ok_or(ErrorCode::NoEntry)?;
    let below = path.strip_prefix(&name).ok().and_then(Path::to_str).ok_or(ErrorCode::IllegalByteSequence)?;
    let stream = folder(&base, below)?.as_ref().unwrap_or(&base).read_directory()?;
    let mut entries = Vec::new();
    while let Some(entry) = stream.read_directory_entry()? {
        let kind = match entry.type_ {
            DescriptorType::Directory => Kind::Folder,
            DescriptorType::SymbolicLink => Kind::Link,
            _ => Kind::File,
        };
        entries.push((entry.name, kind));
    }
    Ok(entries)
}

/// Returns how many names a file has, in all folders.
pub fn link_count(path: &Path) -> u64 {
    let open = get_directories().into_iter().filter(|(_, base)| path.starts_with(base));
    let Some((base, name)) = open.max_by_key(|(_, base)| base.len()) else { return 1 };
    let below = path.strip_prefix(&name).ok().and_then(Path::to_str);
    let stat = below.and_then(|below| base.stat_at(PathFlags::empty(), below).ok());
    stat.map_or(1, |stat| stat.link_count)
}

/// Opens the folder at the path `below` another one; returns `None` if the path is empty.
fn folder(base: &Descriptor, below: &str) -> std::result::Result<Option<Descriptor>, ErrorCode> {
    if below.is_empty() {
        return Ok(None);
    }
    base.open_at(PathFlags::SYMLINK_FOLLOW, below, OpenFlags::DIRECTORY, DescriptorFlags::READ).map(Some)
}
