//! Counters and histograms that many threads can add to at once, and tables of these with a bounded size.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;

use wharf_base::{
    party::Party,
    places::{Place, Places, PoolRule},
};

/// The upper bounds of the buckets of all histograms, in seconds. They range from a call in a fresh sandbox to one that waits for a person.
pub const BOUNDS: [f64; 19] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
    300.0,
];
/// The number of buckets, including the one without an upper bound.
const BUCKETS: usize = BOUNDS.len() + 1;

/// A number that many threads can change at once.
#[derive(Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub fn sub(&self, less: u64) {
        self.0.fetch_sub(less, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A histogram of durations.
#[derive(Default)]
pub struct Histogram {
    buckets: [Counter; BUCKETS],
    nanoseconds: Counter,
}

/// The contents of a histogram at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Counts {
    /// The number of durations in each bucket, not cumulative.
    pub buckets: [u64; BUCKETS],
    /// The sum of all durations.
    pub seconds: f64,
}

impl Counts {
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

impl Histogram {
    pub fn add(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        let at = BOUNDS.partition_point(|bound| *bound < seconds);
        if let Some(bucket) = self.buckets.get(at) {
            bucket.add(1);
        }
        self.nanoseconds.add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX >> 8));
    }

    #[expect(clippy::cast_precision_loss, reason = "a sum of durations need not be exact to the nanosecond")]
    pub fn counts(&self) -> Counts {
        let buckets = std::array::from_fn(|at| self.buckets.get(at).map_or(0, Counter::get));
        Counts { buckets, seconds: self.nanoseconds.get() as f64 / 1e9 }
    }
}

/// A table of counters or histograms by key, with a maximum number of keys.
pub struct Table<K, V> {
    places: Arc<Places>,
    all: Mutex<BTreeMap<K, One<V>>>,
}

struct One<V> {
    counted: Arc<V>,
    /// The place that the key takes; `None` for keys that collect what does not fit.
    _place: Option<Place>,
}

impl<K: Ord + Clone, V: Default> Table<K, V> {
    pub fn new(rule: &'static PoolRule, most: usize) -> Self {
        Self { places: Places::new(rule, most), all: Mutex::default() }
    }

    /// Returns the value for this key. If it is a new key and the party has no place for another one, returns the value for the key that
    /// `other` maps it to. There must be few such keys, because they take no place.
    pub fn get(&self, key: K, party: impl FnOnce() -> Party, other: impl FnOnce(K) -> K) -> Arc<V> {
        let mut all = self.all.lock();
        if let Some(found) = all.get(&key) {
            return Arc::clone(&found.counted);
        }
        let (key, place) = match self.places.take(party()) {
            Ok(place) => (key, Some(place)),
            Err(_) => (other(key), None),
        };
        Arc::clone(&all.entry(key).or_insert_with(|| One { counted: Arc::default(), _place: place }).counted)
    }

    /// Returns all current entries.
    pub fn entries(&self) -> Vec<(K, Arc<V>)> {
        self.all.lock().iter().map(|(key, one)| (key.clone(), Arc::clone(&one.counted))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_fall_into_the_bucket_that_ends_at_or_above_them() {
        let histogram = Histogram::default();
        for (micros, bucket) in [(0, 0), (100, 0), (101, 1), (999_999, 12), (300_000_000, 18), (300_000_001, 19)] {
            let before = histogram.counts();
            histogram.add(Duration::from_micros(micros));
            let after = histogram.counts();
            let grown: Vec<usize> = (0..BUCKETS).filter(|at| after.buckets[*at] != before.buckets[*at]).collect();
            assert_eq!(grown, [bucket], "{micros} µs");
        }
        assert_eq!(histogram.counts().count(), 6);
        assert!((histogram.counts().seconds - 601.000_201).abs() < 1e-6);
        assert!(BOUNDS.is_sorted());
    }

    static RULE: PoolRule = PoolRule {
        of: "series",
        number: "",
        taker: "plugin",
        until: "",
        asking: "",
        gone: "",
        gives_way: "",
        old: Duration::MAX,
    };

    #[test]
    fn tables_do_not_grow_beyond_their_bound() {
        let table: Table<&str, Counter> = Table::new(&RULE, 2);
        for key in ["a", "b", "c", "d", "a"] {
            table.get(key, || Party::SOLE, |_| "_OTHER").add(1);
        }
        let all: Vec<_> = table.entries().into_iter().map(|(key, counter)| (key, counter.get())).collect();
        assert_eq!(all, [("_OTHER", 2), ("a", 2), ("b", 1)]);
    }
}
