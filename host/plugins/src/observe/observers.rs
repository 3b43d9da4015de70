//! The recipients of records, and the recording of a run. Each run is reported to all recipients exactly once, however it ends.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use serde_json::Value;
use wharf_protocol::{Method, Revision};
use wharf_sandbox::{Report, Traces};
use wharf_scope::Scope;

use super::{
    journal::{Event, Journal, Promise, Room, Run, Unrecorded},
    meter::{CountedSession, Meter, Timing},
    record::{Action, ApprovalOutcome, CallRecord, Denied, Ended, Granted, Observer, RequestFacts},
    shown,
    trace::{Span, TracedNetwork, Tracer},
};
use wharf_base::{digest::Digest, party::Party, principal::Principal, slot::Slot};
use wharf_window::{
    board::{Board, OpenCall},
    files::CallFiles,
};

/// A handle to all recipients of records. Cheap to clone. Each run is also logged, at the level `debug`.
#[derive(Clone, Default)]
pub struct Observers(Option<Arc<Recipients>>);

struct Recipients {
    all: All,
    /// Whether a recipient needs the record of every run, which the board does not.
    needs_all: bool,
}

/// All recipients of records.
#[derive(Default)]
pub struct All {
    pub observers: Vec<Box<dyn Observer>>,
    pub journal: Option<Arc<dyn Journal>>,
    pub meter: Option<Arc<dyn Meter>>,
    pub tracer: Option<Arc<dyn Tracer>>,
    /// Shows calls of clients to the windows of the user.
    pub board: Option<Arc<Board>>,
}

impl Observers {
    /// Creates the handle.
    pub fn new(all: All) -> Self {
        let All { observers, journal, meter, tracer, board } = &all;
        let needs_all = journal.is_some() || meter.is_some() || tracer.is_some() || !observers.is_empty();
        Self((needs_all || board.is_some()).then(|| Arc::new(Recipients { all, needs_all })))
    }

    fn all(&self) -> Option<&All> {
        Some(&self.0.as_ref()?.all)
    }

    /// Whether records are stored with the arguments.
    pub fn has_journal(&self) -> bool {
        self.journal().is_some()
    }

    fn journal(&self) -> Option<&dyn Journal> {
        self.all()?.journal.as_deref()
    }

    fn meter(&self) -> Option<&Arc<dyn Meter>> {
        self.all()?.meter.as_ref()
    }

    fn tracer(&self) -> Option<&dyn Tracer> {
        self.all()?.tracer.as_deref()
    }

    /// Returns the board of this process, if windows may read it.
    pub fn board(&self) -> Option<&Arc<Board>> {
        self.all()?.board.as_ref()
    }

    /// Whether there is a tracer, so that runs may be traced.
    pub fn trace(&self) -> bool {
        self.tracer().is_some()
    }

    /// Whether a run would be reported to any recipient or to the log.
    pub fn is_active(&self) -> bool {
        self.0.is_some() || tracing::enabled!(tracing::Level::DEBUG)
    }

    /// Whether the journal, if there is one, lets runs begin.
    pub fn can_record(&self) -> bool {
        self.journal().is_none_or(Journal::can_record)
    }

    /// Reports an event to the journal and the meter. The event is only built if there is one of them.
    pub fn note(&self, event: impl FnOnce() -> Event) {
        let (journal, meter) = (self.journal(), self.meter());
        if journal.is_none() && meter.is_none() {
            return;
        }
        let event = event();
        if let Some(meter) = meter {
            meter.noted(&event);
        }
        if let Some(journal) = journal {
            journal.note(&event);
        }
    }

    /// Counts a session as open until the returned guard is dropped.
    pub fn session(&self, revision: Revision) -> Option<CountedSession> {
        let meter = Arc::clone(self.meter()?);
        meter.opened(revision);
        Some(CountedSession { meter, revision, began: Instant::now() })
    }

    /// Begins to time a request. Returns `None` if there is no meter, if the request is counted by its runs, or if it lasts for as long as
    /// its client listens.
    pub fn time(&self, method: Method, revision: Revision) -> Option<Timing> {
        let meter = self.meter().filter(|_| !runs_plugins(method) && method != Method::Listen)?;
        Some(Timing { meter: Arc::clone(meter), method, revision, began: Instant::now() })
    }

