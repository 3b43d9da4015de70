//! The thread that sends. It takes spans from the queue, puts many into one message, and sends metrics now and then. A message that
//! is not taken is sent a second time, if the collector may have changed its mind by then; after that it is lost, counted, and the
//! operator is told, at a limited rate.

use std::{
    sync::{Arc, atomic::Ordering},
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
    Outside, points,
    post::{Post, Untaken},
    text,
};
use crate::{
    config::Telemetry,
    egress::tls::{Roots, Tls, Trust},
};

/// How many runs are gathered, and how many spans are sent in one message.
const BATCH: usize = 512;
const MESSAGE: usize = 2048;
/// How long the first of them waits for others.
const GATHERED: Duration = Duration::from_secs(1);
/// After how long a message is sent a second time.
const AGAIN: Duration = Duration::from_secs(1);
/// The least time between two messages to the operator that something was lost.
const TOLD: Duration = Duration::from_secs(10);

struct Sender {
    config: Telemetry,
    post: Post,
    outside: Outside,
    since: u64,
    /// Tells this process from others of the same service.
    instance: String,
    /// When the operator was told last, and how much had been lost by then.
    told: Option<Instant>,
    told_lost: u64,
}

/// Starts the thread, which ends when `stop` is dropped and the queue is empty. It tells `end` then.
pub fn start(
    config: Telemetry,
    trust: Trust,
    outside: Outside,
    queue: mpsc::Receiver<Vec<Span>>,
    stop: oneshot::Receiver<()>,
    end: oneshot::Sender<()>,
) -> Result<()> {
    // A runtime of its own, so that sending takes nothing from those who serve.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("no runtime for telemetry")?;
    let tls = Arc::new(Tls::new(&Arc::new(Roots::new(trust))));
    let post = Post { target: config.target.clone(), headers: config.headers.clone(), tls };
    let sender = Sender { config, post, outside, since: now(), instance: instance(), told: None, told_lost: 0 };
    let run = move || {
        runtime.block_on(sender.run(queue, stop));
        // A look-up of a name that does not end is left behind.
        runtime.shutdown_background();
        // This fails if nobody waits for the end.
        end.send(()).ok();
    };
    std::thread::Builder::new().name("wharf-telemetry".into()).spawn(run).context("no thread for telemetry")?;
    Ok(())
}

/// A random UUID. It is no secret.
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
                taken = queue.recv_many(&mut batch, BATCH) => {
                    if taken == 0 {
                        break;
                    }
                    let full = async {
                        while batch.len() < BATCH && queue.recv_many(&mut batch, BATCH).await > 0 {}
                    };
                    // Whatever ends the wait, what was gathered is sent.
                    let stopped = tokio::select! {
                        () = full => false,
                        () = sleep(GATHERED) => false,
                        _ = &mut stop => true,
                    };
                    if stopped {
                        break;
                    }
                    self.send_spans(std::mem::take(&mut batch), true).await;
                }
            }
            self.tell();
        }
        queue.close();
        loop {
            if batch.is_empty() && queue.recv_many(&mut batch, BATCH).await == 0 {
                break;
            }
            self.send_spans(std::mem::take(&mut batch), false).await;
        }
        if every.is_some() {
            self.send_metrics(false).await;
        }
    }

    async fn send_spans(&mut self, batch: Vec<Vec<Span>>, patient: bool) {
        let mut spans = batch.into_iter().flatten();
        loop {
            let spans: Vec<Span> = spans.by_ref().take(MESSAGE).collect();
            let count = spans.len();
            if count == 0 {
                break;
            }
            let scope_spans = vec![ScopeSpans { scope: Some(scope()), spans, ..ScopeSpans::default() }];
            let all = ResourceSpans { resource: Some(self.resource()), scope_spans, ..ResourceSpans::default() };
            let message = ExportTraceServiceRequest { resource_spans: vec![all] }.encode_to_vec();
            if !self.send("/v1/traces", message, patient).await {
                self.outside.lost.sending.fetch_add(count as u64, Ordering::Relaxed);
            }
            self.outside.waiting.fetch_sub(count, Ordering::Relaxed);
        }
    }

    async fn send_metrics(&mut self, patient: bool) {
        let Some(metrics) = &self.outside.metrics else { return };
        let metrics = points::of(metrics.families(), self.since, now());
        let scope_metrics = vec![ScopeMetrics { scope: Some(scope()), metrics, ..ScopeMetrics::default() }];
        let all = ResourceMetrics { resource: Some(self.resource()), scope_metrics, ..ResourceMetrics::default() };
        // The next ones say what these would have said.
        self.send("/v1/metrics", ExportMetricsServiceRequest { resource_metrics: vec![all] }.encode_to_vec(), patient)
            .await;
    }

    /// True if it was taken.
    async fn send(&mut self, path: &str, message: Vec<u8>, patient: bool) -> bool {
        let again = patient.then(|| message.clone());
        let problem = match (self.post.send(path, message).await, again) {
            (Ok(()), _) => return true,
            (Err(Untaken::Now(_)), Some(message)) => {
                sleep(AGAIN).await;
                match self.post.send(path, message).await {
                    Ok(()) => return true,
                    Err(problem) => problem,
                }
            }
            (Err(problem), _) => problem,
        };
        if self.may_tell() {
            match problem {
                Untaken::Now(error) => tracing::warn!("telemetry is not taken by {}: {error:#}", self.config.otlp),
                Untaken::Ever(status) => {
                    tracing::warn!("telemetry is not wanted at {}{path}: {status}", self.config.otlp)
                }
            }
        }
        false
    }

    /// Tells the operator what has been lost since the last time.
    fn tell(&mut self) {
        let lost = self.outside.lost.queue.load(Ordering::Relaxed);
        if lost > self.told_lost && self.may_tell() {
            tracing::warn!("{} spans are lost, because too many waited to be sent", lost - self.told_lost);
            self.told_lost = lost;
        }
    }

    fn may_tell(&mut self) -> bool {
        let may = self.told.is_none_or(|told| told.elapsed() >= TOLD);
        if may {
            self.told = Some(Instant::now());
        }
        may
    }

    /// Who sends.
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
