//! The keys of one issuer. They are fetched when they are first needed, again when they are old or a token names one that is not there,
//! and kept if that fails. However many tokens come that name unknown keys, the issuer is asked once in a while, and no address uses up
//! the questions of all.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use jsonwebtoken::{
    Algorithm, DecodingKey,
    jwk::{Jwk, PublicKeyUse},
};
use parking_lot::Mutex;
use tokio::{sync::Mutex as AsyncMutex, task::JoinHandle};
use wharf_sandbox::places::{Place, Places, Rule};

use super::{
    fetch,
    settings::{Issuer, KeySource},
};
use crate::{
    base::{
        party::{Party, named},
        text::escaped,
    },
    egress::tls::Tls,
};

/// How often keys are fetched at the most: so many times in this time.
const TRIES: usize = 8;
const TRIED_FOR: Duration = Duration::from_secs(60);
/// After how long missing keys are fetched again although nobody has sent a token.
const AGAIN: Duration = Duration::from_secs(30);
/// After how long keys are fetched again although all that is asked for is there.
const OLD: Duration = Duration::from_secs(15 * 60);
/// For how long keys are good that cannot be fetched again.
const LAST_GOOD: Duration = Duration::from_secs(24 * 3600);

/// Fetches of the keys of one issuer.
pub static FETCHES: Rule = Rule {
    of: "fetches of an issuer's keys within a minute",
    number: "8 for each issuer",
    taker: "address",
    until: "60 s after the fetch began",
    asking: "not held: no person is asked",
    gone: "held: the fetch goes on",
    gives_way: "nothing; a token with an unknown key is not judged then (503), and those with known keys are",
    old: Duration::MAX,
};

/// The most keys of one issuer.
const MAX_KEYS: usize = 100;

/// Cheap to clone; all clones are the same.
#[derive(Clone)]
pub struct Keys(Arc<Inner>);

struct Inner {
    issuer: String,
    source: KeySource,
    tls: Arc<Tls>,
    known: Mutex<Option<Known>>,
    /// Held while they are fetched. When that was last tried.
    tried: AsyncMutex<Option<Instant>>,
    tries: Arc<Places>,
    /// The places of the last fetches, each with when it is given back.
    held: Mutex<VecDeque<(Instant, Place)>>,
}

#[derive(Clone)]
struct Known {
    keys: Arc<[Key]>,
    fetched: Instant,
}

struct Key {
    kid: Option<String>,
    algorithm: Option<Algorithm>,
    key: DecodingKey,
}

/// Why there is no key.
#[derive(Debug, PartialEq, Eq)]
pub enum NoKey {
    /// The issuer has none of this name.
    Unknown,
    /// Nobody knows, because the issuer could not be asked.
    Unavailable,
}

impl Keys {
    pub fn new(issuer: &Issuer, tls: Arc<Tls>) -> Self {
        let (known, tried) = (Mutex::default(), AsyncMutex::default());
        let (tries, held) = (Places::new(&FETCHES, TRIES), Mutex::default());
        Self(Arc::new(Inner {
            issuer: issuer.url.clone(),
            source: issuer.keys.clone(),
            tls,
            known,
            tried,
            tries,
            held,
        }))
    }

    pub async fn warm_up(&self) {
        self.fetch_after(Instant::now(), own()).await;
    }

    /// Whether there are keys. If not, they are fetched, and nobody waits for that.
    pub fn ready(&self) -> bool {
        let known = self.0.known().is_some();
        // While they are being fetched, and for a while after that, it would only wait for its turn.
        if !known && self.0.tried.try_lock().is_ok_and(|tried| tried.is_none_or(|at| at.elapsed() >= AGAIN)) {
            self.begin_to_fetch(Instant::now(), own());
        }
        known
    }

    /// The key with this name, for this algorithm, if it is among those that are known.
    pub fn known(&self, kid: Option<&str>, algorithm: Algorithm) -> Option<DecodingKey> {
        let known = self.0.known()?;
        if known.fetched.elapsed() >= OLD {
            // Nobody waits for an issuer whose keys are there, and one fetch is enough for all who find them old.
            self.begin_to_fetch(known.fetched + OLD, own());
        }
        known.find(kid, algorithm)
    }

    /// The key with this name, for this algorithm, as it has been since then. That it is not there is said only of keys that were
    /// fetched since then: the issuer may have made a new one. `party`: who makes wharf look for it.
    pub async fn since(
        &self,
        kid: Option<&str>,
        algorithm: Algorithm,
        since: Instant,
        party: Party,
    ) -> Result<DecodingKey, NoKey> {
        self.fetch_after(since, party).await;
        let known = self.0.known().filter(|known| known.fetched >= since).ok_or(NoKey::Unavailable)?;
        known.find(kid, algorithm).ok_or(NoKey::Unknown)
    }

