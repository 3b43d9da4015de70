//! Converts metrics to OTLP. They are the same metrics that Prometheus scrapes, and a collector that exports them to Prometheus produces
//! the same names.

use opentelemetry_proto::tonic::{
    common::v1::KeyValue,
    metrics::v1::{
        AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, Sum, metric::Data,
        number_data_point,
    },
};

use super::attributes::text;
use crate::telemetry::metrics::{BOUNDS, Family, Kind, Labels, Value};

/// Converts families to OTLP metrics. `since`: the time at which counting began. `now`: the time of the values.
pub fn of(families: Vec<Family>, since: u64, now: u64) -> Vec<Metric> {
    families.into_iter().filter(|family| !family.points.is_empty()).map(|family| metric(family, since, now)).collect()
}

fn metric(family: Family, since: u64, now: u64) -> Metric {
    let Family { name, help, unit, kind, points } = family;
    let cumulative = AggregationTemporality::Cumulative.into();
    let data = if kind == Kind::Histogram {
        let data_points = points.into_iter().filter_map(|point| {
            let Value::Histogram(counts) = point.value else { return None };
            Some(HistogramDataPoint {
                attributes: attributes(point.labels),
                start_time_unix_nano: since,
                time_unix_nano: now,
                count: counts.count(),
                sum: Some(counts.seconds),
                bucket_counts: counts.buckets.to_vec(),
                explicit_bounds: BOUNDS.to_vec(),
                ..HistogramDataPoint::default()
            })
        });
        Data::Histogram(Histogram { data_points: data_points.collect(), aggregation_temporality: cumulative })
    } else {
        let data_points = points.into_iter().filter_map(|point| {
            let value = match point.value {
                Value::Whole(value) => number_data_point::Value::AsInt(i64::try_from(value).unwrap_or(i64::MAX)),
                Value::Fraction(value) => number_data_point::Value::AsDouble(value),
                Value::Histogram(_) => return None,
            };
            Some(NumberDataPoint {
                attributes: attributes(point.labels),
                start_time_unix_nano: if kind == Kind::Counter { since } else { 0 },
                time_unix_nano: now,
                value: Some(value),
                ..NumberDataPoint::default()
            })
        });
        let data_points = data_points.collect();
        match kind {
            Kind::Counter => Data::Sum(Sum { data_points, aggregation_temporality: cumulative, is_monotonic: true }),
            _ => Data::Gauge(Gauge { data_points }),
        }
    };
    let unit = match unit {
        Some("seconds") => "s",
        Some("bytes") => "By",
        _ => "",
    };
    Metric {
        name: convention(name, kind),
        description: help.to_owned(),
        unit: unit.to_owned(),
        data: Some(data),
        ..Metric::default()
    }
}

/// Returns the name of a metric in OpenTelemetry's semantic conventions, or its own name if they do not define one.
fn convention(name: &str, kind: Kind) -> String {
    match name {
        "mcp_server_operation_duration" => "mcp.server.operation.duration".to_owned(),
        "mcp_server_session_duration" => "mcp.server.session.duration".to_owned(),
        // OTLP has no kind for info metrics, so the name says that it is one.
        name if kind == Kind::Info => format!("{name}_info"),
        name => name.to_owned(),
    }
}

fn attributes(labels: Labels) -> Vec<KeyValue> {
    let key = |label: &'static str| match label {
        "mcp_method_name" => "mcp.method.name",
        "gen_ai_tool_name" => "gen_ai.tool.name",
        "error_type" => "error.type",
        "mcp_protocol_version" => "mcp.protocol.version",
        label => label,
    };
    labels.into_iter().map(|(label, value)| text(key(label), value)).collect()
}
