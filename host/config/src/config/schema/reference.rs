//! Writes docs/config.md, the reference of all tables and keys, from the schema.

use std::fmt::Write;

use serde_json::{Map, Value};

const INTRODUCTION: &str = "<!-- Made by a test from the doc comments in host/config/src/config/raw. Change them there. -->

# Config reference

All tables and keys of `wharf.toml`. [examples/wharf.toml](../examples/wharf.toml) shows all of them in one file, and `wharf print schema` prints
the JSON Schema for editors. Paths are relative to the config file. wharf reads the file again when it changes, and on SIGHUP. Unknown keys
are errors.
";

/// The beginning of the paragraph of a description that is the key's default.
const DEFAULT: &str = "\n\nDefault: ";

/// Returns the default of a key: in the words of its description, or else as its type says it.
pub fn default_of(key: &Value) -> Option<String> {
    let in_words = key["description"].as_str().and_then(|text| text.split_once(DEFAULT));
    in_words.map(|(_, default)| default.to_owned()).or_else(|| key.get("default").map(|value| format!("`{value}`")))
}

/// Returns the reference as Markdown.
pub fn of(schema: &Value) -> String {
    let mut text = INTRODUCTION.to_owned();
    let (tables, keys): (Vec<_>, Vec<_>) = properties(schema).partition(|(_, key)| !tables(key).is_empty());
    let mut all = Vec::new();
    for (name, table) in tables {
        let intro = table["description"].as_str().unwrap_or_default();
        self::tables(table).into_iter().for_each(|found| add(&mut all, name, intro, found));
    }
    section(&mut text, "Keys before the first table", "", schema, keys, |_| None);
    for one in all.iter().filter(|one| described(&all, one).is_none()) {
        let below = |key: &str| {
            let path = format!("{}.{key}", one.path);
            described(&all, all.iter().find(|below| below.path == path)?)
        };
        section(&mut text, &one.header(), one.intro, one.schema, properties(one.schema).collect(), below);
    }
    text
}

/// A table that a key has.
struct Table<'a> {
    /// What follows the key's name in the table's header.
    suffix: &'static str,
    /// Whether it is one of a list of tables.
    listed: bool,
    schema: &'a Value,
}

/// A table of the config.
struct Place<'a> {
    path: String,
    listed: bool,
    intro: &'a str,
    schema: &'a Value,
}

impl Place<'_> {
    fn header(&self) -> String {
        let path = &self.path;
        if self.listed { format!("`[[{path}]]`") } else { format!("`[{path}]`") }
    }
}

/// Adds a table, and after it the tables of its keys.
fn add<'a>(all: &mut Vec<Place<'a>>, key: &str, intro: &'a str, table: Table<'a>) {
    let Table { suffix, listed, schema } = table;
    let path = format!("{key}{}", if key == "plugins" { ".<id>" } else { suffix });
    all.push(Place { path: path.clone(), listed, intro, schema });
    for (name, below) in properties(schema) {
        tables(below).into_iter().for_each(|found| add(all, &format!("{path}.{name}"), "", found));
    }
}

/// The table that has the same keys, and describes those of this one: one with an introduction, or else with a shorter name.
fn described<'a>(all: &'a [Place<'a>], one: &Place) -> Option<&'a Place<'a>> {
    let rank = |place: &Place| (place.intro.is_empty(), place.path.len());
    let is_same = |other: &&Place| other.schema["properties"] == one.schema["properties"];
    all.iter().filter(is_same).find(|other| rank(other) < rank(one))
}

