//! Finding files by name and lines by content. Links are not followed, so a search ends.

use std::{
    fs,
    path::{Path, PathBuf},
};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use regex::RegexBuilder;
use wharf_sdk::{Error, Result};

use crate::arguments::SearchContent;

/// Larger files are not looked into.
const MAX_FILE_BYTES: u64 = 8 << 20;
const MAX_NAMES: usize = 10_000;
const MAX_LINE_CHARS: usize = 300;
const DEFAULT_RESULTS: u32 = 100;

/// Globs as the reference server reads them: `*` stays within a folder, a name alone matches anywhere.
pub fn globs(patterns: &[String]) -> Result<GlobSet> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let wide = if pattern.contains(['*', '/']) { pattern.clone() } else { format!("**/{pattern}") };
        let wrong = |error: globset::Error| Error::failed(format!("`{pattern}` is no glob: {error}"));
        set.add(GlobBuilder::new(&wide).literal_separator(true).build().map_err(wrong)?);
    }
    Ok(set.build()?)
}

pub fn names(root: &Path, pattern: &str, exclude: &[String]) -> Result<Vec<String>> {
    let (wanted, exclude) = (globs(&[pattern.to_owned()])?, globs(exclude)?);
    let mut found = Vec::new();
    walk(root, root, &exclude, &mut |path, below, _| {
        if wanted.is_match(below) {
            found.push(path.display().to_string());
        }
        found.len() <= MAX_NAMES
    })?;
    if found.len() > MAX_NAMES {
        found.truncate(MAX_NAMES);
        found.push(format!("[more than {MAX_NAMES} match; give a folder further down, or excludePatterns]"));
    }
    Ok(found)
}

pub fn contents(root: &Path, args: &SearchContent) -> Result<String> {
    let pattern = RegexBuilder::new(&args.pattern)
        .case_insensitive(args.ignore_case.unwrap_or(false))
        .build()
        .map_err(|error| Error::failed(format!("the pattern is no regular expression: {error}")))?;
    let include = globs(args.include.as_slice())?;
    let exclude = globs(&args.exclude_patterns.clone().unwrap_or_default())?;
    let most = args.max_results.unwrap_or(DEFAULT_RESULTS).clamp(1, 10_000) as usize;
    let mut lines = Vec::new();
    let mut look = |path: &Path| {
        let small = fs::metadata(path).is_ok_and(|metadata| metadata.len() <= MAX_FILE_BYTES);
        let Some(text) = small.then(|| fs::read(path).ok()).flatten().and_then(|bytes| String::from_utf8(bytes).ok())
        else {
            return true;
        };
        for (number, line) in text.lines().enumerate().filter(|(_, line)| pattern.is_match(line)) {
            let short: String = line.chars().take(MAX_LINE_CHARS).collect();
            lines.push(format!("{}:{}: {short}", path.display(), number + 1));
            if lines.len() > most {
                return false;
            }
        }
        true
    };
    if root.is_file() {
        look(root);
    } else {
        walk(root, root, &exclude, &mut |path, below, is_directory| {
            let wanted = !is_directory && (args.include.is_none() || include.is_match(below));
            !wanted || look(path)
        })?;
    }
    if lines.is_empty() {
        return Ok("No matches found".to_owned());
    }
    let more = lines.len() > most;
    lines.truncate(most);
    if more {
        lines.push(format!("[more than {most} lines match; narrow the search, or raise maxResults]"));
    }
    Ok(lines.join("\n"))
}

/// Visits everything under a folder until `visit` says to stop. Folders that cannot be read are passed over.
fn walk(
    root: &Path,
    folder: &Path,
    exclude: &GlobSet,
    visit: &mut dyn FnMut(&Path, &Path, bool) -> bool,
) -> Result<bool> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if folder == root => return Err(crate::paths::at_path(folder, error)),
        Err(_) => return Ok(true),
    };
    let mut paths: Vec<(PathBuf, bool)> = entries
        .flatten()
        .filter_map(|entry| Some((entry.path(), entry.file_type().ok()?)))
        .filter(|(_, kind)| !kind.is_symlink())
        .map(|(path, kind)| (path, kind.is_dir()))
        .collect();
    paths.sort();
    for (path, is_directory) in paths {
        let below = path.strip_prefix(root).unwrap_or(&path);
        if exclude.is_match(below) {
            continue;
        }
        if !visit(&path, below, is_directory) || (is_directory && !walk(root, &path, exclude, visit)?) {
            return Ok(false);
        }
    }
    Ok(true)
}
