//! Edits the text of a config: adds and removes grants, and leaves everything else in the file as it is, comments and formatting
//! included. No file is read or written here.
//!
//! A table may be written under its own header, inline, or as dotted keys. Additions take the form of the table that they are added
//! to.

use anyhow::{Context, Result, bail};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, Value};

use super::entries;
use wharf_base::{explain, text::escaped};
use wharf_egress::rule::{RawRule, Rule};
use wharf_policy::access::wants::want::WantedGrant;

/// The kinds of grants.
pub const KINDS: [&str; 5] = ["http", "roots", "dirs", "env", "ask"];

/// A config that is being changed.
pub struct Edited(DocumentMut);

impl Edited {
    /// Parses the text of a config. The error begins with the line number, and repeats no value.
    pub fn parse(text: &str) -> Result<Self> {
        let explained = || explain::toml::<toml::Table>(text).err().unwrap_or_else(|| "1: this is not TOML".to_owned());
        text.parse().map(Self).map_err(|_| anyhow::anyhow!(explained()))
    }

    pub fn text(&self) -> String {
        self.0.to_string()
    }

    /// Sets a key of the plugin's table, which is created if it does not exist.
    pub fn set(&mut self, id: &str, key: &str, value: &str) -> Result<()> {
        set(self.plugin(id)?, key, parsed(value)?)
    }

    /// Sets a key of the plugin's own config.
    pub fn set_setting(&mut self, id: &str, key: &str, value: &str) -> Result<()> {
        set(child(self.plugin(id)?, "config")?, key, parsed(value)?)
    }

    /// Sets a grant that has a single value.
    fn set_grant(&mut self, id: &str, key: &str, value: &str) -> Result<()> {
        set(child(self.plugin(id)?, "grants")?, key, parsed(value)?)
    }

    /// Grants something. `secret`: the name in `[secrets]` of the secret to send, if it differs from the plugin's own name for it.
    pub fn allow(&mut self, id: &str, what: &WantedGrant, secret: Option<&str>) -> Result<()> {
        match what {
            WantedGrant::Roots(_) => self.set_grant(id, what.key(), &what.value(secret)),
            _ => self.add_grant(id, what.key(), &what.value(secret)),
        }
    }

    /// Whether the config has a table of the plugin.
    pub fn names(&self, id: &str) -> bool {
        self.0.get("plugins").and_then(|plugins| plugins.get(id)).is_some_and(Item::is_table_like)
    }

    /// Grants what options `--allow` would grant, given as the table of grants that stands for them.
    pub fn allow_given(&mut self, id: &str, given: &toml::Table) -> Result<()> {
        for (key, value) in given {
            match value {
                toml::Value::Array(entries) => {
                    entries.iter().try_for_each(|entry| self.add_grant(id, key, &entry.to_string()))?;
                }
                value => self.set_grant(id, key, &value.to_string())?,
            }
        }
        Ok(())
    }

    /// Adds an entry to a grant that is a list, unless it is there already.
    fn add_grant(&mut self, id: &str, key: &str, entry: &str) -> Result<()> {
        let (grants, entry) = (child(self.plugin(id)?, "grants")?, parsed(entry)?);
        if let Some(new) = entries::rule(&entry).filter(|_| key == "http") {
            let mut is_there = false;
            entries::retain(grants, key, |old| {
                let Some(old) = entries::rule(old) else { return true };
                is_there |= old == new;
                // An older plain rule for the same place takes precedence over a new one that includes it, so it is removed. Rules
                // with other settings, and rules for a part of the place, were the operator's choice and stay.
                old == new || !(old.is_plain() && new.same_place(&old) && new.includes(&old))
            });
            if is_there {
                return Ok(());
            }
        }
        match at(grants, key) {
            None => set(grants, key, Value::Array(Array::from_iter([entry]))),
            Some(Item::Value(Value::Array(array))) => {
                let text = |value: &Value| value.as_str().map(str::to_owned);
                if text(&entry).is_none() || !array.iter().any(|old| text(old) == text(&entry)) {
                    entries::push(array, entry);
                }
                Ok(())
            }
            Some(Item::ArrayOfTables(tables)) => {
                let table = match entry {
                    Value::InlineTable(table) => table.into_table(),
                    url => Table::from_iter([("url", url)]),
                };
                tables.push(table);
                Ok(())
            }
            Some(_) => bail!("`{key}` of `{id}` is not a list"),
        }
    }

