//! What this replica waits for from others, and what it sends them.

use std::{collections::HashMap, sync::atomic::AtomicU64};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::taken::Taken;

#[derive(Default)]
pub struct Bus {
    pub waiting: Mutex<HashMap<u64, Waiting>>,
    /// The streams that this replica sends, by the number of the request.
    pub sending: Mutex<HashMap<u64, CancellationToken>>,
    pub connected: watch::Sender<bool>,
    /// The number of messages that this replica has sent.
    pub sent: AtomicU64,
    /// Which messages of others it has taken.
    pub taken: Mutex<Taken>,
}

pub enum Waiting {
    Value(oneshot::Sender<Value>),
    /// The first frame is what the replica says instead of a stream, or nothing.
    Frames(Option<oneshot::Sender<Option<Value>>>, mpsc::Sender<String>),
}
