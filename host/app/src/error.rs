//! Why something did not work, for programs that embed wharf.

use std::{error, fmt};

use wharf_base::failed::failed;
use wharf_plugins::plugins::status::{Problem, Stage};
use wharf_serve::methods::call::{Failed, Said, Why};

/// Why something did not work. Its text says all of it, with the texts of its sources: what happened, why, and what to change.
pub struct Error {
    kind: ErrorKind,
    plugin: Option<(String, Stage)>,
    pointer: Option<String>,
    cause: anyhow::Error,
}

/// The kinds of errors, for programs that react to some of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The config is wrong, or something else that the program gave, such as a plugin's id, a profile or a folder.
    Config,
    /// The sandbox could not be started.
    Sandbox,
    /// A plugin that the program gave does not load: see [`Error::plugin`] and [`Error::stage`].
    Plugin,
    /// There is no such tool, resource, prompt or template.
    NotFound,
    /// The arguments of a call are not valid: see [`Error::pointer`].
    InvalidArguments,
    /// The config wants a person's approval of this call: see [`Call::approved`](crate::Call::approved).
    NeedsApproval,
    /// The plugin wants to ask its client something, or needs a client with certain capabilities. Only a
    /// [`Session`](crate::Session) has a client.
    NeedsClient,
    /// The call was not allowed, for instance by the approver of the program.
    Refused,
    /// A limit is used up for now; the same call may work later.
    Busy,
    /// The call took longer than [`Call::timeout`](crate::Call::timeout).
    TimedOut,
    /// The operator took away access that the call was using.
    Revoked,
    /// Wharf was stopped.
    Stopped,
    /// The plugin failed, without a result that says so.
    Failed,
}

impl Error {
    fn new(kind: ErrorKind, cause: impl Into<anyhow::Error>) -> Self {
        Self { kind, plugin: None, pointer: None, cause: cause.into() }
    }

    pub(crate) fn config(cause: impl Into<anyhow::Error>) -> Self {
        Self::new(ErrorKind::Config, cause)
    }

    pub(crate) fn sandbox(cause: impl Into<anyhow::Error>) -> Self {
        Self::new(ErrorKind::Sandbox, cause)
    }

    pub(crate) fn text(kind: ErrorKind, text: String) -> Self {
        Self::new(kind, anyhow::Error::msg(text))
    }

    pub(crate) fn of_plugin(id: &str, Problem { stage, text, .. }: Problem) -> Self {
        let problem = format!("the plugin `{id}` does not load ({stage}): {text}");
        Self { plugin: Some((id.to_owned(), stage)), ..Self::text(ErrorKind::Plugin, problem) }
    }

    pub(crate) fn arguments(pointer: Option<String>, text: String) -> Self {
        Self { pointer, ..Self::text(ErrorKind::InvalidArguments, text) }
    }

    /// `name`: the tool, resource, prompt or template of the call.
    pub(crate) fn of_call(name: &str, Failed { why, said }: Failed) -> Self {
        let text = match said {
            Said::Rpc(error) => error.message,
            Said::Explained(text) => text,
            Said::InputRequired(_) => {
                format!("`{name}` wants to ask its client something, but a call of the program itself has no client")
            }
        };
        let kind = match why {
            Why::InvalidArguments(pointer) => return Self::arguments(pointer, text),
            Why::NotFound => ErrorKind::NotFound,
            Why::NeedsApproval => ErrorKind::NeedsApproval,
            Why::NeedsClient => ErrorKind::NeedsClient,
            Why::Refused => ErrorKind::Refused,
            Why::Busy => ErrorKind::Busy,
            Why::Revoked => ErrorKind::Revoked,
            Why::Failed => ErrorKind::Failed,
        };
        Self::text(kind, text)
    }

    /// Returns the error for the commands of the binary, which tell wrong input from other failures.
    pub(crate) fn for_operator(self) -> anyhow::Error {
        match self.kind {
            ErrorKind::Config => self.cause,
            _ => failed(self),
        }
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the id of the plugin that does not load.
    pub fn plugin(&self) -> Option<&str> {
        self.plugin.as_ref().map(|(id, _)| id.as_str())
    }

    /// Returns the stage at which the plugin does not load.
    pub fn stage(&self) -> Option<Stage> {
        self.plugin.as_ref().map(|(_, stage)| *stage)
    }

    /// Returns the place of the first problem in the arguments of the call, as a JSON Pointer, if it is known.
    pub fn pointer(&self) -> Option<&str> {
        self.pointer.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.cause)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error").field("kind", &self.kind).field("text", &self.to_string()).finish_non_exhaustive()
    }
}

/// The sources are for programs that look for one of them: the text of this error contains theirs.
impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        self.cause.source()
    }
}
