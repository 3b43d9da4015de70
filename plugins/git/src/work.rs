//! The files of the work tree, in the form in which git would store them, and what cannot be told about them.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    fs,
    io::{ErrorKind, Read},
    path::Path,
    rc::Rc,
    time::UNIX_EPOCH,
};

use gix::{
    Repository,
    bstr::{BStr, BString, ByteSlice},
    index::entry::{Flags, Stage},
    objs::Kind,
};
use wharf_sdk::{Error, Result};

use crate::{
    module::{Modules, is_repository},
    open::Open,
    side::{FILE, File, LINK, MODULE, Side, shown},
};

/// The maximum number of paths that an answer names because they were not compared.
const MAX_NAMED: usize = 100;
/// U+FFFD, which stands in a name for what is not UTF-8.
pub const REPLACED: char = '\u{fffd}';

/// The paths that could not be looked at, with the reasons.
#[derive(Default)]
pub struct Unknown(BTreeMap<BString, String>);

impl Unknown {
    pub fn add(&mut self, path: &BStr, why: impl Into<String>) {
        self.0.insert(path.to_owned(), why.into());
    }

    pub fn first(&self) -> Option<(&BString, &String)> {
        self.0.first_key_value()
    }

    pub fn keep(&mut self, wanted: impl Fn(&BString) -> bool) {
        self.0.retain(|path, _| wanted(path));
    }

    pub fn paths(&self) -> impl Iterator<Item = &BString> {
        self.0.keys()
    }

    /// Returns a section that names the paths; it is empty if every path was compared. Each line ends in a line break.
    pub fn section(&self, title: &str, folder: &BStr) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let mut text = format!("{title}:\n");
        for (path, why) in self.0.iter().take(MAX_NAMED) {
            let path = crate::side::relative(folder, path.as_bstr());
            // A name with replaced bytes is not the name of the file, so its bytes would mislead.
            let name = match path.to_str() {
                Ok(name) if name.contains(REPLACED) => format!("{name:?}"),
                _ => shown(path.as_bstr()),
            };
            text.push_str(&format!("\t{name}: {why}\n"));
        }
        match self.0.len().saturating_sub(MAX_NAMED) {
            0 => {}
            more => text.push_str(&format!("\tand {more} more\n")),
        }
        text
    }
}

/// What stands in the work tree at a path.
pub enum Found {
    File(File),
    /// Neither a file, a link, nor a submodule.
    Missing,
    /// It cannot be told, for this reason.
    Unknown(String),
}

impl Found {
    /// Returns the file, or `None` if the path is free. What cannot be told is an error.
    pub fn known(self, path: &BStr) -> Result<Option<File>> {
        match self {
            Self::File(file) => Ok(Some(file)),
            Self::Missing => Ok(None),
            Self::Unknown(why) => Err(Error::failed(format!("{}: {why}", shown(path)))),
        }
    }
}

/// Returns the files of the index as they are in the work tree.
pub fn of_work(work: &mut Work<'_>, index: &gix::index::State, unknown: &mut Unknown) -> Result<Side> {
    let mut side = Side::new();
    for entry in index.entries() {
        // For a file in conflict, the work tree started from our version.
        if !matches!(entry.stage(), Stage::Unconflicted | Stage::Ours) {
            continue;
        }
        let path = entry.path(index);
        if entry.flags.contains(Flags::ASSUME_VALID) {
            side.insert(path.to_owned(), File::stored(entry.mode.bits(), entry.id));
            continue;
        }
        match work.file(path, Some(entry), index)? {
            Found::File(file) => {
                side.insert(path.to_owned(), file);
            }
            Found::Missing => {}
            Found::Unknown(why) => unknown.add(path, why),
        }
    }
    Ok(side)
}

/// Removes from both sides what is unknown of one of them, so that it does not count as different.
pub fn compared(mut sides: [Side; 2], unknown: &Unknown) -> [Side; 2] {
    for path in unknown.paths() {
        for side in &mut sides {
            side.remove(path);
        }
    }
    sides
}

/// Reads files of the work tree in the form in which git would store them.
pub struct Work<'a> {
    repo: &'a Repository,
    root: &'a Path,
    filters: gix::filter::Pipeline<'a>,
    attributes: gix::AttributeStack<'a>,
    wanted: gix::attrs::search::Outcome,
    pub modules: Modules<'a>,
}

