//! Counts memory. Every byte that a guest or a client makes the host keep is charged to an account before it is kept, and given
//! back when what it was charged for is dropped.
//!
//! Accounts are nested: what is charged to one is also charged to the account around it, and so on up to the outermost. A
//! charge that does not fit into all of them changes none. Nobody waits for room here: the caller is told at once that there is
//! none.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// Somebody's share of memory. Clones are the same account.
#[derive(Clone, Debug)]
pub struct Account(Arc<Share>);

#[derive(Debug)]
struct Share {
    limit: usize,
    used: AtomicUsize,
    around: Option<Account>,
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
        /// The bytes that the account may hold.
        limit: usize,
    },
    /// All accounts together hold too much.
    #[error("all {limit} bytes are used up")]
    Whole {
        /// The bytes that all accounts may hold together.
        limit: usize,
    },
}

impl Account {
    /// An account that lies in no other, of `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self(Arc::new(Share { limit, used: AtomicUsize::new(0), around: None }))
    }

    /// An account within this one. It may hold `limit` bytes, if this one has room for them when they are charged.
    pub fn share(&self, limit: usize) -> Self {
        Self(Arc::new(Share { limit, used: AtomicUsize::new(0), around: Some(self.clone()) }))
    }

    /// How many bytes it may hold.
    pub fn limit(&self) -> usize {
        self.0.limit
    }

    /// How many bytes it holds, those of accounts within it included.
    pub fn used(&self) -> usize {
        self.0.used.load(Ordering::Relaxed)
    }

    /// How many bytes are free at the moment; others may take them before the caller does.
    pub(crate) fn left(&self) -> usize {
        self.0.limit.saturating_sub(self.used())
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
        let Share { limit, used, around } = &*self.0;
        let within = |used: usize| used.checked_add(bytes).filter(|sum| sum <= limit);
        if used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within).is_err() {
            return Err(match around {
                _ if bytes > *limit => Full::TooLarge { wanted: bytes, limit: *limit },
                Some(_) => Full::Share { limit: *limit },
                None => Full::Whole { limit: *limit },
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
    pub(crate) fn shrink(&mut self, to: usize) {
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
    fn what_many_take_at_once_is_never_more_than_there_is() {
        let whole = Account::new(1000);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let share = whole.share(400);
                let whole = &whole;
                scope.spawn(move || {
                    for round in 0..2000 {
                        let charge = share.charge(round % 300);
                        assert!(whole.used() <= 1000 + 300 && share.used() <= 400);
                        drop(charge);
                    }
                });
            }
        });
        assert_eq!(whole.used(), 0);
    }
}
