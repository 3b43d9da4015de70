//! Accounts for the memory that wharf itself uses: one ledger, with an account for all plugins and one for each client.
//!
//! The memory of guests is counted by the sandbox (`total_memory_mib`). Everything else that a plugin or a client makes the
//! host keep or build is charged here (`total_host_memory_mib`) before it is allocated. [`crate::accounts`] implements charges;
//! this file decides how large each account is.

use std::{
    collections::HashMap,
    ops::Deref,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use wharf_protocol::RpcError;

use super::party::Party;
pub use super::{
    accounts::{Account, Charge, Charged, Full},
    json_size::tree_bytes,
};

/// The maximum number of copies of a message's text at once, such as the message itself, its parameters and its arguments.
const MAX_COPIES: usize = 4;
/// A message of at most this many bytes is charged to an account of its client that is for small messages only, so that a client
/// that has used up its share still gets small answers, such as the error that says so.
const SMALL_MESSAGE_BYTES: usize = 64 << 10;

/// One client may hold at most this many times the free memory. Charges differ much in size, so the factor is smaller than for places.
const TIMES_FREE: usize = 1;

/// The accounts for all host memory. A quarter is for connections only and an eighth for small messages only, so that clients are
/// answered however full the rest is. Plugins and large messages share the rest, and each leaves an eighth of the whole to the other.
pub struct Ledger {
    whole: Account,
    connections: Account,
    small: Account,
    plugins: Account,
    /// Pays for everything that clients make wharf hold, except small messages.
    large: Account,
    /// How many messages were refused for lack of memory.
    refused: AtomicU64,
    clients: Mutex<HashMap<Party, Entry>>,
}

/// The accounts of a client.
struct Entry {
    all: Account,
    small: Account,
    held: Weak<Held>,
}

impl Entry {
    fn owes(&self) -> bool {
        self.all.used() > 0 || self.small.used() > 0
    }
}

/// A client's accounts, for as long as they are held. Clones share the same accounts. Dereferences to the account for everything but
/// the client's small messages.
#[derive(Clone)]
pub struct Accounts(Arc<Held>);

struct Held {
    ledger: Arc<Ledger>,
    party: Party,
    all: Account,
    small: Account,
}

impl Accounts {
    pub fn party(&self) -> Party {
        self.0.party
    }

    /// Returns an account within this one for what one session makes wharf hold: at most an eighth of all host memory.
    pub fn session(&self) -> Account {
        self.0.all.share(self.0.ledger.whole.limit() / 8)
    }
}

impl Deref for Accounts {
    type Target = Account;

    fn deref(&self) -> &Account {
        &self.0.all
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut clients = self.ledger.clients.lock();
        // While something is still charged, the entry stays, so that a client that comes back finds the same accounts.
        if clients.get(&self.party).is_some_and(|entry| entry.held.strong_count() == 0 && !entry.owes()) {
            clients.remove(&self.party);
        }
    }
}

impl Ledger {
    pub fn new(bytes: usize) -> Arc<Self> {
        let whole = Account::new(bytes);
        let (connections, small) = (whole.share(bytes / 4), whole.share(bytes / 8));
        // Plugins and large messages each leave an eighth of the whole to the other.
        let rest = whole.share(bytes - bytes / 4 - bytes / 8);
        let (plugins, large) = (rest.share(bytes / 2), rest.share(bytes / 2));
        let (refused, clients) = (AtomicU64::new(0), Mutex::default());
        Arc::new(Self { whole, connections, small, plugins, large, refused, clients })
    }

    /// The account that contains all others.
    pub fn whole(&self) -> &Account {
        &self.whole
    }

    /// The account that pays for compiled code and for the lists of plugins.
    pub fn plugins(&self) -> &Account {
        &self.plugins
    }

    /// An account for the lists of one plugin.
    pub fn plugin(&self) -> Account {
        self.plugins.share(self.whole.limit() / 8)
    }

    /// The account that pays for what each connection may take before its client is known.
    pub fn connections(&self) -> &Account {
        &self.connections
    }

    /// The accounts of a client.
    pub fn client(self: &Arc<Self>, party: Party) -> Accounts {
        let mut clients = self.clients.lock();
        // Clients that have left, and for which nothing is charged any more, are forgotten.
        if clients.len() > 1024 {
            clients.retain(|_, entry| entry.held.strong_count() > 0 || entry.owes());
        }
        let new = || Entry {
            all: self.large.dynamic_share(TIMES_FREE, 0),
            small: self.small.dynamic_share(TIMES_FREE, 0),
            held: Weak::new(),
        };
        let entry = clients.entry(party).or_insert_with(new);
        if let Some(held) = entry.held.upgrade() {
            return Accounts(held);
        }
        let (all, small) = (entry.all.clone(), entry.small.clone());
        let held = Arc::new(Held { ledger: Arc::clone(self), party, all, small });
        entry.held = Arc::downgrade(&held);
        Accounts(held)
    }

    /// Charges a message to the client that sent it or is to get it.
    pub fn message(&self, client: &Accounts, bytes: usize) -> Result<Charge, Full> {
        let account = if bytes <= SMALL_MESSAGE_BYTES { &client.0.small } else { &client.0.all };
        self.count(account.charge(bytes))
    }

    /// How many messages were refused for lack of memory.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Counts the message as refused if it could not be charged.
    fn count<T>(&self, charged: Result<T, Full>) -> Result<T, Full> {
        charged.inspect_err(|_| {
            self.refused.fetch_add(1, Ordering::Relaxed);
        })
    }

    /// Begins to charge a message that is still being received.
    pub fn incoming<'a>(&'a self, client: &'a Accounts) -> Incoming<'a> {
        Incoming { ledger: self, client, charge: client.0.small.open(), large: false }
    }
}

/// A message that is still being received, and what is charged for it so far.
pub struct Incoming<'a> {
    ledger: &'a Ledger,
    client: &'a Accounts,
    charge: Charge,
    large: bool,
}

