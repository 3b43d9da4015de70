//! What keeps builds apart, in this process and in others of this user: one at a time in each folder, and a few in all.

#![expect(clippy::disallowed_methods, reason = "locks files in the cache")]

use std::{
    fs::{File, OpenOptions},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use tokio::task::JoinSet;

use wharf_base::{failed::OrFailed, text};

/// Returns the file whose lock a build in this folder holds.
pub fn path(folder: &Path) -> PathBuf {
    folder.with_extension("lock")
}

/// Returns the lock of a folder. None: something builds there.
pub fn of_unused(folder: &Path) -> Result<Option<File>> {
    let own = open(&path(folder))?;
    Ok(own.try_lock().is_ok().then_some(own))
}

/// Waits until nothing else builds in a folder. The lock is held until the file is dropped.
pub async fn of_folder(folder: &Path) -> Result<File> {
    let own = open(&path(folder))?;
    if own.try_lock().is_ok() {
        return Ok(own);
    }
    tracing::info!("another wharf builds in {}; waiting for it", text::path(folder));
    first([own]).await
}

/// Waits until fewer than [`places`] servers are built. `folder`: where each of them has its folder.
pub async fn of_place(folder: &Path) -> Result<File> {
    let places = (0..places()).map(|number| open(&path(&building(folder, number))));
    let places: Vec<_> = places.collect::<Result<_>>()?;
    if let Some(free) = places.iter().position(|place| place.try_lock().is_ok()) {
        return places.into_iter().nth(free).context("a place was free");
    }
    tracing::info!("{} other servers are being built; waiting until one is", places.len());
    first(places).await
}

/// Returns all places for builds. None: something is built. `folder`: as in [`of_place`].
pub fn of_no_build(folder: &Path) -> Result<Option<Vec<File>>> {
    let places: Vec<_> = (0..places()).map(|number| of_unused(&building(folder, number))).collect::<Result<_>>()?;
    Ok(places.into_iter().collect())
}

fn building(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("building-{number}"))
}

/// How many servers are built at a time: a build keeps about one core busy, and takes up to a gigabyte of memory.
fn places() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 8)
}

fn open(path: &Path) -> Result<File> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path);
    file.with_context(|| text::path(path)).or_failed()
}

/// Waits until one of the files can be locked. The others are unlocked again as soon as they are.
async fn first(files: impl IntoIterator<Item = File>) -> Result<File> {
    let mut waiting = JoinSet::new();
    for file in files {
        waiting.spawn_blocking(move || file.lock().map(|()| file));
    }
    let locked = waiting.join_next().await.context("there is a file to lock")?;
    locked?.context("a lock of a build").or_failed()
}
