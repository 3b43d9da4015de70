//! API keys, for programs without an interactive login: `whk_<id>_<secret>`. The operator has a file with the digests of the keys, which
//! `wharf keys` writes. A change of the file takes effect within [`RELOAD_INTERVAL`].

#![expect(clippy::disallowed_methods, reason = "the operator's file of keys is read here")]

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, Result, bail, ensure};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{
    identity::{Identity, Refused},
    settings::AuthSettings,
};
use wharf_base::{
    explain,
    guard::check_trusted_file,
    paths::Stamp,
    principal::Principal,
    text::{escaped, hex},
};

/// The prefix of every key. No token of an identity provider begins with it.
pub const PREFIX: &str = "whk_";
/// The least time between two checks of the file for changes.
pub const RELOAD_INTERVAL: Duration = Duration::from_secs(1);
const MAX_FILE_BYTES: u64 = 1 << 20;
const MAX_ID_BYTES: usize = 32;
const SECRET_BYTES: usize = 32;
/// The number of digits of the checksum, which distinguishes a mistyped key from an unknown one.
const CHECK_DIGITS: usize = 8;

/// The content of the file of keys.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct File {
    pub keys: BTreeMap<String, Key>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Key {
    pub scopes: Vec<String>,
    /// The secrets with this id; more than one during rotation.
    pub secrets: Vec<Secret>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Secret {
    /// The SHA-256 of the whole key, in hexadecimal digits.
    pub sha256: String,
    /// When the secret expires. `None`: it never expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_after: Option<String>,
}

impl Secret {
    /// Returns when the secret expires, if it does.
    pub fn end(&self) -> Result<Option<SystemTime>> {
        let Some(text) = &self.not_after else { return Ok(None) };
        let end = humantime::parse_rfc3339_weak(text);
        Ok(Some(end.with_context(|| format!("`not_after`: `{text}` is not a time such as 2027-01-31T12:00:00Z"))?))
    }
}

/// Checks that a text is a valid key id.
pub fn check_id(id: &str) -> Result<()> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    ensure!(
        !id.is_empty() && id.len() <= MAX_ID_BYTES && id.bytes().all(plain),
        "`{}`: the id of a key has 1 to {MAX_ID_BYTES} lower-case letters, digits and `-`",
        id.escape_debug()
    );
    Ok(())
}

/// Generates a random key with this id.
pub fn generate(id: &str) -> Result<String> {
    check_id(id)?;
    let mut secret = [0; SECRET_BYTES];
    getrandom::fill(&mut secret).map_err(|error| anyhow::anyhow!("no randomness: {error}"))?;
    let text = format!("{PREFIX}{id}_{}", hex(&secret));
    Ok(format!("{text}{}", checksum(&text)))
}

/// Returns the SHA-256 of a key in hexadecimal.
pub fn digest(key: &str) -> String {
    hex(&Sha256::digest(key))
}

fn checksum(text: &str) -> String {
    let mut digits = digest(text);
    digits.truncate(CHECK_DIGITS);
    digits
}

/// Returns the id of a key, if the key is well-formed and its checksum is right.
fn id(key: &str) -> Option<&str> {
    let (id, secret) = key.strip_prefix(PREFIX)?.split_once('_')?;
    let whole = secret.len() == 2 * SECRET_BYTES + CHECK_DIGITS && secret.is_ascii();
    let (text, sum) = key.split_at_checked(key.len().checked_sub(CHECK_DIGITS)?)?;
    (whole && checksum(text) == sum && check_id(id).is_ok()).then_some(id)
}

/// Reads and validates the file of keys.
pub fn read(path: &Path) -> Result<File> {
    check_trusted_file(path, "file of API keys")?;
    let length = std::fs::metadata(path)?.len();
    ensure!(length <= MAX_FILE_BYTES, "{}: has more than 1 MiB", path.display());
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let file: File = explain::toml(&text).map_err(|problem| anyhow::anyhow!("{}:{problem}", path.display()))?;
    for (id, key) in &file.keys {
        let check = || -> Result<()> {
            check_id(id)?;
            for secret in &key.secrets {
                if secret.sha256.len() != 64 || !secret.sha256.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                    bail!("`sha256` has 64 hexadecimal digits");
                }
                secret.end()?;
            }
            Ok(())
        };
        check().with_context(|| format!("{}: [keys.{}]", path.display(), escaped(id)))?;
    }
    Ok(file)
}

/// Reads the file of keys; a missing file has no keys.
pub fn read_if_there(path: &Path) -> Result<File> {
    if path.exists() { read(path) } else { Ok(File::default()) }
}

/// The keys of a file, reloaded when the file changes.
pub struct ApiKeys {
    path: PathBuf,
    known: Mutex<Loaded>,
}

struct Loaded {
    looked: Instant,
    stamp: Option<Stamp>,
    /// The identity of each key, by the digest of the key.
    keys: Arc<KeyTable>,
    /// Whether the file can be read. While it cannot, no key is accepted, but no key counts as revoked either.
    is_readable: bool,
}

type KeyTable = BTreeMap<String, Arc<Identity>>;

impl ApiKeys {
    /// Opens the file of keys. Fails if it cannot be read.
    pub fn open(path: &Path, settings: &AuthSettings) -> Result<Self> {
        let stamp = Stamp::of(path).ok();
        let keys = Arc::new(key_table(read(path)?, settings)?);
        Ok(Self {
            path: path.to_owned(),
            known: Mutex::new(Loaded { looked: Instant::now(), stamp, keys, is_readable: true }),
        })
    }

