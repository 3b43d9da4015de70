//! The name of a published package: as npm, pip and uv take it, and as the commands of a build name it.

use std::fmt;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::language::Language;
use wharf_base::text::escaped;

/// A published package.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Package {
    pub language: Language,
    /// With the extras of a package in Python.
    pub name: String,
    pub version: Option<String>,
    /// The program of the package that is the server. None: the one that has the name of the package, else its first.
    pub program: Option<String>,
}

impl Package {
    /// Reads `npm:NAME[@VERSION]` or `pypi:NAME[==VERSION]`. None: the text is something else.
    pub fn parse(text: &str) -> Option<Result<Self>> {
        let (spec, program) = text.split_once('#').map_or((text, None), |(spec, program)| (spec, Some(program)));
        let package = match spec.split_once(':')? {
            ("npm", spec) => Self::npm(spec),
            ("pypi", spec) => Self::pypi(spec),
            _ => return None,
        };
        Some(package.and_then(|package| match program {
            Some(program) => package.with_program(program),
            None => Ok(package),
        }))
    }

    /// Reads the name of a package as npm takes it.
    pub fn npm(spec: &str) -> Result<Self> {
        let at = spec.get(1..).and_then(|rest| rest.find('@')).map_or(spec.len(), |at| at + 1);
        let (name, version) = spec.split_at_checked(at).unwrap_or((spec, ""));
        let version = version.strip_prefix('@');
        let parts: Vec<&str> = name.strip_prefix('@').unwrap_or(name).split('/').collect();
        let is_place = spec.contains(':') || name.starts_with(['.', '/', '~']);
        let is_repository = !name.starts_with('@') && parts.len() > 1;
        ensure!(
            !is_place && !is_repository,
            "{}: wharf takes packages of the npm registry only; of a repository or a folder, name the server's file: wharf run FOLDER/src/index.ts",
            escaped(spec)
        );
        let fits =
            |part: &&str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || "._~-".contains(c));
        let is_name = parts.len() == if name.starts_with('@') { 2 } else { 1 }
            && parts.iter().all(|part| fits(part) && !part.starts_with(['.', '-']));
        ensure!(is_name, "{}: not the name of a package", escaped(spec));
        let is_version = version.is_none_or(|one| {
            !one.is_empty() && one.chars().all(|c| c.is_ascii_alphanumeric() || ".-+^~*".contains(c))
        });
        ensure!(is_version, "{}: not a version of a package; write {name}@1.2.3, or no version", escaped(spec));
        Ok(Self { language: Language::Node, name: name.to_owned(), version: version.map(str::to_owned), program: None })
    }

    /// Reads the name of a package as pip and uv take it.
    pub fn pypi(spec: &str) -> Result<Self> {
        ensure!(
            !spec.starts_with(['.', '~']) && !spec.contains('/'),
            "{}: wharf takes packages of PyPI only; of a repository or a folder, name the server's file: wharf run FOLDER/server.py",
            escaped(spec)
        );
        let (name, version) = match spec.split_once("==").or_else(|| spec.split_once('@')) {
            Some((name, version)) => (name, Some(version)),
            None => (spec, None),
        };
        let (own, extras) = name.split_once('[').map_or((name, None), |(own, extras)| (own, Some(extras)));
        let fits = |text: &str, more: &str| {
            !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
        };
        let is_name = fits(own, "._-") && own.starts_with(|c: char| c.is_ascii_alphanumeric());
        let has_extras = extras.is_none_or(|all| all.strip_suffix(']').is_some_and(|all| fits(all, "._-,")));
        ensure!(is_name && has_extras, "{}: not the name of a package; write NAME or NAME==VERSION", escaped(spec));
        ensure!(
            version.is_none_or(|one| fits(one, ".!+_-")),
            "{}: not a version of a package; write {name}==1.2.3, or no version",
            escaped(spec)
        );
        let version = version.filter(|version| *version != "latest").map(str::to_owned);
        Ok(Self { language: Language::Python, name: name.to_owned(), version, program: None })
    }

    pub fn with_program(self, program: &str) -> Result<Self> {
        let fits = !program.is_empty() && program.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
        ensure!(fits && !program.starts_with('-'), "{}: not the name of a program in {}", escaped(program), self.name);
        Ok(Self { program: Some(program.to_owned()), ..self })
    }
}

/// As the commands of the build name it.
impl fmt::Display for Package {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (registry, sign) = match self.language {
            Language::Python => ("pypi", "=="),
            Language::Node => ("npm", "@"),
        };
        write!(f, "{registry}:{}", self.name)?;
        self.version.iter().try_for_each(|version| write!(f, "{sign}{version}"))?;
        self.program.iter().try_for_each(|program| write!(f, "#{program}"))
    }
}
