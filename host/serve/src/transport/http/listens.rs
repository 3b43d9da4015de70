//! The places of open event streams: those on which clients wait for changes, and those that clients resume.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio_util::sync::CancellationToken;

use wharf_base::{
    party::Party,
    places::{GivesWay, Occupant, Place, Places, PoolFull, PoolRule},
};

pub static LISTENING: PoolRule = PoolRule {
    of: "open streams for changes",
    number: "`listens` in [http]",
    taker: "client",
    until: "the stream ends",
    asking: "held, like the connection; nothing is worked on",
    gone: "given back at once",
    gives_way: "for clients that hold fewer places: the stream that has been open longest ends, and its client may open another one",
    old: Duration::MAX,
};

/// The places of all streams.
pub struct Listens(Arc<Places>);

/// A place for one stream, and a token that is cancelled when the stream is to end.
pub struct Listen {
    place: Place,
    pub over: CancellationToken,
}

/// A stream that ends when another client needs its place.
struct Open {
    began: Instant,
    over: CancellationToken,
    /// Returns whether the stream only waits for changes at the moment.
    waits: Box<dyn Fn() -> bool + Send + Sync>,
}

impl Listens {
    pub fn new(most: usize) -> Self {
        Self(Places::new(&LISTENING, most))
    }

    /// Takes a place. `over`: is cancelled when another client needs the place.
    pub fn take(&self, party: Party, over: CancellationToken) -> Result<Listen, PoolFull> {
        let occupant = Open { began: Instant::now(), over: over.clone(), waits: Box::new(|| true) };
        let (place, _) = self.0.take_for(party, Arc::new(occupant))?;
        Ok(Listen { place, over })
    }
}

impl Listen {
    /// Makes the stream give way only while `waits` returns true, which means that the stream has no other use at the moment.
    pub fn only_while(&mut self, waits: impl Fn() -> bool + Send + Sync + 'static) {
        let occupant = Open { began: Instant::now(), over: self.over.clone(), waits: Box::new(waits) };
        self.place.give_way(Arc::new(occupant));
    }
}

impl Occupant for Open {
    fn gives_way(&self, now: Instant) -> Option<GivesWay> {
        (self.waits)().then(|| GivesWay::ToOthers { idle: now.saturating_duration_since(self.began) })
    }

    fn end(&self) {
        self.over.cancel();
    }
}
