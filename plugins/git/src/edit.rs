//! The operations that change the index and the history: add, reset, commit, and new branches.

use std::fs;

use gix::{
    ObjectId, Repository,
    bstr::{BStr, BString, ByteSlice},
    dir::walk::EmissionMode,
    index::entry::{Flags, Mode, Stage, Stat},
    objs::tree::EntryKind,
};
use wharf_sdk::{Error, Result};

use crate::{
    changes, identity, names,
    refs::{self, Entry, Lock},
    side::{self, File, LINK, Side, Work},
    status,
};

/// The author of commits. Members that are not set come from the repository's config.
#[derive(Default)]
pub struct Author {
    pub name: Option<String>,
    pub email: Option<String>,
    /// Why the person's own git config could not be read.
    pub problem: Option<String>,
}

/// The lock of the index, which every git respects, and the index as read under the lock.
pub struct Locked {
    lock: Lock,
    pub index: gix::index::File,
}

impl Locked {
    pub fn take(repo: &Repository) -> Result<Self> {
        let lock = Lock::take(&repo.index_path())?;
        let index = match fs::metadata(repo.index_path()) {
            Ok(_) => repo.open_index()?,
            Err(_) => gix::index::File::from_state(gix::index::State::new(repo.object_hash()), repo.index_path()),
        };
        if index.is_sparse() {
            return Err(Error::failed(
                "the index is sparse, which this server cannot write; run git sparse-checkout disable",
            ));
        }
        Ok(Self { lock, index })
    }

    /// Sorts the entries and replaces the old index by this one.
    pub fn write(mut self) -> Result<()> {
        self.index.sort_entries();
        // The cached trees of folders would be wrong now.
        self.index.remove_tree();
        self.index.remove_resolve_undo();
        let options = gix::index::write::Options::default();
        let mut bytes = Vec::new();
        self.index.write_to(&mut bytes, options)?;
        self.lock.commit(&bytes)
    }

    /// Removes all versions of a file.
    pub fn remove(&mut self, path: &BStr) {
        self.index.remove_entries(|_, other, _| other == path);
    }

    pub fn put(&mut self, path: &BStr, file: &File, stat: Stat) {
        let mode = Mode::from_bits_truncate(file.mode);
        self.index.dangerously_push_entry(stat, file.id, Flags::empty(), mode, path);
    }
}

/// Returns the metadata by which the index detects changes of a file.
pub fn stat(work: &Work<'_>, path: &BStr) -> Stat {
    let data = path.to_str().ok().and_then(|name| work.look(name));
    let Some(data) = data else { return Stat::default() };
    let time =
        data.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok()).unwrap_or_default();
    let mtime = gix::index::entry::stat::Time { secs: time.as_secs() as u32, nsecs: time.subsec_nanos() };
    Stat { mtime, size: data.len() as u32, ..Stat::default() }
}

pub fn add(repo: &Repository, files: &[String]) -> Result<&'static str> {
    if files.is_empty() {
        return Err(Error::failed("No files provided to stage. Pass one or more paths, or ['.'] to stage everything."));
    }
    let mut locked = Locked::take(repo)?;
    let mut work = Work::new(repo)?;
    let root = repo.workdir().ok_or_else(|| Error::failed("there is no work tree"))?;
    let known: Vec<BString> = locked.index.entries().iter().map(|entry| entry.path(&locked.index).to_owned()).collect();
    let new = status::untracked(repo, &locked.index, EmissionMode::Matching)?;
    let mut wanted: Vec<BString> = Vec::new();
    for file in files {
        let path = root.join(file);
        let below = crate::open::below(root, &path)
            .ok_or_else(|| Error::failed(format!("Path '{file}' is outside the repository '{}'", root.display())))?;
        let matches = |path: &BString| matches(below.as_bytes(), path);
        let mut found: Vec<BString> = known.iter().chain(&new).filter(|path| matches(path)).cloned().collect();
        if found.is_empty() {
            if path.symlink_metadata().is_err() {
                return Err(Error::failed(format!("pathspec '{file}' did not match any files")));
            }
            if !path.is_dir() {
                return Err(Error::failed(format!("'{file}' is ignored by one of the .gitignore files")));
            }
        }
        wanted.append(&mut found);
    }
    wanted.sort();
    wanted.dedup();
    let mut changed = false;
    for path in &wanted {
        let path = path.as_bstr();
        if path.ends_with(b"/") {
            return Err(Error::failed(format!("{path} is another repository, which this server does not add")));
        }
        let entry = locked.index.entry_by_path_and_stage(path, Stage::Unconflicted).cloned();
        match work.file(path, entry.as_ref(), &locked.index)? {
            Some(file) => {
                names::check_known_path(path, file.mode == LINK)?;
                if entry.as_ref().is_some_and(|entry| (entry.id, entry.mode.bits()) == (file.id, file.mode)) {
                    continue;
                }
                if let Some(content) = &file.content {
                    repo.write_blob(content.as_slice())?;
                }
                // A file replaces the entries of a folder at its path, and the other way round.
                let mut folder = path.to_owned();
                folder.push(b'/');
                locked.index.remove_entries(|_, other, _| {
                    other == path
                        || other.starts_with(&folder)
                        || path.strip_prefix(other.as_bytes()).is_some_and(|rest| rest.starts_with(b"/"))
                });
                let stat = stat(&work, path);
                locked.put(path, &file, stat);
            }
            None => locked.remove(path),
        }
        locked.index.sort_entries();
        changed = true;
    }
    if !changed {
        return Ok("No changes were staged: the given paths had nothing new to stage. \
                   git_status shows what is modified or untracked.");
    }
    locked.write()?;
    Ok("Files staged successfully")
}

