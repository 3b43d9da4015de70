//! How much memory the slots of the pool keep between calls.
//!
//! wasmtime resets the pages that a call wrote and leaves them in memory, so that the next call in the slot does not wait for the kernel to
//! find new ones: that takes about ten times as long as to zero a page. A slot may keep much, since calls with large arguments and calls of
//! Python and JavaScript plugins write several MiB, but all slots together keep no more than a bound. Half of it is for what every memory
//! may keep, its floor; the other half is a budget for those that keep more. When that is used up, the rest is given back.
//!
//! Once in a while, a reset keeps nothing ([`Turns`]): what a large call wrote must not slow the small ones after it for good.
//!
//! `pagemap` asks this at each reset, because wasmtime's own setting is the same for all slots, and its count leaves out pages beyond the
//! size that a memory had in the last call.

use std::{
    cell::Cell,
    collections::HashMap,
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;

/// What the memories of all pools of this process keep.
pub(crate) static IDLE: LazyLock<Idle> = LazyLock::new(Idle::default);

const PAGE_BYTES: u64 = 4096;
/// Memories up to this size, in pages of 4 KiB, keep no more than the floor, and need not be counted.
const SMALL_PAGES: u64 = 512;

/// What the memories of one pool may keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Keep {
    /// All of them together, in bytes.
    pub total: usize,
    /// Each of them, in bytes.
    pub each: usize,
}

impl Keep {
    /// The most that a memory keeps. Calls of Python plugins write up to this much.
    const MOST_BYTES: usize = 16 << 20;
    /// What a memory keeps on average, and what each keeps if resets do not ask this module.
    const AVERAGE_BYTES: usize = 1 << 20;
    /// How many memories may keep as much as they can.
    const FULL: usize = 8;

    /// Returns the bounds for a pool with this many memories. `limit`: how many bytes all instances may hold. `asks`: whether resets ask
    /// this module.
    pub(crate) fn of(memories: usize, limit: usize, asks: bool) -> Self {
        let memories = memories.max(1);
        let total = Self::AVERAGE_BYTES.saturating_mul(memories).min(limit / 4);
        let average = total / memories;
        let each = if asks { Self::MOST_BYTES.min(total / Self::FULL).max(average) } else { average };
        Self { total, each }
    }

    /// Returns how many pages are for those memories that keep more than the floor. As many are for the floors of all.
    fn budget(&self) -> u64 {
        self.total as u64 / 2 / PAGE_BYTES
    }

    /// Returns how many pages each of these memories may keep whatever the others keep.
    fn floor(&self, memories: usize) -> u64 {
        (self.budget() / memories.max(1) as u64).max(1)
    }
}

/// The memories of all pools of the process.
#[derive(Default)]
pub(crate) struct Idle {
    /// How many pages each memory may keep whatever the others keep. 0 until a pool is made.
    floor: AtomicU64,
    counted: Mutex<Counted>,
}

/// The memories that may keep more than the floor. All sizes are in pages.
#[derive(Default)]
struct Counted {
    /// How many pages these memories may keep together.
    budget: u64,
    /// How many they keep, or are about to.
    kept: u64,
    /// The memories, by the address at which they begin.
    memories: HashMap<u64, Memory>,
}

/// What is known of a memory.
#[derive(Default, Clone, Copy)]
struct Memory {
    /// Its size in the last call, and its largest size so far.
    size: u64,
    largest: u64,
    /// What it kept at the last reset.
    kept: u64,
    /// The most that may be left beyond its size, of calls in which it was larger.
    beyond: u64,
}

/// A reset that has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reset {
    start: u64,
    /// How many pages it may keep, and how many it keeps already.
    may: u64,
    keeps: u64,
    /// Whether they are part of the budget.
    counts: bool,
    /// Whether nothing is to be kept this time.
    forgets: bool,
}

impl Reset {
    /// Returns how many more pages may be kept.
    pub(crate) fn left(&self) -> u64 {
        if self.forgets { 0 } else { self.may.saturating_sub(self.keeps) }
    }