    /// Begins the record of a run. The record stays empty, and `begun` is not called, if it would not be reported to anyone. `caller`: who
    /// makes the call, and whether it can change or reach anything; `None`: wharf itself.
    pub fn begin<'a>(&self, caller: Option<(Party, bool)>, begun: impl FnOnce() -> Begun<'a>) -> Recording {
        let shown = self.board().zip(caller);
        let shown = shown.filter(|(board, (client, matters))| board.shows_call(client.number(), *matters));
        let needed = self.0.as_ref().is_some_and(|all| all.needs_all) || tracing::enabled!(tracing::Level::DEBUG);
        Recording((shown.is_some() || needed).then(|| {
            let Begun { principal, plugin, digest, request, action, scope, bytes_in, arguments, approval, slot } =
                begun();
            let span = self.tracer().zip(request.as_ref());
            let span = span.and_then(|(tracer, facts)| tracer.begin(facts.trace.as_ref())).map(Arc::new);
            let arguments = self.journal().zip(arguments).map(|(journal, arguments)| journal.arguments(arguments));
            let record = CallRecord {
                principal,
                plugin,
                digest,
                request,
                action,
                granted: scope.map(Granted::of).unwrap_or_default(),
                began: SystemTime::now(),
                took: Duration::ZERO,
                waited: None,
                bytes_in,
                bytes_out: 0,
                denials: Vec::new(),
                requests: Vec::new(),
                ended: Ended::Cancelled,
                refusal: None,
                approval,
                slot,
            };
            let shown = shown.map(|(board, (client, _))| board.begin(client.number(), shown::begun(&record)));
            let (observers, began) = (self.clone(), Instant::now());
            let arguments = arguments.unwrap_or_default();
            Box::new(OpenRecord {
                observers,
                began,
                record,
                span,
                shown,
                traces: None,
                arguments,
                room: None,
                begun: None,
                refused_by_journal: false,
                reported: false,
            })
        }))
    }

    fn report(&self, record: &CallRecord) {
        let CallRecord { principal, plugin, action, took, bytes_in, bytes_out, ended, .. } = record;
        let name = match action {
            Action::List => "",
            Action::Request { name, .. } => name,
        };
        tracing::debug!(
            plugin,
            action = %action,
            name = %name.escape_debug(),
            principal = principal.as_ref().map(Principal::short),
            took_ms = took.as_secs_f64() * 1000.0,
            bytes_in,
            bytes_out,
            %ended,
            "a run ended"
        );
        for observer in self.all().iter().flat_map(|all| &all.observers) {
            observer.ended(record);
        }
        if let Some(meter) = self.meter() {
            meter.ended(record);
        }
    }
}

/// The data that is known when a run begins.
pub struct Begun<'a> {
    pub principal: Option<Principal>,
    pub plugin: String,
    pub digest: Option<Digest>,
    pub request: Option<RequestFacts>,
    pub action: Action,
    pub scope: Option<&'a Scope>,
    pub bytes_in: usize,
    pub arguments: Option<&'a Value>,
    pub approval: Option<ApprovalOutcome>,
    /// The slot in which the meter caches the counters of the tool, if it is a call of a tool.
    pub slot: Option<Slot>,
}

/// Whether requests of this method run plugins.
pub fn runs_plugins(method: Method) -> bool {
    matches!(method, Method::CallTool | Method::ReadResource | Method::GetPrompt | Method::Complete)
}

/// The record of a run that has not ended. If it is dropped without [`Recording::end`], the run is reported as cancelled. It is empty if
/// the run would not be reported to anyone.
pub struct Recording(Option<Box<OpenRecord>>);

struct OpenRecord {
    observers: Observers,
    began: Instant,
    record: CallRecord,
    /// The span, if the run is traced.
    span: Option<Arc<Span>>,
    /// The call on the board, if it is shown there.
    shown: Option<OpenCall>,
    /// What the run has tried until now.
    traces: Option<Traces>,
    /// The arguments as encoded by the journal.
    arguments: String,
    room: Room,
    /// The number of the journal entry about the beginning of the run.
    begun: Option<u64>,
    /// Whether the journal itself has refused the run. It has counted the refusal then, and gets no record.
    refused_by_journal: bool,
    /// Whether the run was reported to all recipients.
    reported: bool,
}

impl Recording {
    /// Makes sure that the journal can store the record of this run, before the run begins. If the run has access to anything outside its
    /// sandbox, an entry about its beginning is stored now, so that there is a trace of it even if wharf crashes before the run ends.
    pub async fn admit(&mut self) -> Result<(), Unrecorded> {
        let Some(open) = &mut self.0 else { return Ok(()) };
        let Some(room) = open.observers.journal().map(|journal| journal.room(open.bytes())) else { return Ok(()) };
        let admitted = async {
            open.room = room.await?;
            if open.record.granted.is_empty() {
                return Ok(());
            }
            let Some(begun) = open.observers.journal().map(|journal| journal.begun(&open.run())) else { return Ok(()) };
            open.begun = begun.await?;
            Ok(())
        };
        let admitted = admitted.await;
        if admitted.is_err() {
            (open.record.ended, open.record.refusal) = (Ended::Refused, Some("audit".into()));
            open.refused_by_journal = true;
        }
        admitted
    }

    /// Replaces the network of the run with one that records the plugin's HTTP requests in the run's span, if the run is traced.
    pub fn follow(&self, scope: &mut Scope) {
        if let Some(span) = self.0.as_ref().and_then(|open| open.span.as_ref())
            && let Some(network) = scope.network.take()
        {
            scope.network = Some(Arc::new(TracedNetwork::new(network, Arc::clone(span))));
        }
    }

    /// Has what the run tries recorded however it ends.
    pub fn trace(&mut self, traces: &Traces) {
        if let Some(open) = &mut self.0 {
            open.traces = Some(traces.clone());
        }
    }

