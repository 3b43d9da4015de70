//! A directory that is open to a call.

use std::{fs::File, os::fd::AsFd, path::Path, sync::Arc};

use crate::changes::Changes;

/// The device number and the inode number of a file.
pub type FileIdentity = (u64, u64);

/// A directory that is open to a call. It is held by an open handle, so that its path is never resolved again.
#[derive(Clone)]
pub struct Directory {
    /// The absolute path under which the guest sees it.
    pub guest_path: String,
    /// Whether files in it can be changed, added and removed.
    pub writable: bool,
    /// Is told of what the call changes in it. `None`: nothing is kept.
    pub changes: Option<Arc<dyn Changes>>,
    real_path: Option<String>,
    identity: Option<FileIdentity>,
    /// Whether the directory has the same path on the host.
    under_own_name: bool,
    handle: Arc<File>,
}

impl Directory {
    /// `handle` is the open directory, and `guest_path` the absolute path under which the guest sees it. Without
    /// `writable` the guest can neither change files in it nor add or remove any.
    pub fn new(handle: impl Into<Arc<File>>, guest_path: impl Into<String>, writable: bool) -> Self {
        // While the handle is open, the system does not reuse the directory's numbers for another one.
        let handle = handle.into();
        let identity = identity(&*handle);
        let guest_path = guest_path.into();
        let under_own_name = identity.is_some() && identity_at(&guest_path) == identity;
        Self { guest_path, writable, changes: None, real_path: None, identity, under_own_name, handle }
    }

    /// Lets the guest open the directory by its path on the host as well, because `guest_path` leads to it through a symbolic link. Lists of
    /// the guest's directories have only `guest_path`. Ignored if another directory is at this path by now.
    #[must_use]
    pub fn also_at(mut self, path: Option<String>) -> Self {
        self.real_path = path.filter(|path| self.identity.is_some() && identity_at(path) == self.identity);
        self
    }

    /// Its path on the host, if the guest can open it by that one too.
    pub fn real_path(&self) -> Option<&str> {
        self.real_path.as_deref()
    }

    /// Its identity on disk; `None` if that is unknown.
    pub fn identity(&self) -> Option<FileIdentity> {
        self.identity
    }

    /// The open directory.
    pub fn handle(&self) -> &Arc<File> {
        &self.handle
    }

    /// Whether a path on the host lies in the directory, and the guest can open it by that path.
    pub fn is_above(&self, target: &Path) -> bool {
        let own = self.under_own_name.then_some(&self.guest_path);
        own.into_iter().chain(&self.real_path).any(|path| target.starts_with(path))
    }
}

fn identity(handle: &impl AsFd) -> Option<FileIdentity> {
    rustix::fs::fstat(handle).ok().map(|stat| identity_of(&stat))
}

fn identity_at(path: &str) -> Option<FileIdentity> {
    rustix::fs::stat(path).ok().map(|stat| identity_of(&stat))
}

/// Returns the identity of a file from its `stat`.
pub fn identity_of(stat: &rustix::fs::Stat) -> FileIdentity {
    // macOS numbers devices with an `i32`. WASI's own functions widen it in the same way, and guests compare the results of both.
    #[cfg(target_vendor = "apple")]
    let device = i64::from(stat.st_dev).cast_unsigned();
    #[cfg(not(target_vendor = "apple"))]
    let device = stat.st_dev;
    (device, stat.st_ino)
}
