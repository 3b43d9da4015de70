//! The languages whose servers become plugins.

use std::{collections::BTreeMap, path::Path};

use serde::{Deserialize, Serialize};

/// The file name extensions of sources.
const PYTHON: [&str; 1] = ["py"];
const NODE: [&str; 6] = ["ts", "mts", "cts", "js", "mjs", "cjs"];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Language {
    Python,
    /// TypeScript and JavaScript.
    Node,
}

impl Language {
    /// Returns the language of a file, by its extension.
    pub fn of(file: &Path) -> Option<Self> {
        match () {
            () if has_extension(file, &PYTHON) => Some(Self::Python),
            () if has_extension(file, &NODE) => Some(Self::Node),
            () => None,
        }
    }

    /// Returns the programs that make plugins of its servers, and how to install each.
    pub fn needs(self) -> BTreeMap<String, String> {
        let needs: &[(&str, &str)] = match self {
            Self::Python => &[("python3", "Python 3.11 or newer, with its module venv: https://www.python.org")],
            Self::Node => &[
                ("node", "Node.js 20 or newer: https://nodejs.org"),
                ("npm", "it comes with Node.js: https://nodejs.org"),
            ],
        };
        needs.iter().map(|(program, how)| ((*program).to_owned(), (*how).to_owned())).collect()
    }

    /// Returns its name in a path.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Node => "node",
        }
    }

    /// Returns its name for a person.
    pub fn title(self) -> &'static str {
        match self {
            Self::Python => "Python",
            Self::Node => "TypeScript and JavaScript",
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

/// Whether a path has one of these extensions.
pub fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    path.extension().is_some_and(|own| extensions.iter().any(|extension| own == *extension))
}
