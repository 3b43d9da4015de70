//! Accounts for the memory that wharf itself uses: one ledger, with an account for all plugins and one for each client.
//!
//! The memory of guests is counted by the sandbox (`total_memory_mib`). Everything else that a plugin or a client makes the
//! host keep or build is charged here (`total_host_memory_mib`) before it is allocated. How charges work is in
//! `wharf_sandbox::ledger`; this file decides how large each account is.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use wharf_protocol::RpcError;
pub use wharf_sandbox::ledger::{Account, Charge, Full};

/// What parsed JSON takes besides its text: for each value, for each member of an object, and for each array or object, which
/// allocates room for several entries at first.
const VALUE_BYTES: usize = 80;
const MEMBER_BYTES: usize = 200;
const GROUP_BYTES: usize = 400;
/// How many copies of a message's text exist at once at the most: the message itself, its parameters, its arguments.
const COPIES: usize = 4;
/// A message of at most this many bytes is not charged to its client, so that a client that has used up its share still gets
/// small answers, such as the one that says so.
const SMALL: usize = 64 << 10;

pub struct Ledger {
    whole: Account,
    plugins: Account,
    small: Account,
    /// How many messages were refused for want of room.
    refused: AtomicU64,
    /// The accounts of clients, by their names.
    clients: Mutex<HashMap<Arc<str>, Client>>,
}

struct Client {
    account: Account,
    /// How many [`Holder`]s of it there are.
    holders: usize,
}

/// A client's account, for as long as it is held.
pub struct Holder {
    ledger: Arc<Ledger>,
    name: Arc<str>,
    pub account: Account,
}

impl Drop for Holder {
    fn drop(&mut self) {
        let mut clients = self.ledger.clients.lock();
        if let Some(client) = clients.get_mut(&self.name) {
            client.holders -= 1;
            // While something is still charged, the entry stays, so that a client that comes back finds the same account.
            if client.holders == 0 && client.account.used() == 0 {
                clients.remove(&self.name);
            }
        }
    }
}

impl Ledger {
    pub fn new(bytes: usize) -> Arc<Self> {
        let whole = Account::new(bytes);
        let (plugins, small) = (whole.share(bytes / 4 * 3), whole.share(bytes / 8));
        Arc::new(Self { whole, plugins, small, refused: AtomicU64::new(0), clients: Mutex::default() })
    }

    /// The account of everybody together.
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

    /// An account for what one session makes wharf keep.
    pub fn session(&self) -> Account {
        self.whole.share(self.whole.limit() / 8)
    }

    /// The account of a client, such as the process that started wharf, or an address.
    pub fn client(self: &Arc<Self>, name: &str) -> Holder {
        let mut clients = self.clients.lock();
        // Clients that have left, and for which nothing is charged any more, are forgotten.
        if clients.len() > 1024 {
            clients.retain(|_, client| client.holders > 0 || client.account.used() > 0);
        }
        let name: Arc<str> = name.into();
        let share = self.whole.limit() / 2;
        let new = || Client { account: self.whole.share(share), holders: 0 };
        let client = clients.entry(Arc::clone(&name)).or_insert_with(new);
        client.holders += 1;
        let account = client.account.clone();
        Holder { ledger: Arc::clone(self), name, account }
    }

    /// Charges a message: a small one to an account that all clients share, a larger one to the client that sent it or is to
    /// get it.
    pub fn message(&self, client: &Account, bytes: usize) -> Result<Charge, Full> {
        let charged = if bytes <= SMALL { self.small.charge(bytes) } else { client.charge(bytes) };
        self.count(charged)
    }

    /// How many messages were refused for want of room.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Counts a refusal.
    fn count<T>(&self, charged: Result<T, Full>) -> Result<T, Full> {
        charged.inspect_err(|_| {
            self.refused.fetch_add(1, Ordering::Relaxed);
        })
    }

    /// Begins to charge a message that is still being received.
    pub fn incoming<'a>(&'a self, client: &'a Account) -> Incoming<'a> {
        Incoming { ledger: self, client, charge: self.small.open(), large: false }
    }
}

