//! Notices that files may have changed. What has changed is for the library to find out.
//!
//! Folders are watched instead of files, because editors and builds replace files by renaming. For each configured path, every
//! folder through which it is reached is watched, so that a replaced link is noticed too. Where the kernel cannot watch, wharf
//! checks every two seconds.

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

/// How long no event must come before a burst of events counts as over.
const QUIET: Duration = Duration::from_millis(30);
/// After how long a burst counts as over even if events still come.
const BURST: Duration = Duration::from_millis(200);
/// How often to check where watching is not possible.
const POLL: Duration = Duration::from_secs(2);

struct Watcher {
    notify: Option<RecommendedWatcher>,
    events: mpsc::Receiver<()>,
    folders: HashSet<PathBuf>,
}

impl Watcher {
    /// `log`: the audit log, which wharf itself writes all the time, and often in a folder that is watched.
    pub fn new(log: Option<&Path>) -> Self {
        let (sender, events) = mpsc::channel(1);
        let logs = log.map(|log| [log.to_owned(), std::fs::canonicalize(log).unwrap_or_default()]);
        let notify = notify::recommended_watcher(move |event: notify::Result<Event>| {
            // Opening or reading a file must not count, because wharf would cause events itself without end.
            let counts = event.is_ok_and(|event| match event.kind {
                EventKind::Access(AccessKind::Close(_)) => true,
                EventKind::Access(_) => false,
                _ => !event.paths.iter().all(|path| logs.iter().flatten().any(|log| is_of_log(path, log))),
            });
            if counts {
                // If the channel is full, a change is noticed already.
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

    /// Watches the folders that matter to this config, and stops watching others.
    pub fn follow(&mut self, config: &Config) {
        let folders = folders_of(config);
        if let Some(notify) = &mut self.notify {
            for folder in self.folders.difference(&folders) {
                // This fails for folders that are gone, which are not watched any more anyway.
                notify.unwatch(folder).ok();
            }
            let mut exhausted = None;
            for folder in &folders {
                // Even a folder that is watched already is watched anew, since another one may have the same name now.
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

    /// Waits until something may have changed and the burst of events is over.
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

/// Whether a path is that of a log or of something that belongs to it, such as an old file of it.
fn is_of_log(path: &Path, log: &Path) -> bool {
    let name = |path: &Path| path.file_name().map(|name| name.as_encoded_bytes().to_vec());
    let (Some(own), Some(logs)) = (name(path), name(log)) else { return false };
    let rest = own.strip_prefix(logs.as_slice());
    path.parent() == log.parent() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"."))
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
        // The folder above is watched so that a plugin folder that is made or replaced later is noticed.
        folders.extend(folder.parent().map(existing));
    }
    folders
}

/// The folder itself, or the nearest one above it that exists.
fn existing(folder: &Path) -> PathBuf {
    folder.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/")).to_path_buf()
}

/// Watches files for as long as wharf runs. `stamp`: the config file's state from before it was read. `reload`: called when the
/// config file has changed.
pub async fn run(
    mut configs: watch::Receiver<Arc<Config>>,
    mut stamp: Option<Stamp>,
    files: Arc<Notify>,
    reload: impl Fn(),
    stop: CancellationToken,
) {
    let mut config = Arc::clone(&configs.borrow_and_update());
    let mut watcher = Watcher::new(config.startup.audit.as_ref().map(|audit| audit.file.as_path()));
    watcher.follow(&config);
    loop {
        // At first, changes from before the folders were watched are checked for.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_told_from_what_lies_beside_it() {
        for (path, belongs) in [
            ("/etc/wharf/audit.jsonl", true),
            ("/etc/wharf/audit.jsonl.3", true),
            ("/etc/wharf/audit.jsonl.lock", true),
            ("/etc/wharf/audit.jsonl2", false),
            ("/etc/wharf/wharf.toml", false),
            ("/etc/other/audit.jsonl", false),
            ("/etc/wharf", false),
        ] {
            assert_eq!(is_of_log(Path::new(path), Path::new("/etc/wharf/audit.jsonl")), belongs, "{path}");
        }
    }
}
