//! An existing MCP server: its file, its language, and the plugin that is made from it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::{folders, language::Language, package::Package};
use crate::config::bounds::check_id;
use wharf_base::text;
use wharf_policy::access::protected::Protected;

/// A server that a command line or a config names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ExistingServer {
    pub language: Language,
    /// The package that it is published in. Then it has no source of its own here, and the next two are the plugin's folder.
    pub package: Option<Package>,
    /// The canonical path of its file.
    pub entry: PathBuf,
    /// The folder of the file that lists its packages, else the folder of its own file.
    pub root: PathBuf,
    /// The id of the plugin.
    pub id: String,
    /// The plugin's folder in the cache.
    pub folder: PathBuf,
    /// The packages that are installed in addition.
    pub with: Vec<String>,
    /// The arguments of the server, which are part of what is built: they may decide what it offers.
    pub args: Vec<String>,
}

/// How many folders above that of the server are searched for the list of its packages.
const MAX_FOLDERS_UP: usize = 4;

impl ExistingServer {
    /// Returns the server in a file.
    pub fn at(file: &Path) -> Result<Self> {
        let unread = || format!("{}: cannot be read", text::path(file));
        let entry = std::fs::canonicalize(file).with_context(unread)?;
        ensure!(entry.is_file(), "{}: not a file", text::path(file));
        Self::in_file(entry)
    }

    /// Returns the server in a file that need not exist. Until it does, its build fails.
    pub fn configured(file: PathBuf) -> Result<Self> {
        Self::in_file(std::fs::canonicalize(&file).unwrap_or(file))
    }

    fn in_file(entry: PathBuf) -> Result<Self> {
        let language = Language::of(&entry).with_context(|| {
            format!("{}: an existing server is a file in Python, TypeScript or JavaScript", text::path(&entry))
        })?;
        let id = id_of(&entry);
        let folder = folder(&id, entry.as_os_str().as_encoded_bytes())?;
        let root = root_of(&entry, language);
        Ok(Self { language, package: None, root, folder, id, entry, with: Vec::new(), args: Vec::new() })
    }

    /// Returns the server in a published package. Each version that is asked for has a folder of its own; without one, the folder keeps the
    /// version that its lock has.
    pub fn published(package: Package) -> Result<Self> {
        let id = Some(id_of_package(&package.name)).filter(|id| check_id(id).is_ok());
        let id = id.unwrap_or_else(|| NAMELESS.to_owned());
        let folder = folder(&id, package.to_string().as_bytes())?;
        let (language, entry, root) = (package.language, folder.clone(), folder.clone());
        Ok(Self { language, package: Some(package), entry, root, id, folder, with: Vec::new(), args: Vec::new() })
    }

    /// Returns the server as the commands of its build name it.
    pub fn named(&self) -> String {
        match &self.package {
            Some(package) => package.to_string(),
            None => text::path(&self.entry),
        }
    }

    /// Returns what no plugin may change as long as the server exists, if it is not a package: its file, and all that is in its folder.
    pub fn source(&self) -> Protected {
        let mut all = Protected::default();
        if self.package.is_some() {
            return all;
        }
        all.file(&self.entry);
        // The home directory holds more than this server.
        if is_shared(&self.root) {
            all.file(self.root.join("*"))
        } else {
            all.tree(&self.root)
        }
        all
    }

    /// Returns the path of the component that is served.
    pub fn component(&self) -> PathBuf {
        let file = format!("{}.wasm", self.id);
        if self.args.is_empty() {
            return self.folder.join(file);
        }
        // No argument of a program contains a zero.
        let all = text::short_digest(self.args.join("\0"));
        self.folder.join(format!("{VARIANT}{all}")).join(file)
    }
}

/// How the name of a folder begins that has the component for other arguments.
pub const VARIANT: &str = "args-";

/// Returns the folder of a server in the cache.
pub fn folder(id: &str, key: &[u8]) -> Result<PathBuf> {
    let all = folders::folder().with_context(|| {
        format!("{id}: there is no home directory in which its plugin could be built; set XDG_CACHE_HOME")
    })?;
    Ok(all.join(format!("{id}-{}", text::short_digest(key))))
}

/// Whether a folder holds more than one project: the home directory, and those above it.
pub fn is_shared(folder: &Path) -> bool {
    folder.parent().is_none() || std::env::home_dir().is_some_and(|home| home.starts_with(folder))
}

/// Returns the folder that a server belongs to. The home directory and the root of the file system hold more than one project.
fn root_of(entry: &Path, language: Language) -> PathBuf {
    let own = entry.parent().unwrap_or(Path::new("/"));
    let above = own.ancestors().take(MAX_FOLDERS_UP).take_while(|folder| !is_shared(folder));
    let mut with_manifest = above.filter(|folder| language.manifests().iter().any(|name| folder.join(name).is_file()));
    with_manifest.next().unwrap_or(own).to_owned()
}

/// File names that say nothing about a server; its folder is named after it then.
const GENERAL_NAMES: [&str; 10] =
    ["__init__", "__main__", "app", "cli", "index", "main", "mcp", "mcp_server", "plugin", "server"];
/// The same for folders.
const GENERAL_FOLDERS: [&str; 5] = ["src", "lib", "dist", "build", "server"];

/// The id of a plugin whose server has no name that an id can be made of.
const NAMELESS: &str = "server";

/// Returns the id of the plugin for a server in this file.
fn id_of(entry: &Path) -> String {
    let stem = entry.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let folders = entry.ancestors().skip(1).filter_map(|folder| folder.file_name()).map(|name| name.to_string_lossy());
    let mut named = folders.filter(|name| !GENERAL_FOLDERS.contains(&&**name)).map(|name| id_from(&name));
    let own = if GENERAL_NAMES.contains(&stem.as_str()) { None } else { Some(id_from(&stem)) };
    own.into_iter().chain(named.next()).find(|id| check_id(id).is_ok()).unwrap_or_else(|| NAMELESS.to_owned())
}

/// Returns the id of the plugin for a package: its name without the scope, since clients put the id before the names of tools, of which they take
/// 64 characters.
pub fn id_of_package(name: &str) -> String {
    let name = name.split('[').next().unwrap_or(name);
    let own = name.rsplit('/').next().filter(|own| !GENERAL_NAMES.contains(&own.replace('-', "_").as_str()));
    id_from(own.unwrap_or(name))
}

/// Turns a name into an id that packages in every language can have.
fn id_from(name: &str) -> String {
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
