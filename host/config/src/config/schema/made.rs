//! Generates the schema from the types that the config is read into. The descriptions of keys come from examples/wharf.toml, which has
//! a comment on every key.

use anyhow::Result;
use schemars::{generate::SchemaSettings, transform::RecursiveTransform};
use serde_json::{Map, Value};

use crate::config::raw;

const EXAMPLE: &str = include_str!("../../../../../examples/wharf.toml");

fn schema() -> Result<Value> {
    // Editors support draft 7. With inlined subschemas, they also show the description of a key that several tables have.
    let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
    let settings = settings.with_transform(RecursiveTransform(without_null));
    let mut schema = serde_json::to_value(settings.into_generator().into_root_schema_for::<raw::Config>())?;
    if let Some(root) = schema.as_object_mut() {
        root.insert("title".into(), "wharf.toml".into());
    }
    for comment in KeyComment::all(EXAMPLE) {
        for key in keys(&mut schema, &comment.path) {
            key.insert("description".into(), comment.text.clone().into());
        }
    }
    Ok(schema)
}

/// Removes null types, since TOML has no null and optional keys are left out, and number formats of Rust, which editors do not know.
fn without_null(schema: &mut schemars::Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    let is_null = |one: &Value| one == "null" || one.get("type").is_some_and(|kind| kind == "null");
    for name in ["type", "anyOf"] {
        if let Some(Value::Array(all)) = object.get_mut(name) {
            all.retain(|one| !is_null(one));
            if let [only] = all.as_slice() {
                let only = only.clone();
                object.remove(name);
                match only {
                    Value::Object(only) => object.extend(only),
                    only => drop(object.insert(name.into(), only)),
                }
            }
        }
    }
    object.remove("format");
    if object.get("default").is_some_and(Value::is_null) {
        object.remove("default");
    }
}

/// Returns the schemas of a key: one for each way to write the table that the key is in.
fn keys<'a>(schema: &'a mut Value, path: &[String]) -> Vec<&'a mut Map<String, Value>> {
    let Some(object) = schema.as_object_mut() else { return Vec::new() };
    let Some((first, rest)) = path.split_first() else { return vec![object] };
    let mut found = Vec::new();
    for (name, below) in object.iter_mut() {
        match (name.as_str(), below) {
            ("properties", Value::Object(properties)) => {
                found.extend(properties.get_mut(first).into_iter().flat_map(|key| keys(key, rest)));
            }
            // A table whose keys are names, such as [plugins].
            ("additionalProperties", names @ Value::Object(_)) => found.extend(keys(names, rest)),
            ("items", items @ Value::Object(_)) => found.extend(keys(items, path)),
            ("anyOf", Value::Array(ways)) => found.extend(ways.iter_mut().flat_map(|way| keys(way, path))),
            _ => {}
        }
    }
    found
}

/// The comment on a key or a table in the example.
#[derive(Debug, PartialEq)]
struct KeyComment {
    path: Vec<String>,
    text: String,
}

impl KeyComment {
    fn all(example: &str) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        let mut table: Vec<String> = Vec::new();
        // Whether a line with only a comment would continue the comment of the line before it.
        let mut continues = false;
        for line in example.lines() {
            let line = uncommented(line);
            let (code, comment) = line.split_at(comment_of(line));
            let comment = comment.trim_start_matches(['#', ' ']).trim_end();
            let (path, is_new) = match code.trim().split_once('=') {
                _ if code.trim().is_empty() => (Vec::new(), false),
                _ if code.starts_with('[') => {
                    table = code.trim().trim_matches(['[', ']']).split('.').map(ToOwned::to_owned).collect();
                    (table.clone(), true)
                }
                Some((key, _)) => (table.iter().cloned().chain([key.trim().to_owned()]).collect(), true),
                None => (Vec::new(), false),
            };
            match all.last_mut() {
                _ if is_new && !comment.is_empty() => all.push(Self { path, text: comment.to_owned() }),
                Some(last) if continues && line.starts_with(' ') => {
                    last.text.push(' ');
                    last.text.push_str(comment);
                }
                _ => {}
            }
            continues = (is_new && !comment.is_empty()) || (continues && line.starts_with(' '));
        }
        all
    }
}

/// Returns the line without the `# ` that comments out a key or the header of a table.
fn uncommented(line: &str) -> &str {
    let is_code = |code: &str| {
        let name = code.trim_start_matches('[').split(['=', ']']).next().unwrap_or_default().trim();
        let is_name = |character: char| character.is_ascii_lowercase() || matches!(character, '_' | '.');
        !name.is_empty() && name.chars().all(is_name) && code.contains(['=', ']'])
    };
    line.strip_prefix("# ").filter(|code| is_code(code)).unwrap_or(line)
}

