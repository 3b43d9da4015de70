//! Where the component of a plugin is: in a file, in the store, in the cache of those that wharf makes from existing servers, or in the memory of
//! an embedding program.

use std::{
    borrow::Cow,
    fmt,
    fs::File,
    hash::{Hash, Hasher},
    io::{self, Seek, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Result;
use bytes::Bytes;
use miniz_oxide::inflate::decompress_to_vec_with_limit;
use sha2::Sha256;

use super::{existing::ExistingServer, sources::PublishedPlugin};
use wharf_base::{digest::Digest, paths::Stamp};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PluginSource {
    File(PathBuf),
    /// In the store, by the digest in `wharf.lock`.
    Published(Arc<PublishedPlugin>),
    /// Made from an existing MCP server, in the cache.
    Server(Arc<ExistingServer>),
    Bytes(Component),
}

/// A component in memory. Components with the same bytes are equal.
#[derive(Clone)]
pub struct Component {
    digest: Digest,
    bytes: Held,
}

#[derive(Clone)]
enum Held {
    Plain(Bytes),
    BuiltIn(&'static BuiltIn),
}

/// A plugin in the program. It is inflated only when it is read, which it need not be once its compiled code is in the cache.
#[derive(Debug)]
pub struct BuiltIn {
    pub name: &'static str,
    /// The SHA-256 of the component.
    pub digest: [u8; 32],
    /// The component, [deflated](https://www.rfc-editor.org/rfc/rfc1951).
    pub deflated: &'static [u8],
}

/// The limit for inflating a component, which those in the program stay below.
const MAX_INFLATED_BYTES: usize = 64 << 20;

impl Component {
    pub fn new(bytes: Bytes) -> Self {
        let digest: [u8; 32] = <Sha256 as sha2::Digest>::digest(&bytes).into();
        Self { digest: digest.into(), bytes: Held::Plain(bytes) }
    }

    pub fn built_in(built_in: &'static BuiltIn) -> Self {
        Self { digest: built_in.digest.into(), bytes: Held::BuiltIn(built_in) }
    }

    /// The name, if it is built into the binary.
    fn name(&self) -> Option<&'static str> {
        match &self.bytes {
            Held::Plain(_) => None,
            Held::BuiltIn(BuiltIn { name, .. }) => Some(name),
        }
    }

    pub fn bytes(&self) -> io::Result<Cow<'_, [u8]>> {
        match &self.bytes {
            Held::Plain(bytes) => Ok(Cow::Borrowed(bytes)),
            Held::BuiltIn(BuiltIn { name, deflated, .. }) => decompress_to_vec_with_limit(deflated, MAX_INFLATED_BYTES)
                .map(Cow::Owned)
                .map_err(|error| io::Error::other(format!("its bytes in the program are damaged ({name}): {error}"))),
        }
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
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
        write!(f, "{self}, {}", self.digest)
    }
}

/// The state of a source: a different state means that the source has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceState {
    File(PathBuf, Stamp),
    /// Bytes in memory never change.
    Fixed,
}

/// The component of a source, as it is at this moment.
pub enum Located<'a> {
    /// In a file. `digest`: the one that it has to have, if `wharf.lock` says so.
    File {
        path: PathBuf,
        digest: Option<Digest>,
    },
    Bytes(&'a Component),
}

impl PluginSource {
    /// Whether the component is built into the binary.
    pub fn is_built_in(&self) -> bool {
        matches!(self, Self::Bytes(component) if component.name().is_some())
    }

    /// The path in the config, or of a file that an embedding program names.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Published(_) | Self::Server(_) | Self::Bytes(_) => None,
        }
    }

    /// The existing server that the plugin is made from.
    pub fn server(&self) -> Option<&Arc<ExistingServer>> {
        match self {
            Self::Server(server) => Some(server),
            Self::File(_) | Self::Published(_) | Self::Bytes(_) => None,
        }
    }

    pub fn published(&self) -> Option<&PublishedPlugin> {
        match self {
            Self::Published(published) => Some(published),
            Self::File(_) | Self::Server(_) | Self::Bytes(_) => None,
        }
    }

    /// Finds the component. Fails if `wharf.lock` has no version of the plugin, or one that is not trusted.
    pub fn locate(&self) -> Result<Located<'_>> {
        Ok(match self {
            Self::File(path) => Located::File { path: path.clone(), digest: None },
            Self::Bytes(component) => Located::Bytes(component),
            Self::Server(server) => Located::File { path: server.component(), digest: None },
            Self::Published(published) => {
                let (digest, path) = published.locked()?;
                Located::File { path, digest: Some(digest) }
            }
        })
    }
}

impl Located<'_> {
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::File { path, .. } => Some(path),
            Self::Bytes(_) => None,
        }
    }

    pub fn state(&self) -> io::Result<SourceState> {
        match self {
            Self::File { path, .. } => Ok(SourceState::File(path.clone(), Stamp::of(path)?)),
            Self::Bytes(_) => Ok(SourceState::Fixed),
        }
    }

    /// The digest of the component, if it can be told without reading a file.
    pub fn digest(&self) -> Option<&Digest> {
        match self {
            Self::File { .. } => None,
            Self::Bytes(component) => Some(&component.digest),
        }
    }

    /// Opens a file that contains the component, positioned at its start.
    pub fn open(&self) -> io::Result<File> {
        match self {
            Self::File { path, .. } => File::open(path),
            Self::Bytes(component) => {
                let mut file = in_memory()?;
                file.write_all(&component.bytes()?)?;
                file.rewind()?;
                Ok(file)
            }
        }
    }
}

/// Returns an empty file without a name. On Linux it is in memory, since a container may have no file system that can be written.
fn in_memory() -> io::Result<File> {
    #[cfg(target_os = "linux")]
    return Ok(rustix::fs::memfd_create("component", rustix::fs::MemfdFlags::CLOEXEC)?.into());
    #[cfg(not(target_os = "linux"))]
    tempfile::tempfile()
}

impl fmt::Display for PluginSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Published(published) => published.reference.fmt(f),
            Self::Server(server) => f.write_str(&server.named()),
            Self::Bytes(component) => component.fmt(f),
        }
    }
}
