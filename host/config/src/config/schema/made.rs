//! Generates the schema from the types that the config is read into; the descriptions of keys are the doc comments of their fields.

use anyhow::Result;
use schemars::{generate::SchemaSettings, transform::RecursiveTransform};
use serde_json::Value;

use crate::config::raw;

/// Generates the schema.
pub fn schema() -> Result<Value> {
    // Editors support draft 7. With inlined subschemas, they also show the description of a key that several tables have.
    let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
    let settings = settings.with_transform(RecursiveTransform(for_editors));
    let mut schema = serde_json::to_value(settings.into_generator().into_root_schema_for::<raw::Config>())?;
    if let Some(root) = schema.as_object_mut() {
        root.insert("title".into(), "wharf.toml".into());
    }
    Ok(schema)
}

/// Removes null types, since TOML has no null and optional keys are left out, and number formats of Rust, which editors do not know. Joins
/// the lines of each paragraph of a description.
fn for_editors(schema: &mut schemars::Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    let is_null = |one: &Value| one == "null" || one.get("type").is_some_and(|kind| kind == "null");
    for name in ["type", "anyOf"] {
        if let Some(Value::Array(all)) = object.get_mut(name) {
            all.retain(|one| !is_null(one));
            if let [only] = all.as_slice() {
                let only = only.clone();
                object.remove(name);
                match only {
                    // The description of the key says more than that of its type.
                    Value::Object(only) => {
                        for (name, value) in only {
                            object.entry(name).or_insert(value);
                        }
                    }
                    only => drop(object.insert(name.into(), only)),
                }
            }
        }
    }
    // The words that a key can have are one list, whether or not their type says more about some of them.
    if let Some(Value::Array(ways)) = object.get("oneOf") {
        let of = |way: &Value| match (way.get("const"), way["enum"].as_array()) {
            (Some(word), _) => vec![word.clone()],
            (None, words) => words.cloned().unwrap_or_default(),
        };
        let words: Vec<Value> = ways.iter().flat_map(of).collect();
        object.remove("oneOf");
        object.insert("type".into(), "string".into());
        object.insert("enum".into(), words.into());
    }
    object.remove("format");
    if let Some(Value::String(text)) = object.get_mut("description") {
        *text = text.split("\n\n").map(|paragraph| paragraph.replace('\n', " ")).collect::<Vec<_>>().join("\n\n");
    }
    if object.get("default").is_some_and(Value::is_null) {
        object.remove("default");
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::{BTreeMap, BTreeSet},
        env, fs,
        path::Path,
    };

    use super::*;
    use crate::config::{
        defaults,
        schema::reference::{self, default_of},
    };

    const EXAMPLE: &str = include_str!("../../../../../examples/wharf.toml");
    const SCHEMA: &str = "docs/wharf.schema.json";
    const REFERENCE: &str = "docs/config.md";
    /// The environment variable that makes the test write the files.
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

    /// Returns the line without the `# ` that comments out a key or the header of a table.
    fn uncommented(line: &str) -> &str {
        let is_code = |code: &str| {
            let name = code.trim_start_matches('[').split(['=', ']']).next().unwrap_or_default().trim();
            let is_name = |character: char| character.is_ascii_lowercase() || matches!(character, '_' | '.');
            !name.is_empty() && name.chars().all(is_name) && code.contains(['=', ']'])
        };
        line.strip_prefix("# ").filter(|code| is_code(code)).unwrap_or(line)
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
    fn the_generated_files_are_up_to_date() {
        let made = schema().unwrap();
        let texts = [(SCHEMA, serde_json::to_string_pretty(&made).unwrap() + "\n"), (REFERENCE, reference::of(&made))];
        for (file, text) in texts {
            if env::var_os(WRITE).is_some() {
                fs::write(root().join(file), &text).unwrap();
            }
            let written = fs::read_to_string(root().join(file)).unwrap();
            let again = "cargo test -p wharf-config --lib the_generated_files";
            assert!(written == text, "the config has changed: run `{WRITE}=1 {again}` to write {file} again");
        }
        assert!(EXAMPLE.starts_with(&format!("#:schema ../{SCHEMA}\n")));
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
    fn every_key_has_a_description() {
        fn missing(place: &str, schema: &Value, into: &mut Vec<String>) {
            match schema {
                Value::Object(object) => {
                    for (name, below) in object {
                        if let (true, Value::Object(keys)) = (name == "properties", below) {
                            for (key, schema) in keys {
                                let place = format!("{place}.{key}");
                                let text = schema["description"].as_str().unwrap_or_default();
                                if !text.ends_with(['.', '`', ')']) && !text.contains("\n\nDefault: ") {
                                    into.push(format!("{place}: {text}"));
                                }
                                missing(&place, schema, into);
                            }
                        } else {
                            missing(place, below, into);
                        }
                    }
                }
                Value::Array(all) => all.iter().for_each(|one| missing(place, one, into)),
                _ => {}
            }
        }
        let mut all = Vec::new();
        missing("", &schema().unwrap(), &mut all);
        assert_eq!(all, [""; 0]);
    }

    #[test]
    fn editors_show_the_doc_comments() {
        let schema = schema().unwrap();
        for (place, expected) in [
            (
                "/properties/http/properties/drain_s",
                "How long requests under way may take after shutdown begins, in seconds.",
            ),
            ("/properties/roles/additionalProperties/properties/when", "or a list of tables, any of which holds"),
            ("/properties/auth/properties/issuers/items/properties/typ", "or `\"at+jwt\"`"),
            ("/properties/plugins/additionalProperties/properties/grants/properties/roots", "Without this key, none"),
            ("/properties/plugins/additionalProperties/properties/confirm", "names of tools, such as"),
            ("/properties/secrets/additionalProperties/properties/command", "prints the secret within 10 s"),
            ("/properties/plugins/additionalProperties/properties/tools", "Without this key, all tools."),
        ] {
            let description = schema.pointer(place).and_then(|key| key["description"].as_str()).unwrap_or_default();
            assert!(description.contains(expected), "{place}: {description}");
        }
        let http = schema.pointer("/properties/http/properties").unwrap();
        assert_eq!(http["listen"]["type"], "string");
        let drain = &http["drain_s"];
        assert_eq!((&drain["default"], &drain["minimum"], &drain["maximum"]), (&30.into(), &0.into(), &600.into()));
        let catalog = schema.pointer("/properties/server/properties/catalog").unwrap();
        assert_eq!((&catalog["default"], &catalog["enum"]), (&"full".into(), &serde_json::json!(["full", "search"])));
    }

    /// Returns the keys that have a default which is a value of TOML.
    fn defaults_of(schema: &Value, table: &str) -> BTreeMap<String, Value> {
        let keys = schema["properties"][table]["properties"].as_object().into_iter().flatten();
        let literal = |schema: &Value| {
            let text = default_of(schema)?;
            let (literal, _) = text.strip_prefix('`')?.split_once('`')?;
            Some(json(&format!("key = {literal}"))["key"].clone())
        };
        keys.filter_map(|(key, schema)| Some((key.clone(), literal(schema)?))).collect()
    }

    #[test]
    fn the_example_shows_the_defaults_in_comments() {
        // Without the keys that are in use, which need not be defaults.
        let is_comment = |line: &&str| uncommented(line) != *line || line.starts_with('[');
        let text: String = EXAMPLE.lines().filter(is_comment).map(|line| format!("{}\n", uncommented(line))).collect();
        let (example, schema) = (json(&text), schema().unwrap());
        let mut seen = 0;
        for (table, keys) in example.as_object().unwrap().iter().filter(|(table, _)| *table != "plugins") {
            for (key, default) in defaults_of(&schema, table) {
                if let Some(shown) = keys.get(&key) {
                    seen += 1;
                    assert_eq!(*shown, default, "[{table}] {key}");
                }
            }
        }
        assert!(seen > 50, "{seen}");
    }

    #[test]
    fn the_defaults_in_words_are_those_of_the_code() {
        let schema = schema().unwrap();
        for (table, key, default) in [
            ("http", "listen", defaults::LISTEN.into()),
            ("http", "socket_mode", defaults::SOCKET_MODE.into()),
            ("admin", "listen", defaults::ADMIN_LISTEN.into()),
            ("limits", "memory_mib", (wharf_scope::MemoryLimit::LEAST_BYTES >> 20).into()),
            ("telemetry", "sample", defaults::TELEMETRY_SAMPLE.into()),
        ] {
            let default: Value = default;
            assert_eq!(defaults_of(&schema, table).get(key), Some(&default), "[{table}] {key}");
        }
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
                let tables = ["server", "http", "protocol", "roots", "limits", "auth", "roles", "plugins", "audit"];
                let is_config = |line: &str| tables.iter().any(|table| line.starts_with(&format!("[{table}")));
                match raw::parse(block) {
                    Ok(_) => {
                        seen += 1;
                        let problem = validator.validate(&json(block)).err().map(|problem| problem.to_string());
                        assert_eq!(problem, None, "{}: {block}", doc.display());
                    }
                    Err(problem) => assert!(!block.lines().any(is_config), "{}:{problem}\n{block}", doc.display()),
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
