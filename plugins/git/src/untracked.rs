//! Files of the work tree that git does not know and does not ignore.

use std::{collections::BTreeMap, fs, path::PathBuf, sync::atomic::AtomicBool};

use gix::{
    Repository,
    bstr::{BString, ByteSlice},
    dir::{
        Entry, EntryRef,
        entry::Status,
        walk::{Action, Delegate, EmissionMode, ForDeletionMode},
    },
};
use wharf_sdk::{Error, Result};

use crate::{
    ignored::Hiding,
    open::Open,
    work::{REPLACED, Unknown},
};

/// Returns the files that are neither in the index nor ignored, sorted. Folders end in a slash. What cannot be told goes to `unknown`.
pub fn untracked(
    repo: &Repository,
    open: &Open,
    index: &gix::index::State,
    mode: EmissionMode,
    unknown: &mut Unknown,
) -> Result<Vec<BString>> {
    let ignored = open.ignored(repo)?;
    let mut paths = walked(repo, ignored.hiding(repo, index)?, index, mode, unknown)?;
    let is_folder = |path: &BString| path.ends_with(b"/");
    if let (Some(hiding), EmissionMode::CollapseDirectory) = (ignored.hiding(repo, index)?, mode)
        && paths.iter().any(is_folder)
    {
        // A folder is named if anything in it is.
        let files = walked(repo, Some(hiding), index, EmissionMode::Matching, &mut Unknown::default())?;
        paths.retain(|path| !is_folder(path) || files.iter().any(|file| file.starts_with(path)));
    }
    Ok(paths)
}

fn walked(
    repo: &Repository,
    hiding: Option<Hiding<'_>>,
    index: &gix::index::State,
    mode: EmissionMode,
    unknown: &mut Unknown,
) -> Result<Vec<BString>> {
    let root = repo.workdir().ok_or_else(|| Error::failed("there is no work tree"))?;
    let options = repo.dirwalk_options()?.emit_untracked(mode).emit_ignored(None).emit_tracked(false);
    let mut found = Seen { root: root.to_path_buf(), entries: Vec::new(), closed: BTreeMap::new(), hiding };
    repo.dirwalk(index, None::<&str>, &AtomicBool::new(false), options, &mut found)?;
    let Seen { entries, mut closed, mut hiding, .. } = found;
    let mut known = known_by_replacement(index);
    let mut paths = Vec::new();
    for entry in entries.into_iter().filter(|entry| entry.status == Status::Untracked) {
        let mut path = entry.rela_path;
        let is_folder = entry.disk_kind.is_some_and(|kind| kind.is_dir());
        if hiding.as_mut().is_some_and(|hiding| hiding.hides(path.as_bstr(), is_folder)) {
            continue;
        }
        // Something of another kind in the place of a tracked file is a change of that file.
        if index.entry_by_path(path.as_bstr()).is_some() && !is_folder {
            continue;
        }
        let name = path.to_str_lossy().into_owned();
        if name.contains(REPLACED) && fs::symlink_metadata(root.join(&name)).is_err() {
            closed.remove(&path);
            match known.get_mut(&name) {
                // It is already named as a tracked file that cannot be looked at. A system that lists the bytes of names tells them apart.
                Some(files) if *files > 0 && path.to_str().is_ok() => *files -= 1,
                _ => unknown.add(
                    path.as_bstr(),
                    format!("it is untracked; its name is not UTF-8 ({REPLACED} stands for what is not)"),
                ),
            }
            continue;
        }
        if closed.contains_key(&path) {
            continue;
        }
        if is_folder {
            path.push(b'/');
        }
        paths.push(path);
    }
    for (path, why) in closed {
        let name = path.to_str_lossy().into_owned();
        if !(name.contains(REPLACED) && known.contains_key(&name)) {
            unknown.add(path.as_bstr(), format!("the folder cannot be read: {why}"));
        }
    }
    paths.sort();
    Ok(paths)
}

/// Returns the names of tracked files and their folders that are not UTF-8, as the system lists them: with replacement characters. A name
/// has the number of files that are listed under it; all folders of one name are listed under it.
fn known_by_replacement(index: &gix::index::State) -> BTreeMap<String, usize> {
    let mut known = BTreeMap::new();
    for entry in index.entries() {
        let path = entry.path(index);
        if path.to_str().is_ok() {
            continue;
        }
        *known.entry(path.to_str_lossy().into_owned()).or_default() += 1;
        for at in path.find_iter("/") {
            let above = path.get(..at).unwrap_or_default();
            if above.to_str().is_err() {
                known.insert(above.to_str_lossy().into_owned(), usize::MAX);
            }
        }
    }
    known
}

/// Collects what a walk sees, and keeps it out of folders that are hidden, and of those that cannot be read: the walk would end there.
struct Seen<'a> {
    root: PathBuf,
    entries: Vec<Entry>,
    closed: BTreeMap<BString, String>,
    hiding: Option<Hiding<'a>>,
}

impl Delegate for Seen<'_> {
    fn emit(&mut self, entry: EntryRef<'_>, _: Option<Status>) -> Action {
        self.entries.push(entry.to_owned());
        Action::Continue(())
    }

    fn can_recurse(
        &mut self,
        entry: EntryRef<'_>,
        deletion: Option<ForDeletionMode>,
        root_is_repository: bool,
    ) -> bool {
        if !entry.status.can_recurse(entry.disk_kind, entry.pathspec_match, deletion, root_is_repository) {
            return false;
        }
        let is_tracked = entry.status == Status::Tracked;
        let mut hides = |hiding: &mut Hiding<'_>| hiding.hides(entry.rela_path.as_ref(), true);
        if !is_tracked && !entry.rela_path.is_empty() && self.hiding.as_mut().is_some_and(&mut hides) {
            return false;
        }
        match fs::read_dir(self.root.join(entry.rela_path.to_str_lossy().as_ref())) {
            Ok(_) => true,
            Err(_) if entry.rela_path.is_empty() => true,
            Err(error) => {
                self.closed.insert(entry.rela_path.into_owned(), error.to_string());
                false
            }
        }
    }
}
