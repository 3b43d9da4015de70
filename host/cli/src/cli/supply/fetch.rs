//! `wharf lock fetch`: brings the locked components into the store. It chooses no version and asks nothing, so that a pipeline or the start of a
//! container can run it.

use std::{path::Path, process::ExitCode};

use anyhow::{Context, Result, anyhow, ensure};
use wharf_base::{failed::failed, text};
use wharf_config::{
    config::{Config, PluginConfig, sources::PublishedPlugin},
    lock::Release,
};
use wharf_supply::Supply;

use super::{Policy, check_locked, check_stored, download, open, published, signed, store};
use crate::cli::{load::print, lock_file::LockFile};

pub async fn run(config: Option<&Path>) -> Result<ExitCode> {
    let (file, config) = open(config)?;
    let lock = LockFile::open(&file.path)?;
    let supply = Supply::new(&config);
    let (mut fetched, mut had, mut problems) = (0, 0, Vec::new());
    for (plugin, of) in published(&config, &[])? {
        match Box::pin(one(&config, &supply, &lock, plugin, of)).await {
            Ok(true) => fetched += 1,
            Ok(false) => had += 1,
            Err(error) => problems.push(format!("{}: {error:#}", plugin.id)),
        }
    }
    let store = store(&config)?;
    for problem in &problems {
        print(problem)?;
    }
    print(&format!("{}: {fetched} fetched, {had} were there already", text::path(store.folder())))?;
    match problems.first() {
        Some(first) => Err(failed(anyhow!("{} of the locked plugins are not in the store: {first}", problems.len()))),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Returns whether the component had to be fetched.
async fn one(
    config: &Config,
    supply: &Supply<'_>,
    lock: &LockFile,
    plugin: &PluginConfig,
    of: &PublishedPlugin,
) -> Result<bool> {
    bring(config, supply, plugin, of, &of.version_in(&lock.lock)?.release).await
}

/// Brings a locked version into the store, trusted for this plugin. What is there for another plugin counts only if the rules of this one
/// trust it. Returns whether it had to be fetched.
pub async fn bring(
    config: &Config,
    supply: &Supply<'_>,
    plugin: &PluginConfig,
    of: &PublishedPlugin,
    release: &Release,
) -> Result<bool> {
    let store = store(config)?;
    if !store.has(&release.digest)? {
        fetch_locked(config, supply, plugin, of, release).await?;
        return Ok(true);
    }
    match check_stored(&store, plugin, of, release) {
        Ok(trust) => {
            store.vouch(&release.digest, trust.verdicts)?;
            Ok(false)
        }
        Err(why) => {
            let fetched = fetch_locked(config, supply, plugin, of, release).await;
            fetched.with_context(|| {
                format!("the store has sha256:{}, which is not trusted for {}: {why:#}", release.digest, plugin.id)
            })?;
            Ok(true)
        }
    }
}

/// Fetches exactly the locked component, and checks who signed it.
async fn fetch_locked(
    config: &Config,
    supply: &Supply<'_>,
    plugin: &PluginConfig,
    of: &PublishedPlugin,
    release: &Release,
) -> Result<()> {
    let what = of.reference.to_string();
    let candidate = Box::pin(supply.find_locked(&of.reference, release.manifest)).await?;
    let mut fetched = download(supply, candidate, &what, &Policy::of(plugin, of)).await?;
    ensure!(
        fetched.digest == release.digest,
        "{what} has the component sha256:{} now, and sha256:{} is locked; it was published again, so the locked one cannot be fetched any \
         more; see what the new one is with `wharf update {}`",
        fetched.digest,
        release.digest,
        plugin.id
    );
    fetched.version.clone_from(&release.version);
    let trust = check_locked(plugin, of, &signed(&fetched), &fetched.digest, release);
    let trust = trust.with_context(|| format!("{what} is not trusted"))?;
    store(config)?.put(&what, &fetched, trust.verdicts)
}
