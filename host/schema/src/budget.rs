//! Runs checks of data from guests within a budget of steps, time and stack, so that hostile data can neither crash the process nor occupy
//! a thread forever.
//!
//! Code that processes such data calls [`pay`] for each step. When the budget is exhausted, `pay` unwinds to the function that set the
//! budget. Without a budget, `pay` does nothing.

use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::LazyLock,
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::Runtime;

/// The limit for checking a plugin's lists and compiling their schemas, in time on a core, so that the load of the machine decides nothing.
pub const LIST_CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// The stack size of a checking thread, most of which is never touched, and how much of the stack is reserved for code that does not call
/// [`pay`].
const STACK_BYTES: usize = 32 << 20;
const RESERVED_STACK_BYTES: usize = 8 << 20;
/// The maximum number of checking threads. It does not depend on the number of cores, so that long checks for one plugin do not delay those
/// for another.
const MAX_THREADS: usize = 8;
/// The budget of [`here`]: a fraction of a millisecond, and a fraction of the stack of any thread.
const MAX_STEPS_HERE: u64 = 20_000;
const MAX_STACK_BYTES_HERE: usize = 256 << 10;
/// The budget of [`run`]: a few seconds at most. It also bounds the sets in which the validator remembers what it has seen.
const MAX_STEPS: u64 = 5_000_000;

static THREAD_POOL: LazyLock<Option<Runtime>> = LazyLock::new(|| {
    let mut pool = tokio::runtime::Builder::new_current_thread();
    pool.max_blocking_threads(MAX_THREADS).thread_stack_size(STACK_BYTES).thread_name("wharf-judge");
    pool.build().ok()
});

/// The remaining budget of a thread.
struct Left {
    steps: Cell<u64>,
    errors: Cell<u32>,
    /// The lowest address to which the stack may grow.
    floor: Cell<usize>,
    /// The time on a core at which the work of the thread ends, and the moment at which nobody waits for it any more.
    until: Cell<Option<Duration>>,
    waited: Cell<Option<Instant>>,
    /// The maximum length of a text and of a name that may be matched against patterns. They are bounded because a match cannot be
    /// interrupted.
    text: Cell<usize>,
    name: Cell<usize>,
}

thread_local! {
    static LEFT: Left = const {
        Left {
            steps: Cell::new(u64::MAX),
            errors: Cell::new(u32::MAX),
            floor: Cell::new(0),
            until: Cell::new(None),
            waited: Cell::new(None),
            text: Cell::new(usize::MAX),
            name: Cell::new(usize::MAX),
        }
    };
}

#[derive(Clone, Copy)]
struct Budget {
    steps: u64,
    errors: u32,
    floor: usize,
    until: Option<Duration>,
    waited: Option<Instant>,
    text: usize,
    name: usize,
}

/// The limit of the budget that was exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Exhausted {
    #[error("it is nested too deeply to be checked")]
    Stack,
    #[error("checking it takes too many steps")]
    Steps,
    #[error("checking it takes too long")]
    Time,
    #[error("a text in it is too long to be matched against the patterns of its schema")]
    Text,
    #[error("it has too many problems to describe them")]
    Errors,
    #[error("it cannot be checked, because no thread could be started")]
    Thread,
}

#[cold]
#[inline(never)]
fn stop(why: Exhausted) -> ! {
    resume_unwind(Box::new(why))
}

/// Subtracts `cost` steps from the budget of this thread. Unwinds if the steps, the stack or the time are exhausted.
#[inline]
pub fn pay(cost: u64) {
    LEFT.with(|left| {
        let before = left.steps.get();
        if address() < left.floor.get() {
            stop(Exhausted::Stack);
        }
        let Some(now) = before.checked_sub(cost) else { stop(Exhausted::Steps) };
        left.steps.set(now);
        // A step may take some microseconds, so reading the clock every 1024 steps is often enough.
        if (before ^ now) >> 10 != 0 {
            look_at_clock();
        }
    });
}

/// Unwinds if the time on a core is used up. To be called before a single step that takes long.
#[cold]
#[inline(never)]
pub fn look_at_clock() {
    let (until, waited) = LEFT.with(|left| (left.until.get(), left.waited.get()));
    if until.is_some_and(|until| on_core() >= until) || waited.is_some_and(|waited| Instant::now() >= waited) {
        stop(Exhausted::Time);
    }
}

/// Returns how long this thread has been on a core.
fn on_core() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or(Duration::MAX)
}

/// Pays for a text that may be matched against patterns. Unwinds if the text is too long for that.
pub fn pay_text(bytes: usize) {
    if bytes > LEFT.with(|left| left.text.get()) {
        stop(Exhausted::Text);
    }
    pay(1 + bytes as u64 / 16);
}

/// Pays for the name of a member, as [`pay_text`] does for a text.
pub fn pay_name(bytes: usize) {
    if bytes > LEFT.with(|left| left.name.get()) {
        stop(Exhausted::Text);
    }
    pay(1 + bytes as u64 / 16);
}

/// Pays for describing one problem.
pub fn pay_error() {
    pay(1);
    LEFT.with(|left| match left.errors.get().checked_sub(1) {
        Some(now) => left.errors.set(now),
        None => stop(Exhausted::Errors),
    });
}

/// Returns roughly the current end of the stack, which grows downwards on all systems on which wharf runs.
#[inline(always)]
fn address() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&here)).addr()
}

