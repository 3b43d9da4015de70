//! What was found out about tokens, for a while: to check a signature takes fifty times as long as to look one up, and a bad token must
//! not make its issuer be asked again each time that it comes. Only digests are kept.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use wharf_sandbox::places::{Place, Places, Rule};

use super::identity::Identity;
use crate::base::party::{Party, party};

/// For how long a token is taken for good that was.
const GOOD_FOR: Duration = Duration::from_secs(60);
/// For how long it is known whose token it was, so that to find out about it again takes a place of its user and none of the address that
/// it comes from.
const KNOWN_FOR: Duration = Duration::from_secs(600);
/// For how long a token is taken for bad that was not good by the newest keys.
const BAD_FOR: Duration = Duration::from_secs(30);
const MAX_GOOD: usize = 10_000;
const MAX_BAD: usize = 10_000;

/// Good tokens.
pub static GOOD: Rule = Rule {
    of: "good tokens that are remembered",
    number: "10000",
    taker: "user",
    until: "10 minutes after the token was checked; it is taken for good for 60 s of these, and never longer than it is",
    asking: "not held: no person is asked",
    gone: "held: the user may come back",
    gives_way: "nothing; a token that is not remembered is checked each time",
    old: Duration::MAX,
};

/// Bad tokens.
pub static BAD: Rule = Rule {
    of: "bad tokens that are remembered",
    number: "10000",
    taker: "address",
    until: "30 s after the token was checked",
    asking: "not held: no person is asked",
    gone: "held, so that its issuer is not asked again",
    gives_way: "nothing; a token that is not remembered is checked each time",
    old: Duration::MAX,
};

/// What was found out: whose it is, or why it is bad.
pub type Found = Result<Arc<Identity>, &'static str>;

type Token = [u8; 32];

/// Tokens of one kind, each for the same time.
struct Tokens<T> {
    places: Arc<Places>,
    kept_for: Duration,
    all: HashMap<Token, One<T>>,
    /// Until when each is kept. One that was kept for longer since then stands here more than once.
    in_order: VecDeque<(Instant, Token)>,
}

struct One<T> {
    until: Instant,
    what: T,
    _place: Place,
}

impl<T> Tokens<T> {
    fn new(rule: &'static Rule, most: usize, kept_for: Duration) -> Self {
        Self { places: Places::new(rule, most), kept_for, all: HashMap::new(), in_order: VecDeque::new() }
    }

    fn forget_old(&mut self, now: Instant) {
        while let Some((_, token)) = self.in_order.pop_front_if(|(until, _)| *until <= now) {
            if self.all.get(&token).is_some_and(|one| one.until <= now) {
                self.all.remove(&token);
            }
        }
    }

    fn add(&mut self, token: Token, party: Party, what: T) {
        let now = Instant::now();
        self.forget_old(now);
        let until = now + self.kept_for;
        if let Some(one) = self.all.get_mut(&token) {
            one.what = what;
            // Not each time, so that no token stands in the order more than twice.
            if until - one.until > self.kept_for / 2 {
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
            good: Mutex::new(Tokens::new(&GOOD, MAX_GOOD, KNOWN_FOR)),
            bad: Mutex::new(Tokens::new(&BAD, MAX_BAD, BAD_FOR)),
        }
    }
}

impl Verified {
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

    /// Whose token it was when it was last good.
    pub fn known(&self, token: &str) -> Option<Party> {
        let token: Token = Sha256::digest(token).into();
        self.good.lock().all.get(&token).map(|good| good.what.party)
    }

    pub fn add_good(&self, token: &str, identity: &Arc<Identity>) {
        let left = identity.expires.map(|end| end.duration_since(SystemTime::now()).unwrap_or_default());
        let until = Instant::now() + left.map_or(GOOD_FOR, |left| left.min(GOOD_FOR));
        let party = party(&identity.principal, None);
        let good = Good { until, identity: Arc::clone(identity), party };
        self.good.lock().add(Sha256::digest(token).into(), party, good);
    }

    /// `from`: the party of the address that it came from.
    pub fn add_bad(&self, token: &str, from: Party, why: &'static str) {
        self.bad.lock().add(Sha256::digest(token).into(), from, why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{party::named, principal::Principal};

    #[test]
    fn a_flood_of_bad_tokens_makes_no_other_forgotten() {
        let verified = Verified::default();
        let identity = Arc::new(Identity::of(Principal::Key("ann".into())));
        verified.add_good("good", &identity);
        verified.add_bad("old", named("ben"), "old");
        for number in 0..2 * MAX_BAD {
            verified.add_bad(&format!("made up {number}"), named("stranger"), "unknown");
        }
        assert_eq!(verified.get("good"), Some(Ok(identity)));
        assert_eq!(verified.get("old"), Some(Err("old")));
        verified.add_bad("new", named("ben"), "new");
        assert_eq!(verified.get("new"), Some(Err("new")));
        let bad = verified.bad.lock();
        assert_eq!((bad.all.len(), bad.in_order.len()), (MAX_BAD / 4 * 3 + 2, MAX_BAD / 4 * 3 + 2));
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
