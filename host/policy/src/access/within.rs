//! Narrows the roots of a call to the folders that the caller's roles open.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use super::{
    capability::Access,
    open::{Now, OpenDirectory, beneath},
};

/// A folder within which the roots of a call may lie, and the most access that it allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Within {
    /// The part of the path that the operator wrote. Symlinks in it are followed.
    pub base: PathBuf,
    /// The rest of the path, built from the name and claims of the caller. Symlinks in it are refused, because another caller may have
    /// created them.
    pub rest: PathBuf,
    pub access: Access,
}

/// Formats the folder and its access; equal values give equal texts.
impl fmt::Display for Within {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {:?}/{:?}", self.access.as_str(), self.base, self.rest)
    }
}

impl Within {
    /// Returns the canonical path of the folder, or `None` if it does not exist or `rest` contains a symlink.
    fn place(&self) -> Option<PathBuf> {
        let place = std::fs::canonicalize(&self.base).ok()?.join(&self.rest);
        // Equal only if `rest` contains no symlinks.
        (std::fs::canonicalize(&place).ok()? == place).then_some(place)
    }
}

/// Returns the parts of a root that lie in these folders, each with its access.
pub fn narrowed(root: Now, access: Access, within: &[Within]) -> Vec<(Now, Access)> {
    let Now::There(directory) = root else {
        // If one of the folders is read-only, the place to which the path now resolves must not be written to.
        return vec![(root, within.iter().map(|one| one.access).min().map_or(access, |least| least.min(access)))];
    };
    let places: Vec<(PathBuf, Access)> =
        within.iter().filter_map(|one| Some((one.place()?, one.access.min(access)))).collect();
    let around = places.iter().filter(|(place, _)| directory.canonical.starts_with(place)).map(|(_, most)| *most);
    if let Some(most) = around.max() {
        return vec![(Now::There(directory), most)];
    }
    let inside = places.iter().filter_map(|(place, most)| {
        let rest = place.strip_prefix(&directory.canonical).ok()?;
        Some((Now::There(open_subfolder(&directory, place, rest)?), *most))
    });
    inside.collect()
}

/// Opens a folder inside an open one.
fn open_subfolder(directory: &OpenDirectory, place: &Path, rest: &Path) -> Option<OpenDirectory> {
    let (id, handle) = beneath(&directory.handle, rest)?;
    let shown = format!("{}/{}", directory.shown.trim_end_matches('/'), rest.to_str()?);
    let real = if directory.real.is_some() { place.to_str().map(str::to_owned) } else { None };
    Some(OpenDirectory { shown, real, canonical: place.to_owned(), id, handle })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::open::OpenRoot;

    #[test]
    fn a_root_is_narrowed_to_what_lies_in_both() {
        let held = tempfile::tempdir().unwrap();
        let base = std::fs::canonicalize(held.path()).unwrap();
        for folder in ["srv/acme/ann", "srv/acme/ben", "srv/other", "away"] {
            std::fs::create_dir_all(base.join(folder)).unwrap();
        }
        std::os::unix::fs::symlink(base.join("srv/other"), base.join("srv/acme/link")).unwrap();
        std::os::unix::fs::symlink(base.join("srv"), base.join("alias")).unwrap();
        let within = |start: &str, rest: &str, access| Within { base: base.join(start), rest: rest.into(), access };
        let check = |root: &str, within: &[Within]| -> Vec<(String, Access)> {
            let root = OpenRoot::by_operator(&base.join(root)).unwrap();
            narrowed(root.now(), Access::ReadWrite, within)
                .into_iter()
                .filter_map(|(now, access)| match now {
                    Now::There(open) => {
                        let there = std::fs::canonicalize(Path::new(&open.shown)).unwrap();
                        assert_eq!(there, open.canonical);
                        Some((open.canonical.strip_prefix(&base).unwrap().to_str().unwrap().to_owned(), access))
                    }
                    _ => None,
                })
                .collect()
        };
        use Access::{Read, ReadWrite};
        let one = |path: &str, access| vec![(path.to_owned(), access)];
        assert_eq!(check("srv", &[within("srv", "acme", Read)]), one("srv/acme", Read));
        assert_eq!(check("srv", &[within("alias", "acme", ReadWrite)]), one("srv/acme", ReadWrite));
        assert_eq!(check("srv/acme", &[within("srv", "acme", ReadWrite)]), one("srv/acme", ReadWrite));
        assert_eq!(check("srv/acme/ann", &[within("srv", "acme", Read)]), one("srv/acme/ann", Read));
        assert_eq!(check("srv/acme", &[within("srv", "other", ReadWrite)]), []);
        assert_eq!(check("away", &[within("srv", "", ReadWrite)]), []);
        assert_eq!(check("srv", &[within("srv", "missing", ReadWrite)]), []);
        assert_eq!(check("srv", &[within("srv", "acme/link", ReadWrite)]), [], "a symlink of another caller");
        assert_eq!(check("srv", &[]), [], "no role opens anything");
        // If several roles apply, the one that allows the most counts.
        let two = [within("srv", "acme", Read), within("srv", "acme/ann", ReadWrite)];
        assert_eq!(check("srv/acme/ann", &two), one("srv/acme/ann", ReadWrite));
        assert_eq!(check("srv/acme/ben", &two), one("srv/acme/ben", Read));
    }
}
