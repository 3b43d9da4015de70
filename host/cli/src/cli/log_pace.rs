//! Bounds how often the log says the same of a plugin. A client that makes a plugin fail with each call, or a plugin that logs without end,
//! would fill the disk of the log and keep the lines of others from being read.

use std::{collections::HashMap, fmt, time::Instant};

use parking_lot::Mutex;
use tracing::{
    Event, Level, Metadata,
    callsite::Identifier,
    field::{Field, Visit},
};
use tracing_subscriber::layer::{Context, Filter};

/// How many lines of one kind about one plugin may be written at once, and how many of them become possible again each second.
const MAX_LINES: f64 = 50.0;
const LINES_PER_SECOND: f64 = 1.0;
/// How many plugins and kinds are distinguished.
const MAX_KINDS: usize = 10_000;

pub struct Pace {
    kinds: Mutex<HashMap<(Identifier, String), Kind>>,
    /// Tells the operator how many lines were left out.
    tell: Box<dyn Fn(String) + Send + Sync>,
}

/// What was written from one place in the code about one plugin.
struct Kind {
    left: f64,
    at: Instant,
    left_out: u64,
}

impl Pace {
    /// `tell`: writes a notice after the line that may be written next.
    pub fn new(tell: impl Fn(String) + Send + Sync + 'static) -> Self {
        Self { kinds: Mutex::default(), tell: Box::new(tell) }
    }

    /// Whether a line may be written.
    fn may(&self, place: Identifier, plugin: String, now: Instant) -> bool {
        let mut kinds = self.kinds.lock();
        if kinds.len() >= MAX_KINDS {
            kinds.clear();
        }
        let kind = kinds.entry((place, plugin)).or_insert(Kind { left: MAX_LINES, at: now, left_out: 0 });
        let since = now.saturating_duration_since(kind.at).as_secs_f64();
        kind.left = (kind.left + since * LINES_PER_SECOND).min(MAX_LINES);
        kind.at = now;
        if kind.left < 1.0 {
            kind.left_out += 1;
            return false;
        }
        kind.left -= 1.0;
        let left_out = std::mem::take(&mut kind.left_out);
        if left_out > 0 {
            (self.tell)(format!(
                "{left_out} lines like the one before were left out: there were too many of this plugin"
            ));
        }
        true
    }
}

impl<S> Filter<S> for Pace {
    fn enabled(&self, _: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        true
    }

    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        // Who has turned on more detail wants all of it.
        if *event.metadata().level() > Level::INFO {
            return true;
        }
        let mut about = About(None);
        event.record(&mut about);
        about.0.is_none_or(|plugin| self.may(event.metadata().callsite(), plugin, Instant::now()))
    }
}

/// The plugin that an event is about.
struct About(Option<String>);

impl Visit for About {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "plugin" {
            self.0 = Some(format!("{value:?}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use super::*;

    #[test]
    fn what_is_said_again_and_again_is_left_out_and_counted() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let pace = Pace::new({
            let told = Arc::clone(&told);
            move |text| told.lock().push(text)
        });
        let place = tracing::callsite!(name: "a", kind: tracing::metadata::Kind::EVENT, fields: plugin);
        let place = tracing::Callsite::metadata(place).callsite();
        let began = Instant::now();
        let count = |plugin: &str, after: u64| {
            let now = began + Duration::from_secs(after);
            (0..1000).filter(|_| pace.may(place.clone(), plugin.to_owned(), now)).count()
        };
        assert_eq!((count("one", 0), count("other", 0)), (50, 50));
        assert_eq!((count("one", 3), count("one", 1000)), (3, 50));
        assert_eq!(
            *told.lock(),
            ["950", "997"].map(|count| {
                format!("{count} lines like the one before were left out: there were too many of this plugin")
            })
        );
    }
}
