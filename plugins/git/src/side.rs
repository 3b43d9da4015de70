//! One side of a comparison: all files of a tree, of the index, or of the work tree.

use std::{collections::BTreeMap, fs, io::Read, path::Path, rc::Rc, time::UNIX_EPOCH};

use gix::{
    ObjectId, Repository,
    bstr::{BStr, BString, ByteSlice},
    index::entry::{Flags, Stage},
    objs::Kind,
};
use wharf_sdk::{Error, Result};

pub const FILE: u32 = 0o100_644;
pub const LINK: u32 = 0o120_000;
pub const MODULE: u32 = 0o160_000;

#[derive(Clone, Debug)]
pub struct File {
    pub mode: u32,
    pub id: ObjectId,
    /// The content, if it is not in the object database.
    pub content: Option<Rc<Vec<u8>>>,
}

impl PartialEq for File {
    fn eq(&self, other: &Self) -> bool {
        (self.mode, self.id) == (other.mode, other.id)
    }
}

impl File {
    pub fn bytes(&self, repo: &Repository) -> Result<Rc<Vec<u8>>> {
        if let Some(content) = &self.content {
            return Ok(Rc::clone(content));
        }
        if self.mode == MODULE {
            return Ok(Rc::new(format!("Subproject commit {}\n", self.id).into_bytes()));
        }
        Ok(Rc::new(repo.find_object(self.id)?.detach().data))
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
    let tree = repo.find_tree(tree)?;
    for entry in tree.iter() {
        let entry = entry?;
        let mut path = at.clone();
        path.extend_from_slice(entry.filename().as_bytes());
        if entry.mode().is_tree() {
            path.push(b'/');
            walk(repo, entry.object_id(), &path, side)?;
        } else {
            side.insert(path, File { mode: mode(entry.mode().value()), id: entry.object_id(), content: None });
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

/// Returns all files of the index that are not in conflict.
pub fn of_index(index: &gix::index::State) -> Side {
    let entries = index.entries().iter().filter(|entry| entry.stage() == Stage::Unconflicted);
    let file = |entry: &gix::index::Entry| File { mode: entry.mode.bits(), id: entry.id, content: None };
    entries.map(|entry| (entry.path(index).to_owned(), file(entry))).collect()
}

/// Returns the files of the index as they are in the work tree.
pub fn of_work(repo: &Repository, index: &gix::index::State) -> Result<Side> {
    let mut side = Side::new();
    let mut work = Work::new(repo)?;
    for entry in index.entries() {
        // For a file in conflict, the work tree started from our version.
        if !matches!(entry.stage(), Stage::Unconflicted | Stage::Ours) {
            continue;
        }
        let path = entry.path(index);
        let known = File { mode: entry.mode.bits(), id: entry.id, content: None };
        if known.mode == MODULE || entry.flags.intersects(Flags::SKIP_WORKTREE | Flags::ASSUME_VALID) {
            side.insert(path.to_owned(), known);
            continue;
        }
        if let Some(file) = work.file(path, Some(entry), index)? {
            side.insert(path.to_owned(), file);
        }
    }
    Ok(side)
}

/// Reads files of the work tree in the form in which git would store them.
pub struct Work<'a> {
    repo: &'a Repository,
    root: &'a Path,
    filters: gix::filter::Pipeline<'a>,
    attributes: gix::AttributeStack<'a>,
    wanted: gix::attrs::search::Outcome,
}

impl<'a> Work<'a> {
    pub fn new(repo: &'a Repository) -> Result<Self> {
        let root = repo.workdir().ok_or_else(|| Error::failed("there is no work tree"))?;
        let source = gix::worktree::stack::state::attributes::Source::WorktreeThenIdMapping;
        let attributes = repo.attributes_only(&*repo.index_or_empty()?, source)?;
        let wanted = attributes.selected_attribute_matches(["filter"]);
        Ok(Self { repo, root, filters: repo.filter_pipeline(None)?.0, attributes, wanted })
    }

    /// Returns the name of the filter that would have to convert a file, such as git-lfs. Filters are not run here.
    pub fn filter(&mut self, path: &BStr) -> Result<Option<String>> {
        let found = self.attributes.at_entry(path, None)?.matching_attributes(&mut self.wanted);
        let named = self.wanted.iter_selected().next().map(|given| given.assignment.state);
        Ok(match named {
            Some(gix::attrs::StateRef::Value(name)) if found => Some(name.as_bstr().to_string()),
            _ => None,
        })
    }

    /// Returns a file, if it exists. `entry` is its entry in the index: the content is not read if size and time are unchanged and the time
    /// is older than the index.
    pub fn file(
        &mut self,
        path: &BStr,
        entry: Option<&gix::index::Entry>,
        index: &gix::index::State,
    ) -> Result<Option<File>> {
        let name = path.to_str().map_err(|_| Error::failed(format!("the name {path} is not UTF-8")))?;
        let place = self.root.join(name);
        let Some(data) = self.look(name) else { return Ok(None) };
        let mode = match entry.map(|entry| entry.mode.bits()) {
            _ if data.is_symlink() => LINK,
            // WASI does not tell whether a file is executable, so the mode in the index is used.
            Some(mode) if mode & 0o170_000 == 0o100_000 => mode,
            _ => FILE,
        };
        if let Some(entry) = entry
            && entry.mode.bits() == mode
            && unchanged(entry, &data, index)
        {
            return Ok(Some(File { mode, id: entry.id, content: None }));
        }
        if mode != LINK
            && let Some(filter) = self.filter(path)?
        {
            // Only the filter could tell whether the file changed.
            return entry.map(|entry| Some(File { mode, id: entry.id, content: None })).ok_or_else(|| {
                Error::failed(format!(
                    "{name} has to go through the filter {filter}, which is not run here; add it with git"
                ))
            });
        }
        let failed = |error: std::io::Error| Error::failed(format!("{name} cannot be read: {error}"));
        let content = if mode == LINK {
            fs::read_link(&place).map_err(failed)?.to_string_lossy().into_owned().into_bytes()
        } else {
            let file = fs::File::open(&place).map_err(failed)?;
            let mut content = Vec::new();
            let mut converted = self
                .filters
                .convert_to_git(file, Path::new(name), index)
                .map_err(|error| Error::failed(format!("{name} cannot be converted: {error}")))?;
            converted.read_to_end(&mut content).map_err(failed)?;
            content
        };
        let id = gix::objs::compute_hash(self.repo.object_hash(), Kind::Blob, &content)?;
        let known = entry.is_some_and(|entry| entry.id == id);
        Ok(Some(File { mode, id, content: (!known).then(|| Rc::new(content)) }))
    }

    /// Returns the metadata of a file or link. Files behind a link in the place of a folder are not part of the work tree.
    pub fn look(&self, name: &str) -> Option<fs::Metadata> {
        let mut at = self.root.to_path_buf();
        let mut above = Path::new(name).parent().into_iter().flat_map(Path::components);
        if above.any(|part| {
            at.push(part);
            at.is_symlink()
        }) {
            return None;
        }
        fs::symlink_metadata(self.root.join(name)).ok().filter(|data| !data.is_dir())
    }
}

fn unchanged(entry: &gix::index::Entry, data: &fs::Metadata, index: &gix::index::State) -> bool {
    let Some(time) = data.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok()) else { return false };
    let known = entry.stat.mtime;
    let same = u64::from(known.secs) == time.as_secs() && (known.nsecs == 0 || known.nsecs == time.subsec_nanos());
    let racy = index.timestamp().unix_seconds() <= i64::from(known.secs);
    same && !racy && u64::from(entry.stat.size) == data.len()
}

/// Returns the commit, tree, blob or tag that a text names.
pub fn revision<'a>(repo: &'a Repository, text: &str) -> Result<gix::Id<'a>> {
    if text.starts_with('-') {
        return Err(Error::failed(format!("'{text}' cannot start with '-'")));
    }
    repo.rev_parse_single(text.as_bytes().as_bstr())
        .map_err(|error| Error::failed(format!("'{text}' does not name an object: {}", crate::open::reasons(&error))))
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
