//! The record of a run: who used which plugin for what, what it was allowed to touch, and how it ended. Of the contents of a
//! call, only the sizes are recorded.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use wharf_protocol::Method;
use wharf_sandbox::{CallError, Denial, Report, Scope, network::HttpUse};

use crate::base::principal::Principal;

/// One run of a plugin, or a call that was refused before it ran.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CallRecord {
    /// Who made the call. None: wharf itself, which asks plugins for their lists.
    pub principal: Option<Principal>,
    /// The id of the plugin.
    pub plugin: String,
    /// The SHA-256 of the component that ran.
    pub digest: [u8; 32],
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
    /// The HTTP requests that it made, refused ones among them: the first 64.
    pub requests: Vec<HttpUse>,
    /// How it ended.
    pub ended: Ended,
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
    /// Whether it could make HTTP requests.
    pub http: bool,
}

impl Granted {
    fn of(scope: &Scope) -> Self {
        let directories = scope.directories.iter().map(|one| (one.guest_path.clone(), one.writable));
        let variables = scope.environment.iter().map(|(name, _)| name.clone());
        Self { directories: directories.collect(), variables: variables.collect(), http: scope.network.is_some() }
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

/// All observers; cheap to clone. Each run is also logged, at the level `debug`.
#[derive(Clone, Default)]
pub struct Observers(Arc<[Box<dyn Observer>]>);

impl Observers {
    /// The given observers, and the log.
    pub fn new(all: Vec<Box<dyn Observer>>) -> Self {
        Self(all.into())
    }

    /// Begins a record, unless nobody would be told about it.
    pub fn begin<'a>(&self, begun: impl FnOnce() -> Begun<'a>) -> Recording {
        let told = !self.0.is_empty() || tracing::enabled!(tracing::Level::DEBUG);
        Recording(told.then(|| {
            let Begun { principal, plugin, digest, action, scope, bytes_in } = begun();
            let record = CallRecord {
                principal,
                plugin,
                digest,
                action,
                granted: scope.map(Granted::of).unwrap_or_default(),
                began: SystemTime::now(),
                took: Duration::ZERO,
                bytes_in,
                bytes_out: 0,
                denials: Vec::new(),
                requests: Vec::new(),
                ended: Ended::Cancelled,
            };
            Box::new(Told { observers: self.clone(), began: Instant::now(), record })
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
        for observer in &*self.0 {
            observer.ended(record);
        }
    }
}

/// What is known when a run begins.
pub struct Begun<'a> {
    pub principal: Option<Principal>,
    pub plugin: String,
    pub digest: [u8; 32],
    pub action: Action,
    pub scope: Option<&'a Scope>,
    pub bytes_in: usize,
}

/// The record of a run that is not over. If it is dropped without [`Recording::end`] or [`Recording::stop`], the run was cancelled. Empty if nobody
/// would be told about the run.
pub struct Recording(Option<Box<Told>>);

struct Told {
    observers: Observers,
    began: Instant,
    record: CallRecord,
}

impl Recording {
    /// The run was stopped, or never began.
    pub fn stop(mut self, ended: Ended) {
        if let Some(told) = &mut self.0 {
            told.record.ended = ended;
        }
    }

    /// The run ended by itself.
    pub fn end<T>(mut self, ended: Ended, report: &Report<T>) {
        if let Some(told) = &mut self.0 {
            let record = &mut told.record;
            (record.ended, record.bytes_out) = (ended, report.bytes.unwrap_or_default());
            (record.denials, record.requests) = (report.denials.clone(), report.requests.clone());
        }
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        self.record.took = self.began.elapsed();
        self.observers.tell(&self.record);
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
            action: Action::List,
            scope: None,
            bytes_in: 2,
        }
    }

    #[test]
    fn every_run_is_told_of_once_however_it_ends() {
        let kept = Kept::default();
        let observers = Observers::new(vec![Box::new(kept.clone())]);
        let report = Report {
            result: Ok(()),
            denials: vec![Denial::NoDirectory],
            printed: String::new(),
            took: Duration::ZERO,
            bytes: Some(7),
            requests: Vec::new(),
        };
        observers.begin(begun).end(Ended::Done, &report);
        drop(observers.begin(begun));
        let told = kept.0.lock();
        let endings: Vec<_> = told.iter().map(|record| (record.ended, record.bytes_out)).collect();
        assert_eq!(endings, [(Ended::Done, 7), (Ended::Cancelled, 0)]);
        assert_eq!(told[0].denials, [Denial::NoDirectory]);
    }
}
