//! Watches folders, and reports that something in them may have changed, once per burst of events (debounce). The caller finds out what
//! has changed.
//!
//! Folders are watched instead of files, because editors, builds and renewals of certificates replace files by renaming. For each
//! path, every folder through which it is reached is watched, so that a replaced link is noticed too. Where the kernel cannot
//! watch, a possible change is reported every two seconds.

#![expect(clippy::disallowed_methods, reason = "folders are looked for here")]

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    time::Duration,
};

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _, event::AccessKind};
use tokio::sync::mpsc;

use super::paths::{hops, links};

/// A burst of events counts as over when no event has come for this long.
const QUIET_INTERVAL: Duration = Duration::from_millis(30);
/// A burst counts as over after this long even if events still come.
const MAX_BURST_INTERVAL: Duration = Duration::from_millis(200);
/// How often a change is reported where watching is not possible.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

pub struct Folders {
    notify: Option<RecommendedWatcher>,
    events: mpsc::Receiver<()>,
    folders: HashSet<PathBuf>,
}

impl Folders {
    /// `ignored`: selects paths whose changes do not count. `heard`: called with each event as it comes.
    pub fn new(ignored: impl Fn(&Path) -> bool + Send + 'static, heard: impl Fn(&Event) + Send + 'static) -> Self {
        let (sender, events) = mpsc::channel(1);
        let notify = notify::recommended_watcher(move |event: notify::Result<Event>| {
            event.iter().for_each(&heard);
            // Opening or reading a file must not count: wharf reads files after each event, which would cause events without end.
            let counts = event.is_ok_and(|event| match event.kind {
                EventKind::Access(AccessKind::Close(_)) => true,
                EventKind::Access(_) => false,
                // An event without paths means that events were missed.
                _ => event.need_rescan() || !event.paths.iter().all(|path| ignored(path)),
            });
            if counts {
                // If the channel is full, a change is already pending.
                sender.try_send(()).ok();
            }
        });
        let notify = notify
            .map_err(|error| {
                tracing::warn!(
                    "files cannot be watched, so wharf checks for changes every {} s: {error}",
                    POLL_INTERVAL.as_secs()
                )
            })
            .ok();
        Self { notify, events, folders: HashSet::new() }
    }

    /// Watches these folders, and stops watching others.
    pub fn follow(&mut self, folders: HashSet<PathBuf>) {
        if let Some(notify) = &mut self.notify {
            for folder in self.folders.difference(&folders) {
                // This fails for folders that are gone, which are not watched any more anyway.
                notify.unwatch(folder).ok();
            }
            let mut exhausted = None;
            for folder in &folders {
                // Even a folder that is watched already is watched again, since another folder may have the same name now.
                if let Err(error) = notify.watch(folder, RecursiveMode::NonRecursive) {
                    exhausted = Some(error);
                }
            }
            if let Some(error) = exhausted {
                tracing::warn!(
                    "not all folders can be watched, so wharf checks for changes every {} s: {error}",
                    POLL_INTERVAL.as_secs()
                );
                self.notify = None;
            }
        }
        self.folders = folders;
    }

    /// Waits until something may have changed and the burst of events is over.
    pub async fn changed(&mut self) {
        if self.notify.is_none() {
            return tokio::time::sleep(POLL_INTERVAL).await;
        }
        if self.events.recv().await.is_none() {
            return std::future::pending().await;
        }
        let end = tokio::time::Instant::now() + MAX_BURST_INTERVAL;
        while let Ok(Some(())) =
            tokio::time::timeout_at(end.min(tokio::time::Instant::now() + QUIET_INTERVAL), self.events.recv()).await
        {
            if tokio::time::Instant::now() >= end {
                break;
            }
        }
    }
}

/// Returns the folders through which these paths are reached, or the nearest ones above that exist.
pub fn leading_to(paths: impl IntoIterator<Item = PathBuf>) -> HashSet<PathBuf> {
    let ways = paths.into_iter().flat_map(|path| hops(&path).into_iter().chain(links(&path)));
    ways.filter_map(|path| path.parent().map(existing)).collect()
}

/// Returns the folder itself, or the nearest one above it that exists.
pub fn existing(folder: &Path) -> PathBuf {
    folder.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/")).to_path_buf()
}
