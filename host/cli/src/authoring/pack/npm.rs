//! The package for npm: a script that starts wharf with the plugin.

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::{
    Contents, WHARF,
    archive::{Entry, tgz},
    readme::readme,
};

/// The script, in which what this package differs by is filled in.
const SERVER: &str = include_str!("server.js");

/// Makes the package: its file name, as `npm pack` would name it, and its bytes.
pub fn make(contents: &Contents<'_>) -> Result<(String, Vec<u8>)> {
    let package = contents.package;
    let (name, version) = WHARF;
    let mut manifest = Map::from_iter([
        ("name".to_owned(), json!(package.npm)),
        ("version".into(), json!(package.version)),
        ("description".into(), json!(package.description)),
        ("author".into(), json!(package.author)),
        ("keywords".into(), json!(["mcp", "mcp-server", "model-context-protocol"])),
        ("bin".into(), json!({ contents.id: "server.js" })),
        ("engines".into(), json!({ "node": ">=18" })),
    ]);
    let mut add = |key: &str, value: Value| drop(manifest.insert(key.to_owned(), value));
    if let Some(license) = &package.license {
        add("license", json!(license));
    }
    if let Some(registry) = &package.registry {
        add("mcpName", json!(registry));
    }
    if let Some(repository) = &package.repository {
        add("repository", json!({ "type": "git", "url": format!("git+{repository}.git") }));
    }
    let program = match &contents.wharf {
        Some((_, machine)) => {
            add("os", json!([machine.os]));
            add("cpu", json!([machine.cpu]));
            if let Some(libc) = machine.libc {
                add("libc", json!([libc]));
            }
            // Yarn would leave the package in its archive, in which the binary cannot be executed.
            add("preferUnplugged", json!(true));
            "[join(__dirname, \"wharf\"), []]".to_owned()
        }
        None => {
            add("dependencies", json!({ name: version }));
            format!("[process.execPath, [require.resolve({:?})]]", format!("{name}/wharf.js"))
        }
    };
    let script = SERVER.replace("PROGRAM", &program).replace("COMPONENT", &format!("{:?}", contents.file()));
    let mut entries = vec![
        Entry::file("package/package.json", serde_json::to_vec_pretty(&Value::Object(manifest))?),
        Entry::program("package/server.js", script),
        Entry::file(format!("package/{}", contents.file()), contents.component),
        Entry::file("package/README.md", readme(contents, &["npx", "-y", &package.npm])),
    ];
    entries.extend(contents.license.map(|text| Entry::file("package/LICENSE", text)));
    entries.extend(contents.wharf.as_ref().map(|(binary, _)| Entry::program("package/wharf", *binary)));
    let file = package.npm.trim_start_matches('@').replace('/', "-");
    Ok((format!("{file}-{}.tgz", package.version), tgz(&entries)?))
}
