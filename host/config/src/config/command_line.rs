//! Settings from the command line.

use std::{
    io::{ErrorKind, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Result, bail, ensure};

use super::{
    existing::{ExistingServer, Language},
    listen::ListenAddress,
    raw::Instances,
    reference::SourceReference,
};
use wharf_base::{explain, text};
use wharf_egress::rule::RawRule;
use wharf_policy::access::capability::Access;

/// What the command line adds to the config file.
#[derive(Debug, Clone, Default)]
pub struct CommandLine {
    pub plugins: Vec<Named>,
    /// The prefix of the names of these plugins' tools and prompts. None: the plugin's id; for an existing server, and for
    /// a built-in plugin that is the only one, no prefix.
    pub prefix: Option<String>,
    /// Folders that are opened in addition to those of the client.
    pub roots: Vec<PathBuf>,
    /// Folders within which those of the client may lie, in addition to those that the config names.
    pub within: Vec<PathBuf>,
    /// Folders that are opened instead of those of the client.
    pub folders: Vec<PathBuf>,
    /// The access to roots that the plugins named on the command line are granted.
    pub allow_roots: Option<Access>,
    /// The rules for the requests of these plugins.
    pub allow_http: Vec<RawRule>,
    /// The variables that these plugins see.
    pub allow_env: Vec<String>,
    /// What these plugins may ask the client.
    pub allow_ask: Vec<String>,
    /// The instances that calls of these plugins run in. None: as each plugin says.
    pub instances: Option<Instances>,
    pub listen: Option<ListenAddress>,
    pub typed: Option<Typed>,
}

/// The command line as a person typed it, to which options can be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Typed {
    /// The program and its command, such as `wharf run`.
    pub command: String,
    /// What follows.
    pub rest: String,
}

impl Typed {
    /// Returns the same command line with more options.
    pub fn with(&self, options: &str) -> String {
        format!("{} {options} {}", self.command, self.rest).trim_end().to_owned()
    }
}

/// A plugin that the command line names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    File(PathBuf),
    Server(Arc<ExistingServer>),
    BuiltIn(String),
}

impl Named {
    pub fn server(&self) -> Option<&Arc<ExistingServer>> {
        match self {
            Self::Server(server) => Some(server),
            Self::File(_) | Self::BuiltIn(_) => None,
        }
    }

    /// Returns the id of the plugin, which may not be a valid one.
    pub fn id(&self) -> &str {
        match self {
            Self::File(path) => path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default(),
            Self::Server(server) => &server.id,
            Self::BuiltIn(name) => name,
        }
    }
}

/// A positional argument of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Positional {
    Plugin(PathBuf),
    Folder(PathBuf),
    /// The source of an existing MCP server.
    Server(PathBuf),
    /// An existing MCP server in a package: `npm:NAME` or `pypi:NAME`.
    Published(String),
}

impl Positional {
    /// Decides what a path is: an existing folder, the source of an existing server, or else the file of a plugin, which need not exist yet.
    pub fn tell(path: &Path) -> Result<Self> {
        if let Some(text) = path.to_str().filter(|text| SourceReference::is_server(text)) {
            return Ok(Self::Published(text.to_owned()));
        }
        if let Some(says) = path.to_str().and_then(elsewhere) {
            bail!(says);
        }
        if let Some(source) = path.to_str().filter(|text| SourceReference::is_meant(text)) {
            let source = text::escaped(source);
            bail!(
                "{source} is where a plugin is published: `wharf add {source}` fetches it, and adds it to the config"
            );
        }
        if path.is_dir() {
            return Ok(Self::Folder(path.to_owned()));
        }
        if path.is_file() && Language::of(path).is_some() {
            return Ok(Self::Server(path.to_owned()));
        }
        let is_named_as_plugin = path.extension().is_some_and(|extension| extension == "wasm");
        ensure!(is_named_as_plugin || path.exists(), Self::missing(path));
        ensure!(
            is_named_as_plugin || is_wasm(path),
            "{} is neither a folder nor a WebAssembly component nor an MCP server in Python, TypeScript or JavaScript; to open a \
             file to plugins, name the folder that contains it",
            text::path(path)
        );
        Ok(Self::Plugin(path.to_owned()))
    }

    /// Says that a path does not exist, and what it may have been meant to be.
    pub fn missing(path: &Path) -> String {
        let named = text::path(path);
        let says = format!("{named} does not exist: there is no such folder, and no such plugin");
        match similar(path) {
            Some(similar) => format!("{says}; did you mean {}?", text::path(&similar)),
            None if is_package(&named) => {
                format!(
                    "{says}; a published MCP server is `npx -y {named}` if it is on npm, and `uvx {named}` if it is on PyPI"
                )
            }
            None => says,
        }
    }
}

