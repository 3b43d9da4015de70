//! What all requests of the page share.

use std::{collections::VecDeque, io, net::SocketAddr, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use super::{door::Door, layout::Outcome};
use crate::{actions::Actions, viewer::Viewer};

/// The most streams of events at once: fewer than connections, so that pages can still be loaded.
const MAX_STREAMS: usize = 8;
/// The most outcomes of actions that are remembered until they are shown.
const MAX_OUTCOMES: usize = 32;

/// What all requests share.
pub struct Shared {
    /// Who may see the page.
    pub door: Door,
    /// What wharfs tell.
    pub viewer: Arc<Viewer>,
    /// What a person can do.
    pub actions: Arc<dyn Actions>,
    /// A place for each stream of events.
    pub streams: Arc<Semaphore>,
    /// Work that blocks.
    pub blocking: TaskTracker,
    outcomes: Mutex<(u64, VecDeque<(u64, Outcome)>)>,
}

impl Shared {
    /// For a page at this address.
    pub fn new(address: SocketAddr, viewer: Arc<Viewer>, actions: Arc<dyn Actions>) -> io::Result<Self> {
        Ok(Self {
            door: Door::new(address)?,
            viewer,
            actions,
            streams: Arc::new(Semaphore::new(MAX_STREAMS)),
            blocking: TaskTracker::new(),
            outcomes: Mutex::default(),
        })
    }

    /// Remembers the outcome of an action, and returns its number.
    pub fn remember(&self, outcome: Outcome) -> u64 {
        let (last, outcomes) = &mut *self.outcomes.lock();
        *last += 1;
        if outcomes.len() >= MAX_OUTCOMES {
            outcomes.pop_front();
        }
        outcomes.push_back((*last, outcome));
        *last
    }

    /// Returns the outcome of an action.
    pub fn outcome(&self, number: u64) -> Option<Outcome> {
        self.outcomes.lock().1.iter().find(|(own, _)| *own == number).map(|(_, outcome)| outcome.clone())
    }
}
