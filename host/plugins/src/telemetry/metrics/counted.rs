//! Metrics that are counted as events happen: operations, runs, HTTP requests of plugins, loads and sessions.
//!
//! Each tool caches the counters for its calls, so that a call needs no look-up. All other events are less frequent, and look up their
//! counters.

use std::{
    borrow::Cow,
    sync::{Arc, OnceLock},
    time::Duration,
};

use wharf_protocol::{Method, Revision};
use wharf_scope::network::HttpUse;

use super::{
    family::{Family, Kind, Labels, Value},
    store::{Counter, Histogram, Table},
};
use crate::observe::{
    journal::Event,
    meter::{Answered, Meter},
    record::{Action, CallRecord, Ended, RequestMethod},
};
use wharf_base::{
    party::{Party, named},
    places::PoolRule,
};

/// The label value for names beyond the maximum, and for names that do not exist.
const OTHER: &str = "_OTHER";
/// The maximum number of series of durations. Beyond it, calls of further tools count under [`OTHER`].
const MAX_SERIES: usize = 2000;
/// The maximum number of plugins with series of their own.
const MAX_PLUGINS: usize = 1000;

/// The rule for series of durations.
pub static SERIES: PoolRule = PoolRule {
    of: "series of metrics for tools",
    number: "2000",
    taker: "plugin",
    until: "wharf ends",
    asking: "not held: they belong to no call",
    gone: "held: they belong to no client",
    gives_way: "nothing; further tools of the plugin count as `_OTHER`",
    old: Duration::MAX,
};

/// The rule for the series of plugins. Only the operator decides how many plugins there are.
pub static PLUGINS: PoolRule = PoolRule {
    of: "series of metrics for plugins",
    number: "1000, and 4000 for loads",
    taker: "operator",
    until: "wharf ends",
    asking: "not held: they belong to no call",
    gone: "held: they belong to no client",
    gives_way: "nothing; further plugins count as `_OTHER`",
    old: Duration::MAX,
};

/// The values of `error.type` for refused requests. All other codes count as [`OTHER`].
const REFUSALS: [&str; 12] = [
    "-32700", "-32600", "-32601", "-32602", "-32603", "-32002", "-32020", "-32021", "-32022", "invalid", "approval",
    "audit",
];

/// All ways in which a run can end. Counters of endings are indexed by the position in this array.
const ENDINGS: [Ended; 9] = [
    Ended::Done,
    Ended::Asked,
    Ended::Failed,
    Ended::Refused,
    Ended::TimedOut,
    Ended::OverLimit,
    Ended::Crashed,
    Ended::Revoked,
    Ended::Cancelled,
];

/// The labels of a series of durations.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Operation {
    method: &'static str,
    /// The name of the tool; empty for methods other than `tools/call`.
    tool: Arc<str>,
    error: &'static str,
    revision: &'static str,
}

/// The counters of one plugin.
#[derive(Default)]
struct PluginMeter {
    /// The number of calls and of list requests, for each of [`ENDINGS`].
    runs: [[Counter; 2]; ENDINGS.len()],
    /// The number of HTTP requests that the plugin made, for each of [`ANSWERS`].
    requests: [Counter; ANSWERS.len()],
    bytes_in: Counter,
    bytes_out: Counter,
    /// How long calls waited for their turn.
    waited: Histogram,
}

/// The outcomes of an HTTP request of a plugin.
const ANSWERS: [&str; 7] = ["1xx", "2xx", "3xx", "4xx", "5xx", "denied", "failed"];

fn answer_of(request: &HttpUse) -> usize {
    match (request.denied, request.status) {
        (true, _) => 5,
        (false, Some(status)) => usize::from(status / 100).clamp(1, 5) - 1,
        (false, None) => 6,
    }
}

/// The counters of one tool: a histogram for each revision and ending, and the counters of its plugin.
struct ToolMeter {
    name: Arc<str>,
    took: [[OnceLock<Arc<Histogram>>; ENDINGS.len()]; Revision::ALL.len()],
    plugin: Arc<PluginMeter>,
}

