//! Divides the guests' memory among clients. Without this, a few calls of one client that fill their memory would take all of it, and calls
//! of other clients would fail for lack of memory.

use std::collections::HashMap;

use parking_lot::Mutex;

use wharf_base::{accounts::Account, places::Party};

/// The calls of one client may hold at most this many times the memory that is still free, so one client alone can hold three quarters.
/// [`wharf_base::places`] uses the same factor.
const TIMES_FREE: usize = 3;
/// About how much memory one call takes, with the largest result of a built-in plugin: that much is charged when it begins. The first call
/// of a client has room although others hold all that they may, if the reserve is as large as this.
const ONE_CALL_BYTES: usize = 20 << 20;
/// The number of clients above which accounts that hold nothing are removed.
const SWEEP_ABOVE_CLIENTS: usize = 1024;

/// The memory accounts of all clients.
pub(crate) struct ClientAccounts {
    whole: Account,
    clients: Mutex<HashMap<Party, Account>>,
}

impl ClientAccounts {
    pub(crate) fn new(whole: Account) -> Self {
        Self { whole, clients: Mutex::default() }
    }

    /// Returns the account of all calls together.
    pub(crate) fn whole(&self) -> &Account {
        &self.whole
    }

    /// Returns the account of one client's calls.
    pub(crate) fn of(&self, party: Party) -> Account {
        if party == Party::SOLE {
            return self.whole.clone();
        }
        let mut clients = self.clients.lock();
        if clients.len() > SWEEP_ABOVE_CLIENTS {
            clients.retain(|_, account| !account.is_idle());
        }
        clients.entry(party).or_insert_with(|| self.whole.dynamic_share(TIMES_FREE, ONE_CALL_BYTES)).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_one_client_leave_memory_for_those_of_others() {
        let parts = ClientAccounts::new(Account::new(64 << 20));
        let (ann, ben) = (Party::of(1), Party::of(2));
        let held: Vec<_> = std::iter::from_fn(|| parts.of(ann).charge(1 << 20).ok()).collect();
        assert_eq!(held.len(), 48);
        assert!(parts.of(ben).charge(8 << 20).is_ok());
        drop(held);
        assert!(parts.of(Party::SOLE).charge(64 << 20).is_ok(), "a sole client may use everything");
    }

    #[test]
    fn clients_that_hold_nothing_are_forgotten() {
        let parts = ClientAccounts::new(Account::new(1 << 20));
        let kept = parts.of(Party::of(7));
        let charge = parts.of(Party::of(8)).charge(1).unwrap();
        for number in 100..=(100 + SWEEP_ABOVE_CLIENTS as u64) {
            parts.of(Party::of(number));
        }
        assert!(parts.clients.lock().len() <= 4);
        assert_eq!(parts.of(Party::of(8)).used(), 1);
        drop((kept, charge));
    }
}
