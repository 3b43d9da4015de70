//! What was found out about tokens, for a while: to check a signature takes fifty times as long as to look one up, and a bad token must
//! not make its issuer be asked again each time that it comes. Only digests are kept.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use super::identity::Identity;

/// For how long a token is taken for good that was.
const GOOD_FOR: Duration = Duration::from_secs(60);
/// For how long a token is taken for bad that was not good by the newest keys.
const BAD_FOR: Duration = Duration::from_secs(30);
const MAX_TOKENS: usize = 10_000;

/// What was found out: whose it is, or why it is bad.
pub type Found = Result<Arc<Identity>, &'static str>;

struct Known {
    until: Instant,
    found: Found,
}

#[derive(Default)]
pub struct Verified(Mutex<HashMap<[u8; 32], Known>>);

impl Verified {
    pub fn get(&self, token: &str) -> Option<Found> {
        let digest: [u8; 32] = Sha256::digest(token).into();
        let all = self.0.lock();
        let known = all.get(&digest)?;
        (known.until > Instant::now()).then(|| known.found.clone())
    }

    pub fn add(&self, token: &str, found: Found) {
        let now = Instant::now();
        let until = match &found {
            Ok(identity) => {
                let left = identity.expires.map(|end| end.duration_since(SystemTime::now()).unwrap_or_default());
                now + left.map_or(GOOD_FOR, |left| left.min(GOOD_FOR))
            }
            Err(_) => now + BAD_FOR,
        };
        let mut all = self.0.lock();
        if all.len() >= MAX_TOKENS {
            all.retain(|_, known| known.until > now);
        }
        // If that makes no room, somebody sends very many. They are checked again, which is slower and safe.
        if all.len() >= MAX_TOKENS {
            all.clear();
        }
        all.insert(Sha256::digest(token).into(), Known { until, found });
    }
}
