//! The record of a run: who used which plugin for what, what it was allowed to touch, and how it ended. Of the contents of a
//! call, only the sizes are recorded; what a journal keeps of arguments goes past the observers.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use serde_json::Value;
use wharf_protocol::{Method, Revision, meta::Trace};
use wharf_sandbox::{CallError, Denial, Scope};

use super::journal::{Event, Journal, Promise, Room, Run, Unrecorded};
use crate::base::principal::Principal;

/// One run of a plugin, or a call that was refused before it ran.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CallRecord {
    /// Who made the call. None: wharf itself, which asks plugins for their lists.
    pub principal: Option<Principal>,
    /// The id of the plugin; empty if the call was refused because there is none.
    pub plugin: String,
    /// The SHA-256 of the component that ran; all zeros if there is none.
    pub digest: [u8; 32],
    /// The request, if a client made one.
    pub request: Option<RequestFacts>,
    /// What the plugin was to do.
    pub action: Action,
    /// What it could touch.
    pub granted: Granted,
    /// When the run was requested.
    pub began: SystemTime,
    /// How long it took, waiting for its turn included.
    pub took: Duration,
    /// The size of the arguments in bytes.
    pub bytes_in: usize,
    /// The size of the outcome in bytes; 0 if there is none.
    pub bytes_out: usize,
    /// What the plugin tried and the sandbox refused.
    pub denials: Vec<Denial>,
    /// How it ended.
    pub ended: Ended,
    /// If it was refused before it ran, why: the code of the error, or one word.
    pub refusal: Option<String>,
    /// What the approver said, if it was asked.
    pub approved: Option<bool>,
}

/// What is known of the request that a run belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestFacts {
    /// The revision that the client speaks.
    pub revision: Revision,
    /// The id of the request, as JSON.
    pub id: String,
    /// A digest of the session's id, which is itself a secret. None: the request belongs to no session.
    pub session: Option<String>,
    /// None: the program made the call itself.
    pub transport: Option<Transport>,
    /// The trace to which the client says that the request belongs.
    pub trace: Option<Trace>,
}

impl RequestFacts {
    /// Of a request that the program made itself.
    pub fn new(revision: Revision, id: String) -> Self {
        Self { revision, id, session: None, transport: None, trace: None }
    }
}

/// How a request came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transport {
    /// Over a pipe, or any other reader and writer.
    Pipe,
    /// Over HTTP.
    Http,
}

/// What a plugin was to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Say what it offers.
    List,
    /// What a client's request asks for: a tool, a resource or a prompt, by name or URI.
    Request {
        /// `tools/call` or another method that reaches a plugin.
        method: Method,
        /// The name of the tool or prompt as clients know it, the URI, or the prompt or template whose argument is completed.
        name: String,
    },
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::List => f.write_str("list"),
            Self::Request { method, .. } => f.write_str(method.as_str()),
        }
    }
}

/// What a run could touch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Granted {
    /// The path of each directory as the plugin sees it, and whether the directory could be written.
    pub directories: Vec<(String, bool)>,
    /// The names of environment variables, without their values.
    pub variables: Vec<String>,
}

impl Granted {
    /// Whether the run could touch nothing outside its sandbox. Whoever adds a kind of reach adds it here, so that a journal notes
    /// such runs before they begin.
    pub fn is_empty(&self) -> bool {
        self.directories.is_empty() && self.variables.is_empty()
    }

    fn of(scope: &Scope) -> Self {
        let directories = scope.directories.iter().map(|one| (one.guest_path.clone(), one.writable));
        let variables = scope.environment.iter().map(|(name, _)| name.clone());
        Self { directories: directories.collect(), variables: variables.collect() }
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// It answered.
    Done,
    /// It asks the client something before it can answer.
    Asked,
    /// It says itself that it failed.
    Failed,
    /// It did not run, because the call was not approved.
    Refused,
    /// It ran into its deadline.
    TimedOut,
    /// It ran into a limit on memory or output.
    OverLimit,
    /// It trapped, exited, or broke the contract.
    Crashed,
    /// Its access was taken away: a grant by the operator, or a root by the client.
    Revoked,
    /// Nobody waited for it any more.
    Cancelled,
}

impl Ended {
    /// The ending in one or two words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Asked => "asked",
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::TimedOut => "timed out",
            Self::OverLimit => "over limit",
            Self::Crashed => "crashed",
            Self::Revoked => "revoked",
            Self::Cancelled => "cancelled",
        }
    }

    /// How a run with this error ended.
    pub fn of(error: &CallError) -> Self {
        match error {
            CallError::Failed(_) => Self::Failed,
            CallError::Timeout(_) => Self::TimedOut,
            CallError::Memory(_) | CallError::TotalMemory | CallError::Output(_) => Self::OverLimit,
            CallError::NoInterface(_) | CallError::Exit(_) | CallError::Trap { .. } => Self::Crashed,
            CallError::Stopped => Self::Cancelled,
        }
    }
}

