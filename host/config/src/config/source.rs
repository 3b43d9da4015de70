//! Where the component of a plugin is: in a file, or in the memory of an embedding program.

use std::{
    fmt,
    fs::File,
    hash::{Hash, Hasher},
    io::{self, Seek, Write},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use sha2::{Digest, Sha256};

use wharf_base::paths::Stamp;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PluginSource {
    File(PathBuf),
    Bytes(Component),
}

/// A component in memory. Components with the same bytes are equal.
#[derive(Clone)]
pub struct Component {
    digest: [u8; 32],
    bytes: Bytes,
    /// Its name, if it is built into the binary.
    built_in: Option<&'static str>,
}

impl Component {
    pub fn new(bytes: Bytes) -> Self {
        Self { digest: Sha256::digest(&bytes).into(), bytes, built_in: None }
    }

    pub fn built_in(name: &'static str, bytes: Bytes) -> Self {
        Self { built_in: Some(name), ..Self::new(bytes) }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.built_in {
            Some(name) => write!(f, "the built-in plugin {name}"),
            None => f.write_str("a component in memory"),
        }
    }
}

impl PartialEq for Component {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for Component {}

impl Hash for Component {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.digest.hash(state);
    }
}

impl fmt::Debug for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.bytes.len())
    }
}

/// The state of a source: a different state means that the source has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceState {
    File(Stamp),
    /// Bytes in memory never change.
    Fixed,
}

impl PluginSource {
    /// Whether the component is built into the binary.
    pub fn is_built_in(&self) -> bool {
        matches!(self, Self::Bytes(Component { built_in: Some(_), .. }))
    }

    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Bytes(_) => None,
        }
    }

    pub fn state(&self) -> io::Result<SourceState> {
        match self {
            Self::File(path) => Stamp::of(path).map(SourceState::File),
            Self::Bytes(_) => Ok(SourceState::Fixed),
        }
    }

    /// Opens a file that contains the component, positioned at its start.
    pub fn open(&self) -> io::Result<File> {
        match self {
            Self::File(path) => File::open(path),
            Self::Bytes(component) => {
                let mut file = tempfile::tempfile()?;
                file.write_all(&component.bytes)?;
                file.rewind()?;
                Ok(file)
            }
        }
    }
}

impl fmt::Display for PluginSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Bytes(component) => component.fmt(f),
        }
    }
}
