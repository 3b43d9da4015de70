//! Families of metrics with their values at one moment, from which both the Prometheus text and the OTLP messages are built.

use super::store::Counts;

/// Labels: names that wharf defines, with their values.
pub type Labels = Vec<(&'static str, String)>;

/// All series with one name.
#[derive(Debug, Clone)]
pub struct Family {
    /// The name without the unit and without the suffix of its kind.
    pub name: &'static str,
    pub help: &'static str,
    pub unit: Option<&'static str>,
    pub kind: Kind,
    pub points: Vec<Point>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A value that only grows.
    Counter,
    Gauge,
    /// A constant 1; the information is in the labels.
    Info,
    Histogram,
}

/// One series, with its value.
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

    /// Adds a series without labels and returns the family.
    pub fn of(mut self, value: Value) -> Self {
        self.add(Vec::new(), value);
        self
    }
}
