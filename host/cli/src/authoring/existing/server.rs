//! An existing MCP server: its file, its language, and the plugin that is made from it.

#![expect(clippy::disallowed_methods, reason = "looks for the server that the person names")]

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

use wharf_base::text;
use wharf_config::config::{self, existing, has_extension};

/// The languages whose servers become plugins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    Python,
    /// TypeScript and JavaScript.
    Node,
}

impl Language {
    /// Returns the language of a file, by its extension.
    pub fn of(file: &Path) -> Option<Self> {
        match () {
            () if has_extension(file, &config::PYTHON) => Some(Self::Python),
            () if has_extension(file, &config::NODE) => Some(Self::Node),
            () => None,
        }
    }

    /// Returns the files that list the packages of a server.
    pub fn manifests(self) -> &'static [&'static str] {
        match self {
            Self::Python => &["pyproject.toml", "requirements.txt", "uv.lock"],
            Self::Node => &["package.json", "package-lock.json"],
        }
    }
}

/// A server that a command line names.
#[derive(Debug, Clone)]
pub struct Server {
    pub language: Language,
    /// The canonical path of its file.
    pub entry: PathBuf,
    /// The folder of the file that lists its packages, else the folder of its own file.
    pub root: PathBuf,
    /// The id of the plugin.
    pub id: String,
    /// The plugin's folder in the cache.
    pub folder: PathBuf,
}

/// How many folders above that of the server are searched for the list of its packages.
const MAX_FOLDERS_UP: usize = 4;

impl Server {
    /// Returns the server in a file.
    pub fn at(file: &Path) -> Result<Self> {
        let unread = || format!("{}: cannot be read", text::path(file));
        let entry = std::fs::canonicalize(file).with_context(unread)?;
        ensure!(entry.is_file(), "{}: not a file", text::path(file));
        let language = Language::of(file).with_context(|| {
            format!("{}: an existing server is a file in Python, TypeScript or JavaScript", text::path(file))
        })?;
        let all = existing::folder().with_context(|| {
            let file = text::path(file);
            format!("{file}: there is no home directory in which its plugin could be built; set XDG_CACHE_HOME")
        })?;
        let id = id_of(&entry);
        let key = text::hex(Sha256::digest(entry.as_os_str().as_encoded_bytes()).get(..8).unwrap_or_default());
        Ok(Self { language, root: root_of(&entry, language), folder: all.join(format!("{id}-{key}")), id, entry })
    }

    /// Returns the path of the component that is served.
    pub fn component(&self) -> PathBuf {
        self.folder.join(format!("{}.wasm", self.id))
    }
}

/// Returns the folder that a server belongs to. The home directory and the root of the file system hold more than one project.
fn root_of(entry: &Path, language: Language) -> PathBuf {
    let own = entry.parent().unwrap_or(Path::new("/"));
    let home = std::env::home_dir();
    let is_shared = |folder: &Path| folder.parent().is_none() || home.as_deref() == Some(folder);
    let above = own.ancestors().take(MAX_FOLDERS_UP).take_while(|folder| !is_shared(folder));
    let mut with_manifest = above.filter(|folder| language.manifests().iter().any(|name| folder.join(name).is_file()));
    with_manifest.next().unwrap_or(own).to_owned()
}

/// File names that say nothing about a server; its folder is named after it then.
const GENERAL_NAMES: [&str; 10] =
    ["__init__", "__main__", "app", "cli", "index", "main", "mcp", "mcp_server", "plugin", "server"];
/// The same for folders.
const GENERAL_FOLDERS: [&str; 5] = ["src", "lib", "dist", "build", "server"];

/// Returns the id of the plugin for a server in this file.
pub fn id_of(entry: &Path) -> String {
    let stem = entry.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let folders = entry.ancestors().skip(1).filter_map(|folder| folder.file_name()).map(|name| name.to_string_lossy());
    let mut named = folders.filter(|name| !GENERAL_FOLDERS.contains(&&**name)).map(|name| id_from(&name));
    let own = if GENERAL_NAMES.contains(&stem.as_str()) { None } else { Some(id_from(&stem)) };
    own.into_iter().chain(named.next()).find(|id| config::check_id(id).is_ok()).unwrap_or_else(|| "server".to_owned())
}

/// Turns a name into an id that packages in every language can have.
pub fn id_from(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let words: String = name.chars().map(plain).collect();
    let words: Vec<&str> = words.split('-').filter(|word| !word.is_empty()).collect();
    words.join("-").chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_is_named_after_its_server() {
        for (path, id) in [
            ("/src/weather.py", "weather"),
            ("/home/ada/weather/server.py", "weather"),
            ("/home/ada/Weather_MCP/src/index.ts", "weather-mcp"),
            ("/home/ada/wharf-x/server.py", "server"),
            ("/server.py", "server"),
            ("/a/my server (2).py", "my-server-2"),
        ] {
            assert_eq!(id_of(Path::new(path)), id, "{path}");
        }
    }

    #[test]
    fn a_server_belongs_to_the_folder_of_its_manifest() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        std::fs::create_dir_all(at("p/src/deep")).unwrap();
        std::fs::write(at("p/package.json"), "{}").unwrap();
        assert_eq!(root_of(&at("p/src/deep/index.ts"), Language::Node), at("p"));
        assert_eq!(root_of(&at("p/src/deep/server.py"), Language::Python), at("p/src/deep"));
    }
}