    /// Returns the identity of a key. Every key has the scopes that every request needs.
    pub fn check(&self, key: &str, settings: &AuthSettings) -> Result<Arc<Identity>, Refused> {
        if id(key).is_none() {
            return Err(Refused::Invalid("the API key is malformed"));
        }
        let unknown = Refused::Invalid("the API key is unknown");
        let identity = self.current(settings).get(&digest(key)).cloned().ok_or(unknown)?;
        match identity.expires {
            Some(end) if end <= SystemTime::now() => Err(Refused::Invalid("the API key has expired")),
            _ => Ok(identity),
        }
    }

    /// Whether the operator has revoked the API key that was shown, removed one of its scopes, or moved its expiry to an earlier time that
    /// has passed.
    pub fn is_revoked(&self, shown: &Identity, settings: &AuthSettings) -> bool {
        let Some(digest) = &shown.key else { return false };
        let keys = self.current(settings);
        let less = keys.get(&**digest).is_none_or(|now| {
            let ended = now.expires.filter(|end| *end <= SystemTime::now());
            let earlier = ended.is_some_and(|end| shown.expires.is_none_or(|shown| end < shown));
            earlier || !shown.scopes.is_subset(&now.scopes)
        });
        less && self.known.lock().is_readable
    }

    /// Returns the keys, reloading the file if it has changed.
    fn current(&self, settings: &AuthSettings) -> Arc<KeyTable> {
        let mut known = self.known.lock();
        if known.looked.elapsed() >= RELOAD_INTERVAL {
            known.looked = Instant::now();
            let stamp = Stamp::of(&self.path).ok();
            if stamp != known.stamp {
                known.stamp = stamp;
                let now = read(&self.path).and_then(|file| key_table(file, settings));
                known.is_readable = now.is_ok();
                match now {
                    Ok(keys) => known.keys = Arc::new(keys),
                    // A damaged file must not restore keys that were revoked, so no key is accepted.
                    Err(error) => {
                        known.keys = Arc::default();
                        tracing::error!(
                            "all API keys are refused, because the file of keys cannot be read: {}",
                            escaped(&format!("{error:#}"))
                        );
                    }
                }
            }
        }
        Arc::clone(&known.keys)
    }
}

/// Builds the table of identities from the file.
fn key_table(file: File, settings: &AuthSettings) -> Result<KeyTable> {
    let mut all = KeyTable::new();
    for (id, key) in file.keys {
        for secret in key.secrets {
            let digest = secret.sha256.to_ascii_lowercase();
            let mut identity = Identity {
                key: Some(digest.as_str().into()),
                scopes: key.scopes.iter().chain(&settings.scopes).cloned().collect(),
                expires: secret.end()?,
                ..Identity::of(Principal::Key(id.as_str().into()))
            };
            settings.include(&mut identity);
            all.insert(digest, Arc::new(identity));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_keys_are_looked_up() {
        let key = generate("ci-2").unwrap();
        assert_eq!(id(&key), Some("ci-2"));
        assert_ne!(generate("ci-2").unwrap(), key);
        let mut other = key.clone();
        other.pop();
        for wrong in ["", "whk_", "whk_ci_", &other, &format!("{key}0"), &key.replace("ci-2", "ci-3"), &key[4..]] {
            assert_eq!(id(wrong), None, "{wrong}");
        }
        for wrong in ["", "A", "a_b", "ä", &"a".repeat(33)] {
            assert!(generate(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn keys_are_those_of_the_file_as_it_is_now() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.toml");
        let (one, two, old) = (generate("ci").unwrap(), generate("ci").unwrap(), generate("ci").unwrap());
        let write = |keys: &[(&str, &str)]| {
            let secret = |(key, end): &(&str, &str)| format!("{{ sha256 = \"{}\"{end} }}", digest(key));
            let secrets: Vec<String> = keys.iter().map(secret).collect();
            let text = format!("[keys.ci]\nscopes = [\"files:read\"]\nsecrets = [{}]\n", secrets.join(", "));
            std::fs::write(&path, text).unwrap();
        };
        write(&[
            (&one, ""),
            (&two, ", not_after = \"2999-01-01T00:00:00Z\""),
            (&old, ", not_after = \"2020-01-01T00:00:00Z\""),
        ]);
        let settings = AuthSettings {
            resource: String::new(),
            scopes: vec!["mcp".into()],
            includes: BTreeMap::from([("files:read".into(), vec!["files:list".into()])]),
            keys_file: None,
            issuers: vec![],
        };
        let keys = ApiKeys::open(&path, &settings).unwrap();
        let check = |key: &str| keys.check(key, &settings);
        let identity = check(&one).unwrap();
        assert_eq!(identity.principal.to_string(), "key ci");
        assert!(["files:read", "files:list", "mcp"].iter().all(|scope| identity.scopes.contains(*scope)));
        assert!(check(&two).is_ok(), "both are valid during rotation");
        assert_eq!(check(&old), Err(Refused::Invalid("the API key has expired")));
        let unknown = Err(Refused::Invalid("the API key is unknown"));
        assert_eq!(check(&generate("ci").unwrap()), unknown);
        let look_again = || keys.known.lock().looked -= RELOAD_INTERVAL;
        write(&[(&two, "")]);
        look_again();
        assert_eq!(check(&one), unknown);
        assert!(check(&two).is_ok());
        std::fs::write(&path, "[keys.ci]\nsecrets = [{ sha256 = \"7\" }]").unwrap();
        look_again();
        assert_eq!(check(&two), unknown, "a damaged file has no keys");
    }
}
