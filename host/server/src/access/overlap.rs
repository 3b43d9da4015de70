//! Decides the right that each directory of a call has in the end. Opens no files.
//!
//! Where two rules meet, the lesser right wins:
//! - of two directories where one contains the other, both get the lesser right, because a read-only directory inside a
//!   writable one could be written through the outer one;
//! - a directory from which files that wharf trusts (its config, plugins, cache, binary) can be changed is read-only;
//! - a directory from which the file of a secret can be read is not there.

use std::{collections::HashSet, path::PathBuf};

use super::{
    capability::Access,
    open::{Now, OpenDirectory},
};
use crate::base::paths::FileId;

/// The directories that a call is to have, before [`intersect`] lessens rights.
#[derive(Default)]
pub struct Wanted {
    pub open: Vec<(OpenDirectory, Access)>,
    /// The places to which the paths of read-only directories lead now, if not to where they led at first.
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

/// A directory of a scope, with the right it has in the end.
#[derive(Debug, Clone)]
pub struct Granted {
    pub directory: OpenDirectory,
    pub access: Access,
}

/// Why a right is less than what was granted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Lessened {
    /// The directory at `shown` overlaps with the read-only one at `other`.
    Overlap { shown: String, other: String },
    /// In the directory at `shown`, or below, lies a file with a secret, or a private key.
    LeadsToSecret { shown: String },
    /// Through the directory at `shown`, wharf's own files could be changed.
    LeadsToTrusted { shown: String },
}

impl std::fmt::Display for Lessened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Overlap { shown, other } => {
                write!(f, "{shown} is read-only, because it overlaps with {other}, which is")
            }
            Self::LeadsToSecret { shown } => {
                write!(
                    f,
                    "{shown} is not open, because a file with a secret of wharf's can be read there; move that file"
                )
            }
            Self::LeadsToTrusted { shown } => {
                write!(
                    f,
                    "{shown} is read-only, because wharf's config, plugins, cache or binary can be reached from it"
                )
            }
        }
    }
}

/// The directories of one call. `wanted`: each with the right that was granted; of two with the same shown path, the first
/// counts. `read_only`: places that must not be written to, because the path of a read-only directory leads there now.
/// `trusted` and `secret`: the folders that lead to what wharf trusts, and to files of secrets.
pub fn intersect(
    wanted: Vec<(OpenDirectory, Access)>,
    read_only: &[PathBuf],
    (trusted, secret): (&HashSet<FileId>, &HashSet<FileId>),
) -> (Vec<Granted>, Vec<Lessened>) {
    let mut granted: Vec<Granted> = Vec::with_capacity(wanted.len());
    let mut lessened = Vec::new();
    for (directory, access) in wanted {
        if granted.iter().any(|other| other.directory.shown == directory.shown) {
            continue;
        }
        if secret.contains(&directory.id) {
            lessened.push(Lessened::LeadsToSecret { shown: directory.shown });
            continue;
        }
        let leads = access == Access::ReadWrite && trusted.contains(&directory.id);
        if leads {
            lessened.push(Lessened::LeadsToTrusted { shown: directory.shown.clone() });
        }
        granted.push(Granted { access: if leads { Access::Read } else { access }, directory });
    }
    // Repeat until nothing changes, since lessening one directory may lessen its neighbours.
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
    use std::{fs::File, path::Path, sync::Arc};

    use super::*;

    fn directory(shown: &str, canonical: &str) -> OpenDirectory {
        OpenDirectory {
            shown: shown.into(),
            canonical: canonical.into(),
            id: FileId::at(Path::new("/")).unwrap(),
            handle: Arc::new(File::open("/").unwrap()),
        }
    }

    /// Directories as `(path, right)`; ids are made distinct by giving each a real, different file.
    fn check(wanted: &[(&str, Access)], expected: &[Access]) {
        let base = tempfile::tempdir().unwrap();
        let directories = wanted.iter().enumerate().map(|(at, (path, access))| {
            let real = base.path().join(at.to_string());
            std::fs::create_dir_all(&real).unwrap();
            let mut directory = directory(path, path);
            directory.id = FileId::at(&real).unwrap();
            (directory, *access)
        });
        let (granted, _) = intersect(directories.collect(), &[], (&HashSet::new(), &HashSet::new()));
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
        let (granted, lessened) = intersect(wanted, &[], (&HashSet::new(), &HashSet::new()));
        assert_eq!(granted.len(), 2, "the first of two with one name counts");
        assert!(granted.iter().all(|one| one.access == Access::Read));
        assert_eq!(lessened, [Lessened::Overlap { shown: "/one".into(), other: "/two".into() }]);
    }

    #[test]
    fn what_leads_to_trusted_files_is_read_only() {
        let trusted = HashSet::from([FileId::at(Path::new("/")).unwrap()]);
        let (granted, lessened) =
            intersect(vec![(directory("/one", "/one"), Access::ReadWrite)], &[], (&trusted, &HashSet::new()));
        assert_eq!(granted[0].access, Access::Read);
        assert_eq!(lessened, [Lessened::LeadsToTrusted { shown: "/one".into() }]);
    }
}
