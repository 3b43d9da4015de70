//! The folders through which files can be changed, as they are now: remembered between two calls, and checked by looking at folders only.
//!
//! A file, link or folder is replaced only by changing the folder that it is in, and that changes the time of that folder. So what was
//! found holds as long as no folder on the way has changed, however many files there are.

#![expect(clippy::disallowed_methods, reason = "facts about paths are read here")]

use std::{
    collections::{BTreeMap, HashSet},
    fs::FileType,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;

use crate::{
    mounts::{Mounts, MountsWatch},
    paths::{FileId, canonical_as_far, hops},
};

/// How long ago a folder has to have changed before an unchanged time means that it has not changed again. Some file systems count in
/// steps of two seconds.
const SETTLED_AFTER: Duration = Duration::from_secs(3);

/// Files, and folders with everything that is below them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// A last component `*` stands for all files in the folder.
    pub files: Vec<PathBuf>,
    pub trees: Vec<PathBuf>,
}

/// The ways to some [`Places`].
#[derive(Debug, Default)]
pub struct Ways {
    /// The folders through which any of the places can be changed.
    pub folders: HashSet<FileId>,
    /// The trees, without links, under all their names.
    pub trees: Vec<PathBuf>,
}

impl Ways {
    /// Whether something of the places is, or could be put, in a folder or below it. `canonical`: its path without links.
    pub fn go_through(&self, id: FileId, canonical: &Path) -> bool {
        self.folders.contains(&id) || self.trees.iter().any(|tree| canonical.starts_with(tree))
    }
}

/// Remembers the ways to places. Calls share one, and none waits while another looks at folders.
#[derive(Debug, Default)]
pub struct Leading {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    known: Option<Arc<Known>>,
    watch: MountsWatch,
    /// How often something may have been mounted.
    remounted: u64,
    /// The mounts, as they could last be read.
    mounts: Arc<Mounts>,
}

#[derive(Debug, Clone)]
struct Known {
    places: Arc<Places>,
    ways: Arc<Ways>,
    /// The folders that contain something on the way, with what that was.
    folders: Arc<[Folder]>,
    /// The states of these folders.
    stamps: Vec<Option<FolderStamp>>,
}

#[derive(Debug)]
struct Folder {
    path: PathBuf,
    entries: Vec<(PathBuf, There)>,
}

/// What is at a path: its identity, its kind, and its target if it is a link. Kind and target are compared too, because a replacement
/// of a file may get the same inode number.
type There = Option<(FileId, FileType, Option<PathBuf>)>;

fn there(path: &Path) -> There {
    let metadata = std::fs::symlink_metadata(path).ok()?;
    let leads = metadata.is_symlink().then(|| std::fs::read_link(path).ok()).flatten();
    Some((FileId::of(&metadata), metadata.file_type(), leads))
}

/// The state of a folder, as far as its entries show in it.
#[derive(Debug, Clone, Copy)]
pub struct FolderStamp {
    id: FileId,
    changed: (i64, i64),
    /// Whether a later change would give another time.
    settled: bool,
}

impl FolderStamp {
    pub fn of(folder: &Path) -> Option<Self> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let metadata = std::fs::metadata(folder).ok()?;
        let changed = (metadata.ctime(), metadata.ctime_nsec());
        let before = now.saturating_sub(SETTLED_AFTER).as_secs();
        let settled = u64::try_from(changed.0).is_ok_and(|changed| changed < before);
        Some(Self { id: FileId::of(&metadata), changed, settled })
    }

    /// Whether a folder in the state `now` is sure to have the entries that it had in this one.
    pub fn still(before: Option<Self>, now: Option<Self>) -> bool {
        match (before, now) {
            (Some(before), Some(now)) => before.settled && before.id == now.id && before.changed == now.changed,
            (None, None) => true,
            _ => false,
        }
    }
}

impl Folder {
    fn holds(&self) -> bool {
        self.entries.iter().all(|(path, was)| there(path) == *was)
    }
}

