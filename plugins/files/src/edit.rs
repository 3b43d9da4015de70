//! Edits by text: find, replace, show the difference.

use similar::{ChangeTag, TextDiff};
use wharf_sdk::{Error, Result};

use crate::arguments::Edit;

/// Makes the edits one after the other. Each line that stays keeps its own end; new ones end as most others do.
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

/// The new text with the line ends of the old: lines that were there keep theirs.
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

/// Finds lines that are the same but for blanks around them, and indents the new ones as the old ones were.
fn by_lines(text: &str, old: &str, new: &str) -> Option<String> {
    let lines: Vec<&str> = text.split('\n').collect();
    let (old, new) = match old.strip_suffix('\n') {
        Some(old) => (old, new.strip_suffix('\n').unwrap_or(new)),
        None => (old, new),
    };
    let wanted: Vec<&str> = old.split('\n').collect();
    // Blank lines fit anywhere there are some, which is nowhere in particular.
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

/// A unified diff in a fence that its own text cannot close.
pub fn difference(path: &str, before: &str, after: &str) -> String {
    let diff = TextDiff::from_lines(before, after);
    let diff =
        diff.unified_diff().context_radius(3).header(&format!("{path} before"), &format!("{path} after")).to_string();
    let mut fence = "```".to_owned();
    while diff.contains(&fence) {
        fence.push('`');
    }
    format!("{fence}diff\n{diff}{fence}\n")
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
        // What is not there is not found, however blank it is.
        assert_eq!(edited("a\nb\n", "\n\n", "x"), None);
        assert_eq!(edited("a\nb\n", "  \n\t\n", "x"), None);
        assert_eq!(edited("def g():\n    y\n", "def g():\n\n\n", "x"), None);
        // Each line keeps its own end.
        assert_eq!(edited("a\r\nb\nc\n", "b", "x").as_deref(), Some("a\r\nx\nc\n"));
        assert_eq!(edited("a\r\nb\r\nc\n", "b", "x\ny").as_deref(), Some("a\r\nx\r\ny\r\nc\n"));
        assert_eq!(edited("a", "", "c"), None);
    }

    #[test]
    fn fences_hold() {
        let shown = difference("f", "```\n", "x\n");
        assert!(shown.starts_with("````diff\n") && shown.ends_with("````\n"));
    }
}
