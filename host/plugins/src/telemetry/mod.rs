//! Telemetry for operators: metrics, which are counted as runs end and exported on request or at intervals, and traces, which are sent to
//! a collector. Like every observer, it only receives records of calls; calls never wait for it.

pub mod metrics;
pub mod otlp;