impl Leading {
    /// Returns the ways to the places as they are now. They are determined again only when something on the way has changed: checking that
    /// takes a tenth of the time of following every link and mount.
    pub fn to(&self, places: &Arc<Places>) -> Arc<Ways> {
        let (known, remounted, mounts) = {
            let mut state = self.state.lock();
            if state.watch.changed() {
                state.remounted += 1;
                state.known = None;
            }
            (state.known.clone(), state.remounted, Arc::clone(&state.mounts))
        };
        if let Some(known) = known
            && (Arc::ptr_eq(&known.places, places) || known.places == *places)
            && let Some(again) = known.check()
        {
            if let Some(again) = again {
                self.replace(remounted, Some(&known), again);
            }
            return Arc::clone(&known.ways);
        }
        // What is read here counts only if nothing has been mounted since: that was asked before.
        let read = Mounts::now().map(Arc::new);
        let is_read = read.is_ok();
        let mounts = read.unwrap_or(mounts);
        let paths = all_ways(places, &mounts);
        let known = Known::of(places, &paths, &mounts);
        let ways = Arc::clone(&known.ways);
        // If something changed while the ways were being found, or the mounts could not be read, they are used this once, but not
        // remembered.
        let again = Mounts::now().is_ok_and(|again| again == *mounts);
        if is_read
            && again
            && all_ways(places, &mounts) == paths
            && let Some(stamps) = known.check()
        {
            let known = stamps.unwrap_or(known);
            self.state.lock().mounts = mounts;
            self.replace(remounted, None, known);
        }
        ways
    }

    /// Remembers what holds, unless something was mounted meanwhile, or another call has replaced what this one began with.
    fn replace(&self, remounted: u64, before: Option<&Arc<Known>>, known: Known) {
        let mut state = self.state.lock();
        let is_current = |before| state.known.as_ref().is_some_and(|now| Arc::ptr_eq(now, before));
        if state.remounted == remounted && before.is_none_or(is_current) {
            state.known = Some(Arc::new(known));
        }
    }
}

impl Known {
    fn of(places: &Arc<Places>, paths: &[PathBuf], mounts: &Mounts) -> Self {
        let mut within: BTreeMap<&Path, Vec<&PathBuf>> = BTreeMap::new();
        for path in paths {
            // The top folder is in no other one, and stays what it is.
            if let Some(folder) = path.parent() {
                within.entry(folder).or_default().push(path);
            }
        }
        // The folders come first: what changes while their entries are looked at gives them another time.
        let stamps = within.keys().map(|folder| FolderStamp::of(folder)).collect();
        let entries = |paths: Vec<&PathBuf>| paths.into_iter().map(|path| (path.clone(), there(path))).collect();
        let folders = within
            .into_iter()
            .map(|(folder, paths)| Folder { path: folder.to_owned(), entries: entries(paths) })
            .collect();
        let names = |tree: &PathBuf| {
            let tree = canonical_as_far(tree);
            let others: Vec<PathBuf> = mounts.other_names(&tree).into_iter().chain(mounts.parts(&tree)).collect();
            std::iter::once(tree).chain(others)
        };
        let mut trees: Vec<PathBuf> = places.trees.iter().flat_map(names).collect();
        trees.sort();
        trees.dedup();
        let ways = Arc::new(Ways { folders: folders_of(paths), trees });
        Self { places: Arc::clone(places), ways, folders, stamps }
    }

    /// Whether all is as it was; `None` if it is not. Returns what is to be remembered instead, if folders have changed in other ways.
    fn check(&self) -> Option<Option<Self>> {
        let mut again: Option<Vec<Option<FolderStamp>>> = None;
        for (at, (folder, before)) in self.folders.iter().zip(&self.stamps).enumerate() {
            let now = FolderStamp::of(&folder.path);
            if FolderStamp::still(*before, now) {
                continue;
            }
            if !folder.holds() {
                return None;
            }
            if let Some(stamp) = again.get_or_insert_with(|| self.stamps.clone()).get_mut(at) {
                *stamp = now;
            }
        }
        Some(again.map(|stamps| Self { stamps, ..self.clone() }))
    }
}

/// Returns every path on the way to the places.
fn all_ways(places: &Places, mounts: &Mounts) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> =
        places.files.iter().chain(&places.trees).flat_map(|path| ways_to(path, mounts)).collect();
    all.sort();
    all.dedup();
    all
}

fn folders_of(paths: &[PathBuf]) -> HashSet<FileId> {
    let there = paths.iter().filter_map(|path| std::fs::metadata(path).ok());
    there.filter(std::fs::Metadata::is_dir).map(|metadata| FileId::of(&metadata)).collect()
}

