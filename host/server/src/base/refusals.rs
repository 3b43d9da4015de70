//! What is refused to nobody in particular, told to the operator at a bounded rate: whoever can send can make it happen.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use super::text::{clip, escaped};

/// How often each kind of refusal is told.
const GAP: Duration = Duration::from_secs(10);

/// By what was refused: when it was told last, and how often it happened since.
#[derive(Default)]
pub struct Refusals(Mutex<HashMap<&'static str, (Instant, u64)>>);

impl Refusals {
    /// `what` is one of few.
    pub fn say(&self, what: &'static str) {
        self.say_of(what, String::new);
    }

    /// The same with what it was this time, such as who asked; it is made only if it is told.
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

    /// Whether it is to be told, and of how many more.
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
