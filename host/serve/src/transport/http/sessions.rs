//! The legacy sessions of the HTTP server. Their ids cannot be guessed, only the principal that opened a session may use it,
//! and unused sessions are ended.
//!
//! Opening sessions costs a client nothing, so it must not harm others: each client has a share of them, and sessions that
//! are not in use make room.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::client::session::Session;
use wharf_base::{
    party::Party,
    places::{GivesWay, Occupant, Place, Places, PoolFull, PoolRule},
    principal::Principal,
};

/// The longest time between two searches for unused sessions.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);

pub static OPEN: PoolRule = PoolRule {
    of: "sessions",
    number: "`sessions` in [http]",
    taker: "client",
    until: "the client deletes the session, or has not used it for `session_idle_ms`",
    asking: "held: the question is part of the session, whose request is under way",
    gone: "held until `session_idle_ms`, because clients connect for each request, but gives way",
    gives_way: "sessions without a request or task under way and without an open stream: if never used, for any client; else for clients \
                that hold fewer and for their own client, and after 5 minutes for any client",
    old: Duration::from_secs(300),
};

type ById = Mutex<HashMap<Arc<str>, (Arc<Session>, Place)>>;

#[derive(Clone)]
pub struct Sessions {
    by_id: Arc<ById>,
    places: Arc<Places>,
    /// A session that is not used for this long is ended.
    idle: Duration,
}

impl Sessions {
    pub fn new(most: usize, idle: Duration) -> Self {
        Self { by_id: Arc::default(), places: Places::new(&OPEN, most), idle }
    }

    /// Adds a session of a client. If the client has no place for it, one that is not in use is ended.
    pub fn add(&self, session: Arc<Session>, party: Party) -> Result<(), PoolFull> {
        let place = self.places.take(party)?;
        let occupant = Seated { session: Arc::clone(&session), by_id: Arc::downgrade(&self.by_id) };
        let mut by_id = self.by_id.lock();
        let (_, place) = by_id.entry(session.id.clone()).or_insert((session, place));
        place.give_way(Arc::new(occupant));
        Ok(())
    }

    /// Returns the session with this id, if this principal opened it for this profile.
    pub fn get(&self, id: &str, principal: &Principal, profile: Option<&str>) -> Option<Arc<Session>> {
        let same = |session: &&Arc<Session>| session.principal == *principal && session.profile.as_deref() == profile;
        let session = self.by_id.lock().get(id).map(|(session, _)| session).filter(same).cloned()?;
        if session.idle_for() > self.idle {
            self.end(&session);
            return None;
        }
        session.touch();
        Some(session)
    }

    pub fn end(&self, session: &Session) {
        end(&self.by_id, session);
    }

    /// Ends unused sessions, for as long as wharf runs.
    pub async fn sweep(self, stop: CancellationToken) {
        let mut interval = tokio::time::interval(self.idle.min(SWEEP_INTERVAL));
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = interval.tick() => {}
            }
            let all: Vec<Arc<Session>> = self.by_id.lock().values().map(|(session, _)| Arc::clone(session)).collect();
            all.iter().filter(|session| session.idle_for() > self.idle).for_each(|session| self.end(session));
        }
    }
}

fn end(by_id: &ById, session: &Session) {
    let ended = by_id.lock().remove(&session.id);
    session.ended.cancel();
    // The place is given back outside of the lock.
    drop(ended);
}

/// The occupant of a session's place.
struct Seated {
    session: Arc<Session>,
    by_id: Weak<ById>,
}

impl Occupant for Seated {
    fn gives_way(&self, now: Instant) -> Option<GivesWay> {
        let idle = self.session.idle(now)?;
        Some(if self.session.is_used() { GivesWay::ToSmaller { idle } } else { GivesWay::ToAnyone { idle } })
    }

    fn end(&self) {
        if let Some(by_id) = self.by_id.upgrade() {
            end(&by_id, &self.session);
        }
    }
}
