//! Everybody who is told of runs, and a run that is being recorded: it is told of once, however it ends.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use serde_json::Value;
use wharf_protocol::{Method, Revision};
use wharf_sandbox::{Report, Scope};

use super::{
    journal::{Event, Journal, Promise, Room, Run, Unrecorded},
    meter::{Counted, Meter, Timing},
    record::{Action, Approval, CallRecord, Ended, Granted, Observer, RequestFacts},
    trace::{Followed, Span, Tracer},
};
use crate::base::{principal::Principal, slot::Slot};

/// All observers, and the journal, the meter and the tracer if there are any; cheap to clone. Each run is also logged, at the level `debug`.
#[derive(Clone, Default)]
pub struct Observers(Option<Arc<All>>);

/// Everybody who is told.
#[derive(Default)]
pub struct All {
    pub observers: Vec<Box<dyn Observer>>,
    pub journal: Option<Arc<dyn Journal>>,
    pub meter: Option<Arc<dyn Meter>>,
    pub tracer: Option<Arc<dyn Tracer>>,
}

impl Observers {
    /// These, and the log.
    pub fn new(all: All) -> Self {
        let All { observers, journal, meter, tracer } = &all;
        let anybody = journal.is_some() || meter.is_some() || tracer.is_some() || !observers.is_empty();
        Self(anybody.then(|| Arc::new(all)))
    }

    fn journal(&self) -> Option<&dyn Journal> {
        self.0.as_ref()?.journal.as_deref()
    }

    fn meter(&self) -> Option<&Arc<dyn Meter>> {
        self.0.as_ref()?.meter.as_ref()
    }

    fn tracer(&self) -> Option<&dyn Tracer> {
        self.0.as_ref()?.tracer.as_deref()
    }

    /// Whether runs may be traced.
    pub fn trace(&self) -> bool {
        self.tracer().is_some()
    }

    /// Whether anybody would be told about a run.
    pub fn are_there(&self) -> bool {
        self.0.is_some() || tracing::enabled!(tracing::Level::DEBUG)
    }

    /// Whether runs may begin, as far as the journal is concerned if there is one.
    pub fn can_record(&self) -> bool {
        self.journal().is_none_or(Journal::can_record)
    }

    /// Tells the journal and the meter, if there is one.
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

    /// Counts a session for as long as what this returns is kept.
    pub fn session(&self, revision: Revision) -> Option<Counted> {
        let meter = Arc::clone(self.meter()?);
        meter.opened(revision);
        Some(Counted { meter, revision, began: Instant::now() })
    }

    /// Begins to time a request, unless nobody counts, its runs say what there is to count, or it goes on for as long as its client
    /// listens.
    pub fn time(&self, method: Method, revision: Revision) -> Option<Timing> {
        let meter = self.meter().filter(|_| !runs_plugins(method) && method != Method::Listen)?;
        Some(Timing { meter: Arc::clone(meter), method, revision, began: Instant::now() })
    }

    /// Begins a record, unless nobody would be told about it.
    pub fn begin<'a>(&self, begun: impl FnOnce() -> Begun<'a>) -> Recording {
        Recording(self.are_there().then(|| {
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
            let (observers, began) = (self.clone(), Instant::now());
            let arguments = arguments.unwrap_or_default();
            Box::new(Told {
                observers,
                began,
                record,
                span,
                arguments,
                room: None,
                begun: None,
                refused: false,
                over: false,
            })
        }))
    }

    fn tell(&self, record: &CallRecord) {
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
            ended = ended.as_str(),
            "a run ended"
        );
        for observer in self.0.iter().flat_map(|all| &all.observers) {
            observer.ended(record);
        }
        if let Some(meter) = self.meter() {
            meter.ended(record);
        }
    }
}

/// What is known when a run begins.
pub struct Begun<'a> {
    pub principal: Option<Principal>,
    pub plugin: String,
    pub digest: [u8; 32],
    pub request: Option<RequestFacts>,
    pub action: Action,
    pub scope: Option<&'a Scope>,
    pub bytes_in: usize,
    pub arguments: Option<&'a Value>,
    pub approval: Option<Approval>,
    /// Where the meter keeps what it counts in, if it is a call of a tool.
    pub slot: Option<Slot>,
}

/// Whether requests of this method run plugins.
pub fn runs_plugins(method: Method) -> bool {
    matches!(method, Method::CallTool | Method::ReadResource | Method::GetPrompt | Method::Complete)
}

/// The record of a run that is not over. If it is dropped without [`Recording::end`], the run was cancelled. Empty if nobody
/// would be told about the run.
pub struct Recording(Option<Box<Told>>);

