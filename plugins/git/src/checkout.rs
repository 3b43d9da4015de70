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
    index::entry::{Stage, Stat},
    objs::Kind,
};
use wharf_sdk::{Error, Result};

use crate::{
    edit::{Locked, reflog_author, stat},
    names,
    refs::{self, Entry},
    side::{self, File, LINK, MODULE, Side, Work, revision},
};

pub fn checkout(repo: &Repository, name: &str) -> Result<String> {
    let full = format!("refs/heads/{name}");
    let found = if names::is_branch(name) { repo.try_find_reference(full.as_str()).ok().flatten() } else { None };
    // A tag may have the name of a branch. HEAD follows the branch, so the files have to be those of the branch too.
    let (id, branch) = match found {
        Some(mut found) => (found.peel_to_id()?.object()?, Some(found.name().to_owned())),
        None => (revision(repo, name)?.object()?, None),
    };
    let id = id.peel_to_kind(Kind::Commit)?.id;
    let mut note = String::new();
    let head = side::head(repo)?;
    let mut locked = Locked::take(repo)?;
    if locked.index.entries().iter().any(|entry| entry.stage() != Stage::Unconflicted) {
        return Err(Error::failed("there are conflicts; resolve them and add the files with git_add first"));
    }
    let (old, new) = (side::of_head(repo)?, side::of_tree(repo, Some(repo.find_commit(id)?.tree_id()?.detach()))?);
    let index = side::of_index(&locked.index);
    let differing: Vec<BString> = {
        let paths = old.keys().chain(new.keys().filter(|path| !old.contains_key(*path)));
        paths.filter(|path| old.get(*path) != new.get(*path)).cloned().collect()
    };
    refuse(repo, &locked, &differing, &old, &new, &index)?;
    let mut writer = Writer::new(repo)?;
    for path in differing.iter().filter(|path| !new.contains_key(*path)) {
        writer.remove(path.as_bstr())?;
        locked.remove(path.as_bstr());
    }
    for path in &differing {
        let Some(file) = new.get(path) else { continue };
        if index.get(path) == Some(file) {
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
    refs::set_head(repo, &to, &Entry { old: head, new: id, who: &reflog_author(repo), message: &message })?;
    let text = match branch {
        Some(branch) => format!("Switched to branch '{}'", branch.shorten()),
        None => format!("HEAD is now detached at {}", id.to_hex_with_len(7)),
    };
    Ok(format!("{text}{note}"))
}

/// Fails if a file that the switch would change has local changes, or if an untracked file is in the place of a new one.
fn refuse(
    repo: &Repository,
    locked: &Locked,
    differing: &[BString],
    old: &Side,
    new: &Side,
    index: &Side,
) -> Result<()> {
    let mut work = Work::new(repo)?;
    let (mut changed, mut untracked) = (Vec::new(), Vec::new());
    for path in differing {
        let (was, staged, will) = (old.get(path), index.get(path), new.get(path));
        let entry = locked.index.entry_by_path_and_stage(path.as_bstr(), Stage::Unconflicted);
        // This is checked before anything is written, so that a failure leaves the work tree unchanged.
        if let Some(will) = will {
            names::check_path(path.as_bstr(), will.mode == LINK)?;
        }
        if staged.is_some_and(|file| file.mode == MODULE) || will.is_some_and(|file| file.mode == MODULE) {
            continue;
        }
        if will.is_some()
            && let Some(above) = in_the_way(repo, path, old)
        {
            untracked.push(above);
            continue;
        }
        if will.is_some()
            && let Some(filter) = work.filter(path.as_bstr())?
        {
            return Err(Error::failed(format!(
                "{path} has to go through the filter {filter}, which is not run here; use git"
            )));
        }
        let found = work.file(path.as_bstr(), entry, &locked.index)?;
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
    Ok(())
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
    fn new(repo: &'a Repository) -> Result<Self> {
        let root = repo.workdir().ok_or_else(|| Error::failed("there is no work tree"))?;
        Ok(Self { repo, root, filters: repo.filter_pipeline(None)?.0, work: Work::new(repo)? })
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
        if file.mode == MODULE {
            fs::create_dir(&place).ok();
            return Ok(());
        }
        let data = self.repo.find_object(file.id)?.detach().data;
        let failed = |error: std::io::Error| Error::failed(format!("{path} cannot be written: {error}"));
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
