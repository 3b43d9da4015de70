//! Tokens that were found good, for a while: to check a signature takes fifty times as long as to look one up. Only digests are kept.

use std::{
    collections::HashMap,
    time::{Duration, Instant, SystemTime},
};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use super::identity::Identity;

/// For how long a token is taken for good that was.
const GOOD_FOR: Duration = Duration::from_secs(60);
const MAX_TOKENS: usize = 10_000;

#[derive(Default)]
pub struct Verified(Mutex<HashMap<[u8; 32], (Instant, Identity)>>);

impl Verified {
    pub fn get(&self, token: &str) -> Option<Identity> {
        let digest: [u8; 32] = Sha256::digest(token).into();
        let all = self.0.lock();
        let (until, identity) = all.get(&digest)?;
        (*until > Instant::now()).then(|| identity.clone())
    }

    pub fn add(&self, token: &str, identity: &Identity) {
        let left = identity.expires.duration_since(SystemTime::now()).unwrap_or_default();
        let now = Instant::now();
        let mut all = self.0.lock();
        if all.len() >= MAX_TOKENS {
            all.retain(|_, (until, _)| *until > now);
        }
        // If all of them are still good, somebody sends very many. They are checked again, which is slower and safe.
        if all.len() >= MAX_TOKENS {
            all.clear();
        }
        all.insert(Sha256::digest(token).into(), (now + left.min(GOOD_FOR), identity.clone()));
    }
}
