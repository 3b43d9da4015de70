//! Notices that the config or plugins may have changed. What has changed is for the library to find out.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use crate::{
    base::{
        folders::{Folders, existing, leading_to},
        paths::Stamp,
        text,
        whole::{Ready, Writing},
    },
    config::{AccessLog, Config},
};

/// After how long the operator is told of a writer that does not close the config.
const LONG_OPEN: Duration = Duration::from_secs(10);
/// After how long to look again at a config that changed while it was read.
const AGAIN: Duration = Duration::from_millis(100);

/// Logs do not count, which wharf itself writes all the time, and often in a folder that is watched.
fn watcher(config: &Config, writing: &Arc<Writing>) -> Folders {
    let audit = config.startup.audit.as_ref().map(|audit| audit.file.clone());
    let access = config.startup.http.access_log.as_ref().and_then(AccessLog::trusted);
    let logs = audit.into_iter().chain(access);
    let logs: Vec<PathBuf> = logs.flat_map(|log| [std::fs::canonicalize(&log).unwrap_or_default(), log]).collect();
    let writing = Arc::clone(writing);
    Folders::new(move |path| logs.iter().any(|log| is_of_log(path, log)), move |event| writing.hear(event))
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
    let mut folders = leading_to(paths);
    if let Some(folder) = &config.plugin_dir {
        // The folder above is watched so that a plugin folder that is made or replaced later is noticed.
        folders.extend(folder.parent().map(existing));
    }
    folders
}

/// What is followed of the config file.
struct Followed<R> {
    /// Its state when it was last read.
    stamp: Option<Stamp>,
    /// When to look again though nothing is told.
    due: Option<Instant>,
    /// Whether the operator was told that a writer has it open for long.
    told: bool,
    writing: Arc<Writing>,
    reload: R,
}

impl<R: Fn(Option<&Stamp>) -> bool> Followed<R> {
    /// Has the file read again if it has changed and is whole.
    fn look(&mut self, file: &Path) {
        self.writing.follow(file);
        let (at, due) = (Instant::now(), self.due.take());
        let now = Stamp::of(file).ok();
        if now == self.stamp {
            return;
        }
        // Where there is no file, nobody writes it.
        match now.as_ref().map_or(Ready::Now, |now| self.writing.ready(now)) {
            Ready::Now if (self.reload)(now.as_ref()) => (self.stamp, self.told) = (now, false),
            Ready::Now => self.due = Some(at + AGAIN),
            Ready::After(left) => self.due = Some(at + left),
            Ready::WhenClosed if self.told => {}
            Ready::WhenClosed if due.is_some_and(|due| due <= at) => {
                self.told = true;
                let file = text::path(file);
                tracing::warn!(
                    "a program still writes the config {file}; the last good one stays until that program closes it"
                );
            }
            Ready::WhenClosed => self.due = due.or(Some(at + LONG_OPEN)),
        }
    }
}

/// Watches files for as long as wharf runs. `stamp`: the config file's state from before it was read. `reload`: called with the state
/// of the config file when that has changed and is whole, or is gone; false says that the file changed while it was read.
pub async fn run(
    mut configs: watch::Receiver<Arc<Config>>,
    stamp: Option<Stamp>,
    files: Arc<Notify>,
    writing: Arc<Writing>,
    reload: impl Fn(Option<&Stamp>) -> bool,
    stop: CancellationToken,
) {
    let mut config = Arc::clone(&configs.borrow_and_update());
    let mut watcher = watcher(&config, &writing);
    let mut followed = Followed { stamp, due: None, told: false, writing, reload };
    loop {
        if let Some(file) = &config.file {
            followed.writing.follow(file);
        }
        watcher.follow(folders_of(&config));
        // At first, changes from before the folders were watched are checked for.
        let mut unseen = true;
        loop {
            let due = followed.due;
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                changed = configs.changed() => match changed {
                    Ok(()) => break,
                    Err(_) => return,
                },
                () = std::future::ready(()), if unseen => {}
                () = watcher.changed() => {}
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
            }
            unseen = false;
            if let Some(file) = &config.file {
                followed.look(file);
            }
            files.notify_one();
            watcher.follow(folders_of(&config));
        }
        config = Arc::clone(&configs.borrow_and_update());
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