/// Returns where the comment of a line begins. For a line without a comment, this is its end.
fn comment_of(line: &str) -> usize {
    let mut quote = None;
    for (at, character) in line.char_indices() {
        match (quote, character) {
            (None, '#') => return at,
            (None, '"' | '\'') => quote = Some(character),
            (Some(open), close) if open == close => quote = None,
            _ => {}
        }
    }
    line.len()
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, env, fs, path::Path};

    use super::*;

    const FILE: &str = "docs/wharf.schema.json";
    /// The environment variable that makes the test write the file.
    const WRITE: &str = "WRITE_SCHEMA";

    fn validator() -> jsonschema::Validator {
        jsonschema::draft7::new(&schema().unwrap()).unwrap()
    }

    fn json(text: &str) -> Value {
        serde_json::to_value(toml::from_str::<toml::Table>(text).unwrap()).unwrap()
    }

    fn root() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
    }

    /// The names of all keys.
    fn names(schema: &Value, into: &mut BTreeSet<String>) {
        match schema {
            Value::Object(object) => {
                for (name, below) in object {
                    if let (true, Value::Object(keys)) = (name == "properties", below) {
                        into.extend(keys.keys().cloned());
                        keys.values().for_each(|key| names(key, into));
                    } else {
                        names(below, into);
                    }
                }
            }
            Value::Array(all) => all.iter().for_each(|one| names(one, into)),
            _ => {}
        }
    }

    #[test]
    fn the_schema_beside_the_docs_is_this_one() {
        let made = schema().unwrap();
        if env::var_os(WRITE).is_some() {
            fs::write(root().join(FILE), serde_json::to_string_pretty(&made).unwrap() + "\n").unwrap();
        }
        let written: Value = serde_json::from_slice(&fs::read(root().join(FILE)).unwrap()).unwrap();
        let again = "cargo test --release --lib the_schema_beside_the_docs";
        assert!(written == made, "the config has changed: run `{WRITE}=1 {again}` to write {FILE} again");
        assert!(EXAMPLE.starts_with(&format!("#:schema ../{FILE}\n")));
    }

    #[test]
    fn the_example_fits_as_it_is_and_with_every_key() {
        let full: String = EXAMPLE.lines().map(|line| format!("{}\n", uncommented(line))).collect();
        assert!(full.lines().filter(|line| line.starts_with('#')).count() < 20, "{full}");
        for text in [EXAMPLE, &full] {
            raw::parse(text).unwrap();
            let problems: Vec<String> =
                validator().iter_errors(&json(text)).map(|one| format!("{}: {one}", one.instance_path())).collect();
            assert_eq!(problems, [""; 0]);
        }
    }

    #[test]
    fn the_example_has_a_word_for_every_key() {
        let (mut keys, mut missing) = (BTreeSet::new(), Vec::new());
        names(&schema().unwrap(), &mut keys);
        assert!(keys.len() > 100, "{keys:?}");
        let is_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
        let words: BTreeSet<&str> = EXAMPLE.split(|character| !is_word(character)).collect();
        missing.extend(keys.iter().filter(|key| !words.contains(key.as_str())));
        assert!(missing.is_empty(), "examples/wharf.toml does not mention {missing:?}");
    }

    #[test]
    fn editors_show_what_the_example_says() {
        let schema = schema().unwrap();
        for (place, expected) in [
            (
                "/properties/http/properties/drain_s",
                "how long requests under way may take after shutdown begins; 0 to 600",
            ),
            ("/properties/roles/additionalProperties/properties/when", "any of which holds: scope, group"),
            ("/properties/auth/properties/issuers/items/properties/typ", "or \"at+jwt\""),
            ("/properties/plugins/additionalProperties/properties/grants/properties/roots", "left out = none"),
            ("/properties/plugins/additionalProperties/properties/confirm", "names of tools, such as"),
        ] {
            let description = schema.pointer(place).and_then(|key| key["description"].as_str()).unwrap_or_default();
            assert!(description.contains(expected), "{place}: {description}");
        }
        assert_eq!(schema.pointer("/properties/http/properties/listen/type").unwrap(), "string");
    }

    #[test]
    fn every_config_in_the_docs_fits() {
        let validator = validator();
        let mut seen = 0;
        let docs = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
        for doc in docs.chain([root().join("README.md")]).filter(|path| path.extension().is_some_and(|end| end == "md"))
        {
            let text = fs::read_to_string(&doc).unwrap();
            for block in text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()) {
                // Other blocks are a plugin.toml or cases of tests.
                if raw::parse(block).is_ok() {
                    seen += 1;
                    let problem = validator.validate(&json(block)).err().map(|problem| problem.to_string());
                    assert_eq!(problem, None, "{}: {block}", doc.display());
                }
            }
        }
        assert!(seen >= 10, "{seen}");
    }

    #[test]
    fn what_is_wrong_in_the_file_is_wrong_in_the_schema() {
        let validator = validator();
        for text in [
            "plugin_dri = 'x'",
            "[http]\nlisten = 7",
            "[http]\ntokenenv = 'x'",
            "[plugins.a]\npath = 'a'\nfrobnicate = 1",
            "[plugins.a]\npath = 'a'\ntools = 7",
            "[plugins.a]\npath = 'a'\n[plugins.a.grants]\nhttp = [7]",
            "[plugins.a]\npath = 'a'\n[plugins.a.grants]\nhttp = [{ methods = 'any' }]",
            "[limits]\ntimeout_ms = 'x'",
            "[limits]\ntimeout_ms = -1",
            "[secrets]\na = 'text'",
        ] {
            assert!(raw::parse(text).is_err(), "{text}");
            assert!(!validator.is_valid(&json(text)), "{text}");
        }
    }
}