/// Writes a table. `below`: the table that describes the keys of the one that a key has, if that is not done here.
fn section<'a>(
    text: &mut String,
    header: &str,
    intro: &str,
    table: &Value,
    keys: Vec<(&str, &Value)>,
    below: impl Fn(&str) -> Option<&'a Place<'a>>,
) {
    let required = |name: &str| table["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
    let _ = write!(text, "\n## {header}\n\n");
    if !intro.is_empty() {
        let _ = write!(text, "{}\n\n", linked(intro));
    }
    text.push_str("| key | type | default | meaning |\n|---|---|---|---|\n");
    for (name, key) in keys {
        let description = key["description"].as_str().unwrap_or_default();
        let (meaning, _) = description.split_once(DEFAULT).unwrap_or((description, ""));
        let mut meaning = linked(meaning);
        if let Some(same) = below(name) {
            let _ = write!(meaning, " Its keys are those of {}.", same.header());
        }
        let default = if required(name) { "required".to_owned() } else { default_of(key).unwrap_or_default() };
        let cells = [kind(key), default, meaning].map(|cell| cell.replace('|', "\\|"));
        let _ = writeln!(text, "| `{name}` | {} |", cells.join(" | ").replace("\n\n", " "));
    }
}

/// Returns the keys of a table.
fn properties(table: &Value) -> impl Iterator<Item = (&str, &Value)> {
    table["properties"].as_object().into_iter().flatten().map(|(name, key)| (name.as_str(), key))
}

/// Returns the tables that the value of a key can be, each once. A table with only one key, such as `{ env = … }`, is part of the key's type.
fn tables(key: &Value) -> Vec<Table<'_>> {
    let mut found: Vec<Table> = Vec::new();
    if properties(key).count() > 1 {
        found.push(Table { suffix: "", listed: false, schema: key });
    }
    if let Some(named) = key.get("additionalProperties").filter(|named| named.is_object()) {
        found.extend(tables(named).into_iter().map(|table| Table { suffix: ".<name>", ..table }));
    }
    let ways = key["anyOf"].as_array().into_iter().flatten();
    // A table comes before a list of such tables.
    let (lists, others): (Vec<_>, Vec<_>) = ways.partition(|way| way["type"] == "array");
    found.extend(others.into_iter().chain(lists).flat_map(tables));
    if let Some(items) = key.get("items") {
        found.extend(tables(items).into_iter().map(|table| Table { listed: true, ..table }));
    }
    let mut unique: Vec<Table> = Vec::new();
    for table in found {
        if !unique.iter().any(|other| other.schema == table.schema) {
            unique.push(table);
        }
    }
    unique
}

/// Returns the type of a value, in words.
fn kind(schema: &Value) -> String {
    if let Some(ways) = schema["anyOf"].as_array() {
        let mut words: Vec<String> = Vec::new();
        for word in ways.iter().map(kind) {
            if !words.contains(&word) {
                words.push(word);
            }
        }
        return words.join(" or ");
    }
    match schema["type"].as_str() {
        Some("array") => format!("list of {}", schema.get("items").map_or_else(|| "values".to_owned(), plural)),
        Some("object") => match properties(schema).collect::<Vec<_>>().as_slice() {
            [(only, _)] => format!("`{{ {only} = … }}`"),
            [] => match schema.get("additionalProperties").and_then(Value::as_object).map(Map::len) {
                None | Some(0) => "table".to_owned(),
                Some(_) => format!("table of {}", plural(&schema["additionalProperties"])),
            },
            _ => "table".to_owned(),
        },
        Some("integer") if schema.get("maximum").is_some() => {
            format!("integer from {} to {}", schema["minimum"], schema["maximum"])
        }
        Some(other) => other.to_owned(),
        None => "any value".to_owned(),
    }
}

/// Returns the type of several values, in words.
fn plural(schema: &Value) -> String {
    let plural = |word: &str| match word.split_once(' ') {
        _ if word.starts_with('`') => word.to_owned(),
        Some((first, rest)) => format!("{first}s {rest}"),
        None => format!("{word}s"),
    };
    kind(schema).split(" or ").map(plural).collect::<Vec<_>>().join(" or ")
}

/// Makes links of the names of documents, `docs/NAME.md`.
fn linked(text: &str) -> String {
    let mut linked = String::new();
    let mut pieces = text.split("docs/");
    linked.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let is_part = |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '-' | '#' | '_');
        let end = piece.find(|character| !is_part(character)).unwrap_or(piece.len());
        let (link, _) = piece.split_at(end);
        let link = link.trim_end_matches('.');
        let name = link.split('#').next().unwrap_or(link);
        let _ = write!(linked, "[{name}]({link}){}", piece.strip_prefix(link).unwrap_or_default());
    }
    linked
}
