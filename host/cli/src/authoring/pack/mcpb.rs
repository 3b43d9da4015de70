//! The `.mcpb` for desktop clients, which show a form with everything that the plugin wants, and start wharf with the answers.

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use super::{
    Contents,
    answers::{Kind, Question},
    archive::{Entry, zip},
    readme::readme,
};
use wharf_policy::access::wants::want::SettingKind;

/// The version of the manifest's format. The next one is an experiment that only adds servers in Python.
const MANIFEST_VERSION: &str = "0.3";

/// The name of the question for folders in the form.
const FOLDERS: &str = "folders";

/// Makes the bundle: its file name and its bytes.
pub fn make(contents: &Contents<'_>) -> Result<(String, Vec<u8>)> {
    let package = contents.package;
    let (binary, machine) = contents.wharf.as_ref().context("a .mcpb always contains the binary of wharf")?;
    let mut args = vec![json!("packaged"), json!(format!("${{__dirname}}/{}", contents.file()))];
    let mut form = Map::new();
    if contents.folders.is_some() {
        args.push(json!(format!("${{user_config.{FOLDERS}}}")));
        form.insert(
            FOLDERS.to_owned(),
            json!({
                "type": "directory",
                "title": "Folders",
                "description": "The folders that are open to the plugin, for reading",
                "multiple": true,
                "required": true,
            }),
        );
    }
    let mut env = Map::new();
    for question in contents.questions {
        let key = question.variable.to_ascii_lowercase();
        env.insert(question.variable.clone(), json!(format!("${{user_config.{key}}}")));
        form.insert(key, field(question));
    }
    let mut manifest = Map::from_iter([
        ("manifest_version".to_owned(), json!(MANIFEST_VERSION)),
        ("name".into(), json!(contents.id)),
        ("version".into(), json!(package.version)),
        ("description".into(), json!(package.description)),
        ("author".into(), json!({ "name": package.author })),
        (
            "server".into(),
            json!({
                "type": "binary",
                "entry_point": "wharf",
                "mcp_config": { "command": "${__dirname}/wharf", "args": args, "env": env },
            }),
        ),
        ("tools_generated".into(), json!(true)),
        ("keywords".into(), json!(["mcp", "sandbox", "wasm"])),
        ("compatibility".into(), json!({ "platforms": [machine.os] })),
    ]);
    let mut add = |key: &str, value: Value| drop(manifest.insert(key.to_owned(), value));
    if let Some(license) = &package.license {
        add("license", json!(license));
    }
    if let Some(repository) = &package.repository {
        add("repository", json!({ "type": "git", "url": repository }));
    }
    if !form.is_empty() {
        add("user_config", Value::Object(form));
    }
    let mut entries = vec![
        Entry::file("manifest.json", serde_json::to_vec_pretty(&Value::Object(manifest))?),
        Entry::program("wharf", *binary),
        Entry::file(contents.file(), contents.component),
        Entry::file("README.md", readme(contents, &["wharf", "packaged", &contents.file()])),
    ];
    entries.extend(contents.license.map(|text| Entry::file("LICENSE", text)));
    Ok((file_name(contents.id, &package.version, &machine.name()), zip(&entries)?))
}

/// The name of the bundle for a platform.
pub fn file_name(id: &str, version: &str, platform: &str) -> String {
    format!("{id}-{version}-{platform}.mcpb")
}

/// The field of the form for a question. Nothing is allowed by default.
fn field(question: &Question) -> Value {
    let Question { kind, title, why, .. } = question;
    let (kind, more) = match kind {
        Kind::Allow => ("boolean", json!({ "default": false })),
        // A secret is only needed if its requests are allowed.
        Kind::Secret => ("string", json!({ "sensitive": true })),
        Kind::Setting { kind: SettingKind::String, .. } => ("string", json!({})),
        Kind::Setting { kind: SettingKind::Number, .. } => ("number", json!({})),
        Kind::Setting { kind: SettingKind::Boolean, .. } => ("boolean", json!({})),
    };
    let title = match question.kind {
        Kind::Allow => format!("Allow it to {title}"),
        Kind::Secret | Kind::Setting { .. } => title.clone(),
    };
    let mut field = json!({
        "type": kind,
        "title": title,
        "description": why.as_deref().unwrap_or("The plugin does not say why"),
        "required": matches!(question.kind, Kind::Setting { required: true, .. }),
    });
    if let (Value::Object(field), Value::Object(more)) = (&mut field, more) {
        field.extend(more);
    }
    field
}
