//! Messages between replicas: to all, to one with an answer, and to one that answers with a stream. They are sealed, and bound to their
//! channel. A message that is older than a minute is ignored, so clocks may differ by less than that, and so is one that was taken before, in
//! case Redis repeats it.
//!
//! Messages can be lost, and a replica that was cut off is told so when it is connected again.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_util::{Stream, StreamExt};
use redis::{RedisError, aio::PubSub, cmd};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval, sleep, timeout, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use wharf_base::{
    ledger::{Accounts, Charged, message_bytes},
    party::Party,
    random_id,
    session_id::now,
    text::escaped,
};

use crate::{
    cluster::Cluster,
    silent::{NoRoom, Silent, Unanswered},
    waiting::{Bus, Waiting},
};

/// How long another replica may take to answer, and to send the next frame of a stream before it is looked at whether it still runs.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);
const FRAME_TIMEOUT: Duration = Duration::from_secs(3);
/// How often a question is asked again whose answer did not come. The pause grows by the interval each time.
const MAX_REPEATS: u32 = 5;
const REPEAT_INTERVAL: Duration = Duration::from_millis(500);
/// How old a message may be.
const MAX_AGE_MS: u64 = 60_000;
/// The longest message, before it is sealed. Redis ends the connection of a replica for which 32 MiB wait.
const MAX_MESSAGE_BYTES: usize = 24 << 20;
/// How many copies of a frame there are while it is sent.
const SENT_COPIES: usize = 3;
/// What a frame that waits takes besides its text.
const FRAME_BYTES: usize = 128;
const PING_INTERVAL: Duration = Duration::from_secs(2);
const PING_TIMEOUT: Duration = Duration::from_secs(2);
const RECONNECT_INTERVAL: Duration = Duration::from_millis(500);
/// The channel of all replicas.
const ALL: &str = "all";

/// What takes part in the cluster.
pub trait Member: Send + Sync {
    /// Takes a message to all replicas. `own`: this one has sent it, and takes it in the order in which all others do.
    fn told(&self, message: Value, own: bool);
    /// Answers a message from another replica, which is charged to the client for whom it asks.
    fn asked(self: Arc<Self>, message: Charged<Value>) -> Pin<Box<dyn Future<Output = Answer> + Send>>;
    /// This replica gets messages from now on, and Redis answers. It may have missed messages, and Redis may have lost what was stored.
    fn connected(&self);
}

/// An answer to another replica.
pub enum Answer {
    Value(Value),
    Frames(Pin<Box<dyn Stream<Item = String> + Send>>),
    NoRoom(NoRoom),
}

#[derive(Serialize, Deserialize)]
struct Message<A> {
    at: u64,
    /// Another one for each message of a sender, in their order.
    number: u64,
    from: String,
    act: A,
}

/// `V`: what is sent. To the one who receives it, this is JSON that is not read before it is charged: see [`Waiting`].
#[derive(Serialize, Deserialize)]
enum Act<V> {
    Tell(V),
    /// `party`: the client for whom this is asked.
    Ask {
        number: u64,
        party: u64,
        question: V,
    },
    Answer(u64, V),
    /// A stream begins.
    Begin(u64),
    Frame(u64, V),
    End(u64),
    /// The question, its answer, or the next frame of the stream is not passed on.
    Cut(u64, NoRoom),
    /// Nobody reads the stream any more.
    Leave(u64),
}

fn to(address: &str) -> String {
    format!("to:{address}")
}

impl Cluster {
    /// Whether messages of other replicas come through.
    pub fn hears(&self) -> bool {
        *self.bus.connected.borrow()
    }

    /// Joins the other replicas, for as long as wharf runs. `member` gets their messages.
    pub fn start(self: &Arc<Self>, member: Arc<dyn Member>, tracker: &TaskTracker, stop: &CancellationToken) {
        let (cluster, receives, ends) = (Arc::clone(self), Arc::clone(&member), stop.clone());
        tracker.spawn(async move { cluster.receive(receives, &ends).await });
        let (cluster, ends) = (Arc::clone(self), stop.clone());
        tracker.spawn(async move { cluster.keep_alive(|| member.connected(), &ends).await });
    }

    /// Sends a message to all replicas, this one included. Not to any if Redis does not answer.
    pub async fn tell<T: Serialize + Sync>(&self, message: &T) -> Result<(), Silent> {
        self.send(ALL, Act::Tell(message)).await.map(drop).map_err(|_| Silent)
    }

