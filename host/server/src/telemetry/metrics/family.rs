//! A family of metrics at one moment: what is written as text, and what is sent.

use super::store::Counts;

/// The names of labels are wharf's own; their values need not be.
pub type Labels = Vec<(&'static str, String)>;

/// All series of one name.
#[derive(Debug, Clone)]
pub struct Family {
    /// Without its unit, and without the suffixes that its kind has.
    pub name: &'static str,
    pub help: &'static str,
    pub unit: Option<&'static str>,
    pub kind: Kind,
    pub points: Vec<Point>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows.
    Counter,
    Gauge,
    /// Always 1; what it says is in its labels.
    Info,
    Histogram,
}

/// One series.
#[derive(Debug, Clone)]
pub struct Point {
    pub labels: Labels,
    pub value: Value,
}

#[derive(Debug, Clone)]
pub enum Value {
    Whole(u64),
    Fraction(f64),
    Histogram(Counts),
}

impl Family {
    pub fn new(name: &'static str, help: &'static str, kind: Kind) -> Self {
        Self { name, help, unit: None, kind, points: Vec::new() }
    }

    pub fn in_unit(self, unit: &'static str) -> Self {
        Self { unit: Some(unit), ..self }
    }

    pub fn add(&mut self, labels: Labels, value: Value) {
        self.points.push(Point { labels, value });
    }

    /// With this one series, which has no labels.
    pub fn of(mut self, value: Value) -> Self {
        self.add(Vec::new(), value);
        self
    }
}
