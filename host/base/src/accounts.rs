//! Memory accounting. Every byte that a guest or a client makes the host store is charged to an account beforehand, and released when the
//! [`Charge`], an RAII guard, is dropped.
//!
//! Accounts are nested: a charge to one also counts in its parent, and so on up to the root. A charge that does not fit into all of them
//! changes none of them. Charging never waits for memory to become free: it fails at once.
//!
//! A child account is either a share, which has a fixed limit, or a dynamic share: it may hold at most `n` times as many bytes as remain
//! free in its parent. With `n` = 1, a single dynamic share can hold half of the parent, and two can hold a third each; as many bytes as
//! each of them holds stay free. The last eighth of the parent is only for dynamic shares that hold few bytes: a 64th of the parent, or
//! what one use of it takes, if that is more. The rule is the same as in [`crate::places`].

use std::{
    ops::Deref,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::places::{FEW_DIVISOR, RESERVE_DIVISOR};

/// A memory account. Clones refer to the same account.
#[derive(Clone, Debug)]
pub struct Account(Arc<Share>);

#[derive(Debug)]
struct Share {
    limit: usize,
    used: AtomicUsize,
    parent: Option<Account>,
    dynamic: Option<Dynamic>,
}

/// What makes a share dynamic.
#[derive(Clone, Copy, Debug)]
struct Dynamic {
    /// The multiple of the parent's free bytes that it may hold.
    times_free: usize,
    /// The number of bytes that count as few.
    few: usize,
}

/// Why a charge was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    /// The charge would not fit even into the empty account, so retrying is useless.
    #[error("{wanted} bytes exceed the limit of {limit} bytes")]
    TooLarge {
        /// The bytes that were to be charged.
        wanted: usize,
        /// The bytes that the account may hold.
        limit: usize,
    },
    /// The account already holds too much. There is room again once its owner releases something.
    #[error("its share of {limit} bytes is used up")]
    Share {
        /// The bytes that the account may hold while the other accounts hold what they hold now.
        limit: usize,
    },
    /// The other accounts hold too much.
    #[error("all {limit} bytes are used up")]
    Whole {
        /// The bytes that all accounts may hold together.
        limit: usize,
    },
}

