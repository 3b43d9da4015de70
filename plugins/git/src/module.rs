//! Submodules, and other repositories in the work tree: the commit that is checked out, and what differs from it.

use std::{fs, path::Path};

use gix::{
    ObjectId, Repository,
    bstr::{BStr, BString, ByteSlice},
    dir::walk::EmissionMode,
};
use wharf_sdk::{Error, Result};

use crate::{
    changes,
    open::{self, Open},
    side::{self, File, MODULE},
    untracked::untracked,
    work::{Unknown, Work, of_work},
};

/// How deep submodules of submodules are looked into.
const MAX_DEPTH: usize = 16;

/// What a submodule has that its commit does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dirty {
    /// Changes of files that git knows there.
    pub content: bool,
    /// Files that git does not know there.
    pub untracked: bool,
}

/// The places of repositories, and which of their changes are to be ignored.
pub struct Modules<'a> {
    repo: &'a Repository,
    open: &'a Open,
    depth: usize,
    settings: Option<gix::submodule::File>,
}

impl<'a> Modules<'a> {
    pub fn new(repo: &'a Repository, open: &'a Open, depth: usize) -> Result<Self> {
        Ok(Self { repo, open, depth, settings: repo.open_modules_file()? })
    }

    /// Returns the commit that is checked out in a folder: `Err` with the reason if it cannot be told; `None` if the folder is not a repository
    /// or has no commit.
    pub fn commit(&self, path: &BStr) -> Result<Option<ObjectId>> {
        match self.repository(path)? {
            Some(repo) => side::head(&repo),
            None => Ok(None),
        }
    }

    fn repository(&self, path: &BStr) -> Result<Option<Repository>> {
        let name = path.to_str().map_err(|_| Error::failed("its name is not UTF-8"))?;
        let place = self.repo.workdir().ok_or_else(|| Error::failed("there is no work tree"))?.join(name);
        match fs::symlink_metadata(place.join(".git")) {
            Ok(_) => Ok(Some(open::at(&place, &self.open.folders)?)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::failed(format!("its .git cannot be looked at: {error}"))),
        }
    }

    /// Returns the submodule as it is in the work tree, in comparison with the commit that the index has for it.
    pub fn file(&self, path: &BStr, known: ObjectId) -> Result<File> {
        let ignored = self.ignored(path)?;
        // A folder without a repository is a submodule that was not initialised, and counts as unchanged, as in git.
        let repo = if ignored == Ignored::All { None } else { self.repository(path)? };
        let Some(repo) = repo else { return Ok(File::stored(MODULE, known)) };
        let Some(commit) = side::head(&repo)? else { return Ok(File::stored(MODULE, known)) };
        let mut dirty = Dirty::default();
        if ignored != Ignored::Dirty {
            dirty = self.dirty(&repo)?;
            dirty.untracked &= ignored != Ignored::Untracked;
        }
        Ok(File { dirty, ..File::stored(MODULE, commit) })
    }

    fn dirty(&self, repo: &Repository) -> Result<Dirty> {
        if self.depth >= MAX_DEPTH {
            return Err(Error::failed(format!("submodules are nested more than {MAX_DEPTH} deep")));
        }
        let index = side::index(repo)?;
        let mut unknown = Unknown::default();
        let work = of_work(&mut Work::new(repo, self.open, self.depth + 1)?, &index, &mut unknown)?;
        let staged = side::of_index(&index);
        let mut dirty = Dirty {
            content: staged != side::of_head(repo)? || !crate::status::conflicts(&index).is_empty(),
            untracked: !untracked(repo, self.open, &index, EmissionMode::CollapseDirectory, &mut unknown)?.is_empty(),
        };
        for change in changes::plain(&side::of_index_beside(&index, &work), &work) {
            dirty.untracked |= change.new.as_ref().is_some_and(|(_, file)| file.dirty.untracked);
            match (change.old, change.new) {
                // Of a submodule in it, what git does not know there counts as such here too.
                (Some((_, old)), Some((_, new))) if old.id == new.id && !new.dirty.content => {
                    dirty.content |= old.mode != new.mode;
                }
                _ => dirty.content = true,
            }
        }
        match unknown.first() {
            Some((path, why)) if !dirty.content => {
                Err(Error::failed(format!("{} in it: {why}", side::shown(path.as_bstr()))))
            }
            _ => Ok(dirty),
        }
    }

    /// Returns which changes of a submodule the config or .gitmodules tells git to ignore.
    fn ignored(&self, path: &BStr) -> Result<Ignored> {
        let config = self.repo.config_snapshot();
        let (config, settings) = (config.plumbing(), self.settings.as_ref());
        let name: Option<BString> =
            settings.and_then(|settings| settings.name_by_path(path)).map(|name| name.to_owned());
        let own = name.as_ref().and_then(|name| {
            let of = |file: &gix::config::File| file.string_by("submodule", Some(name.as_bstr()), "ignore");
            of(config).or_else(|| settings.and_then(|settings| of(settings.config())))
        });
        let Some(value) = own.or_else(|| config.string("diff.ignoreSubmodules")) else { return Ok(Ignored::Nothing) };
        match value.to_str_lossy().as_ref() {
            "all" => Ok(Ignored::All),
            "dirty" => Ok(Ignored::Dirty),
            "untracked" => Ok(Ignored::Untracked),
            "none" => Ok(Ignored::Nothing),
            other => Err(Error::failed(format!("its setting 'ignore' is '{other}', which git does not know"))),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ignored {
    All,
    Dirty,
    Untracked,
    Nothing,
}

/// Whether a folder of the work tree has a repository of its own.
pub fn is_repository(place: &Path) -> bool {
    fs::symlink_metadata(place.join(".git")).is_ok()
}
