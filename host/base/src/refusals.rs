//! Logs connections and requests that were refused, and counts them. Log messages are rate-limited, because anybody who can connect can
//! cause refusals. Each kind of refusal has its own limit, and within a kind each client causes at most one message per interval, so
//! that one client does not keep the refusals of others out of the log.

use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use super::{
    party::Party,
    text::{clip, escaped},
};

/// The minimum time between two messages about one kind of refusal of one client.
const LOG_INTERVAL: Duration = Duration::from_secs(10);
/// The maximum number of messages about one kind of refusal in this time.
const MAX_MESSAGES: usize = 8;

/// A kind of refusal: the text for the log, and the reason under which it is counted. The texts are fixed and few, since each is stored
/// forever.
#[derive(Debug, Clone, Copy)]
pub struct What {
    text: &'static str,
    reason: Reason,
}

/// The label under which a refusal is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Refusals of clients that failed to authenticate.
    Login(&'static str),
    /// All other refusals.
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

/// What was last logged about each kind of refusal, and how often each reason has occurred in total.
#[derive(Default)]
pub struct Refusals {
    told: Mutex<HashMap<&'static str, Told>>,
    counted: Mutex<BTreeMap<Reason, u64>>,
}

/// The latest messages about one kind of refusal.
struct Told {
    /// When the first message of the current interval was logged.
    at: Instant,
    /// The clients that the messages were about. None: no particular client.
    about: Vec<Option<Party>>,
    /// How often it has happened since the last message.
    unlogged: u64,
}

impl Refusals {
    /// Counts and logs a refusal.
    pub fn say(&self, what: impl Into<What>) {
        self.say_of(what, String::new);
    }

    /// Counts a refusal without logging it.
    pub fn add(&self, reason: Reason) {
        *self.counted.lock().entry(reason).or_default() += 1;
    }

    /// Returns how often each reason has occurred.
    pub fn counted(&self) -> BTreeMap<Reason, u64> {
        self.counted.lock().clone()
    }

    /// Counts and logs a refusal with a detail, such as who asked. The detail is computed only if the message is logged.
    pub fn say_of(&self, what: impl Into<What>, detail: impl FnOnce() -> String) {
        self.tell(what.into(), None, detail);
    }

    /// Counts and logs a refusal of this client. Refusals of other clients do not suppress its message.
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
            more => tracing::warn!("refused: {what}{detail}, and {more} more since the last message about it"),
        }
    }

    /// Returns how many refusals were not logged since the last message. None: this refusal is not logged either.
    fn count(&self, what: &'static str, about: Option<Party>, now: Instant) -> Option<u64> {
        let mut all = self.told.lock();
        let told = all.entry(what).or_insert_with(|| Told { at: now, about: Vec::new(), unlogged: 0 });
        if now.duration_since(told.at) >= LOG_INTERVAL {
            (told.at, told.about) = (now, Vec::new());
        }
        if told.about.len() >= MAX_MESSAGES || told.about.contains(&about) {
            told.unlogged += 1;
            return None;
        }
        told.about.push(about);
        Some(std::mem::take(&mut told.unlogged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::party::named;

    #[test]
    fn many_are_told_as_one() {
        let (refusals, now) = (Refusals::default(), Instant::now());
        assert_eq!(refusals.count("a", None, now), Some(0));
        assert_eq!((0..300).filter_map(|_| refusals.count("a", None, now)).count(), 0);
        assert_eq!(refusals.count("b", None, now), Some(0));
        assert_eq!(refusals.count("a", None, now + LOG_INTERVAL), Some(300));
        assert_eq!(refusals.count("a", None, now + LOG_INTERVAL * 2), Some(0));
    }

    #[test]
    fn a_stranger_keeps_nobody_else_out_of_the_log() {
        let (refusals, now) = (Refusals::default(), Instant::now());
        let told = |client: usize| refusals.count("a", Some(named(client)), now);
        assert_eq!((0..300).filter_map(|_| told(0)).count(), 1);
        assert_eq!(told(1), Some(299), "the message about another client counts the refusals that were not logged");
        assert_eq!(told(1), None);
        assert_eq!((2..300).filter_map(told).count(), MAX_MESSAGES - 2, "however many there are");
        assert_eq!(refusals.count("a", Some(named(0)), now + LOG_INTERVAL), Some(292));
    }

    #[test]
    fn all_are_counted_whether_or_not_they_are_told() {
        let refusals = Refusals::default();
        let host = What::new("a host", Reason::Other("host"));
        for _ in 0..3 {
            refusals.say(host);
        }
        refusals.say("something without a reason of its own");
        refusals.add(Reason::Login("no_token"));
        let counted: Vec<_> = refusals.counted().into_iter().collect();
        let expected = [(Reason::Login("no_token"), 1), (Reason::Other("host"), 3), (Reason::Other("other"), 1)];
        assert_eq!(counted, expected);
    }
}
