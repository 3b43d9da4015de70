//! Decides on which thread a guest runs: at first on the worker that took the call, and after its first tick on threads that are
//! only for guests.
//!
//! A guest that computes returns from `poll` only at a tick. If it stayed on a worker that does I/O, two such guests would delay
//! every timer and socket of a machine with two cores. If all guests ran elsewhere, every short call would pay for two changes of
//! threads. So a call moves once it has outlived a tick, and new calls of a plugin that has such calls running begin there.
//!
//! On those threads all plugins are treated alike: each plugin has as many turns as there are threads, a call needs one of them
//! to run, and gives it back at every tick. So a plugin with many running calls does not crowd out one with few.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{runtime::Handle, sync::Semaphore, task::JoinError};
use tokio_util::{sync::PollSemaphore, task::AbortOnDropHandle};
use tracing::Instrument as _;

/// The threads for guests that have outlived a tick.
pub(crate) struct GuestRuntime {
    /// It is shut down without waiting when the sandbox is dropped, since a guest in the middle of a tick must not hold up the end
    /// of the process.
    runtime: Option<tokio::runtime::Runtime>,
    threads: usize,
}

impl GuestRuntime {
    pub(crate) fn new() -> std::io::Result<Self> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("wharf-guest")
            .enable_all()
            .build()?;
        Ok(Self { runtime: Some(runtime), threads })
    }

    /// Does `work` on `kept` once in each period, until everybody else has dropped `kept`.
    pub(crate) fn every<T: Send + Sync + 'static>(&self, period: Duration, kept: &Arc<T>, work: fn(&T)) {
        let kept = Arc::downgrade(kept);
        let Some(runtime) = &self.runtime else { return };
        runtime.spawn(async move {
            let mut interval = tokio::time::interval(period);
            loop {
                interval.tick().await;
                match kept.upgrade() {
                    Some(kept) => work(&kept),
                    None => return,
                }
            }
        });
    }

    /// Makes the turns for a new plugin.
    pub(crate) fn turns(&self) -> Turns {
        Turns { gate: Arc::new(Semaphore::new(self.threads)), long_calls: Arc::default() }
    }

    /// Runs a call. Its store tells `pace` of each tick; once the call has computed through one, it moves to the threads for
    /// guests.
    pub(crate) fn run<T, F>(&self, call: F, turns: &Turns, pace: Arc<Pace>) -> Run<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let handle = self.runtime.as_ref().map(|runtime| runtime.handle().clone());
        let mut run = Run { stage: Stage::Done, handle, turns: turns.clone(), pace };
        run.stage = Stage::Here(Box::pin(call));
        if turns.long_calls.load(Ordering::Relaxed) > 0 {
            run.leave();
        }
        run
    }
}

impl Drop for GuestRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// How many ticks there have been.
#[derive(Default)]
pub(crate) struct Ticks(AtomicU64);

impl Ticks {
    /// Called before the engines are told of a tick, so that no guest learns of it earlier.
    pub(crate) fn advance(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Whether a call has computed through a tick. A tick that passed while the call waited, such as for a server, does not count: the
/// engine reports it all the same, when the guest goes on.
#[derive(Default)]
pub(crate) struct Pace {
    ticks: Arc<Ticks>,
    /// The number of ticks when the call last went on.
    resumed: AtomicU64,
    overran: AtomicBool,
}

impl Pace {
    pub(crate) fn new(ticks: &Arc<Ticks>) -> Self {
        Self { ticks: Arc::clone(ticks), ..Self::default() }
    }

    /// The call goes on.
    fn resume(&self) {
        self.resumed.store(self.ticks.0.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// The engine reports a tick.
    pub(crate) fn tick(&self) {
        if self.ticks.0.load(Ordering::Relaxed) > self.resumed.load(Ordering::Relaxed) {
            self.overran.store(true, Ordering::Relaxed);
        }
    }

    /// What follows takes longer than a tick.
    pub(crate) fn overrun(&self) {
        self.overran.store(true, Ordering::Relaxed);
    }

    fn overran(&self) -> bool {
        self.overran.load(Ordering::Relaxed)
    }
}

/// The turns that the calls of one plugin take on the threads for guests.
#[derive(Clone)]
pub(crate) struct Turns {
    gate: Arc<Semaphore>,
    long_calls: Arc<AtomicUsize>,
}

/// A call under way. Dropping it stops the call, at the latest at its next tick.
pub(crate) struct Run<T> {
    stage: Stage<T>,
    handle: Option<Handle>,
    turns: Turns,
    pace: Arc<Pace>,
}

enum Stage<T> {
    /// The call runs on the worker that took it.
    Here(Pin<Box<dyn Future<Output = T> + Send>>),
    /// The call runs on the threads for guests.
    Elsewhere(AbortOnDropHandle<T>),
    Done,
}

/// The call was stopped from outside, or panicked.
#[derive(Debug)]
pub(crate) struct Stopped(pub(crate) JoinError);

impl<T: Send + 'static> Run<T> {
    /// Moves the call to the threads for guests.
    fn leave(&mut self) {
        let Some(handle) = &self.handle else { return };
        let stage = std::mem::replace(&mut self.stage, Stage::Done);
        self.stage = match stage {
            Stage::Here(call) => {
                let mut call = InTurns::new(call, &self.turns, &self.pace);
                call.count_if_long();
                // What is logged of it there belongs to the caller's span as well.
                Stage::Elsewhere(AbortOnDropHandle::new(handle.spawn(call.in_current_span())))
            }
            other => other,
        };
    }
}

impl<T: Send + 'static> Future for Run<T> {
    type Output = Result<T, Stopped>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if matches!(self.stage, Stage::Here(_)) {
            self.pace.resume();
        }
        if let Stage::Here(call) = &mut self.stage {
            match call.as_mut().poll(cx) {
                Poll::Ready(output) => {
                    self.stage = Stage::Done;
                    return Poll::Ready(Ok(output));
                }
                Poll::Pending if !self.pace.overran() => return Poll::Pending,
                Poll::Pending => self.leave(),
            }
        }
        match &mut self.stage {
            Stage::Elsewhere(task) => Pin::new(task).poll(cx).map_err(Stopped),
            // This is not reached, since a future that is done is not polled again.
            Stage::Here(_) | Stage::Done => Poll::Pending,
        }
    }
}

/// Counts a call among its plugin's long ones until it is dropped. Only a call that computed through a tick itself is one: if those
/// counted too that merely followed a long call to the threads for guests, calls that overlap would keep each other there.
struct LongCall(Arc<AtomicUsize>);

impl LongCall {
    fn new(turns: &Turns) -> Self {
        tracing::debug!("a call computes through a tick, so it goes on with the threads for guests");
        turns.long_calls.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(&turns.long_calls))
    }
}

