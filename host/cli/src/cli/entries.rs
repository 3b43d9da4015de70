//! Adds and removes entries of lists in the text of a config. Comments stay with their entries: a comment at the end of a line belongs
//! to the entry before it, and a comment on its own line to the entry below.

use serde::Deserialize;
use toml_edit::{Array, Item, RawString, Value};

use wharf_egress::rule::{RawRule, Rule};

/// An entry of a list, with the whitespace and comments around it.
struct Line {
    before: String,
    value: Value,
    /// A comment at the end of its line.
    comment: String,
}

/// A list, split into its entries.
struct Lines {
    /// A comment after the opening bracket.
    opening: String,
    lines: Vec<Line>,
    closing: String,
    trailing_comma: bool,
    /// The indentation of the entries that begin a line, if there are any.
    indent: Option<String>,
}

fn raw(raw: Option<&RawString>) -> String {
    raw.and_then(RawString::as_str).unwrap_or_default().to_owned()
}

/// Splits off a comment that continues the previous line.
fn split(text: &str) -> (String, String) {
    match text.split_once('\n') {
        Some((comment, _)) if comment.contains('#') => {
            (comment.trim_end().to_owned(), text.get(comment.len()..).unwrap_or_default().to_owned())
        }
        _ => (String::new(), text.to_owned()),
    }
}

impl Lines {
    fn of(array: &Array) -> Self {
        let mut all = Self {
            opening: String::new(),
            lines: Vec::new(),
            closing: String::new(),
            trailing_comma: array.trailing_comma(),
            indent: None,
        };
        // Comments may stand before a comma as well as after it.
        let mut before_comma = String::new();
        for value in array {
            let (comment, before) = split(&raw(value.decor().prefix()));
            all.end_line(&comment);
            let before = format!("{}{before}", if before_comma.contains('#') { before_comma.trim_end() } else { "" });
            let mut value = value.clone();
            let (comment, rest) = split(&raw(value.decor().suffix()));
            before_comma = rest;
            value.decor_mut().clear();
            all.lines.push(Line { before, value, comment });
        }
        let (comment, closing) = split(&raw(Some(array.trailing())));
        all.end_line(&comment);
        all.closing = before_comma + &closing;
        let last = all.lines.iter().rev().find_map(|line| line.before.rsplit_once('\n'));
        all.indent = last.map(|(_, indent)| indent.to_owned());
        all
    }

    fn end_line(&mut self, comment: &str) {
        match self.lines.last_mut() {
            Some(line) => line.comment += comment,
            None => self.opening += comment,
        }
    }

    fn write(self, array: &mut Array) {
        let indent = self.indent.unwrap_or_default();
        // Text after a comment has to begin on a new line.
        let after = |comment: &str, text: &str| match comment.is_empty() || text.starts_with('\n') {
            true => format!("{comment}{text}"),
            false => format!("{comment}\n{indent}{}", text.trim_start()),
        };
        array.clear();
        let mut comment = self.opening;
        for line in self.lines {
            let mut value = line.value;
            value.decor_mut().set_prefix(after(&comment, &line.before));
            array.push_formatted(value);
            comment = line.comment;
        }
        array.set_trailing_comma(self.trailing_comma);
        array.set_trailing(after(&comment, &self.closing));
    }
}

/// Adds an entry at the end. In a list with one line per entry, the new entry gets its own line.
pub fn push(array: &mut Array, value: Value) {
    let mut all = Lines::of(array);
    let before = match (&all.indent, all.lines.is_empty()) {
        (Some(indent), _) => format!("\n{indent}"),
        (None, true) => String::new(),
        (None, false) => " ".to_owned(),
    };
    if before.starts_with('\n') {
        all.trailing_comma = true;
        if !all.closing.contains('\n') {
            all.closing = "\n".to_owned();
        }
    }
    all.lines.push(Line { before, value, comment: String::new() });
    all.write(array);
}