    pub(crate) fn keep(&mut self, pages: u64) {
        self.keeps = self.keeps.saturating_add(pages);
    }
}

impl Idle {
    /// Makes room for the memories of another pool. The lowest floor of all pools holds for all.
    pub(crate) fn allow(&self, keep: Keep, memories: usize) {
        let mut counted = self.counted.lock();
        counted.budget += keep.budget();
        let floor = keep.floor(memories);
        let before = self.floor.load(Ordering::Relaxed);
        self.floor.store(if before == 0 { floor } else { floor.min(before) }, Ordering::Relaxed);
    }

    /// Begins the reset of a memory of `pages` pages at the address `start`, of which wasmtime would keep `asked`. `None`: wasmtime may keep
    /// them.
    pub(crate) fn begin(&self, start: u64, pages: u64, asked: u64) -> Option<Reset> {
        let floor = self.floor.load(Ordering::Relaxed);
        if floor == 0 || asked <= floor {
            return None;
        }
        if pages <= SMALL_PAGES {
            return Some(Reset { start, may: floor, keeps: 0, counts: false, forgets: false });
        }
        let Counted { budget, kept, memories } = &mut *self.counted.lock();
        let memory = memories.entry(start).or_default();
        let others = kept.saturating_sub(memory.kept + memory.beyond);
        if pages < memory.size {
            memory.beyond += memory.kept;
        }
        memory.size = pages;
        memory.largest = memory.largest.max(pages);
        memory.beyond = memory.beyond.min(memory.largest - pages);
        let may = budget.saturating_sub(others + memory.beyond).clamp(floor, asked.min(pages).max(floor));
        memory.kept = may;
        *kept = others + memory.beyond + may;
        Some(Reset { start, may, keeps: 0, counts: true, forgets: false })
    }

    /// Ends a reset in which it is not known what is kept.
    pub(crate) fn end_unknown(&self, reset: Reset) {
        self.end(Reset { keeps: reset.may, ..reset });
    }

    /// Ends a reset.
    pub(crate) fn end(&self, reset: Reset) {
        if !reset.counts {
            return;
        }
        let mut state = self.counted.lock();
        let keeps = reset.keeps.min(reset.may);
        if let Some(memory) = state.memories.get_mut(&reset.start) {
            memory.kept = keeps;
        }
        state.kept = state.kept.saturating_sub(reset.may - keeps);
    }
}

/// The resets of one thread, of which one in [`Turns::EACH`] keeps nothing. The kernel does not tell the pages that a call has written from
/// those that earlier calls in the slot have, so each reset writes over all of them: without this, every small call would take as long as
/// the largest one before it.
pub(crate) struct Turns(Cell<u32>);

impl Turns {
    /// Small calls take 2 % longer with one of 128, since the next call in the slot waits for new pages.
    const EACH: u32 = 512;

    pub(crate) const fn new() -> Self {
        Self(Cell::new(0))
    }

