//! The public keys (JWKS) of one issuer. They are fetched when first needed, and again when they are old or a token names an unknown key;
//! if that fails, the old keys stay in use. Tokens that name unknown keys cannot make wharf fetch without limit: fetches are rate-limited,
//! and no single address can use up the limit.

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

use super::{
    fetch,
    settings::{Issuer, KeySource},
};
use wharf_base::{
    party::{Party, named},
    places::{Place, Places, PoolRule},
    text::escaped,
};
use wharf_egress::outgoing::Outgoing;

/// The most fetches within [`FETCH_LIMIT_INTERVAL`].
const MAX_FETCHES: usize = 8;
const FETCH_LIMIT_INTERVAL: Duration = Duration::from_secs(60);
/// How long after a failed fetch missing keys are fetched again, if no token arrives.
const RETRY_INTERVAL: Duration = Duration::from_secs(30);
/// The age at which keys are fetched again although no token names an unknown key.
const REFRESH_INTERVAL: Duration = Duration::from_secs(15 * 60);
/// How long keys stay valid that cannot be fetched again.
const STALE_GRACE: Duration = Duration::from_secs(24 * 3600);

/// The limit of fetches of the keys of one issuer.
pub static FETCHES: PoolRule = PoolRule {
    of: "fetches of an issuer's keys within a minute",
    number: "8 for each issuer",
    taker: "address",
    until: "60 s after the fetch began",
    asking: "not held: no person is asked",
    gone: "held: the fetch continues",
    gives_way: "nothing; a token with an unknown key is answered with 503 then, and tokens with known keys are still checked",
    old: Duration::MAX,
};

/// The most keys of one issuer.
const MAX_KEYS: usize = 100;

/// The keys of one issuer. Clones are cheap and share the same keys.
#[derive(Clone)]
pub struct Keys(Arc<Inner>);

struct Inner {
    issuer: String,
    source: KeySource,
    outgoing: Outgoing,
    known: Mutex<Option<Known>>,
    /// Locked while the keys are fetched. Holds the time of the last attempt.
    tried: AsyncMutex<Option<Instant>>,
    tries: Arc<Places>,
    /// The places of recent fetches, each with the time when it is given back.
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

/// The reason why a key was not found.
#[derive(Debug, PartialEq, Eq)]
pub enum NoKey {
    /// The issuer has no key of this name.
    Unknown,
    /// The issuer could not be asked.
    Unavailable,
}

impl Keys {
    pub fn new(issuer: &Issuer, outgoing: Outgoing) -> Self {
        let (known, tried) = (Mutex::default(), AsyncMutex::default());
        let (tries, held) = (Places::new(&FETCHES, MAX_FETCHES), Mutex::default());
        Self(Arc::new(Inner {
            issuer: issuer.url.clone(),
            source: issuer.keys.clone(),
            outgoing,
            known,
            tried,
            tries,
            held,
        }))
    }

    pub async fn warm_up(&self) {
        self.fetch_after(Instant::now(), own()).await;
    }

    /// Whether there are keys. If not, they are fetched in the background.
    pub fn ready(&self) -> bool {
        let known = self.0.known().is_some();
        // While a fetch is under way, and for a while after it, another one would only wait.
        if !known && self.0.tried.try_lock().is_ok_and(|tried| tried.is_none_or(|at| at.elapsed() >= RETRY_INTERVAL)) {
            self.begin_to_fetch(Instant::now(), own());
        }
        known
    }

    /// Returns the key with this name for this algorithm, if it is among the cached keys.
    pub fn known(&self, kid: Option<&str>, algorithm: Algorithm) -> Option<DecodingKey> {
        let known = self.0.known()?;
        if known.fetched.elapsed() >= REFRESH_INTERVAL {
            // The cached keys are used meanwhile. All callers that find the keys old pass the same time, so they cause one fetch.
            self.begin_to_fetch(known.fetched + REFRESH_INTERVAL, own());
        }
        known.find(kid, algorithm)
    }

    /// Returns the key with this name for this algorithm, from keys fetched after `since`. Only such keys can prove that a key is unknown,
    /// because the issuer may have created it recently. `party` is the client that the fetch counts for.
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

    /// Fetches the keys, unless they were fetched after `since` or too often recently.
    async fn fetch_after(&self, since: Instant, party: Party) {
        // This fails only if the task panicked; the known keys are unchanged then.
        self.begin_to_fetch(since, party).await.ok();
    }

    /// Fetches the keys in a separate task, which continues if the request is cancelled. Otherwise a client that cancels again and again
    /// could prevent every fetch.
    fn begin_to_fetch(&self, since: Instant, party: Party) -> JoinHandle<()> {
        let inner = Arc::clone(&self.0);
        #[expect(
            clippy::disallowed_methods,
            reason = "it ends by itself, within the time that an issuer has to answer"
        )]
        tokio::spawn(async move { inner.fetch_after(since, party).await })
    }
}

/// The party for fetches that no client caused.
fn own() -> Party {
    named("the keys of an issuer")
}

impl Inner {
    /// Returns the cached keys, unless they are too old.
    fn known(&self) -> Option<Known> {
        self.known.lock().clone().filter(|known| known.fetched.elapsed() < STALE_GRACE)
    }

    /// Takes a place for a fetch. Returns whether this party had one left.
    fn may_try(&self, party: Party) -> bool {
        let now = Instant::now();
        let mut held = self.held.lock();
        while held.pop_front_if(|(until, _)| *until <= now).is_some() {}
        let Ok(place) = self.tries.take(party) else { return false };
        held.push_back((now + FETCH_LIMIT_INTERVAL, place));
        true
    }

    async fn fetch_after(&self, since: Instant, party: Party) {
        let mut tried = self.tried.lock().await;
        if tried.is_some_and(|at| at >= since) || !self.may_try(party) {
            return;
        }
        *tried = Some(Instant::now());
        // The time before the request, since keys that the issuer publishes meanwhile may be missing.
        let fetched = Instant::now();
        match self.fetch().await {
            Ok(keys) => *self.known.lock() = Some(Known { keys: keys.into(), fetched }),
            Err(error) => {
                let kept = if self.known().is_some() { "; the cached keys are still used" } else { "" };
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
            KeySource::Url(url) => fetch::url(url, &self.outgoing).await?,
            KeySource::Discovered => {
                fetch::url(&fetch::keys_of(&self.issuer, &self.outgoing).await?, &self.outgoing).await?
            }
        };
        read(&text)
    }
}

impl Known {
    /// Finds a key by name. If the token or the keys have no name, the only key for the algorithm is used.
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

/// Parses a JSON Web Key Set. Keys for other uses or of unknown types are skipped, as the standard demands.
fn read(text: &[u8]) -> Result<Vec<Key>> {
    let set: serde_json::Value = serde_json::from_slice(text).context("the key set is not JSON")?;
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
    ensure!(!keys.is_empty(), "the key set has no key that can verify a signature");
    Ok(keys)
}
