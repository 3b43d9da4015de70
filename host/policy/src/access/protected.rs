//! What no plugin may change, and what no plugin may read.

use std::path::PathBuf;

use wharf_base::leading;

/// Files and trees that are protected from every plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Protected {
    /// What wharf executes or obeys: no plugin may write to these, or to the folders that lead to them.
    pub trusted: leading::Places,
    /// The files with secrets, which no plugin may read. They are in `trusted` too.
    pub secret: Vec<PathBuf>,
}

impl Protected {
    /// Protects a file, or all files in a folder if the last component is `*`.
    pub fn file(&mut self, path: impl Into<PathBuf>) {
        self.trusted.files.push(path.into());
    }

    pub fn files(&mut self, paths: impl IntoIterator<Item = PathBuf>) {
        self.trusted.files.extend(paths);
    }

    /// Protects a folder with everything that is below it.
    pub fn tree(&mut self, path: impl Into<PathBuf>) {
        self.trusted.trees.push(path.into());
    }

    pub fn secret(&mut self, path: PathBuf) {
        self.trusted.files.push(path.clone());
        self.secret.push(path);
    }

    pub fn and(&mut self, other: &Self) {
        self.trusted.files.extend_from_slice(&other.trusted.files);
        self.trusted.trees.extend_from_slice(&other.trusted.trees);
        self.secret.extend_from_slice(&other.secret);
    }

    /// Brings the paths into an order, each once, so that equal ones can be told.
    #[must_use]
    pub fn sorted(mut self) -> Self {
        for paths in [&mut self.trusted.files, &mut self.trusted.trees, &mut self.secret] {
            paths.sort();
            paths.dedup();
        }
        self
    }
}
