//! Counts memory. Every byte that a guest or a client makes the host keep is charged to an account before it is kept, and given
//! back when what it was charged for is dropped.
//!
//! Accounts are nested: what is charged to one is also charged to the account around it, and so on up to the outermost. A
//! charge that does not fit into all of them changes none. Nobody waits for room here: the caller is told at once that there is
//! none.
//!
//! An account lies in another either as a share, which has a limit of its own, or as a part. A part may hold at most so many times as
//! many bytes as are free around it once it holds them. With once as many, one part alone holds a half, and two hold a third each, so
//! that as much as one of them holds is free for others. The last eighth is only for parts that hold few bytes. It is the rule of
//! [`crate::places`].

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use crate::places::{FEW, FOR_SMALL_TAKERS};

/// Somebody's share of memory. Clones are the same account.
#[derive(Clone, Debug)]
pub struct Account(Arc<Share>);

#[derive(Debug)]
struct Share {
    limit: usize,
    used: AtomicUsize,
    around: Option<Account>,
    /// How many times as much as is free around it it may hold, if that bounds it.
    times_free: Option<usize>,
}

/// Why a charge was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    /// It would not fit even if the account held nothing else, so it is of no use to try again.
    #[error("{wanted} bytes are more than the {limit} there are for one")]
    TooLarge {
        /// The bytes that were to be charged.
        wanted: usize,
        /// The bytes that the account may hold.
        limit: usize,
    },
    /// The account holds too much already; there is room again when its owner gives something back.
    #[error("its share of {limit} bytes is used up")]
    Share {
        /// The bytes that the account may hold, as long as the others hold what they do.
        limit: usize,
    },
    /// The others hold too much.
    #[error("all {limit} bytes are used up")]
    Whole {
        /// The bytes that all accounts may hold together.
        limit: usize,
    },
}

impl Account {
    /// An account that lies in no other, of `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self(Arc::new(Share { limit, used: AtomicUsize::new(0), around: None, times_free: None }))
    }

    /// An account within this one. It may hold `limit` bytes, if this one has room for them when they are charged.
    pub fn share(&self, limit: usize) -> Self {
        Self(Arc::new(Share { limit, used: AtomicUsize::new(0), around: Some(self.clone()), times_free: None }))
    }

    /// An account within this one. It may hold `times_free` times as many bytes as are still free in this one when it holds them.
    pub fn part(&self, times_free: usize) -> Self {
        let limit = self.limit() / (times_free + 1) * times_free;
        let (used, around) = (AtomicUsize::new(0), Some(self.clone()));
        Self(Arc::new(Share { limit, used, around, times_free: Some(times_free) }))
    }

    /// Whether it is of no use to keep this handle: it holds nothing, and nobody else has another one.
    pub(crate) fn is_idle(&self) -> bool {
        self.used() == 0 && Arc::strong_count(&self.0) == 1
    }

    /// How many bytes it may hold.
    pub fn limit(&self) -> usize {
        self.0.limit
    }

    /// How many bytes it holds, those of accounts within it included.
    pub fn used(&self) -> usize {
        self.0.used.load(Ordering::Relaxed)
    }

    /// How many bytes are free at the moment, here and around it; others may take them before the caller does.
    pub fn left(&self) -> usize {
        let own = self.0.limit.saturating_sub(self.used());
        self.0.around.as_ref().map_or(own, |around| own.min(around.left()))
    }

    /// Whether a charge of so many bytes would fit at the moment.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        let fits = self.sum(self.used(), bytes, self.free_around()).is_some();
        fits && self.0.around.as_ref().is_none_or(|around| around.has_room(bytes))
    }

    /// For a part, what bounds it.
    fn free_around(&self) -> Option<Free> {
        let (around, times) = self.0.around.as_ref().zip(self.0.times_free)?;
        Some(Free { bytes: around.left(), whole: around.limit(), times })
    }

    /// What it would hold with so many bytes more than `used`, if it may hold that.
    fn sum(&self, used: usize, bytes: usize, free: Option<Free>) -> Option<usize> {
        let sum = used.checked_add(bytes).filter(|sum| *sum <= self.0.limit)?;
        free.is_none_or(|free| free.allows(sum, bytes)).then_some(sum)
    }

    /// Charges this many bytes, which are given back when the charge is dropped.
    pub fn charge(&self, bytes: usize) -> Result<Charge, Full> {
        self.take(bytes)?;
        Ok(Charge { account: self.clone(), bytes })
    }

    /// A charge of nothing, for something that will grow.
    pub fn open(&self) -> Charge {
        Charge { account: self.clone(), bytes: 0 }
    }

    fn take(&self, bytes: usize) -> Result<(), Full> {
        let Share { limit, used, around, times_free: _ } = &*self.0;
        // What is free around it may change meanwhile. Then a part gets a charge more or less than it should, but all parts together
        // never more than there is.
        let free = self.free_around();
        let within = |used: usize| self.sum(used, bytes, free);
        if let Err(used) = used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within) {
            if bytes > *limit {
                return Err(Full::TooLarge { wanted: bytes, limit: *limit });
            }
            return Err(match (around, free) {
                (None, _) => Full::Whole { limit: *limit },
                (Some(_), None) => Full::Share { limit: *limit },
                (Some(around), Some(free)) => {
                    let share = free.share(used);
                    // If it would not get these bytes even if it held none, the others hold too much.
                    if bytes > share {
                        Full::Whole { limit: around.limit() }
                    } else {
                        Full::Share { limit: share.min(*limit) }
                    }
                }
            });
        }
        let taken = around.as_ref().map_or(Ok(()), |around| around.take(bytes));
        if taken.is_err() {
            used.fetch_sub(bytes, Ordering::Relaxed);
        }
        taken
    }

    fn give(&self, bytes: usize) {
        self.0.used.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(around) = &self.0.around {
            around.give(bytes);
        }
    }
}

