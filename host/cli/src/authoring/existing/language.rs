//! The languages whose servers become plugins.

use std::{collections::BTreeMap, path::Path};

use serde::{Deserialize, Serialize};

use wharf_config::config::{self, has_extension};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