fn replace(budget: Budget) -> Budget {
    let Budget { steps, errors, floor, until, waited, text, name } = budget;
    LEFT.with(|left| Budget {
        steps: left.steps.replace(steps),
        errors: left.errors.replace(errors),
        floor: left.floor.replace(floor),
        until: left.until.replace(until),
        waited: left.waited.replace(waited),
        text: left.text.replace(text),
        name: left.name.replace(name),
    })
}

fn within<T>(budget: Budget, work: impl FnOnce() -> T) -> Result<T, Exhausted> {
    let before = replace(budget);
    // `AssertUnwindSafe` is sound here, because everything that the work used is dropped if it unwinds.
    let done = catch_unwind(AssertUnwindSafe(work));
    replace(before);
    done.map_err(|why| match why.downcast::<Exhausted>() {
        Ok(exhausted) => *exhausted,
        Err(panic) => resume_unwind(panic),
    })
}

/// The maximum lengths of texts and names that are matched against patterns.
#[derive(Debug, Clone, Copy)]
pub struct Lengths {
    pub text: usize,
    pub name: usize,
}

impl Lengths {
    pub const ANY: Self = Self { text: usize::MAX, name: usize::MAX };
}

/// The divisor of the maximum lengths for [`here`] compared with [`run`], because other tasks wait for the current thread.
const LENGTH_DIVISOR_HERE: usize = 250;

/// Runs small work on the current thread, within a small budget. Work that exceeds it must use [`run`].
pub fn here<T>(lengths: Lengths, work: impl FnOnce() -> T) -> Result<T, Exhausted> {
    let floor = address().saturating_sub(MAX_STACK_BYTES_HERE);
    let less = |bytes: usize| if bytes == usize::MAX { bytes } else { bytes / LENGTH_DIVISOR_HERE };
    let (text, name) = (less(lengths.text), less(lengths.name));
    within(Budget { steps: MAX_STEPS_HERE, errors: u32::MAX, floor, until: None, waited: None, text, name }, work)
}

/// Runs a part of the work within tighter limits on steps and described problems. All other limits of the current budget still apply.
pub fn part<T>(steps: u64, errors: u32, work: impl FnOnce() -> T) -> Result<T, Exhausted> {
    let budget = LEFT.with(|left| Budget {
        steps: steps.min(left.steps.get()),
        errors,
        floor: left.floor.get(),
        until: left.until.get(),
        waited: left.waited.get(),
        text: left.text.get(),
        name: left.name.get(),
    });
    within(budget, work)
}

/// Runs work on a checking thread, for at most `limit` on a core, and until `waited`, if somebody waits only until then.
pub async fn run<T: Send + 'static>(
    limit: Duration,
    waited: Option<Instant>,
    lengths: Lengths,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Exhausted> {
    let Some(pool) = &*THREAD_POOL else { return Err(Exhausted::Thread) };
    let done = pool.spawn_blocking(move || {
        let floor = address().saturating_sub(STACK_BYTES - RESERVED_STACK_BYTES);
        let Lengths { text, name } = lengths;
        let until = Some(on_core().saturating_add(limit));
        within(Budget { steps: MAX_STEPS, errors: u32::MAX, floor, until, waited, text, name }, work)
    });
    match done.await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(_) => Err(Exhausted::Thread),
        },
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests end with what they spawn")]
mod tests {
    use super::*;

    fn deep(levels: usize) -> usize {
        pay(1);
        if levels == 0 { 0 } else { std::hint::black_box(deep(levels - 1)) + 1 }
    }

    #[tokio::test]
    async fn budgets_end_what_would_not_end_or_would_end_the_process() {
        pay(1_000_000_000);
        assert_eq!(here(Lengths::ANY, || deep(10)), Ok(10));
        assert!(here(Lengths::ANY, || deep(usize::MAX)).is_err());
        assert_eq!(here(Lengths::ANY, || pay(MAX_STEPS_HERE + 1)), Err(Exhausted::Steps));
        assert_eq!(here(Lengths::ANY, || part(3, 0, || pay(4))), Ok(Err(Exhausted::Steps)));
        assert_eq!(here(Lengths::ANY, || part(3, 1, || (0..2).for_each(|_| pay_error()))), Ok(Err(Exhausted::Errors)));
        let limit = Duration::from_secs(60);
        assert_eq!(run(limit, None, Lengths::ANY, || deep(50_000)).await, Ok(50_000));
        assert_eq!(run(limit, None, Lengths::ANY, || deep(usize::MAX)).await, Err(Exhausted::Stack));
        let endless = || loop {
            LEFT.with(|left| left.steps.set(u64::MAX));
            pay(1);
            look_at_clock();
        };
        assert_eq!(run(Duration::from_millis(20), None, Lengths::ANY, endless).await, Err::<(), _>(Exhausted::Time));
        let lengths = Lengths { text: 1000, name: 10 };
        assert_eq!(run(limit, None, lengths, || pay_text(1000)).await, Ok(()));
        assert_eq!(run(limit, None, lengths, || pay_name(11)).await, Err(Exhausted::Text));
        assert_eq!(here(lengths, || pay_text(5)), Err(Exhausted::Text));
        assert_eq!(here(Lengths::ANY, || deep(10)), Ok(10), "nothing is left of it");
    }

    #[tokio::test]
    async fn panics_stay_panics() {
        let work = || assert!(std::hint::black_box(false), "on purpose");
        assert!(tokio::spawn(run(LIST_CHECK_TIMEOUT, None, Lengths::ANY, work)).await.unwrap_err().is_panic());
    }
}
