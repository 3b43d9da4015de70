//! The commands that only look: `wharf outdated`, `wharf verify`, and `wharf lock --check`.

use std::{collections::BTreeSet, path::Path, process::ExitCode};

use anyhow::{Context, Result, anyhow, ensure};
use wharf_base::{
    failed::failed,
    text::{self, escaped},
};
use wharf_config::{
    config::{reference::SourceReference, sources::PublishedPlugin},
    lock::{Lock, Release},
};
use wharf_supply::{Supply, parse_version, trust::trusted};

use super::{check_stored, describe, open, published, store, update::compared};
use crate::cli::{file::File, load::print, lock_file::LockFile};

/// Runs `wharf outdated`: asks the sources which versions they have, and changes nothing.
pub async fn outdated(config: Option<&Path>) -> Result<ExitCode> {
    let (file, config) = open(config)?;
    let lock = LockFile::open(&file.path)?;
    let (supply, mut problems) = (Supply::new(&config), 0);
    for (plugin, of) in published(&config, &[])? {
        let said = match Box::pin(newer(&supply, &lock, of)).await {
            Ok(said) => said,
            Err(error) => {
                problems += 1;
                format!("{error:#}")
            }
        };
        print(&format!("{}: {said}", plugin.id))?;
    }
    ensure!(problems == 0, failed(anyhow!("{problems} of the sources did not answer")));
    Ok(ExitCode::SUCCESS)
}

async fn newer(supply: &Supply<'_>, lock: &LockFile, of: &PublishedPlugin) -> Result<String> {
    let entry = of.version_in(&lock.lock)?;
    let is = entry.release.version.as_deref().map_or_else(|| format!("sha256:{}", entry.release.digest), escaped);
    let candidate = supply.find(&of.reference).await?;
    let id = &of.id;
    let known = candidate.digest();
    if known.is_none() {
        return Ok(format!(
            "{is}; {} has no versions, so only `wharf update {id}` can tell whether it has changed",
            of.reference
        ));
    }
    if known != Some(entry.release.digest) {
        let now = candidate.version.as_deref().map_or_else(|| "another component".to_owned(), escaped);
        return Ok(format!("{is}, and {now} is there; see it with `wharf update {id}`"));
    }
    if let SourceReference::Oci(oci) = &of.reference
        && let Some(newest) = supply.newest(oci).await?
        && let Some(version) = parse_version(&newest)
        && entry.release.version.as_deref().and_then(parse_version).is_some_and(|locked| version > locked)
    {
        return Ok(format!(
            "{is}, and {newest} is there, beyond `source`; take it with `wharf update {id} --to {newest}`"
        ));
    }
    Ok(format!("{is} is up to date"))
}

/// Runs `wharf verify`: checks the stored components and their signatures again, without a network.
pub fn verify(config: Option<&Path>) -> Result<ExitCode> {
    let (file, config) = open(config)?;
    let lock = LockFile::open(&file.path)?;
    let mut problems = 0;
    for (plugin, of) in published(&config, &[])? {
        let checked = of.version_in(&lock.lock).and_then(|entry| {
            let trust = check_stored(&store(&config)?, plugin, of, &entry.release);
            trust.map(|_| ())
        });
        match checked {
            Ok(()) => print(&format!("{}: {}", plugin.id, describe(&of.version_in(&lock.lock)?.release)))?,
            Err(error) => {
                problems += 1;
                print(&format!("{}: {error:#}", plugin.id))?;
            }
        }
    }
    ensure!(problems == 0, failed(anyhow!("{problems} plugins are not as they are locked")));
    Ok(ExitCode::SUCCESS)
}

/// What is wrong with the signer of a locked version, if anything: the text is compared with the rules, and no signature is looked at.
fn misfit(of: &PublishedPlugin, release: &Release) -> Result<Option<String>> {
    let Some(signer) = &release.signer else {
        return Ok(Some("the config wants a signature, and the lock file names no signer".to_owned()));
    };
    let trusted = trusted(&of.signers).context("its signer was not compared with the config")?;
    Ok((!trusted.iter().any(|one| one.could_be(signer))).then(|| {
        let rules: Vec<String> = trusted.iter().map(ToString::to_string).collect();
        format!("it is locked as signed by {}, and the config trusts {} only", escaped(signer), rules.join(" or "))
    }))
}

/// Runs `wharf lock --check`: whether the lock file fits the config, and what it means. It needs no network and no secrets. `since`: an
/// earlier lock file, of which the differences are printed.
pub fn check(since: Option<&Path>, config: Option<&Path>) -> Result<ExitCode> {
    let file = File::existing(config)?;
    let config = file.config_elsewhere()?;
    let lock = LockFile::open(&file.path)?;
    let path = text::path(&lock.path);
    let mut problems = Vec::new();
    for (plugin, of) in published(&config, &[])? {
        let id = &plugin.id;
        match of.version_in(&lock.lock) {
            Ok(entry) => {
                let release = &entry.release;
                if since.is_none() {
                    print(&format!("{id}: {}", describe(release)))?;
                }
                if plugin.sha256.is_some_and(|vouched| vouched != release.digest) {
                    problems.push(format!("{id}: the config vouches for another digest than the locked one"));
                }
                match (!of.is_vouched).then(|| misfit(of, release)).transpose() {
                    Ok(problem) => problems.extend(problem.flatten().map(|problem| format!("{id}: {problem}"))),
                    // The key may be on the server only.
                    Err(error) => print(&format!("{id}: {error:#}"))?,
                }
                if lock.lock.accepted(id).is_none() {
                    problems.push(format!("{id}: {path} accepts nothing of what it tells models"));
                }
            }
            Err(error) => problems.push(format!("{id}: {error:#}")),
        }
    }
    for id in lock.lock.sources().keys() {
        if !config.plugins.iter().any(|plugin| plugin.id == *id && plugin.source.published().is_some()) {
            problems.push(format!(
                "{id}: {path} has a version of it, and the config has no plugin of this id with `source`"
            ));
        }
    }
    if let Some(since) = since {
        let before = Lock::read(since)?;
        let ids: BTreeSet<&String> = before.ids().chain(lock.lock.ids()).collect();
        let lines: Vec<String> = ids.into_iter().flat_map(|id| compared(&before, &lock.lock, id)).collect();
        lines.iter().try_for_each(|line| print(line))?;
        if lines.is_empty() {
            print("no plugin changes")?;
        }
    }
    problems.iter().try_for_each(|problem| print(problem))?;
    ensure!(problems.is_empty(), failed(anyhow!("{path} does not fit the config")));
    Ok(ExitCode::SUCCESS)
}