impl Account {
    /// Creates a root account of `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self(Arc::new(Share { limit, used: AtomicUsize::new(0), parent: None, dynamic: None }))
    }

    /// Creates a child account that may hold `limit` bytes, provided that this account has room for them when they are charged.
    pub fn share(&self, limit: usize) -> Self {
        Self(Arc::new(Share { limit, used: AtomicUsize::new(0), parent: Some(self.clone()), dynamic: None }))
    }

    /// Creates a child account that may hold at most `times_free` times the bytes that remain free in this account. `one_use`: about how
    /// many bytes one use of it takes; the reserve has room for at least one of an account that holds nothing.
    pub fn dynamic_share(&self, times_free: usize, one_use: usize) -> Self {
        let whole = self.limit();
        let limit = whole / (times_free + 1) * times_free;
        let few = (whole / FEW_DIVISOR).max(one_use.min(whole / RESERVE_DIVISOR));
        let (used, parent) = (AtomicUsize::new(0), Some(self.clone()));
        Self(Arc::new(Share { limit, used, parent, dynamic: Some(Dynamic { times_free, few }) }))
    }

    /// Whether the account holds nothing and this is its only handle, so that it can be dropped.
    pub fn is_idle(&self) -> bool {
        self.used() == 0 && Arc::strong_count(&self.0) == 1
    }

    /// Returns the number of bytes that the account may hold.
    pub fn limit(&self) -> usize {
        self.0.limit
    }

    /// Returns the number of bytes that the account holds, including those of its child accounts.
    pub fn used(&self) -> usize {
        self.0.used.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes that are free at the moment in this account and in all its ancestors. Other threads may take them before
    /// the caller does.
    pub fn left(&self) -> usize {
        let own = self.0.limit.saturating_sub(self.used());
        self.0.parent.as_ref().map_or(own, |parent| own.min(parent.left()))
    }

    /// Whether a charge of this many bytes would fit at the moment.
    pub fn has_room(&self, bytes: usize) -> bool {
        let fits = self.sum(self.used(), bytes, self.free_in_parent()).is_some();
        fits && self.0.parent.as_ref().is_none_or(|parent| parent.has_room(bytes))
    }

    /// Returns what bounds a dynamic share, and `None` for other accounts.
    fn free_in_parent(&self) -> Option<Free> {
        let (parent, Dynamic { times_free: times, few }) = self.0.parent.as_ref().zip(self.0.dynamic)?;
        Some(Free { bytes: parent.left(), whole: parent.limit(), times, few })
    }

    /// Returns `used + bytes` if the account may hold that much.
    fn sum(&self, used: usize, bytes: usize, free: Option<Free>) -> Option<usize> {
        let sum = used.checked_add(bytes).filter(|sum| *sum <= self.0.limit)?;
        free.is_none_or(|free| free.allows(sum, bytes)).then_some(sum)
    }

    /// Charges this many bytes, which are released when the charge is dropped.
    pub fn charge(&self, bytes: usize) -> Result<Charge, Full> {
        self.take(bytes)?;
        Ok(Charge { account: self.clone(), bytes })
    }

    /// Returns a charge of zero bytes, to be grown later.
    pub fn open(&self) -> Charge {
        Charge { account: self.clone(), bytes: 0 }
    }

    fn take(&self, bytes: usize) -> Result<(), Full> {
        // Other threads charge the same accounts, so nothing is written for nothing.
        if bytes == 0 {
            return Ok(());
        }
        let Share { limit, used, parent, dynamic: _ } = &*self.0;
        // The free bytes of the parent may change in between. Then a dynamic share gets a charge more or less than it should, but the limit
        // of the parent still holds.
        let free = self.free_in_parent();
        let within = |used: usize| self.sum(used, bytes, free);
        if let Err(used) = used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within) {
            if bytes > *limit {
                return Err(Full::TooLarge { wanted: bytes, limit: *limit });
            }
            return Err(match (parent, free) {
                (None, _) => Full::Whole { limit: *limit },
                (Some(_), None) => Full::Share { limit: *limit },
                (Some(parent), Some(free)) => {
                    let share = free.share(used);
                    // If these bytes would not fit even into an empty account, the other accounts hold too much.
                    if bytes > share {
                        Full::Whole { limit: parent.limit() }
                    } else {
                        Full::Share { limit: share.min(*limit) }
                    }
                }
            });
        }
        let taken = parent.as_ref().map_or(Ok(()), |parent| parent.take(bytes));
        if taken.is_err() {
            used.fetch_sub(bytes, Ordering::Relaxed);
        }
        taken
    }

    fn give(&self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.0.used.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(parent) = &self.0.parent {
            parent.give(bytes);
        }
    }
}

/// What bounds a dynamic share.
#[derive(Clone, Copy)]
struct Free {
    /// The number of bytes that are free in the parent.
    bytes: usize,
    /// The number of bytes of the parent in all.
    whole: usize,
    /// The multiple of the free bytes that the dynamic share may hold.
    times: usize,
    /// The number of bytes up to which the share may take from the reserve.
    few: usize,
}

impl Free {
    /// Whether a dynamic share may hold `sum` bytes, of which the last `more` are not charged yet.
    fn allows(self, sum: usize, more: usize) -> bool {
        let left = self.bytes.saturating_sub(more);
        let is_few = sum <= self.few;
        sum <= left.saturating_mul(self.times) && (is_few || left >= self.whole / RESERVE_DIVISOR)
    }

    /// Returns the maximum for a dynamic share that holds `used` bytes, if the other accounts keep what they hold.
    fn share(self, used: usize) -> usize {
        let left = self.bytes + used;
        let above_reserve = left.saturating_sub(self.whole / RESERVE_DIVISOR);
        (left / (self.times + 1) * self.times).min(above_reserve.max(self.few))
    }
}

/// Charged bytes. This is an RAII guard: dropping it releases them.
#[derive(Debug)]
pub struct Charge {
    account: Account,
    bytes: usize,
}

impl Charge {
    /// Returns the number of charged bytes.
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

    /// Releases all but `to` bytes; a smaller charge stays as it is.
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

/// A value that another party has sent, with what is charged for it for as long as the value exists. Dereferences to the value.
#[derive(Debug)]
pub struct Charged<T> {
    value: T,
    charge: Arc<Charge>,
}

impl<T> Charged<T> {
    /// `charge`: may be shared with other values that came in the same message.
    pub fn new(value: T, charge: impl Into<Arc<Charge>>) -> Self {
        Self { value, charge: charge.into() }
    }

