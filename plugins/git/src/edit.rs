//! The operations that change the index and the history: add, reset, commit, and new branches.

use std::{collections::BTreeSet, fs, path::Path};

use gix::{
    ObjectId, Repository,
    bstr::{BStr, BString, ByteSlice},
    dir::walk::EmissionMode,
    index::entry::{Flags, Mode, Stage, Stat},
    objs::tree::EntryKind,
};
use wharf_sdk::{Error, Result};

use crate::{
    changes, names,
    open::Place,
    refs::{self, Entry, Lock},
    revision,
    side::{self, FILE, File, LINK, MODULE, Side},
    state, unrun,
    untracked::untracked,
    work::{Found, Unknown, Work},
};

/// The author of commits, as far as it is known.
pub struct Author {
    pub name: Option<String>,
    pub email: Option<String>,
}

/// The lock of the index, which every git respects, and the index as read under the lock.
pub struct Locked {
    lock: Lock,
    pub index: gix::index::File,
}

impl Locked {
    pub fn take(repo: &Repository) -> Result<Self> {
        let lock = Lock::take(&repo.index_path())?;
        Ok(Self { index: side::index(repo)?, lock })
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

    /// Puts a file that is not in the work tree, because the checkout is sparse.
    pub fn put_away(&mut self, path: &BStr, file: &File) {
        let mode = Mode::from_bits_truncate(file.mode);
        self.index.dangerously_push_entry(Stat::default(), file.id, side::AWAY, mode, path);
    }
}

/// What is said about conflicts, by the commit and by the checkout.
pub const UNMERGED: &str = "Committing and switching branches are not possible because you have unmerged files; resolve the conflicts and \
                            add the files with git_add first";

/// Returns the metadata by which the index detects changes of a file.
pub fn stat(work: &Work<'_>, path: &BStr) -> Stat {
    let data = path.to_str().ok().and_then(|name| work.look(name).ok().flatten());
    let Some(data) = data else { return Stat::default() };
    let time =
        data.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok()).unwrap_or_default();
    let mtime = gix::index::entry::stat::Time { secs: time.as_secs() as u32, nsecs: time.subsec_nanos() };
    Stat { mtime, size: data.len() as u32, ..Stat::default() }
}

