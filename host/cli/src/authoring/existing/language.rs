//! The languages whose servers become plugins.

use std::path::Path;

use wharf_config::config::{self, has_extension};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    Python,
    /// TypeScript and JavaScript.
    Node,
}

impl Language {
    /// Returns the language of a file, by its extension.
    pub fn of(file: &Path) -> Option<Self> {
        match () {
            () if has_extension(file, &config::PYTHON) => Some(Self::Python),
            () if has_extension(file, &config::NODE) => Some(Self::Node),
            () => None,
        }
    }

    /// Returns the files that list the packages of a server.
    pub fn manifests(self) -> &'static [&'static str] {
        match self {
            Self::Python => &["pyproject.toml", "requirements.txt", "uv.lock"],
            Self::Node => &["package.json", "package-lock.json"],
        }
    }
}
