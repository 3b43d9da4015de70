//! What one call may access, and its limits. All of it is plain data, decided elsewhere before the call starts.

use std::{pin::Pin, sync::Arc, time::Duration};

use wasmtime_wasi::{FsPerms, OpenMode};

use crate::{
    adapter::declared::Adapter,
    bindings::model::{Kind, Level},
    fixed::Fixed,
    network::{HttpLimits, Network},
};

/// A future that completes when there is no need to wait any more.
pub type Wait<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Everything a call may reach beyond its own memory. The default is nothing.
#[derive(Clone, Default)]
pub struct Scope {
    /// The directories that are open to it.
    pub directories: Vec<Directory>,
    /// Its environment variables, by name. It has no others.
    pub environment: Vec<(String, String)>,
    /// Sends its HTTP requests. `None`: all of them are refused.
    pub network: Option<Arc<dyn Network>>,
    /// The clock and the random numbers that a test prescribes.
    pub fixed: Fixed,
}

/// A scope in a form that can be compared. Directories are compared by their identity on disk, not by their path on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reach {
    /// For each directory: the guest's paths, its identity, and whether the guest may write.
    pub(crate) directories: Vec<(String, Option<String>, Identity, bool)>,
    pub(crate) environment: Vec<(String, String)>,
    /// The number of its network.
    pub(crate) network: Option<u64>,
}

impl Scope {
    /// Returns the scope in comparable form. `None` if the identity of a directory is unknown, or if a test prescribes the clock or random
    /// numbers; then no instance is used again.
    pub(crate) fn reach(&self) -> Option<Reach> {
        if !self.fixed.is_nothing() {
            return None;
        }
        let directories = self.directories.iter().map(|directory| {
            let identity = directory.identity?;
            Some((directory.guest_path.clone(), directory.real_path.clone(), identity, directory.writable))
        });
        Some(Reach {
            directories: directories.collect::<Option<_>>()?,
            environment: self.environment.clone(),
            network: self.network.as_ref().map(|network| network.number()),
        })
    }
}

/// The device number and the inode number of a file.
pub(crate) type Identity = (u64, u64);

/// Returns the identity of a file from its `stat`.
pub(crate) fn identity_of(stat: &rustix::fs::Stat) -> Identity {
    // macOS numbers devices with an `i32`. WASI's own functions widen it in the same way, and guests compare the results of both.
    #[cfg(target_vendor = "apple")]
    let device = i64::from(stat.st_dev).cast_unsigned();
    #[cfg(not(target_vendor = "apple"))]
    let device = stat.st_dev;
    (device, stat.st_ino)
}

/// A directory that is open to a call. It is held by an open handle, so that its path is never resolved again.
#[derive(Clone)]
pub struct Directory {
    /// The absolute path under which the guest sees it.
    pub guest_path: String,
    /// Whether files in it can be changed, added and removed.
    pub writable: bool,
    /// Its path on the host, if the guest can open it by that one too.
    pub(crate) real_path: Option<String>,
    identity: Option<Identity>,
    /// Whether the directory has the same path on the host.
    under_own_name: bool,
    pub(crate) handle: wasmtime_wasi::filesystem::Dir,
}

impl Directory {
    /// `handle` is the open directory, and `guest_path` the absolute path under which the guest sees it. Without
    /// `writable` the guest can neither change files in it nor add or remove any.
    pub fn new(handle: std::fs::File, guest_path: impl Into<String>, writable: bool) -> Self {
        let (permissions, mode) = if writable {
            (FsPerms::ReadWrite, OpenMode::READ | OpenMode::WRITE)
        } else {
            (FsPerms::ReadOnly, OpenMode::READ)
        };
        // While the handle is open, the system does not reuse the directory's numbers for another one.
        let identity = rustix::fs::fstat(&handle).ok().map(|stat| identity_of(&stat));
        let guest_path = guest_path.into();
        let named = rustix::fs::stat(&guest_path).ok().map(|stat| identity_of(&stat));
        let under_own_name = identity.is_some() && named == identity;
        let handle = wasmtime_wasi::filesystem::Dir::new(handle, permissions, mode, false);
        Self { guest_path, writable, real_path: None, identity, under_own_name, handle }
    }

    /// Lets the guest open the directory by its path on the host as well, because `guest_path` leads to it through a symbolic link. Lists of
    /// the guest's directories have only `guest_path`. Ignored if another directory is at this path by now.
    #[must_use]
    pub fn also_at(mut self, path: Option<String>) -> Self {
        let is_same = |path: &String| {
            let found = rustix::fs::stat(path).ok().map(|stat| identity_of(&stat));
            found.is_some() && found == self.identity
        };
        self.real_path = path.filter(is_same);
        self
    }

