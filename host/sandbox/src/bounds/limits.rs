//! The memory budget of one call. It is also charged to the accounts that all calls share.
//!
//! wasmtime has a limit for each memory, but a component may have several memories, so this limit is on their sum. A guest whose
//! memory may not grow mostly panics, which looks like any other panic; [`MemoryBudget::refused`] tells them apart.

use wasmtime::ResourceLimiter;

use wharf_base::accounts::{Account, Charge};

/// How many bytes of a file a stream can buffer: bytes that were read ahead, or are still to be written.
const STREAM_BYTES: usize = 64 << 10;
/// How many streams an instance may have without being charged for them.
const FREE_STREAMS: usize = 16;

/// The number of bytes that a guest may pass to the host in addition to the result itself: names, lengths, the sizes of records in lists.
pub(crate) const TRANSFER_SLACK_BYTES: usize = 256 * 1024;

/// About how many bytes the host needs for a header field besides its name and value.
pub(crate) const FIELD_BYTES: usize = 256;

/// The bytes of a page of memory.
pub(crate) const PAGE_BYTES: usize = 64 << 10;

/// How many bytes are charged for an element of a table.
pub(crate) const TABLE_ELEMENT_BYTES: usize = 16;

/// Why memory was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The call's own budget is used up.
    Own,
    /// The budget of all calls is used up.
    Total,
}

/// The memory limit and the memory use of one instance. Everything is also charged to an account that the instances share.
pub(crate) struct MemoryBudget {
    limit: usize,
    used: Charge,
    /// How many of the charged bytes the instance has not asked for yet.
    prepaid: usize,
    /// The charge for what open streams may hold.
    streams: Charge,
    refused: Option<Refused>,
}

impl MemoryBudget {
    pub(crate) fn new(limit: usize, total: &Account) -> Self {
        Self { limit, used: total.open(), prepaid: 0, streams: total.open(), refused: None }
    }

    /// Returns the limit of the instance.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Returns why the current call was last refused memory, if it was.
    pub(crate) fn refused(&self) -> Option<Refused> {
        self.refused
    }

    /// Returns how many bytes the instance holds, without those of streams.
    pub(crate) fn used(&self) -> usize {
        self.used.bytes() - self.prepaid
    }

    /// Charges this many bytes at once for what the instance will ask for piece by piece. Returns false if they do not fit.
    pub(crate) fn prepay(&mut self, bytes: usize) -> bool {
        let fits = self.grow(bytes);
        self.prepaid += if fits { bytes } else { 0 };
        fits
    }

    /// Whether more than half of the memory beyond the first `base` bytes is used up, so that the rest may not be enough for a
    /// later call.
    pub(crate) fn is_half_spent(&self, base: usize) -> bool {
        self.used().saturating_sub(base) > self.limit.saturating_sub(base) / 2
    }

    /// Charges for what `count` open streams may hold, and gives back what was charged for streams beyond that. Returns false if the charge
    /// does not fit.
    pub(crate) fn hold_streams(&mut self, count: usize) -> bool {
        let bytes = count.saturating_sub(FREE_STREAMS) * STREAM_BYTES;
        self.streams.shrink(bytes);
        let refused = match self.used().saturating_add(bytes) <= self.limit {
            true => self.streams.cover(bytes).is_err().then_some(Refused::Total),
            false => Some(Refused::Own),
        };
        self.refused = refused.or(self.refused);
        refused.is_none()
    }

    /// Resets the refusal of the last call before the next one.
    pub(crate) fn renew(&mut self) {
        self.refused = None;
    }

    /// Charges this many more bytes of the guest's own memory, or of what the host stores for it. Returns false if they do not fit.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        let from_prepaid = bytes.min(self.prepaid);
        let held = self.used().saturating_add(self.streams.bytes());
        let refused = match held.checked_add(bytes) {
            Some(sum) if sum <= self.limit => self.used.grow(bytes - from_prepaid).is_err().then_some(Refused::Total),
            _ => Some(Refused::Own),
        };
        if refused.is_some() {
            self.refused = refused;
            return false;
        }
        self.prepaid -= from_prepaid;
        true
    }
}

// If the system refuses a growth that was granted here, the growth stays charged until the instance is gone. It cannot be given back,
// because wasmtime also reports failures of growths that it never requested here, and does not distinguish the two.
impl ResourceLimiter for MemoryBudget {
    fn memory_growing(&mut self, current: usize, desired: usize, most: Option<usize>) -> wasmtime::Result<bool> {
        Ok(most.is_none_or(|most| desired <= most) && self.grow(desired.saturating_sub(current)))
    }

    fn table_growing(&mut self, current: usize, desired: usize, most: Option<usize>) -> wasmtime::Result<bool> {
        let bytes = desired.saturating_sub(current).saturating_mul(TABLE_ELEMENT_BYTES);
        Ok(most.is_none_or(|most| desired <= most) && self.grow(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_and_memory_share_one_limit() {
        let total = Account::new(10 * STREAM_BYTES);
        let mut one = MemoryBudget::new(5 * STREAM_BYTES, &total);
        assert!(one.hold_streams(FREE_STREAMS + 3));
        assert!(!one.grow(3 * STREAM_BYTES));
        assert_eq!(one.refused(), Some(Refused::Own));
        assert!(one.grow(2 * STREAM_BYTES));
        assert!(!one.hold_streams(FREE_STREAMS + 4));
        let mut two = MemoryBudget::new(20 * STREAM_BYTES, &total);
        assert!(!two.hold_streams(FREE_STREAMS + 6));
        assert_eq!(two.refused(), Some(Refused::Total));
    }

    #[test]
    fn what_was_prepaid_is_not_charged_again() {
        let total = Account::new(100);
        let mut one = MemoryBudget::new(80, &total);
        assert!(one.prepay(50));
        assert_eq!((one.used(), total.left()), (0, 50));
        assert!(one.grow(30));
        assert_eq!((one.used(), total.left()), (30, 50));
        assert!(!one.grow(51), "its limit counts what it asked for");
        assert!(one.grow(50));
        assert_eq!((one.used(), total.left()), (80, 20));
        drop(one);
        assert_eq!(total.left(), 100);
        let mut other = MemoryBudget::new(80, &total);
        assert!(!other.prepay(81));
        assert_eq!((other.used(), total.left()), (0, 100));
    }

    #[test]
    fn sums_all_memories_and_gives_back() {
        let total = Account::new(150);
        let mut one = MemoryBudget::new(100, &total);
        assert!(one.memory_growing(0, 60, None).unwrap());
        assert!(!one.memory_growing(0, 60, None).unwrap(), "two memories share one limit");
        assert_eq!(one.refused(), Some(Refused::Own));
        let mut two = MemoryBudget::new(100, &total);
        assert!(!two.memory_growing(0, 95, None).unwrap());
        assert_eq!(two.refused(), Some(Refused::Total));
        drop(one);
        assert!(two.memory_growing(0, 95, None).unwrap());
        assert!(!two.memory_growing(0, 2, Some(1)).unwrap(), "beyond the maximum of the memory itself");
        two.memory_grow_failed(wasmtime::Error::msg("no")).unwrap();
        two.table_grow_failed(wasmtime::Error::msg("a table that was never asked about")).unwrap();
        assert_eq!(two.used(), 95, "a failed growth is not mistaken for a granted one");
        assert!(!two.table_growing(0, 6, None).unwrap());
        assert_eq!(total.left(), 55);
        drop(two);
        assert_eq!(total.used(), 0);
    }
}
