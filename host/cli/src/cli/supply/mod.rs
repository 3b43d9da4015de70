//! The commands for plugins with `source`: they fetch components into the store, check who signed them, and write `wharf.lock`. A wharf
//! that serves does none of this.

use std::{
    io::{IsTerminal, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, Result, ensure};
use wharf_base::{failed::OrFailed, text::escaped};
use wharf_config::{
    config::{
        Config, PluginConfig, PluginSource,
        sources::{PublishedPlugin, SignerRule},
    },
    lock::Release,
};
use wharf_sandbox::Digest;
use wharf_supply::{
    Candidate, Fetched, Supply,
    store::Store,
    trust::{Signed, check, check_vouched, trusted},
};

use super::{
    check::all_or_nothing,
    file::File,
    load::{Look, look},
};

pub mod add;
pub mod known;
pub mod publish;
pub mod remove;
pub mod seen;
pub mod sync;
pub mod update;

/// How often the progress of a download is printed.
const INTERVAL: Duration = Duration::from_secs(2);

/// Returns the plugins of a config that have `source`: those with the given ids, or all.
pub fn published<'a>(config: &'a Config, ids: &[String]) -> Result<Vec<(&'a Arc<PluginConfig>, &'a PublishedPlugin)>> {
    let all = config.plugins.iter().filter_map(|plugin| Some((plugin, plugin.source.published()?)));
    let all: Vec<_> = all.collect();
    for id in ids {
        let named: Vec<&str> = all.iter().map(|(plugin, _)| plugin.id.as_str()).collect();
        ensure!(
            named.contains(&id.as_str()),
            "there is no plugin `{}` with `source`; those with `source` are: {}",
            escaped(id),
            all_or_nothing(&named)
        );
    }
    Ok(all.into_iter().filter(|(plugin, _)| ids.is_empty() || ids.contains(&plugin.id)).collect())
}

/// Opens the config of a command that needs one.
pub fn open(config: Option<&Path>) -> Result<(File, Config)> {
    let file = File::existing(config)?;
    let config = file.config()?;
    Ok((file, config))
}

/// Who has to vouch for a component.
pub struct Policy<'a> {
    pub signers: Vec<SignerRule>,
    pub vouched: Option<&'a Digest>,
}

impl<'a> Policy<'a> {
    pub fn of(plugin: &'a PluginConfig, published: &PublishedPlugin, config: &Config) -> Self {
        let signers = match &published.signer {
            Some(signer) => vec![signer.clone()],
            None => config.sources.signers.clone(),
        };
        Self { signers, vouched: plugin.sha256.as_ref() }
    }

    /// Checks a component. Returns who signed it; `None` if the config vouches for it. `before`: the signer of the version before, who is
    /// preferred if several signed.
    pub fn check(&self, fetched: &Fetched, before: Option<&str>) -> Result<Option<String>> {
        let manifest = fetched.manifest.as_ref().map(|(bytes, _)| &bytes[..]);
        let signed = Signed { component: &fetched.component, manifest, signatures: &fetched.signatures };
        self.check_signed(&signed, &fetched.digest, before)
    }

    /// Returns when a component was signed, if a log or an authority proved it.
    pub fn signed_at(&self, fetched: &Fetched) -> Option<SystemTime> {
        let manifest = fetched.manifest.as_ref().map(|(bytes, _)| &bytes[..]);
        let signed = Signed { component: &fetched.component, manifest, signatures: &fetched.signatures };
        check(&signed, &trusted(&self.signers).ok()?).ok()?.first().at
    }

    pub fn check_signed(&self, signed: &Signed<'_>, digest: &Digest, before: Option<&str>) -> Result<Option<String>> {
        if let Some(vouched) = self.vouched {
            check_vouched(digest, vouched)?;
            return Ok(None);
        }
        let verified = check(signed, &trusted(&self.signers)?)?;
        let known = before.and_then(|before| verified.by(before));
        Ok(Some(known.unwrap_or(verified.first()).signer.to_string()))
    }
}

/// Fetches a component, and prints progress to stderr if that takes long.
pub async fn fetch(supply: &Supply<'_>, candidate: Candidate<'_>, what: &str) -> Result<Fetched> {
    let last = Mutex::new(Instant::now());
    let progress = |read: usize, of: Option<u64>| {
        let Ok(mut last) = last.lock() else { return };
        if last.elapsed() < INTERVAL {
            return;
        }
        *last = Instant::now();
        let mib = |bytes: f64| format!("{:.1}", bytes / f64::from(1 << 20));
        let of = of.map(|of| format!(" of {}", mib(of as f64))).unwrap_or_default();
        writeln!(std::io::stderr(), "fetching {what}: {}{of} MiB", mib(read as f64)).ok();
    };
    if std::io::stderr().is_terminal() {
        writeln!(std::io::stderr(), "fetching {what}").ok();
    }
    Box::pin(candidate.fetch(supply, &progress)).await.with_context(|| format!("{what} was not fetched")).or_failed()
}

/// Loads a stored component with the config of a plugin, only to look at it.
pub async fn look_at(mut config: Config, id: &str, path: PathBuf) -> Result<Look> {
    for plugin in config.plugins.iter_mut().filter(|plugin| plugin.id == id) {
        let plugin = Arc::make_mut(plugin);
        (plugin.source, plugin.sha256) = (PluginSource::File(path.clone()), None);
    }
    look(config, id).await
}

/// The entry in the lock file for a fetched component.
pub fn release(fetched: &Fetched, signer: Option<String>) -> Release {
    Release {
        version: fetched.version.clone(),
        digest: fetched.digest,
        size: fetched.component.len() as u64,
        manifest: fetched.manifest.as_ref().map(|(_, digest)| *digest),
        signer,
    }
}

/// Describes a version in one line.
pub fn describe(release: &Release) -> String {
    let version = release.version.as_deref().map(|version| format!("{} ", escaped(version))).unwrap_or_default();
    let signer = match &release.signer {
        Some(signer) => format!("signed by {}", escaped(signer)),
        None => "the config vouches for its digest".to_owned(),
    };
    format!("{version}sha256:{}, {} bytes, {signer}", release.digest, release.size)
}

/// The store of the published plugins, which all have the same.
pub fn store(config: &Config) -> Result<Store> {
    let folder = config.sources.store.as_deref().context("there is no home directory; write `store` in [sources]")?;
    Ok(Store::at(folder))
}
