//! Notices that the config or plugins may have changed. What has changed is for the library to find out.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::{
    base::{
        folders::{Folders, existing, leading_to},
        paths::Stamp,
    },
    config::{AccessLog, Config},
};

/// Logs do not count, which wharf itself writes all the time, and often in a folder that is watched.
fn watcher(config: &Config) -> Folders {
    let audit = config.startup.audit.as_ref().map(|audit| audit.file.clone());
    let access = config.startup.http.access_log.as_ref().and_then(AccessLog::trusted);
    let logs = audit.into_iter().chain(access);
    let logs: Vec<PathBuf> = logs.flat_map(|log| [std::fs::canonicalize(&log).unwrap_or_default(), log]).collect();
    Folders::new(move |path| logs.iter().any(|log| is_of_log(path, log)))
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
    let mut watcher = watcher(&config);
    watcher.follow(folders_of(&config));
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
            watcher.follow(folders_of(&config));
        }
        config = Arc::clone(&configs.borrow_and_update());
        watcher.follow(folders_of(&config));
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