    /// Whether there is a secret of that name.
    pub fn has_secret(&self, name: &str) -> bool {
        self.0.get("secrets").and_then(Item::as_table_like).is_some_and(|secrets| secrets.contains_key(name))
    }

    /// Describes the source of a secret, without revealing any of it.
    pub fn secret_source(&self, name: &str) -> Option<String> {
        let source = self.0.get("secrets")?.as_table_like()?.get(name)?.as_table_like()?;
        let (kind, value) = source.iter().next()?;
        let value = value.as_value()?;
        // The arguments of a command may contain secrets, so only the program is named.
        let value = value.as_str().or_else(|| value.as_array()?.get(0)?.as_str())?;
        let kind = if kind == "env" { "variable" } else { kind };
        Some(escaped(&format!("the {kind} {value}")))
    }

    pub fn add_secret(&mut self, name: &str, source: &str) -> Result<()> {
        set(child(self.0.as_item_mut(), "secrets")?, name, parsed(source)?)
    }

    /// Removes a plugin's table. Returns whether there was one.
    pub fn remove(&mut self, id: &str) -> bool {
        let Some(plugins) = self.0.get_mut("plugins") else { return false };
        let was_there = plugins.as_table_like_mut().is_some_and(|plugins| plugins.remove(id).is_some());
        if let Some(plugins) = plugins.as_table_mut().filter(|plugins| plugins.is_empty()) {
            // A config without any line counts as one that is about to be written, so it would not be used.
            plugins.set_implicit(false);
        }
        was_there
    }

    /// Removes all grants of the plugin. Returns whether there were any.
    pub fn revoke_all(&mut self, id: &str) -> bool {
        let plugin = self.known(id).and_then(Item::as_table_like_mut);
        plugin.is_some_and(|plugin| plugin.remove("grants").is_some())
    }

    /// Removes all grants of a kind, such as `http`, or one entry, such as a URL, a folder, a variable or a request that the plugin may
    /// make to the client. `is_folder`: whether a path in the config is the folder that is meant. Returns whether anything was removed.
    pub fn revoke(&mut self, id: &str, what: &str, is_folder: impl Fn(&str) -> bool) -> bool {
        let Some(grants) = self.known(id).and_then(|plugin| at(plugin, "grants")) else { return false };
        let mut taken =
            KINDS.contains(&what) && grants.as_table_like_mut().is_some_and(|grants| grants.remove(what).is_some());
        if !taken || what == "roots" {
            let variable = what.strip_prefix('$').unwrap_or(what);
            taken |=
                entries::retain(grants, "http", |entry| !name(entry, "url").is_some_and(|url| same_place(url, what)));
            taken |= entries::retain(grants, "dirs", |entry| {
                !name(entry, "host").is_some_and(|host| host == what || is_folder(host))
            });
            taken |= entries::retain(grants, "env", |entry| name(entry, "name") != Some(variable));
            // `roots` is both a kind and an entry of `ask`, and denying it removes both.
            taken |= entries::retain(grants, "ask", |entry| entry.as_str() != Some(what));
        }
        // A variable that stands for a secret has no use without an http rule that lists the secret.
        let mut listed = Vec::new();
        entries::retain(grants, "http", |entry| {
            listed.extend(entries::rule(entry).into_iter().flat_map(|rule| rule.secrets));
            true
        });
        entries::retain(grants, "env", |entry| {
            let secret = entry.as_inline_table().and_then(|table| table.get("secret")).and_then(Value::as_str);
            secret.is_none_or(|secret| listed.iter().any(|one| one == secret))
        });
        taken
    }

    fn known(&mut self, id: &str) -> Option<&mut Item> {
        at(self.0.get_mut("plugins")?, id)
    }

    fn plugin(&mut self, id: &str) -> Result<&mut Item> {
        child(child(self.0.as_item_mut(), "plugins")?, id)
    }
}

/// Returns the item under a key. Indexing would add an empty item for a missing key.
fn at<'a>(item: &'a mut Item, key: &str) -> Option<&'a mut Item> {
    item.as_table_like_mut()?.get_mut(key)
}

/// Returns the table under a key. A missing table is created in the form of its parent: inline, dotted, or under its own header.
fn child<'a>(parent: &'a mut Item, key: &str) -> Result<&'a mut Item> {
    let inline = parent.is_inline_table();
    let table = parent.as_table_like_mut().context("the item is not a table")?;
    if !table.contains_key(key) {
        let mut new = Table::new();
        new.set_dotted(table.is_dotted());
        // A table that contains only tables needs no header.
        new.set_implicit(true);
        table.insert(key, if inline { Item::Value(InlineTable::new().into()) } else { Item::Table(new) });
    }
    let child = table.get_mut(key).filter(|child| child.is_table_like());
    child.with_context(|| format!("`{key}` is not a table"))
}