    /// Asks another replica, and a few times again when Redis answers, but not after `end`. `party`: the client for whom.
    pub async fn ask_until<Q: Serialize + Sync, A: DeserializeOwned>(
        &self,
        end: Instant,
        address: &str,
        question: &Q,
        party: Party,
    ) -> Result<A, Unanswered> {
        for repeat in 1..=MAX_REPEATS {
            match self.ask(address, question, party).await {
                Err(Unanswered::Silent(_)) if Instant::now() < end => {}
                answered => return answered,
            }
            sleep(repeat * REPEAT_INTERVAL).await;
            let answers = async {
                self.answers().await;
                // The sender is not dropped while this is borrowed.
                self.bus.connected.subscribe().wait_for(|connected| *connected).await.ok();
            };
            timeout_at(end, answers).await.map_err(|_| Silent)?;
        }
        self.ask(address, question, party).await
    }

    /// Asks another replica. `party`: the client for whom, who has a share of the other replica's places for questions.
    pub async fn ask<Q: Serialize + Sync, A: DeserializeOwned>(
        &self,
        address: &str,
        question: &Q,
        party: Party,
    ) -> Result<A, Unanswered> {
        let (first, answer) = oneshot::channel();
        let waiting = Waiting { accounts: self.ledger.client(party), first: Some(first), frames: None };
        let waits = self.send_question(address, question, waiting).await?;
        let answer = timeout(ANSWER_TIMEOUT, answer).await.map_err(|_| Silent)?.map_err(|_| Silent)??;
        drop(waits);
        let (answer, _charge) = answer.ok_or(Silent)?.into_parts();
        Ok(serde_json::from_value(answer).map_err(|_| Silent)?)
    }

    /// Asks another replica for a stream. `Err` in the result: it answers with this instead. What waits to be read is charged to `party`.
    pub async fn follow<Q: Serialize + Sync>(
        self: &Arc<Self>,
        address: &str,
        question: &Q,
        party: Party,
    ) -> Result<Result<Frames, Value>, Unanswered> {
        let (first, begins) = oneshot::channel();
        let (sender, frames) = mpsc::unbounded_channel();
        let waiting = Waiting { accounts: self.ledger.client(party), first: Some(first), frames: Some(sender) };
        let waits = self.send_question(address, question, waiting).await?;
        // From now on, the other replica hears of it if nobody reads any more.
        let frames = Frames { cluster: Arc::clone(self), address: address.into(), number: waits.keep(), frames };
        match timeout(ANSWER_TIMEOUT, begins).await.map_err(|_| Silent)?.map_err(|_| Silent)?? {
            Some(answer) => Ok(Err(answer.into_parts().0)),
            None => Ok(Ok(frames)),
        }
    }