impl<'a> Work<'a> {
    /// `open` has the folders in which submodules may be, and `depth` is the number of repositories around this one.
    pub fn new(repo: &'a Repository, open: &'a Open, depth: usize) -> Result<Self> {
        let root = repo.workdir().ok_or_else(|| Error::failed("there is no work tree"))?;
        let source = gix::worktree::stack::state::attributes::Source::WorktreeThenIdMapping;
        let attributes = repo.attributes_only(&*repo.index_or_empty()?, source)?;
        let wanted = attributes.selected_attribute_matches(["filter"]);
        let modules = Modules::new(repo, open, depth)?;
        Ok(Self { repo, root, filters: repo.filter_pipeline(None)?.0, attributes, wanted, modules })
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

    /// Returns what stands at a path. `entry` is its entry in the index: the content is not read if size and time are unchanged and the time
    /// is older than the index.
    pub fn file(&mut self, path: &BStr, entry: Option<&gix::index::Entry>, index: &gix::index::State) -> Result<Found> {
        let Ok(name) = path.to_str() else {
            return Ok(Found::Unknown("its name is not UTF-8, so this server cannot look at it".into()));
        };
        let data = match self.look(name) {
            Ok(Some(data)) => data,
            // What a sparse checkout leaves out is not deleted. If it is there nevertheless, it is a file like any other, as in git.
            Ok(None) => {
                return Ok(match entry.filter(|entry| entry.flags.contains(Flags::SKIP_WORKTREE)) {
                    Some(entry) => Found::File(File::stored(entry.mode.bits(), entry.id)),
                    None => Found::Missing,
                });
            }
            Err(why) => return Ok(Found::Unknown(why)),
        };
        if data.is_dir() {
            return Ok(self.folder(path, name, entry));
        }
        if !data.is_file() && !data.is_symlink() {
            return Ok(Found::Unknown("it is neither a file, nor a link, nor a folder".into()));
        }
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
            return Ok(Found::File(File::stored(mode, entry.id)));
        }
        if mode != LINK
            && let Some(filter) = self.filter(path)?
        {
            // Only the filter could tell whether the file changed.
            return Ok(Found::Unknown(format!(
                "it has to go through the filter {filter}, which is not run here; use git"
            )));
        }
        let content = match self.content(name, mode, index) {
            Ok(content) => content,
            Err(why) => return Ok(Found::Unknown(why)),
        };
        let id = gix::objs::compute_hash(self.repo.object_hash(), Kind::Blob, &content)?;
        let known = entry.is_some_and(|entry| entry.id == id && !crate::side::is_intended(entry));
        Ok(Found::File(File { content: (!known).then(|| Rc::new(content)), ..File::stored(mode, id) }))
    }

    /// Returns what a folder counts as: a submodule, or nothing.
    fn folder(&self, path: &BStr, name: &str, entry: Option<&gix::index::Entry>) -> Found {
        let found = match entry {
            Some(entry) if entry.mode.bits() == MODULE => self.modules.file(path, entry.id).map(Some),
            _ if is_repository(&self.root.join(name)) => {
                self.modules.commit(path).map(|commit| commit.map(|commit| File::stored(MODULE, commit)))
            }
            _ => Ok(None),
        };
        match found {
            Ok(Some(file)) => Found::File(file),
            Ok(None) => Found::Missing,
            Err(error) => Found::Unknown(format!("the submodule cannot be looked at: {}", crate::open::words(error))),
        }
    }

    /// Returns the content of a file as git would store it, or why it cannot be read.
    fn content(&mut self, name: &str, mode: u32, index: &gix::index::State) -> Result<Vec<u8>, String> {
        let place = self.root.join(name);
        let failed = |error: std::io::Error| format!("it cannot be read: {error}");
        if mode == LINK {
            let target = fs::read_link(&place).map_err(failed)?;
            return gix::path::into_bstr(Cow::Borrowed(target.as_path()))
                .map(|target| target.into_owned().into())
                .map_err(|_| "its target is not UTF-8".to_owned());
        }
        let file = fs::File::open(&place).map_err(failed)?;
        let mut content = Vec::new();
        let mut converted = self
            .filters
            .convert_to_git(file, Path::new(name), index)
            .map_err(|error| format!("it cannot be converted: {}", crate::open::reasons(&error)))?;
        converted.read_to_end(&mut content).map_err(failed)?;
        Ok(content)
    }

    /// Returns the metadata of what stands at a path, or why it cannot be told. What is behind a link in the place of a folder is not part of
    /// the work tree.
    pub fn look(&self, name: &str) -> Result<Option<fs::Metadata>, String> {
        let mut at = self.root.to_path_buf();
        let mut above = Path::new(name).parent().into_iter().flat_map(Path::components);
        if above.any(|part| {
            at.push(part);
            at.is_symlink()
        }) {
            return Ok(None);
        }
        match fs::symlink_metadata(self.root.join(name)) {
            Ok(data) => Ok(Some(data)),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(format!("it cannot be looked at: {error}")),
        }
    }
}

/// Whether size and time of a file are those in the index. If the index is not newer than the file, they do not tell.
fn unchanged(entry: &gix::index::Entry, data: &fs::Metadata, index: &gix::index::State) -> bool {
    let Some(time) = data.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok()) else { return false };
    let known = entry.stat.mtime;
    let same = u64::from(known.secs) == time.as_secs() && (known.nsecs == 0 || known.nsecs == time.subsec_nanos());
    let written = index.timestamp();
    let racy = match known.nsecs {
        0 => written.unix_seconds() <= i64::from(known.secs),
        nsecs => (written.unix_seconds(), written.nanoseconds()) <= (i64::from(known.secs), nsecs),
    };
    same && !racy && u64::from(entry.stat.size) == data.len()
}
