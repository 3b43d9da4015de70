//! What this replica waits for from others, and what it sends them.

use std::{
    collections::HashMap,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use wharf_base::{
    ledger::{Accounts, Charged},
    places::{Places, PoolRule},
};

use crate::{silent::NoRoom, taken::Taken};

/// How many questions of other replicas are under way at once.
const MAX_ASKED: usize = 1024;

/// The limit of questions of other replicas.
pub static ASKED: PoolRule = PoolRule {
    of: "questions of other replicas",
    number: "1024",
    taker: "client",
    until: "the answer is sent, or nobody waits for it any more",
    asking: "held",
    gone: "given back",
    gives_way: "nothing; a question without a place gets no answer, which its replica takes for an outage",
    old: Duration::MAX,
};

pub struct Bus {
    pub waiting: Mutex<HashMap<u64, Waiting>>,
    /// The questions of others that this replica answers, by their number.
    pub sending: Mutex<HashMap<u64, CancellationToken>>,
    pub connected: watch::Sender<bool>,
    /// The number of messages that this replica has sent.
    pub sent: AtomicU64,
    /// Which messages of others it has taken.
    pub taken: Mutex<Taken>,
    pub asked: Arc<Places>,
}

impl Bus {
    pub fn new() -> Self {
        Self {
            waiting: Mutex::default(),
            sending: Mutex::default(),
            connected: watch::Sender::default(),
            sent: AtomicU64::default(),
            taken: Mutex::default(),
            asked: Places::new(&ASKED, MAX_ASKED),
        }
    }
}

/// Someone who waits for an answer of another replica, or follows a stream of it.
pub struct Waiting {
    /// The client for whom, who is charged for what comes.
    pub accounts: Accounts,
    /// Gets the answer, until it is there. `None` in it: a stream begins.
    pub first: Option<oneshot::Sender<Result<Option<Charged<Value>>, NoRoom>>>,
    /// Gets the frames of a stream, or why the next one is not passed on. Each frame in it is charged to a client.
    pub frames: Option<FrameSender>,
}

pub type FrameSender = mpsc::UnboundedSender<Result<Charged<String>, NoRoom>>;

impl Waiting {
    /// Returns who is charged for frames, and who gets them.
    pub fn followed(&self) -> Option<(Accounts, FrameSender)> {
        Some((self.accounts.clone(), self.frames.clone()?))
    }
}
