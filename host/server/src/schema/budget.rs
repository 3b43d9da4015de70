//! Runs checks of data from guests on a stack of known size, within a budget of steps and time, so that hostile data can
//! neither crash the process nor occupy a thread for good.
//!
//! Code that works through such data calls [`pay`] for each step. When the budget is used up, `pay` unwinds to the function
//! that set the budget. Without a budget, paying does nothing.

use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::LazyLock,
    time::{Duration, Instant},
};

use tokio::runtime::Runtime;

/// How long a plugin's list may take to be checked and compiled.
pub const LIST_LIMIT: Duration = Duration::from_secs(5);

/// The stack of a checking thread, most of which is never touched, and the part of it that is reserved for code that does not
/// pay.
const STACK_BYTES: usize = 32 << 20;
const RESERVE_BYTES: usize = 8 << 20;
/// How many threads may check at once. It does not depend on the cores, so that long checks for one plugin do not keep another
/// plugin's waiting.
const THREADS: usize = 8;
/// The budget of [`here`]: a fraction of a millisecond, and a fraction of the stack of any thread.
const STEPS_HERE: u64 = 20_000;
const STACK_HERE: usize = 256 << 10;
/// The steps of [`run`]: some seconds at most. They also bound the sets in which a validator remembers what it has seen.
const STEPS: u64 = 5_000_000;

static THREAD_POOL: LazyLock<Option<Runtime>> = LazyLock::new(|| {
    let mut pool = tokio::runtime::Builder::new_current_thread();
    pool.max_blocking_threads(THREADS).thread_stack_size(STACK_BYTES).thread_name("wharf-judge");
    pool.build().ok()
});

struct Left {
    steps: Cell<u64>,
    errors: Cell<u32>,
    /// The lowest address that the stack may grow down to.
    floor: Cell<usize>,
    until: Cell<Option<Instant>>,
    /// The longest text and the longest name that may be matched against patterns. They are bounded because nothing can
    /// interrupt a match.
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
    until: Option<Instant>,
    text: usize,
    name: usize,
}

/// Which budget is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Exhausted {
    #[error("it is nested too deep to be checked")]
    Stack,
    #[error("checking it takes too many steps")]
    Steps,
    #[error("checking it takes too long")]
    Time,
    #[error("a text in it is too long for the patterns it is matched with")]
    Text,
    #[error("there is more wrong with it than can be said")]
    Errors,
    #[error("there is no thread to check it on")]
    Thread,
}

#[cold]
#[inline(never)]
fn stop(why: Exhausted) -> ! {
    resume_unwind(Box::new(why))
}

/// Pays for so many steps out of the budget of this thread.
#[inline]
pub fn pay(cost: u64) {
    LEFT.with(|left| {
        let before = left.steps.get();
        if address() < left.floor.get() {
            stop(Exhausted::Stack);
        }
        let Some(now) = before.checked_sub(cost) else { stop(Exhausted::Steps) };
        left.steps.set(now);
        // The clock is looked at every 256 steps only, of which each may take some microseconds.
        if (before ^ now) >> 8 != 0 {
            look_at_clock();
        }
    });
}

/// Ends the work if its time is over. To be called before a single step that takes long.
#[cold]
#[inline(never)]
pub fn look_at_clock() {
    if LEFT.with(|left| left.until.get()).is_some_and(|until| Instant::now() >= until) {
        stop(Exhausted::Time);
    }
}

/// Pays for a text of so many bytes, against which patterns may be matched.
pub fn pay_text(bytes: usize) {
    if bytes > LEFT.with(|left| left.text.get()) {
        stop(Exhausted::Text);
    }
    pay(1 + bytes as u64 / 16);
}

/// The same for a member's name.
pub fn pay_name(bytes: usize) {
    if bytes > LEFT.with(|left| left.name.get()) {
        stop(Exhausted::Text);
    }
    pay(1 + bytes as u64 / 16);
}

/// Pays for the description of one problem.
pub fn pay_error() {
    pay(1);
    LEFT.with(|left| match left.errors.get().checked_sub(1) {
        Some(now) => left.errors.set(now),
        None => stop(Exhausted::Errors),
    });
}

/// Roughly the current end of the stack, which grows downwards on all systems that wharf runs on.
#[inline(always)]
fn address() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&here)).addr()
}