/// The path, each link on its way, each other name that a mount gives one of these, and all folders above them.
fn ways_to(path: &Path, mounts: &Mounts) -> Vec<PathBuf> {
    let mut paths = hops(path);
    paths.push(canonical_as_far(path));
    let others: Vec<PathBuf> = paths.iter().flat_map(|path| mounts.other_names(&canonical_as_far(path))).collect();
    paths.iter().chain(&others).flat_map(|path| path.ancestors()).map(Path::to_path_buf).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(file: PathBuf) -> Arc<Places> {
        Arc::new(Places { files: vec![file], trees: Vec::new() })
    }

    fn folders_leading_to(path: &Path) -> HashSet<FileId> {
        folders_of(&ways_to(path, &Mounts::default()))
    }

    #[test]
    fn every_link_on_the_way_counts() {
        let folder = tempfile::tempdir().unwrap();
        let base = std::fs::canonicalize(folder.path()).unwrap();
        for folder in ["a", "b", "c", "d"] {
            std::fs::create_dir_all(base.join(folder)).unwrap();
        }
        std::fs::write(base.join("c/real"), b"").unwrap();
        std::os::unix::fs::symlink(base.join("b/second"), base.join("a/first")).unwrap();
        std::os::unix::fs::symlink("../c/real", base.join("b/second")).unwrap();
        let folders = folders_leading_to(&base.join("a/first"));
        for (folder, leads) in [("a", true), ("b", true), ("c", true), ("d", false), ("", true)] {
            assert_eq!(folders.contains(&FileId::at(&base.join(folder)).unwrap()), leads, "{folder}");
        }
        let missing = folders_leading_to(&base.join("a/no/such/file"));
        assert!(
            missing.contains(&FileId::at(&base.join("a")).unwrap()),
            "a folder counts if the file could be created in it"
        );
    }

    #[test]
    fn what_changes_on_the_way_is_seen_the_next_time() {
        let folder = tempfile::tempdir().unwrap();
        let base = std::fs::canonicalize(folder.path()).unwrap();
        for name in ["a", "b"] {
            std::fs::create_dir(base.join(name)).unwrap();
            std::fs::write(base.join(name).join("file"), b"").unwrap();
        }
        let [a, b] = ["a", "b"].map(|name| FileId::at(&base.join(name)).unwrap());
        let link = |to: &str| {
            std::fs::remove_file(base.join("link")).ok();
            std::os::unix::fs::symlink(to, base.join("link")).unwrap();
        };
        let paths = of(base.join("link/file"));
        let leading = Leading::default();
        let leads = || {
            let ways = leading.to(&paths);
            (ways.folders.contains(&a), ways.folders.contains(&b))
        };
        assert_eq!(leads(), (false, false), "it does not exist");
        // A new link may well get the inode number of the one before.
        for _ in 0..50 {
            link("a");
            assert_eq!(leads(), (true, false));
            link("b");
            assert_eq!(leads(), (false, true));
        }
        std::fs::rename(base.join("b"), base.join("c")).unwrap();
        assert_eq!(leads(), (false, false));
        std::fs::rename(base.join("c"), base.join("b")).unwrap();
        assert_eq!(leads(), (false, true));
        let other = leading.to(&of(base.join("a/file")));
        assert!(other.folders.contains(&a) && !other.folders.contains(&b), "other paths");
    }

    #[test]
    fn a_tree_is_all_that_is_below_it() {
        let folder = tempfile::tempdir().unwrap();
        let base = std::fs::canonicalize(folder.path()).unwrap();
        std::fs::create_dir_all(base.join("tree/a/b")).unwrap();
        std::fs::create_dir_all(base.join("tree-2")).unwrap();
        std::os::unix::fs::symlink("tree", base.join("link")).unwrap();
        let places = Arc::new(Places { files: Vec::new(), trees: vec![base.join("link")] });
        let ways = Leading::default().to(&places);
        for (path, expected) in [("tree", true), ("tree/a", true), ("tree/a/b", true), ("tree-2", false), ("", true)] {
            let path = base.join(path);
            let path = std::fs::canonicalize(path).unwrap();
            assert_eq!(ways.go_through(FileId::at(&path).unwrap(), &path), expected, "{}", path.display());
        }
    }

    /// A folder of plugins is one folder, however many there are.
    #[test]
    fn what_is_checked_does_not_depend_on_the_number_of_files() {
        let folder = tempfile::tempdir().unwrap();
        let looks = |count: usize| {
            let files = (0..count).map(|at| folder.path().join(format!("{at}.wasm"))).collect();
            let places = Arc::new(Places { files, trees: Vec::new() });
            let mounts = Mounts::default();
            Known::of(&places, &all_ways(&places, &mounts), &mounts).folders.len()
        };
        assert_eq!(looks(1), looks(400));
    }

    #[test]
    fn a_folder_counts_as_unchanged_only_if_a_change_would_show() {
        let folder = tempfile::tempdir().unwrap();
        let now = FolderStamp::of(folder.path());
        assert!(!now.unwrap().settled && !FolderStamp::still(now, now), "it was made just now");
        let old = now.map(|stamp| FolderStamp { settled: true, ..stamp });
        assert!(FolderStamp::still(old, now) && FolderStamp::still(None, None));
        assert!(!FolderStamp::still(old, None) && !FolderStamp::still(None, old));
        let later = now.map(|stamp| FolderStamp { changed: (stamp.changed.0, stamp.changed.1 + 1), ..stamp });
        assert!(!FolderStamp::still(old, later), "it has changed since");
    }
}
