//! `[sources]`: from where plugins may be fetched, who has to have signed them, and where they are stored.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use http::Uri;
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use super::{
    default_paths::{self, base_dirs},
    existing::Package,
    raw,
    reference::SourceReference,
};
use crate::lock::{FILE_NAME, Lock, Release, Source, same_version};
use wharf_base::{digest::Digest, guard, text};
use wharf_egress::{
    secrets::{SecretSource, SecretSources},
    target::Target,
};
use wharf_policy::access::capability::Absolute;

/// The longest `min_age`.
const MAX_AGE: Duration = Duration::from_hours(24 * 365);
/// The largest file of a key or a trusted root, and the largest record of a component in the store.
pub const MAX_KEY_BYTES: u64 = 1 << 20;
pub const MAX_RECORD_BYTES: u64 = 64 << 20;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct SourceRules {
    /// The places that plugins may come from. None: any.
    allow: Option<Vec<String>>,
    /// Those who may have signed a plugin whose table names no signer.
    pub signers: Vec<SignerRule>,
    /// The age that a version has to have before an update takes it.
    pub min_age: Duration,
    /// What is asked in place of a registry: a host, and the beginning of the repository's name.
    pub mirrors: BTreeMap<String, String>,
    pub logins: BTreeMap<String, Login>,
    /// The folder of the fetched components. None: no folder is configured, and there is no home directory.
    pub store: Option<PathBuf>,
}

/// The user and the password for a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    pub user: String,
    pub password: SecretSource,
}

/// Somebody whose signature counts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SignerRule {
    /// The owner of a key, whose public half is in a PEM file.
    Key(PathBuf),
    /// The owner of a minisign key; the text is its public half.
    Minisign(String),
    /// Whom a certificate of sigstore names.
    Identity { identity: String, issuer: String, trusted_root: Option<PathBuf> },
}

impl SignerRule {
    pub fn resolve(raw: raw::Signer, absolute: Absolute<'_>) -> Result<Self> {
        Ok(match raw {
            raw::Signer { key: Some(path), minisign: None, identity: None, issuer: None, trusted_root: None } => {
                Self::Key(absolute(&path)?)
            }
            raw::Signer { key: None, minisign: Some(key), identity: None, issuer: None, trusted_root: None } => {
                Self::Minisign(key)
            }
            raw::Signer { key: None, minisign: None, identity: Some(identity), issuer: Some(issuer), trusted_root } => {
                ensure!(!identity.is_empty() && !issuer.is_empty(), "`identity` or `issuer` is empty");
                let trusted_root = trusted_root.as_deref().map(absolute).transpose()?;
                Self::Identity { identity, issuer, trusted_root }
            }
            _ => bail!(
                "a signer is {{ key = \"FILE.pub\" }}, {{ minisign = \"RW…\" }}, or {{ identity = \"…\", issuer = \"https://…\" }}, \
                 the last with `trusted_root` for a sigstore of your own"
            ),
        })
    }

    /// The text by which the store knows the rule. It has the contents of the rule's files, so another key at the same path is another rule.
    pub fn mark(&self) -> Result<String> {
        #[expect(clippy::disallowed_methods, reason = "a file of the operator, whose permissions are checked")]
        let contents = |path: &Path, what| -> Result<Digest> {
            guard::check_trusted_file(path, what)?;
            ensure!(fs::metadata(path)?.len() <= MAX_KEY_BYTES, "{}: too large for a {what}", text::path(path));
            let bytes = fs::read(path).with_context(|| format!("{}: cannot be read", text::path(path)))?;
            Ok(<[u8; 32]>::from(<Sha256 as sha2::Digest>::digest(bytes)).into())
        };
        Ok(match self {
            Self::Key(path) => format!("key file {}", contents(path, "key")?),
            Self::Minisign(key) => format!("minisign {key}"),
            Self::Identity { identity, issuer, trusted_root: None } => format!("identity {identity}, issuer {issuer}"),
            Self::Identity { identity, issuer, trusted_root: Some(path) } => {
                format!("identity {identity}, issuer {issuer}, root {}", contents(path, "trusted root")?)
            }
        })
    }
}

/// That a signature of a component counts. The store has those of each component, so that a wharf that serves can tell whether the component
/// is trusted for the plugin that is to be loaded from it, without a network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// The rule by which it counts, as [`SignerRule::mark`] gives it.
    pub rule: String,
    pub signer: String,
    /// The name and the version that the signer vouches for, if the signed manifest has them.
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub version: Option<String>,
}

