//! `wharf new --from`: a project of one's own from an existing server, which is copied into it, or from a published package.

#![expect(clippy::disallowed_methods, reason = "copies the server that the person names")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use super::{
    entry,
    inputs::Inputs,
    project::{self, Recipe},
};
use crate::authoring::{
    project::Project,
    template::{GITIGNORE, check_free, check_name, write},
};
use wharf_base::{below::Below, failed::OrFailed, text};
use wharf_config::config::existing::{ExistingServer, Package, server::id_of_package};

/// The folder of a project into which the server is copied.
const COPY: &str = "server";
/// The largest file that is copied.
const MAX_FILE_BYTES: u64 = 32 << 20;

/// What a project is made from.
#[derive(Debug)]
pub enum Origin {
    /// A server in a file or a folder.
    Files(Box<ExistingServer>),
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
            let entry = entry::find(path).with_context(|| {
                format!("{}: which file is the server? Name it in place of the folder", text::path(path))
            })?;
            return Ok(Self::Files(Box::new(ExistingServer {
                root: fs::canonicalize(path)?,
                ..ExistingServer::at(&entry)?
            })));
        }
        Ok(Self::Files(Box::new(ExistingServer::at(path)?)))
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
    project::make(folder, &Recipe { id: name, language, server: &server, with: &[], watch: &watch, tools: None })
}

/// Reads a file of a server. A link may lead to another file of the server, and not out of its folder: a stranger's link could lead to a
/// person's key, which would then be in the plugin.
pub(super) fn inside(root: &Path, file: &Path) -> Result<Vec<u8>> {
    let path = root.join(file);
    let real = fs::canonicalize(&path).with_context(|| text::path(&path)).or_failed()?;
    let within = real.strip_prefix(root).ok().with_context(|| {
        let (path, real, root) = (text::path(&path), text::path(&real), text::path(root));
        format!("{path} is a link to {real}, which is not below {root}; put the file in its place if it belongs to the server")
    })?;
    let contents = Below::open(root)?.bytes(within, MAX_FILE_BYTES)?;
    contents.with_context(|| format!("{}: it is gone", text::path(&path))).or_failed()
}

#[cfg(test)]
mod tests {
    use super::*;

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