/// Is told about each run when it has ended. Called in the asynchronous task of the run, so it must not block.
pub trait Observer: Send + Sync {
    /// Takes the record of a run.
    fn ended(&self, record: &CallRecord);
}

/// All observers, and the journal if there is one; cheap to clone. Each run is also logged, at the level `debug`.
#[derive(Clone, Default)]
pub struct Observers {
    all: Arc<[Box<dyn Observer>]>,
    journal: Option<Arc<dyn Journal>>,
}

impl Observers {
    /// The given observers, and the log.
    pub fn new(all: Vec<Box<dyn Observer>>, journal: Option<Arc<dyn Journal>>) -> Self {
        Self { all: all.into(), journal }
    }

    /// Whether anybody would be told about a run.
    pub fn are_there(&self) -> bool {
        !self.all.is_empty() || self.journal.is_some() || tracing::enabled!(tracing::Level::DEBUG)
    }

    /// Tells the journal, if there is one.
    pub fn note(&self, event: impl FnOnce() -> Event) {
        if let Some(journal) = &self.journal {
            journal.note(&event());
        }
    }

    /// Begins a record, unless nobody would be told about it.
    pub fn begin<'a>(&self, begun: impl FnOnce() -> Begun<'a>) -> Recording {
        Recording(self.are_there().then(|| {
            let Begun { principal, plugin, digest, request, action, scope, bytes_in, arguments, approved } = begun();
            let journal = self.journal.as_ref();
            let arguments = journal.zip(arguments).map(|(journal, arguments)| journal.arguments(arguments));
            let record = CallRecord {
                principal,
                plugin,
                digest,
                request,
                action,
                granted: scope.map(Granted::of).unwrap_or_default(),
                began: SystemTime::now(),
                took: Duration::ZERO,
                bytes_in,
                bytes_out: 0,
                denials: Vec::new(),
                ended: Ended::Cancelled,
                refusal: None,
                approved,
            };
            let (observers, began) = (self.clone(), Instant::now());
            let arguments = arguments.unwrap_or_default();
            Box::new(Told { observers, began, record, arguments, room: None, begun: None, refused: false, over: false })
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
        for observer in &*self.all {
            observer.ended(record);
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
    pub approved: Option<bool>,
}

/// The record of a run that is not over. If it is dropped without [`Recording::end`], the run was cancelled. Empty if nobody
/// would be told about the run.
pub struct Recording(Option<Box<Told>>);

struct Told {
    observers: Observers,
    began: Instant,
    record: CallRecord,
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
        let Some(journal) = told.observers.journal.clone() else { return Ok(()) };
        let admitted = async {
            told.room = journal.room(told.bytes()).await?;
            if told.record.granted.is_empty() {
                return Ok(());
            }
            told.begun = journal.begun(&told.run()).await?;
            Ok(())
        };
        let admitted = admitted.await;
        if admitted.is_err() {
            (told.record.ended, told.record.refusal) = (Ended::Refused, Some("audit".into()));
            told.refused = true;
        }
        admitted
    }

    /// Ends the record. Resolves when the journal has kept it; everybody is told even if that is not waited for. Fails if the
    /// answer must not leave.
    #[must_use = "the answer has to wait for this"]
    pub fn end(
        mut self,
        ended: Ended,
        bytes_out: usize,
        denials: &[Denial],
    ) -> impl Future<Output = Result<(), Unrecorded>> + Send + 'static {
        let kept = self.0.as_mut().and_then(|told| {
            let record = &mut told.record;
            (record.ended, record.bytes_out, record.denials) = (ended, bytes_out, denials.to_vec());
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
        self.end(Ended::Refused, 0, &[]).await.ok();
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
        let room = self.room.take();
        let journal = self.observers.journal.as_ref().filter(|_| !self.refused)?;
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
            approved: None,
        }
    }

    #[test]
    fn every_run_is_told_of_once_however_it_ends() {
        let kept = Kept::default();
        let observers = Observers::new(vec![Box::new(kept.clone())], None);
        drop(observers.begin(begun).end(Ended::Done, 7, &[Denial::NoDirectory]));
        drop(observers.begin(begun));
        let told = kept.0.lock();
        let endings: Vec<_> = told.iter().map(|record| (record.ended, record.bytes_out)).collect();
        assert_eq!(endings, [(Ended::Done, 7), (Ended::Cancelled, 0)]);
        assert_eq!(told[0].denials, [Denial::NoDirectory]);
    }
}
