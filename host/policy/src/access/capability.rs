//! The trait that every kind of grant implements. Each kind is one file in `grants/`.

use std::path::PathBuf;

use anyhow::{Result, bail};

/// Makes a path of the config absolute.
pub type Absolute<'a> = &'a dyn Fn(&str) -> Result<PathBuf>;

/// A kind of grant.
pub trait Capability: Sized {
    /// The type of its value in the config file.
    type Raw;

    /// Reads the value from the config file.
    fn parse(written: Self::Raw, absolute: Absolute<'_>) -> Result<Self>;

    /// Whether this grant allows anything that `other` does not allow.
    fn exceeds(&self, other: &Self) -> bool;

    /// Describes what this grant allows, one short phrase for each permission.
    fn describe(&self) -> Vec<String>;

    /// The prefixes of the imports that are useless to a component without this grant, each with the name of the ability.
    const IMPORTS: &'static [(&'static str, &'static str)];
}

/// The kind of access to files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
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

    /// Returns the name in the config.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::ReadWrite => "read-write",
        }
    }
}