/// Adds files to the index. Their paths are relative to the folder that was named.
pub fn add(place: &Place, files: &[String]) -> Result<String> {
    if files.is_empty() {
        return Err(Error::failed("No files provided to stage. Pass one or more paths, or ['.'] to stage everything."));
    }
    let repo = &place.repo;
    let mut locked = Locked::take(repo)?;
    let mut work = Work::new(repo, &place.open, 0)?;
    let mut unknown = Unknown::default();
    let new = untracked(repo, &place.open, &locked.index, EmissionMode::Matching, &mut unknown)?;
    let wanted = wanted(place, &locked.index, &new, files, &mut unknown)?;
    let (mut changed, mut embedded, mut scripts) = (false, Vec::new(), Vec::new());
    for path in &wanted {
        // A repository in the work tree is listed as a folder.
        let is_repository = path.ends_with(b"/");
        let path = path.strip_suffix(b"/").unwrap_or(path).as_bstr();
        let entry = locked.index.entry_by_path_and_stage(path, Stage::Unconflicted).cloned();
        if entry.as_ref().is_some_and(|entry| entry.flags.contains(Flags::ASSUME_VALID)) {
            continue;
        }
        let file = match work.file(path, entry.as_ref(), &locked.index)? {
            Found::File(file) => Some(file),
            Found::Missing if is_repository => {
                return Err(Error::failed(format!("'{path}/' does not have a commit checked out")));
            }
            Found::Missing => None,
            // What is new or was named itself has to be added. Of what is known, the rest is.
            Found::Unknown(why)
                if entry.is_none() || files.iter().any(|file| place.path(file).is_some_and(|file| file == path)) =>
            {
                return Err(Error::failed(format!("{}: {why}", side::shown(path))));
            }
            Found::Unknown(why) => {
                unknown.add(path, why);
                continue;
            }
        };
        let Some(file) = file else {
            locked.remove(path);
            locked.index.sort_entries();
            changed = true;
            continue;
        };
        names::check_known_path(path, file.mode == LINK)?;
        let same = |entry: &gix::index::Entry| (entry.id, entry.mode.bits()) == (file.id, file.mode);
        if entry.as_ref().is_some_and(|entry| same(entry) && !side::is_intended(entry)) {
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
        let stat = if file.mode == MODULE { Stat::default() } else { stat(&work, path) };
        if file.mode == MODULE && is_repository {
            embedded.push(path.to_owned());
        }
        if entry.is_none() && file.mode == FILE && is_script(repo, &file) {
            scripts.push(path.to_string());
        }
        locked.put(path, &file, stat);
        locked.index.sort_entries();
        changed = true;
    }
    let mut text = String::new();
    for path in &embedded {
        text.push_str(&format!(
            "\nwarning: adding embedded git repository: {path}; only the id of its commit is staged, not its files"
        ));
    }
    if let Some(first) = scripts.first() {
        let more = if scripts.len() > 1 { format!(" and {} more", scripts.len() - 1) } else { String::new() };
        text.push_str(&format!(
            "\nwarning: the mode of files cannot be seen here: new scripts are staged as not executable ({first}{more}). \
             In a terminal, `git update-index --chmod=+x PATH` changes that"
        ));
    }
    let missing = unknown.section("Not staged, even if changed", place.folder.as_bstr());
    if !missing.is_empty() {
        text.push_str(&format!("\n{}", missing.trim_end()));
    }
    if !changed {
        return Ok(format!(
            "No changes were staged: the given paths had nothing new to stage. git_status shows what is modified or untracked.{text}"
        ));
    }
    locked.write()?;
    Ok(format!("Files staged successfully{text}"))
}

/// Whether a file names the program that runs it, so that it is probably executable.
fn is_script(repo: &gix::Repository, file: &File) -> bool {
    match &file.content {
        Some(content) => content.starts_with(b"#!"),
        None => repo.find_blob(file.id).is_ok_and(|blob| blob.data.starts_with(b"#!")),
    }
}

/// Returns the paths of the index and of new files that the arguments of a call stand for, and keeps only them in `unknown`.
fn wanted(
    place: &Place,
    index: &gix::index::State,
    new: &[BString],
    files: &[String],
    unknown: &mut Unknown,
) -> Result<Vec<BString>> {
    let known: Vec<BString> = index.entries().iter().map(|entry| entry.path(index).to_owned()).collect();
    let modules: Vec<BString> = index
        .entries()
        .iter()
        .filter(|entry| entry.mode.bits() == MODULE)
        .map(|entry| entry.path(index).to_owned())
        .collect();
    let (mut wanted, mut asked): (Vec<BString>, Vec<BString>) = (Vec::new(), Vec::new());
    for file in files {
        let below = place.path(file).ok_or_else(|| {
            let top = place.repo.workdir().unwrap_or(Path::new("")).display();
            Error::failed(format!("Path '{file}' is outside the repository '{top}'"))
        })?;
        let inside = |module: &BString| {
            below.strip_prefix(module.as_slice()).is_some_and(|rest| rest.len() > 1 && rest.starts_with(b"/"))
        };
        if let Some(module) = modules.iter().find(|module| inside(module)) {
            return Err(Error::failed(format!(
                "Pathspec '{file}' is in submodule '{module}'; add it with the repo_path of the submodule"
            )));
        }
        let mut found: Vec<BString> = known.iter().chain(new).filter(|path| matches(&below, path)).cloned().collect();
        let named_unknown = unknown.paths().any(|path| matches(&below, path));
        if found.is_empty() && !named_unknown {
            let at = place.repo.workdir().map(|work| work.join(below.to_str_lossy().as_ref()));
            if !at.as_ref().is_some_and(|at| at.symlink_metadata().is_ok()) {
                return Err(Error::failed(format!("pathspec '{file}' did not match any files")));
            }
            if !at.is_some_and(|at| at.is_dir()) {
                return Err(Error::failed(format!(
                    "The following paths are ignored by one of your .gitignore files:\n{file}"
                )));
            }
        }
        wanted.append(&mut found);
        asked.push(below);
    }
    unknown.keep(|path| asked.iter().any(|below| matches(below, path)));
    wanted.sort();
    wanted.dedup();
    Ok(wanted)
}

/// Whether a path is the wanted one, is below it, or matches it as a pattern.
fn matches(wanted: &BString, path: &BString) -> bool {
    let wanted: &[u8] = wanted;
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
    let away: BTreeSet<BString> = {
        let entries = locked.index.entries().iter().filter(|entry| entry.flags.contains(Flags::SKIP_WORKTREE));
        entries.map(|entry| entry.path(&locked.index).to_owned()).collect()
    };
    locked.index.remove_entries(|_, path, entry| {
        entry.stage() != Stage::Unconflicted || before.get(path) != side.get(path) || side::is_intended(entry)
    });
    for (path, file) in side.iter().filter(|(path, file)| before.get(*path) != Some(*file)) {
        match away.contains(path) {
            true => locked.put_away(path.as_bstr(), file),
            false => locked.put(path.as_bstr(), file, Stat::default()),
        }
    }
    locked.write()?;
    Ok("All staged changes reset")
}

/// Creates a commit from the index.
pub fn commit(repo: &Repository, message: &str, author: &Author) -> Result<String> {
    let index = side::index(repo)?;
    if index.entries().iter().any(|entry| entry.stage() != Stage::Unconflicted) {
        return Err(Error::failed(UNMERGED));
    }
    let (head, side) = (side::head(repo)?, side::of_index(&index));
    let merging = state::text(&repo.git_dir().join("MERGE_HEAD"))?;
    let same = match head {
        Some(_) => changes::between(repo, &side::of_head(repo)?, &side)?.is_empty(),
        None => side.is_empty(),
    };
    if same && merging.is_none() {
        return Err(Error::failed(
            "No changes staged for commit. Use git_add to stage changes first; git_status shows what is currently staged.",
        ));
    }
    if state::exists(&repo.git_dir().join("MERGE_AUTOSTASH"))? {
        return Err(Error::failed("this merge has an autostash, which this server cannot apply; run git commit"));
    }
    let parents: Vec<ObjectId> = head
        .into_iter()
        .map(Ok)
        .chain(merging.iter().flat_map(|text| text.split_whitespace()).map(|id| Ok(ObjectId::from_hex(id.as_bytes())?)))
        .collect::<Result<_>>()?;
    let signature = signature(author)
        .map_err(|error| Error::failed(format!("{}{}", crate::open::words(error), unrun::includes(repo))))?;
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
    let note = [unrun::hooks(repo, unrun::OF_COMMIT).as_str(), unrun::signing(repo), &unrun::includes(repo)].concat();
    Ok(format!("Changes committed successfully with hash {id}{note}"))
}

fn signature(author: &Author) -> Result<gix::actor::Signature> {
    match (&author.name, &author.email) {
        (Some(name), Some(email)) => Ok(gix::actor::Signature {
            name: name.as_str().into(),
            email: email.as_str().into(),
            time: gix::date::Time::now_local_or_utc(),
        }),
        _ => Err(Error::failed(
            "no author is configured: set user.name and user.email, in the repository or with `git config --global`, and start this \
             server again; if they are set, its log says why they were not read",
        )),
    }
}

/// Returns the author for reflogs, or a placeholder if no author is configured.
pub fn reflog_author(author: &Author) -> gix::actor::Signature {
    signature(author).unwrap_or_else(|_| gix::actor::Signature {
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
            MODULE => EntryKind::Commit,
            mode if mode & 0o111 != 0 => EntryKind::BlobExecutable,
            _ => EntryKind::Blob,
        };
        editor.upsert(path.as_bstr(), kind, file.id)?;
    }
    Ok(editor.write()?.detach())
}

/// Creates a branch at another branch or tag, or at the commit that is checked out.
pub fn create_branch(repo: &Repository, name: &str, base: Option<&str>, author: &Author) -> Result<String> {
    if name.starts_with('-') || base.is_some_and(|base| base.starts_with('-')) {
        return Err(Error::failed(format!("Invalid branch name: '{name}' - names cannot start with '-'")));
    }
    if !names::is_branch(name) {
        return Err(Error::failed(format!("'{}' is not a valid branch name", name.escape_debug())));
    }
    let (id, shown) = match base.filter(|base| !base.is_empty()) {
        Some(base) => {
            let mut found = None;
            for folder in ["refs/heads/", "refs/tags/", "refs/remotes/"] {
                if found.is_none() {
                    found = refs::find(repo, &format!("{folder}{base}"))?;
                }
            }
            let mut found = found.ok_or_else(|| {
                Error::failed(format!("not a valid object name: '{base}'; it is neither a branch nor a tag"))
            })?;
            (revision::peeled(repo, found.peel_to_id()?.detach(), gix::objs::Kind::Commit)?, base.to_owned())
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
    if refs::find(repo, &full)?.is_some() {
        return Err(Error::failed(format!("Cannot create branch '{name}': {full} already exists")));
    }
    let message = format!("branch: Created from {shown}");
    refs::update(repo, &full, &Entry { old: None, new: id, who: &reflog_author(author), message: &message })?;
    Ok(format!("Created branch '{name}' from '{shown}'"))
}
