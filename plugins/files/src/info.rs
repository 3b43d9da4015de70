//! What there is to know of files and folders.

use std::{
    fs,
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use globset::GlobSet;
use wharf_sdk::{Error, Result, schemars, schemars::JsonSchema, serde, serde::Serialize};

use crate::{arguments::SortBy, paths::at_path};

/// More entries than this are too many for one answer.
const MAX_TREE: usize = 20_000;

#[derive(Serialize, JsonSchema)]
#[serde(crate = "serde", rename_all = "camelCase")]
#[schemars(crate = "schemars")]
pub struct FileInfo {
    /// Bytes.
    size: u64,
    /// Seconds since 1970, UTC; absent where the file system does not say.
    created: Option<u64>,
    modified: Option<u64>,
    accessed: Option<u64>,
    is_directory: bool,
    is_file: bool,
    is_symlink: bool,
}

#[derive(Serialize)]
#[serde(crate = "serde")]
pub struct TreeEntry {
    name: String,
    /// `file` or `directory`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// Of a directory only.
    #[serde(skip_serializing_if = "Option::is_none")]
    children: Option<Vec<TreeEntry>>,
}

pub struct Entry {
    pub name: String,
    pub is_directory: bool,
    pub size: u64,
}

pub fn file_info(path: &Path) -> Result<FileInfo> {
    let link = fs::symlink_metadata(path).map_err(|error| at_path(path, error))?;
    // A link that leads outside has nothing to tell but that it is one.
    let metadata = fs::metadata(path).unwrap_or_else(|_| link.clone());
    let seconds = |time: std::io::Result<SystemTime>| Some(time.ok()?.duration_since(UNIX_EPOCH).ok()?.as_secs());
    Ok(FileInfo {
        size: metadata.len(),
        created: seconds(metadata.created()),
        modified: seconds(metadata.modified()),
        accessed: seconds(metadata.accessed()),
        is_directory: metadata.is_dir(),
        is_file: metadata.is_file(),
        is_symlink: link.file_type().is_symlink(),
    })
}

/// A folder's entries by name. The listing tells what each is, so nothing is looked at a second time.
pub fn entries(path: &Path) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(path).map_err(|error| at_path(path, error))? {
        let entry = entry.map_err(|error| at_path(path, error))?;
        entries.push(Entry {
            name: entry.file_name().to_string_lossy().into_owned(),
            is_directory: entry.file_type().is_ok_and(|kind| kind.is_dir()),
            size: 0,
        });
    }
    entries.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    Ok(entries)
}

/// The same with the sizes of files; a link has that of what it leads to.
pub fn sized_entries(path: &Path) -> Result<Vec<Entry>> {
    let mut entries = entries(path)?;
    for entry in entries.iter_mut().filter(|entry| !entry.is_directory) {
        entry.size = fs::metadata(path.join(&entry.name)).map_or(0, |metadata| metadata.len());
    }
    Ok(entries)
}

pub fn with_sizes(mut entries: Vec<Entry>, sort_by: SortBy) -> String {
    if sort_by == SortBy::Size {
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.size));
    }
    let files = entries.iter().filter(|entry| !entry.is_directory);
    let (count, sum) = files.fold((0, 0), |(count, sum), entry| (count + 1, sum + entry.size));
    let folders = entries.len() - count;
    let mut lines: Vec<String> = entries
        .iter()
        .map(|entry| match entry.is_directory {
            true => format!("[DIR] {}", entry.name),
            false => format!("[FILE] {:<30} {:>10}", entry.name, readable(entry.size)),
        })
        .collect();
    lines.push(format!("\nTotal: {count} files, {folders} directories"));
    lines.push(format!("Combined size: {}", readable(sum)));
    lines.join("\n")
}

fn readable(bytes: u64) -> String {
    let units = ["B", "KB", "MB", "GB", "TB"];
    let mut size = bytes as f64;
    let mut unit = 0;
    while size >= 1024.0 && unit + 1 < units.len() {
        size /= 1024.0;
        unit += 1;
    }
    let name = units.get(unit).copied().unwrap_or_default();
    if unit == 0 { format!("{bytes} {name}") } else { format!("{size:.2} {name}") }
}

/// Everything under a folder, links not followed.
pub fn tree(root: &Path, folder: &Path, exclude: &GlobSet, count: &mut usize) -> Result<Vec<TreeEntry>> {
    let mut found = Vec::new();
    for entry in entries(folder)? {
        let path = folder.join(&entry.name);
        if exclude.is_match(path.strip_prefix(root).unwrap_or(&path)) || exclude.is_match(&entry.name) {
            continue;
        }
        *count += 1;
        if *count > MAX_TREE {
            return Err(Error::failed(format!(
                "more than {MAX_TREE} entries; give a folder further down, or excludePatterns"
            )));
        }
        let children = entry.is_directory.then(|| tree(root, &path, exclude, count)).transpose()?;
        let kind = if entry.is_directory { "directory" } else { "file" };
        found.push(TreeEntry { name: entry.name, kind, children });
    }
    Ok(found)
}

/// By its ending.
pub fn mime_type(path: &Path) -> &'static str {
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    match extension.as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "bmp" => "image/bmp",
        "svg" => "image/svg+xml",
        "mp3" => "audio/mpeg",
        "wav" => "audio/wav",
        "ogg" => "audio/ogg",
        "flac" => "audio/flac",
        "pdf" => "application/pdf",
        "json" => "application/json",
        "html" | "htm" => "text/html",
        "css" => "text/css",
        "md" => "text/markdown",
        "txt" | "log" | "rs" | "toml" | "py" | "js" | "ts" | "c" | "h" | "sh" | "yml" | "yaml" => "text/plain",
        _ => "application/octet-stream",
    }
}
