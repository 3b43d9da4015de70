//! `wharf cache`: lists what wharf has built and compiled for later, and removes it.

#![expect(clippy::disallowed_methods, reason = "reads and removes what is in the cache")]

use std::{
    fs,
    io::ErrorKind,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result};

use super::{
    arguments::{Cache, CacheCommand},
    load::print,
};
use crate::authoring::existing::{cache as folders, locks};
use wharf_base::text::{self, escaped};
use wharf_config::config::{cache_dir, existing};

/// For how long something has to be unused for `wharf cache clean` to remove it.
const UNUSED: Duration = Duration::from_hours(30 * 24);

/// A folder of the cache.
struct Entry {
    folder: PathBuf,
    /// The server that is built there.
    server: Option<String>,
    bytes: u64,
    unused: Duration,
}

impl Entry {
    /// Whether the file of the server does not exist any more.
    fn is_orphan(&self) -> bool {
        self.server.as_deref().is_some_and(|server| server.starts_with('/') && !Path::new(server).exists())
    }

    fn shown(&self) -> String {
        let name = self.folder.file_name().unwrap_or_default().to_string_lossy();
        let server = self.server.as_deref().map(|server| format!("  {server}")).unwrap_or_default();
        let gone = if self.is_orphan() { ", which does not exist any more" } else { "" };
        let used = match self.unused.as_secs() / 86_400 {
            0 => "today".to_owned(),
            days => format!("{days} days ago"),
        };
        escaped(&format!("{:>8}  {name}{server}{gone}  (used {used})", size(self.bytes)))
    }
}

pub fn run(command: &Cache) -> Result<ExitCode> {
    let cache = cache_dir().context("there is no home directory, so nothing is kept")?;
    let (servers, tools) = (entries(existing::folder())?, entries(existing::tools())?);
    let compiled = compiled(&cache)?;
    match command.command {
        None => list(&cache, &servers, &tools, &compiled),
        Some(CacheCommand::Clean { all }) => clean(&servers, &tools, if all { &compiled } else { &[] }, all),
    }
}

fn list(cache: &Path, servers: &[Entry], tools: &[Entry], compiled: &[(PathBuf, u64)]) -> Result<ExitCode> {
    let code = compiled.iter().map(|(_, bytes)| bytes).sum();
    let folders = servers.iter().chain(tools).map(|entry| entry.bytes).sum::<u64>();
    print(&format!(
        "{} has {}; `wharf cache clean` removes the servers that did not start for 30 days, and what builds them",
        text::path(cache),
        size(code + folders)
    ))?;
    print(&format!("{:>8}  compiled code, {} files", size(code), compiled.len()))?;
    for (title, entries) in [("servers", servers), ("what builds servers", tools)] {
        if !entries.is_empty() {
            print(&format!("{title}:"))?;
        }
        entries.iter().try_for_each(|entry| print(&entry.shown()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Removes what has been unused for long, or everything. What a build uses stays, and so does what builds servers while one runs.
fn clean(servers: &[Entry], tools: &[Entry], compiled: &[(PathBuf, u64)], all: bool) -> Result<ExitCode> {
    let no_build = match existing::folder().filter(|folder| folder.is_dir()) {
        Some(folder) => locks::of_no_build(&folder)?,
        None => Some(Vec::new()),
    };
    let (mut removed, mut bytes, mut failed) = (0_usize, 0_u64, false);
    let mut tell = |what: String, outcome: Result<bool>, size: u64| {
        match outcome {
            Ok(false) => print(&format!("{what}: a build uses it, so it stays"))?,
            Ok(true) => (removed, bytes) = (removed + 1, bytes.saturating_add(size)),
            Err(error) => {
                failed = true;
                print(&escaped(&format!("{error:#}")))?;
            }
        }
        anyhow::Ok(())
    };
    for (entry, is_free) in
        servers.iter().map(|entry| (entry, true)).chain(tools.iter().map(|entry| (entry, no_build.is_some())))
    {
        if all || entry.unused >= UNUSED || entry.is_orphan() {
            let outcome = if is_free { folders::remove(&entry.folder) } else { Ok(false) };
            if matches!(outcome, Ok(true)) {
                print(&entry.shown())?;
            }
            tell(text::path(&entry.folder), outcome, entry.bytes)?;
        }
    }
    for (file, size) in compiled {
        let outcome = match fs::remove_file(file) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error).with_context(|| text::path(file)),
            _ => Ok(true),
        };
        tell(text::path(file), outcome, *size)?;
    }
    print(&format!("removed {removed} of {}: {}", servers.len() + tools.len() + compiled.len(), size(bytes)))?;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Returns the folders in a folder of the cache, the largest first.
fn entries(folder: Option<PathBuf>) -> Result<Vec<Entry>> {
    let Some(folder) = folder.filter(|folder| folder.is_dir()) else { return Ok(Vec::new()) };
    let mut entries = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| text::path(&folder))? {
        let entry = entry?;
        let folder = entry.path();
        if entry.file_type()?.is_dir() {
            let (server, unused) = (folders::server(&folder), unused(folders::used(&folder)));
            entries.push(Entry { server, bytes: bytes(&folder), unused, folder });
        }
    }
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.bytes));
    Ok(entries)
}

/// Returns the files of compiled code, with their sizes.
fn compiled(cache: &Path) -> Result<Vec<(PathBuf, u64)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(cache).into_iter().flatten() {
        let entry = entry?;
        // Another wharf may have removed it meanwhile.
        let Ok(metadata) = entry.metadata() else { continue };
        if entry.file_name().to_string_lossy().ends_with(".artifact") {
            files.push((entry.path(), metadata.len()));
        }
    }
    Ok(files)
}

fn unused(since: Option<SystemTime>) -> Duration {
    since.and_then(|at| at.elapsed().ok()).unwrap_or_default()
}

/// Returns the space that a folder takes, as far as it can be read: what is built may put anything into it.
fn bytes(folder: &Path) -> u64 {
    let (mut bytes, mut folders) = (0_u64, vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            bytes = bytes.saturating_add(metadata.blocks().saturating_mul(512));
            if metadata.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    bytes
}

fn size(bytes: u64) -> String {
    format!("{} MB", bytes.div_ceil(1_000_000))
}
