//! Edits by text: find, replace, show the difference.

use similar::TextDiff;
use wharf_sdk::{Error, Result};

use crate::arguments::Edit;

/// Makes the edits one after the other. Line ends stay as the file has them.
pub fn apply(text: &str, edits: &[Edit]) -> Result<String> {
    let windows = text.contains("\r\n");
    let mut text = text.replace("\r\n", "\n");
    for edit in edits {
        let (old, new) = (edit.old_text.replace("\r\n", "\n"), edit.new_text.replace("\r\n", "\n"));
        if old.is_empty() {
            return Err(Error::failed("oldText is empty; use write_file to write a whole file"));
        }
        text = if text.contains(&old) {
            text.replacen(&old, &new, 1)
        } else {
            by_lines(&text, &old, &new)
                .ok_or_else(|| Error::failed(format!("Could not find exact match for edit:\n{}", edit.old_text)))?
        };
    }
    Ok(if windows { text.replace('\n', "\r\n") } else { text })
}

/// Finds lines that are the same but for blanks around them, and indents the new ones as the old ones were.
fn by_lines(text: &str, old: &str, new: &str) -> Option<String> {
    let lines: Vec<&str> = text.split('\n').collect();
    let wanted: Vec<&str> = old.trim_end_matches('\n').split('\n').collect();
    let fits = |window: &[&str]| window.iter().zip(&wanted).all(|(line, want)| line.trim() == want.trim());
    let at = lines.windows(wanted.len()).position(fits)?;
    let indent = |line: &str| line.strip_suffix(line.trim_start()).unwrap_or_default().to_owned();
    let (had, asked) = (indent(lines.get(at)?), indent(wanted.first()?));
    let replaced = new.trim_end_matches('\n').split('\n').map(|line| match line.strip_prefix(asked.as_str()) {
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
        assert_eq!(edited("a", "", "c"), None);
    }

    #[test]
    fn fences_hold() {
        let shown = difference("f", "```\n", "x\n");
        assert!(shown.starts_with("````diff\n") && shown.ends_with("````\n"));
    }
}
