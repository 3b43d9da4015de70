//! Shows a change to a config as a diff of removed and added lines, without context. The values in a plugin's own config and in headers
//! may be secrets, so they are masked.

use anyhow::{Context, Result};
use similar::{Algorithm, ChangeTag, capture_diff_slices};
use toml_edit::{DocumentMut, Item, TableLike, Value};

use wharf_base::text::escaped;

/// Returns the removed and added lines, in the order of the file.
pub fn changes(before: &str, after: &str) -> Result<Vec<String>> {
    let (before, after) = (masked(before)?, masked(after)?);
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let operations = capture_diff_slices(Algorithm::Myers, &old, &new);
    let changed = operations.iter().flat_map(|operation| operation.iter_changes(&old, &new));
    let shown = changed.filter(|change| !change.value().trim().is_empty()).filter_map(|change| {
        let sign = match change.tag() {
            ChangeTag::Equal => return None,
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
        };
        Some(format!("  {sign} {}", escaped(change.value())))
    });
    Ok(shown.collect())
}

/// Returns the text with values that may be secrets replaced by `…`.
fn masked(text: &str) -> Result<String> {
    let mut text: DocumentMut = text.parse().context("the config is not TOML")?;
    let plugins = text.get_mut("plugins").and_then(Item::as_table_like_mut);
    for (_, plugin) in plugins.into_iter().flat_map(TableLike::iter_mut) {
        let Some(plugin) = plugin.as_table_like_mut() else { continue };
        if let Some(config) = plugin.get_mut("config") {
            hide(config, &|_| false);
        }
        let http = plugin.get_mut("grants").and_then(Item::as_table_like_mut).and_then(|grants| grants.get_mut("http"));
        match http {
            Some(Item::Value(Value::Array(rules))) => {
                let headers = rules.iter_mut().filter_map(|rule| rule.as_inline_table_mut()?.get_mut("headers"));
                headers.for_each(|headers| hide_value(headers, &is_reference));
            }
            Some(Item::ArrayOfTables(rules)) => {
                rules
                    .iter_mut()
                    .filter_map(|rule| rule.get_mut("headers"))
                    .for_each(|headers| hide(headers, &is_reference));
            }
            _ => {}
        }
    }
    Ok(text.to_string())
}

/// Whether a header's value is only a reference to a secret, such as `Bearer {name}`, and so may be shown.
fn is_reference(value: &str) -> bool {
    let value = value.strip_prefix("Bearer ").unwrap_or(value);
    value.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).is_some_and(|name| !name.contains(['{', '}']))
}

fn hide(item: &mut Item, keep: &dyn Fn(&str) -> bool) {
    match item {
        Item::None => {}
        Item::Value(value) => hide_value(value, keep),
        Item::Table(table) => table.iter_mut().for_each(|(_, item)| hide(item, keep)),
        Item::ArrayOfTables(tables) => {
            tables.iter_mut().flat_map(|table| table.iter_mut()).for_each(|(_, item)| hide(item, keep));
        }
    }
}

fn hide_value(value: &mut Value, keep: &dyn Fn(&str) -> bool) {
    if let Some(table) = value.as_inline_table_mut() {
        table.iter_mut().for_each(|(_, value)| hide_value(value, keep));
    } else if !value.as_str().is_some_and(keep) {
        let decor = value.decor().clone();
        *value = "…".into();
        *value.decor_mut() = decor;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changed_is_shown() {
        let two = "[plugins.a]\npath = 'a'\n\n[plugins.a.grants]\nenv = ['TZ']\n\n[plugins.b]\npath = 'b'\n\n[plugins.b.grants]\nenv = ['TZ']\n";
        for (before, after, expected) in [
            ("", "a = 1\n\nb = 2\n", &["+ a = 1", "+ b = 2"][..]),
            ("a = 1\nb = 2\nc = 3\n", "a = 1\nc = 3\n", &["- b = 2"]),
            ("a = 1\nb = 2\nc = 3", "a = 1\nb = 4\nc = 3\n", &["- b = 2", "+ b = 4"]),
            // Equal lines of other plugins do not count as changes.
            (two, &two.replacen("env = ['TZ']\n", "", 1), &["- env = ['TZ']"]),
            (
                two,
                &two.replacen("\n[plugins.a.grants]\nenv = ['TZ']\n", "", 1),
                &["- [plugins.a.grants]", "- env = ['TZ']"],
            ),
            (two, &two.replace("\n[plugins.b]", "roots = 'read'\n\n[plugins.b]"), &["+ roots = 'read'"]),
        ] {
            let expected: Vec<String> = expected.iter().map(|line| format!("  {line}")).collect();
            assert_eq!(changes(before, after).unwrap(), expected, "{before}");
        }
    }

    #[test]
    fn what_may_be_secret_is_not_shown() {
        let before = "plugins = { a = { path = 'a', config = { key = 'hunter2', deep = { x = ['hunter2'] } } } }\n";
        let after = before.replace("path = 'a', ", "path = 'a', sha256 = '00', ");
        let shown = changes(before, &after).unwrap().join("\n");
        assert!(
            shown.contains("+ plugins = { a = { path = 'a', sha256 = '00'") && !shown.contains("hunter2"),
            "{shown}"
        );
        let header = "headers = { authorization = 'Bearer {t}', x-key = '{t}', x-other = 'Bearer hunter2' }";
        let shown = changes(
            "",
            &format!("[plugins.a.grants]\nhttp = [{{ url = 'u', {header} }}]\n[plugins.a.config]\nkey = 'hunter2'\n"),
        );
        let shown = shown.unwrap().join("\n");
        assert!(
            shown.contains("'Bearer {t}', x-key = '{t}', x-other = \"…\"") && shown.contains("key = \"…\""),
            "{shown}"
        );
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
