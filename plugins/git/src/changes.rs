//! Compares two sides, and detects renamed files.

use std::collections::{BTreeMap, HashMap};

use gix::{
    Repository,
    bstr::{BString, ByteSlice},
};
use wharf_sdk::Result;

use crate::side::{File, MODULE, Side};

/// A file that differs. A new file has no old version, a deleted file has no new one.
#[derive(Clone, Debug)]
pub struct Change {
    pub old: Option<(BString, File)>,
    pub new: Option<(BString, File)>,
    /// The similarity of a renamed file to its old version, in percent.
    pub similar: Option<u32>,
}

impl Change {
    /// Returns the path by which changes are sorted and named.
    pub fn path(&self) -> &BString {
        const NONE: &BString = &BString::new(Vec::new());
        self.new.as_ref().or(self.old.as_ref()).map_or(NONE, |(path, _)| path)
    }
}

/// The maximum size of a file that is compared with others to detect renames.
const MAX_BYTES: usize = 1 << 20;
/// The maximum number of deleted files and of new files. Above it, only renames with identical content are detected, as in git.
const MAX_FILES: usize = 1000;
/// The similarity in percent from which on two files count as renamed.
const MIN_SIMILARITY: u32 = 50;

pub fn between(repo: &Repository, old: &Side, new: &Side) -> Result<Vec<Change>> {
    let mut changes = Vec::new();
    for (path, file) in old {
        match new.get(path) {
            Some(other) if other == file => {}
            Some(other) if kind(other) == kind(file) => {
                let (old, new) = ((path.clone(), file.clone()), (path.clone(), other.clone()));
                changes.push(Change { old: Some(old), new: Some(new), similar: None });
            }
            // A link in the place of a file counts as a deleted file and a new one.
            other => {
                changes.push(Change { old: Some((path.clone(), file.clone())), new: None, similar: None });
                if let Some(other) = other {
                    changes.push(Change { old: None, new: Some((path.clone(), other.clone())), similar: None });
                }
            }
        }
    }
    let added = new.iter().filter(|(path, _)| !old.contains_key(*path));
    changes.extend(added.map(|(path, file)| Change {
        old: None,
        new: Some((path.clone(), file.clone())),
        similar: None,
    }));
    renames(repo, &mut changes)?;
    changes.sort_by(|one, other| one.path().cmp(other.path()));
    Ok(changes)
}

/// Returns the files that differ, without detection of renames.
pub fn plain(old: &Side, new: &Side) -> Vec<Change> {
    let differing = old.iter().filter(|(path, file)| new.get(*path) != Some(*file));
    let mut changes: Vec<Change> = differing
        .map(|(path, file)| Change {
            old: Some((path.clone(), file.clone())),
            new: new.get(path).map(|file| (path.clone(), file.clone())),
            similar: None,
        })
        .collect();
    let added = new.iter().filter(|(path, _)| !old.contains_key(*path));
    changes.extend(added.map(|(path, file)| Change {
        old: None,
        new: Some((path.clone(), file.clone())),
        similar: None,
    }));
    changes.sort_by(|one, other| one.path().cmp(other.path()));
    changes
}

fn kind(file: &File) -> u32 {
    file.mode & 0o170_000
}

