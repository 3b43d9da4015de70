//! What the person's own ignore file keeps out. It counts after the ignore files of the repository, which gix reads.

use gix::{
    AttributeStack, Repository,
    bstr::{BStr, ByteSlice},
    glob::pattern::Case,
    ignore::{Search, search::Ignore},
    index::entry::Mode,
    worktree::stack::state::ignore::Source,
};
use wharf_sdk::Result;

/// The patterns of an ignore file.
pub struct Ignored {
    patterns: Option<Search>,
    case: Case,
}

impl Ignored {
    /// `patterns` is the content of the file, if there is one.
    pub fn new(repo: &Repository, patterns: Option<String>) -> Result<Self> {
        let is_folded = repo.config_snapshot().boolean("core.ignoreCase").unwrap_or(false);
        let search = |patterns: String| -> Result<Search> {
            let mut search = Search::default();
            search.add_patterns_buffer(patterns.as_bytes(), "the person's", None, Ignore::default())?;
            Ok(search)
        };
        Ok(Self {
            patterns: patterns.filter(|patterns| !patterns.trim().is_empty()).map(search).transpose()?,
            case: if is_folded { Case::Fold } else { Case::Sensitive },
        })
    }

    /// Returns what tells whether a path is hidden; `None` if nothing is.
    pub fn hiding<'a>(&'a self, repo: &'a Repository, index: &gix::index::State) -> Result<Option<Hiding<'a>>> {
        let Some(patterns) = &self.patterns else { return Ok(None) };
        let own = repo.excludes(index, None, Source::WorktreeThenIdMappingIfNotSkipped)?;
        Ok(Some(Hiding { patterns, case: self.case, own }))
    }
}

/// Tells which paths the person's ignore file hides.
pub struct Hiding<'a> {
    patterns: &'a Search,
    case: Case,
    /// The ignore files of the repository, in which `!` takes back what the person's file says.
    own: AttributeStack<'a>,
}

impl Hiding<'_> {
    /// Whether a path or a folder above it is ignored. The path has no slash at its end.
    pub fn hides(&mut self, path: &BStr, is_folder: bool) -> bool {
        let above = path.find_iter("/").filter_map(|end| path.get(..end)).map(|folder| (folder.as_bstr(), true));
        above.chain([(path, is_folder)]).any(|(path, is_folder)| self.names(path, is_folder))
    }

    fn names(&mut self, path: &BStr, is_folder: bool) -> bool {
        let found = self.patterns.pattern_matching_relative_path(path, Some(is_folder), self.case);
        if !found.is_some_and(|found| !found.pattern.is_negative()) {
            return false;
        }
        let mode = if is_folder { Mode::DIR } else { Mode::FILE };
        let own = self.own.at_entry(path, Some(mode));
        // What is not a name here is not taken back.
        !own.is_ok_and(|own| own.matching_exclude_pattern().is_some_and(|own| own.pattern.is_negative()))
    }
}
