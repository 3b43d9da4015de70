//! Where messages that belong to a request go while it runs: its pipe, or its response stream.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::base::ledger::{Account, Charge};

/// What a message takes besides its text.
const MESSAGE_BYTES: usize = 64;

/// The room, in bytes, that a message may need.
const RESERVE: u32 = 64 * 1024;

/// Where messages that belong to a request go: its pipe, or its response stream.
#[derive(Clone)]
pub struct Outbox {
    sender: mpsc::UnboundedSender<Queued>,
    /// A permit for each byte that may wait, which is the queue's bound.
    room: Arc<Semaphore>,
    bytes: u32,
    /// Pays for what waits.
    account: Account,
    pub voice: Voice,
}

/// Whether a request may say something: until it is cancelled. Held while something is said, so that nothing is from then on,
/// wherever the request still runs.
#[derive(Clone, Default)]
pub struct Voice {
    muted: Arc<Mutex<bool>>,
}

impl Voice {
    pub fn mute(&self) {
        *self.muted.lock() = true;
    }
}

/// A message that waits to be read. Its room is free again when it is dropped.
pub struct Queued {
    pub text: String,
    _room: OwnedSemaphorePermit,
    _charge: Charge,
}

/// The other side is gone or wants to hear no more, or there is no memory for what it does not read.
#[derive(Debug)]
pub struct Closed;

impl Outbox {
    /// `bytes`: how much may wait; a single larger message waits alone. `account`: pays for it.
    pub fn new(bytes: u32, account: Account) -> (Self, mpsc::UnboundedReceiver<Queued>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let room = Arc::new(Semaphore::new(usize::try_from(bytes).unwrap_or(usize::MAX)));
        (Self { sender, room, bytes, account, voice: Voice::default() }, receiver)
    }

    /// An end of the same for one request alone.
    pub fn of_request(&self) -> Self {
        Self { voice: Voice::default(), ..self.clone() }
    }

    fn say(&self, message: Queued) -> Result<(), Closed> {
        let muted = self.voice.muted.lock();
        if *muted { Err(Closed) } else { self.sender.send(message).map_err(|_| Closed) }
    }

    fn room_for(&self, text: &str) -> u32 {
        u32::try_from(text.len() + MESSAGE_BYTES).map_or(self.bytes, |length| length.min(self.bytes))
    }

    /// Waits until the other side has read enough.
    pub async fn send(&self, text: String) -> Result<(), Closed> {
        let room = Arc::clone(&self.room).acquire_many_owned(self.room_for(&text)).await.map_err(|_| Closed)?;
        let charge = self.account.charge(text.len() + MESSAGE_BYTES).map_err(|_| Closed)?;
        self.say(Queued { text, _room: room, _charge: charge })
    }

    /// Drops the message if there is no room: for what may be lost, from where nothing may wait.
    pub fn offer(&self, text: String) {
        let room = Arc::clone(&self.room).try_acquire_many_owned(self.room_for(&text)).ok();
        let charge = self.account.charge(text.len() + MESSAGE_BYTES).ok();
        if let Some((room, charge)) = room.zip(charge) {
            self.say(Queued { text, _room: room, _charge: charge }).ok();
        }
    }

    /// Waits while those who have something to say wait already. One byte of room is asked for: who waits here may be many,
    /// and more would add up to all there is.
    pub async fn ready(&self) {
        // Never closed.
        drop(self.room.acquire().await);
    }

    /// Whether those who have something to say wait.
    pub fn is_full(&self) -> bool {
        self.room.available_permits() == 0
    }

    /// Waits until a message of any usual size finds room.
    pub async fn roomy(&self) {
        drop(self.room.acquire_many(RESERVE.min(self.bytes / 2)).await);
    }

    pub fn is_roomy(&self) -> bool {
        self.room.available_permits() >= RESERVE.min(self.bytes / 2) as usize
    }

    pub async fn closed(&self) {
        self.sender.closed().await;
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_muted_request_says_nothing_and_others_do() {
        let (outbox, mut queue) = Outbox::new(10_000, Account::new(10_000));
        let (one, other) = (outbox.of_request(), outbox.of_request());
        one.voice.mute();
        one.offer("from one".into());
        assert!(one.send("from one".into()).await.is_err());
        other.offer("from another".into());
        outbox.send("from nobody's".into()).await.unwrap();
        assert_eq!(queue.recv().await.unwrap().text, "from another");
        assert_eq!(queue.recv().await.unwrap().text, "from nobody's");
    }

    #[tokio::test]
    async fn what_waits_has_a_bound_in_bytes() {
        let (outbox, mut queue) = Outbox::new(100, Account::new(10_000));
        outbox.send("x".repeat(20)).await.unwrap();
        outbox.offer("y".repeat(20));
        assert!(outbox.send("z".repeat(20)).now_or_never().is_none(), "there is no room");
        outbox.ready().now_or_never().unwrap();
        drop(queue.recv().await.unwrap());
        outbox.send("larger than all there is".repeat(9)).await.unwrap();
        assert!(outbox.ready().now_or_never().is_none());
        assert_eq!(queue.recv().await.unwrap().text.len(), 216);
        drop(queue);
        assert!(outbox.send("x".into()).await.is_err());
    }
}
