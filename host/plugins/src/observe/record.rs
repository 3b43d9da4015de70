//! The record of a run: who called which plugin for what, what the plugin had access to, and how the run ended. A record contains only the
//! sizes of arguments and results; what the journal stores about arguments is not passed to observers.

use std::{
    fmt,
    net::IpAddr,
    time::{Duration, SystemTime},
};

use wharf_protocol::{Method, Revision, meta::Trace};
use wharf_sandbox::CallError;
use wharf_scope::{Denial, Scope, network::HttpUse};

use wharf_base::{digest::Digest, principal::Principal, slot::Slot, text::escaped};
use wharf_policy::access::{
    capability::Access,
    grants::hint::{self, By},
};

/// One run of a plugin, or a call that was refused before it ran.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CallRecord {
    /// The caller; `None` if wharf itself made the call, to ask a plugin for its lists.
    pub principal: Option<Principal>,
    /// The id of the plugin; empty if the call was refused because the plugin does not exist.
    pub plugin: String,
    /// The SHA-256 of the component that ran; `None` if the plugin does not exist.
    pub digest: Option<Digest>,
    /// The request, if a client made one.
    pub request: Option<RequestFacts>,
    /// What the plugin was to do.
    pub action: Action,
    /// What it had access to.
    pub granted: Granted,
    /// When the run was requested.
    pub began: SystemTime,
    /// How long it took, including the time that it waited for its turn.
    pub took: Duration,
    /// How long it waited for its turn; `None` if it did not begin to run, or was stopped.
    pub waited: Option<Duration>,
    /// The size of the arguments in bytes.
    pub bytes_in: usize,
    /// The size of the result in bytes; 0 if there is no result.
    pub bytes_out: usize,
    /// The actions of the plugin that the sandbox refused.
    pub denials: Vec<Denied>,
    /// The first 128 HTTP requests that it made, including refused ones.
    pub requests: Vec<HttpUse>,
    /// How it ended.
    pub ended: Ended,
    /// Why the call was refused before it ran: the code of the error, or one word.
    pub refusal: Option<String>,
    /// Whether the call was approved, and by whom; `None` if it needed no approval.
    pub approval: Option<ApprovalOutcome>,
    /// The slot in which the meter caches the counters of the tool.
    pub(crate) slot: Option<Slot>,
}

impl CallRecord {
    /// Returns the kind of error, as a word or the code of a JSON-RPC error, or `None` if there was no error.
    pub fn error_type(&self) -> Option<&str> {
        self.refusal.as_deref().or_else(|| self.ended.error_type())
    }
}

/// An action of a plugin that the sandbox refused. Its text says what it was, and what would allow it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denied(pub(crate) Denial);

impl Denied {
    /// Returns the method and the URL of the refused HTTP request, each cut to 255 bytes, or `None` if it was something else.
    pub fn http(&self) -> Option<(&str, &str)> {
        match &self.0 {
            Denial::Http(http) => Some((&http.method, &http.url)),
            Denial::NoDirectory { .. } => None,
        }
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hint::hint(&self.0, By::Config, escaped).text)
    }
}

/// Whether a call was approved, and by whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApprovalOutcome {
    /// The embedding program approved it.
    Program,
    /// The person who uses the client approved this call.
    Client,
    /// The operator's program approved this call.
    Command,
    /// The user who started wharf approved this call in a window.
    Window,
    /// A person approved such calls earlier, until the session ends.
    Session,
    /// A person approved such calls earlier, until the approval is revoked.
    Always,
    /// A person or program refused the call, or there was nobody to ask.
    Refused,
}

impl ApprovalOutcome {
    /// Returns the approval in one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Program => "program",
            Self::Client => "client",
            Self::Command => "command",
            Self::Window => "window",
            Self::Session => "session",
            Self::Always => "always",
            Self::Refused => "refused",
        }
    }
}

/// Facts about the request that a run belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestFacts {
    /// The revision that the client speaks.
    pub(crate) revision: Revision,
    /// The id of the request, as JSON.
    pub id: String,
    /// A digest of the session's id, because the id itself is a secret; `None` for a request without a session.
    pub session: Option<String>,
    /// How the request came in; `None` if the embedding program made the call itself.
    pub transport: Option<Transport>,
    /// The address of the client, if the request came in over TCP. Behind proxies that the config trusts, it is what they say.
    pub address: Option<IpAddr>,
    /// The trace context in the MCP request.
    pub trace: Option<Trace>,
    /// The trace context in the headers of the HTTP request. It may differ from `trace`, because an HTTP request may carry several MCP
    /// requests.
    pub link: Option<Trace>,
    /// The id of the HTTP request in the access log and in the response headers, if it has one.
    pub request_id: Option<String>,
}