    /// Whether a path on the host lies in the directory, and the guest can open it by that path.
    pub(crate) fn is_above(&self, target: &std::path::Path) -> bool {
        let own = self.under_own_name.then_some(&self.guest_path);
        own.into_iter().chain(&self.real_path).any(|path| target.starts_with(path))
    }
}

/// The limits of a plugin. All except `concurrency` apply to each call separately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// How many calls of this plugin run at once; at least one. Further ones wait for their turn within their deadline.
    pub concurrency: usize,
    /// The bytes of all memories and tables of one instance together, and of what the host stores for it.
    pub memory: MemoryLimit,
    /// How long a call may take from the moment it is made, including the wait for its turn.
    pub timeout: Duration,
    /// How many bytes the answer to a call may have.
    pub output_bytes: usize,
    /// What it may do over HTTP, if it has a network.
    pub http: HttpLimits,
}

/// How much memory an instance may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryLimit {
    /// Four times the memory that its component starts with, at least [`Self::LEAST_BYTES`] and at most [`Self::MOST_BYTES`].
    Fitted,
    /// This many bytes.
    Bytes(usize),
}

impl MemoryLimit {
    /// The smallest fitted limit.
    pub const LEAST_BYTES: usize = 64 << 20;
    /// The largest fitted limit: the author of a component decides what it starts with, so only the operator can allow more.
    pub const MOST_BYTES: usize = 256 << 20;

    /// Returns the limit of a component that starts with this much memory.
    pub(crate) fn bytes(self, start: usize) -> usize {
        match self {
            Self::Fitted => start.saturating_mul(4).clamp(Self::LEAST_BYTES, Self::MOST_BYTES),
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// Receives the events of a guest while it runs. The methods are called on the guest's thread, so they must not block. Each kind of event
/// is passed on at most 1,000 times in a call, except changes of lists.
pub trait Events: Send + Sync {
    /// The guest logs something. `data` is JSON that clients get in place of the message. Each is at most 16 KiB: a longer message is cut,
    /// and longer `data` is left out.
    fn log(&self, level: Level, message: String, data: Option<String>);
    /// The guest reports its progress. `done` is finite and grows from report to report; `total` is in the same unit.
    fn progress(&self, done: f64, total: Option<f64>, message: Option<String>);
    /// Called when the call could begin. If this returns a future, for example because the client does not read its earlier answers
    /// (backpressure), the call waits for that future while other calls may take its turn. Then this is called again.
    fn wait_to_run(&self) -> Option<Wait<'_>> {
        None
    }
    /// Called before the guest logs something or reports progress. If this returns a future, because earlier events have not been read yet,
    /// the guest waits for that future, for at most a second per call in all.
    fn wait_to_speak(&self) -> Option<Wait<'_>> {
        None
    }
    /// One of the guest's lists has changed.
    fn list_changed(&self, kind: Kind);
    /// The guest reports that a resource has new contents. The URI is at most 8 KiB long, and may be that of another plugin.
    fn resource_updated(&self, uri: String);
}

/// Ignores all events.
pub struct NoEvents;

impl Events for NoEvents {
    fn log(&self, _: Level, _: String, _: Option<String>) {}
    fn progress(&self, _: f64, _: Option<f64>, _: Option<String>) {}
    fn list_changed(&self, _: Kind) {}
    fn resource_updated(&self, _: String) {}
}

/// The operator's settings for a plugin.
#[derive(Debug, Clone)]
pub struct PluginSpec {
    /// The plugin's ID in the config.
    pub id: String,
    /// The plugin's limits.
    pub limits: Limits,
    /// The plugin's own table of the config, as a JSON object. The plugin can read it.
    pub config: Arc<str>,
    /// How the plugin is served if it was not made for wharf.
    pub adapter: Arc<Adapter>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fitted_limit_follows_the_component() {
        for (start_mib, limit_mib) in [(0, 64), (16, 64), (17, 68), (48, 192), (64, 256), (4096, 256)] {
            assert_eq!(MemoryLimit::Fitted.bytes(start_mib << 20), limit_mib << 20, "{start_mib}");
        }
        assert_eq!(MemoryLimit::Fitted.bytes(usize::MAX), MemoryLimit::MOST_BYTES);
        assert_eq!(MemoryLimit::Bytes(8 << 20).bytes(64 << 20), 8 << 20);
    }
}
