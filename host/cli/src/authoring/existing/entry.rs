//! Which file of a folder is the server.

#![expect(clippy::disallowed_methods, reason = "looks for the server in the folder that the person names")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use serde_json::Value;

use wharf_base::{below::Below, text};
use wharf_config::config::existing::Language;

/// The largest manifest that is read.
const MAX_FILE_BYTES: u64 = 32 << 20;

/// Finds the file of a script that the `pyproject.toml` of a folder names.
pub fn script(folder: &Path, name: &str) -> Result<PathBuf> {
    let text = Below::open(folder)?.read(Path::new("pyproject.toml"), MAX_FILE_BYTES)?;
    let project = text.map(|text| toml::from_str(&text)).transpose();
    let project = project.with_context(|| text::path(&folder.join("pyproject.toml")))?.unwrap_or_default();
    let (real, files) = (fs::canonicalize(folder)?, of_pyproject(&project, Some(name)).into_iter());
    files.map(|path| folder.join(path)).find(|file| is_in(&real, file)).with_context(|| {
        let (folder, name) = (text::path(&std::path::absolute(folder).unwrap_or_default()), text::escaped(name));
        format!(
            "the pyproject.toml of {folder} names no script {name} whose file is there; name the server's file, or, for a package, \
             type wharf run uvx {name}"
        )
    })
}

/// Finds the file of the server in a folder: where its manifest says, else where most servers have it.
pub fn find(folder: &Path) -> Option<PathBuf> {
    let below = Below::open(folder).ok()?;
    let manifest = |name: &str| below.read(Path::new(name), MAX_FILE_BYTES).ok().flatten();
    let node = manifest("package.json").and_then(|text| serde_json::from_str(&text).ok());
    let python = manifest("pyproject.toml").and_then(|text| toml::from_str(&text).ok());
    let named = node.iter().flat_map(of_package_json);
    let named = named.chain(python.iter().flat_map(|project| of_pyproject(project, None)));
    let usual = ["server", "main", "index", "src/server", "src/main", "src/index"];
    let usual = usual.iter().flat_map(|name| ["py", "ts", "js", "mjs"].map(|extension| format!("{name}.{extension}")));
    let real = fs::canonicalize(folder).ok()?;
    named.chain(usual).map(|path| folder.join(path)).find(|path| is_in(&real, path) && Language::of(path).is_some())
}

/// Whether a file is in a folder, whose manifest may name one elsewhere, which the person was not given. `folder`: its canonical path.
fn is_in(folder: &Path, file: &Path) -> bool {
    file.is_file() && fs::canonicalize(file).is_ok_and(|file| file.starts_with(folder))
}

/// Returns where the server of a package.json may be: the source of what it runs, then what it runs.
fn of_package_json(package: &Value) -> Vec<String> {
    let bin = &package["bin"];
    let run = bin.as_str().or_else(|| bin.as_object()?.values().next()?.as_str());
    let mut paths = Vec::new();
    for path in run.into_iter().chain(package["main"].as_str()) {
        let path = path.trim_start_matches("./");
        let stem = path.rsplit_once('.').map_or(path, |(stem, _)| stem);
        let (_, below) = stem.split_once('/').unwrap_or(("", stem));
        paths.extend([format!("src/{below}.ts"), format!("{below}.ts"), format!("{stem}.ts"), path.to_owned()]);
    }
    paths
}

/// Returns where the server of a pyproject.toml may be: the module of the script of that name, or of its first one. One with a function is what
/// the function is in.
fn of_pyproject(project: &toml::Table, named: Option<&str>) -> Vec<String> {
    let scripts = project.get("project").and_then(|project| project.get("scripts")).and_then(toml::Value::as_table);
    let script = scripts.and_then(|scripts| named.map_or_else(|| scripts.values().next(), |name| scripts.get(name)));
    let Some(script) = script.and_then(toml::Value::as_str) else { return Vec::new() };
    let (module, function) = script.split_once(':').unzip();
    let path = module.unwrap_or(script).replace('.', "/");
    let ends = match function {
        Some(_) => [".py", "/__init__.py", "/server.py", "/__main__.py"],
        None => ["/server.py", "/__main__.py", ".py", "/__init__.py"],
    };
    [format!("src/{path}"), path].iter().flat_map(|path| ends.map(|end| format!("{path}{end}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authoring::template::write;

    #[test]
    fn the_server_of_a_folder_is_where_its_manifest_says() {
        for (files, expected) in [
            (&[("server.py", "")][..], Some("server.py")),
            (
                &[("package.json", r#"{"bin":{"x":"./dist/index.js"}}"#), ("src/index.ts", ""), ("dist/index.js", "")],
                Some("src/index.ts"),
            ),
            (&[("package.json", r#"{"main":"build/app.js"}"#), ("build/app.js", "")], Some("build/app.js")),
            (
                &[("pyproject.toml", "[project.scripts]\nx = 'tool.server:main'"), ("src/tool/server.py", "")],
                Some("src/tool/server.py"),
            ),
            (
                &[
                    ("pyproject.toml", "[project.scripts]\nx = 'tool:main'"),
                    ("src/tool/__init__.py", ""),
                    ("src/tool/server.py", ""),
                ],
                Some("src/tool/__init__.py"),
            ),
            (&[("README.md", "")], None),
        ] {
            let place = tempfile::tempdir().unwrap();
            for (name, text) in files {
                write(&place.path().join(name), text.as_bytes()).unwrap();
            }
            let found = find(place.path()).map(|path| path.strip_prefix(place.path()).unwrap().to_owned());
            assert_eq!(found.as_deref(), expected.map(Path::new), "{files:?}");
        }
    }

    #[test]
    fn no_script_leads_out_of_its_folder() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        write(&at("other/a.py"), b"").unwrap();
        write(&at("own/b.py"), b"").unwrap();
        let outside = at("other/a").display().to_string();
        let project = format!("[project.scripts]\nx = '{outside}:main'\ny = 'b:main'\nz = '../other/a:main'");
        write(&at("own/pyproject.toml"), project.as_bytes()).unwrap();
        assert_eq!(script(&at("own"), "y").unwrap(), at("own/b.py"));
        for name in ["x", "z", "none"] {
            assert!(script(&at("own"), name).unwrap_err().to_string().contains("names no script"), "{name}");
        }
        std::fs::write(at("own/pyproject.toml"), "[").unwrap();
        assert!(format!("{:#}", script(&at("own"), "y").unwrap_err()).contains("pyproject.toml"));
    }
}
