//! Edits files by text: finds and replaces text, and shows the difference.

use std::{ops::Range, path::Path};

use similar::{ChangeTag, TextDiff};
use wharf_sdk::{Error, Result};

use crate::arguments::Edit;

/// Makes the edits one after the other. Each line keeps its own line ending: a changed line that of the line that it replaces, and a new
/// one that of its neighbour.
pub fn apply(text: &str, edits: &[Edit]) -> Result<String> {
    let mut lines = Lines::of(text);
    for edit in edits {
        let (old, new) = (edit.old_text.replace("\r\n", "\n"), edit.new_text.replace("\r\n", "\n"));
        if old.is_empty() {
            return Err(Error::failed("oldText is empty; use write_file to write a whole file"));
        }
        match lines.text.find(&old) {
            Some(at) => lines.replace(at..at + old.len(), &new),
            None => {
                let (range, new) = by_lines(&lines.text, &old, &new)
                    .ok_or_else(|| Error::failed(format!("Could not find exact match for edit:\n{}", edit.old_text)))?;
                lines.replace(range, &new);
            }
        }
    }
    Ok(lines.whole())
}

/// A text with Unix line endings, and which of them are Windows line endings in the file.
struct Lines {
    text: String,
    windows: Vec<bool>,
}

impl Lines {
    fn of(text: &str) -> Self {
        let ends = text.match_indices('\n').map(|(at, _)| text.get(..at).is_some_and(|before| before.ends_with('\r')));
        Self { windows: ends.collect(), text: text.replace("\r\n", "\n") }
    }

    /// Replaces a part of the text.
    fn replace(&mut self, range: Range<usize>, new: &str) {
        let count = |text: Option<&str>| text.unwrap_or_default().matches('\n').count();
        let (old, before) = (self.text.get(range.clone()).unwrap_or_default(), count(self.text.get(..range.start)));
        // Lines that are the same at the beginning and at the end of both keep their endings.
        let (old_ends, new_ends) = (count(Some(old)), count(Some(new)));
        let first = equal(old.split_inclusive('\n'), new.split_inclusive('\n')).min(old_ends).min(new_ends);
        let last =
            equal(old.rsplit('\n').skip(1), new.rsplit('\n').skip(1)).min(old_ends - first).min(new_ends - first);
        let at = |end: usize| self.windows.get(before + end).copied();
        // What stands between them takes the endings of the old lines, in order, and then that of the last of these.
        let neighbour = || at(old_ends).or_else(|| self.windows.last().copied()).unwrap_or(false);
        let between = old_ends - last;
        let ends = (0..new_ends).map(|end| match end {
            _ if end >= new_ends - last => at(end + old_ends - new_ends),
            _ if end < between => at(end),
            _ if between > first => at(between - 1),
            _ => None,
        });
        let ends: Vec<bool> = ends.map(|end| end.unwrap_or_else(neighbour)).collect();
        self.windows.splice(before..before + old_ends, ends);
        self.text.replace_range(range, new);
    }

    fn whole(&self) -> String {
        let lines = self.text.split_inclusive('\n');
        let ends = self.windows.iter().copied().chain(std::iter::once(false));
        lines.zip(ends).fold(String::with_capacity(self.text.len()), |whole, (line, windows)| {
            match line.strip_suffix('\n') {
                Some(line) if windows => whole + line + "\r\n",
                _ => whole + line,
            }
        })
    }
}

/// Returns how many lines are equal at the beginning.
fn equal<'a>(old: impl Iterator<Item = &'a str>, new: impl Iterator<Item = &'a str>) -> usize {
    old.zip(new).take_while(|(old, new)| old == new).count()
}

/// Finds lines that differ only in leading or trailing blanks. Returns where they are, and the new lines, indented like the old ones.
fn by_lines(text: &str, old: &str, new: &str) -> Option<(Range<usize>, String)> {
    let lines: Vec<&str> = text.split('\n').collect();
    let (old, new) = match old.strip_suffix('\n') {
        Some(old) => (old, new.strip_suffix('\n').unwrap_or(new)),
        None => (old, new),
    };
    let wanted: Vec<&str> = old.split('\n').collect();
    // Blank lines alone match any blank line of the text, so they are ambiguous.
    if wanted.iter().all(|line| line.trim().is_empty()) {
        return None;
    }
    let fits = |window: &[&str]| window.iter().zip(&wanted).all(|(line, want)| line.trim() == want.trim());
    let at = lines.windows(wanted.len()).position(fits)?;
    let indent = |line: &str| line.strip_suffix(line.trim_start()).unwrap_or_default().to_owned();
    let (had, asked) = (indent(lines.get(at)?), indent(wanted.first()?));
    let replaced = new.split('\n').map(|line| match line.strip_prefix(asked.as_str()) {
        Some(rest) if !line.trim().is_empty() => format!("{had}{rest}"),
        _ => line.to_owned(),
    });
    let start: usize = lines.iter().take(at).map(|line| line.len() + 1).sum();
    let found = lines.get(at..at + wanted.len())?;
    let length = found.iter().map(|line| line.len() + 1).sum::<usize>() - 1;
    Some((start..start + length, replaced.collect::<Vec<_>>().join("\n")))
}

