//! Switches the work tree to another branch or commit, if no local changes would be lost.

use std::{
    collections::hash_map::RandomState,
    fs,
    hash::{BuildHasher, Hasher},
    io::Read,
    path::Path,
};

use gix::{
    Repository,
    bstr::{BStr, BString, ByteSlice},
    index::entry::{Flags, Stage, Stat},
    objs::Kind,
};
use wharf_sdk::{Error, Result};

use crate::{
    edit::{Author, Locked, UNMERGED, reflog_author, stat},
    names,
    open::Place,
    refs::{self, Entry},
    revision,
    side::{self, File, LINK, MODULE, Side, shown},
    unrun,
    work::Work,
};

pub fn checkout(place: &Place, name: &str, author: &Author) -> Result<String> {
    let repo = &place.repo;
    let full = format!("refs/heads/{name}");
    let found = if names::is_branch(name) { refs::find(repo, &full)? } else { None };
    // A tag may have the name of a branch. HEAD follows the branch, so the files have to be those of the branch too.
    let (id, branch) = match found {
        Some(mut found) => {
            let id = found.peel_to_id()?.detach();
            (revision::peeled(repo, id, Kind::Commit)?, Some(found.name().to_owned()))
        }
        None => (revision::commit(repo, name)?, None),
    };
    if let Some(branch) = &branch
        && let Some(work) = refs::checked_out_elsewhere(repo)?.get(branch.as_bstr())
    {
        return Err(Error::failed(format!("'{name}' is already used by worktree at '{work}'")));
    }
    let mut note = String::new();
    let head = side::head(repo)?;
    let mut locked = Locked::take(repo)?;
    if locked.index.entries().iter().any(|entry| entry.stage() != Stage::Unconflicted) {
        return Err(Error::failed(UNMERGED));
    }
    let (old, new) = (side::of_head(repo)?, side::of_tree(repo, Some(revision::peeled(repo, id, Kind::Tree)?))?);
    let index = side::of_index(&locked.index);
    let differing: Vec<BString> = {
        let paths = old.keys().chain(new.keys().filter(|path| !old.contains_key(*path)));
        paths.filter(|path| old.get(*path) != new.get(*path)).cloned().collect()
    };
    refuse(place, &locked, &differing, &old, &new, &index)?;
    let mut writer = Writer::new(place)?;
    for path in differing.iter().filter(|path| !new.contains_key(*path)) {
        writer.remove(path.as_bstr())?;
        locked.remove(path.as_bstr());
    }
    for path in &differing {
        let Some(file) = new.get(path) else { continue };
        if index.get(path) == Some(file) {
            continue;
        }
        if is_away(&locked.index, path.as_bstr(), &writer.work) {
            locked.remove(path.as_bstr());
            locked.put_away(path.as_bstr(), file);
            continue;
        }
        writer.write(path.as_bstr(), file, old.get(path), &mut note)?;
        locked.remove(path.as_bstr());
        let stat = if file.mode == MODULE { Stat::default() } else { stat(&writer.work, path.as_bstr()) };
        locked.put(path.as_bstr(), file, stat);
    }
    locked.write()?;
    let from = match repo.head_name()? {
        Some(name) => name.shorten().to_string(),
        None => head.map(|id| id.to_string()).unwrap_or_default(),
    };
    let to = match &branch {
        Some(branch) => format!("ref: {}", branch.as_bstr()),
        None => id.to_string(),
    };
    let message = format!("checkout: moving from {from} to {name}");
    refs::set_head(repo, &to, &Entry { old: head, new: id, who: &reflog_author(author), message: &message })?;
    let text = match branch {
        Some(branch) => format!("Switched to branch '{}'", branch.shorten()),
        None => format!("HEAD is now detached at {}", id.to_hex_with_len(7)),
    };
    note.push_str(&unrun::hooks(repo, unrun::OF_CHECKOUT));
    Ok(format!("{text}{note}"))
}

/// Whether a sparse checkout leaves a file out of the work tree.
fn is_away(index: &gix::index::State, path: &BStr, work: &Work<'_>) -> bool {
    let entry = index.entry_by_path(path);
    let left_out = entry.is_some_and(|entry| entry.flags.contains(Flags::SKIP_WORKTREE));
    left_out && path.to_str().is_ok_and(|name| matches!(work.look(name), Ok(None)))
}

