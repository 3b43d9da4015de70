//! Changes to the text of a config: grants are added and taken away, and everything else in the file stays as it is, comments and
//! formatting included. Nothing is read or written here.
//!
//! Tables may stand in the file under their own headers, inline, or as dotted keys. What is added takes the form of what it is added
//! to.

use anyhow::{Context, Result, bail};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, Value};

use crate::egress::rule::{Rule, Written, WrittenMethods};

/// The kinds of grants.
pub const KINDS: [&str; 5] = ["http", "roots", "dirs", "env", "ask"];

/// A config that is being changed.
pub struct Edited(DocumentMut);

impl Edited {
    pub fn parse(text: &str) -> Result<Self> {
        // Whoever wrote the file has been told what is wrong with it by then, since configs are loaded before they are changed.
        text.parse().map(Self).map_err(|_| anyhow::anyhow!("the config is not TOML"))
    }

    pub fn text(&self) -> String {
        self.0.to_string()
    }

    /// Sets a key of the plugin's table, which is made if it is not there.
    pub fn set(&mut self, id: &str, key: &str, value: &str) -> Result<()> {
        set(self.plugin(id)?, key, parsed(value)?)
    }

    /// Sets a key of the plugin's own config.
    pub fn set_setting(&mut self, id: &str, key: &str, value: &str) -> Result<()> {
        set(child(self.plugin(id)?, "config")?, key, parsed(value)?)
    }

    /// Sets a grant that is one value.
    pub fn set_grant(&mut self, id: &str, key: &str, value: &str) -> Result<()> {
        set(child(self.plugin(id)?, "grants")?, key, parsed(value)?)
    }

    /// Adds an entry to a grant that is a list.
    pub fn add_grant(&mut self, id: &str, key: &str, entry: &str) -> Result<()> {
        let (grants, entry) = (child(self.plugin(id)?, "grants")?, parsed(entry)?);
        if key == "http"
            && let Some(new) = Entry::of(&entry).and_then(|entry| place(&entry, false))
        {
            // A rule that says less about the same would count before one that comes later.
            retain(grants, key, |old| !place(old, true).is_some_and(|old| new.includes(&old)));
        }
        match at(grants, key) {
            None => set(grants, key, Value::Array(Array::from_iter([entry]))),
            Some(Item::Value(Value::Array(array))) => {
                push(array, entry);
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
            Some(_) => bail!("`{key}` of `{id}` is no list"),
        }
    }

    /// Whether there is a secret of that name.
    pub fn has_secret(&self, name: &str) -> bool {
        self.0.get("secrets").and_then(Item::as_table_like).is_some_and(|secrets| secrets.contains_key(name))
    }

    pub fn add_secret(&mut self, name: &str, source: &str) -> Result<()> {
        set(child(self.0.as_item_mut(), "secrets")?, name, parsed(source)?)
    }

    /// Takes everything away that the plugin is granted. Whether there was anything.
    pub fn deny_all(&mut self, id: &str) -> bool {
        let plugin = self.known(id).and_then(Item::as_table_like_mut);
        plugin.is_some_and(|plugin| plugin.remove("grants").is_some())
    }

    /// Takes one thing away: all of a kind, such as `http`, or one of its entries, such as a URL, a folder, a variable or something
    /// that it may ask. Whether there was such a thing.
    pub fn deny(&mut self, id: &str, what: &str) -> bool {
        let Some(grants) = self.known(id).and_then(|plugin| at(plugin, "grants")) else { return false };
        let taken = if KINDS.contains(&what) {
            grants.as_table_like_mut().is_some_and(|grants| grants.remove(what).is_some())
        } else {
            let variable = what.strip_prefix('$').unwrap_or(what);
            let mut taken = retain(grants, "http", |entry| !entry.name("url").is_some_and(|url| same_place(url, what)));
            taken |= retain(grants, "dirs", |entry| entry.name("host") != Some(what));
            taken |= retain(grants, "env", |entry| entry.name("name") != Some(variable));
            taken |= retain(grants, "ask", |entry| entry.name("") != Some(what));
            taken
        };
        // Variables that stand for secrets mean nothing without a rule that lists the secret.
        let listed = secrets_of_rules(grants);
        retain(grants, "env", |entry| entry.text("secret").is_none_or(|secret| listed.iter().any(|one| one == secret)));
        taken
    }

    fn known(&mut self, id: &str) -> Option<&mut Item> {
        at(self.0.get_mut("plugins")?, id)
    }

    fn plugin(&mut self, id: &str) -> Result<&mut Item> {
        child(child(self.0.as_item_mut(), "plugins")?, id)
    }
}

/// What stands under a key. To index an item would leave a trace of what is not there.
fn at<'a>(item: &'a mut Item, key: &str) -> Option<&'a mut Item> {
    item.as_table_like_mut()?.get_mut(key)
}

