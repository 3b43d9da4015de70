//! The record of a run: who had which plugin do what, what it was allowed to touch, and what came of it. Of the contents of
//! calls nothing is on record but how large they were.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use wharf_protocol::Method;
use wharf_sandbox::{CallError, Denial, Scope};

use crate::base::principal::Principal;

/// One run of a plugin, or one that was refused before it began.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CallRecord {
    /// For whom. None: for wharf itself, which asks plugins for their lists.
    pub principal: Option<Principal>,
    /// The plugin, by its id.
    pub plugin: String,
    /// The SHA-256 of the component that ran.
    pub digest: [u8; 32],
    /// What it was to do.
    pub action: Action,
    /// What it could touch.
    pub granted: Granted,
    /// When it was to run.
    pub began: SystemTime,
    /// From the moment when it was to run, waiting for its turn included.
    pub took: Duration,
    /// How large its arguments were, and its outcome, in bytes.
    pub bytes_in: usize,
    /// See `bytes_in`; 0 without an outcome.
    pub bytes_out: usize,
    /// What it tried and was refused.
    pub denials: Vec<Denial>,
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
        /// `tools/call` and the others that reach a plugin.
        method: Method,
        /// The tool or prompt by the name that clients know, the URI, or what is completed.
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
    /// By the path that the plugin sees; and whether it could be written.
    pub directories: Vec<(String, bool)>,
    /// Names, without their values.
    pub variables: Vec<String>,
}

impl Granted {
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
    /// It wants answers first.
    Asked,
    /// It says itself that it failed.
    Failed,
    /// It did not begin: whoever had to say yes said no.
    Refused,
    /// It ran into its deadline.
    TimedOut,
    /// It ran into a limit on memory or output.
    OverLimit,
    /// It trapped, exited, or broke the contract.
    Crashed,
    /// Its access was taken away: a grant by the operator, or a root by the client.
    Revoked,
    /// Nobody waits for it any more.
    Cancelled,
}

impl Ended {
    /// In two words at the most.
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

/// Who is told of each run when it has ended. Called where the run was, so it must not block.
pub trait Observer: Send + Sync {
    /// Takes the record of a run.
    fn ended(&self, record: &CallRecord);
}

/// Everybody who is told; cheap to clone. The log is told as well, at the level `debug`.
#[derive(Clone, Default)]
pub struct Observers(Arc<[Box<dyn Observer>]>);

impl Observers {
    /// All of these.
    pub fn new(all: Vec<Box<dyn Observer>>) -> Self {
        Self(all.into())
    }

    /// Begins a record, unless nobody would be told of it.
    pub fn begin<'a>(&self, begun: impl FnOnce() -> Begun<'a>) -> Recording {
        let told = !self.0.is_empty() || tracing::enabled!(tracing::Level::DEBUG);
        let record = told.then(|| {
            let Begun { principal, plugin, digest, action, scope, bytes_in } = begun();
            Box::new(CallRecord {
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
                ended: Ended::Cancelled,
            })
        });
        Recording { observers: self.clone(), record, began: Instant::now() }
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

/// A run that is not over. Dropped before it is ended, it was cancelled.
pub struct Recording {
    observers: Observers,
    record: Option<Box<CallRecord>>,
    began: Instant,
}

impl Recording {
    pub fn end(mut self, ended: Ended, bytes_out: usize, denials: &[Denial]) {
        if let Some(record) = &mut self.record {
            record.ended = ended;
            record.bytes_out = bytes_out;
            record.denials = denials.to_vec();
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if let Some(record) = &mut self.record {
            record.took = self.began.elapsed();
            self.observers.tell(record);
        }
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
        observers.begin(begun).end(Ended::Done, 7, &[Denial::NoDirectory]);
        drop(observers.begin(begun));
        let told = kept.0.lock();
        let endings: Vec<_> = told.iter().map(|record| (record.ended, record.bytes_out)).collect();
        assert_eq!(endings, [(Ended::Done, 7), (Ended::Cancelled, 0)]);
        assert_eq!(told[0].denials, [Denial::NoDirectory]);
    }
}
