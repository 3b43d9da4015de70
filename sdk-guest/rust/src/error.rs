//! How a call ends without a result: with a failure, or with a question.

use crate::{Failure, Round};

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a function of a plugin returned early.
///
/// Any `std::error::Error` becomes [`Error::Failed`] by `?`. It does not implement `std::error::Error` itself, because the
/// conversion could not exist then.
#[derive(Debug)]
pub enum Error {
    /// The operation failed, in words that help the model: a tool call answers `isError: true` with them.
    Failed(String),
    /// A JSON-RPC error: for what is wrong with the request rather than with the world.
    Protocol { code: i32, message: String, data: Option<serde_json::Value> },
    /// The client must be asked something first. [`crate::Call::ask`] returns this; pass it on with `?`.
    Ask(Round),
}

impl Error {
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }

    /// The parameters are wrong in a way the schema cannot say.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::Protocol { code: -32602, message: message.into(), data: None }
    }

    /// There is no resource under this URI.
    pub fn resource_not_found(uri: &str) -> Self {
        let data = serde_json::json!({ "uri": uri });
        Self::Protocol { code: -32002, message: "Resource not found".into(), data: Some(data) }
    }

    /// Splits the error into the round of questions that it asks for (`Ok`), or the failure that it is (`Err`).
    pub fn into_parts(self) -> std::result::Result<Round, Failure> {
        match self {
            Self::Ask(round) => Ok(round),
            Self::Failed(message) => Err(Failure { message, code: None, data: None }),
            Self::Protocol { code, message, data } => {
                Err(Failure { message, code: Some(code), data: data.map(|data| data.to_string()) })
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
