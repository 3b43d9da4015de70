//! What one call may touch: plain data, decided elsewhere and before the call starts.

use std::{pin::Pin, sync::Arc, time::Duration};

use wasmtime_wasi::{FsPerms, OpenMode};

use crate::model::{Kind, Level};

/// Ends when there is no need to wait any more.
pub type Wait<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Everything a call may reach beyond its own memory. The default is nothing.
#[derive(Clone, Default)]
pub struct Scope {
    pub directories: Vec<Directory>,
    pub environment: Vec<(String, String)>,
}

/// What a scope comes to, for comparison: directories by identity, not by path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reach {
    /// Guest path, device and file number, and whether it is writable.
    pub(crate) directories: Vec<(String, (u64, u64), bool)>,
    pub(crate) environment: Vec<(String, String)>,
}

impl Scope {
    /// None if a directory cannot be identified; then it is like no other.
    pub(crate) fn reach(&self) -> Option<Reach> {
        let directories = self.directories.iter().map(|directory| {
            let identity = directory.identity?;
            Some((directory.guest_path.clone(), identity, directory.writable))
        });
        Some(Reach { directories: directories.collect::<Option<_>>()?, environment: self.environment.clone() })
    }
}

/// A directory, held by an open handle so that no path is resolved again, under the path the guest sees.
#[derive(Clone)]
pub struct Directory {
    pub(crate) guest_path: String,
    pub(crate) writable: bool,
    identity: Option<(u64, u64)>,
    pub(crate) handle: wasmtime_wasi::filesystem::Dir,
}

impl Directory {
    /// `handle`: an open directory.
    pub fn new(handle: std::fs::File, guest_path: impl Into<String>, writable: bool) -> Self {
        let (permissions, mode) = if writable {
            (FsPerms::ReadWrite, OpenMode::READ | OpenMode::WRITE)
        } else {
            (FsPerms::ReadOnly, OpenMode::READ)
        };
        // An open handle keeps its number from being given to another directory.
        let identity = rustix::fs::fstat(&handle).ok().map(|stat| (stat.st_dev, stat.st_ino));
        let handle = wasmtime_wasi::filesystem::Dir::new(handle, permissions, mode, false);
        Self { guest_path: guest_path.into(), writable, identity, handle }
    }
}

/// What a plugin may use up, per call unless it says otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Calls of this plugin that run at once; more wait their turn within their deadline.
    pub concurrency: usize,
    /// All linear memories and tables of one call together.
    pub memory_bytes: usize,
    /// From admission to result.
    pub timeout: Duration,
    /// What a call may return.
    pub output_bytes: usize,
}

/// Something a guest tried and was not allowed, where the host could see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denial {
    /// An outgoing HTTP request, to this host.
    Http(String),
    /// It looked for files, and no directory is open to it.
    NoDirectory,
}

/// Hears what a guest says while it runs. Called on the guest's thread, so implementations must not block.
pub trait Events: Send + Sync {
    fn log(&self, level: Level, message: String, data: Option<String>);
    fn progress(&self, done: f64, total: Option<f64>, message: Option<String>);
    /// Asked when the call could run: whether it is to wait, because nobody takes what it would answer. Its place goes to
    /// others meanwhile.
    fn hold(&self) -> Option<Wait<'_>> {
        None
    }
    /// Asked before the guest says something: whether it would not be heard, because what it said before is not read yet.
    fn unread(&self) -> Option<Wait<'_>> {
        None
    }
    fn list_changed(&self, kind: Kind);
    fn resource_updated(&self, uri: String);
}

/// For calls nobody listens to.
pub struct NoEvents;

impl Events for NoEvents {
    fn log(&self, _: Level, _: String, _: Option<String>) {}
    fn progress(&self, _: f64, _: Option<f64>, _: Option<String>) {}
    fn list_changed(&self, _: Kind) {}
    fn resource_updated(&self, _: String) {}
}

/// What the host decides about a plugin, beside its code.
#[derive(Debug, Clone)]
pub struct PluginSpec {
    pub id: String,
    pub limits: Limits,
    /// The plugin's own table from the operator's file, as JSON.
    pub config: Arc<str>,
}
