//! The official JSON schemas of the Model Context Protocol.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex},
};

use jsonschema::Validator;
use serde_json::{Value, json};

const FILES: [(&str, &str); 5] = [
    ("2024-11-05", include_str!("../../../tests/data/schema/2024-11-05.json")),
    ("2025-03-26", include_str!("../../../tests/data/schema/2025-03-26.json")),
    ("2025-06-18", include_str!("../../../tests/data/schema/2025-06-18.json")),
    ("2025-11-25", include_str!("../../../tests/data/schema/2025-11-25.json")),
    ("2026-07-28", include_str!("../../../tests/data/schema/2026-07-28.json")),
];

type Cache = HashMap<(String, String), Arc<Validator>>;

static VALIDATORS: LazyLock<Mutex<Cache>> = LazyLock::new(Mutex::default);

fn validator(revision: &str, definition: &str) -> Arc<Validator> {
    let key = (revision.to_owned(), definition.to_owned());
    if let Some(known) = VALIDATORS.lock().unwrap().get(&key) {
        return Arc::clone(known);
    }
    let file =
        FILES.iter().find(|(known, _)| *known == revision).unwrap_or_else(|| panic!("no schema of {revision}")).1;
    let file: Value = serde_json::from_str(file).unwrap();
    let group = if file.get("$defs").is_some() { "$defs" } else { "definitions" };
    assert!(file[group].get(definition).is_some(), "{revision} has no {definition}");
    let schema = json!({
        "$schema": file["$schema"],
        "allOf": [{ "$ref": format!("#/{group}/{definition}") }],
        group: file[group],
    });
    let compiled = Arc::new(jsonschema::validator_for(&schema).unwrap());
    VALIDATORS.lock().unwrap().insert(key, Arc::clone(&compiled));
    compiled
}

/// Returns how a value violates a definition of a revision.
pub fn problem(revision: &str, definition: &str, value: &Value) -> Option<String> {
    let problems: Vec<String> = validator(revision, definition)
        .iter_errors(value)
        .map(|error| format!("{error} (at {})", error.instance_path()))
        .collect();
    (!problems.is_empty()).then(|| format!("not a {definition} of {revision}: {}\n{value}", problems.join("; ")))
}

/// Fails the test if a value violates a definition.
pub fn check(revision: &str, definition: &str, value: &Value) {
    if let Some(problem) = problem(revision, definition, value) {
        panic!("{problem}");
    }
}
