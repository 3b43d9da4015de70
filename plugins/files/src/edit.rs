//! Edits files by text: finds and replaces text, and shows the difference.

use std::{ops::Range, path::Path};

use similar::{ChangeTag, TextDiff};
use wharf_sdk::{Error, Result};

use crate::arguments::Edit;

/// Makes the edits one after the other. Unchanged lines keep their own line ending; new lines get the one that most lines have.
pub fn apply(text: &str, edits: &[Edit]) -> Result<String> {
    let before = text.replace("\r\n", "\n");
    let mut after = before.clone();
    for edit in edits {
        let (old, new) = (edit.old_text.replace("\r\n", "\n"), edit.new_text.replace("\r\n", "\n"));
        if old.is_empty() {
            return Err(Error::failed("oldText is empty; use write_file to write a whole file"));
        }
        after = if after.contains(&old) {
            after.replacen(&old, &new, 1)
        } else {
            by_lines(&after, &old, &new)
                .ok_or_else(|| Error::failed(format!("Could not find exact match for edit:\n{}", edit.old_text)))?
        };
    }
    let windows = text.matches("\r\n").count();
    let all = text.matches('\n').count();
    Ok(match windows {
        0 => after,
        some if some == all => after.replace('\n', "\r\n"),
        some => mixed(text, &before, &after, some * 2 > all),
    })
}

/// Returns the new text with mixed line endings: unchanged lines keep the ending that they have in the old text.
fn mixed(text: &str, before: &str, after: &str, windows: bool) -> String {
    let ends: Vec<&str> = text.split_inclusive('\n').collect();
    let diff = TextDiff::from_lines(before, after);
    let mut result = String::with_capacity(text.len());
    for change in diff.iter_all_changes() {
        match (change.tag(), change.old_index().and_then(|at| ends.get(at))) {
            (ChangeTag::Delete, _) => {}
            (ChangeTag::Equal, Some(line)) => result.push_str(line),
            (_, _) if windows => result.push_str(&change.value().replace('\n', "\r\n")),
            (_, _) => result.push_str(change.value()),
        }
    }
    result
}

/// Finds lines that differ only in leading or trailing blanks, and indents the new lines like the old ones.
fn by_lines(text: &str, old: &str, new: &str) -> Option<String> {
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
    let mut result: Vec<String> = lines.iter().take(at).map(|line| (*line).to_owned()).collect();
    result.extend(replaced);
    result.extend(lines.iter().skip(at + wanted.len()).map(|line| (*line).to_owned()));
    Some(result.join("\n"))
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
        assert_eq!(edited("a", "", "c"), None);
    }

    #[test]
    fn fences_hold() {
        let shown = difference(Path::new("f"), "```\n", "x\n");
        assert!(shown.starts_with("````diff\n") && shown.ends_with("````\n\n"));
    }
}
