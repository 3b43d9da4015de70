//! Requests over HTTP, for plugins that the operator lets out: one function that sends and waits, over `wasi:http`.
//!
//! Nothing here waits without a limit or takes in more than a limit, and no redirect is followed: who follows one asks again, so
//! that the operator's rules are put to each hop. Secrets that the operator's rules add to a request are never seen here.

use std::{fmt, time::Duration};

mod send;

pub use send::send;

/// How long a request may take, unless it says otherwise: less than a call may by default, so that its failure can be told.
pub const TIMEOUT: Duration = Duration::from_secs(20);

/// How long the body of an answer may be, unless the request says otherwise.
pub const MAX_BODY: usize = 4 << 20;

/// What is asked of the resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Method {
    #[default]
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
}

/// A request. Host, length and framing are added where it is sent, and an `authorization` where the operator's rule has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub method: Method,
    /// `http://` or `https://`, with everything escaped that has to be. A fragment is not sent.
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// For all of it: until the last byte of the answer is there.
    pub timeout: Duration,
    /// The most bytes that the body of the answer may have.
    pub max_body: usize,
}

impl Request {
    pub fn new(method: Method, url: impl Into<String>) -> Self {
        let (url, headers, body) = (url.into(), Vec::new(), Vec::new());
        Self { method, url, headers, body, timeout: TIMEOUT, max_body: MAX_BODY }
    }

    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Sends this as JSON.
    pub fn json(mut self, body: &impl serde::Serialize) -> crate::Result<Self> {
        self.body = serde_json::to_vec(body)?;
        Ok(self.header("content-type", "application/json"))
    }
}

/// An answer, of any status.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Response {
    pub status: u16,
    /// Names in small letters, values as they came.
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Vec<u8>,
}

impl Response {
    /// The first header of this name, in small letters, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers.iter().find(|(key, _)| key == name)?;
        std::str::from_utf8(value).ok()
    }

    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The body, read as JSON.
    pub fn json<T: serde::de::DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_slice(&self.body)
    }
}

/// Asks for a URL.
pub fn get(url: &str) -> Result<Response, Error> {
    send(&Request::new(Method::Get, url))
}

/// Why there is no answer. Its text is a sentence for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// This is no URL that can be asked for.
    Url(String),
    /// The request cannot be sent as it is.
    Request(String),
    /// No rule of the operator allows it.
    Refused {
        host: String,
    },
    /// The name leads to an address of the operator's own network, which no rule opens.
    PrivateAddress {
        host: String,
    },
    /// There is no such host, it takes no connection, or the connection broke.
    Unreachable {
        host: String,
        problem: String,
    },
    TimedOut {
        host: String,
        limit: Duration,
    },
    /// The body of the answer is longer than the request allows.
    TooLong {
        host: String,
        limit: usize,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => write!(
                to,
                "{url} is not a URL that can be requested: it must begin with http:// or https:// and name a host, and no user or password."
            ),
            Self::Request(problem) => write!(to, "The request cannot be sent: {problem}."),
            Self::Refused { host } => write!(
                to,
                "The operator of this server does not allow this request to {host}. Only the operator can change that."
            ),
            Self::PrivateAddress { host } => write!(
                to,
                "The operator of this server does not allow requests to addresses of a private network, such as that of {host}."
            ),
            Self::Unreachable { host, problem } => write!(to, "{host} cannot be reached: {problem}."),
            Self::TimedOut { host, limit } => {
                write!(to, "{host} did not answer in full within {} seconds.", limit.as_secs())
            }
            Self::TooLong { host, limit } => {
                write!(to, "The answer of {host} is longer than {} KiB, the most that is taken in.", limit / 1024)
            }
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_found_by_their_name() {
        let headers = vec![("etag".to_owned(), b"\"1\"".to_vec()), ("odd".to_owned(), vec![0xff])];
        let response = Response { status: 204, headers, body: Vec::new() };
        assert_eq!(
            (response.header("etag"), response.header("odd"), response.header("age")),
            (Some("\"1\""), None, None)
        );
        assert!(response.is_success());
    }

    #[test]
    fn what_is_sent_as_json_says_so() {
        let request = Request::new(Method::Post, "https://example.org").json(&["a"]).unwrap();
        assert_eq!(request.body, b"[\"a\"]");
        assert_eq!(request.headers, [("content-type".to_owned(), "application/json".to_owned())]);
    }

    #[test]
    fn errors_are_sentences() {
        let host = || "example.org".to_owned();
        for error in [
            Error::Url("x".into()),
            Error::Request("it has a header that may not be set".into()),
            Error::Refused { host: host() },
            Error::PrivateAddress { host: host() },
            Error::Unreachable { host: host(), problem: "it takes no connection".into() },
            Error::TimedOut { host: host(), limit: TIMEOUT },
            Error::TooLong { host: host(), limit: MAX_BODY },
        ] {
            let text = error.to_string();
            assert!(text.ends_with('.') && !text.ends_with(".."), "{text}");
        }
    }
}