impl Verdict {
    /// Whether a version in the lock file is the one that was signed.
    fn is_for(&self, release: &Release) -> bool {
        let locked = release.version.as_deref();
        release.signer.as_ref() == Some(&self.signer)
            && release.name == self.name
            && self.version.as_deref().is_none_or(|signed| locked.is_some_and(|locked| same_version(locked, signed)))
    }
}

/// The part of a record in the store that says whose signatures count.
#[derive(Deserialize)]
struct Verdicts {
    #[serde(default)]
    verdicts: Vec<Verdict>,
}

impl SourceRules {
    pub fn resolve(raw: raw::Sources, secrets: &SecretSources, absolute: Absolute<'_>) -> Result<Self> {
        let raw::Sources { allow, signers, min_age, mirrors, logins, store } = raw;
        for place in allow.iter().flatten().filter(|place| !SourceReference::is_server(place)) {
            let (host, _) = place.split_once('/').with_context(|| {
                format!("`allow`: `{}` has no `/`; write registry.example/ for all of a registry", place.escape_debug())
            })?;
            ensure!(
                place.starts_with("file:/") || is_host(host),
                "`allow`: `{}` begins with a host and a `/`, or with file:/, npm: or pypi:",
                place.escape_debug()
            );
        }
        let signers = signers.into_iter().map(|raw| SignerRule::resolve(raw, absolute));
        let signers = signers.collect::<Result<_>>().context("`signers`")?;
        let min_age = match min_age.as_deref() {
            None => Duration::ZERO,
            Some(text) => humantime::parse_duration(text)
                .ok()
                .filter(|age| *age <= MAX_AGE)
                .context("`min_age` is a time of at most a year, such as \"3d\" or \"12h\"")?,
        };
        for (registry, mirror) in &mirrors {
            ensure!(is_host(registry), "`mirrors`: `{}` is not the host of a registry", registry.escape_debug());
            let host = mirror.split('/').next().unwrap_or_default();
            ensure!(
                is_host(host) && !mirror.ends_with('/'),
                "`mirrors`: `{}` is a host, or a host and the beginning of a repository's name, such as mirror.example/cache",
                mirror.escape_debug()
            );
        }
        let login = |(registry, raw): (String, raw::RegistryLogin)| -> Result<(String, Login)> {
            ensure!(is_host(&registry), "`logins`: `{}` is not the host of a registry", registry.escape_debug());
            let Some(password) = secrets.get(&raw.secret) else {
                bail!("`logins`: there is no secret `{}` in [secrets]", raw.secret.escape_debug());
            };
            Ok((registry, Login { user: raw.user, password: password.clone() }))
        };
        let logins = logins.into_iter().map(login).collect::<Result<_>>()?;
        let store = match store {
            Some(path) => Some(absolute(&path).context("`store`")?),
            None => default_store(),
        };
        Ok(Self { allow, signers, min_age, mirrors, logins, store })
    }

    /// Checks that plugins may come from a place.
    pub fn check_allowed(&self, reference: &SourceReference) -> Result<()> {
        self.check_place(&reference.place())
    }

    /// Checks that a plugin may be made of a package. It is signed by nobody that wharf could ask about.
    pub fn check_package(&self, package: &Package, is_pinned: bool) -> Result<()> {
        let any_version = Package { version: None, program: None, ..package.clone() };
        self.check_place(&any_version.to_string())?;
        ensure!(
            is_pinned || self.signers.is_empty(),
            "packages of npm and PyPI have no signature of those in `signers` of [sources]; `sha256` pins the component that is made of it, and \
             `wharf inspect --build {package}` prints that"
        );
        Ok(())
    }

    fn check_place(&self, place: &str) -> Result<()> {
        let Some(allow) = &self.allow else { return Ok(()) };
        let begins = |one: &str| one.ends_with(['/', ':']) && place.starts_with(one);
        ensure!(
            allow.iter().any(|one| place == one || begins(one)),
            "{} is not in `allow` of [sources], which has: {}",
            text::escaped(place),
            if allow.is_empty() { "nothing".into() } else { allow.join(", ") }
        );
        Ok(())
    }
}

/// Returns the folder of the fetched components if the config names none. None: there is no home directory.
pub(super) fn default_store() -> Option<PathBuf> {
    base_dirs("XDG_DATA_HOME", ".local/share").next().map(|base| base.join("wharf").join("store"))
}

/// Parses the value of `signer`, with absolute paths.
pub fn signer(toml: &str) -> Result<SignerRule> {
    #[derive(serde::Deserialize)]
    struct Table {
        signer: raw::Signer,
    }
    let table: Table = toml::from_str(&format!("signer = {toml}"))?;
    SignerRule::resolve(table.signer, &|path| default_paths::absolute(path, None))
}