/// Fails if a file that the switch would change has local changes, or if an untracked file is in the place of a new one.
fn refuse(place: &Place, locked: &Locked, differing: &[BString], old: &Side, new: &Side, index: &Side) -> Result<()> {
    let repo = &place.repo;
    let mut work = Work::new(repo, &place.open, 0)?;
    let (mut changed, mut untracked, mut lost) = (Vec::new(), Vec::new(), Vec::new());
    for path in differing {
        let (was, staged, will) = (old.get(path), index.get(path), new.get(path));
        let entry = locked.index.entry_by_path_and_stage(path.as_bstr(), Stage::Unconflicted);
        // This is checked before anything is written, so that a failure leaves the work tree unchanged.
        if let Some(will) = will {
            names::check_path(path.as_bstr(), will.mode == LINK)?;
        }
        if path.to_str().is_err() {
            return Err(Error::failed(format!(
                "{}: its name is not UTF-8, so this server can neither look at it nor write it; use git",
                shown(path.as_bstr())
            )));
        }
        if let Some(will) = will.filter(|will| will.mode == LINK)
            && will.bytes(repo)?.to_str().is_err()
        {
            return Err(Error::failed(format!("{path} leads to a name that is not UTF-8; use git")));
        }
        if will.is_some()
            && let Some(above) = in_the_way(repo, path, old)
        {
            untracked.push(above);
            continue;
        }
        // A file cannot stand where a folder has files that would be lost.
        if will.is_some_and(|will| will.mode != MODULE) && loses(repo, path, index)? {
            lost.push(path.to_string());
            continue;
        }
        let is_module = |file: Option<&File>| file.is_some_and(|file| file.mode == MODULE);
        if is_module(staged) && (will.is_none() || is_module(will)) {
            continue;
        }
        if will.is_some_and(|will| will.mode != MODULE)
            && let Some(filter) = work.filter(path.as_bstr())?
        {
            return Err(Error::failed(format!(
                "{path} has to go through the filter {filter}, which is not run here; use git"
            )));
        }
        let found = work.file(path.as_bstr(), entry, &locked.index)?.known(path.as_bstr())?;
        match staged {
            // The file is already in its new state.
            _ if staged == will && staged.is_some() => {}
            // An interrupted checkout has written the file, but not the index.
            _ if will.is_some() && found.as_ref() == will => {}
            Some(_) if staged != was => changed.push(path.to_string()),
            Some(staged) if found.as_ref().is_some_and(|found| found != staged) => changed.push(path.to_string()),
            Some(_) => {}
            None if was.is_some() && will.is_some() => changed.push(path.to_string()),
            None if found.is_some() && found.as_ref() != will => untracked.push(path.to_string()),
            None => {}
        }
    }
    let list = |paths: Vec<String>| paths.iter().take(20).map(|path| format!("\n\t{path}")).collect::<String>();
    if !changed.is_empty() {
        return Err(Error::failed(format!(
            "Your local changes to the following files would be overwritten by checkout:{}\nPlease commit your changes before you \
             switch branches.",
            list(changed)
        )));
    }
    if !untracked.is_empty() {
        return Err(Error::failed(format!(
            "The following untracked working tree files would be overwritten by checkout:{}\nPlease move or remove them before you \
             switch branches.",
            list(untracked)
        )));
    }
    if !lost.is_empty() {
        return Err(Error::failed(format!(
            "Updating the following directories would lose untracked files in them:{}\nPlease move or remove them before you switch \
             branches.",
            list(lost)
        )));
    }
    Ok(())
}

