//! Decides which thread a guest runs on: first the I/O worker that accepted the call, and after its first tick a pool of threads that is
//! only for guests. A tick is the interval of epoch interruption.
//!
//! A guest that computes returns from `poll` only at a tick. On I/O workers, two such guests would delay every timer and socket of a
//! machine with two cores. If all guests ran on the guest threads, every short call would pay for two thread switches. So a call moves once
//! it has computed through a tick, and while a plugin has such long calls running, its new calls start on the guest threads.
//!
//! Scheduling on the guest threads is fair between plugins: each plugin has a semaphore with as many permits, called turns, as there are
//! threads. A call needs a turn to run and returns it at every tick, so that a plugin with many running calls does not crowd out one with
//! few.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use parking_lot::{Condvar, Mutex};
use tokio::{runtime::Handle, sync::Semaphore, task::JoinError};
use tokio_util::{sync::PollSemaphore, task::AbortOnDropHandle};
use tracing::Instrument as _;
use wasmtime::Store;

/// The thread pool for guests that have computed through a tick.
pub(crate) struct GuestRuntime {
    /// Shut down without waiting when the sandbox is dropped, so that a guest in the middle of a tick does not delay the exit of the
    /// process.
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

    /// Calls `work` on `kept` once per period until all other references to `kept` are gone.
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

    /// Creates the turns of a new plugin.
    pub(crate) fn turns(&self) -> Turns {
        Turns { gate: Arc::new(Semaphore::new(self.threads)), long_calls: Arc::default() }
    }

    /// Runs a call. The call's store reports each tick to `pace`; once the call has computed through one, it moves to the guest threads.
    pub(crate) fn run<T: Send + 'static>(&self, call: Boxed<T>, turns: &Turns, pace: Arc<Pace>) -> Run<T> {
        let handle = self.runtime.as_ref().map(|runtime| runtime.handle().clone());
        let mut run = Run { stage: Stage::Here(call), handle, turns: turns.clone(), pace };
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

/// Counts ticks. They stop while no guest runs, so that the process does not wake up 200 times a second for nothing.
#[derive(Default)]
pub(crate) struct Ticks {
    count: AtomicU64,
    /// The number of calls that run guests.
    running: AtomicUsize,
    idle: Mutex<()>,
    begun: Condvar,
}

/// Keeps the ticks coming until dropped.
#[must_use = "ticks may stop when this is dropped"]
pub(crate) struct Ticking<'a>(&'a Ticks);

impl Ticking<'_> {
    /// Makes the next tick interrupt the guest in this store. Only this value can do that, because no deadline is reached while the ticks
    /// have stopped.
    pub(crate) fn interrupt<T>(&self, store: &mut Store<T>) {
        store.set_epoch_deadline(1);
    }
}

impl Ticks {
    /// Begins to run a guest.
    pub(crate) fn begin(&self) -> Ticking<'_> {
        if self.running.fetch_add(1, Ordering::Relaxed) == 0 {
            // Under the lock, so that the thread that waits has either seen the number or waits already.
            let _idle = self.idle.lock();
            self.begun.notify_one();
        }
        Ticking(self)
    }

    /// Counts a tick. Called before the engines' epoch is advanced, so that no guest sees a tick that is not counted yet. Returns whether a
    /// guest runs.
    pub(crate) fn advance(&self) -> bool {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.running.load(Ordering::Relaxed) > 0
    }

    /// Waits until a guest runs, or for at most `longest`. Returns whether one has begun.
    pub(crate) fn wait(&self, longest: Duration) -> bool {
        let mut idle = self.idle.lock();
        self.running.load(Ordering::Relaxed) > 0 || !self.begun.wait_for(&mut idle, longest).timed_out()
    }
}

impl Drop for Ticking<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Records whether a call has computed through a tick. Ticks that pass while the call waits, for example for a server, do not count,
/// although the engine reports them when the guest resumes.
#[derive(Default)]
pub(crate) struct Pace {
    ticks: Arc<Ticks>,
    /// The number of ticks when the call was last resumed.
    resumed: AtomicU64,
    overran: AtomicBool,
}

impl Pace {
    pub(crate) fn new(ticks: &Arc<Ticks>) -> Self {
        Self { ticks: Arc::clone(ticks), ..Self::default() }
    }