/// Says what to do with what stands for a server and is nothing that wharf runs: a repository, or the address of a server elsewhere.
fn elsewhere(text: &str) -> Option<String> {
    let named = text::escaped(text);
    let at = text.strip_prefix("git+").unwrap_or(text);
    let short = [("github:", "https://github.com/"), ("gitlab:", "https://gitlab.com/")];
    let short = short.iter().find_map(|(start, host)| Some(format!("{host}{}", at.strip_prefix(start)?)));
    let is_web = ["https://", "http://"].iter().any(|scheme| at.starts_with(scheme));
    let is_repository = at != text
        || short.is_some()
        || ["git@", "ssh://", "git://"].iter().any(|start| at.starts_with(start))
        || is_web && at.ends_with(".git");
    if is_repository {
        // pip writes what it takes of a repository after its address.
        let at = short.as_deref().unwrap_or(at).split('#').next().unwrap_or_default();
        let end = at.rfind('/').and_then(|last| Some(last + at.get(last..)?.find('@')?));
        let at = end.and_then(|end| at.get(..end)).unwrap_or(at);
        let folder =
            at.rsplit(['/', ':']).next().map(|last| last.strip_suffix(".git").unwrap_or(last)).unwrap_or_default();
        let (clone, file) = (text::shell(["git", "clone", at]), text::shell([format!("{folder}/server.py").as_str()]));
        return Some(format!(
            "{named} is a repository, and wharf fetches none; type {}, and then name the server's file, such as: wharf run {}",
            text::escaped(&clone),
            text::escaped(&file)
        ));
    }
    (is_web && !at.ends_with(".wasm")).then(|| {
        format!(
            "{named} is the address of a server that runs elsewhere, and wharf runs only what is on this machine: enter it in your MCP \
             client itself; if a plugin is published there, `wharf add {named}` fetches it"
        )
    })
}

/// Whether a name may be that of a package, and not that of a file.
fn is_package(name: &str) -> bool {
    let (scope, own) = name.strip_prefix('@').and_then(|name| name.split_once('/')).unwrap_or(("x", name));
    let fits = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    fits(scope) && fits(own) && name.contains(['-', '@'])
}

/// Returns the folder next to a missing one that has the most similar name. If the parent is missing too, that of the parent.
fn similar(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    let (missing, parent) = path.ancestors().zip(path.ancestors().skip(1)).find(|(_, parent)| parent.is_dir())?;
    let wanted = missing.file_name()?.to_str()?;
    let folders = std::fs::read_dir(parent).ok()?.flatten().filter(|entry| entry.path().is_dir());
    let names: Vec<String> = folders.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    // Short names are similar by chance.
    let known = names
        .iter()
        .map(String::as_str)
        .filter(|name| name.len().min(wanted.len()) > 3 || name.eq_ignore_ascii_case(wanted));
    // Collected by components, so that an empty rest leaves no slash at the end.
    let similar = parent.join(explain::nearest(known, wanted)?);
    let similar: PathBuf = similar.iter().chain(path.strip_prefix(missing).ok()?.iter()).collect();
    similar.is_dir().then_some(similar)
}

/// Whether a file begins as WebAssembly does. A file that cannot be read is left to the loader, which says why.
fn is_wasm(path: &Path) -> bool {
    let mut start = [0; 4];
    match std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut start)) {
        Ok(()) => start == *b"\0asm",
        Err(error) => error.kind() != ErrorKind::UnexpectedEof,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_there_and_plugins_may_come() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("odd.wasm")).unwrap();
        std::fs::write(at("component"), b"\0asm\x0d\0\x01\0").unwrap();
        std::fs::write(at("notes.txt"), "no component").unwrap();
        for server in ["server.py", "index.ts", "index.mjs"] {
            std::fs::write(at(server), "").unwrap();
            assert_eq!(Positional::tell(&at(server)).unwrap(), Positional::Server(at(server)));
        }
        let error = Positional::tell(&at("gone.py")).unwrap_err().to_string();
        assert!(error.contains("does not exist"), "{error}");
        assert_eq!(Positional::tell(folder.path()).unwrap(), Positional::Folder(folder.path().to_owned()));
        assert_eq!(Positional::tell(&at("odd.wasm")).unwrap(), Positional::Folder(at("odd.wasm")));
        for plugin in ["component", "later.wasm"] {
            assert_eq!(Positional::tell(&at(plugin)).unwrap(), Positional::Plugin(at(plugin)));
        }
        let error = Positional::tell(&at("notes.txt")).unwrap_err().to_string();
        assert!(error.contains("neither a folder nor a WebAssembly component"), "{error}");
        std::fs::create_dir_all(at("Documents/letters")).unwrap();
        for (typo, meant) in [
            ("typo", None),
            ("Docuemnts", Some("Documents")),
            ("documents", Some("Documents")),
            ("Docments/letters", Some("Documents/letters")),
            ("Docments/numbers", None),
            ("Documents/leters", Some("Documents/letters")),
        ] {
            let error = Positional::tell(&at(typo)).unwrap_err().to_string();
            let says = format!("{} does not exist: there is no such folder", at(typo).display());
            let asks = meant.map(|meant| format!("; did you mean {}?", at(meant).display()));
            assert!(error.starts_with(&says), "{error}");
            assert_eq!(error.split_once("; did").map(|(_, rest)| format!("; did{rest}")), asks, "{error}");
        }
        for (name, expected) in [
            ("mcp-server-git", "`uvx mcp-server-git` if it is on PyPI"),
            ("@scope/server", "`npx -y @scope/server` if it is on npm"),
            ("oci://r.example/x:1", "`wharf add oci://r.example/x:1`"),
            ("https://x.example/x.wasm", "`wharf add https://x.example/x.wasm`"),
            ("https://x.example/mcp", "is the address of a server that runs elsewhere"),
            ("git+https://x.example/own/notes.git@v1#egg=x", "type git clone https://x.example/own/notes.git, and"),
            ("https://x.example/own/notes.git", "such as: wharf run notes/server.py"),
            ("github:own/notes", "type git clone https://github.com/own/notes, and"),
            ("git@x.example:own/notes", "is a repository, and wharf fetches none"),
        ] {
            let error = Positional::tell(Path::new(name)).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        for name in ["npm:@scope/server", "pypi:a==1"] {
            assert_eq!(Positional::tell(Path::new(name)).unwrap(), Positional::Published(name.into()));
        }
    }
}
