//! The record of a run: who used which plugin for what, what it was allowed to touch, and how it ended. Of the contents of a
//! call, only the sizes are recorded; what a journal keeps of arguments goes past the observers.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use wharf_protocol::{Method, Revision, meta::Trace};
use wharf_sandbox::{CallError, Denial, Scope, network::HttpUse};

use crate::base::{principal::Principal, slot::Slot};

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
    /// How much of that it waited for its turn. None: it did not begin to run, or was stopped.
    pub waited: Option<Duration>,
    /// The size of the arguments in bytes.
    pub bytes_in: usize,
    /// The size of the outcome in bytes; 0 if there is none.
    pub bytes_out: usize,
    /// What the plugin tried and the sandbox refused.
    pub denials: Vec<Denial>,
    /// The HTTP requests that it made, refused ones among them: the first 128.
    pub requests: Vec<HttpUse>,
    /// How it ended.
    pub ended: Ended,
    /// If it was refused before it ran, why: the code of the error, or one word.
    pub refusal: Option<String>,
    /// Whether it was approved, and by whom, if anybody had to approve it.
    pub approval: Option<Approval>,
    /// Where the meter keeps what it counts the calls of this tool in.
    pub(crate) slot: Option<Slot>,
}

impl CallRecord {
    /// What was wrong, in a word or as the code of a JSON-RPC error. None: nothing was.
    pub fn error_type(&self) -> Option<&str> {
        self.refusal.as_deref().or_else(|| self.ended.error_type())
    }
}

/// Whether a call was approved, and by whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Approval {
    /// The embedding program approved it.
    Program,
    /// The client's person approved this call.
    Client,
    /// The operator's program approved this call.
    Command,
    /// A person approved of such calls before, until the session ends.
    Session,
    /// A person approved of such calls before, until that is revoked.
    Always,
    /// Somebody said no, or nobody could be asked.
    Refused,
}

impl Approval {
    /// In one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Program => "program",
            Self::Client => "client",
            Self::Command => "command",
            Self::Session => "session",
            Self::Always => "always",
            Self::Refused => "refused",
        }
    }
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
    /// The trace to which the HTTP request says that it belongs, which need not be the same: it may carry several requests.
    pub link: Option<Trace>,
    /// By which the HTTP request is known in the access log and in its response, where it has one.
    pub request_id: Option<String>,
}

impl RequestFacts {
    /// Of a request that the program made itself.
    pub fn new(revision: Revision, id: String) -> Self {
        Self { revision, id, session: None, transport: None, trace: None, link: None, request_id: None }
    }
}

/// How a request came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transport {
    /// Over a pipe, or any other reader and writer.
    Pipe,
    /// Over HTTP at an address.
    Http,
    /// Over HTTP at a Unix socket.
    Unix,
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
    /// Whether the run could touch nothing outside its sandbox. Whoever adds a kind of reach adds it here, so that a journal notes
    /// such runs before they begin.
    pub fn is_empty(&self) -> bool {
        let Self { directories, variables, http } = self;
        directories.is_empty() && variables.is_empty() && !http
    }

    pub(super) fn of(scope: &Scope) -> Self {
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

    /// The ending in one word, as logs and metrics have it.
    pub fn word(self) -> &'static str {
        match self {
            Self::TimedOut => "timed_out",
            Self::OverLimit => "over_limit",
            other => other.as_str(),
        }
    }

    /// What stands under `error.type` when a run ended like this. None: that is no error.
    pub fn error_type(self) -> Option<&'static str> {
        match self {
            Self::Done | Self::Asked => None,
            Self::Failed => Some("tool_error"),
            Self::Refused => Some("refused"),
            Self::TimedOut => Some("timeout"),
            Self::OverLimit => Some("over_limit"),
            Self::Crashed => Some("crash"),
            Self::Revoked => Some("revoked"),
            Self::Cancelled => Some("cancelled"),
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

/// Is told about each run when it has ended, and about each call that was refused before it ran. Called in the asynchronous task of the run, so it must not block.
pub trait Observer: Send + Sync {
    /// Takes the record of a run.
    fn ended(&self, record: &CallRecord);
}
