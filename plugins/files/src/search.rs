//! Finds files by name and lines by content. Links are found, but not followed, so that every search ends.

use std::{
    fs,
    path::{Path, PathBuf},
};

use regex::RegexBuilder;
use wharf_sdk::{Error, Result};

use crate::{
    arguments::SearchContent,
    folder::{self, Kind},
    glob::Glob,
    paths::look,
};

/// The maximum size of a file whose contents are searched. Larger files are skipped.
const MAX_FILE_BYTES: u64 = 8 << 20;
const MAX_NAMES: usize = 10_000;
const MAX_LINE_CHARS: usize = 300;
const DEFAULT_RESULTS: u32 = 100;

/// Several globs, at least one of which has to match.
pub struct Globs(Vec<Glob>);

impl Globs {
    /// Parses patterns that must match the whole path below the searched folder.
    pub fn below(patterns: &[String]) -> Result<Self> {
        patterns.iter().map(|pattern| Glob::new(pattern)).collect::<Result<_>>().map(Self)
    }

    /// Parses patterns for exclusion. Patterns with a `*` are like those of `below`. A pattern without a `*` matches at any depth, and if
    /// it matches a folder, also everything in it.
    pub fn anywhere(patterns: &[String]) -> Result<Self> {
        let wide = |pattern: &String| match pattern.contains('*') {
            // An empty pattern matches nothing.
            _ if pattern.is_empty() => Vec::new(),
            true => vec![pattern.clone()],
            false => vec![pattern.clone(), format!("**/{pattern}"), format!("**/{pattern}/**")],
        };
        Self::below(&patterns.iter().flat_map(wide).collect::<Vec<_>>())
    }

    /// Parses patterns for files. A pattern with a `/` must match the whole path of a file, any other only its name.
    fn of_files(patterns: &[String]) -> Result<Self> {
        let wide = |pattern: &String| match pattern.contains('/') {
            true => pattern.clone(),
            false => format!("**/{pattern}"),
        };
        Self::below(&patterns.iter().map(wide).collect::<Vec<_>>())
    }

    pub fn match_any(&self, path: &Path) -> bool {
        path.to_str().is_some_and(|path| self.0.iter().any(|glob| glob.matches(path)))
    }
}

pub fn names(root: &Path, pattern: &str, exclude: &[String]) -> Result<Vec<String>> {
    let (wanted, exclude) = (Glob::new(pattern)?, Globs::below(exclude)?);
    let mut found = Vec::new();
    walk(root, root, &exclude, &mut |path, below, _| {
        if below.to_str().is_some_and(|below| wanted.matches(below)) {
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
        .map_err(|error| Error::failed(format!("the pattern is not a regular expression: {error}")))?;
    let include = Globs::of_files(args.include.as_slice())?;
    let exclude = Globs::anywhere(args.exclude_patterns.as_deref().unwrap_or_default())?;
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
            let wanted = !is_directory && !path.is_symlink() && (args.include.is_none() || include.match_any(below));
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

/// Visits everything under a folder until `visit` says to stop. Folders below it that cannot be read are skipped.
fn walk(
    root: &Path,
    folder: &Path,
    exclude: &Globs,
    visit: &mut dyn FnMut(&Path, &Path, bool) -> bool,
) -> Result<bool> {
    let entries = match folder::read(folder) {
        Ok(entries) => entries,
        Err(error) if folder == root => return Err(error),
        Err(_) => return Ok(true),
    };
    let mut paths: Vec<(PathBuf, bool)> = entries
        .into_iter()
        .map(|(name, kind)| (folder.join(name), kind))
        // A dangling link, or one that leads out of the open folders, is treated as if it did not exist.
        .filter(|(path, kind)| *kind != Kind::Link || look(path).is_ok())
        .map(|(path, kind)| (path, kind == Kind::Folder))
        .collect();
    paths.sort();
    for (path, is_directory) in paths {
        let below = path.strip_prefix(root).unwrap_or(&path);
        if exclude.match_any(below) {
            continue;
        }
        if !visit(&path, below, is_directory) || (is_directory && !walk(root, &path, exclude, visit)?) {
            return Ok(false);
        }
    }
    Ok(true)
}