/// Whether a path is the wanted one, is below it, or matches it as a pattern.
fn matches(wanted: &[u8], path: &BString) -> bool {
    let wanted = wanted.strip_suffix(b"/").unwrap_or(wanted);
    let below = path.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"));
    let glob = wanted.iter().any(|byte| matches!(byte, b'*' | b'?' | b'['));
    wanted.is_empty()
        || below
        || glob && gix::glob::wildmatch(wanted.as_bstr(), path.as_bstr(), gix::glob::wildmatch::Mode::empty())
}

/// Resets the index to the tree of the last commit.
pub fn reset(repo: &Repository) -> Result<&'static str> {
    let tree = side::head_tree(repo)?.ok_or_else(|| Error::failed("there is no commit yet to reset to"))?;
    let mut locked = Locked::take(repo)?;
    let side = side::of_tree(repo, Some(tree))?;
    let before = side::of_index(&locked.index);
    locked
        .index
        .remove_entries(|_, path, entry| entry.stage() != Stage::Unconflicted || before.get(path) != side.get(path));
    for (path, file) in side.iter().filter(|(path, file)| before.get(*path) != Some(*file)) {
        locked.put(path.as_bstr(), file, Stat::default());
    }
    locked.write()?;
    Ok("All staged changes reset")
}

/// Creates a commit from the index.
pub fn commit(repo: &Repository, message: &str, author: &Author) -> Result<String> {
    let index = repo.index_or_empty()?;
    if index.entries().iter().any(|entry| entry.stage() != Stage::Unconflicted) {
        return Err(Error::failed("there are conflicts; resolve them and add the files with git_add first"));
    }
    let (head, side) = (side::head(repo)?, side::of_index(&index));
    let merging = fs::read_to_string(repo.git_dir().join("MERGE_HEAD")).ok();
    let same = match head {
        Some(_) => changes::between(repo, &side::of_head(repo)?, &side)?.is_empty(),
        None => side.is_empty(),
    };
    if same && merging.is_none() {
        return Err(Error::failed(
            "No changes staged for commit. Use git_add to stage changes first; git_status shows what is currently staged.",
        ));
    }
    if repo.git_dir().join("MERGE_AUTOSTASH").exists() {
        return Err(Error::failed("this merge has an autostash, which this server cannot apply; run git commit"));
    }
    let parents: Vec<ObjectId> = head
        .into_iter()
        .map(Ok)
        .chain(merging.iter().flat_map(|text| text.split_whitespace()).map(|id| Ok(ObjectId::from_hex(id.as_bytes())?)))
        .collect::<Result<_>>()?;
    let signature = signature(repo, author)?;
    let mut buffer = gix::date::parse::TimeBuf::default();
    let by = signature.to_ref(&mut buffer);
    let tree = tree(repo, &side)?;
    let id = repo.new_commit_as(by, by, message, tree, parents)?.id;
    let kind = if merging.is_some() {
        " (merge)"
    } else if head.is_none() {
        " (initial)"
    } else {
        ""
    };
    let entry = Entry { old: head, new: id, who: &signature, message: &format!("commit{kind}: {message}") };
    match repo.head_name()? {
        Some(branch) => {
            refs::update(repo, &branch.as_bstr().to_string(), &entry)?;
            refs::log_head(repo, &entry)?;
        }
        None => refs::set_head(repo, &id.to_string(), &entry)?,
    }
    if merging.is_some() {
        for name in ["MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "AUTO_MERGE"] {
            fs::remove_file(repo.git_dir().join(name)).ok();
        }
    }
    let hooks = ["pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"];
    let hooks: Vec<&str> =
        hooks.into_iter().filter(|hook| repo.common_dir().join("hooks").join(hook).exists()).collect();
    let note = match hooks.as_slice() {
        [] => String::new(),
        hooks => format!("\nHooks of the repository were not run: {}", hooks.join(", ")),
    };
    Ok(format!("Changes committed successfully with hash {id}{note}"))
}

