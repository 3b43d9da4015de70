//! Finds files by name and lines by content. Links are found, but not followed, so that every search ends.

use std::{
    fs,
    path::{Path, PathBuf},
};

use regex::RegexBuilder;
use wharf_sdk::{Error, Result};

use crate::{
    arguments::{SearchContent, SearchFiles},
    encoding,
    folder::{self, Kind},
    glob::Glob,
    ignored::Ignored,
    left_out::LeftOut,
    paths::{at_path, look},
    said::Said,
    said_by,
};

/// The maximum size of a file whose contents are searched.
pub const MAX_FILE_BYTES: u64 = 8 << 20;
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

pub fn names(root: &Path, args: &SearchFiles) -> Result<Said> {
    let exclude = Globs::below(args.exclude_patterns.as_deref().unwrap_or_default())?;
    let wanted = Glob::new(&args.pattern)?;
    let mut found = Vec::new();
    let mut walk = Walk::new(root, &exclude, args.include_ignored);
    walk.under(root, &mut |left, path, below, _| {
        if below.to_str().is_some_and(|below| wanted.matches(below)) {
            if let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) {
                left.name(folder, name);
            }
            found.push(path.display().to_string());
        }
        found.len() <= MAX_NAMES
    })?;
    if found.len() > MAX_NAMES {
        found.truncate(MAX_NAMES);
        found.push(format!("[more than {MAX_NAMES} match; give a folder further down, or excludePatterns]"));
    }
    Ok(walk.said(&found))
}

pub fn contents(root: &Path, args: &SearchContent) -> Result<Said> {
    let pattern = RegexBuilder::new(&args.pattern)
        .case_insensitive(args.ignore_case.unwrap_or(false))
        .build()
        .map_err(|error| Error::failed(format!("the pattern is not a regular expression: {error}")))?;
    let include = Globs::of_files(args.include.as_slice())?;
    let exclude = Globs::anywhere(args.exclude_patterns.as_deref().unwrap_or_default())?;
    let most = args.max_results.unwrap_or(DEFAULT_RESULTS).clamp(1, 10_000) as usize;
    let mut lines = Vec::new();
    let mut search = |left: &mut LeftOut, path: &Path| {
        let Some(text) = text_of(path, left) else { return true };
        for (number, line) in text.lines().enumerate().filter(|(_, line)| pattern.is_match(line)) {
            let short: String = line.chars().take(MAX_LINE_CHARS).collect();
            lines.push(format!("{}:{}: {short}", path.display(), number + 1));
            if lines.len() > most {
                return false;
            }
        }
        true
    };
    let mut walk = Walk::new(root, &exclude, args.include_ignored);
    if root.is_dir() {
        walk.under(root, &mut |left, path, below, kind| {
            let wanted = kind == Kind::File && (args.include.is_none() || include.match_any(below));
            !wanted || search(left, path)
        })?;
    } else {
        search(&mut walk.left, root);
    }
    let more = lines.len() > most;
    lines.truncate(most);
    if more {
        lines.push(format!("[more than {most} lines match; narrow the search, or raise maxResults]"));
    }
    Ok(walk.said(&lines))
}

/// Reads a file that is to be searched. Returns `None` if that is not possible.
fn text_of(path: &Path, left: &mut LeftOut) -> Option<String> {
    let bytes = match fs::metadata(path) {
        Ok(metadata) if metadata.len() > MAX_FILE_BYTES => {
            left.too_large(path);
            return None;
        }
        Ok(metadata) if metadata.is_file() => fs::read(path),
        Ok(_) => return None,
        Err(error) => Err(error),
    };
    match bytes {
        Ok(bytes) => encoding::searched(path, bytes).or_else(|| {
            left.binary();
            None
        }),
        Err(error) => {
            left.unreadable(said_by(at_path(path, error)));
            None
        }
    }
}

/// Called with each entry: its path, the part of it below the root, and its kind. Returns whether to go on.
type Visit<'a> = &'a mut dyn FnMut(&mut LeftOut, &Path, &Path, Kind) -> bool;

/// A walk through everything under a folder.
struct Walk<'a> {
    root: &'a Path,
    exclude: &'a Globs,
    ignored: Ignored,
    left: LeftOut,
}

impl<'a> Walk<'a> {
    fn new(root: &'a Path, exclude: &'a Globs, include_ignored: Option<bool>) -> Self {
        let mut left = LeftOut::default();
        let ignored = match include_ignored {
            Some(true) => Ignored::nothing(),
            _ => Ignored::above(root, &mut left),
        };
        Self { root, exclude, ignored, left }
    }

    /// Visits the entries of a folder and everything below them. Returns whether to go on.
    fn under(&mut self, folder: &Path, visit: Visit<'_>) -> Result<bool> {
        let entries = match folder::read(folder) {
            Ok(entries) => entries,
            Err(error) if folder == self.root => return Err(error),
            Err(error) => {
                self.left.unreadable(said_by(error));
                return Ok(true);
            }
        };
        let mut paths: Vec<(PathBuf, Kind)> = entries
            .into_iter()
            .map(|(name, kind)| (folder.join(name), kind))
            // A dangling link, or one that leads out of the open folders, is treated as if it did not exist.
            .filter(|(path, kind)| *kind != Kind::Link || look(path).is_ok())
            .collect();
        paths.sort_by(|one, other| one.0.cmp(&other.0));
        let before = self.ignored.enter(folder, &mut self.left);
        for (path, kind) in paths {
            let below = path.strip_prefix(self.root).unwrap_or(&path);
            if self.exclude.match_any(below) {
                continue;
            }
            if let Some(why) = self.ignored.why(&path, kind == Kind::Folder) {
                self.left.ignored(why);
                continue;
            }
            if !visit(&mut self.left, &path, below, kind) || (kind == Kind::Folder && !self.under(&path, visit)?) {
                return Ok(false);
            }
        }
        self.ignored.leave(before);
        Ok(true)
    }

    fn said(&self, lines: &[String]) -> Said {
        let text = if lines.is_empty() { "No matches found".to_owned() } else { lines.join("\n") };
        Said { text, notes: self.left.notes() }
    }
}
