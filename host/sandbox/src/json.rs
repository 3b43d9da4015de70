//! The door through which all JSON of guests is parsed. In memory, a text can become a hundred times its size, so that is charged before,
//! by what one pass over the text counts; and a long text is parsed without holding up other tasks.

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    heavy::heavy,
    ledger::{Account, Charge, Full},
    told::Told,
};

/// The memory that parsed JSON takes besides its text: for each value, for each member of an object, and for each array or object,
/// which allocates room for several entries at first.
const VALUE_BYTES: usize = 80;
const MEMBER_BYTES: usize = 160;
const ARRAY_BYTES: usize = 320;
const OBJECT_BYTES: usize = 280;

/// What is made of a text.
pub trait Parsed<'t>: Deserialize<'t> {
    /// How many levels of arrays and objects are taken apart. Whatever is deeper remains text, or is skipped.
    const LEVELS: usize;
}

impl Parsed<'_> for String {
    const LEVELS: usize = 0;
}

impl Parsed<'_> for Value {
    const LEVELS: usize = usize::MAX;
}

impl Parsed<'_> for serde_json::Map<String, Value> {
    const LEVELS: usize = usize::MAX;
}

/// Why a text is not parsed.
#[derive(Debug, thiserror::Error)]
pub enum NotParsed {
    /// There is no memory for what it would become.
    #[error("there is not enough memory for it: {0}")]
    Full(Full),
    /// It is not JSON, or not what is expected. The text says why.
    #[error("{0}")]
    Malformed(Told),
}

/// The memory for everything that is parsed through it, until it is dropped.
#[derive(Debug)]
pub struct Room(Mutex<Held>);

#[derive(Debug)]
struct Held {
    charge: Charge,
    /// How many of the charged bytes are used.
    used: usize,
}

impl Room {
    /// Creates a room without bytes, which takes from this account what is needed.
    pub fn of(account: &Account) -> Self {
        Self::paid(account.open())
    }

    /// Creates a room of bytes that are charged already. It takes more from the same account if they do not suffice.
    pub fn paid(charge: Charge) -> Self {
        Self(Mutex::new(Held { charge, used: 0 }))
    }

    /// Charges this many bytes for something else that is held for as long.
    pub fn pay(&self, bytes: usize) -> Result<(), Full> {
        let mut held = self.0.lock();
        let used = held.used.saturating_add(bytes);
        held.charge.cover(used)?;
        held.used = used;
        Ok(())
    }

    /// Parses a text of a guest. The caller charges for the text itself, and for copies of it.
    pub fn parse<'t, T: Parsed<'t>>(&self, text: &'t str) -> Result<T, NotParsed> {
        heavy(text.len(), || {
            self.pay(expanded(text.as_bytes(), T::LEVELS)).map_err(NotParsed::Full)?;
            let parsed = serde_json::from_str(text);
            parsed.map_err(|error| NotParsed::Malformed(Told::brief(format_args!("{error}"))))
        })
    }
}

/// Returns an upper bound for the memory that a JSON text takes when it is parsed into a tree, without parsing it.
pub fn tree_bytes(text: &[u8]) -> usize {
    expanded(text, usize::MAX)
}

/// Returns an upper bound for what is made of so many levels of a JSON text.
fn expanded(text: &[u8], levels: usize) -> usize {
    let (mut bytes, mut level) = (VALUE_BYTES, 0_usize);
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'"' | b',' | b':' | b'[' | b'{' | b']' | b'}')) {
        let (here, after) = match rest.get(at..).and_then(<[u8]>::split_first) {
            Some(split) => split,
            None => break,
        };
        rest = after;
        let takes = match here {
            b',' => VALUE_BYTES,
            b':' => MEMBER_BYTES,
            b'"' => {
                rest = after_string(rest);
                0
            }
            b']' | b'}' => {
                level = level.saturating_sub(1);
                0
            }
            group => {
                level += 1;
                if *group == b'[' { ARRAY_BYTES } else { OBJECT_BYTES }
            }
        };
        if level <= levels {
            bytes += takes;
        }
    }
    bytes
}

/// Returns what follows a string. `text` begins right after the opening quote.
fn after_string(text: &[u8]) -> &[u8] {
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
    use serde_json::value::RawValue;

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
        assert_eq!(tree_bytes(strings.as_bytes()), VALUE_BYTES, "the contents of a string are not counted");
        assert_eq!(tree_bytes(br#""a\\",1"#), 2 * VALUE_BYTES);
        for broken in ["\"", "\"\\", "[\"\\\"", "", "]]]}"] {
            tree_bytes(broken.as_bytes());
        }
    }

    /// What a tree allocates: an object has an entry of a hash, a name and a value for each member, and a table of indices. Both, and
    /// arrays, double when they are full.
    #[test]
    fn an_object_of_any_size_is_charged() {
        let value = size_of::<Value>();
        let entry = size_of::<usize>() + size_of::<String>() + value;
        assert!(ARRAY_BYTES >= 4 * value, "the first allocation of an array");
        for members in 1..200_usize {
            let buckets = [4, 8, 16, 32, 64, 128, 256].into_iter().find(|buckets| buckets * 7 / 8 >= members).unwrap();
            // Allocators have four sizes between a power of two and the next.
            let size = |bytes: usize| bytes.next_multiple_of((bytes.next_power_of_two() / 8).max(16));
            let takes = size(entry * (buckets * 7 / 8)) + size(buckets * 9 + 16);
            let text = format!("{{{}}}", vec!["\"\":0"; members].join(","));
            let charged = tree_bytes(text.as_bytes()) - VALUE_BYTES;
            assert!(charged >= takes, "{members} members take {takes} bytes, and {charged} are charged");
        }
    }

    #[derive(Deserialize)]
    struct Shallow<'t> {
        #[serde(borrow)]
        all: Vec<&'t RawValue>,
    }

    impl<'t> Parsed<'t> for Shallow<'t> {
        const LEVELS: usize = 2;
    }

    #[test]
    fn only_what_is_taken_apart_is_charged() {
        let account = Account::new(1 << 20);
        let deep = format!(r#"{{"all":[[{0}],[{0}]]}}"#, "0,".repeat(20_000) + "0");
        let room = Room::of(&account);
        assert_eq!(room.parse::<Shallow<'_>>(&deep).unwrap().all.len(), 2);
        assert!((1..2000).contains(&account.used()), "{}", account.used());
        let wide = format!(r#"{{"all":[{}0]}}"#, "0,".repeat(20_000));
        assert!(matches!(room.parse::<Shallow<'_>>(&wide), Err(NotParsed::Full(_))));
        assert!(matches!(room.parse::<Value>(&deep), Err(NotParsed::Full(_))));
        drop(room);
        assert_eq!(account.used(), 0);
    }

    #[test]
    fn a_room_is_as_large_as_all_that_is_in_it() {
        let account = Account::new(1000);
        let room = Room::paid(account.charge(300).unwrap());
        for used in [300, 300, 300, 320, 400] {
            room.parse::<Value>("7").unwrap();
            assert_eq!(account.used(), used);
        }
    }

    #[test]
    fn what_is_wrong_is_told_in_brief() {
        let room = Room::of(&Account::new(1 << 20));
        let text = format!("\"{}\"", "x".repeat(1 << 20));
        let NotParsed::Malformed(told) = room.parse::<serde_json::Map<String, Value>>(&text).unwrap_err() else {
            panic!("there is room")
        };
        assert!(told.starts_with("invalid type: string \"xxx") && told.len() < 1100, "{}", told.len());
    }
}
