//! Exports traces and metrics to a collector, by OTLP over HTTP. `spans` converts runs to spans, `points` converts metrics to data points,
//! `post` sends a message, and `sender` is the thread that does everything that may take time.
//!
//! A run that is not sampled costs one random number. The spans of a sampled run are built when it has ended, and put into a bounded queue;
//! spans that do not fit are lost and counted. Calls never wait for the collector.

mod attributes;
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
use opentelemetry_proto::tonic::trace::v1::Span as Wire;
use parking_lot::Mutex;
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};
use wharf_protocol::meta::Trace;

use super::metrics::{Lost, Metrics};
use crate::observe::{
    record::CallRecord,
    trace::{Span, Tracer},
};
use wharf_config::config::Telemetry;
use wharf_egress::{EgressSettings, outgoing::Outgoing};

/// The maximum number of runs that wait to be sent, and the maximum number of their spans: about 16 MiB.
const MAX_QUEUED_RUNS: usize = 4096;
const MAX_QUEUED_SPANS: usize = 16_384;
/// How long the shutdown waits for the last spans and metrics to be sent.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Decides which runs are traced, and hands their spans to the sender thread.
pub struct Otlp {
    config: Telemetry,
    outgoing: Outgoing,
    queue: mpsc::Sender<Vec<Wire>>,
    /// The receiving end of the queue, until the sender thread is started with it.
    receiver: Mutex<Option<mpsc::Receiver<Vec<Wire>>>>,
    /// The number of spans that wait or are being sent.
    waiting: Arc<AtomicUsize>,
    lost: Arc<Lost>,
    stop: Mutex<Option<oneshot::Sender<()>>>,
    /// Resolves when the thread has ended.
    ended: Mutex<Option<oneshot::Receiver<()>>>,
}

impl Otlp {
    /// Creates the exporter, without starting its thread. `egress`: the proxy and the certificates to reach the collector.
    pub fn new(config: &Telemetry, egress: &EgressSettings) -> Arc<Self> {
        let (queue, receiver) = mpsc::channel(MAX_QUEUED_RUNS);
        Arc::new(Self {
            config: config.clone(),
            outgoing: Outgoing::new(egress),
            queue,
            receiver: Mutex::new(Some(receiver)),
            waiting: Arc::default(),
            lost: Arc::default(),
            stop: Mutex::default(),
            ended: Mutex::default(),
        })
    }

    /// Starts the sender thread. `metrics`: the metrics to send, if any are counted.
    pub fn start(&self, metrics: Option<Arc<Metrics>>) -> Result<()> {
        let Some(receiver) = self.receiver.lock().take() else { return Ok(()) };
        let ((stop, stopped), (end, ended)) = (oneshot::channel(), oneshot::channel());
        let shared = sender::Shared { metrics, lost: Arc::clone(&self.lost), waiting: Arc::clone(&self.waiting) };
        sender::start(self.config.clone(), self.outgoing.clone(), shared, receiver, stopped, end)?;
        *self.stop.lock() = Some(stop);
        *self.ended.lock() = Some(ended);
        Ok(())
    }

    /// Returns the counters of spans that were lost since the start.
    pub fn lost(&self) -> Arc<Lost> {
        Arc::clone(&self.lost)
    }

    /// Stops the sender thread, and waits for up to `CLOSE_TIMEOUT` until it has sent what is queued.
    pub async fn close(&self) {
        drop(self.stop.lock().take());
        let ended = self.ended.lock().take();
        if let Some(ended) = ended
            && timeout(CLOSE_TIMEOUT, ended).await.is_err()
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
            // The decision does not depend on the trace id, because clients choose that.
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
        let room = self.waiting.fetch_add(count, Ordering::Relaxed) + count <= MAX_QUEUED_SPANS;
        if !room || self.queue.try_send(spans).is_err() {
            self.waiting.fetch_sub(count, Ordering::Relaxed);
            self.lost.queue.fetch_add(count as u64, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::{
        observers::{All, Begun, Observers},
        record::{Action, Ended, request_facts},
    };
    fn config() -> Telemetry {
        Telemetry {
            otlp: "http://a".into(),
            sample: 1.0,
            trust_parent: false,
            propagate: false,
            metrics_every: None,
            service: "wharf".into(),
            attributes: Vec::new(),
            headers: http::HeaderMap::new(),
            replica: None,
        }
    }

    #[test]
    fn what_nobody_takes_is_lost_and_counted() {
        let otlp = Otlp::new(&config(), &EgressSettings::default());
        let tracer = Some(Arc::clone(&otlp) as Arc<dyn Tracer>);
        let observers = Observers::new(All { tracer, ..All::default() });
        for _ in 0..MAX_QUEUED_RUNS + 10 {
            let begun = observers.begin(None, || Begun {
                principal: None,
                plugin: "p".into(),
                digest: Some([1; 32].into()),
                request: Some(request_facts(wharf_protocol::Revision::NEWEST, "1".into())),
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
        assert_eq!(otlp.waiting.load(Ordering::Relaxed), 2 * MAX_QUEUED_RUNS);
    }

    #[test]
    fn a_share_of_all_calls_is_kept() {
        for (sample, least, most) in [(0.0, 0, 0), (0.5, 4000, 6000), (1.0, 10_000, 10_000)] {
            let otlp = Otlp::new(&Telemetry { sample, ..config() }, &EgressSettings::default());
            let kept = (0..10_000).filter(|_| otlp.begin(None).is_some()).count();
            assert!((least..=most).contains(&kept), "{kept} of {sample}");
        }
    }
}
