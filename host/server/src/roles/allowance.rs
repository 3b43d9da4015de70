//! How often, and how often at once, one caller may use what a role gives. Each caller has the whole allowance for itself.

use std::{collections::HashMap, fmt, num::NonZeroU32, sync::Arc, time::Duration};

use governor::{
    Quota, RateLimiter,
    clock::{Clock, DefaultClock},
    state::keyed::HashMapStateStore,
};
use parking_lot::Mutex;

use crate::base::principal::Principal;

/// From how many callers on those are forgotten who have all of their allowance again.
const MANY: usize = 1024;

type Limiter = RateLimiter<Principal, HashMapStateStore<Principal>, DefaultClock>;

#[derive(Default)]
pub struct Allowance {
    calls_per_minute: Option<(NonZeroU32, Limiter)>,
    at_once: Option<NonZeroU32>,
    /// How many calls each caller has under way.
    running: Arc<Mutex<HashMap<Principal, u32>>>,
}

/// What was used so far is not shown: two allowances are alike if they allow the same.
impl fmt::Debug for Allowance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let per_minute = self.calls_per_minute.as_ref().map(|(calls, _)| calls);
        f.debug_struct("Allowance").field("calls_per_minute", &per_minute).field("at_once", &self.at_once).finish()
    }
}

/// One of the calls that may run at once, until this is dropped.
pub struct Turn {
    running: Arc<Mutex<HashMap<Principal, u32>>>,
    principal: Principal,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut running = self.running.lock();
        if let Some(count) = running.get_mut(&self.principal) {
            *count -= 1;
            if *count == 0 {
                running.remove(&self.principal);
            }
        }
    }
}

impl Allowance {
    /// None: any number. The calls of a minute may also come all at once; then one more comes free after each part of a minute.
    pub fn new(calls_per_minute: Option<NonZeroU32>, at_once: Option<NonZeroU32>) -> Self {
        let limiter = |calls| RateLimiter::hashmap(Quota::per_minute(calls));
        Self {
            calls_per_minute: calls_per_minute.map(|calls| (calls, limiter(calls))),
            at_once,
            running: Arc::default(),
        }
    }

    /// Counts a call. The error says after which time to try again.
    pub fn begin(&self, principal: &Principal) -> Result<Option<Turn>, Duration> {
        let turn = self.turn(principal)?;
        if let Some((_, limiter)) = &self.calls_per_minute {
            if limiter.len() > MANY {
                limiter.retain_recent();
            }
            limiter.check_key(principal).map_err(|not_yet| not_yet.wait_time_from(DefaultClock::default().now()))?;
        }
        Ok(turn)
    }

    fn turn(&self, principal: &Principal) -> Result<Option<Turn>, Duration> {
        let Some(most) = self.at_once else { return Ok(None) };
        let mut running = self.running.lock();
        let count = running.entry(principal.clone()).or_default();
        if *count >= most.get() {
            return Err(Duration::from_secs(1));
        }
        *count += 1;
        Ok(Some(Turn { running: Arc::clone(&self.running), principal: principal.clone() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_caller_has_the_whole_allowance() {
        let allowance = Allowance::new(NonZeroU32::new(3), NonZeroU32::new(2));
        let (ann, ben) = (Principal::Named("ann".into()), Principal::Named("ben".into()));
        let one = allowance.begin(&ann).unwrap();
        let two = allowance.begin(&ann).unwrap();
        assert_eq!(allowance.begin(&ann).err(), Some(Duration::from_secs(1)), "two at once");
        drop(two);
        drop(allowance.begin(&ann).unwrap());
        let after = allowance.begin(&ann).err().unwrap();
        assert!(after > Duration::from_secs(15) && after <= Duration::from_secs(20), "a third of a minute, {after:?}");
        assert!(allowance.begin(&ben).is_ok());
        drop(one);
        assert!(allowance.running.lock().is_empty());
        assert!(Allowance::default().begin(&ann).unwrap().is_none());
    }
}
