//! The sender thread. It takes spans from the queue, sends many in one message, and sends metrics at intervals. A message that fails
//! temporarily is sent a second time; after that it is lost and counted, and the operator is warned, at a limited rate.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, Result};
use opentelemetry_proto::tonic::{
    collector::{metrics::v1::ExportMetricsServiceRequest, trace::v1::ExportTraceServiceRequest},
    common::v1::InstrumentationScope,
    metrics::v1::{ResourceMetrics, ScopeMetrics},
    resource::v1::Resource,
    trace::v1::{ResourceSpans, ScopeSpans, Span},
};
use prost::Message;
use tokio::{
    sync::{mpsc, oneshot},
    time::{MissedTickBehavior, interval_at, sleep},
};

use super::{
    attributes::text,
    points,
    post::{Post, SendError},
};
use crate::telemetry::metrics::{Lost, Metrics};
use wharf_config::config::Telemetry;
use wharf_egress::outgoing::Outgoing;

/// The maximum number of runs in a batch, and the maximum number of spans in a message.
const MAX_BATCH_RUNS: usize = 512;
const MAX_MESSAGE_SPANS: usize = 2048;
/// How long the first run of a batch waits for others.
const BATCH_INTERVAL: Duration = Duration::from_secs(1);
/// How long to wait before a message is sent a second time.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// The minimum time between two warnings to the operator that telemetry was lost.
const WARNING_INTERVAL: Duration = Duration::from_secs(10);

struct Sender {
    config: Telemetry,
    post: Post,
    shared: Shared,
    /// The time at which counting began, in Unix nanoseconds.
    since: u64,
    /// The id of this process, which distinguishes it from others of the same service.
    instance: String,
    /// The time of the last warning to the operator, and the number of lost spans that were reported by then.
    warned: Option<Instant>,
    reported_lost: u64,
}

/// The state that the sender thread shares with the rest of wharf.
pub struct Shared {
    pub metrics: Option<Arc<Metrics>>,
    pub lost: Arc<Lost>,
    pub waiting: Arc<AtomicUsize>,
}

/// Starts the thread. It ends when `stop` is dropped and the queue is empty, and then notifies `end`.
pub fn start(
    config: Telemetry,
    outgoing: Outgoing,
    shared: Shared,
    queue: mpsc::Receiver<Vec<Span>>,
    stop: oneshot::Receiver<()>,
    end: oneshot::Sender<()>,
) -> Result<()> {
    // A separate runtime, so that sending does not slow down the threads that serve clients.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("no runtime for telemetry")?;
    let post = Post { url: config.otlp.clone(), headers: config.headers.clone(), outgoing };
    let instance = config.replica.clone().unwrap_or_else(instance);
    let sender = Sender { config, post, shared, since: now(), instance, warned: None, reported_lost: 0 };
    let run = move || {
        runtime.block_on(sender.run(queue, stop));
        // Do not wait for a hanging DNS look-up.
        runtime.shutdown_background();
        // This fails if the receiver is gone, which is fine.
        end.send(()).ok();
    };
    let thread = std::thread::Builder::new().name("wharf-telemetry".into()).spawn(run);
    thread.context("the thread for telemetry cannot be started")?;
    Ok(())
}