/// Whether a folder stands at a path and has anything that is not in the index.
fn loses(repo: &Repository, path: &BString, index: &Side) -> Result<bool> {
    let Some((name, root)) = path.to_str().ok().zip(repo.workdir()) else { return Ok(false) };
    let place = root.join(name);
    if !fs::symlink_metadata(&place).is_ok_and(|data| data.is_dir()) {
        return Ok(false);
    }
    for entry in fs::read_dir(&place)? {
        let entry = entry?;
        let Some(last) = entry.file_name().to_str().map(str::to_owned) else { return Ok(true) };
        let below = BString::from(format!("{name}/{last}"));
        let gone = match entry.file_type()?.is_dir() {
            true => loses(repo, &below, index)?,
            false => !index.contains_key(&below),
        };
        if gone {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Removes a folder that has nothing but folders in it.
fn remove_empty(place: &Path) {
    if fs::symlink_metadata(place).is_ok_and(|data| data.is_dir()) {
        for entry in fs::read_dir(place).into_iter().flatten().flatten() {
            remove_empty(&entry.path());
        }
        // What is not empty stays, and the caller fails to write there.
        fs::remove_dir(place).ok();
    }
}

/// Returns the path of an untracked file in the place of a folder that has to be created above `path`.
fn in_the_way(repo: &Repository, path: &BString, old: &Side) -> Option<String> {
    let mut at = repo.workdir()?.to_path_buf();
    let mut name = String::new();
    for part in Path::new(path.to_str().ok()?).parent()?.components() {
        at.push(part);
        name.push_str(part.as_os_str().to_str()?);
        if fs::symlink_metadata(&at).is_ok_and(|data| !data.is_dir()) {
            return (!old.contains_key(name.as_bytes().as_bstr())).then_some(name);
        }
        name.push('/');
    }
    None
}

/// Writes files of the work tree. Names in a repository are not trusted: nothing is written through a link, or into .git.
struct Writer<'a> {
    repo: &'a Repository,
    root: &'a Path,
    filters: gix::filter::Pipeline<'a>,
    work: Work<'a>,
}

impl<'a> Writer<'a> {
    fn new(place: &'a Place) -> Result<Self> {
        let repo = &place.repo;
        let root = repo.workdir().ok_or_else(|| Error::failed("there is no work tree"))?;
        Ok(Self { repo, root, filters: repo.filter_pipeline(None)?.0, work: Work::new(repo, &place.open, 0)? })
    }

    /// Returns the path of a file or link. With `make`, creates the folders above it.
    fn place(&self, path: &BStr, link: bool, make: bool) -> Result<std::path::PathBuf> {
        let name = path.to_str().map_err(|_| Error::failed(format!("the name {path} is not UTF-8")))?;
        let refused = || Error::failed(format!("{name} is a name that no file may have"));
        names::check_path(path, link)?;
        let parts: Vec<&str> = name.split('/').collect();
        let mut place = self.root.to_path_buf();
        let Some((last, above)) = parts.split_last() else { return Err(refused()) };
        for part in above {
            place.push(part);
            match fs::symlink_metadata(&place) {
                Ok(data) if data.is_dir() => {}
                Ok(_) if make => {
                    return Err(Error::failed(format!("{} is in the way of a folder", place.display())));
                }
                Ok(_) => return Err(refused()),
                Err(_) if make => fs::create_dir(&place)?,
                Err(_) => {}
            }
        }
        place.push(last);
        Ok(place)
    }

    fn remove(&self, path: &BStr) -> Result<()> {
        let Ok(mut place) = self.place(path, false, false) else { return Ok(()) };
        if fs::symlink_metadata(&place).is_ok_and(|data| !data.is_dir()) {
            fs::remove_file(&place).map_err(|error| Error::failed(format!("{path} cannot be removed: {error}")))?;
        }
        // Folders that become empty are removed too.
        while place.pop() && place != self.root && fs::remove_dir(&place).is_ok() {}
        Ok(())
    }

    fn write(&mut self, path: &BStr, file: &File, old: Option<&File>, note: &mut String) -> Result<()> {
        let place = self.place(path, file.mode == LINK, true)?;
        let failed = |error: std::io::Error| Error::failed(format!("{path} cannot be written: {error}"));
        if file.mode == MODULE {
            // The files of a submodule stay as they are: its commit is checked out by git submodule update.
            note.push_str(&format!("\n{path} is a submodule, which still has its old files: git submodule update"));
            if place.is_dir() {
                return Ok(());
            }
            if old.is_some() {
                fs::remove_file(&place).ok();
            }
            return fs::create_dir(&place).map_err(failed);
        }
        remove_empty(&place);
        let data = side::object(self.repo, file.id)?.detach().data;
        if file.mode == LINK {
            fs::remove_file(&place).ok();
            let target =
                data.to_str().map_err(|_| Error::failed(format!("{path} leads to a name that is not UTF-8")))?;
            return gix::fs::symlink::create(Path::new(target), &place).map_err(failed);
        }
        let mut content = Vec::new();
        let options = gix::filter::plumbing::pipeline::convert::to_worktree::Options::default();
        self.filters
            .convert_to_worktree(&data, path, options)
            .map_err(|error| Error::failed(format!("{path} cannot be converted: {error}")))?
            .read_to_end(&mut content)
            .map_err(failed)?;
        // A file is replaced by renaming a new one over it, which gets the mode of the old file.
        if old.is_some_and(|old| old.mode == LINK) {
            fs::remove_file(&place).ok();
        }
        // The repository could contain a link with any predictable name, and nothing must be written through a link. So the name of the
        // temporary file is random, and the file must not exist.
        let temporary = place.with_file_name(format!(".wharf-{:016x}", RandomState::new().build_hasher().finish()));
        let mut new = fs::File::create_new(&temporary).map_err(failed)?;
        let written = std::io::Write::write_all(&mut new, &content).and_then(|()| fs::rename(&temporary, &place));
        written.map_err(|error| {
            fs::remove_file(&temporary).ok();
            failed(error)
        })?;
        if file.mode & 0o111 != 0 && old.is_none_or(|old| old.mode != file.mode) {
            note.push_str(&format!("\n{path} has to be made executable by hand: chmod +x"));
        }
        Ok(())
    }
}
