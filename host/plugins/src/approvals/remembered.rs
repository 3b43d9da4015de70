//! Approvals that cover further calls: of one client until its session ends, or of clients without sessions until wharf
//! exits.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use super::rule::ApprovalKey;
use wharf_base::{
    ledger::Charge,
    party::Party,
    places::{GivesWay, Occupant, Place, Places, PoolFull, PoolRule},
    principal::Principal,
};

/// The most approvals of one session.
const MAX_KINDS: usize = 256;
/// The memory charged for one approval.
pub const KIND_BYTES: usize = 128;
/// The most approvals of clients without sessions.
const MAX_APPROVALS: usize = 16_384;

/// The limit of approvals of clients without sessions.
pub static REMEMBERED: PoolRule = PoolRule {
    of: "approvals that are valid until wharf exits",
    number: "16384",
    taker: "client",
    until: "wharf exits",
    asking: "not held: it is taken after the person has said yes",
    gone: "held: the client may come back",
    gives_way: "the approval that has been unused for longest, to clients with fewer approvals and to further ones of the same client; one \
                unused for an hour, to any client; the person is then asked again",
    old: Duration::from_secs(3600),
};

/// The kinds of calls that were approved in a session, each with its memory charge.
#[derive(Default)]
pub struct Remembered(Mutex<HashMap<ApprovalKey, Charge>>);

impl Remembered {
    /// Whether the session has one of these approvals.
    pub fn has(&self, keys: &[ApprovalKey]) -> bool {
        let all = self.0.lock();
        keys.iter().any(|key| all.contains_key(key))
    }

    /// Adds an approval. Returns false if the session has too many.
    pub fn add(&self, kind: ApprovalKey, charge: Charge) -> bool {
        let mut kinds = self.0.lock();
        let room = kinds.len() < MAX_KINDS;
        if room {
            kinds.insert(kind, charge);
        }
        room
    }
}

/// The kinds of calls that were approved, for each client without a session.
pub struct Principals {
    places: Arc<Places>,
    all: Mutex<HashMap<Principal, HashMap<ApprovalKey, Held>>>,
}

struct Held {
    approval: Arc<Approval>,
    _place: Place,
}

struct Approval {
    used: Mutex<Instant>,
    /// Whether it gave way to another approval and is not valid any more.
    ended: AtomicBool,
}

impl Occupant for Approval {
    fn gives_way(&self, now: Instant) -> Option<GivesWay> {
        Some(GivesWay::ToSmaller { idle: now.saturating_duration_since(*self.used.lock()) })
    }

    fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }
}

impl Default for Principals {
    fn default() -> Self {
        Self::new(MAX_APPROVALS)
    }
}

impl Principals {
    fn new(whole: usize) -> Self {
        Self { places: Places::new(&REMEMBERED, whole), all: Mutex::default() }
    }

    /// Whether this client has one of these approvals.
    pub fn has(&self, principal: &Principal, keys: &[ApprovalKey]) -> bool {
        let all = self.all.lock();
        let Some(kinds) = all.get(principal) else { return false };
        let mut held = keys.iter().filter_map(|key| kinds.get(key)).map(|held| &held.approval);
        let counts = held.find(|approval| !approval.ended.load(Ordering::Acquire));
        counts.inspect(|approval| *approval.used.lock() = Instant::now()).is_some()
    }

    /// Remembers an approval of this client. `party` is the client that it counts for.
    pub fn add(&self, principal: &Principal, party: Party, kind: ApprovalKey) -> Result<(), PoolFull> {
        let approval = Arc::new(Approval { used: Mutex::new(Instant::now()), ended: AtomicBool::new(false) });
        let (place, ended) = self.places.take_for(party, Arc::clone(&approval) as Arc<dyn Occupant>)?;
        let mut all = self.all.lock();
        if ended {
            all.retain(|_, kinds| {
                kinds.retain(|_, held| !held.approval.ended.load(Ordering::Acquire));
                !kinds.is_empty()
            });
        }
        all.entry(principal.clone()).or_default().insert(kind, Held { approval, _place: place });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_base::party::named;

    #[test]
    fn one_client_with_many_approvals_leaves_room_for_others() {
        const WHOLE: usize = 64;
        let principals = Principals::new(WHOLE);
        let kind = |number: usize| {
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&number.to_be_bytes());
            ApprovalKey(bytes)
        };
        let of = |name: &str| (Principal::Named(name.into()), named(name));
        let (ann, her) = of("ann");
        for number in 0..WHOLE {
            // There is no limit for her; the oldest approvals are forgotten.
            principals.add(&ann, her, kind(number)).unwrap();
        }
        assert_eq!(principals.places.taken(), WHOLE / 4 * 3);
        assert!(!principals.has(&ann, &[kind(0)]) && principals.has(&ann, &[kind(WHOLE - 1)]));
        // Clients with few approvals each are not refused either.
        for number in 0..WHOLE / 2 {
            let (one, party) = of(&format!("client {number}"));
            principals.add(&one, party, kind(1)).unwrap();
            assert!(principals.has(&one, &[kind(1)]), "{number}");
        }
        assert_eq!(principals.places.taken(), WHOLE);
        assert_eq!(principals.all.lock().values().map(HashMap::len).sum::<usize>(), WHOLE);
    }
}
