//! The error type of plugin functions: a call without a result ends with a failure or with questions.

use crate::{Failure, FailureKind, Round};

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why a function of a plugin returned no result.
///
/// The operator `?` converts any `std::error::Error` into [`Error::Failed`]. This type does not implement `std::error::Error` itself,
/// because that conversion would then conflict with `From<T> for T`.
#[derive(Debug)]
pub enum Error {
    /// The operation failed. The model reads the message: a tool call is answered with it and `isError: true`.
    Failed(String),
    /// A protocol error, for requests that are wrong rather than operations that failed.
    Protocol { kind: FailureKind, message: String, data: Option<serde_json::Value> },
    /// The client must answer questions first. [`crate::Call::ask`] returns this error; pass it on with `?`.
    Ask(Round),
}

impl Error {
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }

    /// Returns the error for parameters that satisfy the schema but are invalid for another reason.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::Protocol { kind: FailureKind::InvalidParams, message: message.into(), data: None }
    }

    /// Returns the error for a URI without a resource.
    pub fn resource_not_found(uri: &str) -> Self {
        let data = serde_json::json!({ "uri": uri });
        Self::Protocol { kind: FailureKind::NotFound, message: "Resource not found".into(), data: Some(data) }
    }

    /// Returns the questions of an [`Error::Ask`] as `Ok`, and any other error as `Err` in the contract's form.
    pub fn into_parts(self) -> std::result::Result<Round, Failure> {
        match self {
            Self::Ask(round) => Ok(round),
            Self::Failed(message) => Err(Failure { kind: FailureKind::Failed, message, data: None }),
            Self::Protocol { kind, message, data } => {
                Err(Failure { kind, message, data: data.map(|data| data.to_string()) })
            }
        }
    }
}

impl<E: std::error::Error> From<E> for Error {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            message = format!("{message}: {cause}");
            source = cause.source();
        }
        Self::Failed(message)
    }
}
