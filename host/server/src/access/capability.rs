//! The trait that every kind of grant implements. Each kind is one file in `grants/`.

use std::path::PathBuf;

use anyhow::{Result, bail};

/// Makes a path of the config absolute.
pub type Absolute<'a> = &'a dyn Fn(&str) -> Result<PathBuf>;

/// A kind of grant.
pub trait Capability: Sized {
    /// The type of its value in the config file.
    type Written;

    /// Reads the value from the config file.
    fn parse(written: Self::Written, absolute: Absolute<'_>) -> Result<Self>;

    /// Whether this grant allows something that `other` does not.
    fn exceeds(&self, other: &Self) -> bool;

    /// What this grant allows, a few words for each thing.
    fn describe(&self) -> Vec<String>;

    /// Prefixes of the imports that a component cannot use without this grant, each with the ability that it stands for.
    const IMPORTS: &'static [(&'static str, &'static str)];
}

/// What may be done with files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Files can be read and folders listed.
    Read,
    /// Files and folders can be changed, added and removed as well.
    ReadWrite,
}

impl Access {
    /// Parses `read` or `read-write`.
    pub fn parse(text: &str) -> Result<Self> {
        match text {
            "read" => Ok(Self::Read),
            "read-write" => Ok(Self::ReadWrite),
            other => bail!("`{other}` is neither \"read\" nor \"read-write\""),
        }
    }

    /// As the config spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::ReadWrite => "read-write",
        }
    }
}
