//! Tells the operator about connections and requests that were refused, and counts them. The rate of what is told is limited,
//! because anybody who can connect can cause refusals. Each kind has a rate of its own, and within a kind nobody uses it up for others:
//! a message is about one client, until there have been messages about several.

use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use super::{
    party::Party,
    text::{clip, escaped},
};

/// The least time between two messages about one kind of refusal and one client.
const GAP: Duration = Duration::from_secs(10);
/// How many messages there are about one kind of refusal in this time.
const MOST: usize = 8;

/// Something that is refused: one of a few fixed texts, since each is kept for good, and the word under which it is counted.
#[derive(Debug, Clone, Copy)]
pub struct What {
    text: &'static str,
    reason: Reason,
}

/// Under which word a refusal is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Of those who could not say well enough who they are.
    Login(&'static str),
    /// Of all others.
    Other(&'static str),
}

impl What {
    pub const fn new(text: &'static str, reason: Reason) -> Self {
        Self { text, reason }
    }
}

impl From<&'static str> for What {
    fn from(text: &'static str) -> Self {
        Self::new(text, Reason::Other("other"))
    }
}

/// For each kind of refusal, what the log said of it last; and how often each has happened in all.
#[derive(Default)]
pub struct Refusals {
    told: Mutex<HashMap<&'static str, Told>>,
    counted: Mutex<BTreeMap<Reason, u64>>,
}

/// What the log said of one kind of refusal.
struct Told {
    /// When the first of the last messages was.
    at: Instant,
    /// Whom they were about. None: nobody in particular.
    about: Vec<Option<Party>>,
    /// How often it has happened since the last message.
    more: u64,
}

impl Refusals {
    pub fn say(&self, what: impl Into<What>) {
        self.say_of(what, String::new);
    }

    /// Counts a refusal of which the operator need not be told.
    pub fn add(&self, reason: Reason) {
        *self.counted.lock().entry(reason).or_default() += 1;
    }

    /// How often each kind has happened.
    pub fn counted(&self) -> BTreeMap<Reason, u64> {
        self.counted.lock().clone()
    }

    /// The same with a detail of this one refusal, such as who asked. The detail is made only if the message is written.
    pub fn say_of(&self, what: impl Into<What>, detail: impl FnOnce() -> String) {
        self.tell(what.into(), None, detail);
    }

    /// The same, about this client: what others do does not keep its own from the log.
    pub fn say_about(&self, client: Party, what: impl Into<What>, detail: impl FnOnce() -> String) {
        self.tell(what.into(), Some(client), detail);
    }

    fn tell(&self, what: What, about: Option<Party>, detail: impl FnOnce() -> String) {
        let What { text: what, reason } = what;
        self.add(reason);
        let Some(more) = self.count(what, about, Instant::now()) else { return };
        let detail = match detail() {
            detail if detail.is_empty() => detail,
            detail => format!(" ({})", escaped(&clip(&detail))),
        };
        match more {
            0 => tracing::warn!("refused: {what}{detail}"),
            more => tracing::warn!("refused: {what}{detail}, and {more} times more since this was told last"),
        }
    }

    /// None: nothing is to be said now. Otherwise how many refusals went unmentioned since the last message.
    fn count(&self, what: &'static str, about: Option<Party>, now: Instant) -> Option<u64> {
        let mut all = self.told.lock();
        let told = all.entry(what).or_insert_with(|| Told { at: now, about: Vec::new(), more: 0 });
        if now.duration_since(told.at) >= GAP {
            (told.at, told.about) = (now, Vec::new());
        }
        if told.about.len() >= MOST || told.about.contains(&about) {
            told.more += 1;
            return None;
        }
        told.about.push(about);
        Some(std::mem::take(&mut told.more))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::party::named;

    #[test]
    fn many_are_told_as_one() {
        let (refusals, now) = (Refusals::default(), Instant::now());
        assert_eq!(refusals.count("a", None, now), Some(0));
        assert_eq!((0..300).filter_map(|_| refusals.count("a", None, now)).count(), 0);
        assert_eq!(refusals.count("b", None, now), Some(0));
        assert_eq!(refusals.count("a", None, now + GAP), Some(300));
        assert_eq!(refusals.count("a", None, now + GAP * 2), Some(0));
    }

    #[test]
    fn a_stranger_keeps_nobody_else_out_of_the_log() {
        let (refusals, now) = (Refusals::default(), Instant::now());
        let told = |client: usize| refusals.count("a", Some(named(client)), now);
        assert_eq!((0..300).filter_map(|_| told(0)).count(), 1);
        assert_eq!(told(1), Some(299), "what is told of another says how much was not told");
        assert_eq!(told(1), None);
        assert_eq!((2..300).filter_map(told).count(), MOST - 2, "however many there are");
        assert_eq!(refusals.count("a", Some(named(0)), now + GAP), Some(292));
    }

    #[test]
    fn all_are_counted_whether_or_not_they_are_told() {
        let refusals = Refusals::default();
        let host = What::new("a host", Reason::Other("host"));
        for _ in 0..3 {
            refusals.say(host);
        }
        refusals.say("something that has no word of its own");
        refusals.add(Reason::Login("no_token"));
        let counted: Vec<_> = refusals.counted().into_iter().collect();
        let expected = [(Reason::Login("no_token"), 1), (Reason::Other("host"), 3), (Reason::Other("other"), 1)];
        assert_eq!(counted, expected);
    }
}