fn is_host(text: &str) -> bool {
    let uri = format!("https://{text}/").parse::<Uri>();
    uri.is_ok_and(|uri| Target::of(&uri).is_ok_and(|target| target.authority() == text && uri.path() == "/"))
}

/// A plugin whose component is published somewhere: `wharf.lock` says which version of it is loaded, from the store.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PublishedPlugin {
    pub id: String,
    pub reference: SourceReference,
    /// Who has to have signed it: `signer` in its table, or else `signers` in `[sources]`.
    pub signers: Vec<SignerRule>,
    /// Whether the config vouches for one digest, so that nobody has to have signed it.
    pub is_vouched: bool,
    pub lock: PathBuf,
    pub store: PathBuf,
}

impl PublishedPlugin {
    pub fn resolve(
        id: &str,
        raw: &raw::Plugin,
        reference: &str,
        sources: &SourceRules,
        absolute: Absolute<'_>,
    ) -> Result<Self> {
        let reference = SourceReference::parse(reference, absolute).context("`source`")?;
        sources.check_allowed(&reference).context("`source`")?;
        let signer =
            raw.signer.clone().map(|raw| SignerRule::resolve(raw, absolute)).transpose().context("`signer`")?;
        let signers = signer.map_or_else(|| sources.signers.clone(), |signer| vec![signer]);
        let is_vouched = raw.sha256.is_some();
        ensure!(
            !signers.is_empty() || is_vouched,
            "`source` needs somebody to trust: write `signer` here or `signers` in [sources], or `sha256` for one version that you vouch \
             for; `wharf add {reference}` asks"
        );
        let store = sources.store.clone().context("there is no home directory; write `store` in [sources]")?;
        Ok(Self { id: id.to_owned(), reference, signers, is_vouched, lock: absolute(FILE_NAME)?, store })
    }

    /// Returns the version that a lock file has of the plugin. It has to have come from where the config says.
    pub fn version_in<'a>(&self, lock: &'a Lock) -> Result<&'a Source> {
        let (path, id) = (text::path(&self.lock), &self.id);
        let Some(entry) = lock.source(id) else {
            bail!("{path} has no version of {id} yet; run `wharf update {id}`");
        };
        ensure!(
            entry.source == self.reference.to_string(),
            "{path} has a version of {id} from {}, and the config says {}; run `wharf update {id}`",
            text::escaped(&entry.source),
            self.reference
        );
        Ok(entry)
    }

    /// Returns the digest that the lock file has for the plugin, and the file of the component in the store. A component that is there because
    /// another plugin has it is not trusted for this one.
    pub fn locked(&self) -> Result<(Digest, PathBuf)> {
        let lock = Lock::read(&self.lock)?;
        let release = &self.version_in(&lock)?.release;
        let (id, path) = (&self.id, in_store(&self.store, &release.digest));
        ensure!(
            path.try_exists()?,
            "{id} is locked with the digest sha256:{}, which is not in the store {}; run `wharf lock fetch`",
            release.digest,
            text::path(&self.store)
        );
        ensure!(
            self.is_vouched || self.is_trusted(release, &path.with_extension("json"))?,
            "{id} is locked with the digest sha256:{}, as signed by {}, and the store {} does not say that this signature counts for {id}; \
             run `wharf lock fetch`, which checks it",
            release.digest,
            release.signer.as_deref().map_or_else(|| "nobody".to_owned(), text::escaped),
            text::path(&self.store)
        );
        Ok((release.digest, path))
    }

    /// Whether the record of a component says that a rule of the config trusts the locked version.
    #[expect(clippy::disallowed_methods, reason = "a file of the operator's store, whose permissions are checked")]
    fn is_trusted(&self, release: &Release, record: &Path) -> Result<bool> {
        if !record.try_exists()? {
            return Ok(false);
        }
        guard::check_trusted_file(record, "record")?;
        ensure!(fs::metadata(record)?.len() <= MAX_RECORD_BYTES, "{}: too large", text::path(record));
        let bytes = fs::read(record).with_context(|| format!("{}: cannot be read", text::path(record)))?;
        let of_store: Verdicts = serde_json::from_slice(&bytes)
            .with_context(|| format!("{}: malformed; run `wharf lock fetch`", text::path(record)))?;
        let rules = self.signers.iter().map(SignerRule::mark).collect::<Result<Vec<_>>>().context("`signer`")?;
        Ok(of_store.verdicts.iter().any(|one| rules.contains(&one.rule) && one.is_for(release)))
    }
}

/// Returns the path of a component in the store.
pub fn in_store(store: &Path, digest: &Digest) -> PathBuf {
    store.join(format!("{digest}.wasm"))
}
