//! The door through which all JSON of guests is parsed. In memory, a text can become a hundred times its size, so that is charged before,
//! by what one pass over the text counts; and a long text is parsed without holding up other tasks.

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;

use crate::contract::told::Told;
use wharf_base::{
    accounts::{Account, Charge, Full},
    heavy::heavy,
    json_size,
};

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
    /// There is not enough memory for its values.
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
            self.pay(json_size::of(text.as_bytes(), T::LEVELS)).map_err(NotParsed::Full)?;
            let parsed = serde_json::from_str(text);
            parsed.map_err(|error| NotParsed::Malformed(Told::brief(format_args!("{error}"))))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

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
