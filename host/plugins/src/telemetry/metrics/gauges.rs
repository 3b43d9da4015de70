//! Metrics that are read from the current state of other modules when metrics are requested, and so cost nothing otherwise.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use wharf_cluster::Cluster;
use wharf_sandbox::Sandbox;

use super::family::{Family, Kind, Labels, Value};
use crate::{audit::Log, plugins::published::Published};
use wharf_base::{
    ledger::Ledger,
    refusals::{Reason, Refusals},
};

/// The sources of these metrics.
pub struct Sources {
    pub sandbox: Arc<Sandbox>,
    pub ledger: Arc<Ledger>,
    pub published: Published,
    pub refusals: Arc<Refusals>,
    pub audit: Option<Arc<Log>>,
    /// The counters of lost spans, if spans are sent to a collector.
    pub lost: Option<Arc<Lost>>,
    pub cluster: Option<Arc<Cluster>>,
}

/// Counters of the spans that did not reach the collector since the start.
#[derive(Default)]
pub struct Lost {
    /// Spans for which the queue had no room.
    pub queue: AtomicU64,
    /// Spans that the collector did not accept.
    pub sending: AtomicU64,
}

fn whole(value: usize) -> Value {
    Value::Whole(value as u64)
}

impl Sources {
    pub fn families(&self) -> Vec<Family> {
        let mut all = self.plugins().to_vec();
        all.extend(self.refused());
        all.extend(self.memory());
        all.extend(self.audit());
        all.extend(self.lost());
        all.extend(self.cluster());
        all.push(build());
        all
    }

    fn plugins(&self) -> [Family; 3] {
        let mut running = Family::new(
            "wharf_plugin_running",
            "Calls that are running, in the version of the plugin that is served",
            Kind::Gauge,
        );
        let mut kept = Family::new(
            "wharf_plugin_instances",
            "Instances of the plugin: those that are running, and those that are kept for later calls",
            Kind::Gauge,
        );
        let mut info = Family::new("wharf_catalog", "The plugins that are served, with their SHA-256", Kind::Info);
        let catalog = Arc::clone(&self.published.catalog.borrow());
        for served in catalog.served() {
            let id = || ("plugin", served.config.id.clone());
            let (runs, keeps) = (served.plugin.running(), served.plugin.kept());
            running.add(vec![id()], whole(runs));
            kept.add(vec![id(), ("state", "running".into())], whole(runs));
            kept.add(vec![id(), ("state", "kept".into())], whole(keeps));
            info.add(vec![id(), ("digest", served.plugin.code().digest().to_string())], Value::Whole(1));
        }
        [running, kept, info]
    }

    fn refused(&self) -> [Family; 2] {
        let mut rejected = Family::new(
            "wharf_rejected",
            "Connections, sessions, requests and calls that were refused before anything ran",
            Kind::Counter,
        );
        let mut logins = Family::new(
            "wharf_auth_failures",
            "Requests that were refused because the client did not authenticate successfully",
            Kind::Counter,
        );
        let reason = |reason: &str| -> Labels { vec![("reason", reason.to_owned())] };
        for (why, count) in self.refusals.counted() {
            match why {
                Reason::Login(why) => logins.add(reason(why), Value::Whole(count)),
                Reason::Other(why) => rejected.add(reason(why), Value::Whole(count)),
            }
        }
        rejected.add(reason("memory"), Value::Whole(self.ledger.refused()));
        [rejected, logins]
    }

    fn memory(&self) -> [Family; 4] {
        let (guests, host) = (self.sandbox.guest_memory(), self.ledger.whole());
        let gauge = |name, help, value| Family::new(name, help, Kind::Gauge).in_unit("bytes").of(whole(value));
        [
            gauge("wharf_guest_memory", "Memory of all sandboxes", guests.used()),
            gauge("wharf_guest_memory_limit", "Limit on the memory of all sandboxes", guests.limit()),
            gauge("wharf_host_memory", "Memory of wharf itself that plugins and clients occupy", host.used()),
            gauge("wharf_host_memory_limit", "Limit on the memory of wharf itself", host.limit()),
        ]
    }

    fn lost(&self) -> Option<Family> {
        let lost = self.lost.as_ref()?;
        let mut family = Family::new("wharf_spans_lost", "Spans that did not reach the collector", Kind::Counter);
        for (reason, count) in [("queue", &lost.queue), ("sending", &lost.sending)] {
            family.add(vec![("reason", reason.to_owned())], Value::Whole(count.load(Ordering::Relaxed)));
        }
        Some(family)
    }

    fn cluster(&self) -> Vec<Family> {
        let Some(cluster) = &self.cluster else { return Vec::new() };
        let up = Family::new(
            "wharf_redis_up",
            "Whether Redis answers, and messages of other replicas come through",
            Kind::Gauge,
        );
        let replicas = Family::new(
            "wharf_replicas",
            "Replicas that run, with this one, or that ran when Redis last answered",
            Kind::Gauge,
        );
        let is_up = cluster.is_up() && cluster.hears();
        vec![up.of(Value::Whole(u64::from(is_up))), replicas.of(Value::Whole(u64::from(cluster.replicas())))]
    }

    fn audit(&self) -> Vec<Family> {
        let Some(audit) = &self.audit else { return Vec::new() };
        let lost =
            Family::new("wharf_audit_lines_lost", "Lines that the audit log lost for lack of room", Kind::Counter);
        let failing = Family::new("wharf_audit_failing", "Whether the audit log cannot be written", Kind::Gauge);
        vec![lost.of(Value::Whole(audit.lost())), failing.of(Value::Whole(u64::from(audit.is_failing())))]
    }
}

fn build() -> Family {
    let mut info = Family::new("wharf_build", "The version of wharf that is running", Kind::Info);
    info.add(vec![("version", env!("CARGO_PKG_VERSION").to_owned())], Value::Whole(1));
    info
}