    /// Fetches the keys, unless that was tried a moment ago, or since then.
    async fn fetch_after(&self, since: Instant, party: Party) {
        // This fails only if the task panicked, and then nothing is known that was not known before.
        self.begin_to_fetch(since, party).await.ok();
    }

    /// The same in a task of its own, which goes on if the request is given up that needs it: otherwise whoever gives up again and
    /// again would keep everybody from the keys.
    fn begin_to_fetch(&self, since: Instant, party: Party) -> JoinHandle<()> {
        let inner = Arc::clone(&self.0);
        #[expect(
            clippy::disallowed_methods,
            reason = "it ends by itself, within the time that an issuer has to answer"
        )]
        tokio::spawn(async move { inner.fetch_after(since, party).await })
    }
}

/// Who fetches keys that nobody has asked for.
fn own() -> Party {
    named("the keys of an issuer")
}

impl Inner {
    /// What is known and not too old.
    fn known(&self) -> Option<Known> {
        self.known.lock().clone().filter(|known| known.fetched.elapsed() < LAST_GOOD)
    }

    /// Takes a place for a fetch, if this party has one left.
    fn may_try(&self, party: Party) -> bool {
        let now = Instant::now();
        let mut held = self.held.lock();
        while held.pop_front_if(|(until, _)| *until <= now).is_some() {}
        let Ok(place) = self.tries.take(party) else { return false };
        held.push_back((now + TRIED_FOR, place));
        true
    }

    async fn fetch_after(&self, since: Instant, party: Party) {
        let mut tried = self.tried.lock().await;
        if tried.is_some_and(|at| at >= since) || !self.may_try(party) {
            return;
        }
        *tried = Some(Instant::now());
        // What the issuer publishes while it answers may be missing.
        let fetched = Instant::now();
        match self.fetch().await {
            Ok(keys) => *self.known.lock() = Some(Known { keys: keys.into(), fetched }),
            Err(error) => {
                let kept = if self.known().is_some() { "; those that are known are still used" } else { "" };
                tracing::warn!(
                    "the keys of {} cannot be fetched: {}{kept}",
                    self.issuer,
                    escaped(&format!("{error:#}"))
                );
            }
        }
    }

    async fn fetch(&self) -> Result<Vec<Key>> {
        let text = match &self.source {
            KeySource::File(path) => fetch::file(path.clone()).await?,
            KeySource::Url(url) => fetch::url(url, &self.tls).await?,
            KeySource::Discovered => fetch::url(&fetch::keys_of(&self.issuer, &self.tls).await?, &self.tls).await?,
        };
        read(&text)
    }
}

impl Known {
    /// Without a name in the token or at the keys, the only key of its kind counts.
    fn find(&self, kid: Option<&str>, algorithm: Algorithm) -> Option<DecodingKey> {
        let fits =
            |key: &&Key| key.algorithm.is_none_or(|own| own == algorithm) && key.key.family() == algorithm.family();
        let mut named = self.keys.iter().filter(fits).filter(|key| kid.is_some() && key.kid.as_deref() == kid);
        if let Some(named) = named.next() {
            return Some(named.key.clone());
        }
        let mut others = self.keys.iter().filter(fits).filter(|key| kid.is_none() || key.kid.is_none());
        let only = others.next()?;
        others.next().is_none().then(|| only.key.clone())
    }
}

/// Reads a set of keys. Those that are for something else or of an unknown kind are left out, as the standard wants it.
fn read(text: &[u8]) -> Result<Vec<Key>> {
    let set: serde_json::Value = serde_json::from_slice(text).context("they are no JSON")?;
    let all = set.get("keys").and_then(serde_json::Value::as_array).context("there is no list `keys`")?;
    ensure!(all.len() <= MAX_KEYS, "there are {} keys, more than {MAX_KEYS}", all.len());
    let key = |one: &serde_json::Value| {
        let jwk: Jwk = serde_json::from_value(one.clone()).ok()?;
        let signs = jwk.common.public_key_use.as_ref().is_none_or(|usage| *usage == PublicKeyUse::Signature);
        let algorithm = match &jwk.common.key_algorithm {
            None => None,
            Some(named) => Some(Algorithm::try_from(*named).ok()?),
        };
        let key = DecodingKey::from_jwk(&jwk).ok().filter(|_| signs)?;
        Some(Key { kid: jwk.common.key_id, algorithm, key })
    };
    let keys: Vec<Key> = all.iter().filter_map(key).collect();
    ensure!(!keys.is_empty(), "none of them can check a signature");
    Ok(keys)
}