/// The labels of a counter of loads: a plugin, and the outcome of loading it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Load {
    plugin: Cow<'static, str>,
    outcome: &'static str,
}

#[derive(Default)]
struct Sessions {
    open: Counter,
    lasted: Histogram,
}

pub struct Counters {
    operations: Table<Operation, Histogram>,
    plugins: Table<Cow<'static, str>, PluginMeter>,
    loads: Table<Load, Counter>,
    configs: [Counter; 2],
    sessions: [Sessions; Revision::ALL.len()],
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            operations: Table::new(&SERIES, MAX_SERIES),
            plugins: Table::new(&PLUGINS, MAX_PLUGINS),
            loads: Table::new(&PLUGINS, 4 * MAX_PLUGINS),
            configs: Default::default(),
            sessions: Default::default(),
        }
    }
}

impl Counters {
    /// Returns the histogram of an operation. `plugin`: the plugin to whose share a new series counts.
    fn operation(
        &self,
        method: Method,
        (plugin, tool): (&str, &Arc<str>),
        error: &'static str,
        revision: Revision,
    ) -> Arc<Histogram> {
        let (method, tool, revision) = (method.as_str(), Arc::clone(tool), revision.as_str());
        let party = || if tool.is_empty() { Party::SOLE } else { named(("plugin", plugin)) };
        let operation = Operation { method, tool: Arc::clone(&tool), error, revision };
        self.operations.get(operation, party, |one| match one.tool.is_empty() {
            // The number of series without a tool is small and fixed.
            true => one,
            false => Operation { tool: OTHER.into(), ..one },
        })
    }

    fn plugin(&self, id: &str) -> Arc<PluginMeter> {
        self.plugins.get(Cow::Owned(id.to_owned()), || Party::SOLE, |_| Cow::Borrowed(OTHER))
    }

    /// Counts a run or refusal with the counters cached in the slot of its tool. Returns false if the record has no slot.
    fn tool_ended(&self, record: &CallRecord, revision: Revision) -> bool {
        let Action::Request { method: RequestMethod(Method::CallTool), name } = &record.action else { return false };
        let make =
            || ToolMeter { name: name.as_str().into(), took: Default::default(), plugin: self.plugin(&record.plugin) };
        let Some(tool) = record.slot.as_ref().and_then(|slot| slot.get_or_init(make)) else { return false };
        match (&record.refusal, tool.took.get(revision as usize).and_then(|took| took.get(place(record.ended)))) {
            (None, Some(took)) => {
                let error = record.ended.error_type().unwrap_or_default();
                let of = (&*record.plugin, &tool.name);
                took.get_or_init(|| self.operation(Method::CallTool, of, error, revision)).add(record.took);
            }
            _ => {
                let of = (&*record.plugin, &tool.name);
                self.operation(Method::CallTool, of, error_type(record), revision).add(record.took);
            }
        }
        tool.plugin.add(record, 0);
        true
    }
}

fn place(ended: Ended) -> usize {
    ENDINGS.iter().position(|one| *one == ended).unwrap_or_default()
}

/// Returns the value of `error.type` for a record, from a bounded set; empty if there was no error.
fn error_type(record: &CallRecord) -> &'static str {
    match &record.refusal {
        None => record.ended.error_type().unwrap_or_default(),
        Some(why) => known(why),
    }
}

fn known(why: &str) -> &'static str {
    REFUSALS.into_iter().find(|known| *known == why).unwrap_or(OTHER)
}

impl PluginMeter {
    /// Counts a run. `kind`: 0 for calls, 1 for list requests.
    fn add(&self, record: &CallRecord, kind: usize) {
        if let Some(runs) = self.runs.get(place(record.ended)).and_then(|runs| runs.get(kind)) {
            runs.add(1);
        }
        if let Some(waited) = record.waited.filter(|_| kind == 0) {
            self.waited.add(waited);
        }
        for request in &record.requests {
            if let Some(answered) = self.requests.get(answer_of(request)) {
                answered.add(1);
            }
            self.bytes_in.add(request.bytes_in);
            self.bytes_out.add(request.bytes_out);
        }
    }
}