/// The table under a key. If there is none it is made in the form of its parent: inline, dotted, or under a header of its own.
fn child<'a>(parent: &'a mut Item, key: &str) -> Result<&'a mut Item> {
    let inline = parent.is_inline_table();
    let table = parent.as_table_like_mut().context("what should be a table is none")?;
    if !table.contains_key(key) {
        let mut new = Table::new();
        new.set_dotted(table.is_dotted());
        // A table that only has tables in it needs no header.
        new.set_implicit(true);
        table.insert(key, if inline { Item::Value(InlineTable::new().into()) } else { Item::Table(new) });
    }
    let child = table.get_mut(key).filter(|child| child.is_table_like());
    child.with_context(|| format!("`{key}` is no table"))
}

/// Sets a key. What stands around its value stays.
fn set(table: &mut Item, key: &str, mut value: Value) -> Result<()> {
    if let Some(inline) = table.as_inline_table_mut().filter(|inline| !inline.contains_key(key))
        && let Some((_, last)) = inline.iter_mut().last()
        && last.decor().suffix().and_then(toml_edit::RawString::as_str).is_some_and(|behind| behind.trim().is_empty())
    {
        // The space before the brace is no space before a comma.
        last.decor_mut().set_suffix("");
    }
    let table = table.as_table_like_mut().context("what should be a table is none")?;
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
    let mut value: Value = value.parse().map_err(|_| anyhow::anyhow!("`{value}` is no value of TOML"))?;
    value.decor_mut().clear();
    Ok(value)
}

/// Adds an entry at the end. In a list with a line for each entry it gets a line as well, and comments stay with the entries that
/// they follow.
fn push(array: &mut Array, mut entry: Value) {
    let raw = |raw: Option<&toml_edit::RawString>| raw.and_then(|raw| raw.as_str()).unwrap_or_default().to_owned();
    let last = array.iter().last().map(|last| raw(last.decor().prefix()));
    let Some((_, indent)) = last.as_deref().and_then(|prefix| prefix.rsplit_once('\n')) else {
        return array.push(entry);
    };
    // What follows the last entry may be a comment, before or after a comma that need not be there.
    let indent = indent.to_owned();
    let suffix = array.iter_mut().last().map(|last| {
        let suffix = raw(last.decor().suffix());
        last.decor_mut().set_suffix("");
        suffix
    });
    let behind = format!("{}{}", suffix.unwrap_or_default(), raw(Some(array.trailing())));
    entry.decor_mut().set_prefix(format!("{}\n{indent}", behind.trim_end()));
    array.push_formatted(entry);
    array.set_trailing_comma(true);
    array.set_trailing(format!("\n{}", behind.rsplit_once('\n').map_or("", |(_, closing)| closing)));
}

/// An entry of a list of grants: a text by itself, or a table.
enum Entry<'a> {
    Text(&'a str),
    Table(&'a dyn toml_edit::TableLike),
}

impl<'a> Entry<'a> {
    fn of(value: &'a Value) -> Option<Self> {
        let table = value.as_inline_table().map(|table| Self::Table(table));
        table.or_else(|| value.as_str().map(Self::Text))
    }

    /// The text, or the text under a key of the table.
    fn name(&self, key: &str) -> Option<&'a str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Table(_) => self.text(key),
        }
    }

    fn text(&self, key: &str) -> Option<&'a str> {
        match self {
            Self::Text(_) => None,
            Self::Table(table) => table.get(key)?.as_str(),
        }
    }
}

/// Keeps some entries of a list of grants. Whether any are gone. An empty list goes as well.
fn retain(grants: &mut Item, key: &str, keep: impl Fn(&Entry) -> bool) -> bool {
    let Some(list) = at(grants, key) else { return false };
    let (before, after) = match list {
        Item::Value(Value::Array(array)) => {
            let before = array.len();
            array.retain(|value| Entry::of(value).is_none_or(|entry| keep(&entry)));
            (before, array.len())
        }
        Item::ArrayOfTables(tables) => {
            let before = tables.len();
            tables.retain(|table| keep(&Entry::Table(table)));
            (before, tables.len())
        }
        _ => return false,
    };
    if after == 0
        && after < before
        && let Some(grants) = grants.as_table_like_mut()
    {
        grants.remove(key);
    }
    after < before
}

/// The rule of an entry of `http`, without what it adds. `plain`: only if it adds nothing.
fn place(entry: &Entry, plain: bool) -> Option<Rule> {
    let (url, methods) = match entry {
        Entry::Text(url) => (*url, None),
        Entry::Table(table) => {
            if plain && table.iter().any(|(key, _)| !["url", "methods"].contains(&key)) {
                return None;
            }
            let list = |item: &Item| {
                let names = item.as_array()?.iter().map(|name| name.as_str().map(str::to_owned));
                names.collect::<Option<Vec<_>>>().map(WrittenMethods::List)
            };
            let read =
                |item: &Item| item.as_str().map(|word| WrittenMethods::Word(word.to_owned())).or_else(|| list(item));
            (table.get("url")?.as_str()?, table.get("methods").and_then(read))
        }
    };
    Rule::parse(Written::with(url, methods, None)).ok()
}