/// Returns a random UUID. It is not secret, so the generator need not be secure.
fn instance() -> String {
    let random = fastrand::u128(..) & !(0xf << 76) & !(0x3 << 62) | (4 << 76) | (2 << 62);
    let hex = format!("{random:032x}");
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-")
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

impl Sender {
    async fn run(mut self, mut queue: mpsc::Receiver<Vec<Span>>, mut stop: oneshot::Receiver<()>) {
        let every = self.config.metrics_every;
        let first = tokio::time::Instant::now() + every.unwrap_or_default();
        let mut metrics = interval_at(first, every.unwrap_or(Duration::from_secs(3600)));
        metrics.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut batch = Vec::new();
        loop {
            tokio::select! {
                _ = &mut stop => break,
                _ = metrics.tick(), if every.is_some() => self.send_metrics(false).await,
                taken = queue.recv_many(&mut batch, MAX_BATCH_RUNS) => {
                    if taken == 0 {
                        break;
                    }
                    let full = async {
                        while batch.len() < MAX_BATCH_RUNS && queue.recv_many(&mut batch, MAX_BATCH_RUNS).await > 0 {}
                    };
                    // The batch is sent in all three cases: now, or after the loop if the thread was stopped.
                    let stopped = tokio::select! {
                        () = full => false,
                        () = sleep(BATCH_INTERVAL) => false,
                        _ = &mut stop => true,
                    };
                    if stopped {
                        break;
                    }
                    self.send_spans(std::mem::take(&mut batch), true).await;
                }
            }
            self.warn_lost();
        }
        queue.close();
        loop {
            if batch.is_empty() && queue.recv_many(&mut batch, MAX_BATCH_RUNS).await == 0 {
                break;
            }
            self.send_spans(std::mem::take(&mut batch), false).await;
        }
        if every.is_some() {
            self.send_metrics(false).await;
        }
    }

    async fn send_spans(&mut self, batch: Vec<Vec<Span>>, retries: bool) {
        let mut spans = batch.into_iter().flatten();
        loop {
            let spans: Vec<Span> = spans.by_ref().take(MAX_MESSAGE_SPANS).collect();
            let count = spans.len();
            if count == 0 {
                break;
            }
            let scope_spans = vec![ScopeSpans { scope: Some(scope()), spans, ..ScopeSpans::default() }];
            let all = ResourceSpans { resource: Some(self.resource()), scope_spans, ..ResourceSpans::default() };
            let message = ExportTraceServiceRequest { resource_spans: vec![all] }.encode_to_vec();
            if !self.send("/v1/traces", message, retries).await {
                self.shared.lost.sending.fetch_add(count as u64, Ordering::Relaxed);
            }
            self.shared.waiting.fetch_sub(count, Ordering::Relaxed);
        }
    }

    async fn send_metrics(&mut self, retries: bool) {
        let Some(metrics) = &self.shared.metrics else { return };
        let metrics = points::of(metrics.families(), self.since, now());
        let scope_metrics = vec![ScopeMetrics { scope: Some(scope()), metrics, ..ScopeMetrics::default() }];
        let all = ResourceMetrics { resource: Some(self.resource()), scope_metrics, ..ResourceMetrics::default() };
        // The metrics are cumulative, so a lost message is made up for by the next one.
        self.send("/v1/metrics", ExportMetricsServiceRequest { resource_metrics: vec![all] }.encode_to_vec(), retries)
            .await;
    }

    /// Sends a message, a second time if `retries` and the failure is temporary. Returns whether the collector accepted it.
    async fn send(&mut self, path: &str, message: Vec<u8>, retries: bool) -> bool {
        let again = retries.then(|| message.clone());
        let problem = match (self.post.send(path, message).await, again) {
            (Ok(()), _) => return true,
            (Err(SendError::Temporary(_)), Some(message)) => {
                sleep(RETRY_INTERVAL).await;
                match self.post.send(path, message).await {
                    Ok(()) => return true,
                    Err(problem) => problem,
                }
            }
            (Err(problem), _) => problem,
        };
        if self.may_warn() {
            match problem {
                SendError::Temporary(error) => {
                    tracing::warn!("telemetry cannot be sent to {}: {error:#}", self.config.otlp)
                }
                SendError::Permanent(status) => {
                    tracing::warn!("telemetry cannot be sent to {}{path}: rejected with {status}", self.config.otlp)
                }
            }
        }
        false
    }

    /// Warns the operator if spans were lost since the last warning.
    fn warn_lost(&mut self) {
        let lost = self.shared.lost.queue.load(Ordering::Relaxed);
        if lost > self.reported_lost && self.may_warn() {
            tracing::warn!("{} spans were lost, because too many waited to be sent", lost - self.reported_lost);
            self.reported_lost = lost;
        }
    }

    fn may_warn(&mut self) -> bool {
        let may = self.warned.is_none_or(|warned| warned.elapsed() >= WARNING_INTERVAL);
        if may {
            self.warned = Some(Instant::now());
        }
        may
    }

    /// Returns the OTLP resource that describes this process.
    fn resource(&self) -> Resource {
        let mut attributes = vec![
            text("service.name", &self.config.service),
            text("service.version", env!("CARGO_PKG_VERSION")),
            text("service.instance.id", &self.instance),
        ];
        attributes.extend(self.config.attributes.iter().map(|(key, value)| text(key, value)));
        Resource { attributes, ..Resource::default() }
    }
}

fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: "wharf".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    }
}
