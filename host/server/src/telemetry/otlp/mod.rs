//! Sends traces and metrics to a collector, by OTLP over HTTP. `spans` is what a run looks like as spans, `points` what metrics look
//! like, `post` how messages leave, and `sender` the thread that does all that may take time.
//!
//! A run that is not traced costs one number out of a hat. One that is makes its spans when it has ended, and leaves them in a queue
//! with a bound; what does not fit is lost and counted. Nothing ever waits for a collector.

mod points;
mod post;
mod sender;
mod spans;

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use anyhow::Result;
use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, KeyValue, any_value::Value},
    trace::v1::Span as Wire,
};
use parking_lot::Mutex;
use tokio::{sync::mpsc, sync::oneshot, time::timeout};
use wharf_protocol::meta::Trace;

use super::metrics::{Lost, Metrics};
use crate::{
    config::Telemetry,
    egress::tls::Trust,
    observe::{
        record::CallRecord,
        trace::{Span, Tracer},
    },
};

/// How many runs may wait to be sent.
const QUEUE: usize = 4096;
/// How long the end of wharf waits for the last of them.
const CLOSED_WITHIN: Duration = Duration::from_secs(2);

/// Decides which runs are traced, and hands their spans to the thread.
pub struct Otlp {
    config: Telemetry,
    trust: Trust,
    queue: mpsc::Sender<Vec<Wire>>,
    /// What the thread takes from, until it is started.
    taken: Mutex<Option<mpsc::Receiver<Vec<Wire>>>>,
    lost: Arc<Lost>,
    stop: Mutex<Option<oneshot::Sender<()>>>,
    /// Resolves when the thread has ended.
    ended: Mutex<Option<oneshot::Receiver<()>>>,
}

impl Otlp {
    /// `trust`: which certificates of collectors are good.
    pub fn new(config: &Telemetry, trust: Trust) -> Arc<Self> {
        let (queue, taken) = mpsc::channel(QUEUE);
        Arc::new(Self {
            config: config.clone(),
            trust,
            queue,
            taken: Mutex::new(Some(taken)),
            lost: Arc::default(),
            stop: Mutex::default(),
            ended: Mutex::default(),
        })
    }

    /// Starts the thread. `metrics`: if any are counted.
    pub fn start(&self, metrics: Option<Arc<Metrics>>) -> Result<()> {
        let Some(taken) = self.taken.lock().take() else { return Ok(()) };
        let ((stop, stopped), (end, ended)) = (oneshot::channel(), oneshot::channel());
        sender::start(self.config.clone(), self.trust.clone(), metrics, Arc::clone(&self.lost), taken, stopped, end)?;
        *self.stop.lock() = Some(stop);
        *self.ended.lock() = Some(ended);
        Ok(())
    }

    /// What was lost since the start.
    pub fn lost(&self) -> Arc<Lost> {
        Arc::clone(&self.lost)
    }

    /// Ends the thread, which sends what waits, for as long as wharf has the time.
    pub async fn close(&self) {
        drop(self.stop.lock().take());
        let ended = self.ended.lock().take();
        if let Some(ended) = ended
            && timeout(CLOSED_WITHIN, ended).await.is_err()
        {
            tracing::warn!("the last traces and metrics could not be sent in time");
        }
    }
}

impl Tracer for Otlp {
    fn begin(&self, from: Option<&Trace>) -> Option<Span> {
        let Telemetry { sample, trust_parent, propagate, .. } = self.config;
        let sampled = match from.filter(|_| trust_parent) {
            Some(trace) => trace.sampled,
            // Not by the number of the trace, which is the client's to choose.
            None => fastrand::f64() < sample,
        };
        (sampled || propagate).then(|| Span::new(from, sampled, propagate))
    }

    fn ended(&self, record: &CallRecord, span: &Span) {
        if span.sampled && self.queue.try_send(spans::of(record, span)).is_err() {
            self.lost.queue.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn text(key: &str, value: impl Into<String>) -> KeyValue {
    attribute(key, Value::StringValue(value.into()))
}

fn whole(key: &str, value: impl Into<i64>) -> KeyValue {
    attribute(key, Value::IntValue(value.into()))
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}