/// The secrets whose placeholders the rules replace.
fn secrets_of_rules(grants: &Item) -> Vec<String> {
    let names = |item: Option<&Item>| {
        let list = item.and_then(Item::as_array).into_iter().flatten();
        list.filter_map(|name| name.as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    match grants.get("http") {
        Some(Item::Value(Value::Array(array))) => array
            .iter()
            .filter_map(Value::as_inline_table)
            .flat_map(|table| names(table.get_key_value("secrets").map(|(_, item)| item)))
            .collect(),
        Some(Item::ArrayOfTables(tables)) => tables.iter().flat_map(|table| names(table.get("secrets"))).collect(),
        _ => Vec::new(),
    }
}

/// Whether two URLs are the same in the eyes of a rule.
fn same_place(one: &str, other: &str) -> bool {
    let read = |url: &str| Rule::parse(Written::with(url, None, None)).ok();
    one == other || read(one).zip(read(other)).is_some_and(|(one, other)| one == other)
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

    /// That nothing is lost of a file, and that it reads as it should afterwards.
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
                    "[plugins.a]\npath = 'a'\ngrants.http = [\n    \"https://old.example\", # one\n    # before the end\n    {url},\n]\ngrants.roots = \"read\"\nsha256 = \"00\"\n\n[plugins.a.config]\norg = \"acme\"\n\n[secrets]\ntoken = {{ env = \"T\" }}\n"
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
    fn a_rule_takes_the_place_of_those_that_say_less() {
        let before = "[plugins.a.grants]\nhttp = [{ url = 'https://a.example', methods = ['GET'] }, 'https://a.example/x', 'https://b.example',\
                      { url = 'https://a.example', methods = 'any' }, { url = 'https://a.example', private = true }]\n";
        let entry = "{ url = \"https://a.example/\", methods = [\"GET\", \"HEAD\"], headers = { x = \"{t}\" } }";
        let mut edited = Edited::parse(before).unwrap();
        edited.add_grant("a", "http", entry).unwrap();
        let after = before
            .replace("{ url = 'https://a.example', methods = ['GET'] }, 'https://a.example/x', ", " ")
            .replace("true }]", &format!("true }}, {entry}]"));
        assert_eq!(edited.text(), after);
    }

    #[test]
    fn what_is_denied_is_gone_and_nothing_else() {
        let all = "[plugins.a]\npath = 'a'\n[plugins.a.grants] # g\nroots = 'read'\nenv = ['TZ', { name = 'KEY', secret = 's' }] # e\n\
                   ask = ['sampling', 'roots']\ndirs = [{ host = '/srv', access = 'read' }]\n\
                   http = ['https://a.example', { url = 'https://B.example/x/', secrets = ['s'] }] # h\n# b\n[plugins.b]\n";
        let without =
            |lines: &[(&str, &str)]| lines.iter().fold(all.to_owned(), |text, (old, new)| text.replace(old, new));
        for (what, expected) in [
            ("roots", without(&[("roots = 'read'\n", "")])),
            ("TZ", without(&[("env = ['TZ', {", "env = [ {")])),
            ("$KEY", without(&[(", { name = 'KEY', secret = 's' }", "")])),
            ("sampling", without(&[("['sampling', 'roots']", "[ 'roots']")])),
            ("/srv", without(&[("dirs = [{ host = '/srv', access = 'read' }]\n", "")])),
            ("https://a.example/", without(&[("['https://a.example', {", "[ {")])),
            (
                "https://b.example/x",
                without(&[
                    (", { url = 'https://B.example/x/', secrets = ['s'] }", ""),
                    (", { name = 'KEY', secret = 's' }", ""),
                ]),
            ),
        ] {
            let mut edited = Edited::parse(all).unwrap();
            assert!(edited.deny("a", what), "{what}");
            assert_eq!(edited.text(), expected, "{what}");
            assert!(!edited.deny("a", what), "{what}");
        }
        let mut edited = Edited::parse(all).unwrap();
        assert!(edited.deny("a", "http"));
        assert!(!edited.text().contains("KEY") && edited.text().contains("'TZ'"), "{}", edited.text());
        for nothing in ["LANG", "https://c.example", "https://a.example/x", "elicitation", "/", ""] {
            assert!(!Edited::parse(all).unwrap().deny("a", nothing), "{nothing}");
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
            assert!(edited.deny_all("a") && !edited.deny_all("a") && !edited.deny_all("c"));
            assert_eq!(edited.text(), expected);
        }
    }
}
