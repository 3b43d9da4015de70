//! Edits servers in TOML.

use anyhow::{Context, Result};
use serde_json::{Map, Value};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike};

use wharf_base::explain;
use wharf_config::config;

pub fn read(text: &str) -> Result<Map<String, Value>> {
    let table: toml::Table = explain::toml(text).map_err(anyhow::Error::msg)?;
    Ok(table.iter().map(|(key, value)| (key.clone(), config::to_json(value))).collect())
}

/// Parses the text for editing. Errors are the same as those of [`read`].
fn parse(text: &str) -> Result<DocumentMut> {
    read(text)?;
    Ok(text.parse()?)
}

pub fn set(text: &str, key: &str, name: &str, server: &Value) -> Result<String> {
    let mut document = parse(text)?;
    let servers = document.entry(key).or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let is_inline = servers.is_inline_table();
    let servers = servers.as_table_like_mut().with_context(|| format!("`{key}` is not a table"))?;
    let server = match (is_inline, server) {
        (false, Value::Object(members)) => {
            let mut table = Table::new();
            fill(&mut table, members);
            // toml_edit attributes comments above a table to the table, but they may be about something else, so they are kept.
            if let Some(before) = servers.get(name).and_then(Item::as_table) {
                *table.decor_mut() = before.decor().clone();
                table.set_position(before.position());
            }
            Item::Table(table)
        }
        _ => {
            let mut value = value(server);
            // The spaces around the value that it replaces.
            if let Some(before) = servers.get(name).and_then(Item::as_value) {
                *value.decor_mut() = before.decor().clone();
            }
            Item::Value(value)
        }
    };
    servers.insert(name, server);
    Ok(document.to_string())
}

pub fn remove(text: &str, key: &str, name: &str) -> Result<String> {
    let mut document = parse(text)?;
    let removed = document.get_mut(key).and_then(Item::as_table_like_mut).and_then(|servers| servers.remove(name));
    let above = removed.as_ref().and_then(Item::as_table).and_then(|table| table.decor().prefix()?.as_str());
    if let Some(above) = above.filter(|above| above.contains('#')) {
        // Comments above the removed server may be about something else, so they are kept.
        let rest = document.trailing().as_str().unwrap_or_default().to_owned();
        document.set_trailing(format!("{above}{rest}"));
    }
    Ok(document.to_string())
}

fn fill(table: &mut dyn TableLike, members: &Map<String, Value>) {
    for (key, member) in members.iter().filter(|(_, member)| !member.is_null()) {
        table.insert(key, Item::Value(value(member)));
    }
}

fn value(json: &Value) -> toml_edit::Value {
    match json {
        // TOML has no null; members that are null are left out above.
        Value::Null => "".into(),
        Value::Bool(flag) => (*flag).into(),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number.as_f64().unwrap_or_default().into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => toml_edit::Value::Array(items.iter().map(value).collect::<Array>()),
        Value::Object(members) => {
            let mut table = InlineTable::new();
            fill(&mut table, members);
            toml_edit::Value::InlineTable(table)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn comments_above_a_server_stay_when_it_changes_and_when_it_goes() {
        let text = "# mine\n[mcp_servers.a]\ncommand = \"a\"\n\n# [mcp_servers.old]\n# command = \"old\"\n\n[mcp_servers.files]\ncommand = \
            \"w\" # now\n\n[mcp_servers.z]\ncommand = \"z\"\n# the end\n";
        let server = json!({ "command": "/w", "args": ["run"] });
        let changed = set(text, "mcp_servers", "files", &server).unwrap();
        let old = "# [mcp_servers.old]\n# command = \"old\"\n\n[mcp_servers.files]\ncommand = \"/w\"\nargs = [\"run\"]\n\n[mcp_servers.z]";
        assert!(changed.contains(old) && changed.ends_with("# the end\n"), "{changed}");
        let gone = remove(text, "mcp_servers", "files").unwrap();
        for comment in ["# mine", "# [mcp_servers.old]", "# command = \"old\"", "# the end"] {
            assert!(gone.contains(comment), "{gone}");
        }
        assert!(!gone.contains("mcp_servers.files") && read(&gone).is_ok(), "{gone}");
    }
}