    async fn send_question<Q: Serialize + Sync>(
        &self,
        address: &str,
        question: &Q,
        waiting: Waiting,
    ) -> Result<Waits<'_>, Unanswered> {
        // Without messages, there is no answer.
        if !self.hears() {
            return Err(Silent.into());
        }
        let (number, party) = (random_id::number(), waiting.accounts.party().number());
        self.bus.waiting.lock().insert(number, waiting);
        let waits = Waits { bus: Some(&self.bus), number };
        match self.send(&to(address), Act::Ask { number, party, question }).await? {
            // It may not have come back to Redis yet.
            0 if self.link.is_just_back() => Err(Silent.into()),
            0 => Err(Unanswered::Gone),
            _ => Ok(waits),
        }
    }

    /// Returns how many have got the message.
    async fn send<V: Serialize>(&self, channel: &str, act: Act<V>) -> Result<usize, Unanswered> {
        let channel = self.key(channel);
        let number = self.bus.sent.fetch_add(1, Ordering::Relaxed) + 1;
        let message = Message { at: now(), number, from: self.address.to_string(), act };
        let text = serde_json::to_vec(&message).map_err(|_| Silent)?;
        if text.len() > MAX_MESSAGE_BYTES {
            return Err(NoRoom::too_long(text.len(), MAX_MESSAGE_BYTES).into());
        }
        let mut publish = cmd("PUBLISH");
        publish.arg(&channel).arg(self.seal(&text, &channel)?);
        drop((message, text));
        Ok(self.link.run(&publish).await?)
    }

    /// Receives messages, for as long as wharf runs.
    async fn receive(self: &Arc<Self>, member: Arc<dyn Member>, stop: &CancellationToken) {
        let mut asked = JoinSet::new();
        let (mut told, mut before) = (false, false);
        loop {
            let received = async {
                let mut messages = self.link.messages().await?;
                for channel in [ALL.to_owned(), to(&self.address)] {
                    messages.subscribe(self.key(&channel)).await?;
                }
                self.bus.connected.send_replace(true);
                if std::mem::replace(&mut before, true) {
                    self.link.came_back();
                }
                told = false;
                member.connected();
                self.receive_from(messages, &member, &mut asked).await
            };
            let ended = tokio::select! {
                ended = received => ended,
                () = stop.cancelled() => break,
            };
            self.bus.connected.send_replace(false);
            // Those who wait for answers do not get them.
            self.bus.waiting.lock().clear();
            if let Err(problem) = ended
                && !std::mem::replace(&mut told, true)
            {
                let problem = match problem.downcast_ref::<RedisError>() {
                    Some(error) => self.link.described(error),
                    None => escaped(&format!("{problem:#}")),
                };
                tracing::warn!("no messages from other replicas come through Redis: {problem}");
            }
            tokio::select! {
                () = sleep(RECONNECT_INTERVAL) => {}
                () = stop.cancelled() => break,
            }
        }
        asked.shutdown().await;
    }

    async fn receive_from(
        self: &Arc<Self>,
        messages: PubSub,
        member: &Arc<dyn Member>,
        asked: &mut JoinSet<()>,
    ) -> anyhow::Result<()> {
        let (mut sink, mut stream) = messages.split();
        let mut pings = interval(PING_INTERVAL);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                message = stream.next() => {
                    let Some(message) = message else { anyhow::bail!("the connection has ended") };
                    self.take(message.get_channel_name(), message.get_payload_bytes(), member, asked);
                }
                _ = pings.tick() => timeout(PING_TIMEOUT, sink.ping::<()>()).await??,
                Some(_) = asked.join_next() => {}
            }
        }
    }

    fn take(self: &Arc<Self>, channel: &str, sealed: &[u8], member: &Arc<dyn Member>, asked: &mut JoinSet<()>) {
        let Ok(text) = self.open(sealed, channel) else { return };
        let Ok(Message { at, number, from, act }) = serde_json::from_slice::<Message<Act<&RawValue>>>(&text) else {
            return;
        };
        let (now, own) = (now(), *from == *self.address);
        if at.abs_diff(now) > MAX_AGE_MS || !self.bus.taken.lock().take(&from, number, now) {
            return;
        }
        match act {
            Act::Tell(message) => {
                if let Ok(message) = serde_json::from_str(message.get()) {
                    member.told(message, own);
                }
            }
            _ if own => {}
            Act::Ask { number, party, question } => {
                let party = Party::of(party);
                // A client that has used up its share gets no answer.
                let Ok(place) = self.bus.asked.take(party) else { return };
                let accounts = self.ledger.client(party);
                let question = self.received(&accounts, question);
                let left = CancellationToken::new();
                self.bus.sending.lock().insert(number, left.clone());
                let (cluster, member) = (Arc::clone(self), Arc::clone(member));
                asked.spawn(async move {
                    let answered = async {
                        let answer = match question {
                            Ok(question) => member.asked(question).await,
                            Err(no_room) => Answer::NoRoom(no_room),
                        };
                        cluster.answer(&from, number, answer, &accounts).await
                    };
                    // If it cannot be sent, the one who asked does not wait forever, and reads the rest of a stream when its client comes back.
                    let _sent: Option<Result<(), Unanswered>> = left.run_until_cancelled(answered).await;
                    cluster.bus.sending.lock().remove(&number);
                    drop(place);
                });
            }
            Act::Leave(number) => {
                if let Some(sending) = self.bus.sending.lock().remove(&number) {
                    sending.cancel();
                }
            }
            Act::Answer(number, answer) => {
                let waiting = self.bus.waiting.lock().remove(&number);
                if let Some(Waiting { accounts, first: Some(first), .. }) = waiting {
                    first.send(self.received(&accounts, answer).map(Some)).ok();
                }
            }
            Act::Begin(number) => {
                if let Some(waiting) = self.bus.waiting.lock().get_mut(&number)
                    && let Some(first) = waiting.first.take()
                {
                    first.send(Ok(None)).ok();
                }
            }
            Act::Frame(number, frame) => {
                let followed = self.bus.waiting.lock().get(&number).and_then(Waiting::followed);
                if let Some((accounts, frames)) = followed {
                    let frame = self.received_frame(&accounts, frame);
                    let ends = frame.is_err();
                    // The reader may be gone. What follows has no place in the stream without this frame.
                    if (frames.send(frame).is_err() || ends)
                        && let Some(waiting) = self.bus.waiting.lock().get_mut(&number)
                    {
                        waiting.frames = None;
                    }
                }
            }
            Act::Cut(number, no_room) => match self.bus.waiting.lock().remove(&number) {
                Some(Waiting { first: Some(first), .. }) => drop(first.send(Err(no_room))),
                Some(Waiting { frames: Some(frames), .. }) => drop(frames.send(Err(no_room))),
                Some(_) | None => {}
            },
            Act::End(number) => drop(self.bus.waiting.lock().remove(&number)),
        }
    }

    /// Reads what another replica has sent, and charges for it before.
    fn received(&self, accounts: &Accounts, sent: &RawValue) -> Result<Charged<Value>, NoRoom> {
        let charge = self.ledger.message(accounts, message_bytes(sent.get().as_bytes()))?;
        Ok(Charged::new(serde_json::from_str(sent.get()).unwrap_or_default(), charge))
    }

    fn received_frame(&self, accounts: &Accounts, sent: &RawValue) -> Result<Charged<String>, NoRoom> {
        let charge = self.ledger.message(accounts, sent.get().len() + FRAME_BYTES)?;
        Ok(Charged::new(serde_json::from_str(sent.get()).unwrap_or_default(), charge))
    }

    /// Sends an answer. `accounts`: those of the client for whom it was asked.
    async fn answer(&self, from: &str, number: u64, answer: Answer, accounts: &Accounts) -> Result<(), Unanswered> {
        let channel = to(from);
        let sent = match answer {
            Answer::Value(value) => self.send(&channel, Act::Answer(number, value)).await.map(drop),
            Answer::Frames(frames) => self.send_frames(&channel, number, frames, accounts).await,
            Answer::NoRoom(no_room) => Err(no_room.into()),
        };
        match sent {
            Err(Unanswered::NoRoom(no_room)) => self.send(&channel, Act::<()>::Cut(number, no_room)).await.map(drop),
            sent => sent,
        }
    }

    async fn send_frames(
        &self,
        channel: &str,
        number: u64,
        mut frames: Pin<Box<dyn Stream<Item = String> + Send>>,
        accounts: &Accounts,
    ) -> Result<(), Unanswered> {
        self.send(channel, Act::<()>::Begin(number)).await?;
        while let Some(frame) = frames.next().await {
            let _charge = self.ledger.message(accounts, SENT_COPIES * frame.len()).map_err(NoRoom::from)?;
            if self.send(channel, Act::Frame(number, frame)).await? == 0 {
                return Ok(());
            }
        }
        self.send(channel, Act::<()>::End(number)).await.map(drop)
    }
}