/// What bounds a part.
#[derive(Clone, Copy)]
struct Free {
    /// How many bytes are free around it.
    bytes: usize,
    /// How many there are in all.
    whole: usize,
    /// How many times as many as are free it may hold.
    times: usize,
}

impl Free {
    /// Whether a part may hold `sum` bytes, of which it does not hold the last `more` yet.
    fn allows(self, sum: usize, more: usize) -> bool {
        let left = self.bytes.saturating_sub(more);
        let is_few = sum <= self.whole / FEW;
        sum <= left.saturating_mul(self.times) && (is_few || left >= self.whole / FOR_SMALL_TAKERS)
    }

    /// The most that a part which holds `used` bytes may hold, if the others keep what they hold.
    fn share(self, used: usize) -> usize {
        let left = self.bytes + used;
        let above_reserve = left.saturating_sub(self.whole / FOR_SMALL_TAKERS);
        (left / (self.times + 1) * self.times).min(above_reserve.max(self.whole / FEW))
    }
}

/// Bytes that are charged for as long as this lives.
#[derive(Debug)]
pub struct Charge {
    account: Account,
    bytes: usize,
}

impl Charge {
    /// How many bytes are charged.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Charges this many more bytes; if they do not fit, the charge stays as it was.
    pub fn grow(&mut self, more: usize) -> Result<(), Full> {
        self.account.take(more)?;
        self.bytes += more;
        Ok(())
    }

    /// Grows to `bytes` in all if it is smaller; if they do not fit, the charge stays as it was.
    pub fn cover(&mut self, bytes: usize) -> Result<(), Full> {
        self.grow(bytes.saturating_sub(self.bytes))
    }

