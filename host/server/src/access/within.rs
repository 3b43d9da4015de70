//! Narrows the roots of a call to the folders that the caller's roles open.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use super::{
    capability::Access,
    open::{Now, OpenDirectory, beneath},
};

/// A folder within which the roots of a call may lie, and the most that may be done there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Within {
    /// What the operator wrote. Links in it are followed.
    pub base: PathBuf,
    /// What follows and was made of the caller's names. A link in it leads nowhere, because another caller may have made it.
    pub rest: PathBuf,
    pub access: Access,
}

/// The same text for the same folder with the same right.
impl fmt::Display for Within {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {:?}/{:?}", self.access.as_str(), self.base, self.rest)
    }
}

impl Within {
    /// Where the folder is, without links. None: it is not there.
    fn place(&self) -> Option<PathBuf> {
        let place = std::fs::canonicalize(&self.base).ok()?.join(&self.rest);
        // For a path without links, this is the path itself.
        (std::fs::canonicalize(&place).ok()? == place).then_some(place)
    }
}

/// The parts of a root that lie in these folders, each with its right.
pub fn narrowed(root: Now, access: Access, within: &[Within]) -> Vec<(Now, Access)> {
    let Now::There(directory) = root else {
        // What may be read only in one of the folders must not be written where its path leads now.
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
        Some((Now::There(part(&directory, place, rest)?), *most))
    });
    inside.collect()
}

/// A folder inside an open one.
fn part(directory: &OpenDirectory, place: &Path, rest: &Path) -> Option<OpenDirectory> {
    let (id, handle) = beneath(&directory.handle, rest)?;
    let shown = format!("{}/{}", directory.shown.trim_end_matches('/'), rest.to_str()?);
    Some(OpenDirectory { shown, canonical: place.to_owned(), id, handle })
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
        assert_eq!(check("srv", &[within("srv", "acme/link", ReadWrite)]), [], "somebody else's link");
        assert_eq!(check("srv", &[]), [], "no role opens anything");
        // Of several roles, the one that allows the most counts.
        let two = [within("srv", "acme", Read), within("srv", "acme/ann", ReadWrite)];
        assert_eq!(check("srv/acme/ann", &two), one("srv/acme/ann", ReadWrite));
        assert_eq!(check("srv/acme/ben", &two), one("srv/acme/ben", Read));
    }
}
