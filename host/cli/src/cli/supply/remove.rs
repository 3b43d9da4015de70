//! `wharf remove`, which takes a plugin out of the config and the lock file, and `wharf lock prune`, which removes stored components that
//! no lock file names any more.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Result, ensure};
use wharf_base::text::{self, escaped};
use wharf_config::lock::{FILE_NAME, Lock};

use super::{open, store};
use crate::cli::{arguments::OnePlugin, check::all_or_nothing, file::read, load::print, lock_file::LockFile};

pub fn run(OnePlugin { id, config }: &OnePlugin) -> Result<ExitCode> {
    let (mut file, config) = open(config.config.as_deref())?;
    let ids: Vec<&str> = config.plugins.iter().map(|plugin| plugin.id.as_str()).collect();
    ensure!(
        file.edited.remove(id),
        "{} has no plugin `{}`; it has: {}",
        text::path(&file.path),
        escaped(id),
        all_or_nothing(&ids)
    );
    // The config is written first: without its table, the plugin is not served, whatever the lock file has.
    file.write(&[])?;
    let mut lock = LockFile::open(&file.path)?;
    if lock.lock.remove(id) {
        lock.write()?;
        print(&format!("removed {id} from {}", text::path(&lock.path)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// `others`: the lock files, or the configs next to which they lie, of other wharfs that use the same store.
pub fn prune(others: &[PathBuf], config: Option<&Path>) -> Result<ExitCode> {
    let (file, config) = open(config)?;
    let mut keep = HashSet::new();
    for path in others.iter().chain([&file.path]) {
        let path = path.with_file_name(FILE_NAME);
        ensure!(
            read(&path)?.is_some() || path.parent() == file.path.parent(),
            "{}: there is no such file",
            text::path(&path)
        );
        for source in Lock::read(&path)?.sources().values() {
            keep.extend([&source.release].into_iter().chain(&source.previous).map(|release| release.digest));
        }
    }
    let store = store(&config)?;
    let removed = store.prune(&keep)?;
    for (digest, size) in &removed {
        print(&format!("removed sha256:{digest}, {size} bytes"))?;
    }
    let bytes: u64 = removed.iter().map(|(_, size)| size).sum();
    print(&format!("{}: removed {} components, {bytes} bytes", text::path(store.folder()), removed.len()))?;
    Ok(ExitCode::SUCCESS)
}
