//! Sends traces and metrics to a collector, by OTLP over HTTP. `spans` is what a run looks like as spans, `points` what metrics look
//! like, `post` how messages leave, and `sender` the thread that does all that may take time.
//!
//! A run that is not traced costs one random number. One that is makes its spans when it has ended, and leaves them in a queue with a
//! bound; what does not fit is lost and counted. Nothing ever waits for a collector.

mod points;
mod post;
mod sender;
mod spans;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::Result;
use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, KeyValue, any_value::Value},
    trace::v1::Span as Wire,
};
use parking_lot::Mutex;
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};
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

/// How many runs may wait to be sent, and how many spans they may have in all: about 16 MiB.
const QUEUE: usize = 4096;
const SPANS: usize = 16_384;
/// How long the end of wharf waits for the last of them.
const CLOSED_WITHIN: Duration = Duration::from_secs(2);

/// Decides which runs are traced, and hands their spans to the thread.
pub struct Otlp {
    config: Telemetry,
    trust: Trust,
    queue: mpsc::Sender<Vec<Wire>>,
    /// What the thread takes from, until it is started.
    taken: Mutex<Option<mpsc::Receiver<Vec<Wire>>>>,
    /// How many spans wait or are being sent.
    waiting: Arc<AtomicUsize>,
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
            waiting: Arc::default(),
            lost: Arc::default(),
            stop: Mutex::default(),
            ended: Mutex::default(),
        })
    }

    /// Starts the thread. `metrics`: if any are counted.
    pub fn start(&self, metrics: Option<Arc<Metrics>>) -> Result<()> {
        let Some(taken) = self.taken.lock().take() else { return Ok(()) };
        let ((stop, stopped), (end, ended)) = (oneshot::channel(), oneshot::channel());
        let outside = Outside { metrics, lost: Arc::clone(&self.lost), waiting: Arc::clone(&self.waiting) };
        sender::start(self.config.clone(), self.trust.clone(), outside, taken, stopped, end)?;
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
        if !span.sampled {
            return;
        }
        let spans = spans::of(record, span);
        let count = spans.len();
        let room = self.waiting.fetch_add(count, Ordering::Relaxed) + count <= SPANS;
        if !room || self.queue.try_send(spans).is_err() {
            self.waiting.fetch_sub(count, Ordering::Relaxed);
            self.lost.queue.fetch_add(count as u64, Ordering::Relaxed);
        }
    }
}

/// What the thread shares with others.
struct Outside {
    metrics: Option<Arc<Metrics>>,
    lost: Arc<Lost>,
    waiting: Arc<AtomicUsize>,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::Target,
        observe::{
            observers::{All, Begun, Observers},
            record::{Action, Ended, RequestFacts},
        },
    };

    fn config() -> Telemetry {
        Telemetry {
            otlp: String::new(),
            target: Target { encrypted: false, host: "a".into(), port: 80, path: String::new() },
            sample: 1.0,
            trust_parent: false,
            propagate: false,
            metrics_every: None,
            service: "wharf".into(),
            attributes: Vec::new(),
            headers: http::HeaderMap::new(),
        }
    }

    #[test]
    fn what_nobody_takes_is_lost_and_counted() {
        let otlp = Otlp::new(&config(), Trust::default());
        let tracer = Some(Arc::clone(&otlp) as Arc<dyn Tracer>);
        let observers = Observers::new(All { tracer, ..All::default() });
        for _ in 0..QUEUE + 10 {
            let begun = observers.begin(|| Begun {
                principal: None,
                plugin: "p".into(),
                digest: [1; 32],
                request: Some(RequestFacts::new(wharf_protocol::Revision::NEWEST, "1".into())),
                action: Action::List,
                scope: None,
                bytes_in: 0,
                arguments: None,
                approval: None,
                slot: None,
            });
            drop(begun.stop(Ended::Done));
        }
        // Each has two spans: the request, and the run.
        assert_eq!(otlp.lost.queue.load(Ordering::Relaxed), 2 * 10);
        assert_eq!(otlp.waiting.load(Ordering::Relaxed), 2 * QUEUE);
    }

    #[test]
    fn a_share_of_all_calls_is_kept() {
        for (sample, least, most) in [(0.0, 0, 0), (0.5, 4000, 6000), (1.0, 10_000, 10_000)] {
            let otlp = Otlp::new(&Telemetry { sample, ..config() }, Trust::default());
            let kept = (0..10_000).filter(|_| otlp.begin(None).is_some()).count();
            assert!((least..=most).contains(&kept), "{kept} of {sample}");
        }
    }
}