/// RAII guard: an answer is waited for.
struct Waits<'a> {
    /// `None`: someone else waits from now on.
    bus: Option<&'a Bus>,
    number: u64,
}

impl Waits<'_> {
    fn keep(mut self) -> u64 {
        self.bus = None;
        self.number
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        if let Some(bus) = self.bus {
            bus.waiting.lock().remove(&self.number);
        }
    }
}

/// A stream that another replica sends.
pub struct Frames {
    cluster: Arc<Cluster>,
    address: String,
    number: u64,
    frames: mpsc::UnboundedReceiver<Result<Charged<String>, NoRoom>>,
}

impl Frames {
    /// Returns the next frame, or why it is not passed on. `None`: the stream has ended, or the replica is gone.
    pub async fn next(&mut self) -> Option<Result<Charged<String>, NoRoom>> {
        loop {
            match timeout(FRAME_TIMEOUT, self.frames.recv()).await {
                Ok(frame) => return frame,
                Err(_) if self.cluster.is_live(&self.address).await.unwrap_or(true) => {}
                Err(_) => return None,
            }
        }
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        let was_open = self.cluster.bus.waiting.lock().remove(&self.number).is_some();
        if was_open && let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (cluster, address, number) =
                (Arc::clone(&self.cluster), std::mem::take(&mut self.address), self.number);
            runtime.spawn(async move { cluster.send(&to(&address), Act::<()>::Leave(number)).await });
        }
    }
}

#[cfg(test)]
mod tests {
    use wharf_base::ledger::Ledger;

    use super::*;
    use crate::cluster::replica;