/// Sets a key. Whitespace and comments around the old value stay.
fn set(table: &mut Item, key: &str, mut value: Value) -> Result<()> {
    if let Some(inline) = table.as_inline_table_mut().filter(|inline| !inline.contains_key(key))
        && let Some((_, last)) = inline.iter_mut().last()
        && last.decor().suffix().and_then(toml_edit::RawString::as_str).is_some_and(|behind| behind.trim().is_empty())
    {
        // The space before the closing brace must not become a space before a comma.
        last.decor_mut().set_suffix("");
    }
    let table = table.as_table_like_mut().context("the item is not a table")?;
    match table.get_mut(key) {
        Some(Item::Value(old)) => {
            *value.decor_mut() = old.decor().clone();
            *old = value;
        }
        _ => {
            table.insert(key, Item::Value(value));
        }
    }
    Ok(())
}

fn parsed(value: &str) -> Result<Value> {
    let mut value: Value = value.parse().map_err(|_| anyhow::anyhow!("`{value}` is not a TOML value"))?;
    value.decor_mut().clear();
    Ok(value)
}

/// Returns what an entry of a list of grants is about: its text, or the text under a key of its table.
fn name<'a>(entry: &'a Value, key: &str) -> Option<&'a str> {
    entry.as_str().or_else(|| entry.as_inline_table()?.get(key)?.as_str())
}

