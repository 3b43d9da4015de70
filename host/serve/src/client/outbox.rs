//! The bounded queue of messages to a client, with backpressure: the queue of a pipe, or of a request's response stream.

use std::{
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use wharf_base::ledger::{Account, Charge};

/// The memory that a message takes besides its text.
const MESSAGE_BYTES: usize = 64;

/// The room in bytes for a message of the usual size.
const USUAL_MESSAGE_BYTES: u32 = 64 * 1024;

/// The sending end of a queue of messages to a client.
#[derive(Clone)]
pub struct Outbox {
    queue: Arc<Queue>,
    /// The account that is charged for the messages that wait.
    account: Account,
    pub voice: Voice,
}

/// A queue, which is created when somebody first sends a message or waits for one: most requests have none.
struct Queue {
    /// How many bytes may wait.
    bytes: u32,
    created: OnceLock<Created>,
}

struct Created {
    sender: mpsc::UnboundedSender<Queued>,
    /// Bounds the queue: one permit for each byte that may wait.
    room: Arc<Semaphore>,
    /// Taken by the receiving end.
    receiver: Mutex<Option<mpsc::UnboundedReceiver<Queued>>>,
}

impl Queue {
    fn created(&self) -> &Created {
        self.created.get_or_init(|| {
            let (sender, receiver) = mpsc::unbounded_channel();
            let room = Arc::new(Semaphore::new(usize::try_from(self.bytes).unwrap_or(usize::MAX)));
            Created { sender, room, receiver: Mutex::new(Some(receiver)) }
        })
    }

    /// Returns how many more bytes may wait.
    fn room(&self) -> usize {
        match self.created.get() {
            Some(created) => created.room.available_permits(),
            None => usize::try_from(self.bytes).unwrap_or(usize::MAX),
        }
    }
}

/// The receiving end of a queue. When it is dropped, messages cannot be sent any more.
pub struct Messages {
    /// The queue, until its receiver is taken.
    queue: Option<Arc<Queue>>,
    receiver: Option<mpsc::UnboundedReceiver<Queued>>,
}

impl Messages {
    /// Returns the receiver of the queue. From then on, this does not count as an end that could send.
    fn receiver(&mut self) -> &mut mpsc::UnboundedReceiver<Queued> {
        if let Some(queue) = self.queue.take() {
            self.receiver = queue.created().receiver.lock().take();
        }
        // A queue has one receiving end, so the receiver is there.
        self.receiver.get_or_insert_with(|| mpsc::unbounded_channel().1)
    }

    /// Returns the next message if there is one.
    pub fn try_recv(&mut self) -> Option<Queued> {
        if self.queue.as_ref().is_some_and(|queue| queue.created.get().is_none()) {
            return None;
        }
        self.receiver().try_recv().ok()
    }

    /// Waits for the next message. Returns `None` when no outbox is left.
    pub async fn recv(&mut self) -> Option<Queued> {
        self.receiver().recv().await
    }

    /// Waits for messages and takes up to `limit` of them. Returns 0 when no outbox is left.
    pub async fn recv_many(&mut self, into: &mut Vec<Queued>, limit: usize) -> usize {
        self.receiver().recv_many(into, limit).await
    }

    /// The same as [`Messages::recv`], for futures that are written by hand.
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<Queued>> {
        self.receiver().poll_recv(cx)
    }
}

impl Drop for Messages {
    fn drop(&mut self) {
        // Outboxes that are left notice that nobody receives any more. Without any, nobody could notice.
        let is_shared = |queue: &Arc<Queue>| queue.created.get().is_some() || Arc::strong_count(queue) > 1;
        if self.queue.as_ref().is_some_and(is_shared) {
            self.receiver();
        }
    }
}

/// The switch that stops the messages of a request when it is cancelled. The lock is held while a message is sent, so that no message is
/// sent after [`Voice::mute`], even if the request still runs somewhere.
#[derive(Clone, Default)]
pub struct Voice {
    muted: Arc<Mutex<bool>>,
}

impl Voice {
    pub fn mute(&self) {
        *self.muted.lock() = true;
    }
}

/// A message that waits to be read. Its room in the queue is free again when this is dropped.
pub struct Queued {
    pub text: String,
    _room: OwnedSemaphorePermit,
    _charge: Charge,
}

/// Why a message was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsent {
    /// The client is gone, or the request was cancelled.
    Closed,
    /// There is not enough memory for the message now.
    NoRoom,
}