    /// Returns the value, and its charge, which the caller holds for as long as the value.
    pub fn into_parts(self) -> (T, Arc<Charge>) {
        (self.value, self.charge)
    }
}

impl<T> Deref for Charged<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl AsRef<[u8]> for Charged<String> {
    fn as_ref(&self) -> &[u8] {
        self.value.as_bytes()
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
        assert_eq!((one.used(), other.used(), whole.used()), (50, 0, 50), "a refused charge takes nothing");
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
            let parts: Vec<Account> = (0..greedy).map(|_| whole.dynamic_share(1, 0)).collect();
            let mut held = Vec::new();
            loop {
                let before = held.len();
                held.extend(parts.iter().filter_map(|part| part.charge(64).ok()));
                if held.len() == before {
                    break;
                }
            }
            // The last eighth is only for accounts that hold few bytes, as each of a hundred does.
            let few = (1 << 20) / FEW_DIVISOR;
            let each = ((1 << 20) / (greedy + 1)).min(((1 << 20) / 8 * 7 / greedy).max(few));
            for part in &parts {
                assert!(part.used().abs_diff(each) <= 128, "{greedy} parts: {} of {each}", part.used());
            }
            let error = parts[0].charge(64).unwrap_err();
            assert!(matches!(error, Full::Share { limit } if limit.abs_diff(each) <= 128), "{greedy} parts: {error}");
            let other = if greedy < RESERVE_DIVISOR { each } else { each.min(few) };
            assert!(whole.dynamic_share(1, 0).charge(other / 2 - 128).is_ok(), "{greedy} parts leave room for another");
        }
    }

    #[test]
    fn parts_that_come_one_after_the_other_leave_room_for_small_ones() {
        let whole = Account::new(1 << 20);
        let greedy: Vec<Account> = (0..100).map(|_| whole.dynamic_share(3, 0)).collect();
        let few = (1 << 20) / FEW_DIVISOR;
        // The first account takes all that it can get, then the second, and so on. Each takes more than few bytes.
        let held: Vec<Charge> = greedy
            .iter()
            .filter_map(|part| {
                let mut charge = part.charge(few + 1).ok()?;
                while charge.grow(64).is_ok() {}
                Some(charge)
            })
            .collect();
        assert!(held.len() > 1);
        assert!(whole.left() >= (1 << 20) / RESERVE_DIVISOR);
        let mut small: Vec<Charge> =
            (1..FEW_DIVISOR / RESERVE_DIVISOR).map(|_| whole.dynamic_share(3, 0).charge(few).unwrap()).collect();
        assert!(matches!(whole.dynamic_share(3, 0).charge(few + 1), Err(Full::Whole { .. })));
        // Each account leaves some of the rest to the next one.
        small.extend((0..5).map(|_| whole.dynamic_share(3, 0).charge(whole.left() / 2).unwrap()));
        assert!(whole.left() > 0);
    }

    #[test]
    fn one_use_fits_into_the_reserve() {
        let whole = Account::new(64 << 20);
        let part = |one_use| whole.dynamic_share(3, one_use);
        let _greedy = [part(0).charge(42 << 20).unwrap(), part(0).charge(14 << 20).unwrap()];
        assert_eq!(whole.left(), 8 << 20, "the reserve");
        assert!(matches!(part(0).charge(5 << 20), Err(Full::Whole { .. })));
        let ordinary = part(20 << 20);
        let mut use_of_it = ordinary.charge(5 << 20).unwrap();
        assert!(use_of_it.grow(1 << 20).is_ok());
        assert!(use_of_it.grow(1 << 20).is_err(), "it leaves a quarter to others");
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
        let (one, other) = (whole.dynamic_share(1, 0), whole.dynamic_share(1, 0));
        assert_eq!(one.charge(501).unwrap_err(), Full::TooLarge { wanted: 501, limit: 500 });
        let held = one.charge(500).unwrap();
        assert_eq!(one.charge(1).unwrap_err(), Full::Share { limit: 500 });
        assert_eq!(other.charge(251).unwrap_err(), Full::Whole { limit: 1000 }, "`other` holds nothing itself");
        let some = other.charge(200).unwrap();
        assert_eq!(other.charge(60).unwrap_err(), Full::Share { limit: 250 });
        assert_eq!((one.used(), other.used(), whole.used()), (500, 200, 700), "a refused charge takes nothing");
        let within = one.share(400);
        assert_eq!(
            within.charge(1).unwrap_err(),
            Full::Share { limit: 400 },
            "bytes of a child account count for its parent"
        );
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
                let share = if number % 2 == 0 { whole.share(400) } else { whole.dynamic_share(1, 0) };
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