    struct Nobody;

    impl Member for Nobody {
        fn told(&self, _: Value, _: bool) {}

        fn asked(self: Arc<Self>, _: Charged<Value>) -> Pin<Box<dyn Future<Output = Answer> + Send>> {
            Box::pin(async { Answer::Value(Value::Null) })
        }

        fn connected(&self) {}
    }

    /// One replica that gets what another one sends.
    struct Two {
        one: Arc<Cluster>,
        other: Arc<Cluster>,
        asked: JoinSet<()>,
        sent: u64,
    }

    impl Two {
        fn take<V: Serialize>(&mut self, act: Act<V>) {
            self.sent += 1;
            let message = Message { at: now(), number: self.sent, from: self.other.address().to_owned(), act };
            let channel = self.one.key(&to(self.one.address()));
            let sealed = self.other.seal(&serde_json::to_vec(&message).unwrap(), &channel).unwrap();
            let member: Arc<dyn Member> = Arc::new(Nobody);
            self.one.take(&channel, &sealed, &member, &mut self.asked);
        }

        /// Makes a client follow a stream, and returns its reader.
        fn follows(&mut self, number: u64, party: Party) -> mpsc::UnboundedReceiver<Result<Charged<String>, NoRoom>> {
            let (sender, frames) = mpsc::unbounded_channel();
            let waiting = Waiting { accounts: self.one.ledger.client(party), first: None, frames: Some(sender) };
            self.one.bus.waiting.lock().insert(number, waiting);
            frames
        }
    }

    // The connections to Redis are made in a runtime.
    #[tokio::test]
    async fn what_waits_of_streams_is_charged_to_who_follows_them() {
        let ledger = Ledger::new(1 << 20);
        let (one, other) = (replica(7, 1, &ledger), replica(7, 2, &ledger));
        let mut two = Two { one, other, asked: JoinSet::new(), sent: 0 };
        let (greedy, modest) = (Party::of(1), Party::of(2));
        for frame in ["x".repeat(100_000), "y".repeat(1000), String::new()] {
            let (mut slow, mut quick) = (two.follows(1, greedy), two.follows(2, modest));
            let (mut sent, before) = (0, ledger.whole().used());
            let cut = loop {
                two.take(Act::Frame(1, &frame));
                two.take(Act::Frame(2, "small"));
                assert_eq!(quick.try_recv().unwrap().expect("there is room for it").len(), 5);
                if two.one.bus.waiting.lock()[&1].frames.is_none() {
                    break slow.len() - 1;
                }
                sent += 1;
                assert!(sent < 100_000, "it is charged");
            };
            assert_eq!(cut, sent);
            let held = ledger.whole().used() - before;
            assert!((sent * frame.len()..1 << 19).contains(&held), "{held} bytes for {sent} frames");
            two.take(Act::Frame(1, "there is no frame after one that is missing"));
            for _ in 0..sent {
                assert_eq!(slow.try_recv().unwrap().expect("a frame").as_ref(), frame.as_bytes());
            }
            let no_room = slow.try_recv().unwrap().expect_err("why it ends");
            assert!(no_room.text.contains("total_host_memory_mib") && !no_room.never, "{no_room}");
            assert!(slow.try_recv().is_err());
            assert_eq!(ledger.whole().used(), before, "what was read is not charged any more");
        }
        let mut frames = two.follows(1, greedy);
        two.take(Act::Frame(1, "z".repeat(1 << 20)));
        assert!(frames.try_recv().unwrap().expect_err("it never fits").never);
    }

    #[tokio::test]
    async fn an_answer_is_charged_to_who_asked() {
        let ledger = Ledger::new(1 << 20);
        let (one, other) = (replica(7, 1, &ledger), replica(7, 2, &ledger));
        let mut two = Two { one, other, asked: JoinSet::new(), sent: 0 };
        for (answer, fits) in [("x".repeat(1000), true), ("x".repeat(1 << 20), false)] {
            let (sender, mut first) = oneshot::channel();
            let accounts = ledger.client(Party::of(1));
            let waiting = Waiting { accounts, first: Some(sender), frames: None };
            two.one.bus.waiting.lock().insert(1, waiting);
            two.take(Act::Answer(1, &answer));
            let answered = first.try_recv().unwrap();
            assert_eq!(answered.is_ok(), fits);
            assert_eq!(ledger.whole().used() > answer.len(), fits);
        }
        assert_eq!(ledger.whole().used(), 0);
    }
}
