//! Encodes families as text for Prometheus (OpenMetrics 1.0).

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text},
    metrics::MetricType,
    registry::{Registry, Unit},
};

use super::{
    family::{Family, Kind, Point, Value},
    store::{BOUNDS, Counts},
};

pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Encodes all families as text.
pub fn encode(families: Vec<Family>) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Families(families)));
    let mut text = String::new();
    // Writing to a string cannot fail.
    text::encode(&mut text, &registry).ok();
    text
}

#[derive(Debug)]
struct Families(Vec<Family>);

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        for family in self.0.iter().filter(|family| !family.points.is_empty()) {
            let unit = family.unit.map(|unit| Unit::Other(unit.to_owned()));
            let kind = match family.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
                Kind::Info => MetricType::Info,
                Kind::Histogram => MetricType::Histogram,
            };
            let mut metric = encoder.encode_descriptor(family.name, family.help, unit.as_ref(), kind)?;
            for Point { labels, value } in &family.points {
                if family.kind == Kind::Info {
                    metric.encode_info(labels)?;
                } else if labels.is_empty() {
                    point(&mut metric, family.kind, value)?;
                } else {
                    point(&mut metric.encode_family(labels)?, family.kind, value)?;
                }
            }
        }
        Ok(())
    }
}

fn point(metric: &mut MetricEncoder<'_>, kind: Kind, value: &Value) -> Result<(), std::fmt::Error> {
    match (kind, value) {
        (Kind::Counter, Value::Whole(value)) => metric.encode_counter::<NoLabelSet, u64, f64>(value, None),
        (Kind::Counter, Value::Fraction(value)) => metric.encode_counter::<NoLabelSet, f64, f64>(value, None),
        (_, Value::Whole(value)) => metric.encode_gauge(value),
        (_, Value::Fraction(value)) => metric.encode_gauge(value),
        (_, Value::Histogram(counts)) => {
            let Counts { buckets, seconds } = counts;
            let bounds = BOUNDS.into_iter().chain([f64::INFINITY]);
            let buckets: Vec<(f64, u64)> = bounds.zip(buckets.iter().copied()).collect();
            metric.encode_histogram::<NoLabelSet>(*seconds, counts.count(), &buckets, None)
        }
    }
}
