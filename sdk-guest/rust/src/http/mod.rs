//! HTTP requests over `wasi:http`, for plugins that the operator allows to send them. [`send`] sends a request and waits for the response.
//!
//! Every wait has a timeout and every body a maximum length. Redirects are not followed: a plugin that follows one sends a new request, so
//! that the operator's rules apply to each hop. Secrets that the operator's rules add to a request are never visible to the plugin.

use std::{fmt, time::Duration};

mod send;

pub use send::send;

/// The default timeout of a request. It is shorter than the default time limit of a call, so that the call can still report the failure.
pub const TIMEOUT: Duration = Duration::from_secs(20);

/// The default maximum length of a response body, in bytes.
pub const MAX_BODY: usize = 4 << 20;

/// The method of a request.
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

/// An HTTP request. The host adds the headers for host, length and framing, and the headers that the operator's rule has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub method: Method,
    /// The URL, with scheme `http` or `https` and percent-encoded where necessary. A fragment is not sent.
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The time limit of the whole request, until the last byte of the response is received.
    pub timeout: Duration,
    /// The maximum length of the response body, in bytes.
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

    /// Sets the body to this value as JSON.
    pub fn json(mut self, body: &impl serde::Serialize) -> crate::Result<Self> {
        self.body = serde_json::to_vec(body)?;
        Ok(self.header("content-type", "application/json"))
    }
}

/// An HTTP response, of any status.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Response {
    pub status: u16,
    /// The headers: names in lowercase, values as received.
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Vec<u8>,
}

impl Response {
    /// Returns the first header of this lowercase name, if its value is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        std::str::from_utf8(self.header_bytes(name)?).ok()
    }

    /// Returns the first header of this lowercase name as it was received. Some servers send bytes that are not UTF-8.
    pub fn header_bytes(&self, name: &str) -> Option<&[u8]> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_slice())
    }

    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Parses the body as JSON.
    pub fn json<T: serde::de::DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_slice(&self.body)
    }
}

/// Sends a GET request.
pub fn get(url: &str) -> Result<Response, Error> {
    send(&Request::new(Method::Get, url))
}

/// The reason why there is no response. Its text is a sentence that a model can read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The URL is not valid for a request.
    Url(String),
    /// The request cannot be sent.
    Request(String),
    /// No rule of the operator allows the request.
    Refused {
        host: String,
    },
    /// The name resolves to a private address, and no rule of the operator allows those (protection against SSRF).
    PrivateAddress {
        host: String,
    },
    /// The host does not exist, refused the connection, or the connection broke.
    Unreachable {
        host: String,
        problem: String,
    },
    TimedOut {
        host: String,
        limit: Duration,
    },
    /// The host answered, but the answer cannot be used.
    Answer {
        host: String,
        problem: String,
    },
    /// The call has used up what the operator allows it in requests or bytes.
    Limit {
        host: String,
    },
    /// The body of the response is longer than the request allows.
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
            Self::Refused { host } => write!(to, "The operator of this server does not allow this request to {host}."),
            Self::PrivateAddress { host } => write!(
                to,
                "The operator of this server does not allow requests to addresses of a private network, such as that of {host}."
            ),
            Self::Unreachable { host, problem } => write!(to, "{host} cannot be reached: {problem}."),
            Self::TimedOut { host, limit } => {
                write!(to, "{host} did not answer in full within {} seconds.", limit.as_secs())
            }
            Self::Answer { host, problem } => write!(to, "The answer of {host} cannot be used: {problem}."),
            Self::Limit { host } => write!(
                to,
                "The request to {host} is more than the operator of this server allows one call, in requests or in bytes."
            ),
            Self::TooLong { host, limit } => {
                write!(to, "The answer of {host} is longer than the limit of {} KiB.", limit / 1024)
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
        assert_eq!(response.header_bytes("odd"), Some(&[0xff][..]));
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
            Error::Unreachable { host: host(), problem: "it refused the connection".into() },
            Error::TimedOut { host: host(), limit: TIMEOUT },
            Error::Answer { host: host(), problem: "it has too many headers".into() },
            Error::Limit { host: host() },
            Error::TooLong { host: host(), limit: MAX_BODY },
        ] {
            let text = error.to_string();
            assert!(text.ends_with('.') && !text.ends_with(".."), "{text}");
        }
    }
}
