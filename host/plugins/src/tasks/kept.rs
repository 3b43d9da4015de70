//! The places of stored tasks, independent of the store: which client's place each task takes, what memory it is charged for, and which
//! finished task gives way to another client's new one.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
    time::{Duration, Instant, SystemTime},
};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use wharf_base::{
    ledger::Charge,
    party::Party,
    places::{GivesWay, Occupant, Place, Places, PoolFull, PoolRule},
};

/// The limit of stored tasks.
pub static KEPT: PoolRule = PoolRule {
    of: "stored tasks",
    number: "`total_tasks` in [limits]",
    taker: "client",
    until: "the task expires, whether or not its result was fetched; the place is given back when the next task is created",
    asking: "held: the question belongs to the task and does not extend its time to live",
    gone: "held until the task expires, since the client may come back for it; a finished task of a session that has ended gives its \
           place back",
    gives_way: "finished tasks, the oldest first, to other clients that have fewer tasks; running tasks never give way",
    old: Duration::MAX,
};

/// The stored tasks.
pub struct Kept {
    places: Arc<Places>,
    all: Mutex<HashMap<String, One>>,
    /// The ids of the tasks that gave way, until the store has removed them.
    gave_way: Arc<Mutex<Vec<String>>>,
}

struct One {
    until: SystemTime,
    state: Arc<TaskState>,
    charges: Vec<Charge>,
    _place: Place,
}

/// The state of a stored task.
struct TaskState {
    id: String,
    /// When the task finished.
    over: OnceLock<Instant>,
    /// Cancelled when the only session that may access the task ends.
    session: Option<CancellationToken>,
    gave_way: Arc<Mutex<Vec<String>>>,
}

impl TaskState {
    /// Whether the task has finished and its session has ended, so that it is not accessible any more.
    fn is_lost(&self) -> bool {
        self.over.get().is_some() && self.session.as_ref().is_some_and(CancellationToken::is_cancelled)
    }
}

impl Occupant for TaskState {
    fn gives_way(&self, now: Instant) -> Option<GivesWay> {
        let idle = now.saturating_duration_since(*self.over.get()?);
        Some(if self.is_lost() { GivesWay::ToAnyone { idle } } else { GivesWay::ToOthers { idle } })
    }

    fn end(&self) {
        self.gave_way.lock().push(self.id.clone());
    }
}

/// The place of a task that is about to be stored.
pub struct Taken {
    state: Arc<TaskState>,
    place: Place,
}

impl Kept {
    /// Creates the places. `whole` is the most tasks that are stored at once.
    pub fn new(whole: usize) -> Self {
        Self { places: Places::new(&KEPT, whole), all: Mutex::default(), gave_way: Arc::default() }
    }

    /// Takes a place for a task. `session` is cancelled when the only session that may access the task ends.
    pub fn take(&self, id: &str, party: Party, session: Option<CancellationToken>) -> Result<Taken, PoolFull> {
        let gave_way = Arc::clone(&self.gave_way);
        let state = Arc::new(TaskState { id: id.to_owned(), over: OnceLock::new(), session, gave_way });
        let (place, _) = self.places.take_for(party, Arc::clone(&state) as Arc<dyn Occupant>)?;
        Ok(Taken { state, place })
    }

    /// Stores a task with its memory charge, until it expires.
    pub fn keep(&self, taken: Taken, until: SystemTime, charge: Charge) {
        let Taken { state, place } = taken;
        let id = state.id.clone();
        self.all.lock().insert(id, One { until, state, charges: vec![charge], _place: place });
    }

    /// Marks a task as finished, with the memory charge for its outcome.
    pub fn end(&self, id: &str, charge: Option<Charge>) {
        if let Some(one) = self.all.lock().get_mut(id) {
            one.state.over.get_or_init(Instant::now);
            one.charges.extend(charge);
        }
    }

    /// Returns the tasks that the store has to remove: tasks that have expired, are not accessible any more, or gave way. Their places and
    /// charges are given back. [`Kept::removed`] has to be called for each.
    pub fn to_remove(&self) -> Vec<String> {
        let now = SystemTime::now();
        let mut all = self.all.lock();
        let mut over: Vec<(String, One)> = all.extract_if(|_, one| one.until <= now || one.state.is_lost()).collect();
        let mut gave_way = self.gave_way.lock();
        gave_way.extend(over.iter().map(|(id, _)| id.clone()));
        over.extend(gave_way.iter().filter_map(|id| all.remove_entry(id)));
        let ids = gave_way.clone();
        // Places must not be given back while this is locked: the pool takes the lock when it evicts a task (deadlock).
        drop((gave_way, all));
        drop(over);
        ids
    }

    /// Marks a task as removed from the store.
    pub fn removed(&self, id: &str) {
        self.gave_way.lock().retain(|one| one != id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_base::party::named;

    const HOUR: Duration = Duration::from_secs(3600);

    fn charge() -> Charge {
        wharf_base::ledger::Account::new(1 << 20).charge(1).unwrap()
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