impl Meter for Counters {
    fn ended(&self, record: &CallRecord) {
        let (Action::Request { method, name }, Some(facts)) = (&record.action, &record.request) else {
            return self.plugin(&record.plugin).add(record, 1);
        };
        if self.tool_ended(record, facts.revision) {
            return;
        }
        let tool = match (method.0, record.plugin.is_empty()) {
            // Unknown names come from clients and are unbounded, so they share one label.
            (Method::CallTool, true) => OTHER.into(),
            (Method::CallTool, false) => name.as_str().into(),
            _ => Arc::default(),
        };
        self.operation(method.0, (&record.plugin, &tool), error_type(record), facts.revision).add(record.took);
        if !record.plugin.is_empty() {
            self.plugin(&record.plugin).add(record, 0);
        }
    }

    fn answered(&self, answered: &Answered) {
        let error = answered.error.map_or("", |code| known(&code.to_string()));
        self.operation(answered.method, ("", &Arc::default()), error, answered.revision).add(answered.took);
    }

    fn noted(&self, event: &Event) {
        let (plugin, outcome) = match event {
            Event::Served { plugin, before, .. } => (plugin, if before.is_some() { "replaced" } else { "loaded" }),
            Event::Removed { plugin, .. } => (plugin, "removed"),
            Event::Failed { plugin, last_good, .. } => {
                (plugin, if *last_good { "failed_last_good_serves" } else { "failed" })
            }
            Event::ConfigRead { .. } => return self.configs[0].add(1),
            Event::ConfigRefused { .. } => return self.configs[1].add(1),
            Event::Granted { .. } | Event::Approved { .. } => return,
        };
        let load = Load { plugin: Cow::Owned(plugin.clone()), outcome };
        self.loads.get(load, || Party::SOLE, |one| Load { plugin: Cow::Borrowed(OTHER), ..one }).add(1);
    }

    fn opened(&self, revision: Revision) {
        if let Some(sessions) = self.sessions.get(revision as usize) {
            sessions.open.add(1);
        }
    }

    fn closed(&self, revision: Revision, lasted: Duration) {
        if let Some(sessions) = self.sessions.get(revision as usize) {
            sessions.open.sub(1);
            sessions.lasted.add(lasted);
        }
    }
}

impl Counters {
    /// Returns all families with their current values.
    pub fn families(&self) -> Vec<Family> {
        let mut all = vec![self.operations()];
        all.extend(self.sessions());
        all.extend(self.runs());
        all.extend(self.loads());
        all
    }

