//! A call's scope as the sandbox uses it, the events of a guest, and the settings of a plugin.

use std::{pin::Pin, sync::Arc};

use wasmtime_wasi::{FsPerms, OpenMode, filesystem::Dir};
use wharf_scope::{Directory, FileIdentity, Limits, Scope, adapter::Adapter};

use crate::bindings::model::{Kind, Level};

/// A future that completes when there is no need to wait any more.
pub type Wait<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// A scope in a form that can be compared. Directories are compared by their identity on disk, not by their path on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reach {
    /// For each directory: the guest's paths, its identity, and whether the guest may write.
    pub(crate) directories: Vec<(String, Option<String>, FileIdentity, bool)>,
    pub(crate) environment: Vec<(String, String)>,
    /// The number of its network.
    pub(crate) network: Option<u64>,
}

impl Reach {
    /// Returns a scope in comparable form. `None` if the identity of a directory is unknown, or if a test prescribes the clock or random
    /// numbers; then no instance is used again.
    pub(crate) fn of(scope: &Scope) -> Option<Self> {
        if !scope.fixed.is_nothing() {
            return None;
        }
        let directories = scope.directories.iter().map(|directory| {
            let real_path = directory.real_path().map(str::to_owned);
            Some((directory.guest_path.clone(), real_path, directory.identity()?, directory.writable))
        });
        Some(Self {
            directories: directories.collect::<Option<_>>()?,
            environment: scope.environment.clone(),
            network: scope.network.as_ref().map(|network| network.number()),
        })
    }
}

/// Returns an open directory for WASI.
pub(crate) fn open(directory: &Directory) -> std::io::Result<Dir> {
    let (permissions, mode) = if directory.writable {
        (FsPerms::ReadWrite, OpenMode::READ | OpenMode::WRITE)
    } else {
        (FsPerms::ReadOnly, OpenMode::READ)
    };
    Ok(Dir::new(directory.handle().try_clone()?, permissions, mode, false))
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
