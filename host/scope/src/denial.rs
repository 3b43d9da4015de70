//! Records of the attempts of guests that were refused, and of their HTTP requests.

/// An attempt of a guest that the host refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denial {
    /// The guest made an HTTP request that was refused.
    Http(HttpDenial),
    /// The guest asked for its directories, but has no access to any.
    NoDirectory {
        /// Whether the plugin asked through its contract. Otherwise the runtime of its language did, which many do at their start.
        asked: bool,
    },
}

/// An HTTP request that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpDenial {
    /// The method, cut to 255 bytes.
    pub method: String,
    /// The URL without its query, cut to 255 bytes.
    pub url: String,
    /// Why the request was refused.
    pub why: HttpRefusal,
}

/// Why a request is not allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HttpRefusal {
    /// No rule of the operator allows it.
    NoRule,
    /// A rule allows the host name, but it resolves to this address, which is private or otherwise closed to plugins. This prevents SSRF
    /// and DNS rebinding.
    Address(String),
    /// This limit, named as in the config, is used up.
    Limit(&'static str),
    /// The request is malformed or ambiguous; this says how.
    Malformed(&'static str),
    /// The request contains the placeholder of this secret, but its destination may not receive the secret.
    Placeholder(String),
    /// The response could have contained a secret in a form in which it cannot be masked; this says why.
    Unreadable(&'static str),
}

/// The record of one HTTP request of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpUse {
    /// The method.
    pub method: String,
    /// The host and, if the URL names one, the port.
    pub authority: String,
    /// The status of the response, if there was one.
    pub status: Option<u16>,
    /// The bytes of the request's body that were sent.
    pub bytes_out: u64,
    /// The bytes of the response's body that were received.
    pub bytes_in: u64,
    /// Whether it was refused, by the operator's rules or limits.
    pub denied: bool,
}

impl HttpUse {
    /// Creates the record of a request of which nothing was sent yet.
    pub fn new(method: String, authority: String) -> Self {
        Self { method, authority, status: None, bytes_out: 0, bytes_in: 0, denied: false }
    }
}
