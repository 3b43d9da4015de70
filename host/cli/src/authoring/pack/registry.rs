//! `server.json`, by which registries of MCP servers describe the packages.

use serde_json::{Map, Value, json};

use super::{Contents, answers::Kind};
use wharf_policy::access::wants::want::SettingKind;

/// The schema that the file follows.
const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";

/// A package that the file names.
pub enum Published {
    Npm,
    Pypi,
    /// The file name and digest of an `.mcpb`, which is downloaded from `package.downloads`.
    Mcpb {
        file: String,
        sha256: String,
    },
}

/// Returns the contents of `server.json`, or why it cannot be made.
pub fn make(contents: &Contents<'_>, published: &[Published]) -> Result<Value, String> {
    let package = contents.package;
    let Some(name) = &package.registry else {
        return Err(
            "plugin.toml has no package.registry, the server's name in registries, such as io.github.acme/notes"
                .to_owned(),
        );
    };
    let mut packages = Vec::new();
    for one in published {
        let (kind, identifier, more) = match one {
            Published::Npm => ("npm", package.npm.clone(), json!({ "version": package.version, "runtimeHint": "npx" })),
            Published::Pypi => {
                ("pypi", package.pypi.clone(), json!({ "version": package.version, "runtimeHint": "uvx" }))
            }
            Published::Mcpb { file, sha256 } => {
                let Some(downloads) = &package.downloads else { continue };
                ("mcpb", format!("{}/{file}", downloads.trim_end_matches('/')), json!({ "fileSha256": sha256 }))
            }
        };
        let mut described =
            Map::from_iter([("registryType".to_owned(), json!(kind)), ("identifier".into(), json!(identifier))]);
        if let Value::Object(more) = more {
            described.extend(more);
        }
        described.insert("transport".into(), json!({ "type": "stdio" }));
        // A bundle has its own form.
        if !matches!(one, Published::Mcpb { .. }) {
            described.extend(inputs(contents));
        }
        packages.push(Value::Object(described));
    }
    if packages.is_empty() {
        return Err("none of the packages can be named in it: an .mcpb needs package.downloads in plugin.toml, the URL of its folder".to_owned());
    }
    let mut server = Map::from_iter([
        ("$schema".to_owned(), json!(SCHEMA)),
        ("name".into(), json!(name)),
        ("title".into(), json!(contents.id)),
        ("description".into(), json!(package.description)),
        ("version".into(), json!(package.version)),
    ]);
    if let Some(repository) = &package.repository {
        let host = repository.trim_start_matches("https://").split(['/', ':']).next().unwrap_or_default();
        // `github` and `gitlab`, for their own hosts.
        let source = host.strip_suffix(".com").unwrap_or(host);
        server.insert("repository".into(), json!({ "url": repository, "source": source }));
    }
    server.insert("packages".into(), Value::Array(packages));
    Ok(Value::Object(server))
}

/// The arguments and variables that a client asks its user for. None has a value that the user did not choose.
fn inputs(contents: &Contents<'_>) -> Map<String, Value> {
    let mut inputs = Map::new();
    if contents.folders.is_some() {
        let folders = json!([{
            "type": "positional",
            "valueHint": "folder",
            "description": "A folder that is open to the plugin",
            "format": "filepath",
            "isRequired": false,
            "isRepeated": true,
        }]);
        inputs.insert("packageArguments".to_owned(), folders);
    }
    let variables = contents.questions.iter().map(|question| {
        let why = question.why.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
        let (about, format, more) = match &question.kind {
            Kind::Allow => {
                (format!("Lets the plugin {}{why}", question.title), "boolean", json!({ "default": "false" }))
            }
            Kind::Secret => (format!("{}{why}", question.title), "string", json!({ "isSecret": true })),
            Kind::Setting { kind, required } => {
                let format = match kind {
                    SettingKind::String => "string",
                    SettingKind::Number => "number",
                    SettingKind::Boolean => "boolean",
                };
                (format!("{}{why}", question.title), format, json!({ "isRequired": required }))
            }
        };
        let mut variable = json!({ "name": question.variable, "description": about, "format": format });
        if let (Value::Object(variable), Value::Object(more)) = (&mut variable, more) {
            variable.extend(more);
        }
        variable
    });
    let variables: Vec<Value> = variables.collect();
    if !variables.is_empty() {
        inputs.insert("environmentVariables".to_owned(), Value::Array(variables));
    }
    inputs
}
