//! Decides the access that each directory of a call finally gets. This module opens no files.
//!
//! If two rules conflict, the lesser access wins:
//! - Of two directories where one contains the other, both get the lesser access, because a read-only directory inside a writable one could
//!   be written to through the outer one.
//! - A directory through which files that wharf trusts (configs, plugins, their sources, programs, cache, binary) can be changed is read-only.
//! - A directory through which a file with a secret can be read is left out.

use std::path::PathBuf;

use super::{
    capability::Access,
    open::{Now, OpenDirectory},
};
use wharf_base::{leading::Ways, paths::FileId};

/// The directories of a call with the granted access, before [`intersect`] reduces it.
#[derive(Default)]
pub struct Wanted {
    pub open: Vec<(OpenDirectory, Access)>,
    /// The places to which the paths of read-only directories now resolve, if that has changed.
    pub moved: Vec<PathBuf>,
    pub missing: Vec<PathBuf>,
}

impl Wanted {
    pub fn add(&mut self, now: Now, access: Access) {
        match now {
            Now::There(directory) => self.open.push((directory, access)),
            Now::Elsewhere(path) if access == Access::Read => self.moved.push(path),
            Now::Elsewhere(_) | Now::Gone => {}
        }
    }
}

/// A directory of a scope, with its final access.
#[derive(Debug, Clone)]
pub struct Granted {
    pub directory: OpenDirectory,
    pub access: Access,
}

/// The reason why a directory gets less access than was granted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Lessened {
    /// The directory at `shown` overlaps with the read-only one at `other`.
    Overlap { shown: String, other: String },
    /// The directory at `shown` contains a file with a secret, or a private key.
    LeadsToSecret { shown: String },
    /// wharf's own files could be changed through the directory at `shown`.
    LeadsToTrusted { shown: String },
}

impl std::fmt::Display for Lessened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Overlap { shown, other } => {
                write!(f, "{shown} is read-only, because it overlaps with {other}, which is read-only")
            }
            Self::LeadsToSecret { shown } => {
                write!(
                    f,
                    "{shown} is not open, because a file with a secret of wharf could be read through it; move that file"
                )
            }
            Self::LeadsToTrusted { shown } => {
                write!(
                    f,
                    "{shown} is read-only, because files that a wharf of this user runs or obeys are in it: a config, a plugin or its source, a \
                     program, the cache, or the binary"
                )
            }
        }
    }
}

