//! What an answer leaves out, and the notes that say so.

use std::path::Path;

use crate::{paths::odd_name, search::MAX_FILE_BYTES};

/// The maximum number of paths that a note names.
const MAX_NAMED: usize = 5;

/// What a list or a search has left out.
#[derive(Debug, Default)]
pub struct LeftOut {
    /// Why entries were ignored, and how many.
    git: usize,
    modules: usize,
    listed: usize,
    unreadable: Several,
    odd: usize,
    large: Several,
    binary: usize,
}

/// Why an entry is ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    Git,
    Modules,
    /// A `.gitignore` file names it.
    Listed,
}

#[derive(Debug, Default)]
struct Several {
    count: usize,
    first: Vec<String>,
}

impl Several {
    fn add(&mut self, text: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.len() < MAX_NAMED {
            self.first.push(text());
        }
    }

    fn names(&self) -> String {
        match self.count - self.first.len() {
            0 => self.first.join(", "),
            more => format!("{}, and {more} more", self.first.join(", ")),
        }
    }
}

impl LeftOut {
    pub fn ignored(&mut self, why: Why) {
        *match why {
            Why::Git => &mut self.git,
            Why::Modules => &mut self.modules,
            Why::Listed => &mut self.listed,
        } += 1;
    }

    /// Something could not be read. The error names its path.
    pub fn unreadable(&mut self, error: String) {
        self.unreadable.add(|| error);
    }

    pub fn too_large(&mut self, path: &Path) {
        self.large.add(|| path.display().to_string());
    }

    pub fn binary(&mut self) {
        self.binary += 1;
    }

    /// Counts an entry of a folder if its name cannot be used to open it.
    pub fn name(&mut self, folder: &Path, name: &str) {
        self.odd += usize::from(name.contains(char::REPLACEMENT_CHARACTER) && odd_name(&folder.join(name)));
    }

    /// Returns a sentence for each kind of thing that was left out.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let ignored: Vec<String> =
            [(self.git, "named .git"), (self.modules, "named node_modules"), (self.listed, "that .gitignore names")]
                .into_iter()
                .filter(|(count, _)| *count > 0)
                .map(|(count, which)| format!("{count} {which}"))
                .collect();
        if !ignored.is_empty() {
            notes.push(format!("Left out: {}. With includeIgnored they are here too.", ignored.join(", ")));
        }
        if self.unreadable.count > 0 {
            notes.push(format!("Could not be read: {}", self.unreadable.names()));
        }
        if self.large.count > 0 {
            notes.push(format!(
                "Not searched, because of more than {} MiB: {}",
                MAX_FILE_BYTES >> 20,
                self.large.names()
            ));
        }
        if self.binary > 0 {
            notes.push(format!("Not searched, because they are not text: {}", self.binary));
        }
        if self.odd > 0 {
            notes.push(format!(
                "Names that are not UTF-8: {}. U+FFFD stands in them for other bytes, and this server cannot open these files; rename them.",
                self.odd
            ));
        }
        notes
    }
}
