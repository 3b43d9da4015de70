//! What a server is built from: its source files and the list of its packages. Both are compared by content, so that neither a copy nor a
//! checkout with other times builds it again.

#![expect(clippy::disallowed_methods, reason = "reads the source of the server that the person names")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use crate::authoring::sources::GENERATED_FOLDERS;
use wharf_base::text;
use wharf_config::config::existing::{ExistingServer, Language, language::has_extension};

/// The files that can go into a component, by their extensions.
const OF_PYTHON: [&str; 7] = ["py", "json", "toml", "txt", "lock", "yaml", "md"];
const OF_NODE: [&str; 9] = ["ts", "mts", "cts", "tsx", "js", "mjs", "cjs", "jsx", "json"];

/// The maximum number of files, and of their bytes. Of a larger folder, only the files next to the server count.
const MAX_FILES: usize = 2000;
const MAX_BYTES: u64 = 32 << 20;

/// The inputs of a build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inputs {
    /// The files, relative to the server's root.
    pub files: BTreeSet<PathBuf>,
    /// The digest of what decides which packages are installed: the manifests and the imports.
    pub packages: String,
    /// The digest of all files.
    pub all: String,
}

impl Inputs {
    /// Reads the inputs of a server.
    pub fn of(server: &ExistingServer) -> Result<Self> {
        // What is installed of a package is what its folder is named after, until that is removed.
        let files = if server.package.is_some() { BTreeSet::new() } else { files(server) };
        let (mut packages, mut all) = (Sha256::new(), Sha256::new());
        for file in &files {
            let path = server.root.join(file);
            let contents = fs::read(&path).with_context(|| format!("{}: cannot be read", text::path(&path)))?;
            let name = file.as_os_str().as_encoded_bytes();
            add(&mut all, &[name, &contents]);
            if server.language.manifests().iter().any(|manifest| file == Path::new(manifest)) {
                add(&mut packages, &[name, &contents]);
            } else if Language::of(file).is_some() {
                add(&mut packages, &imports(&String::from_utf8_lossy(&contents)));
            }
        }
        Ok(Self { files, packages: text::hex(&packages.finalize()), all: text::hex(&all.finalize()) })
    }

    /// Returns the absolute paths of the folders that contain inputs.
    pub fn folders(&self, server: &ExistingServer) -> BTreeSet<PathBuf> {
        let folders = self.files.iter().filter_map(|file| Some(server.root.join(file.parent()?)));
        folders.chain(std::iter::once(server.root.clone())).collect()
    }
}

/// Adds texts to a digest, each with its length, so that other texts never give the same bytes.
fn add<T: AsRef<[u8]>>(digest: &mut Sha256, texts: &[T]) {
    for text in texts {
        digest.update((text.as_ref().len() as u64).to_le_bytes());
        digest.update(text);
    }
}

/// Returns the lines of a source file that can name a package: imports, and the dependencies that a script lists in comments (PEP 723).
fn imports(source: &str) -> Vec<&str> {
    let mut in_script = false;
    let names = |line: &&str| {
        let line = line.trim_start();
        if line.starts_with("# ///") {
            in_script = !in_script;
        }
        in_script
            || line.starts_with("import ")
            || line.contains("from ")
            || line.contains("import(")
            || line.contains("require(")
    };
    source.lines().filter(names).collect()
}

fn files(server: &ExistingServer) -> BTreeSet<PathBuf> {
    let home = std::env::home_dir();
    let is_shared = server.root.parent().is_none() || home.as_deref() == Some(&server.root);
    let whole = if is_shared { None } else { below(server, usize::MAX) };
    let mut files = whole.or_else(|| below(server, 0)).unwrap_or_default();
    if let Ok(entry) = server.entry.strip_prefix(&server.root) {
        files.insert(entry.to_owned());
    }
    files
}

/// Returns the source files in a server's root and in the folders below it, down to `depth`. None: there are too many.
fn below(server: &ExistingServer, depth: usize) -> Option<BTreeSet<PathBuf>> {
    let (mut found, mut bytes) = (BTreeSet::new(), 0);
    let mut folders = vec![(server.root.clone(), 0)];
    while let Some((folder, at)) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let Ok(metadata) = fs::metadata(&path) else { continue };
            if name.as_encoded_bytes().starts_with(b".") {
                continue;
            }
            if metadata.is_dir() {
                // A link to a folder may lead back here.
                let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
                if at < depth && !is_link && !is_foreign(&path, server) {
                    folders.push((path, at + 1));
                }
            } else if metadata.is_file()
                && is_source(&path, server.language)
                && let Ok(file) = path.strip_prefix(&server.root)
            {
                bytes += metadata.len();
                found.insert(file.to_owned());
                if found.len() > MAX_FILES || bytes > MAX_BYTES {
                    return None;
                }
            }
        }
    }
    Some(found)
}

/// Whether a folder holds what tools put there: installed packages, or the output of a build unless the server itself is in it.
fn is_foreign(folder: &Path, server: &ExistingServer) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let is_generated = GENERATED_FOLDERS.contains(&&*name) && !server.entry.starts_with(folder);
    is_generated || folder.join("pyvenv.cfg").is_file()
}

fn is_source(file: &Path, language: Language) -> bool {
    let extensions: &[&str] = match language {
        Language::Python => &OF_PYTHON,
        Language::Node => &OF_NODE,
    };
    has_extension(file, extensions)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(root: &Path, entry: &str) -> ExistingServer {
        let entry = root.join(entry);
        let language = Language::of(&entry).unwrap();
        ExistingServer {
            language,
            package: None,
            entry,
            root: root.to_owned(),
            id: "x".into(),
            folder: "/cache/x".into(),
            with: Vec::new(),
            args: Vec::new(),
        }
    }

    #[test]
    fn a_change_of_content_counts_and_a_change_of_packages_is_told_apart() {
        let place = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = place.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("server.py", "import httpx\nx = 1\n");
        let server = server(place.path(), "server.py");
        let mut before = Inputs::of(&server).unwrap();
        for (name, text, changes, installs) in [
            ("server.py", "import httpx\nx = 1\n", false, false),
            ("server.py", "import httpx\nx = 2\n", true, false),
            ("server.py", "import httpx, bs4\nx = 2\n", true, true),
            ("server.py", "# /// script\n# dependencies = ['a']\n# ///\nimport httpx, bs4\nx = 2\n", true, true),
            ("requirements.txt", "httpx==1\n", true, true),
            ("sub/other.py", "y = 1\n", true, false),
            ("picture.png", "p", false, false),
            (".git/x.py", "import z", false, false),
            ("node_modules/x/x.py", "import z", false, false),
            ("venv/pyvenv.cfg", "", false, false),
            ("venv/lib/x.py", "import z", false, false),
        ] {
            write(name, text);
            let now = Inputs::of(&server).unwrap();
            assert_eq!((now.all != before.all, now.packages != before.packages), (changes, installs), "{name}: {text}");
            before = now;
        }
        assert_eq!(before.folders(&server), [place.path().to_owned(), place.path().join("sub")].into());
    }

    #[test]
    fn a_server_in_the_output_of_a_build_has_its_neighbours() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("build")).unwrap();
        for name in ["build/index.js", "build/tools.js", "package.json"] {
            fs::write(place.path().join(name), "{}").unwrap();
        }
        let server = server(place.path(), "build/index.js");
        assert_eq!(Inputs::of(&server).unwrap().files.len(), 3);
    }
}