    fn operations(&self) -> Family {
        let help = "Duration of requests, with or without a plugin; a request that asks its client counts once per run";
        let mut family = Family::new("mcp_server_operation_duration", help, Kind::Histogram).in_unit("seconds");
        for (operation, took) in self.operations.entries() {
            let Operation { method, tool, error, revision } = operation;
            let labels: Labels = [
                ("mcp_method_name", method),
                ("gen_ai_tool_name", &*tool),
                ("error_type", error),
                ("mcp_protocol_version", revision),
            ]
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| (name, value.to_owned()))
            .collect();
            family.add(labels, Value::Histogram(took.counts()));
        }
        family
    }

    fn sessions(&self) -> [Family; 2] {
        let mut open = Family::new("wharf_sessions", "Sessions that are open", Kind::Gauge);
        let mut lasted =
            Family::new("mcp_server_session_duration", "Duration of sessions", Kind::Histogram).in_unit("seconds");
        for (revision, sessions) in Revision::ALL.into_iter().zip(&self.sessions) {
            let counts = sessions.lasted.counts();
            // A revision without sessions has no series.
            if sessions.open.get() == 0 && counts.count() == 0 {
                continue;
            }
            let labels: Labels = vec![("mcp_protocol_version", revision.as_str().to_owned())];
            open.add(labels.clone(), Value::Whole(sessions.open.get()));
            lasted.add(labels, Value::Histogram(counts));
        }
        [open, lasted]
    }

    fn runs(&self) -> [Family; 4] {
        let mut runs = Family::new("wharf_plugin_runs", "Runs of plugins, by how they ended", Kind::Counter);
        let help = "Time that calls waited for their turn before they ran";
        let mut waited = Family::new("wharf_plugin_wait", help, Kind::Histogram).in_unit("seconds");
        let help = "HTTP requests that plugins made, by the status of the response: the first 128 of each call";
        let mut requests = Family::new("wharf_egress_requests", help, Kind::Counter);
        let mut bytes =
            Family::new("wharf_egress", "Bytes of HTTP bodies, by direction", Kind::Counter).in_unit("bytes");
        for (plugin, meter) in self.plugins.entries() {
            let with = |name: &'static str, value: &str| -> Labels {
                vec![("plugin", plugin.to_string()), (name, value.to_owned())]
            };
            for (ended, counters) in ENDINGS.into_iter().zip(&meter.runs) {
                for (kind, counter) in ["call", "list"].into_iter().zip(counters) {
                    let mut labels = with("kind", kind);
                    labels.push(("outcome", ended.as_str().to_owned()));
                    add(&mut runs, labels, counter);
                }
            }
            let counts = meter.waited.counts();
            if counts.count() > 0 {
                waited.add(vec![("plugin", plugin.to_string())], Value::Histogram(counts));
            }
            for (outcome, counter) in ANSWERS.into_iter().zip(&meter.requests) {
                add(&mut requests, with("outcome", outcome), counter);
            }
            add(&mut bytes, with("direction", "in"), &meter.bytes_in);
            add(&mut bytes, with("direction", "out"), &meter.bytes_out);
        }
        [runs, waited, requests, bytes]
    }

    fn loads(&self) -> [Family; 2] {
        let mut loads = Family::new("wharf_loads", "Loads of plugins, by outcome", Kind::Counter);
        for (Load { plugin, outcome }, counter) in self.loads.entries() {
            loads.add(
                vec![("plugin", plugin.into_owned()), ("outcome", outcome.to_owned())],
                Value::Whole(counter.get()),
            );
        }
        let mut configs = Family::new("wharf_config_reads", "Reads of the config, by outcome", Kind::Counter);
        for (outcome, counter) in ["used", "refused"].into_iter().zip(&self.configs) {
            configs.add(vec![("outcome", outcome.to_owned())], Value::Whole(counter.get()));
        }
        [loads, configs]
    }
}