/// Computes the directories of one call. `wanted` has each directory with its granted access; of two with the same shown path, the first
/// counts. `read_only` has places that must not be written to, because the path of a read-only directory now resolves there. `trusted` and
/// `secret` are the ways to what wharf trusts, and to files with secrets.
pub fn intersect(
    wanted: Vec<(OpenDirectory, Access)>,
    read_only: &[PathBuf],
    (trusted, secret): (&Ways, &Ways),
) -> (Vec<Granted>, Vec<Lessened>) {
    let mut granted: Vec<Granted> = Vec::with_capacity(wanted.len());
    let mut lessened = Vec::new();
    for (directory, access) in wanted {
        if granted.iter().any(|other| other.directory.shown == directory.shown) {
            continue;
        }
        if secret.folders.contains(&directory.id) {
            lessened.push(Lessened::LeadsToSecret { shown: directory.shown });
            continue;
        }
        let leads = access == Access::ReadWrite && trusted.go_through(directory.id, &directory.canonical);
        if leads {
            lessened.push(Lessened::LeadsToTrusted { shown: directory.shown.clone() });
        }
        granted.push(Granted { access: if leads { Access::Read } else { access }, directory });
    }
    // Repeats until nothing changes, since reducing the access of one directory may affect directories that overlap with it.
    loop {
        let moved = read_only.iter().map(|path| (path.clone(), None, path.display().to_string()));
        let read_only: Vec<(PathBuf, Option<FileId>, String)> = granted
            .iter()
            .filter(|one| one.access == Access::Read)
            .map(|one| (one.directory.canonical.clone(), Some(one.directory.id), one.directory.shown.clone()))
            .chain(moved)
            .collect();
        let found = granted.iter_mut().filter(|one| one.access == Access::ReadWrite).find_map(|one| {
            let overlap = read_only.iter().find(|(path, id, _)| {
                *id == Some(one.directory.id)
                    || path.starts_with(&one.directory.canonical)
                    || one.directory.canonical.starts_with(path)
            });
            overlap.map(|(_, _, other)| (one, other))
        });
        let Some((one, other)) = found else { break };
        one.access = Access::Read;
        lessened.push(Lessened::Overlap { shown: one.directory.shown.clone(), other: other.clone() });
    }
    (granted, lessened)
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, fs::File, path::Path, sync::Arc};

    use super::*;

    fn directory(shown: &str, canonical: &str) -> OpenDirectory {
        OpenDirectory {
            shown: shown.into(),
            real: None,
            canonical: canonical.into(),
            id: FileId::at(Path::new("/")).unwrap(),
            handle: Arc::new(File::open("/").unwrap()),
        }
    }

    /// Checks directories given as `(path, access)`; each gets a distinct id from a real directory of its own.
    fn check(wanted: &[(&str, Access)], expected: &[Access]) {
        let base = tempfile::tempdir().unwrap();
        let directories = wanted.iter().enumerate().map(|(at, (path, access))| {
            let real = base.path().join(at.to_string());
            std::fs::create_dir_all(&real).unwrap();
            let mut directory = directory(path, path);
            directory.id = FileId::at(&real).unwrap();
            (directory, *access)
        });
        let (granted, _) = intersect(directories.collect(), &[], (&Ways::default(), &Ways::default()));
        let rights: Vec<Access> = granted.iter().map(|one| one.access).collect();
        assert_eq!(rights, expected, "{wanted:?}");
    }

    #[test]
    fn overlaps_get_the_lesser_right() {
        use Access::{Read, ReadWrite};
        check(&[], &[]);
        check(&[("/a", ReadWrite)], &[ReadWrite]);
        check(&[("/a", ReadWrite), ("/b", Read)], &[ReadWrite, Read]);
        check(&[("/a", ReadWrite), ("/ab", Read)], &[ReadWrite, Read]);
        check(&[("/a", ReadWrite), ("/a/b", Read)], &[Read, Read]);
        check(&[("/a", Read), ("/a/b", ReadWrite)], &[Read, Read]);
        check(&[("/a", ReadWrite), ("/a/b", ReadWrite)], &[ReadWrite, ReadWrite]);
        check(
            &[("/a/b", Read), ("/a", ReadWrite), ("/a/c", ReadWrite), ("/d", ReadWrite)],
            &[Read, Read, Read, ReadWrite],
        );
    }

    #[test]
    fn identity_counts_not_spelling() {
        let wanted = vec![
            (directory("/one", "/one"), Access::ReadWrite),
            (directory("/two", "/two"), Access::Read),
            (directory("/one", "/elsewhere"), Access::ReadWrite),
        ];
        let (granted, lessened) = intersect(wanted, &[], (&Ways::default(), &Ways::default()));
        assert_eq!(granted.len(), 2, "the first of two with one name counts");
        assert!(granted.iter().all(|one| one.access == Access::Read));
        assert_eq!(lessened, [Lessened::Overlap { shown: "/one".into(), other: "/two".into() }]);
    }

    #[test]
    fn what_leads_to_trusted_files_is_read_only() {
        let folders = HashSet::from([FileId::at(Path::new("/")).unwrap()]);
        let trusted = Ways { folders, trees: Vec::new() };
        let (granted, lessened) =
            intersect(vec![(directory("/one", "/one"), Access::ReadWrite)], &[], (&trusted, &Ways::default()));
        assert_eq!(granted[0].access, Access::Read);
        assert_eq!(lessened, [Lessened::LeadsToTrusted { shown: "/one".into() }]);
    }
}