impl Outbox {
    /// Creates a queue and its receiving end. `bytes`: how much may wait; a larger message waits alone. `account`:
    /// is charged for what waits.
    pub fn new(bytes: u32, account: Account) -> (Self, Messages) {
        let queue = Arc::new(Queue { bytes, created: OnceLock::new() });
        (
            Self { queue: Arc::clone(&queue), account, voice: Voice::default() },
            Messages { queue: Some(queue), receiver: None },
        )
    }

    /// Returns an outbox for one request, which sends to the same queue and can be muted alone.
    pub fn of_request(&self) -> Self {
        Self { voice: Voice::default(), ..self.clone() }
    }

    fn say(&self, message: Queued) -> Result<(), Unsent> {
        let muted = self.voice.muted.lock();
        if *muted { Err(Unsent::Closed) } else { self.queue.created().sender.send(message).map_err(|_| Unsent::Closed) }
    }

    fn room_for(&self, text: &str) -> u32 {
        u32::try_from(text.len() + MESSAGE_BYTES).map_or(self.queue.bytes, |length| length.min(self.queue.bytes))
    }

    /// Sends a message. Waits until the client has read enough to make room for it.
    pub async fn send(&self, text: String) -> Result<(), Unsent> {
        let room = Arc::clone(&self.queue.created().room).acquire_many_owned(self.room_for(&text));
        let room = room.await.map_err(|_| Unsent::Closed)?;
        let charge = self.account.charge(text.len() + MESSAGE_BYTES).map_err(|_| Unsent::NoRoom)?;
        self.say(Queued { text, _room: room, _charge: charge })
    }

    /// Sends a message if there is room for it, and drops it otherwise. For messages that may be lost, sent by code that cannot wait.
    pub fn offer(&self, text: String) {
        let room = Arc::clone(&self.queue.created().room).try_acquire_many_owned(self.room_for(&text)).ok();
        let charge = self.account.charge(text.len() + MESSAGE_BYTES).ok();
        if let Some((room, charge)) = room.zip(charge) {
            self.say(Queued { text, _room: room, _charge: charge }).ok();
        }
    }

    /// Waits until the messages that already wait for room have it. Acquires one byte only, because many callers may wait here, and more
    /// would add up to the room of the whole queue.
    pub async fn ready(&self) {
        if let Some(created) = self.queue.created.get() {
            // The semaphore is never closed, so this cannot fail.
            drop(created.room.acquire().await);
        }
    }

    /// Whether the queue is full, as it is while a message waits for room.
    pub fn is_full(&self) -> bool {
        self.queue.room() == 0
    }

    /// Waits until there is room for a message of the usual size.
    pub async fn roomy(&self) {
        if let Some(created) = self.queue.created.get() {
            drop(created.room.acquire_many(USUAL_MESSAGE_BYTES.min(self.queue.bytes / 2)).await);
        }
    }

    pub fn is_roomy(&self) -> bool {
        self.queue.room() >= USUAL_MESSAGE_BYTES.min(self.queue.bytes / 2) as usize
    }

    pub async fn closed(&self) {
        self.queue.created().sender.closed().await;
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
        assert_eq!(outbox.send("x".into()).await, Err(Unsent::Closed));
    }

    #[tokio::test]
    async fn both_ends_notice_when_the_other_is_gone() {
        let new = || Outbox::new(100, Account::new(1_000));
        for waits in [false, true] {
            let (outbox, mut queue) = new();
            if waits {
                assert!(queue.recv().now_or_never().is_none());
            }
            assert!(queue.try_recv().is_none() && outbox.closed().now_or_never().is_none());
            drop(queue);
            outbox.closed().now_or_never().unwrap();
            assert_eq!(outbox.send("lost".into()).await, Err(Unsent::Closed));
            let (outbox, mut queue) = new();
            if waits {
                assert!(queue.recv().now_or_never().is_none());
            }
            outbox.of_request().send("the last".into()).await.unwrap();
            drop(outbox);
            assert_eq!(queue.try_recv().unwrap().text, "the last");
            assert!(queue.recv().await.is_none());
        }
    }

    #[tokio::test]
    async fn want_of_memory_is_not_the_end_of_a_connection() {
        let account = Account::new(1_000);
        let (outbox, mut queue) = Outbox::new(100, account.clone());
        let taken = account.charge(1_000).unwrap();
        assert_eq!(outbox.send("lost".into()).await, Err(Unsent::NoRoom));
        drop(taken);
        outbox.send("sent".into()).await.unwrap();
        assert_eq!(queue.recv().await.unwrap().text, "sent");
    }
}
