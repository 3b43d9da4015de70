//! The legacy sessions of the HTTP server. Their ids cannot be guessed, and only the principal that opened a session may use it. Unused
//! sessions leave memory, and are made again from their ids when they are used again, as after a restart: see `session_id`. Only sessions
//! that their clients have ended do not come back.
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
use wharf_protocol::RpcError;

use crate::client::{server::Server, session::Session};
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
    until: "the client deletes the session, or has not used it for `session_idle_ms`; its id makes it again",
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
    /// A session that is not used for this long leaves memory.
    idle: Duration,
    /// Held while a session is made again or ended, so that several requests that name it at once find the same one, and none makes one
    /// that is being ended.
    reopening: Arc<Mutex<()>>,
}

/// Why a session is not made again.
pub enum NotReopened {
    /// Its client has ended it.
    Ended,
    Full(PoolFull),
    NoMemory(RpcError),
}

impl Sessions {
    pub fn new(most: usize, idle: Duration) -> Self {
        Self { by_id: Arc::default(), places: Places::new(&OPEN, most), idle, reopening: Arc::default() }
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

    /// Makes a session again, unless another request has just done so, or its client has ended it. `made`: makes it.
    pub fn reopen(
        &self,
        server: &Server,
        id: &str,
        party: Party,
        made: impl FnOnce() -> Result<Arc<Session>, RpcError>,
    ) -> Result<Arc<Session>, NotReopened> {
        let _reopening = self.reopening.lock();
        if server.remembered.has_ended(id) {
            return Err(NotReopened::Ended);
        }
        if let Some((session, _)) = self.by_id.lock().get(id) {
            return Ok(Arc::clone(session));
        }
        let session = made().map_err(NotReopened::NoMemory)?;
        self.add(Arc::clone(&session), party).map_err(NotReopened::Full)?;
        Ok(session)
    }

    /// Ends a session for good. `party`: the client that ends it, or has opened it. `issued`: when its id was. Returns false if it has
    /// ended before.
    pub fn end(&self, server: &Server, id: &str, party: Party, issued: u64) -> bool {
        let _reopening = self.reopening.lock();
        if server.remembered.has_ended(id) {
            return false;
        }
        server.remembered.end(id, party, issued);
        let session = self.by_id.lock().get(id).map(|(session, _)| Arc::clone(session));
        if let Some(session) = session {
            self.leave(&session);
        }
        true
    }

    /// Returns the session with this id, if it is in memory.
    pub fn find(&self, id: &str) -> Option<Arc<Session>> {
        self.by_id.lock().get(id).map(|(session, _)| Arc::clone(session))
    }

    /// Returns all sessions in memory.
    pub fn all(&self) -> Vec<Arc<Session>> {
        self.by_id.lock().values().map(|(session, _)| Arc::clone(session)).collect()
    }

    /// Returns the session with this id, if it is in memory and this principal opened it for this profile.
    pub fn get(&self, id: &str, principal: &Principal, profile: Option<&str>) -> Option<Arc<Session>> {
        let same = |session: &&Arc<Session>| session.principal == *principal && session.profile.as_deref() == profile;
        let session = self.by_id.lock().get(id).map(|(session, _)| session).filter(same).cloned()?;
        if session.idle_for() > self.idle {
            self.leave(&session);
            return None;
        }
        session.touch();
        Some(session)
    }

    /// Takes a session out of memory, and stops what it does.
    fn leave(&self, session: &Session) {
        leave(&self.by_id, session);
    }

    /// Takes unused sessions out of memory, for as long as wharf runs.
    pub async fn sweep(self, stop: CancellationToken) {
        let mut interval = tokio::time::interval(self.idle.min(SWEEP_INTERVAL));
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = interval.tick() => {}
            }
            self.all().iter().filter(|session| session.idle_for() > self.idle).for_each(|session| self.leave(session));
        }
    }
}

fn leave(by_id: &ById, session: &Session) {
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
            leave(&by_id, &self.session);
        }
    }
}
