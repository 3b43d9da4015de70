//! What every kind of grant has to answer. One kind is one file in `grants/`.

use std::path::PathBuf;

use anyhow::{Result, bail};

/// Makes a path of the config absolute.
pub type Absolute<'a> = &'a dyn Fn(&str) -> Result<PathBuf>;

/// What every kind of grant answers.
pub trait Capability: Sized {
    /// The value of its key in the file.
    type Written;

    /// Reads what the file says.
    fn parse(written: Self::Written, absolute: Absolute<'_>) -> Result<Self>;

    /// Whether it allows something that `other` does not.
    fn exceeds(&self, other: &Self) -> bool;

    /// What it allows, a few words for each thing.
    fn describe(&self) -> Vec<String>;

    /// Beginnings of the names of imports that are of no use without it, and what they are for.
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
    /// From `read` or `read-write`.
    pub fn parse(text: &str) -> Result<Self> {
        match text {
            "read" => Ok(Self::Read),
            "read-write" => Ok(Self::ReadWrite),
            other => bail!("`{other}` is neither \"read\" nor \"read-write\""),
        }
    }

    /// As the config has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::ReadWrite => "read-write",
        }
    }
}
