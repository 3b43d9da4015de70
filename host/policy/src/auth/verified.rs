//! A cache of checked tokens: verifying a signature takes fifty times as long as a look-up, and a repeated invalid token must not make
//! wharf ask its issuer each time. Only digests of tokens are stored.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use super::identity::Identity;
use wharf_base::{
    party::{Party, party},
    places::{Place, Places, PoolRule},
};

/// How long a token that was valid counts as valid.
const VALID_CACHE_TIMEOUT: Duration = Duration::from_secs(60);
/// How long the user of a token that was valid is remembered, so that another check of it counts for the user rather than the address.
const OWNER_CACHE_TIMEOUT: Duration = Duration::from_secs(600);
/// How long a token that was invalid counts as invalid.
const INVALID_CACHE_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_VALID: usize = 10_000;
const MAX_INVALID: usize = 10_000;

/// The limit of cached valid tokens.
pub static GOOD: PoolRule = PoolRule {
    of: "cached valid tokens",
    number: "10000",
    taker: "user",
    until: "10 minutes after the token was checked; it counts as valid for the first 60 s of these, and never after it expires",
    asking: "not held: no person is asked",
    gone: "held: the user may come back",
    gives_way: "nothing; a token that is not cached is checked each time",
    old: Duration::MAX,
};

/// The limit of cached invalid tokens.
pub static BAD: PoolRule = PoolRule {
    of: "cached invalid tokens",
    number: "10000",
    taker: "address",
    until: "30 s after the token was checked",
    asking: "not held: no person is asked",
    gone: "held, so that its issuer is not asked again",
    gives_way: "nothing; a token that is not cached is checked each time",
    old: Duration::MAX,
};

/// The outcome of a check: the identity, or why the token is invalid.
pub type Found = Result<Arc<Identity>, &'static str>;

type Token = [u8; 32];

/// Cached tokens of one kind, valid or invalid.
struct Tokens<T> {
    places: Arc<Places>,
    lifetime: Duration,
    all: HashMap<Token, One<T>>,
    /// The tokens by expiry. A token whose expiry was extended is listed more than once.
    in_order: VecDeque<(Instant, Token)>,
}

struct One<T> {
    until: Instant,
    what: T,
    _place: Place,
}

impl<T> Tokens<T> {
    fn new(rule: &'static PoolRule, most: usize, lifetime: Duration) -> Self {
        Self { places: Places::new(rule, most), lifetime, all: HashMap::new(), in_order: VecDeque::new() }
    }

    fn remove_expired(&mut self, now: Instant) {
        while let Some((_, token)) = self.in_order.pop_front_if(|(until, _)| *until <= now) {
            if self.all.get(&token).is_some_and(|one| one.until <= now) {
                self.all.remove(&token);
            }
        }
    }

    fn add(&mut self, token: Token, party: Party, what: T) {
        let now = Instant::now();
        self.remove_expired(now);
        let until = now + self.lifetime;
        if let Some(one) = self.all.get_mut(&token) {
            one.what = what;
            // Not extended each time, so that no token is listed more than twice.
            if until - one.until > self.lifetime / 2 {
                one.until = until;
                self.in_order.push_back((until, token));
            }
        } else if let Ok(place) = self.places.take(party) {
            self.all.insert(token, One { until, what, _place: place });
            self.in_order.push_back((until, token));
        }
    }
}

struct Good {
    until: Instant,
    identity: Arc<Identity>,
    party: Party,
}

pub struct Verified {
    good: Mutex<Tokens<Good>>,
    bad: Mutex<Tokens<&'static str>>,
}

impl Default for Verified {
    fn default() -> Self {
        Self {
            good: Mutex::new(Tokens::new(&GOOD, MAX_VALID, OWNER_CACHE_TIMEOUT)),
            bad: Mutex::new(Tokens::new(&BAD, MAX_INVALID, INVALID_CACHE_TIMEOUT)),
        }
    }
}

impl Verified {
    /// Returns the cached outcome of a check.
    pub fn get(&self, token: &str) -> Option<Found> {
        let (token, now): (Token, _) = (Sha256::digest(token).into(), Instant::now());
        if let Some(good) = self.good.lock().all.get(&token)
            && good.what.until > now
        {
            return Some(Ok(Arc::clone(&good.what.identity)));
        }
        let bad = self.bad.lock();
        let one = bad.all.get(&token)?;
        (one.until > now).then_some(Err(one.what))
    }

    /// Returns the user of a token that was valid recently.
    pub fn known(&self, token: &str) -> Option<Party> {
        let token: Token = Sha256::digest(token).into();
        self.good.lock().all.get(&token).map(|good| good.what.party)
    }

    /// Caches a valid token.
    pub fn add_good(&self, token: &str, identity: &Arc<Identity>) {
        let left = identity.expires.map(|end| end.duration_since(SystemTime::now()).unwrap_or_default());
        let until = Instant::now() + left.map_or(VALID_CACHE_TIMEOUT, |left| left.min(VALID_CACHE_TIMEOUT));
        let party = party(&identity.principal, None);
        let good = Good { until, identity: Arc::clone(identity), party };
        self.good.lock().add(Sha256::digest(token).into(), party, good);
    }

    /// Caches an invalid token. `from` is the party of the client's address.
    pub fn add_bad(&self, token: &str, from: Party, why: &'static str) {
        self.bad.lock().add(Sha256::digest(token).into(), from, why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_base::{party::named, principal::Principal};

    #[test]
    fn a_flood_of_bad_tokens_makes_no_other_forgotten() {
        let verified = Verified::default();
        let identity = Arc::new(Identity::of(Principal::Key("ann".into())));
        verified.add_good("good", &identity);
        verified.add_bad("old", named("ben"), "old");
        for number in 0..2 * MAX_INVALID {
            verified.add_bad(&format!("made up {number}"), named("stranger"), "unknown");
        }
        assert_eq!(verified.get("good"), Some(Ok(identity)));
        assert_eq!(verified.get("old"), Some(Err("old")));
        verified.add_bad("new", named("ben"), "new");
        assert_eq!(verified.get("new"), Some(Err("new")));
        let bad = verified.bad.lock();
        assert_eq!((bad.all.len(), bad.in_order.len()), (MAX_INVALID / 4 * 3 + 2, MAX_INVALID / 4 * 3 + 2));
    }

    #[test]
    fn it_is_known_whose_a_token_was_for_longer_than_it_is_taken_for_good() {
        let verified = Verified::default();
        let ended = Identity { expires: Some(SystemTime::UNIX_EPOCH), ..Identity::of(Principal::Key("ann".into())) };
        verified.add_good("token", &Arc::new(ended));
        assert_eq!(verified.get("token"), None);
        assert_eq!(verified.known("token"), Some(party(&Principal::Key("ann".into()), None)));
        assert_eq!(verified.known("other"), None);
    }
}