    /// Notes that the call is resumed.
    fn resume(&self) {
        self.resumed.store(self.ticks.count.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Notes that the engine has reported a tick.
    pub(crate) fn tick(&self) {
        if self.ticks.count.load(Ordering::Relaxed) > self.resumed.load(Ordering::Relaxed) {
            self.overran.store(true, Ordering::Relaxed);
        }
    }

    /// Marks the call as one that computes for longer than a tick.
    pub(crate) fn overrun(&self) {
        self.overran.store(true, Ordering::Relaxed);
    }

    fn overran(&self) -> bool {
        self.overran.load(Ordering::Relaxed)
    }
}

/// The turns that the calls of one plugin take on the guest threads.
#[derive(Clone)]
pub(crate) struct Turns {
    gate: Arc<Semaphore>,
    long_calls: Arc<AtomicUsize>,
}

/// A call that has not begun, or waits.
type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A running call. Dropping it stops the call, at the latest at its next tick.
pub(crate) struct Run<T> {
    stage: Stage<T>,
    handle: Option<Handle>,
    turns: Turns,
    pace: Arc<Pace>,
}

enum Stage<T> {
    /// The call runs on the worker that took it.
    Here(Boxed<T>),
    /// The call runs on the guest threads.
    Elsewhere(AbortOnDropHandle<T>),
    Done,
}

/// The call was stopped from outside, or panicked.
#[derive(Debug)]
pub(crate) struct Stopped(pub(crate) JoinError);

impl<T: Send + 'static> Run<T> {
    /// Moves the call to the guest threads.
    fn leave(&mut self) {
        let Some(handle) = &self.handle else { return };
        let stage = std::mem::replace(&mut self.stage, Stage::Done);
        self.stage = match stage {
            Stage::Here(call) => {
                let mut call = InTurns::new(call, &self.turns, &self.pace);
                call.count_if_long();
                // Log records of the call stay in the caller's span.
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
            // Not reached: a completed future is not polled again.
            Stage::Here(_) | Stage::Done => Poll::Pending,
        }
    }
}

/// Counts a call as one of its plugin's long calls until dropped. Only calls that computed through a tick themselves count. If calls
/// counted that were only started on the guest threads because of a long call, overlapping short calls would keep each other there.
struct LongCall(Arc<AtomicUsize>);

impl LongCall {
    fn new(turns: &Turns) -> Self {
        tracing::debug!("a call has computed through a tick and moves to the guest threads");
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
    call: Boxed<T>,
    turns: Turns,
    turn: PollSemaphore,
    pace: Arc<Pace>,
    long: Option<LongCall>,
}

impl<T> InTurns<T> {
    fn new(call: Boxed<T>, turns: &Turns, pace: &Arc<Pace>) -> Self {
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
        // The call waits, and the engine reports the ticks when it resumes.
        for _ in 0..10 {
            ticks.advance();
        }
        pace.resume();
        pace.tick();
        assert!(!pace.overran());
        // The call computes through a tick.
        ticks.advance();
        pace.tick();
        assert!(pace.overran());
    }

    #[test]
    fn ticks_wait_for_a_guest() {
        let ticks = Ticks::default();
        assert!(!ticks.advance() && !ticks.wait(Duration::from_millis(1)));
        // Whichever comes first, the wait or the guest.
        for _ in 0..100 {
            std::thread::scope(|scope| {
                let waits = scope.spawn(|| ticks.wait(Duration::from_secs(60)));
                let guest = ticks.begin();
                assert!(waits.join().unwrap() && ticks.advance());
                drop(guest);
            });
        }
        assert!(!ticks.advance() && !ticks.wait(Duration::from_millis(1)));
    }

    /// A call that yields once. If `computes`, it computes through a tick before that.
    async fn call(ticks: Arc<Ticks>, pace: Arc<Pace>, computes: bool, end: Arc<tokio::sync::Notify>) {
        if computes {
            ticks.advance();
            pace.tick();
        }
        tokio::task::yield_now().await;
        end.notified().await;
    }

    #[tokio::test]
    async fn a_call_that_waits_for_long_stays_where_it_is() {
        let runtime = GuestRuntime::new().unwrap();
        let (turns, ticks) = (runtime.turns(), Arc::<Ticks>::default());
        let (pace, answer) = (Arc::new(Pace::new(&ticks)), Arc::<tokio::sync::Notify>::default());
        let (guest, waits) = (pace.clone(), answer.clone());
        let call = async move {
            for _ in 0..10 {
                waits.notified().await;
                // The engine reports the ticks of the wait when the guest resumes.
                guest.tick();
            }
        };
        let mut run = runtime.run(Box::pin(call), &turns, pace);
        for _ in 0..10 {
            let polled = std::future::poll_fn(|cx| Poll::Ready(Pin::new(&mut run).poll(cx))).await;
            assert!(polled.is_pending() && matches!(run.stage, Stage::Here(_)));
            ticks.advance();
            answer.notify_one();
        }
        run.await.unwrap();
        assert_eq!(turns.long_calls.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn a_call_that_follows_a_long_one_is_not_long_itself() {
        let runtime = GuestRuntime::new().unwrap();
        let (turns, ticks) = (runtime.turns(), Arc::<Ticks>::default());
        let long = || turns.long_calls.load(Ordering::Relaxed);
        let begin = |computes| {
            let (pace, end) = (Arc::new(Pace::new(&ticks)), Arc::<tokio::sync::Notify>::default());
            let run = runtime.run(Box::pin(call(ticks.clone(), pace.clone(), computes, end.clone())), &turns, pace);
            (run, end)
        };
        let (mut first, end_first) = begin(true);
        // The first poll runs the call on this thread; then the call moves.
        let polled = std::future::poll_fn(|cx| Poll::Ready(Pin::new(&mut first).poll(cx))).await;
        assert!(polled.is_pending() && long() == 1);
        // These two start on the guest threads. The one that computes there counts as a long call too.
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
        // So the next call stays on this thread.
        let pace = Arc::new(Pace::new(&ticks));
        let next = runtime.run(Box::pin(std::future::ready(())), &turns, pace);
        assert!(matches!(next.stage, Stage::Here(_)));
        end_follower.notify_one();
        follower.await.unwrap();
    }
}