impl Incoming<'_> {
    /// Raises the charge to this many bytes in total.
    pub fn cover(&mut self, bytes: usize) -> Result<(), Full> {
        if self.large || bytes <= SMALL_MESSAGE_BYTES {
            return self.ledger.count(self.charge.cover(bytes));
        }
        self.charge = self.ledger.count(self.client.charge(bytes))?;
        self.large = true;
        Ok(())
    }

    pub fn into_charge(self) -> Charge {
        self.charge
    }
}

/// Returns the error for a request for which there is no memory left.
pub fn no_room(full: &Full) -> RpcError {
    RpcError::internal(format!(
        "there is not enough memory for it: {full} (a share of total_host_memory_mib in [limits])"
    ))
}

/// Returns an upper bound for the memory that a message with this text takes while it is handled.
pub fn message_bytes(text: &[u8]) -> usize {
    text.len().saturating_mul(MAX_COPIES).saturating_add(tree_bytes(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(ledger: &Arc<Ledger>, number: u64) -> Accounts {
        ledger.client(Party::of(number))
    }

    #[test]
    fn small_messages_pass_who_has_used_its_share_up() {
        let ledger = Ledger::new(8 << 20);
        let one = client(&ledger, 1);
        let _held = ledger.message(&one, 2 << 20).unwrap();
        assert!(matches!(ledger.message(&one, SMALL_MESSAGE_BYTES + 1), Err(Full::Share { .. })));
        assert!(matches!(ledger.incoming(&one).cover(SMALL_MESSAGE_BYTES + 1), Err(Full::Share { .. })));
        assert_eq!(ledger.refused(), 2);
        let _small = ledger.message(&one, SMALL_MESSAGE_BYTES).unwrap();
        let other = client(&ledger, 2);
        assert!(ledger.message(&other, 1 << 20).is_ok());
        assert!(matches!(ledger.message(&other, 5 << 20), Err(Full::TooLarge { .. })));
    }

    #[test]
    fn small_messages_of_one_client_leave_room_for_those_of_others() {
        let ledger = Ledger::new(64 << 20);
        let (one, other) = (client(&ledger, 1), client(&ledger, 2));
        // Bodies that are never completed.
        let mut unfinished = Vec::new();
        let full = loop {
            let mut incoming = ledger.incoming(&one);
            match incoming.cover(SMALL_MESSAGE_BYTES) {
                Ok(()) => unfinished.push(incoming.into_charge()),
                Err(full) => break full,
            }
        };
        assert!(matches!(full, Full::Share { .. }), "{full}");
        assert_eq!(unfinished.len() * SMALL_MESSAGE_BYTES, 4 << 20, "half of the eighth that is for small messages");
        for _ in 0..16 {
            unfinished.push(ledger.message(&other, SMALL_MESSAGE_BYTES).unwrap());
        }
    }

    #[test]
    fn whoever_fills_the_rest_leaves_connections_and_small_messages() {
        let ledger = Ledger::new(64 << 20);
        let mut held = Vec::new();
        for number in 0..100 {
            let greedy = client(&ledger, number);
            held.extend(std::iter::from_fn(|| ledger.message(&greedy, SMALL_MESSAGE_BYTES + 1).ok()));
        }
        assert_eq!(ledger.plugins().left() >> 20, 8, "they leave an eighth to plugins");
        held.extend(std::iter::from_fn(|| ledger.plugins().charge(SMALL_MESSAGE_BYTES).ok()));
        assert!(ledger.plugins().left() < SMALL_MESSAGE_BYTES);
        assert!(ledger.message(&client(&ledger, 200), SMALL_MESSAGE_BYTES).is_ok());
        assert!(ledger.connections().charge(16 << 20).is_ok());
    }

    #[test]
    fn sessions_hold_no_more_than_their_client() {
        let ledger = Ledger::new(64 << 20);
        let (one, other) = (client(&ledger, 1), client(&ledger, 2));
        let sessions: Vec<Account> = (0..12).map(|_| one.session()).collect();
        let held: Vec<Charge> =
            sessions.iter().flat_map(|session| std::iter::from_fn(|| session.charge(1 << 20).ok())).collect();
        assert_eq!((held.len(), sessions[0].used()), (16, 8 << 20), "half of 32 MiB, an eighth of all in each session");
        assert!(ledger.message(&other, 8 << 20).is_ok());
    }

    #[test]
    fn clients_that_left_are_forgotten_when_they_owe_nothing() {
        let ledger = Ledger::new(8 << 20);
        let (one, same) = (client(&ledger, 1), client(&ledger, 1));
        let charge = one.charge(100).unwrap();
        assert_eq!(same.used(), 100);
        drop((one, same));
        assert_eq!(client(&ledger, 1).used(), 100, "what is still charged counts when the client comes back");
        drop(charge);
        drop(client(&ledger, 1));
        assert!(ledger.clients.lock().is_empty());
    }
}
