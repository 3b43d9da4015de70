//! Notices that files changed, and says only that: what changed is for the library to find out.
//!
//! Folders are watched, never files, because editors and builds replace files by renaming; of a configured path, every folder
//! through which it is reached, so that a replaced link counts too. Where the kernel has no watches left, wharf looks
//! for itself every two seconds.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _, event::AccessKind};
use tokio::sync::{Notify, mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::{
    base::paths::{Stamp, hops, links},
    config::Config,
};

/// How long it must be quiet before a burst of events counts as over.
const QUIET: Duration = Duration::from_millis(30);
/// How long a burst may go on before it counts anyway.
const BURST: Duration = Duration::from_millis(200);
/// How often to look where watching is not possible.
const POLL: Duration = Duration::from_secs(2);

pub struct Watcher {
    notify: Option<RecommendedWatcher>,
    events: mpsc::Receiver<()>,
    folders: HashSet<PathBuf>,
}

impl Watcher {
    pub fn new() -> Self {
        let (sender, events) = mpsc::channel(1);
        let notify = notify::recommended_watcher(move |event: notify::Result<Event>| {
            // Reading a file is an event too; counting it would never end.
            let counts = event.is_ok_and(|event| match event.kind {
                EventKind::Access(AccessKind::Close(_)) => true,
                EventKind::Access(_) => false,
                _ => true,
            });
            if counts {
                // Full means that a change is already noticed.
                sender.try_send(()).ok();
            }
        });
        let notify = notify
            .map_err(|error| {
                tracing::warn!("files cannot be watched, so wharf looks every {} s: {error}", POLL.as_secs())
            })
            .ok();
        Self { notify, events, folders: HashSet::new() }
    }

    /// Watches what matters to this config, and no longer what does not.
    pub fn follow(&mut self, config: &Config) {
        let folders = folders_of(config);
        if let Some(notify) = &mut self.notify {
            for folder in self.folders.difference(&folders) {
                // Gone folders are not watched any more.
                notify.unwatch(folder).ok();
            }
            let mut exhausted = None;
            for folder in &folders {
                // Again even if it is watched already: it may be another folder under the same name by now.
                if let Err(error) = notify.watch(folder, RecursiveMode::NonRecursive) {
                    exhausted = Some(error);
                }
            }
            if let Some(error) = exhausted {
                tracing::warn!("not all folders can be watched, so wharf looks every {} s: {error}", POLL.as_secs());
                self.notify = None;
            }
        }
        self.folders = folders;
    }

    /// Waits until something may have changed and the burst is over.
    pub async fn changed(&mut self) {
        if self.notify.is_none() {
            return tokio::time::sleep(POLL).await;
        }
        if self.events.recv().await.is_none() {
            return std::future::pending().await;
        }
        let end = tokio::time::Instant::now() + BURST;
        while let Ok(Some(())) =
            tokio::time::timeout_at(end.min(tokio::time::Instant::now() + QUIET), self.events.recv()).await
        {
            if tokio::time::Instant::now() >= end {
                break;
            }
        }
    }
}

impl Default for Watcher {
    fn default() -> Self {
        Self::new()
    }
}

fn folders_of(config: &Config) -> HashSet<PathBuf> {
    let within = config.plugin_dir.iter().map(|folder| folder.join("*"));
    let paths = config
        .plugins
        .iter()
        .filter_map(|plugin| plugin.source.path())
        .map(Path::to_path_buf)
        .chain(config.file.clone())
        .chain(within);
    let mut folders: HashSet<PathBuf> = paths
        .flat_map(|path| hops(&path).into_iter().chain(links(&path)))
        .filter_map(|path| path.parent().map(existing))
        .collect();
    if let Some(folder) = &config.plugin_dir {
        // So that a folder that is made or replaced later is noticed.
        folders.extend(folder.parent().map(existing));
    }
    folders
}

/// The folder itself, or the nearest one above it that is there.
fn existing(folder: &Path) -> PathBuf {
    folder.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/")).to_path_buf()
}

/// Follows files and the config for as long as wharf runs. `stamp`: the config file's state from before it was read.
/// `reload`: told to read the config anew.
pub async fn run(
    mut configs: watch::Receiver<Arc<Config>>,
    mut stamp: Option<Stamp>,
    files: Arc<Notify>,
    reload: impl Fn(),
    stop: CancellationToken,
) {
    let mut watcher = Watcher::new();
    let mut config = Arc::clone(&configs.borrow_and_update());
    watcher.follow(&config);
    loop {
        // What changed while nobody watched yet is looked at first.
        let mut unseen = true;
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                changed = configs.changed() => match changed {
                    Ok(()) => break,
                    Err(_) => return,
                },
                () = std::future::ready(()), if unseen => {}
                () = watcher.changed() => {}
            }
            unseen = false;
            let now = config.file.as_deref().and_then(|file| Stamp::of(file).ok());
            if now != stamp {
                stamp = now;
                reload();
            }
            files.notify_one();
            watcher.follow(&config);
        }
        config = Arc::clone(&configs.borrow_and_update());
        watcher.follow(&config);
    }
}
