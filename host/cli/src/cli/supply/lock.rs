//! `wharf lock`, and its checks.

use std::{collections::BTreeSet, path::Path, process::ExitCode};

use anyhow::{Context, Result, anyhow, ensure};
use wharf_base::{
    failed::failed,
    text::{self, escaped},
};
use wharf_config::{
    config::sources::PublishedPlugin,
    lock::{Lock, Release},
};
use wharf_supply::trust::trusted;

use super::{
    check_stored, describe, fetch, open, published,
    remove::prune,
    store,
    update::{compared, rollback},
};
use crate::cli::{accept, arguments::Lock as Command, file::File, load::print, lock_file::LockFile};

pub async fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Fetch(file) => Box::pin(fetch::run(file.config.as_deref())).await,
        Command::Check { since, config } => check(since.as_deref(), config.config.as_deref()),
        Command::Verify(file) => verify(file.config.as_deref()),
        Command::Accept { of, print } => accept::run(&of, print).await,
        Command::Rollback(of) => Box::pin(rollback(&of)).await,
        Command::Prune { others, config } => prune(&others, config.config.as_deref()),
    }
}

/// Checks the stored components and their signatures again, without a network.
fn verify(config: Option<&Path>) -> Result<ExitCode> {
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

/// Checks whether the lock file fits the config, and says what it means. It needs no network and no secrets. `since`: an
/// earlier lock file, of which the differences are printed.
fn check(since: Option<&Path>, config: Option<&Path>) -> Result<ExitCode> {
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