/// Adds a series if its counter is not zero, because many counters are never used.
fn add(family: &mut Family, labels: Labels, counter: &Counter) {
    if counter.get() > 0 {
        family.add(labels, Value::Whole(counter.get()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::{
        observers::{All, Begun, Observers},
        record::request_facts,
    };
    use wharf_base::{principal::Principal, slot::Slot};

    /// Returns all series as text.
    fn text(counters: &Counters) -> String {
        super::super::encode(counters.families())
    }

    fn begun(tool: &str, slot: Option<&Slot>) -> Begun<'static> {
        begun_by("p", tool, slot)
    }

    fn begun_by(plugin: &str, tool: &str, slot: Option<&Slot>) -> Begun<'static> {
        Begun {
            principal: Some(Principal::Process),
            plugin: plugin.into(),
            digest: Some([1; 32].into()),
            request: Some(request_facts(Revision::NEWEST, "1".into())),
            action: Action::Request { method: Method::CallTool.into(), name: tool.into() },
            scope: None,
            bytes_in: 2,
            arguments: None,
            approval: None,
            slot: slot.cloned(),
        }
    }

    fn told() -> (Arc<Counters>, Observers) {
        let counters = Arc::<Counters>::default();
        let meter = Some(Arc::clone(&counters) as Arc<dyn Meter>);
        (counters, Observers::new(All { meter, ..All::default() }))
    }

    #[test]
    fn a_call_counts_the_same_with_a_place_of_its_own_and_without() {
        let (counters, observers) = told();
        let slot = Slot::default();
        for slot in [Some(&slot), Some(&slot), None] {
            drop(observers.begin(None, || begun("a \"tool\"\n", slot)).stop(Ended::TimedOut));
        }
        let text = text(&counters);
        let labels = "gen_ai_tool_name=\"a \\\"tool\\\"\\n\",error_type=\"timeout\"";
        assert!(text.contains(labels), "{text}");
        let count = text.lines().find(|line| line.starts_with("mcp_server_operation_duration_seconds_count")).unwrap();
        assert!(count.ends_with(" 3"), "{count}");
        let runs = "wharf_plugin_runs_total{plugin=\"p\",kind=\"call\",outcome=\"timed_out\"} 3";
        assert!(text.contains(runs), "{text}");
    }

    #[test]
    fn tools_beyond_the_bound_are_others() {
        let (counters, observers) = told();
        for tool in 0..MAX_SERIES {
            drop(observers.begin(None, || begun(&format!("t{tool}"), Some(&Slot::default()))).stop(Ended::Done));
        }
        let (part, rest) = (MAX_SERIES / 4 * 3, MAX_SERIES / 4);
        assert_eq!(counters.operations.entries().len(), part + 1, "the share of one plugin, and `_OTHER`");
        let of = |tool: &str| {
            let found = counters.operations.entries().into_iter().find(|(one, _)| &*one.tool == tool);
            found.map_or(0, |(_, took)| took.counts().count())
        };
        assert_eq!(of(OTHER), u64::try_from(rest).unwrap());
        // The tools of another plugin still have their names.
        for slot in [Some(&Slot::default()), None] {
            drop(observers.begin(None, || begun_by("q", "mine", slot)).stop(Ended::Done));
        }
        assert_eq!(of("mine"), 2);
    }

    #[test]
    fn what_happens_to_plugins_and_the_config_is_counted() {
        let (counters, observers) = told();
        let served = |before| Event::Served { plugin: "p".into(), digest: [1; 32], before };
        let failed = |last_good| Event::Failed { plugin: "p".into(), stage: "load", problem: "x".into(), last_good };
        let note = |event: Event| observers.note(|| event);
        note(served(None));
        note(served(Some([0; 32])));
        note(served(Some([0; 32])));
        note(failed(false));
        note(failed(true));
        note(Event::Removed { plugin: "p".into(), digest: [1; 32] });
        note(Event::ConfigRead { file: None, digest: None });
        note(Event::ConfigRefused { file: None, problem: "x".into() });
        let text = text(&counters);
        for (outcome, count) in
            [("loaded", 1), ("replaced", 2), ("failed", 1), ("failed_last_good_serves", 1), ("removed", 1)]
        {
            let line = format!("wharf_loads_total{{plugin=\"p\",outcome=\"{outcome}\"}} {count}\n");
            assert!(text.contains(&line), "{line}{text}");
        }
        for outcome in ["used", "refused"] {
            let line = format!("wharf_config_reads_total{{outcome=\"{outcome}\"}} 1\n");
            assert!(text.contains(&line), "{line}{text}");
        }
    }

    #[test]
    fn answers_of_upstreams_have_few_names() {
        for (status, denied, expected) in [
            (Some(100), false, "1xx"),
            (Some(204), false, "2xx"),
            (Some(404), false, "4xx"),
            (Some(599), false, "5xx"),
            (Some(999), false, "5xx"),
            (Some(200), true, "denied"),
            (None, true, "denied"),
            (None, false, "failed"),
        ] {
            let (method, authority) = ("GET".into(), "a".into());
            let mut request = HttpUse::new(method, authority);
            (request.status, request.denied) = (status, denied);
            assert_eq!(ANSWERS[answer_of(&request)], expected, "{status:?}");
        }
    }
}
