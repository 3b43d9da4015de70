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
use serde_json::Value;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval, sleep, timeout, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use wharf_base::{party::Party, random_id, session_id::now, text::escaped};

use crate::{
    cluster::Cluster,
    silent::{Silent, Unanswered},
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
/// How many frames of a stream may wait to be read. A reader that is slower comes back for the rest.
const MAX_FRAMES: usize = 4096;
const PING_INTERVAL: Duration = Duration::from_secs(2);
const PING_TIMEOUT: Duration = Duration::from_secs(2);
const RECONNECT_INTERVAL: Duration = Duration::from_millis(500);
/// The channel of all replicas.
const ALL: &str = "all";

/// What takes part in the cluster.
pub trait Member: Send + Sync {
    /// Takes a message to all replicas. `own`: this one has sent it, and takes it in the order in which all others do.
    fn told(&self, message: Value, own: bool);
    /// Answers a message from another replica.
    fn asked(self: Arc<Self>, message: Value) -> Pin<Box<dyn Future<Output = Answer> + Send>>;
    /// This replica gets messages from now on, and Redis answers. It may have missed messages, and Redis may have lost what was stored.
    fn connected(&self);
}

/// An answer to another replica.
pub enum Answer {
    Value(Value),
    Frames(Pin<Box<dyn Stream<Item = String> + Send>>),
}

#[derive(Serialize, Deserialize)]
struct Message {
    at: u64,
    /// Another one for each message of a sender, in their order.
    number: u64,
    from: String,
    act: Act,
}

#[derive(Serialize, Deserialize)]
enum Act {
    Tell(Value),
    /// `party`: the client for whom this is asked.
    Ask {
        number: u64,
        party: u64,
        question: Value,
    },
    Answer(u64, Value),
    /// A stream begins.
    Begin(u64),
    Frame(u64, String),
    End(u64),
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
    pub async fn tell<T: Serialize>(&self, message: &T) -> Result<(), Silent> {
        let message = serde_json::to_value(message).map_err(|_| Silent)?;
        self.send(ALL, Act::Tell(message)).await.map(drop)
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
    pub async fn ask<Q: Serialize, A: DeserializeOwned>(
        &self,
        address: &str,
        question: &Q,
        party: Party,
    ) -> Result<A, Unanswered> {
        let (sender, receiver) = oneshot::channel();
        let waits = self.send_question(address, question, party, Waiting::Value(sender)).await?;
        let answer = timeout(ANSWER_TIMEOUT, receiver).await.map_err(|_| Silent)?.map_err(|_| Silent)?;
        drop(waits);
        Ok(serde_json::from_value(answer).map_err(|_| Silent)?)
    }

    /// Asks another replica for a stream. `Err` in the result: it answers with this instead.
    pub async fn follow<Q: Serialize>(
        self: &Arc<Self>,
        address: &str,
        question: &Q,
        party: Party,
    ) -> Result<Result<Frames, Value>, Unanswered> {
        let (first, begins) = oneshot::channel();
        let (sender, frames) = mpsc::channel(MAX_FRAMES);
        let waits = self.send_question(address, question, party, Waiting::Frames(Some(first), sender)).await?;
        // From now on, the other replica hears of it if nobody reads any more.
        let frames = Frames { cluster: Arc::clone(self), address: address.into(), number: waits.keep(), frames };
        match timeout(ANSWER_TIMEOUT, begins).await.map_err(|_| Silent)?.map_err(|_| Silent)? {
            Some(answer) => Ok(Err(answer)),
            None => Ok(Ok(frames)),
        }
    }

    async fn send_question<Q: Serialize>(
        &self,
        address: &str,
        question: &Q,
        party: Party,
        waiting: Waiting,
    ) -> Result<Waits<'_>, Unanswered> {
        // Without messages, there is no answer.
        if !self.hears() {
            return Err(Silent.into());
        }
        let question = serde_json::to_value(question).map_err(|_| Silent)?;
        let number = random_id::number();
        self.bus.waiting.lock().insert(number, waiting);
        let waits = Waits { bus: Some(&self.bus), number };
        match self.send(&to(address), Act::Ask { number, party: party.number(), question }).await? {
            // It may not have come back to Redis yet.
            0 if self.link.is_just_back() => Err(Silent.into()),
            0 => Err(Unanswered::Gone),
            _ => Ok(waits),
        }
    }

    /// Returns how many have got the message.
    async fn send(&self, channel: &str, act: Act) -> Result<usize, Silent> {
        let channel = self.key(channel);
        let number = self.bus.sent.fetch_add(1, Ordering::Relaxed) + 1;
        let message = Message { at: now(), number, from: self.address.to_string(), act };
        let text = serde_json::to_vec(&message).map_err(|_| Silent)?;
        self.link.run(cmd("PUBLISH").arg(&channel).arg(self.seal(&text, &channel)?)).await
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
        let Ok(Message { at, number, from, act }) = serde_json::from_slice(&text) else { return };
        let (now, own) = (now(), *from == *self.address);
        if at.abs_diff(now) > MAX_AGE_MS || !self.bus.taken.lock().take(&from, number, now) {
            return;
        }
        match act {
            Act::Tell(message) => member.told(message, own),
            _ if own => {}
            Act::Ask { number, party, question } => {
                // A client that has used up its share gets no answer.
                let Ok(place) = self.bus.asked.take(Party::of(party)) else { return };
                let left = CancellationToken::new();
                self.bus.sending.lock().insert(number, left.clone());
                let (cluster, member) = (Arc::clone(self), Arc::clone(member));
                asked.spawn(async move {
                    let answered = async { cluster.answer(&from, number, member.asked(question).await).await };
                    // If it cannot be sent, the one who asked does not wait forever, and reads the rest of a stream when its client comes back.
                    let _sent: Option<Result<(), Silent>> = left.run_until_cancelled(answered).await;
                    cluster.bus.sending.lock().remove(&number);
                    drop(place);
                });
            }
            Act::Leave(number) => {
                if let Some(sending) = self.bus.sending.lock().remove(&number) {
                    sending.cancel();
                }
            }
            Act::Answer(number, answer) => match self.bus.waiting.lock().remove(&number) {
                Some(Waiting::Value(waiting)) => drop(waiting.send(answer)),
                Some(Waiting::Frames(Some(first), _)) => drop(first.send(Some(answer))),
                Some(Waiting::Frames(None, _)) | None => {}
            },
            Act::Begin(number) => {
                if let Some(Waiting::Frames(first, _)) = self.bus.waiting.lock().get_mut(&number)
                    && let Some(first) = first.take()
                {
                    first.send(None).ok();
                }
            }
            Act::Frame(number, frame) => {
                let mut waiting = self.bus.waiting.lock();
                if let Some(Waiting::Frames(_, frames)) = waiting.get(&number)
                    && frames.try_send(frame).is_err()
                {
                    // The reader is gone or too slow.
                    waiting.remove(&number);
                }
            }
            Act::End(number) => drop(self.bus.waiting.lock().remove(&number)),
        }
    }

    /// Sends an answer.
    async fn answer(&self, from: &str, number: u64, answer: Answer) -> Result<(), Silent> {
        let channel = to(from);
        let mut frames = match answer {
            Answer::Value(value) => return self.send(&channel, Act::Answer(number, value)).await.map(drop),
            Answer::Frames(frames) => frames,
        };
        self.send(&channel, Act::Begin(number)).await?;
        while let Some(frame) = frames.next().await {
            if self.send(&channel, Act::Frame(number, frame)).await? == 0 {
                return Ok(());
            }
        }
        self.send(&channel, Act::End(number)).await.map(drop)
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
    frames: mpsc::Receiver<String>,
}

impl Frames {
    /// Returns the next frame. `None`: the stream has ended, or the replica is gone.
    pub async fn next(&mut self) -> Option<String> {
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
            runtime.spawn(async move { cluster.send(&to(&address), Act::Leave(number)).await });
        }
    }
}