impl Drop for LongCall {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A call that takes a turn for each poll and gives it back afterwards.
struct InTurns<T> {
    call: Pin<Box<dyn Future<Output = T> + Send>>,
    turns: Turns,
    turn: PollSemaphore,
    pace: Arc<Pace>,
    long: Option<LongCall>,
}

impl<T> InTurns<T> {
    fn new(call: Pin<Box<dyn Future<Output = T> + Send>>, turns: &Turns, pace: &Arc<Pace>) -> Self {
        let turn = PollSemaphore::new(Arc::clone(&turns.gate));
        Self { call, turns: turns.clone(), turn, pace: Arc::clone(pace), long: None }
    }

    fn count_if_long(&mut self) {
        if self.long.is_none() && self.pace.overran() {
            self.long = Some(LongCall::new(&self.turns));
        }
    }
}

impl<T> Future for InTurns<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let turn = ready!(self.turn.poll_acquire(cx));
        self.pace.resume();
        let polled = self.call.as_mut().poll(cx);
        self.count_if_long();
        drop(turn);
        polled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_tick_that_passes_while_a_call_computes_counts() {
        let ticks: Arc<Ticks> = Arc::default();
        let pace = Pace::new(&ticks);
        pace.resume();
        // It waits, and is told of the ticks meanwhile when it goes on.
        for _ in 0..10 {
            ticks.advance();
        }
        pace.resume();
        pace.tick();
        assert!(!pace.overran());
        // It computes through one.
        ticks.advance();
        pace.tick();
        assert!(pace.overran());
    }

    /// A call that gives way once, and before it computes through a tick if it is to.
    async fn call(ticks: Arc<Ticks>, pace: Arc<Pace>, computes: bool, end: Arc<tokio::sync::Notify>) {
        if computes {
            ticks.advance();
            pace.tick();
        }
        tokio::task::yield_now().await;
        end.notified().await;
    }

    #[tokio::test]
    async fn a_call_that_follows_a_long_one_is_not_long_itself() {
        let runtime = GuestRuntime::new().unwrap();
        let (turns, ticks) = (runtime.turns(), Arc::<Ticks>::default());
        let long = || turns.long_calls.load(Ordering::Relaxed);
        let begin = |computes| {
            let (pace, end) = (Arc::new(Pace::new(&ticks)), Arc::<tokio::sync::Notify>::default());
            let run = runtime.run(call(ticks.clone(), pace.clone(), computes, end.clone()), &turns, pace);
            (run, end)
        };
        let (mut first, end_first) = begin(true);
        // It is polled where it begins, and leaves.
        let polled = std::future::poll_fn(|cx| Poll::Ready(Pin::new(&mut first).poll(cx))).await;
        assert!(polled.is_pending() && long() == 1);
        // These two begin on the threads for guests. The one that computes there counts too.
        let (follower, end_follower) = begin(false);
        let (second, end_second) = begin(true);
        while long() < 2 {
            tokio::task::yield_now().await;
        }
        end_first.notify_one();
        end_second.notify_one();
        first.await.unwrap();
        second.await.unwrap();
        assert_eq!(long(), 0, "the follower is still under way");
        // So the next call stays where it begins.
        let pace = Arc::new(Pace::new(&ticks));
        let next = runtime.run(std::future::ready(()), &turns, pace);
        assert!(matches!(next.stage, Stage::Here(_)));
        end_follower.notify_one();
        follower.await.unwrap();
    }
}