    /// Gives back all but `to` bytes; a smaller charge stays as it is.
    pub fn shrink(&mut self, to: usize) {
        let excess = self.bytes.saturating_sub(to);
        self.bytes -= excess;
        self.account.give(excess);
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.account.give(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_lie_within_the_whole() {
        let whole = Account::new(100);
        let (one, other) = (whole.share(60), whole.share(60));
        let mut first = one.charge(50).unwrap();
        assert_eq!(one.charge(61).unwrap_err(), Full::TooLarge { wanted: 61, limit: 60 });
        assert_eq!(one.charge(11).unwrap_err(), Full::Share { limit: 60 });
        assert_eq!(other.charge(51).unwrap_err(), Full::Whole { limit: 100 });
        assert_eq!((one.used(), other.used(), whole.used()), (50, 0, 50), "what is refused takes nothing");
        let second = other.charge(50).unwrap();
        assert_eq!(first.grow(1).unwrap_err(), Full::Whole { limit: 100 });
        drop(second);
        first.grow(10).unwrap();
        first.cover(5).unwrap();
        assert_eq!((first.bytes(), whole.left()), (60, 40));
        first.shrink(20);
        first.shrink(30);
        assert_eq!((one.used(), whole.used()), (20, 20));
        drop(first);
        assert_eq!((one.used(), whole.used()), (0, 0));
    }

    #[test]
    fn parts_leave_as_much_free_as_each_holds() {
        for greedy in [1, 2, 3, 10, 100] {
            let whole = Account::new(1 << 20);
            let parts: Vec<Account> = (0..greedy).map(|_| whole.part(1)).collect();
            let mut held = Vec::new();
            loop {
                let before = held.len();
                held.extend(parts.iter().filter_map(|part| part.charge(64).ok()));
                if held.len() == before {
                    break;
                }
            }
            // The last eighth is only for parts that hold few bytes, as each of a hundred does.
            let few = (1 << 20) / FEW;
            let each = ((1 << 20) / (greedy + 1)).min(((1 << 20) / 8 * 7 / greedy).max(few));
            for part in &parts {
                assert!(part.used().abs_diff(each) <= 128, "{greedy} parts: {} of {each}", part.used());
            }
            let error = parts[0].charge(64).unwrap_err();
            assert!(matches!(error, Full::Share { limit } if limit.abs_diff(each) <= 128), "{greedy} parts: {error}");
            let other = if greedy < FOR_SMALL_TAKERS { each } else { each.min(few) };
            assert!(whole.part(1).charge(other / 2 - 128).is_ok(), "{greedy} parts leave room for another");
        }
    }

    #[test]
    fn parts_that_come_one_after_the_other_leave_room_for_small_ones() {
        let whole = Account::new(1 << 20);
        let greedy: Vec<Account> = (0..100).map(|_| whole.part(3)).collect();
        let few = (1 << 20) / FEW;
        // The first takes all that it can get, then the second, and so on. None of them is content with few bytes.
        let held: Vec<Charge> = greedy
            .iter()
            .filter_map(|part| {
                let mut charge = part.charge(few + 1).ok()?;
                while charge.grow(64).is_ok() {}
                Some(charge)
            })
            .collect();
        assert!(held.len() > 1);
        assert!(whole.left() >= (1 << 20) / FOR_SMALL_TAKERS);
        let mut small: Vec<Charge> = (1..FEW / FOR_SMALL_TAKERS).map(|_| whole.part(3).charge(few).unwrap()).collect();
        assert!(matches!(whole.part(3).charge(few + 1), Err(Full::Whole { .. })));
        // Of what is left then, each leaves a part to the next as well.
        small.extend((0..5).map(|_| whole.part(3).charge(whole.left() / 2).unwrap()));
        assert!(whole.left() > 0);
    }

    #[test]
    fn what_is_free_is_free_all_around() {
        let whole = Account::new(100);
        let (one, other) = (whole.share(60), whole.share(60));
        let _held = one.charge(50).unwrap();
        assert_eq!((one.left(), other.left()), (10, 50));
    }

    #[test]
    fn who_is_to_blame_is_told() {
        let whole = Account::new(1000);
        let (one, other) = (whole.part(1), whole.part(1));
        assert_eq!(one.charge(501).unwrap_err(), Full::TooLarge { wanted: 501, limit: 500 });
        let held = one.charge(500).unwrap();
        assert_eq!(one.charge(1).unwrap_err(), Full::Share { limit: 500 });
        assert_eq!(other.charge(251).unwrap_err(), Full::Whole { limit: 1000 }, "it holds nothing itself");
        let some = other.charge(200).unwrap();
        assert_eq!(other.charge(60).unwrap_err(), Full::Share { limit: 250 });
        assert_eq!((one.used(), other.used(), whole.used()), (500, 200, 700), "what is refused takes nothing");
        let within = one.share(400);
        assert_eq!(within.charge(1).unwrap_err(), Full::Share { limit: 400 }, "what lies in a part is the part's");
        assert_eq!((within.used(), one.used()), (0, 500));
        drop((held, some));
        assert!(within.charge(400).is_ok());
        assert_eq!(whole.used(), 0);
    }

    #[test]
    fn what_many_take_at_once_is_never_more_than_there_is() {
        let whole = Account::new(1000);
        std::thread::scope(|scope| {
            for number in 0..4 {
                let share = if number % 2 == 0 { whole.share(400) } else { whole.part(1) };
                let whole = &whole;
                scope.spawn(move || {
                    for round in 0..2000 {
                        let charge = share.charge(round % 300);
                        assert!(whole.used() <= 1000 + 300 && share.used() <= 500);
                        drop(charge);
                    }
                });
            }
        });
        assert_eq!(whole.used(), 0);
    }
}