struct Told {
    observers: Observers,
    began: Instant,
    record: CallRecord,
    /// None: it is not traced.
    span: Option<Arc<Span>>,
    /// What the journal keeps of the arguments.
    arguments: String,
    room: Room,
    /// The number of the journal's entry that says that the run began.
    begun: Option<u64>,
    /// Whether the journal itself has refused it, which it counts.
    refused: bool,
    /// Whether everybody has been told.
    over: bool,
}

impl Recording {
    /// Makes sure that the journal can keep the record of this run, before the run begins. A run that can reach anything
    /// outside its sandbox is noted there already now, so that it leaves a trace even if wharf does not live to see its end.
    pub async fn admit(&mut self) -> Result<(), Unrecorded> {
        let Some(told) = &mut self.0 else { return Ok(()) };
        let Some(room) = told.observers.journal().map(|journal| journal.room(told.bytes())) else { return Ok(()) };
        let admitted = async {
            told.room = room.await?;
            if told.record.granted.is_empty() {
                return Ok(());
            }
            let Some(begun) = told.observers.journal().map(|journal| journal.begun(&told.run())) else { return Ok(()) };
            told.begun = begun.await?;
            Ok(())
        };
        let admitted = admitted.await;
        if admitted.is_err() {
            (told.record.ended, told.record.refusal) = (Ended::Refused, Some("audit".into()));
            told.refused = true;
        }
        admitted
    }

    /// Lets what the plugin sends belong to the trace of the run, if it is traced.
    pub fn follow(&self, scope: &mut Scope) {
        if let Some(span) = self.0.as_ref().and_then(|told| told.span.as_ref())
            && let Some(network) = scope.network.take()
        {
            scope.network = Some(Arc::new(Followed::new(network, Arc::clone(span))));
        }
    }

    /// Ends the record of a run that ended by itself. Resolves when the journal has kept it; everybody is told even if that is not
    /// waited for. Fails if the answer must not leave.
    #[must_use = "the answer has to wait for this"]
    pub fn end<T>(
        mut self,
        ended: Ended,
        report: &Report<T>,
    ) -> impl Future<Output = Result<(), Unrecorded>> + Send + use<T> {
        if let Some(told) = &mut self.0 {
            let record = &mut told.record;
            record.bytes_out = report.bytes.unwrap_or_default();
            let before = told.began.elapsed().saturating_sub(report.took);
            record.waited = report.waited.map(|waited| before + waited);
            (record.denials, record.requests) = (report.denials.clone(), report.requests.clone());
        }
        self.stop(ended)
    }

    /// The same for a run that was stopped, or that never began.
    #[must_use = "the answer has to wait for this"]
    pub fn stop(mut self, ended: Ended) -> impl Future<Output = Result<(), Unrecorded>> + Send + 'static {
        let kept = self.0.as_mut().and_then(|told| {
            told.record.ended = ended;
            told.tell()
        });
        async move {
            match kept {
                Some(kept) => kept.await.map(|_| ()),
                None => Ok(()),
            }
        }
    }

    /// Ends the record of a call that did not run. `why`: the code of the error, or one word.
    pub async fn refuse(mut self, why: String) {
        if let Some(told) = &mut self.0 {
            told.record.refusal = Some(why);
        }
        // The refusal stands, whether or not the journal can keep it.
        self.stop(Ended::Refused).await.ok();
    }
}

impl Told {
    /// About how many bytes of the record come from the client.
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

    /// Tells everybody, once.
    fn tell(&mut self) -> Option<Promise<Option<u64>>> {
        if std::mem::replace(&mut self.over, true) {
            return None;
        }
        self.record.took = self.began.elapsed();
        self.observers.tell(&self.record);
        if let Some((tracer, span)) = self.observers.tracer().zip(self.span.as_ref()) {
            tracer.ended(&self.record, span);
        }
        let room = self.room.take();
        let journal = self.observers.journal().filter(|_| !self.refused)?;
        Some(journal.ended(&self.run(), room))
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        drop(self.tell());
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use wharf_sandbox::Denial;

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
            digest: [0; 32],
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
            result: Ok(()),
            denials: vec![Denial::NoDirectory],
            printed: String::new(),
            took: Duration::ZERO,
            waited: None,
            bytes: Some(7),
            requests: Vec::new(),
            says_failed: false,
        };
        drop(observers.begin(begun).end(Ended::Done, &report));
        drop(observers.begin(begun));
        let told = kept.0.lock();
        let endings: Vec<_> = told.iter().map(|record| (record.ended, record.bytes_out)).collect();
        assert_eq!(endings, [(Ended::Done, 7), (Ended::Cancelled, 0)]);
        assert_eq!(told[0].denials, [Denial::NoDirectory]);
    }
}
