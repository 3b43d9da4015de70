//! Who pays for the memory that wharf itself uses: one ledger, with an account for plugins and one for each client.
//!
//! What guests hold is in the sandbox's own account (`total_memory_mib`); everything else that a plugin or a client makes the
//! host keep or build is charged here (`total_host_memory_mib`) before it is taken. How charges work is in
//! `wharf_sandbox::ledger`; this file says whose account is how large.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use wharf_protocol::RpcError;
pub use wharf_sandbox::ledger::{Account, Charge, Full};

/// What a JSON value takes beside its text: for each value, and for each array or object, which begins with room for some.
const VALUE_BYTES: usize = 80;
const MEMBER_BYTES: usize = 200;
const GROUP_BYTES: usize = 400;
/// How often the text of a message is held at once at the most: as it came, as parameters, as arguments.
const COPIES: usize = 4;
/// A request that needs no more than this needs no room in its client's share, so that somebody who has used it up still
/// gets small answers, such as that there is no room.
const SMALL: usize = 64 << 10;

pub struct Ledger {
    whole: Account,
    plugins: Account,
    small: Account,
    /// Accounts of clients that are there, by who they are.
    clients: Mutex<HashMap<Arc<str>, Client>>,
}

struct Client {
    account: Account,
    /// How many hold it.
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
            // What is charged still keeps the account itself.
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
        Arc::new(Self { whole, plugins, small, clients: Mutex::default() })
    }

    /// Pays for compiled code, and for what plugins list.
    pub fn plugins(&self) -> &Account {
        &self.plugins
    }

    /// What one plugin may list.
    pub fn plugin(&self) -> Account {
        self.plugins.share(self.whole.limit() / 8)
    }

    /// What one session may have kept for it.
    pub fn session(&self) -> Account {
        self.whole.share(self.whole.limit() / 8)
    }

    /// The account of a client: who started the process, or an address.
    pub fn client(self: &Arc<Self>, name: &str) -> Holder {
        let mut clients = self.clients.lock();
        // Who has left and owes nothing is forgotten.
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

    /// Charges a message: what is small to all, what is not to who sent it or is to get it.
    pub fn message(&self, client: &Account, bytes: usize) -> Result<Charge, Full> {
        if bytes <= SMALL { self.small.charge(bytes) } else { client.charge(bytes) }
    }

    /// Pays for a message while it comes in.
    pub fn incoming<'a>(&self, client: &'a Account) -> Incoming<'a> {
        Incoming { client, charge: self.small.open(), large: false }
    }
}

/// A message that is not there yet, and what is paid for it so far.
pub struct Incoming<'a> {
    client: &'a Account,
    charge: Charge,
    large: bool,
}

impl Incoming<'_> {
    /// Pays for so many bytes in all.
    pub fn cover(&mut self, bytes: usize) -> Result<(), Full> {
        if self.large || bytes <= SMALL {
            return self.charge.cover(bytes);
        }
        self.charge = self.client.charge(bytes)?;
        self.large = true;
        Ok(())
    }

    pub fn into_charge(self) -> Charge {
        self.charge
    }
}

/// What somebody is told for whom there is no room.
pub fn no_room(full: &Full) -> RpcError {
    RpcError::internal(format!("there is no room for it: {full} (total_host_memory_mib in [limits])"))
}

/// What a message of this text comes to, all in all, while it is worked on.
pub fn message_bytes(text: &[u8]) -> usize {
    text.len().saturating_mul(COPIES).saturating_add(tree_bytes(text))
}

/// What the values in a JSON text take when they are read into a tree, at the most: found without reading them.
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

/// What follows a string whose first quote is gone.
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
        // What an allocator was asked for, counted by hand for the shapes that grow most.
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