    /// Whether the run is shown to the user.
    pub fn is_shown(&self) -> bool {
        self.0.as_ref().is_some_and(|open| open.shown.is_some())
    }

    /// Returns where the files that the run uses are noted, if it is shown.
    pub fn files(&self) -> Option<Arc<CallFiles>> {
        self.0.as_ref()?.shown.as_ref().map(|shown| Arc::clone(shown.files()))
    }

    /// Ends the record of a run that ended by itself, and reports it to all recipients. The returned future resolves when the journal has
    /// stored the record, and fails if the answer must not be sent. The record is reported even if the future is dropped.
    #[must_use = "the answer has to wait for this"]
    pub fn end<T>(
        mut self,
        ended: Ended,
        report: &Report<T>,
    ) -> impl Future<Output = Result<(), Unrecorded>> + Send + use<T> {
        if let Some(open) = &mut self.0 {
            let record = &mut open.record;
            record.bytes_out = report.bytes.unwrap_or_default();
            let before = open.began.elapsed().saturating_sub(report.took);
            record.waited = report.waited.map(|waited| before + waited);
            record.denials = report.denials.iter().cloned().map(Denied).collect();
            record.requests.clone_from(&report.requests);
            open.traces = None;
        }
        self.stop(ended)
    }

    /// Ends the record of a run that was stopped or never began, as [`Recording::end`] does.
    #[must_use = "the answer has to wait for this"]
    pub fn stop(mut self, ended: Ended) -> impl Future<Output = Result<(), Unrecorded>> + Send + 'static {
        let stored = self.0.as_mut().and_then(|open| {
            open.record.ended = ended;
            open.report()
        });
        async move {
            match stored {
                Some(stored) => stored.await.map(|_| ()),
                None => Ok(()),
            }
        }
    }

    /// Ends the record of a call that did not run. `why`: the code of the error, or one word.
    pub async fn refuse(mut self, why: String) {
        if let Some(open) = &mut self.0 {
            open.record.refusal = Some(why);
        }
        // The call is refused even if the journal cannot store the record.
        self.stop(Ended::Refused).await.ok();
    }
}

impl OpenRecord {
    /// Returns the approximate number of bytes of the record that come from the client.
    fn bytes(&self) -> usize {
        let name = match &self.record.action {
            Action::List => 0,
            Action::Request { name, .. } => name.len(),
        };
        name + self.arguments.len()
    }

    fn run(&self) -> Run<'_> {
        Run { record: &self.record, arguments: &self.arguments, begun: self.begun }
    }

    /// Reports the run to all recipients, unless that was already done. Returns the promise of the journal, if there is one.
    fn report(&mut self) -> Option<Promise<Option<u64>>> {
        if std::mem::replace(&mut self.reported, true) {
            return None;
        }
        self.record.took = self.began.elapsed();
        // It was stopped, and gave no report.
        if let Some(traces) = self.traces.take() {
            self.record.denials = traces.denials().into_iter().map(Denied).collect();
            self.record.requests = traces.requests();
        }
        self.observers.report(&self.record);
        if let Some((tracer, span)) = self.observers.tracer().zip(self.span.as_ref()) {
            tracer.ended(&self.record, span);
        }
        if let Some(shown) = self.shown.take() {
            shown.end(shown::ended(&self.record), |call| shown::add(&self.record, call));
        }
        let room = self.room.take();
        let journal = self.observers.journal().filter(|_| !self.refused_by_journal)?;
        Some(journal.ended(&self.run(), room))
    }
}

impl Drop for OpenRecord {
    fn drop(&mut self) {
        drop(self.report());
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use wharf_scope::Denial;

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<CallRecord>>>);

    impl Observer for Kept {
        fn ended(&self, record: &CallRecord) {
            self.0.lock().push(record.clone());
        }
    }

    fn begun() -> Begun<'static> {
        Begun {
            principal: Some(Principal::Process),
            plugin: "a".into(),
            digest: None,
            request: None,
            action: Action::List,
            scope: None,
            bytes_in: 2,
            arguments: None,
            approval: None,
            slot: None,
        }
    }

    #[test]
    fn every_run_is_told_of_once_however_it_ends() {
        let kept = Kept::default();
        let observers = Observers::new(All { observers: vec![Box::new(kept.clone())], ..All::default() });
        let report = Report {
            held: None,
            result: Ok(()),
            denials: vec![Denial::NoDirectory { asked: true }],
            printed: String::new(),
            took: Duration::ZERO,
            waited: None,
            bytes: Some(7),
            requests: Vec::new(),
            says_failed: false,
        };
        drop(observers.begin(None, begun).end(Ended::Done, &report));
        drop(observers.begin(None, begun));
        let told = kept.0.lock();
        let endings: Vec<_> = told.iter().map(|record| (record.ended, record.bytes_out)).collect();
        assert_eq!(endings, [(Ended::Done, 7), (Ended::Cancelled, 0)]);
        assert_eq!(told[0].denials, [Denied(Denial::NoDirectory { asked: true })]);
    }
}