    /// Returns a reset that begins, and keeps nothing if it is its turn.
    pub(crate) fn next(&self, reset: Reset) -> Reset {
        let turn = self.0.get() + 1;
        self.0.set(turn % Self::EACH);
        Reset { forgets: turn == Self::EACH, ..reset }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn one_of_many_resets_keeps_nothing() {
        let (turns, reset) = (Turns::new(), Reset { start: 1, may: 100, keeps: 20, counts: true, forgets: false });
        for _ in 0..3 {
            let left: Vec<u64> = (0..512).map(|_| turns.next(reset).left()).collect();
            assert_eq!(left.iter().filter(|pages| **pages == 0).count(), 1);
            assert_eq!(left.iter().filter(|pages| **pages == 80).count(), 511);
        }
    }

    #[test]
    fn what_is_kept_follows_the_memory_that_there_is() {
        for (memories, limit, asks, total, each) in [
            (288, 2048 * MIB, true, 288 * MIB, 16 * MIB),
            (288, 2048 * MIB, false, 288 * MIB, MIB),
            (288, 64 * MIB, true, 16 * MIB, 2 * MIB),
            (2, 2048 * MIB, true, 2 * MIB, MIB),
        ] {
            let keep = Keep::of(memories, limit, asks);
            assert_eq!(keep, Keep { total, each }, "{memories} memories, {limit} bytes");
            assert!(keep.floor(memories) as usize * memories * 4096 <= total / 2);
        }
    }

    const FLOOR: u64 = 128;

    /// Memories whose floor is 128 pages, and which together may keep this many more.
    fn idle(budget: u64) -> Idle {
        let idle = Idle::default();
        idle.floor.store(FLOOR, Ordering::Relaxed);
        idle.counted.lock().budget = budget;
        idle
    }

    /// Resets a memory that a call has written as much of, and returns how much it keeps.
    fn reset(idle: &Idle, start: u64, pages: u64, written: u64) -> u64 {
        let mut reset = idle.begin(start, pages, 4096).unwrap();
        let keeps = written.min(reset.left());
        reset.keep(keeps);
        idle.end(reset);
        keeps
    }

    #[test]
    fn all_memories_together_keep_no_more_than_the_budget_and_their_floors() {
        assert_eq!(Idle::default().begin(1, 1000, 4096), None, "no pool was made");
        let idle = idle(2000);
        assert_eq!(idle.begin(1, 1000, FLOOR), None, "wasmtime keeps no more of tables");
        assert_eq!(reset(&idle, 9, SMALL_PAGES, 400), FLOOR);
        assert_eq!(reset(&idle, 1, 1000, 900), 900);
        assert_eq!(reset(&idle, 2, 1000, 900), 900);
        assert_eq!(reset(&idle, 3, 1000, 900), 200);
        assert_eq!(reset(&idle, 4, 1000, 900), FLOOR);
        assert_eq!(
            reset(&idle, 1, 1000, 900),
            900 - FLOOR,
            "what it kept before is its own, but for what exceeds the budget"
        );
        assert_eq!(reset(&idle, 2, 1000, 100), 100);
        assert_eq!(reset(&idle, 4, 1000, 900), 900);
    }

    #[test]
    fn pages_beyond_the_size_of_the_last_call_count() {
        let idle = idle(2000);
        assert_eq!(reset(&idle, 1, 1000, 900), 900);
        assert_eq!(reset(&idle, 1, 600, 80), 80, "400 may be beyond");
        assert_eq!(reset(&idle, 1, 600, 80), 80);
        assert_eq!(reset(&idle, 2, 4000, 4000), 2000 - 400 - 80);
        assert_eq!(reset(&idle, 1, 1000, 950), 400 + 80, "what it kept before is its own");
        assert_eq!(reset(&idle, 2, 4000, 10), 10);
        assert_eq!(reset(&idle, 1, 1000, 950), 950, "none is beyond any more");
        assert_eq!(reset(&idle, 2, 4000, 4000), 2000 - 950);
        assert_eq!(reset(&idle, 1, 900, 10), 10, "at most 100 are beyond");
        assert_eq!(reset(&idle, 2, 4000, 4000), 2000 - 110);
    }

    #[test]
    fn resets_at_the_same_time_do_not_get_the_same_pages() {
        let idle = idle(1000);
        let first = idle.begin(1, 900, 4096).unwrap();
        let second = idle.begin(2, 900, 4096).unwrap();
        assert_eq!((first.left(), second.left()), (900, FLOOR));
        idle.end(first);
        idle.end(second);
        assert_eq!(reset(&idle, 3, 1000, 1000), 1000);
    }

    #[test]
    fn little_memory_has_a_low_floor() {
        const MEMORIES: usize = 288;
        let idle = Idle::default();
        let keep = Keep::of(MEMORIES, 64 * MIB, true);
        idle.allow(keep, MEMORIES);
        let kept: u64 = (0..MEMORIES as u64).map(|start| reset(&idle, start, 400 + 200 * (start % 2), 400)).sum();
        assert!(kept * 4096 <= keep.total as u64, "{kept} pages");
        assert!(kept * 4096 >= keep.total as u64 / 2, "{kept} pages");
    }
}
