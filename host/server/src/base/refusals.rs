//! Tells the operator about connections and requests that were refused. The rate is limited, because anybody who can connect
//! can cause refusals.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use super::text::{clip, escaped};

/// The least time between two messages about one kind of refusal.
const GAP: Duration = Duration::from_secs(10);

/// For each kind of refusal, when the log mentioned it last, and how often it has happened since.
#[derive(Default)]
pub struct Refusals(Mutex<HashMap<&'static str, (Instant, u64)>>);

impl Refusals {
    /// `what` must be one of a few fixed texts, since each is kept for good.
    pub fn say(&self, what: &'static str) {
        self.say_of(what, String::new);
    }

    /// The same with a detail of this one refusal, such as who asked. The detail is made only if the message is written.
    pub fn say_of(&self, what: &'static str, detail: impl FnOnce() -> String) {
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
        let mut told = self.0.lock();
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
}
