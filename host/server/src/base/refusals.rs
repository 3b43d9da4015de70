//! Tells the operator about connections and requests that were refused, and counts them. The rate of what is told is limited,
//! because anybody who can connect can cause refusals.

use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use super::text::{clip, escaped};

/// The least time between two messages about one kind of refusal.
const GAP: Duration = Duration::from_secs(10);

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

/// For each kind of refusal, when the log mentioned it last, and how often it has happened since; and how often each has happened
/// in all.
#[derive(Default)]
pub struct Refusals {
    told: Mutex<HashMap<&'static str, (Instant, u64)>>,
    counted: Mutex<BTreeMap<Reason, u64>>,
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
        let What { text: what, reason } = what.into();
        self.add(reason);
        let Some(more) = self.count(what, Instant::now()) else { return };
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
    fn count(&self, what: &'static str, now: Instant) -> Option<u64> {
        let mut told = self.told.lock();
        match told.get_mut(what) {
            Some((at, more)) if now.duration_since(*at) < GAP => {
                *more += 1;
                None
            }
            Some((at, more)) => {
                *at = now;
                Some(std::mem::take(more))
            }
            None => {
                told.insert(what, (now, 0));
                Some(0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_are_told_as_one() {
        let (refusals, now) = (Refusals::default(), Instant::now());
        assert_eq!(refusals.count("a", now), Some(0));
        assert_eq!((0..300).filter_map(|_| refusals.count("a", now)).count(), 0);
        assert_eq!(refusals.count("b", now), Some(0));
        assert_eq!(refusals.count("a", now + GAP), Some(300));
        assert_eq!(refusals.count("a", now + GAP * 2), Some(0));
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