/// Removes the entries of a list of grants for which `keep` is false, with their comments. A list that becomes empty is removed, too.
/// Returns whether anything was removed.
pub fn retain(grants: &mut Item, key: &str, mut keep: impl FnMut(&Value) -> bool) -> bool {
    let Some(table) = grants.as_table_like_mut() else { return false };
    let (before, after) = match table.get_mut(key) {
        Some(Item::Value(Value::Array(array))) => {
            let kept: Vec<bool> = array.iter().map(&mut keep).collect();
            let (before, after) = (kept.len(), kept.iter().filter(|kept| **kept).count());
            if after < before {
                let mut all = Lines::of(array);
                let first = all.lines.first().map(|line| line.before.clone()).unwrap_or_default();
                let mut kept = kept.into_iter();
                all.lines.retain(|_| kept.next().unwrap_or(true));
                // The entry that is now first takes over the space after the opening bracket.
                if let Some(line) = all.lines.first_mut().filter(|line| !line.before.contains('\n')) {
                    line.before = first;
                }
                all.write(array);
            }
            (before, after)
        }
        Some(Item::ArrayOfTables(tables)) => {
            let before = tables.len();
            tables.retain(|table| keep(&Value::InlineTable(table.clone().into_inline_table())));
            (before, tables.len())
        }
        _ => return false,
    };
    if after == 0 && after < before {
        table.remove(key);
    }
    after < before
}

/// Parses an entry of `http` as a rule.
pub fn rule(entry: &Value) -> Option<Rule> {
    #[derive(Deserialize)]
    struct One {
        rule: RawRule,
    }
    let mut entry = entry.clone();
    entry.decor_mut().clear();
    let one: One = toml::from_str(&format!("rule = {entry}")).ok()?;
    Rule::parse(one.rule).ok()
}

#[cfg(test)]
mod tests {
    use toml_edit::DocumentMut;

    use super::*;

    const LONG: &str =
        "[ # few\n    \"a\", # one\n    # about b\n    \"b\", # two\n    \"c\" # three\n    # the end\n]";

    fn list(text: &str) -> DocumentMut {
        format!("grants = {{ list = {text} }}\n").parse().unwrap()
    }

    #[test]
    fn what_goes_takes_its_comments_along() {
        for (before, gone, after) in [
            ("['a', 'b', 'c']", "a", "['b', 'c']"),
            ("['a', 'b', 'c']", "b", "['a', 'c']"),
            ("['a', 'b' ]", "b", "['a' ]"),
            (LONG, "a", "[ # few\n    # about b\n    \"b\", # two\n    \"c\" # three\n    # the end\n]"),
            (LONG, "b", "[ # few\n    \"a\", # one\n    \"c\" # three\n    # the end\n]"),
            (LONG, "c", "[ # few\n    \"a\", # one\n    # about b\n    \"b\" # two\n    # the end\n]"),
            ("['a', # one\n 'b', 'c']", "b", "['a', # one\n 'c']"),
            ("[\n 'a' # one\n, 'b' # two\n]", "a", "[\n 'b' # two\n]"),
        ] {
            let mut text = list(before);
            let grants = text.get_mut("grants").unwrap();
            assert!(retain(grants, "list", |entry| entry.as_str() != Some(gone)));
            assert!(!retain(grants, "list", |entry| entry.as_str() != Some(gone)));
            assert_eq!(text.to_string(), list(after).to_string(), "{before} {gone}");
        }
        let mut text = list("['a']");
        assert!(retain(text.get_mut("grants").unwrap(), "list", |_| false));
        assert_eq!(text.to_string(), "grants = {}\n");
    }

    #[test]
    fn what_comes_takes_no_comment() {
        for (before, after) in [
            ("[]", "[\"x\"]"),
            ("['a']", "['a', \"x\"]"),
            ("['a', # one\n 'b']", "['a', # one\n 'b',\n \"x\",\n]"),
            (LONG, &LONG.replace("\"c\" # three", "\"c\", # three\n    \"x\",")),
            ("[\n  'a',\n]", "[\n  'a',\n  \"x\",\n]"),
        ] {
            let mut text = list(before);
            let array = text.get_mut("grants").unwrap().get_mut("list").unwrap().as_array_mut().unwrap();
            push(array, "x".into());
            assert_eq!(text.to_string(), list(after).to_string(), "{before}");
        }
    }
}
