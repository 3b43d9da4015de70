//! Describes files and folders: what they are, their sizes and times, and what is in them.

use std::{fs, path::Path};

use jiff::{Timestamp, tz::TimeZone};
use wharf_sdk::{Error, Result, serde, serde::Serialize};

use crate::{
    arguments::SortBy,
    folder::{self, Kind},
    ignored::Ignored,
    left_out::LeftOut,
    order,
    paths::{at_path, look},
    said_by,
    search::Globs,
};

/// The maximum number of entries in one answer.
const MAX_TREE: usize = 20_000;

#[derive(Serialize)]
#[serde(crate = "serde")]
pub struct TreeEntry {
    name: String,
    /// `file` or `directory`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The entries of a directory; absent for files.
    #[serde(skip_serializing_if = "Option::is_none")]
    children: Option<Vec<TreeEntry>>,
}

pub struct Entry {
    pub name: String,
    pub is_directory: bool,
    pub size: u64,
}

/// Returns size, times and kind, in the reference server's format.
pub fn about(path: &Path) -> Result<String> {
    let metadata = fs::metadata(path).map_err(|error| at_path(path, error))?;
    let mut lines = vec![format!("size: {}", metadata.len())];
    for (name, time) in
        [("created", metadata.created()), ("modified", metadata.modified()), ("accessed", metadata.accessed())]
    {
        // A time that the file system does not record is left out.
        if let Some(time) = time.ok().and_then(|time| Timestamp::try_from(time).ok()) {
            let time =
                time.to_zoned(TimeZone::UTC).strftime("%a %b %d %Y %H:%M:%S GMT+0000 (Coordinated Universal Time)");
            lines.push(format!("{name}: {time}"));
        }
    }
    lines.push(format!("isDirectory: {}", metadata.is_dir()));
    lines.push(format!("isFile: {}", metadata.is_file()));
    Ok(lines.join("\n"))
}

/// Returns a folder's entries, sorted by name. Reading the folder also gives the kind of each entry, so no entry is queried separately.
pub fn entries(path: &Path) -> Result<Vec<Entry>> {
    let entry = |(name, kind): (String, _)| {
        let entry = Entry { is_directory: kind == Kind::Folder, size: 0, name };
        (beginning(&entry.name), entry)
    };
    let mut entries: Vec<(u128, Entry)> = folder::read(path)?.into_iter().map(entry).collect();
    entries.sort_unstable_by(|one, other| one.0.cmp(&other.0).then_with(|| one.1.name.cmp(&other.1.name)));
    Ok(entries.into_iter().map(|(_, entry)| entry).collect())
}

/// Returns the first 16 bytes of a name as a number with the same order. Comparing names byte by byte is slow in a sandbox, and most names
/// differ in these bytes.
fn beginning(name: &str) -> u128 {
    let bytes = name.bytes().chain(std::iter::repeat(0)).take(16);
    bytes.fold(0, |number, byte| number << 8 | u128::from(byte))
}

/// Returns a folder's entries with their sizes, sorted by name. A link has the size of what it leads to.
pub fn sized_entries(path: &Path) -> Result<Vec<Entry>> {
    let mut entries = entries(path)?;
    for entry in &mut entries {
        entry.size = look(&path.join(&entry.name)).map_or(0, |metadata| metadata.len());
    }
    Ok(entries)
}

/// Lists entries with the sizes of files. Those of folders only count for the order, as in the reference server.
pub fn with_sizes(mut entries: Vec<Entry>, sort_by: SortBy) -> String {
    match sort_by {
        SortBy::Size => entries.sort_by_key(|entry| std::cmp::Reverse(entry.size)),
        SortBy::Name => entries.sort_by_cached_key(|entry| order::key(&entry.name)),
    }
    let files = entries.iter().filter(|entry| !entry.is_directory);
    let (count, sum) = files.fold((0, 0), |(count, sum), entry| (count + 1, sum + entry.size));
    let folders = entries.len() - count;
    let mut lines: Vec<String> = entries
        .iter()
        .map(|entry| match entry.is_directory {
            true => format!("[DIR] {} ", padded(&entry.name)),
            false => format!("[FILE] {} {:>10}", padded(&entry.name), readable(entry.size)),
        })
        .collect();
    lines.push(format!("\nTotal: {count} files, {folders} directories"));
    lines.push(format!("Combined size: {}", readable(sum)));
    lines.join("\n")
}

/// Pads a name with blanks to the width of a column, which the reference server counts in UTF-16 units.
fn padded(name: &str) -> String {
    let blanks = 30_usize.saturating_sub(name.encode_utf16().count());
    format!("{name}{}", " ".repeat(blanks))
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

/// What a tree is made of.
pub struct Tree<'a> {
    pub root: &'a Path,
    pub exclude: &'a Globs,
    pub ignored: Ignored,
    pub left: &'a mut LeftOut,
    pub count: usize,
}

impl Tree<'_> {
    /// Returns the tree under a folder. Links are not followed. A folder further down that cannot be read has no entries.
    pub fn under(&mut self, folder: &Path) -> Result<Vec<TreeEntry>> {
        let entries = match entries(folder) {
            Err(error) if folder != self.root => {
                self.left.unreadable(said_by(error));
                return Ok(Vec::new());
            }
            entries => entries?,
        };
        let before = self.ignored.enter(folder, self.left);
        let mut found = Vec::new();
        for entry in entries {
            let path = folder.join(&entry.name);
            if self.exclude.match_any(path.strip_prefix(self.root).unwrap_or(&path)) {
                continue;
            }
            if let Some(why) = self.ignored.why(&path, entry.is_directory) {
                self.left.ignored(why);
                continue;
            }
            self.left.name(folder, &entry.name);
            self.count += 1;
            if self.count > MAX_TREE {
                return Err(Error::failed(format!(
                    "more than {MAX_TREE} entries; give a folder further down, or excludePatterns"
                )));
            }
            let children = entry.is_directory.then(|| self.under(&path)).transpose()?;
            let kind = if entry.is_directory { "directory" } else { "file" };
            found.push(TreeEntry { name: entry.name, kind, children });
        }
        self.ignored.leave(before);
        Ok(found)
    }
}

/// Returns the MIME type that `read_media_file` gives for a file. As in the reference server, it is an image or audio type, or that of
/// arbitrary bytes.
pub fn media_type(path: &Path) -> &'static str {
    let known = mime_type(path);
    if known.starts_with("image/") || known.starts_with("audio/") { known } else { "application/octet-stream" }
}

/// Returns the MIME type of a file, by the extension of its name.
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