/// Whether http rules with these two URLs apply to the same place.
fn same_place(one: &str, other: &str) -> bool {
    let read = |url: &str| Rule::parse(RawRule::url(url)).ok();
    one == other || read(one).zip(read(other)).is_some_and(|(one, other)| one.same_place(&other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add_all(text: &str) -> String {
        let mut edited = Edited::parse(text).unwrap();
        edited.set("a", "sha256", "\"00\"").unwrap();
        edited.add_grant("a", "http", "{ url = \"https://a.example/\", methods = [\"GET\"] }").unwrap();
        edited.set_grant("a", "roots", "\"read\"").unwrap();
        edited.set_setting("a", "org", "\"acme\"").unwrap();
        edited.add_secret("token", "{ env = \"T\" }").unwrap();
        edited.text()
    }

    #[test]
    fn the_last_plugin_leaves_an_empty_table() {
        let mut edited = Edited::parse("# mine\n[plugins.a]\npath = 'a'\n").unwrap();
        assert!(!edited.remove("b") && edited.remove("a") && !edited.remove("a"));
        assert_eq!(edited.text().trim(), "[plugins]");
    }

    /// Checks that edits lose nothing of a file, and that the result parses to the expected values.
    #[test]
    fn whatever_form_a_file_has_it_keeps() {
        let (url, plain) = ("{ url = \"https://a.example/\", methods = [\"GET\"] }", "\"https://old.example\"");
        for (before, after) in [
            (
                "",
                format!(
                    "[plugins.a]\nsha256 = \"00\"\n\n[plugins.a.grants]\nhttp = [{url}]\nroots = \"read\"\n\n[plugins.a.config]\norg = \"acme\"\n\n[secrets]\ntoken = {{ env = \"T\" }}\n"
                ),
            ),
            (
                "# mine\n[plugins.a] # here\npath = 'a' # there\n\n# b\n[plugins.b]\npath = 'b'\n# end\n",
                format!(
                    "# mine\n[plugins.a] # here\npath = 'a' # there\nsha256 = \"00\"\n\n[plugins.a.grants]\nhttp = [{url}]\nroots = \"read\"\n\n[plugins.a.config]\norg = \"acme\"\n\n# b\n[plugins.b]\npath = 'b'\n\n[secrets]\ntoken = {{ env = \"T\" }}\n# end\n"
                ),
            ),
            (
                "[secrets]\nx = { file = 'x' } # x\n[plugins.a]\npath = 'a'\nsha256 = 'ff' # old\nconfig = { x = 1 } # c\n[plugins.a.grants]\nroots   =   \"read-write\" # r\nhttp = [\"https://old.example\"] # h\n",
                format!(
                    "[secrets]\nx = {{ file = 'x' }} # x\ntoken = {{ env = \"T\" }}\n[plugins.a]\npath = 'a'\nsha256 = \"00\" # old\nconfig = {{ x = 1, org = \"acme\" }} # c\n[plugins.a.grants]\nroots   =   \"read\" # r\nhttp = [{plain}, {url}] # h\n"
                ),
            ),
            (
                "plugins = { a = { path = 'a' } } # all\n",
                format!(
                    "plugins = {{ a = {{ path = 'a', sha256 = \"00\", grants = {{ http = [{url}], roots = \"read\" }}, config = {{ org = \"acme\" }} }} }} # all\n\n[secrets]\ntoken = {{ env = \"T\" }}\n"
                ),
            ),
            (
                "plugins.a.path = 'a' # dotted\n",
                format!(
                    "plugins.a.path = 'a' # dotted\nplugins.a.sha256 = \"00\"\nplugins.a.grants.http = [{url}]\nplugins.a.grants.roots = \"read\"\nplugins.a.config.org = \"acme\"\n\n[secrets]\ntoken = {{ env = \"T\" }}\n"
                ),
            ),
            (
                "[plugins.a]\npath = 'a'\ngrants.http = [\n    \"https://old.example\", # one\n    # before the end\n]\n",
                format!(
                    "[plugins.a]\npath = 'a'\ngrants.http = [\n    \"https://old.example\", # one\n    {url},\n    # before the end\n]\ngrants.roots = \"read\"\nsha256 = \"00\"\n\n[plugins.a.config]\norg = \"acme\"\n\n[secrets]\ntoken = {{ env = \"T\" }}\n"
                ),
            ),
            (
                "[plugins.a]\npath = 'a'\n[[plugins.a.grants.http]]\nurl = 'https://old.example' # one\n",
                "[plugins.a]\npath = 'a'\nsha256 = \"00\"\n\n[plugins.a.grants]\nroots = \"read\"\n[[plugins.a.grants.http]]\nurl = 'https://old.example' # one\n\n[[plugins.a.grants.http]]\nurl = \"https://a.example/\"\nmethods = [\"GET\"]\n\n[plugins.a.config]\norg = \"acme\"\n\n[secrets]\ntoken = { env = \"T\" }\n".to_owned(),
            ),
        ] {
            let edited = add_all(before);
            assert_eq!(edited, after, "{before}");
            let table: toml::Table = toml::from_str(&edited).unwrap();
            let plugin = &table["plugins"]["a"];
            assert_eq!(plugin["grants"]["roots"].as_str(), Some("read"), "{edited}");
            assert_eq!(plugin["config"]["org"].as_str(), Some("acme"), "{edited}");
            assert_eq!(table["secrets"]["token"]["env"].as_str(), Some("T"), "{edited}");
        }
    }

    #[test]
    fn a_rule_takes_the_place_of_those_that_say_less_about_the_same() {
        let before = "[plugins.a.grants]\nhttp = ['https://a.example/x', { url = 'https://A.example:443/', methods = ['GET'] }, 'https://b.example',\
                      { url = 'https://a.example', methods = 'any' }, { url = 'https://a.example', private = true }]\n";
        let entry = "{ url = \"https://a.example/\", methods = [\"GET\", \"HEAD\"], headers = { x = \"{t}\" } }";
        let mut edited = Edited::parse(before).unwrap();
        edited.add_grant("a", "http", entry).unwrap();
        let after = before
            .replace(" { url = 'https://A.example:443/', methods = ['GET'] },", "")
            .replace("true }]", &format!("true }}, {entry}]"));
        assert_eq!(edited.text(), after);
    }

    #[test]
    fn what_is_there_is_not_written_again() {
        let text = "[plugins.a.grants]\nenv = ['TZ']\nhttp = ['https://a.example/', { url = 'https://b.example', methods = ['POST'] }]\n\
                    [[plugins.b.grants.http]]\nurl = 'https://b.example'\nmethods = ['POST']\n";
        let mut edited = Edited::parse(text).unwrap();
        edited.add_grant("a", "env", "\"TZ\"").unwrap();
        edited.add_grant("a", "http", "\"https://a.example\"").unwrap();
        for id in ["a", "b"] {
            edited.add_grant(id, "http", "{ url = \"https://b.example/\", methods = [\"POST\"] }").unwrap();
        }
        assert_eq!(edited.text(), text);
    }

    #[test]
    fn where_a_secret_comes_from_is_said_without_it() {
        let text = "[secrets]\na = { env = 'T' }\nb = { command = ['op', 'hunter2'] }\nc = 7\n[secrets.d]\nfile = '/run/\u{202e}t'\n";
        let edited = Edited::parse(text).unwrap();
        for (name, expected) in [
            ("a", Some("the variable T")),
            ("b", Some("the command op")),
            ("c", None),
            ("d", Some("the file /run/\\u{202e}t")),
            ("e", None),
        ] {
            assert_eq!(edited.secret_source(name).as_deref(), expected);
        }
    }

    #[test]
    fn what_is_no_toml_is_said_with_its_line() {
        let error = Edited::parse("a = 1\nb = \n").err().unwrap().to_string();
        assert!(error.starts_with("2: "), "{error}");
        let error = Edited::parse("a = 1\na = 2\n").err().unwrap().to_string();
        assert_eq!(error, "2: the key `a` stands here a second time");
    }

    #[test]
    fn what_is_revoked_is_gone_and_nothing_else() {
        let all = "[plugins.a]\npath = 'a'\n[plugins.a.grants] # g\nroots = 'read'\nenv = ['TZ', { name = 'KEY', secret = 's' }] # e\n\
                   ask = ['sampling', 'elicitation']\ndirs = [{ host = '/srv', access = 'read' }]\n\
                   http = ['https://a.example', { url = 'https://B.example/x/', secrets = ['s'] }] # h\n# b\n[plugins.b]\n";
        let without =
            |lines: &[(&str, &str)]| lines.iter().fold(all.to_owned(), |text, (old, new)| text.replace(old, new));
        for (what, expected) in [
            ("roots", without(&[("roots = 'read'\n", "")])),
            ("TZ", without(&[("env = ['TZ', {", "env = [{")])),
            ("$KEY", without(&[(", { name = 'KEY', secret = 's' }", "")])),
            ("sampling", without(&[("['sampling', 'elicitation']", "['elicitation']")])),
            ("/srv", without(&[("dirs = [{ host = '/srv', access = 'read' }]\n", "")])),
            ("https://a.example/", without(&[("['https://a.example', {", "[{")])),
            (
                "https://b.example/x",
                without(&[
                    (", { url = 'https://B.example/x/', secrets = ['s'] }", ""),
                    (", { name = 'KEY', secret = 's' }", ""),
                ]),
            ),
        ] {
            let mut edited = Edited::parse(all).unwrap();
            assert!(edited.revoke("a", what, |_| false), "{what}");
            assert_eq!(edited.text(), expected, "{what}");
            assert!(!edited.revoke("a", what, |_| false), "{what}");
        }
        let mut edited = Edited::parse(all).unwrap();
        assert!(edited.revoke("a", "./srv", |host| host == "/srv") && !edited.text().contains("dirs"));
        // Revoking `roots` also removes the permission to ask for roots, which may be granted without `roots` itself.
        for text in ["roots = 'read'\nask = ['roots', 'sampling']", "ask = ['roots', 'sampling']"] {
            let mut edited = Edited::parse(&format!("[plugins.a.grants]\n{text}\n")).unwrap();
            assert!(edited.revoke("a", "roots", |_| false));
            assert_eq!(edited.text(), "[plugins.a.grants]\nask = ['sampling']\n");
        }
        let mut edited = Edited::parse(all).unwrap();
        assert!(edited.revoke("a", "http", |_| false));
        assert!(!edited.text().contains("KEY") && edited.text().contains("'TZ'"), "{}", edited.text());
        for nothing in ["LANG", "https://c.example", "https://a.example/x", "other", "/", ""] {
            assert!(!Edited::parse(all).unwrap().revoke("a", nothing, |_| false), "{nothing}");
        }
        for (text, expected) in [
            (all, "[plugins.a]\npath = 'a'\n# b\n[plugins.b]\n"),
            ("plugins.a.path = 'a'\nplugins.a.grants.roots = 'read' # x\n", "plugins.a.path = 'a'\n"),
            ("plugins = { a = { path = 'a', grants = { roots = 'read' } } }", "plugins = { a = { path = 'a'} }\n"),
            (
                "[plugins.a]\npath = 'a'\n[[plugins.a.grants.http]]\nurl = 'x'\n[plugins.b]\n",
                "[plugins.a]\npath = 'a'\n[plugins.b]\n",
            ),
        ] {
            let mut edited = Edited::parse(text).unwrap();
            assert!(edited.revoke_all("a") && !edited.revoke_all("a") && !edited.revoke_all("c"));
            assert_eq!(edited.text(), expected);
        }
    }
}
