//! API keys, for programs that nobody logs in: `whk_<id>_<secret>`. The operator keeps a file with the digests of their secrets, which
//! `wharf keys` writes. A changed file counts at once, within [`LOOK`].

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
    settings::Settings,
};
use crate::base::{
    explain,
    guard::check_trusted_file,
    paths::Stamp,
    principal::Principal,
    text::{escaped, hex},
};

/// What every key begins with. Nothing that identity providers issue does.
pub const PREFIX: &str = "whk_";
/// How long a change of the file may go unseen.
pub const LOOK: Duration = Duration::from_secs(1);
const MAX_FILE_BYTES: u64 = 1 << 20;
const MAX_ID_BYTES: usize = 32;
const SECRET_BYTES: usize = 32;
/// The digits of the check sum, which tells a mistyped key from a wrong one.
const CHECK_DIGITS: usize = 8;

/// The file as it is written.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct File {
    pub keys: BTreeMap<String, Key>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Key {
    pub scopes: Vec<String>,
    /// More than one while a key is exchanged for another.
    pub secrets: Vec<Secret>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Secret {
    /// The SHA-256 of the whole key, in hexadecimal digits.
    pub sha256: String,
    /// Until when it is good; without end if it does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_after: Option<String>,
}

impl Secret {
    /// The end, if there is one.
    pub fn end(&self) -> Result<Option<SystemTime>> {
        let Some(text) = &self.not_after else { return Ok(None) };
        let end = humantime::parse_rfc3339_weak(text);
        Ok(Some(end.with_context(|| format!("`not_after`: `{text}` is no time such as 2027-01-31T12:00:00Z"))?))
    }
}

/// Whether this can be the id of a key.
pub fn check_id(id: &str) -> Result<()> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    ensure!(
        !id.is_empty() && id.len() <= MAX_ID_BYTES && id.bytes().all(plain),
        "`{}`: the id of a key has 1 to {MAX_ID_BYTES} lower-case letters, digits and `-`",
        id.escape_debug()
    );
    Ok(())
}

/// A new key with this id, which nobody can guess.
pub fn generate(id: &str) -> Result<String> {
    check_id(id)?;
    let mut secret = [0; SECRET_BYTES];
    getrandom::fill(&mut secret).map_err(|error| anyhow::anyhow!("no randomness: {error}"))?;
    let text = format!("{PREFIX}{id}_{}", hex(&secret));
    Ok(format!("{text}{}", check_sum(&text)))
}

pub fn digest(key: &str) -> String {
    hex(&Sha256::digest(key))
}

fn check_sum(text: &str) -> String {
    let mut digits = digest(text);
    digits.truncate(CHECK_DIGITS);
    digits
}

/// The id in a key that is whole.
fn id(key: &str) -> Option<&str> {
    let (id, secret) = key.strip_prefix(PREFIX)?.split_once('_')?;
    let whole = secret.len() == 2 * SECRET_BYTES + CHECK_DIGITS && secret.is_ascii();
    let (text, sum) = key.split_at_checked(key.len().checked_sub(CHECK_DIGITS)?)?;
    (whole && check_sum(text) == sum && check_id(id).is_ok()).then_some(id)
}

/// Reads the file.
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

/// The same, or no keys if there is no file yet.
pub fn read_if_there(path: &Path) -> Result<File> {
    if path.exists() { read(path) } else { Ok(File::default()) }
}

/// The keys of a file, as they are now.
pub struct ApiKeys {
    path: PathBuf,
    known: Mutex<Known>,
}

struct Known {
    looked: Instant,
    stamp: Option<Stamp>,
    /// Whose each key is, by its digest.
    keys: Arc<Good>,
    /// Whether the file can be read. While it cannot, no key is good, and none was taken away.
    whole: bool,
}

type Good = BTreeMap<String, Arc<Identity>>;

impl ApiKeys {
    /// Fails if the file cannot be read at all.
    pub fn open(path: &Path, settings: &Settings) -> Result<Self> {
        let stamp = Stamp::of(path).ok();
        let keys = Arc::new(good(read(path)?, settings)?);
        Ok(Self {
            path: path.to_owned(),
            known: Mutex::new(Known { looked: Instant::now(), stamp, keys, whole: true }),
        })
    }

    /// Whose key this is. Every key has the scopes that every request needs.
    pub fn check(&self, key: &str, settings: &Settings) -> Result<Arc<Identity>, Refused> {
        if id(key).is_none() {
            return Err(Refused::Invalid("it is an API key that is not whole"));
        }
        let unknown = Refused::Invalid("it is an API key that is not known here");
        let identity = self.now(settings).get(&digest(key)).cloned().ok_or(unknown)?;
        match identity.expires {
            Some(end) if end <= SystemTime::now() => Err(Refused::Invalid("it is an API key that has expired")),
            _ => Ok(identity),
        }
    }

    /// Whether the operator has taken away the key that was shown, or scopes that it had, or has made it end earlier than it did, and it
    /// has ended.
    pub fn is_revoked(&self, shown: &Identity, settings: &Settings) -> bool {
        let Some(digest) = &shown.key else { return false };
        let keys = self.now(settings);
        let less = keys.get(&**digest).is_none_or(|now| {
            let ended = now.expires.filter(|end| *end <= SystemTime::now());
            let earlier = ended.is_some_and(|end| shown.expires.is_none_or(|shown| end < shown));
            earlier || !shown.scopes.is_subset(&now.scopes)
        });
        less && self.known.lock().whole
    }

    fn now(&self, settings: &Settings) -> Arc<Good> {
        let mut known = self.known.lock();
        if known.looked.elapsed() >= LOOK {
            known.looked = Instant::now();
            let stamp = Stamp::of(&self.path).ok();
            if stamp != known.stamp {
                known.stamp = stamp;
                let now = read(&self.path).and_then(|file| good(file, settings));
                known.whole = now.is_ok();
                match now {
                    Ok(keys) => known.keys = Arc::new(keys),
                    // Whoever damages the file must not bring back keys that were taken away, so no key is good.
                    Err(error) => {
                        known.keys = Arc::default();
                        tracing::error!("no API key is good: {}", escaped(&format!("{error:#}")));
                    }
                }
            }
        }
        Arc::clone(&known.keys)
    }
}

fn good(file: File, settings: &Settings) -> Result<Good> {
    let mut all = Good::new();
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
        let settings = Settings {
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
        assert!(check(&two).is_ok(), "two are good while one takes the place of the other");
        assert_eq!(check(&old), Err(Refused::Invalid("it is an API key that has expired")));
        let unknown = Err(Refused::Invalid("it is an API key that is not known here"));
        assert_eq!(check(&generate("ci").unwrap()), unknown);
        let look_again = || keys.known.lock().looked -= LOOK;
        write(&[(&two, "")]);
        look_again();
        assert_eq!(check(&one), unknown);
        assert!(check(&two).is_ok());
        std::fs::write(&path, "[keys.ci]\nsecrets = [{ sha256 = \"7\" }]").unwrap();
        look_again();
        assert_eq!(check(&two), unknown, "a damaged file is no file");
    }
}