/// The number of context lines around a change.
const CONTEXT: usize = 4;

/// Returns a unified diff in the format of the reference server's library, in a code fence that the diff's text cannot close. Line endings
/// are not shown.
pub fn difference(path: &Path, before: &str, after: &str) -> String {
    let (before, after) = (before.replace("\r\n", "\n"), after.replace("\r\n", "\n"));
    let diff = TextDiff::from_lines(&before, &after);
    let path = path.display();
    let mut shown = format!("Index: {path}\n{}\n--- {path}\toriginal\n+++ {path}\tmodified\n", "=".repeat(67));
    for hunk in diff.grouped_ops(CONTEXT) {
        let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { continue };
        let range = |first: Range<usize>, last: Range<usize>| {
            let length = last.end - first.start;
            // If the range is empty, the number is that of the line before it.
            format!("{},{length}", if length == 0 { first.start } else { first.start + 1 })
        };
        let (old, new) = (range(first.old_range(), last.old_range()), range(first.new_range(), last.new_range()));
        shown.push_str(&format!("@@ -{old} +{new} @@\n"));
        for change in hunk.iter().flat_map(|op| diff.iter_changes(op)) {
            let mark = match change.tag() {
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
                ChangeTag::Equal => ' ',
            };
            shown.push(mark);
            shown.push_str(change.value());
            if change.missing_newline() {
                shown.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
    let longest = shown.split(|char| char != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(3.max(longest + 1));
    format!("{fence}diff\n{shown}{fence}\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(text: &str, old: &str, new: &str) -> Option<String> {
        apply(text, &[Edit { old_text: old.into(), new_text: new.into() }]).ok()
    }

    #[test]
    fn edits() {
        assert_eq!(edited("a b a", "a", "x").as_deref(), Some("x b a"));
        assert_eq!(edited("a\r\nb\r\n", "a\nb", "c").as_deref(), Some("c\r\n"));
        assert_eq!(
            edited("  if x {\n    y\n  }\n", "if x {\n  y\n}", "if z {\n  y\n}").as_deref(),
            Some("  if z {\n    y\n  }\n")
        );
        assert_eq!(edited("a", "b", "c"), None);
        // Blank lines are found only by an exact match.
        assert_eq!(edited("a\nb\n", "\n\n", "x"), None);
        assert_eq!(edited("a\nb\n", "  \n\t\n", "x"), None);
        assert_eq!(edited("def g():\n    y\n", "def g():\n\n\n", "x"), None);
        // Each line keeps its own line ending.
        assert_eq!(edited("a\r\nb\nc\n", "b", "x").as_deref(), Some("a\r\nx\nc\n"));
        assert_eq!(edited("a\r\nb\r\nc\n", "b", "x\ny").as_deref(), Some("a\r\nx\r\ny\r\nc\n"));
        for (text, old, new, expected) in [
            ("a\r\nb\nc\r\n", "b", "x", "a\r\nx\nc\r\n"),
            ("a\nb\r\nc\n", "b", "x", "a\nx\r\nc\n"),
            ("a\nb\r\nc\n", "  b", "x\ny", "a\nx\r\ny\r\nc\n"),
            ("a\nb\r\nc\nd\r\n", "a\nb\nc\nd\n", "a\nx\ny\nc\nd\n", "a\nx\r\ny\r\nc\nd\r\n"),
            ("a\nb\r\nc\nd\r\n", "b\nc\n", "", "a\nd\r\n"),
            ("a\nb\r\nc\nd\r\n", "a\nb\nc\n", "c\n", "c\nd\r\n"),
            ("a\r\nb\r\nc", "c", "x\ny\n", "a\r\nb\r\nx\r\ny\r\n"),
            ("a\nb\r\nc\n", "b\n", "b\nnew\n", "a\nb\r\nnew\nc\n"),
            ("x\r\nx\nx\r\n", "x\n", "", "x\nx\r\n"),
            ("a\rb\r\nc\n", "c", "d", "a\rb\r\nd\n"),
            ("a\nb\n", "b", "x\r\ny", "a\nx\ny\n"),
        ] {
            assert_eq!(edited(text, old, new).as_deref(), Some(expected), "{text:?} {old:?} {new:?}");
        }
        assert_eq!(edited("a", "", "c"), None);
    }

    #[test]
    fn fences_hold() {
        let shown = difference(Path::new("f"), "```\n", "x\n");
        assert!(shown.starts_with("````diff\n") && shown.ends_with("````\n\n"));
    }
}