impl RequestFacts {
    /// Returns the date of the revision of MCP that the client speaks.
    pub fn revision(&self) -> &'static str {
        self.revision.as_str()
    }
}

/// Returns the facts about a request that the embedding program made itself.
pub fn request_facts(revision: Revision, id: String) -> RequestFacts {
    RequestFacts {
        revision,
        id,
        session: None,
        transport: None,
        address: None,
        trace: None,
        link: None,
        request_id: None,
    }
}

/// How a request came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transport {
    /// Over a pipe, or any other reader and writer.
    Pipe,
    /// Over HTTP on a TCP address.
    Http,
    /// Over HTTP on a Unix socket.
    Unix,
}

/// The method of a request that reaches a plugin, such as `tools/call`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestMethod(pub(crate) Method);

impl RequestMethod {
    /// Returns the name of the method.
    pub fn as_str(self) -> &'static str {
        self.0.as_str()
    }
}

impl From<Method> for RequestMethod {
    fn from(method: Method) -> Self {
        Self(method)
    }
}

/// What a plugin was to do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// Return its lists.
    List,
    /// Handle a client's request for a tool, a resource, a prompt or a completion.
    Request {
        /// The method.
        method: RequestMethod,
        /// The name of the tool or prompt as clients know it, the URI of the resource, or the prompt or template whose argument is
        /// completed.
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

/// What a run had access to outside its sandbox.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Granted {
    /// The path of each directory as the plugin sees it, and the access to it.
    pub directories: Vec<(String, Access)>,
    /// The names of environment variables, without their values.
    pub variables: Vec<String>,
    /// Whether it could make HTTP requests.
    pub http: bool,
}

impl Granted {
    /// Whether the run had no access to anything outside its sandbox. A new kind of access must be added here, so that a journal records
    /// such runs before they begin.
    pub fn is_empty(&self) -> bool {
        let Self { directories, variables, http } = self;
        directories.is_empty() && variables.is_empty() && !http
    }

    pub(super) fn of(scope: &Scope) -> Self {
        let access = |writable| if writable { Access::ReadWrite } else { Access::Read };
        let directories = scope.directories.iter().map(|one| (one.guest_path.clone(), access(one.writable)));
        let variables = scope.environment.iter().map(|(name, _)| name.clone());
        Self { directories: directories.collect(), variables: variables.collect(), http: scope.network.is_some() }
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// It returned an answer.
    Done,
    /// It returned a question to the client, which must be answered first.
    Asked,
    /// It reported a failure itself.
    Failed,
    /// It did not run, because the call was not approved.
    Refused,
    /// It exceeded its time limit.
    TimedOut,
    /// It exceeded a limit on memory or output.
    OverLimit,
    /// It trapped, exited, or violated the contract of the plugin interface.
    Crashed,
    /// Its access was taken away: the operator revoked a grant, or the client removed a root.
    Revoked,
    /// It was cancelled, because its answer was not needed any more.
    Cancelled,
}

impl Ended {
    /// Returns the ending as the audit log, metrics and traces name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Asked => "asked",
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::TimedOut => "timed_out",
            Self::OverLimit => "over_limit",
            Self::Crashed => "crashed",
            Self::Revoked => "revoked",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns the value of `error.type` for this ending, or `None` if it is not an error.
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
}

impl From<&CallError> for Ended {
    fn from(error: &CallError) -> Self {
        match error {
            CallError::Failed(_) => Self::Failed,
            CallError::Timeout(_) | CallError::Busy(_) => Self::TimedOut,
            CallError::Memory(_) | CallError::TotalMemory | CallError::Output(_) | CallError::Files(_) => {
                Self::OverLimit
            }
            CallError::NotMcp(_) | CallError::NoInterface(_) | CallError::Exit(_) | CallError::Trap { .. } => {
                Self::Crashed
            }
            CallError::Stopped => Self::Cancelled,
        }
    }
}

/// The ending in words, for people.
impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TimedOut => "timed out",
            Self::OverLimit => "over limit",
            other => other.as_str(),
        })
    }
}

/// Receives the record of each run when it has ended, and of each call that was refused before it ran. It is called in the asynchronous
/// task of the run, so it must not block.
pub trait Observer: Send + Sync {
    /// Receives the record of a run.
    fn ended(&self, record: &CallRecord);
}
