//! Watches the config and plugin files. Reloads the config when it has changed, and notifies the library, which finds out which plugins
//! have changed.

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

use wharf_base::{
    folders::{Folders, existing, leading_to},
    paths::{Stamp, is_folder},
    text,
    whole::{Ready, Writing},
};
use wharf_config::config::{AccessLog, Config};
use wharf_policy::access::scope::Scopes;

/// How long a program may have the config open for writing before the operator is warned.
const OPEN_WRITER_GRACE: Duration = Duration::from_secs(10);
/// How long to wait before a config that changed while it was read is read again.
const REREAD_INTERVAL: Duration = Duration::from_millis(100);

/// Creates the watcher. It ignores wharf's own logs, which change all the time and are often in a watched folder.
fn watcher(config: &Config, writing: &Arc<Writing>) -> Folders {
    let audit = config.startup.audit.as_ref().map(|audit| audit.file.clone());
    let access = config.startup.http.access_log.as_ref().and_then(AccessLog::trusted);
    let logs = audit.into_iter().chain(access);
    let logs: Vec<PathBuf> = logs.flat_map(|log| [std::fs::canonicalize(&log).unwrap_or_default(), log]).collect();
    let writing = Arc::clone(writing);
    Folders::new(move |path| logs.iter().any(|log| is_of_log(path, log)), move |event| writing.on_event(event))
}

/// Whether a path is a log file or belongs to one, such as a rotated file or a lock file.
fn is_of_log(path: &Path, log: &Path) -> bool {
    let name = |path: &Path| path.file_name().map(|name| name.as_encoded_bytes().to_vec());
    let (Some(own), Some(logs)) = (name(path), name(log)) else { return false };
    let rest = own.strip_prefix(logs.as_slice());
    path.parent() == log.parent() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"."))
}

/// Returns the folders to watch for a config, and the one in which other wharfs enter what plugins must not change.
fn folders_of(config: &Config, scopes: &Scopes) -> HashSet<PathBuf> {
    let within = config.plugin_dir.iter().map(|folder| folder.join("*"));
    let paths = config
        .plugins
        .iter()
        .flat_map(|plugin| {
            let published = plugin.source.published();
            let fetched = published.into_iter().flat_map(|one| [one.lock.clone(), one.store.join("*")]);
            plugin.source.path().map(Path::to_path_buf).into_iter().chain(fetched)
        })
        .chain(config.file.clone())
        .chain(config.plugin_dir.iter().flat_map(|folder| links_in(folder)))
        .chain(within);
    let mut folders = leading_to(paths);
    if let Some(folder) = &config.plugin_dir {
        // The parent is watched too, so that creating or replacing the plugin folder is noticed.
        folders.extend(folder.parent().map(existing));
    }
    folders.extend(scopes.registry().iter().filter(|folder| is_folder(folder)).cloned());
    folders
}

/// Returns the links to plugins in a folder. Their files are elsewhere, often where a build writes them.
fn links_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink())).map(|entry| entry.path());
    links.filter(|path| path.extension().is_some_and(|extension| extension == "wasm")).collect()
}

/// The watched config file.
struct WatchedConfig<R> {
    /// The state of the file when it was last read.
    stamp: Option<Stamp>,
    /// When to check the file again even without a change event.
    due: Option<Instant>,
    /// Whether the operator was warned that a program keeps the file open for writing.
    warned: bool,
    writing: Arc<Writing>,
    reload: R,
}

impl<R: Fn(Option<&Stamp>) -> bool> WatchedConfig<R> {
    /// Reloads the file if it has changed and is completely written.
    fn look(&mut self, file: &Path) {
        self.writing.follow(file);
        let (at, due) = (Instant::now(), self.due.take());
        let now = Stamp::of(file).ok();
        if now == self.stamp {
            return;
        }
        // A file that does not exist is not being written.
        match now.as_ref().map_or(Ready::Now, |now| self.writing.ready(now)) {
            Ready::Now if (self.reload)(now.as_ref()) => (self.stamp, self.warned) = (now, false),
            Ready::Now => self.due = Some(at + REREAD_INTERVAL),
            Ready::After(left) => self.due = Some(at + left),
            Ready::WhenClosed if self.warned => {}
            Ready::WhenClosed if due.is_some_and(|due| due <= at) => {
                self.warned = true;
                let file = text::path(file);
                tracing::warn!(
                    "a program still has the config {file} open for writing; the previous config stays in use until it is closed"
                );
            }
            Ready::WhenClosed => self.due = due.or(Some(at + OPEN_WRITER_GRACE)),
        }
    }
}

/// Watches the files until `stop` is cancelled or the sender of configs is dropped. `stamp`: the state of the config file before it was
/// read. `reload`: called with the file's new state when it has changed and is completely written, or with `None` when it is gone;
/// returns false if the file changed while it was read.
pub async fn run(
    mut configs: watch::Receiver<Arc<Config>>,
    stamp: Option<Stamp>,
    (files, scopes): (Arc<Notify>, Arc<Scopes>),
    writing: Arc<Writing>,
    reload: impl Fn(Option<&Stamp>) -> bool,
    stop: CancellationToken,
) {
    let mut config = Arc::clone(&configs.borrow_and_update());
    let mut watcher = watcher(&config, &writing);
    let mut watched = WatchedConfig { stamp, due: None, warned: false, writing, reload };
    loop {
        if let Some(file) = &config.file {
            watched.writing.follow(file);
        }
        watcher.follow(folders_of(&config, &scopes));
        // The first check finds changes from before the folders were watched.
        let mut unseen = true;
        loop {
            let due = watched.due;
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
            scopes.look_around();
            if let Some(file) = &config.file {
                watched.look(file);
            }
            files.notify_one();
            watcher.follow(folders_of(&config, &scopes));
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
