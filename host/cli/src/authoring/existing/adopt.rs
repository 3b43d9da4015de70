//! `wharf new --from`: a project of one's own from an existing server, which is copied into it, or from a published package.

#![expect(clippy::disallowed_methods, reason = "copies the server that the person names")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use serde_json::Value;

use super::{
    inputs::Inputs,
    line::Package,
    project::{self, Recipe},
    server::{Language, Server, id_of_package},
};
use crate::authoring::{
    project::Project,
    template::{GITIGNORE, check_free, check_name, write},
};
use wharf_base::{below::Below, failed::OrFailed, text};

/// The folder of a project into which the server is copied.
const COPY: &str = "server";
/// The largest file that is copied.
const MAX_FILE_BYTES: u64 = 32 << 20;

/// What a project is made from.
#[derive(Debug)]
pub enum Origin {
    /// A server in a file or a folder.
    Files(Box<Server>),
    Package(Package),
}

impl Origin {
    /// Reads `npm:NAME`, `pypi:NAME`, or a path.
    pub fn parse(from: &str) -> Result<Self> {
        if let Some(package) = Package::parse(from) {
            return package.map(Self::Package);
        }
        let path = Path::new(from);
        if path.is_dir() {
            let entry = entry(path).with_context(|| {
                format!("{}: which file is the server? Name it in place of the folder", text::path(path))
            })?;
            return Ok(Self::Files(Box::new(Server { root: fs::canonicalize(path)?, ..Server::at(&entry)? })));
        }
        Ok(Self::Files(Box::new(Server::at(path)?)))
    }

    /// Returns the name of a plugin that is made from this.
    pub fn name(&self) -> String {
        match self {
            Self::Files(server) => server.id.clone(),
            Self::Package(package) => id_of_package(&package.name),
        }
    }
}

/// Makes a project in a new folder.
pub fn make(origin: &Origin, folder: &Path, name: &str) -> Result<Project> {
    check_name(name)?;
    check_free(folder)?;
    let (language, server, watch) = match origin {
        Origin::Package(package) => (package.language, package.to_string(), vec!["package.json".to_owned()]),
        Origin::Files(server) => {
            let inputs = Inputs::of(server)?;
            let read = |file: &PathBuf| Ok((folder.join(COPY).join(file), inside(&server.root, file)?));
            let copies = inputs.files.iter().map(read).collect::<Result<Vec<_>>>()?;
            copies.iter().try_for_each(|(path, contents)| write(path, contents))?;
            let entry = server.entry.strip_prefix(&server.root).unwrap_or(&server.entry);
            let entry = Path::new(COPY).join(entry);
            let entry = entry.to_str().with_context(|| format!("{}: the path is not UTF-8", text::path(&entry)))?;
            (server.language, entry.to_owned(), vec![format!("{COPY}/**")])
        }
    };
    write(&folder.join(".gitignore"), GITIGNORE.as_bytes())?;
    project::make(folder, &Recipe { id: name, language, server: &server, with: &[], watch: &watch })
}

/// Reads a file of a server. A link may lead to another file of the server, and not out of its folder: a stranger's link could lead to a
/// person's key, which would then be in the plugin.
fn inside(root: &Path, file: &Path) -> Result<Vec<u8>> {
    let path = root.join(file);
    let real = fs::canonicalize(&path).with_context(|| text::path(&path)).or_failed()?;
    let within = real.strip_prefix(root).ok().with_context(|| {
        let (path, real, root) = (text::path(&path), text::path(&real), text::path(root));
        format!("{path} is a link to {real}, which is not below {root}; put the file in its place if it belongs to the server")
    })?;
    let contents = Below::open(root)?.bytes(within, MAX_FILE_BYTES)?;
    contents.with_context(|| format!("{}: it is gone", text::path(&path))).or_failed()
}

/// Finds the file of a script that the `pyproject.toml` of a folder names.
pub fn script(folder: &Path, name: &str) -> Result<PathBuf> {
    let text = Below::open(folder)?.read(Path::new("pyproject.toml"), MAX_FILE_BYTES)?;
    let project = text.and_then(|text| toml::from_str(&text).ok()).unwrap_or_default();
    let mut files = of_pyproject(&project, Some(name)).into_iter().map(|path| folder.join(path));
    files.find(|file| file.is_file()).with_context(|| {
        let (folder, name) = (text::path(&std::path::absolute(folder).unwrap_or_default()), text::escaped(name));
        format!(
            "the pyproject.toml of {folder} names no script {name} whose file is there; name the server's file, or, for a package, \
             type wharf run uvx {name}"
        )
    })
}

/// Finds the file of the server in a folder: where its manifest says, else where most servers have it.
fn entry(folder: &Path) -> Option<PathBuf> {
    let below = Below::open(folder).ok()?;
    let manifest = |name: &str| below.read(Path::new(name), MAX_FILE_BYTES).ok().flatten();
    let node = manifest("package.json").and_then(|text| serde_json::from_str(&text).ok());
    let python = manifest("pyproject.toml").and_then(|text| toml::from_str(&text).ok());
    let named = node.iter().flat_map(of_package_json);
    let named = named.chain(python.iter().flat_map(|project| of_pyproject(project, None)));
    let usual = ["server", "main", "index", "src/server", "src/main", "src/index"];
    let usual = usual.iter().flat_map(|name| ["py", "ts", "js", "mjs"].map(|extension| format!("{name}.{extension}")));
    let real = fs::canonicalize(folder).ok()?;
    // A manifest may name a file elsewhere, which the person was not given.
    let is_own = |path: &PathBuf| path.is_file() && fs::canonicalize(path).is_ok_and(|path| path.starts_with(&real));
    named.chain(usual).map(|path| folder.join(path)).find(|path| is_own(path) && Language::of(path).is_some())
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
            let found = entry(place.path()).map(|path| path.strip_prefix(place.path()).unwrap().to_owned());
            assert_eq!(found.as_deref(), expected.map(Path::new), "{files:?}");
        }
    }

    #[test]
    fn a_package_has_a_plain_name() {
        for (from, name) in [
            ("npm:@modelcontextprotocol/server-memory", "server-memory"),
            ("npm:@notes/mcp-server@1", "notes-mcp-server"),
            ("npm:@a/b@1.2.3", "b"),
            ("npm:left@1", "left"),
            ("pypi:mcp-server-time[x]==1.0#y", "mcp-server-time"),
        ] {
            assert_eq!(Origin::parse(from).unwrap().name(), name);
        }
        for from in ["npm:", "npm:a b", "pypi:-e", "npm:$(x)"] {
            Origin::parse(from).unwrap_err();
        }
    }

    #[test]
    fn no_link_of_a_server_leads_out_of_its_folder() {
        use std::os::unix::fs::symlink;
        let place = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(place.path()).unwrap().join("clone");
        write(&root.join("docs/data.json"), b"{}").unwrap();
        write(&root.with_file_name("private.json"), b"precious").unwrap();
        symlink("docs/data.json", root.join("data.json")).unwrap();
        symlink("../private.json", root.join("notes.json")).unwrap();
        assert_eq!(inside(&root, Path::new("data.json")).unwrap(), b"{}");
        let error = inside(&root, Path::new("notes.json")).unwrap_err().to_string();
        assert!(error.contains("which is not below") && !error.contains("precious"), "{error}");
    }
}
