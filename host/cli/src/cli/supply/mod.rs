//! The commands for plugins with `source`: they fetch components into the store, check who signed them, and write `wharf.lock`. A wharf
//! that serves does none of this.

use std::{
    io::{IsTerminal, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, Result, bail, ensure};
use wharf_base::{digest::Digest, failed::OrFailed, text::escaped};
use wharf_config::{
    config::{
        Config, PluginConfig, PluginSource,
        sources::{PublishedPlugin, SignerRule, Verdict},
    },
    lock::{Release, same_version},
};
use wharf_supply::{
    Candidate, Fetched, Supply, parse_version,
    store::Store,
    trust::{Signed, SignedAbout, check, check_vouched, said, trusted, verdicts},
};

use super::{
    check::all_or_nothing,
    file::File,
    load::{Look, look},
};

pub mod add;
pub mod fetch;
pub mod lock;
pub mod preview;
pub mod publish;
pub mod remove;
pub mod update;

/// How often the progress of a download is printed.
const INTERVAL: Duration = Duration::from_secs(2);

/// Returns the plugins of a config that have `source`: those with the given ids, or all.
pub fn published<'a>(config: &'a Config, ids: &[String]) -> Result<Vec<(&'a Arc<PluginConfig>, &'a PublishedPlugin)>> {
    let all = config.plugins.iter().filter_map(|plugin| Some((plugin, plugin.source.published()?)));
    let all: Vec<_> = all.collect();
    for id in ids {
        if let Some(server) = config.plugins.iter().find(|plugin| plugin.id == *id).and_then(|one| one.source.server())
        {
            bail!(
                "`{id}` is made of {}; its version is in the config, where you can write another one",
                server.named()
            );
        }
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

/// A component that is trusted: who vouches for it, and for what of it.
#[derive(Debug, Default)]
pub struct Trust {
    /// `None` if the config vouches for the digest.
    pub signer: Option<String>,
    /// The name and the version that its signer vouches for.
    pub said: SignedAbout,
    /// By which rules it is trusted, for the store.
    pub verdicts: Vec<Verdict>,
}

/// What was published with a component, as signatures are checked with it.
pub fn signed(fetched: &Fetched) -> Signed<'_> {
    let manifest = fetched.manifest.as_ref().map(|(bytes, _)| &bytes[..]);
    Signed { component: &fetched.component, manifest, signatures: &fetched.signatures }
}

impl<'a> Policy<'a> {
    pub fn of(plugin: &'a PluginConfig, published: &PublishedPlugin) -> Self {
        Self { signers: published.signers.clone(), vouched: plugin.sha256.as_ref() }
    }

    /// Returns when a component was signed, if a log or an authority proved it.
    pub fn signed_at(&self, fetched: &Fetched) -> Option<SystemTime> {
        check(&signed(fetched), &trusted(&self.signers).ok()?).ok()?.first().at
    }

    /// Checks a component. `version`: what it was found as, a tag or what the lock file says, which has to be the version that was signed.
    /// `before`: the version before of the same plugin, whose name has to be the same, and whose signer is preferred if several signed.
    pub fn check(
        &self,
        signed: &Signed<'_>,
        digest: &Digest,
        version: Option<&str>,
        before: Option<&Release>,
    ) -> Result<Trust> {
        if let Some(vouched) = self.vouched {
            check_vouched(digest, vouched)?;
            return Ok(Trust::default());
        }
        let verified = check(signed, &trusted(&self.signers)?)?;
        let known = before.and_then(|before| before.signer.as_deref()).and_then(|signer| verified.by(signer));
        let by = known.unwrap_or(verified.first());
        let said = said(signed, by)?;
        if let (Some(found), Some(is)) = (version.filter(|one| parse_version(one).is_some()), &said.version) {
            ensure!(
                same_version(found, is),
                "what is there as version {} was signed as version {}; somebody who may write to the place has given it another number, \
                 perhaps to bring back an old fault, so it is not taken",
                escaped(found),
                escaped(is)
            );
        }
        if let Some(name) = before.and_then(|before| before.name.as_ref()) {
            ensure!(
                said.name.as_ref() == Some(name),
                "its signer calls it {}, and the locked one is {}, so it is another plugin, which is not taken; if you want it, remove the \
                 plugin with `wharf remove` and add it again",
                said.name.as_deref().map_or_else(|| "nothing".to_owned(), escaped),
                escaped(name)
            );
        }
        Ok(Trust { signer: Some(by.signer.to_string()), said, verdicts: verdicts(signed, &self.signers)? })
    }
}

/// Checks that a component is the locked version of a plugin.
pub fn check_locked(
    plugin: &PluginConfig,
    of: &PublishedPlugin,
    signed: &Signed<'_>,
    digest: &Digest,
    locked: &Release,
) -> Result<Trust> {
    let policy = Policy::of(plugin, of);
    let trust = policy.check(signed, digest, locked.version.as_deref(), Some(locked))?;
    let named = |signer: &Option<String>| signer.as_deref().map_or_else(|| "nobody".to_owned(), escaped);
    ensure!(
        policy.vouched.is_some() || trust.signer == locked.signer,
        "it is signed by {}, and the lock file says {}; if you trust the former, run `wharf update {} --accept-signer`",
        named(&trust.signer),
        named(&locked.signer),
        plugin.id
    );
    let called = |name: &Option<String>| name.as_deref().map_or_else(|| "nothing".to_owned(), escaped);
    ensure!(
        policy.vouched.is_some() || trust.said.name == locked.name,
        "its signer calls it {}, and the lock file {}, so it may be another plugin; `wharf update {}` takes the right one",
        called(&trust.said.name),
        called(&locked.name),
        plugin.id
    );
    Ok(trust)
}

/// Checks one stored component by the rules of a plugin, without a network.
pub fn check_stored(store: &Store, plugin: &PluginConfig, of: &PublishedPlugin, release: &Release) -> Result<Trust> {
    let component = store.read(&release.digest).context("`wharf lock fetch` fetches it")?;
    ensure!(
        component.len() as u64 == release.size,
        "it has {} bytes, and {} are locked",
        component.len(),
        release.size
    );
    let record = store.record(&release.digest)?;
    let signed = Signed { component: &component, manifest: record.manifest.as_deref(), signatures: &record.signatures };
    check_locked(plugin, of, &signed, &release.digest, release)
}

/// Fetches a component, and prints progress to stderr if that takes long.
pub async fn download(
    supply: &Supply<'_>,
    candidate: Candidate<'_>,
    what: &str,
    policy: &Policy<'_>,
) -> Result<Fetched> {
    // Where the config vouches for a digest, nobody's signature is looked at.
    let trusted = if policy.vouched.is_some() { Vec::new() } else { trusted(&policy.signers)? };
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
    Box::pin(candidate.fetch(supply, &trusted, &progress))
        .await
        .with_context(|| format!("{what} was not fetched"))
        .or_failed()
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
pub fn release(fetched: &Fetched, trust: &Trust) -> Release {
    Release {
        name: trust.said.name.clone(),
        version: trust.said.version.clone().or_else(|| fetched.version.clone()),
        digest: fetched.digest,
        size: fetched.component.len() as u64,
        manifest: fetched.manifest.as_ref().map(|(_, digest)| *digest),
        signer: trust.signer.clone(),
    }
}

/// Describes a version in one line.
pub fn describe(release: &Release) -> String {
    let version = release.version.as_deref().map(|version| format!("{} ", escaped(version))).unwrap_or_default();
    let name = release.name.as_deref().map(|name| format!(" as {}", escaped(name))).unwrap_or_default();
    let signer = match &release.signer {
        Some(signer) => format!("signed by {}{name}", escaped(signer)),
        None => "the config vouches for its digest".to_owned(),
    };
    format!("{version}sha256:{}, {} bytes, {signer}", release.digest, release.size)
}

/// The store of the published plugins, which all have the same.
pub fn store(config: &Config) -> Result<Store> {
    let folder = config.sources.store.as_deref().context("there is no home directory; write `store` in [sources]")?;
    Ok(Store::at(folder))
}
