//! One side of a comparison: all files of a tree or of the index. Those of the work tree are in `work`.

use std::{collections::BTreeMap, fs, rc::Rc};

use gix::{
    ObjectId, Repository,
    bstr::{BStr, BString, ByteSlice},
    index::{
        File as Index, State,
        entry::{Flags, Mode, Stage, Stat},
    },
};
use wharf_sdk::{Error, Result};

use crate::module::Dirty;

pub const FILE: u32 = 0o100_644;
pub const LINK: u32 = 0o120_000;
pub const MODULE: u32 = 0o160_000;

#[derive(Clone, Debug)]
pub struct File {
    pub mode: u32,
    pub id: ObjectId,
    /// The content, if it is not in the object database.
    pub content: Option<Rc<Vec<u8>>>,
    /// What a submodule of the work tree has that its commit does not have.
    pub dirty: Dirty,
}

impl PartialEq for File {
    fn eq(&self, other: &Self) -> bool {
        (self.mode, self.id, self.dirty) == (other.mode, other.id, other.dirty)
    }
}

impl File {
    /// A file whose content is in the object database, or the commit of a submodule.
    pub fn stored(mode: u32, id: ObjectId) -> Self {
        Self { mode, id, content: None, dirty: Dirty::default() }
    }

    pub fn bytes(&self, repo: &Repository) -> Result<Rc<Vec<u8>>> {
        if let Some(content) = &self.content {
            return Ok(Rc::clone(content));
        }
        if self.mode == MODULE {
            let dirty = if self.dirty.content { "-dirty" } else { "" };
            return Ok(Rc::new(format!("Subproject commit {}{dirty}\n", self.id).into_bytes()));
        }
        Ok(Rc::new(object(repo, self.id)?.detach().data))
    }
}

pub type Side = BTreeMap<BString, File>;

/// Returns all files of a tree; `None` is the empty tree before the first commit.
pub fn of_tree(repo: &Repository, tree: Option<ObjectId>) -> Result<Side> {
    let mut side = Side::new();
    if let Some(tree) = tree {
        walk(repo, tree, &BString::default(), &mut side)?;
    }
    Ok(side)
}

fn walk(repo: &Repository, tree: ObjectId, at: &BString, side: &mut Side) -> Result<()> {
    let tree = object(repo, tree)?.try_into_tree()?;
    for entry in tree.iter() {
        let entry = entry?;
        let mut path = at.clone();
        path.extend_from_slice(entry.filename().as_bytes());
        if entry.mode().is_tree() {
            path.push(b'/');
            walk(repo, entry.object_id(), &path, side)?;
        } else {
            side.insert(path, File::stored(mode(entry.mode().value()), entry.object_id()));
        }
    }
    Ok(())
}

/// Normalizes the mode of a file. Old programs wrote other modes.
fn mode(mode: u16) -> u32 {
    match u32::from(mode) {
        file if file & 0o170_000 == 0o100_000 => FILE | if file & 0o100 != 0 { 0o111 } else { 0 },
        other => other,
    }
}

/// Returns the tree of HEAD.
pub fn of_head(repo: &Repository) -> Result<Side> {
    of_tree(repo, head_tree(repo)?)
}

pub fn head_tree(repo: &Repository) -> Result<Option<ObjectId>> {
    match head(repo)? {
        Some(commit) => Ok(Some(repo.find_commit(commit)?.tree_id()?.detach())),
        None => Ok(None),
    }
}

/// Returns the commit of HEAD; `None` before the first commit.
pub fn head(repo: &Repository) -> Result<Option<ObjectId>> {
    Ok(repo.head()?.id().map(|id| id.detach()))
}

/// The flags of a file that a sparse checkout leaves out of the work tree.
pub const AWAY: Flags = Flags::SKIP_WORKTREE.union(Flags::EXTENDED);

/// Returns the index, with an entry for each file; it is empty before the first file is added.
pub fn index(repo: &Repository) -> Result<Index> {
    let index = match fs::metadata(repo.index_path()) {
        Ok(_) => repo.open_index()?,
        Err(_) => Index::from_state(State::new(repo.object_hash()), repo.index_path()),
    };
    if !index.is_sparse() {
        return Ok(index);
    }
    // A sparse index has folders in the place of the files that are not checked out. Git reads it as if the files were there, too, and
    // makes a sparse one again of the index that is written here.
    let mut whole = State::new(index.object_hash());
    whole.set_timestamp(index.timestamp());
    for entry in index.entries() {
        let path = entry.path(&index);
        if !entry.mode.is_sparse() {
            whole.dangerously_push_entry(entry.stat, entry.id, entry.flags, entry.mode, path);
            continue;
        }
        let mut below = Side::new();
        walk(repo, entry.id, &path.to_owned(), &mut below)?;
        for (path, file) in below {
            let mode = Mode::from_bits_truncate(file.mode);
            whole.dangerously_push_entry(Stat::default(), file.id, AWAY, mode, path.as_bstr());
        }
    }
    whole.sort_entries();
    Ok(Index::from_state(whole, repo.index_path()))
}