fn replace(budget: Budget) -> Budget {
    let Budget { steps, errors, floor, until, text, name } = budget;
    LEFT.with(|left| Budget {
        steps: left.steps.replace(steps),
        errors: left.errors.replace(errors),
        floor: left.floor.replace(floor),
        until: left.until.replace(until),
        text: left.text.replace(text),
        name: left.name.replace(name),
    })
}

fn within<T>(budget: Budget, work: impl FnOnce() -> T) -> Result<T, Exhausted> {
    let before = replace(budget);
    // `AssertUnwindSafe` is right, since what the work used is dropped if it unwinds.
    let done = catch_unwind(AssertUnwindSafe(work));
    replace(before);
    done.map_err(|why| match why.downcast::<Exhausted>() {
        Ok(exhausted) => *exhausted,
        Err(panic) => resume_unwind(panic),
    })
}

/// How long texts and names may be that are matched against patterns.
#[derive(Debug, Clone, Copy)]
pub struct Lengths {
    pub text: usize,
    pub name: usize,
}

impl Lengths {
    pub const ANY: Self = Self { text: usize::MAX, name: usize::MAX };
}

/// By how much the longest text for [`here`] is shorter than that for [`run`], because others wait for this thread.
const SHARE_HERE: usize = 250;

/// Runs small work on this thread. Work that exceeds this budget is for [`run`].
pub fn here<T>(lengths: Lengths, work: impl FnOnce() -> T) -> Result<T, Exhausted> {
    let floor = address().saturating_sub(STACK_HERE);
    let less = |bytes: usize| if bytes == usize::MAX { bytes } else { bytes / SHARE_HERE };
    let (text, name) = (less(lengths.text), less(lengths.name));
    within(Budget { steps: STEPS_HERE, errors: u32::MAX, floor, until: None, text, name }, work)
}

/// Runs a part of the work with at most so many steps and described problems. Its other bounds are those of the whole.
pub fn part<T>(steps: u64, errors: u32, work: impl FnOnce() -> T) -> Result<T, Exhausted> {
    let budget = LEFT.with(|left| Budget {
        steps: steps.min(left.steps.get()),
        errors,
        floor: left.floor.get(),
        until: left.until.get(),
        text: left.text.get(),
        name: left.name.get(),
    });
    within(budget, work)
}

/// Runs work on a thread that is only for checks, for at most so long.
pub async fn run<T: Send + 'static>(
    limit: Duration,
    lengths: Lengths,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Exhausted> {
    let Some(pool) = &*THREAD_POOL else { return Err(Exhausted::Thread) };
    let judged = pool.spawn_blocking(move || {
        let floor = address().saturating_sub(STACK_BYTES - RESERVE_BYTES);
        let Lengths { text, name } = lengths;
        let until = Some(Instant::now() + limit);
        within(Budget { steps: STEPS, errors: u32::MAX, floor, until, text, name }, work)
    });
    match judged.await {
        Ok(judged) => judged,
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
        assert_eq!(here(Lengths::ANY, || pay(STEPS_HERE + 1)), Err(Exhausted::Steps));
        assert_eq!(here(Lengths::ANY, || part(3, 0, || pay(4))), Ok(Err(Exhausted::Steps)));
        assert_eq!(here(Lengths::ANY, || part(3, 1, || (0..2).for_each(|_| pay_error()))), Ok(Err(Exhausted::Errors)));
        let limit = Duration::from_secs(60);
        assert_eq!(run(limit, Lengths::ANY, || deep(50_000)).await, Ok(50_000));
        assert_eq!(run(limit, Lengths::ANY, || deep(usize::MAX)).await, Err(Exhausted::Stack));
        let endless = || loop {
            LEFT.with(|left| left.steps.set(u64::MAX));
            pay(1);
            look_at_clock();
        };
        assert_eq!(run(Duration::from_millis(20), Lengths::ANY, endless).await, Err::<(), _>(Exhausted::Time));
        let lengths = Lengths { text: 1000, name: 10 };
        assert_eq!(run(limit, lengths, || pay_text(1000)).await, Ok(()));
        assert_eq!(run(limit, lengths, || pay_name(11)).await, Err(Exhausted::Text));
        assert_eq!(here(lengths, || pay_text(5)), Err(Exhausted::Text));
        assert_eq!(here(Lengths::ANY, || deep(10)), Ok(10), "nothing is left of it");
    }

    #[tokio::test]
    async fn panics_stay_panics() {
        let work = || assert!(std::hint::black_box(false), "on purpose");
        assert!(tokio::spawn(run(LIST_LIMIT, Lengths::ANY, work)).await.unwrap_err().is_panic());
    }
}