/// Joins deleted files with new files of the same or similar content.
fn renames(repo: &Repository, changes: &mut Vec<Change>) -> Result<()> {
    let twice: Vec<BString> = {
        let mut count: BTreeMap<&BString, usize> = BTreeMap::new();
        changes.iter().for_each(|change| *count.entry(change.path()).or_default() += 1);
        count.into_iter().filter(|(_, times)| *times > 1).map(|(path, _)| path.clone()).collect()
    };
    let alone = |change: &Change| !twice.contains(change.path());
    let (mut gone, rest): (Vec<Change>, Vec<Change>) =
        std::mem::take(changes).into_iter().partition(|change| change.new.is_none() && alone(change));
    let (mut fresh, rest): (Vec<Change>, Vec<Change>) =
        rest.into_iter().partition(|change| change.old.is_none() && alone(change));
    *changes = rest;
    // Files with identical content come first, and of them those with the same name.
    for exact_name in [true, false] {
        fresh.retain(|new| {
            let Some((path, file)) = &new.new else { return true };
            let found = gone.iter().position(|old| {
                old.old.as_ref().is_some_and(|(was, old)| {
                    old == file && !(exact_name && name(was) != name(path)) && old.mode != MODULE && !empty(old)
                })
            });
            let Some(found) = found else { return true };
            let old = gone.remove(found).old;
            changes.push(Change { old, new: new.new.clone(), similar: Some(100) });
            false
        });
    }
    if gone.len() > MAX_FILES || fresh.len() > MAX_FILES {
        changes.extend(gone.into_iter().chain(fresh));
        return Ok(());
    }
    let read = |changes: &[Change]| -> Result<Vec<Option<Pieces>>> {
        let file = |change: &Change| {
            let (_, file) = change.old.as_ref().or(change.new.as_ref())?;
            (kind(file) == 0o100_000).then_some(file.clone())
        };
        changes.iter().map(|change| file(change).map(|file| Ok(Pieces::of(&file.bytes(repo)?))).transpose()).collect()
    };
    let (was, is) = match gone.is_empty() || fresh.is_empty() {
        true => (Vec::new(), Vec::new()),
        false => (read(&gone)?, read(&fresh)?),
    };
    let mut pairs = Vec::new();
    for (from, was) in was.iter().enumerate() {
        for (to, is) in is.iter().enumerate() {
            let (Some(was), Some(is)) = (was, is) else { continue };
            let similar = was.similar(is);
            if similar >= MIN_SIMILARITY {
                let same = gone.get(from).map(|one| name(one.path())) == fresh.get(to).map(|one| name(one.path()));
                pairs.push((std::cmp::Reverse((similar, same)), from, to));
            }
        }
    }
    pairs.sort();
    let (mut gone, mut fresh): (Vec<_>, Vec<_>) =
        (gone.into_iter().map(Some).collect(), fresh.into_iter().map(Some).collect());
    for (std::cmp::Reverse((similar, _)), from, to) in pairs {
        if let (Some(from), Some(to)) = (gone.get_mut(from), fresh.get_mut(to))
            && from.is_some()
            && to.is_some()
        {
            let old = from.take().and_then(|change| change.old);
            let new = to.take().and_then(|change| change.new);
            changes.push(Change { old, new, similar: Some(similar) });
        }
    }
    changes.extend(gone.into_iter().chain(fresh).flatten());
    Ok(())
}

fn name(path: &BString) -> &[u8] {
    path.rsplit_once_str("/").map_or(path.as_bytes(), |(_, name)| name)
}

/// Whether a file is empty. Empty files are all identical, which does not make them renames.
fn empty(file: &File) -> bool {
    file.id == gix::ObjectId::empty_blob(file.id.kind())
}

/// The distinct lines of a file, with long lines split into pieces of 64 bytes, and the number of bytes in each.
struct Pieces {
    bytes: usize,
    pieces: HashMap<Vec<u8>, usize>,
}

impl Pieces {
    fn of(content: &[u8]) -> Self {
        let mut pieces = HashMap::new();
        if content.len() <= MAX_BYTES {
            for piece in content.lines_with_terminator().flat_map(|line| line.chunks(64)) {
                *pieces.entry(piece.to_vec()).or_default() += piece.len();
            }
        }
        Self { bytes: content.len(), pieces }
    }

    /// Returns the share of the larger file that both have in common, in percent.
    fn similar(&self, other: &Self) -> u32 {
        let both: usize = self
            .pieces
            .iter()
            .map(|(piece, bytes)| other.pieces.get(piece).map_or(0, |others| *bytes.min(others)))
            .sum();
        let most = self.bytes.max(other.bytes);
        both.checked_mul(100).and_then(|both| both.checked_div(most)).and_then(|part| part.try_into().ok()).unwrap_or(0)
    }
}