fn signature(repo: &Repository, author: &Author) -> Result<gix::actor::Signature> {
    let config = repo.config_snapshot();
    let of = |given: &Option<String>, key: &str| {
        given
            .clone()
            .or_else(|| config.string(key).map(|value| value.to_string()))
            .filter(|value| !value.trim().is_empty())
    };
    match (of(&author.name, "user.name"), of(&author.email, "user.email")) {
        (Some(name), Some(email)) => Ok(gix::actor::Signature {
            name: name.into(),
            email: email.into(),
            time: gix::date::Time::now_local_or_utc(),
        }),
        _ => {
            let problem = author.problem.as_ref().map(|problem| format!(" ({problem})")).unwrap_or_default();
            Err(Error::failed(format!(
                "no author is configured{problem}: set user.name and user.email, in the repository or with `git config --global`, and \
                 start this server again"
            )))
        }
    }
}

/// Returns the author for reflogs, or a placeholder if no author is configured.
pub fn reflog_author(repo: &Repository) -> gix::actor::Signature {
    identity::author(repo).and_then(|author| signature(repo, &author)).unwrap_or_else(|_| gix::actor::Signature {
        name: "wharf".into(),
        email: "wharf@localhost".into(),
        time: gix::date::Time::now_local_or_utc(),
    })
}

/// Writes the trees of all files.
fn tree(repo: &Repository, side: &Side) -> Result<ObjectId> {
    let mut editor = repo.edit_tree(repo.empty_tree().id)?;
    for (path, file) in side {
        let kind = match file.mode {
            LINK => EntryKind::Link,
            side::MODULE => EntryKind::Commit,
            mode if mode & 0o111 != 0 => EntryKind::BlobExecutable,
            _ => EntryKind::Blob,
        };
        editor.upsert(path.as_bstr(), kind, file.id)?;
    }
    Ok(editor.write()?.detach())
}

/// Creates a branch at another branch or tag, or at the commit that is checked out.
pub fn create_branch(repo: &Repository, name: &str, base: Option<&str>) -> Result<String> {
    if name.starts_with('-') || base.is_some_and(|base| base.starts_with('-')) {
        return Err(Error::failed(format!("Invalid branch name: '{name}' - names cannot start with '-'")));
    }
    if !names::is_branch(name) {
        return Err(Error::failed(format!("'{}' is not a name that a branch may have", name.escape_debug())));
    }
    let (id, shown) = match base.filter(|base| !base.is_empty()) {
        Some(base) => {
            let found = ["refs/heads/", "refs/tags/", "refs/remotes/"]
                .iter()
                .find_map(|prefix| repo.try_find_reference(format!("{prefix}{base}").as_str()).ok().flatten());
            let mut found =
                found.ok_or_else(|| Error::failed(format!("there is no branch or tag '{base}' to begin at")))?;
            (found.peel_to_id()?.object()?.peel_to_kind(gix::objs::Kind::Commit)?.id, base.to_owned())
        }
        None => {
            let current = repo.head_name()?.ok_or_else(|| {
                Error::failed("HEAD is detached, so there is no current branch to branch from; pass base_branch")
            })?;
            let id = side::head(repo)?.ok_or_else(|| Error::failed("there is no commit yet to begin a branch at"))?;
            (id, current.shorten().to_string())
        }
    };
    let full = format!("refs/heads/{name}");
    if repo.try_find_reference(full.as_str())?.is_some() {
        return Err(Error::failed(format!("Cannot create branch '{name}': {full} already exists")));
    }
    let message = format!("branch: Created from {shown}");
    refs::update(repo, &full, &Entry { old: None, new: id, who: &reflog_author(repo), message: &message })?;
    Ok(format!("Created branch '{name}' from '{shown}'"))
}
