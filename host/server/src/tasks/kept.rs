//! The places of tasks that are kept, whatever store keeps their records: whose place each task takes, what is charged for it, and whose
//! finished task gives way to another client's new one.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
    time::{Duration, Instant, SystemTime},
};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use wharf_sandbox::places::{Full, GivesWay, Occupant, Place, Places, Rule};

use crate::base::{ledger::Charge, party::Party};

/// Tasks that are kept.
pub static KEPT: Rule = Rule {
    of: "tasks that are kept",
    number: "`total_tasks` in [limits]",
    taker: "client",
    until: "the task's time to live is over, whether or not the task was asked for; at the next new task of anybody",
    asking: "held, since the question is a part of the task, which lives no longer for it",
    gone: "held until the time to live is over, since a client may come back for its task; a task of a session that has ended gives its \
           place back",
    gives_way: "finished tasks, the oldest first, to other clients that keep fewer tasks; tasks that run never do",
    old: Duration::MAX,
};

/// What is known of the tasks that are kept.
pub struct Kept {
    places: Arc<Places>,
    all: Mutex<HashMap<String, One>>,
    /// The ids of the tasks that gave way, until the store has removed them.
    gave_way: Arc<Mutex<Vec<String>>>,
}

struct One {
    until: SystemTime,
    standing: Arc<Standing>,
    charges: Vec<Charge>,
    _place: Place,
}

/// How a kept task stands.
struct Standing {
    id: String,
    /// Since when it has been over.
    over: OnceLock<Instant>,
    /// Cancelled when the session is over that alone may ask for the task.
    session: Option<CancellationToken>,
    gave_way: Arc<Mutex<Vec<String>>>,
}

impl Standing {
    /// Whether nobody can ask for it any more.
    fn is_lost(&self) -> bool {
        self.over.get().is_some() && self.session.as_ref().is_some_and(CancellationToken::is_cancelled)
    }
}

impl Occupant for Standing {
    fn gives_way(&self, now: Instant) -> Option<GivesWay> {
        let idle = now.saturating_duration_since(*self.over.get()?);
        Some(if self.is_lost() { GivesWay::ToAnyone { idle } } else { GivesWay::ToOthers { idle } })
    }

    fn end(&self) {
        self.gave_way.lock().push(self.id.clone());
    }
}

/// The place of a task that is about to be kept.
pub struct Taken {
    standing: Arc<Standing>,
    place: Place,
}

impl Kept {
    /// `whole`: how many tasks are kept at once.
    pub fn new(whole: usize) -> Self {
        Self { places: Places::new(&KEPT, whole), all: Mutex::default(), gave_way: Arc::default() }
    }

    /// Takes a place for a task. `session`: cancelled when the session is over that alone may ask for the task.
    pub fn take(&self, id: &str, party: Party, session: Option<CancellationToken>) -> Result<Taken, Full> {
        let gave_way = Arc::clone(&self.gave_way);
        let standing = Arc::new(Standing { id: id.to_owned(), over: OnceLock::new(), session, gave_way });
        let (place, _) = self.places.take_for(party, Arc::clone(&standing) as Arc<dyn Occupant>)?;
        Ok(Taken { standing, place })
    }

    /// Keeps a task, with what is charged for it, until it expires.
    pub fn keep(&self, taken: Taken, until: SystemTime, charge: Charge) {
        let Taken { standing, place } = taken;
        let id = standing.id.clone();
        self.all.lock().insert(id, One { until, standing, charges: vec![charge], _place: place });
    }

    /// Notes that a task is over, with what is charged for its outcome.
    pub fn end(&self, id: &str, charge: Option<Charge>) {
        if let Some(one) = self.all.lock().get_mut(id) {
            one.standing.over.get_or_init(Instant::now);
            one.charges.extend(charge);
        }
    }

    /// The tasks that the store need not keep any longer: those that have expired, that nobody can ask for any more, and that gave way.
    /// Their places and charges are given back. [`Kept::removed`] has to be called for each.
    pub fn to_remove(&self) -> Vec<String> {
        let now = SystemTime::now();
        let mut all = self.all.lock();
        let mut over: Vec<(String, One)> =
            all.extract_if(|_, one| one.until <= now || one.standing.is_lost()).collect();
        let mut gave_way = self.gave_way.lock();
        gave_way.extend(over.iter().map(|(id, _)| id.clone()));
        over.extend(gave_way.iter().filter_map(|id| all.remove_entry(id)));
        let ids = gave_way.clone();
        // Places must not be given back while this is locked: the pool locks it when it ends a task.
        drop((gave_way, all));
        drop(over);
        ids
    }

    /// Notes that the store has removed a task.
    pub fn removed(&self, id: &str) {
        self.gave_way.lock().retain(|one| one != id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::party::named;

    const HOUR: Duration = Duration::from_secs(3600);

    fn charge() -> Charge {
        wharf_sandbox::ledger::Account::new(1 << 20).charge(1).unwrap()
    }

    fn keep(kept: &Kept, party: &str, id: &str, within: Duration) -> bool {
        let taken = kept.take(id, named(party), None);
        let is_kept = taken.is_ok();
        if let Ok(taken) = taken {
            kept.keep(taken, SystemTime::now() + within, charge());
        }
        is_kept
    }

    fn over(kept: &Kept) -> Vec<String> {
        let ids = kept.to_remove();
        ids.iter().for_each(|id| kept.removed(id));
        ids
    }

    #[test]
    fn finished_tasks_of_the_largest_holder_give_way_and_running_ones_never() {
        let kept = Kept::new(8);
        for id in 0..6 {
            assert!(keep(&kept, "ann", &format!("a{id}"), HOUR), "{id}");
        }
        assert!(!keep(&kept, "ann", "a6", HOUR), "three quarters at the most");
        assert!(keep(&kept, "ben", "b0", HOUR) && keep(&kept, "zoe", "z0", HOUR));
        assert!(!keep(&kept, "ben", "b1", HOUR), "all of hers run");
        kept.end("a3", None);
        kept.end("a1", Some(charge()));
        assert!(!keep(&kept, "ann", "a6", HOUR), "she gets her results until they expire");
        assert!(over(&kept).is_empty());
        assert!(keep(&kept, "ben", "b1", HOUR));
        assert_eq!(over(&kept), ["a3"], "the oldest");
        assert!(keep(&kept, "zoe", "z1", HOUR));
        assert_eq!(over(&kept), ["a1"]);
        assert!(!keep(&kept, "zoe", "z2", HOUR));
        assert_eq!(kept.all.lock().len(), 8);
    }

    #[test]
    fn a_task_that_expired_or_that_nobody_can_ask_for_gives_its_place_back() {
        let kept = Kept::new(2);
        let session = CancellationToken::new();
        let taken = kept.take("s", named("ann"), Some(session.clone())).unwrap();
        kept.keep(taken, SystemTime::now() + HOUR, charge());
        assert!(keep(&kept, "ann", "short", Duration::ZERO));
        assert_eq!(over(&kept), ["short"]);
        session.cancel();
        assert!(over(&kept).is_empty(), "it runs");
        kept.end("s", None);
        assert_eq!(over(&kept), ["s"]);
        assert_eq!(kept.places.taken(), 0);
    }
}
