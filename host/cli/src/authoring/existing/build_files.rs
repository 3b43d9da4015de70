//! What a build of a server may run outside of the sandbox: everything in the folder of its source, and where links in it lead.

#![expect(clippy::disallowed_methods, reason = "reads the source of the server that the person names")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Result, ensure};

use super::inputs::Inputs;
use crate::authoring::repository;
use wharf_base::text;
use wharf_config::config::existing::{ExistingServer, Language, server::is_shared};
use wharf_policy::access::protected::Protected;

/// The most files and folders that are searched for links.
const MAX_ENTRIES: usize = 200_000;

/// Returns what no plugin may change as long as the server exists.
pub fn protected(server: &ExistingServer, inputs: &Inputs) -> Result<Protected> {
    let mut all = server.source();
    if server.package.is_some() {
        return Ok(all);
    }
    // Of a folder that holds more than one project, only the folders with inputs of this server are its own.
    if is_shared(&server.root) {
        all.files(inputs.folders(server).into_iter().map(|folder| folder.join("*")));
        return Ok(all);
    }
    let (mut folders, mut seen) = (vec![server.root.clone()], BTreeSet::from([server.root.clone()]));
    let mut entries = 0;
    if server.language == Language::Node {
        for modules in
            server.root.ancestors().skip(1).map(|above| above.join("node_modules")).filter(|one| one.is_dir())
        {
            packages_above(&modules, &mut all, &mut folders, &mut seen);
        }
    }
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            entries += 1;
            ensure!(
                entries <= MAX_ENTRIES,
                "{}: there are more than {MAX_ENTRIES} files in the folder of this server, too many to find all that its build may run; \
                 move the server to a folder of its own",
                text::path(&server.root)
            );
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_symlink() {
                linked(&entry.path(), &mut all, &mut folders, &mut seen);
            }
        }
    }
    Ok(all)
}

/// Returns what a build of the server reads: its source, and where links in it lead within its repository. The author of the server chose where
/// its links lead, so one that leads elsewhere, such as to a key in the home directory, is not followed.
pub fn readable(server: &ExistingServer, inputs: &Inputs) -> Result<Vec<PathBuf>> {
    let repository = repository::of(&server.root);
    let packages: Vec<PathBuf> = repository::own(&server.root).map(|folder| folder.join("node_modules")).collect();
    let reached = protected(server, inputs)?.trusted;
    // A folder that holds more than this server stands there with all its files. Of these, the inputs are read.
    let files = reached.files.into_iter().filter(|file| !file.ends_with("*"));
    let inputs = inputs.files.iter().map(|file| server.root.join(file));
    let is_own = |path: &PathBuf| {
        let Ok(real) = fs::canonicalize(path) else { return false };
        let own = real.starts_with(repository) || packages.contains(&real);
        if !own {
            tracing::warn!(
                "{} leads to {}, outside of the repository of this server, so its build leaves it out",
                text::path(path),
                text::path(&real)
            );
        }
        own
    };
    Ok(reached.trees.into_iter().chain(files).chain(inputs).filter(is_own).collect())
}

/// Adds the packages of a folder above the server, which Node.js finds from it, and where links to other packages of its repository lead.
fn packages_above(modules: &Path, all: &mut Protected, folders: &mut Vec<PathBuf>, seen: &mut BTreeSet<PathBuf>) {
    all.tree(modules);
    seen.extend(fs::canonicalize(modules));
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries(modules) {
        let is_scope = entry.file_name().as_encoded_bytes().starts_with(b"@");
        let packages = is_scope.then(|| entries(&entry.path())).into_iter().flatten();
        for package in packages.chain([entry]).filter(|one| one.file_type().is_ok_and(|kind| kind.is_symlink())) {
            linked(&package.path(), all, folders, seen);
        }
    }
}

/// Adds where a link leads, unless it leads to what is known already.
fn linked(link: &Path, all: &mut Protected, folders: &mut Vec<PathBuf>, seen: &mut BTreeSet<PathBuf>) {
    let Ok(target) = fs::canonicalize(link) else {
        // What is put there later counts.
        all.file(link);
        return;
    };
    if seen.iter().any(|folder| target.starts_with(folder)) {
        return;
    }
    // A link to a folder above would make all that is in there part of the server.
    if target.is_dir() && !is_shared(&target) && !seen.iter().any(|folder| folder.starts_with(&target)) {
        all.tree(link);
        folders.push(target.clone());
        seen.insert(target);
    } else {
        all.file(link);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_build_runs_what_links_lead_to() {
        let place = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(place.path()).unwrap();
        for folder in ["own/lib", "parts/deep", "further"] {
            fs::create_dir_all(base.join(folder)).unwrap();
        }
        for file in ["own/server.py", "common.py", "parts/a.py"] {
            fs::write(base.join(file), "").unwrap();
        }
        let link = |to: &str, at: &str| symlink(to, base.join(at)).unwrap();
        link("../common.py", "own/common.py");
        link("../../parts", "own/lib/parts");
        link("../../further", "parts/deep/further");
        link("..", "own/up");
        link("lib", "own/inside");
        link("../not/there", "own/gone");
        let server = ExistingServer {
            language: Language::Python,
            package: None,
            with: Vec::new(),
            args: Vec::new(),
            entry: base.join("own/server.py"),
            root: base.join("own"),
            id: "x".into(),
            folder: "/cache/x".into(),
        };
        let all = protected(&server, &Inputs::of(&server).unwrap()).unwrap().sorted();
        let paths = |names: &[&str]| names.iter().map(|name| base.join(name)).collect::<Vec<_>>();
        assert_eq!(all.trusted.trees, paths(&["own", "own/lib/parts", "parts/deep/further"]));
        assert_eq!(all.trusted.files, paths(&["own/common.py", "own/gone", "own/server.py", "own/up"]));
        let read = || readable(&server, &Inputs::of(&server).unwrap()).unwrap();
        assert_eq!(read(), paths(&["own", "own/server.py", "own/server.py"]), "no link leads to more");
        fs::create_dir(base.join(".git")).unwrap();
        let (within, linked) = (read(), paths(&["own/common.py", "own/lib/parts"]));
        assert!(linked.iter().all(|path| within.contains(path)), "{within:?}");
    }

    #[test]
    fn a_build_finds_packages_above_its_server() {
        let place = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(place.path()).unwrap();
        for folder in ["node_modules/zod", "node_modules/@own", "packages/server", "packages/shared"] {
            fs::create_dir_all(base.join(folder)).unwrap();
        }
        fs::write(base.join("packages/server/index.ts"), "").unwrap();
        symlink("../../packages/shared", base.join("node_modules/@own/shared")).unwrap();
        let server = ExistingServer {
            language: Language::Node,
            package: None,
            with: Vec::new(),
            args: Vec::new(),
            entry: base.join("packages/server/index.ts"),
            root: base.join("packages/server"),
            id: "x".into(),
            folder: "/cache/x".into(),
        };
        let trees = protected(&server, &Inputs::of(&server).unwrap()).unwrap().sorted().trusted.trees;
        let paths = ["node_modules", "node_modules/@own/shared", "packages/server"].map(|name| base.join(name));
        assert!(paths.iter().all(|path| trees.contains(path)), "{trees:?}");
    }
}