/// A message that is still being received, and what is charged for it so far.
pub struct Incoming<'a> {
    ledger: &'a Ledger,
    client: &'a Account,
    charge: Charge,
    large: bool,
}

impl Incoming<'_> {
    /// Raises the charge to so many bytes in all.
    pub fn cover(&mut self, bytes: usize) -> Result<(), Full> {
        if self.large || bytes <= SMALL {
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

/// The error for a client for whose request there is no memory left.
pub fn no_room(full: &Full) -> RpcError {
    RpcError::internal(format!("there is no room for it: {full} (total_host_memory_mib in [limits])"))
}

/// The most memory that a message with this text takes while it is handled.
pub fn message_bytes(text: &[u8]) -> usize {
    text.len().saturating_mul(COPIES).saturating_add(tree_bytes(text))
}

/// The most memory that a JSON text takes when it is parsed into a tree, found without parsing it.
pub fn tree_bytes(text: &[u8]) -> usize {
    let mut bytes = VALUE_BYTES;
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'"' | b',' | b':' | b'[' | b'{')) {
        let (here, after) = match rest.get(at..).and_then(<[u8]>::split_first) {
            Some(split) => split,
            None => break,
        };
        rest = after;
        bytes += match here {
            b',' => VALUE_BYTES,
            b':' => MEMBER_BYTES,
            b'"' => {
                rest = behind_string(rest);
                0
            }
            _ => GROUP_BYTES,
        };
    }
    bytes
}

/// What follows a string, if `text` begins right after its opening quote.
fn behind_string(text: &[u8]) -> &[u8] {
    let mut rest = text;
    while let Some(at) = memchr::memchr2(b'"', b'\\', rest) {
        let escaped = rest.get(at) == Some(&b'\\');
        rest = rest.get(at + if escaped { 2 } else { 1 }..).unwrap_or_default();
        if !escaped {
            return rest;
        }
    }
    &[]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_never_larger_than_thought() {
        // The numbers of values in the shapes that grow most, counted by hand.
        for (text, values) in
            [("7", 1), (r#"{"a":"b,c,d[[[","e":"\"["}"#, 3), ("[[0],[0],[0]]", 7), (r#"[{"a":1},{"b":[{}]}]"#, 6)]
        {
            assert!(tree_bytes(text.as_bytes()) >= values * VALUE_BYTES, "{text}");
        }
        let strings = format!("\"{}\"", ",[{:".repeat(1000));
        assert_eq!(tree_bytes(strings.as_bytes()), VALUE_BYTES, "what stands in a string is text");
        assert_eq!(tree_bytes(br#""a\\",1"#), 2 * VALUE_BYTES);
        for broken in ["\"", "\"\\", "[\"\\\"", ""] {
            tree_bytes(broken.as_bytes());
        }
    }

    #[test]
    fn small_messages_pass_who_has_used_its_share_up() {
        let ledger = Ledger::new(8 << 20);
        let client = ledger.client("a");
        let _held = ledger.message(&client.account, 4 << 20).unwrap();
        assert!(matches!(ledger.message(&client.account, SMALL + 1), Err(Full::Share { .. })));
        assert!(matches!(ledger.incoming(&client.account).cover(SMALL + 1), Err(Full::Share { .. })));
        assert_eq!(ledger.refused(), 2);
        let _small = ledger.message(&client.account, SMALL).unwrap();
        let other = ledger.client("b");
        assert!(ledger.message(&other.account, 1 << 20).is_ok());
        assert!(matches!(ledger.message(&other.account, 5 << 20), Err(Full::TooLarge { .. })));
    }

    #[test]
    fn clients_that_left_are_forgotten_when_they_owe_nothing() {
        let ledger = Ledger::new(8 << 20);
        let (one, same) = (ledger.client("a"), ledger.client("a"));
        let charge = one.account.charge(100).unwrap();
        assert_eq!(same.account.used(), 100);
        drop((one, same));
        assert_eq!(ledger.client("a").account.used(), 100, "what is kept counts when the client comes back");
        drop(charge);
        drop(ledger.client("a"));
        assert!(ledger.clients.lock().is_empty());
    }
}