/// Returns all files of the index that are not in conflict. Those that are only intended to be added are not in it yet.
pub fn of_index(index: &State) -> Side {
    let entries = index.entries().iter().filter(|entry| entry.stage() == Stage::Unconflicted && !is_intended(entry));
    entries.map(|entry| (entry.path(index).to_owned(), File::stored(entry.mode.bits(), entry.id))).collect()
}

/// Returns the side of the index that the work tree is compared with. An intended file that does not exist counts as deleted.
pub fn of_index_beside(index: &State, work: &Side) -> Side {
    let mut side = of_index(index);
    for entry in index.entries().iter().filter(|entry| is_intended(entry)) {
        let path = entry.path(index);
        if !work.contains_key(path) {
            side.insert(path.to_owned(), File::stored(entry.mode.bits(), entry.id));
        }
    }
    side
}

/// Whether an entry announces a file whose content is not in the index: `git add --intent-to-add`.
pub fn is_intended(entry: &gix::index::Entry) -> bool {
    entry.flags.contains(Flags::INTENT_TO_ADD)
}

/// Returns the object with an id. Says why it is missing if the repository is not complete by design.
pub fn object(repo: &Repository, id: ObjectId) -> Result<gix::Object<'_>> {
    if let Some(object) = repo.try_find_object(id)? {
        return Ok(object);
    }
    let why = if is_partial(repo) {
        "this clone is partial: git downloads missing objects when it needs them, and this server does not"
    } else if repo.is_shallow()? {
        "this clone is shallow: it has only a part of the history"
    } else {
        "the repository is damaged; run git fsck"
    };
    Err(Error::failed(format!("the object {id} is not in this repository: {why}")))
}

fn is_partial(repo: &Repository) -> bool {
    let config = repo.config_snapshot();
    let promisor = |section: gix::config::file::SectionRef<'_>| section.value("promisor").is_some();
    config.string("extensions.partialClone").is_some()
        || config.plumbing().sections_by_name("remote").into_iter().flatten().any(promisor)
}

/// Returns the parents of a commit that are in this repository: none at the boundary of a shallow clone.
pub fn parents(repo: &Repository, commit: &gix::Commit<'_>) -> Result<Vec<ObjectId>> {
    match is_boundary(repo, commit.id)? {
        true => Ok(Vec::new()),
        false => Ok(commit.parent_ids().map(|id| id.detach()).collect()),
    }
}

/// Whether a commit has parents that a shallow clone does not have.
pub fn is_boundary(repo: &Repository, commit: ObjectId) -> Result<bool> {
    Ok(repo.shallow_commits()?.is_some_and(|commits| commits.contains(&commit)))
}

/// Formats a path like git: in quotes with escapes if it has non-ASCII or control characters.
pub fn shown(path: &BStr) -> String {
    let plain = |byte: &u8| (b' '..0x7f).contains(byte) && !matches!(byte, b'"' | b'\\');
    if path.iter().all(plain) {
        return path.to_string();
    }
    let mut quoted = String::from('"');
    for byte in path.iter() {
        match byte {
            b'\t' => quoted.push_str("\\t"),
            b'\n' => quoted.push_str("\\n"),
            b'\r' => quoted.push_str("\\r"),
            b'"' | b'\\' => quoted.extend(['\\', char::from(*byte)]),
            byte if plain(byte) => quoted.push(char::from(*byte)),
            byte => quoted.push_str(&format!("\\{byte:03o}")),
        }
    }
    quoted.push('"');
    quoted
}

/// Returns a path as it is, or like git if it is not UTF-8.
pub fn plain(path: &BStr) -> String {
    path.to_str().map_or_else(|_| shown(path), str::to_owned)
}

/// Returns a path relative to a folder of the work tree. A folder has a slash at its end; the top is the empty path.
pub fn relative(folder: &BStr, path: &BStr) -> BString {
    let mut common = 0;
    for (at, (one, other)) in folder.iter().zip(path.iter()).enumerate() {
        if one != other {
            break;
        }
        if *one == b'/' {
            common = at + 1;
        }
    }
    let (above, below) = (folder.get(common..).unwrap_or_default(), path.get(common..).unwrap_or_default());
    let mut relative = BString::from("../".repeat(above.iter().filter(|byte| **byte == b'/').count()));
    relative.extend_from_slice(below);
    match relative.is_empty() {
        true => "./".into(),
        false => relative,
    }
}
