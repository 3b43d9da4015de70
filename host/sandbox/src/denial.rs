//! What guests try and are not allowed, and what they do that goes on record.

/// Something that a guest tried and was not allowed, as far as the host could see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denial {
    /// It made an HTTP request that was refused.
    Http(HttpDenial),
    /// It asked for directories, and none is open to it.
    NoDirectory,
}

/// A request that a guest tried and was not allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpDenial {
    /// The method, of which at most 255 bytes are kept.
    pub method: String,
    /// The URL without its query, of which at most 255 bytes are kept.
    pub url: String,
    /// Why it was not allowed.
    pub why: HttpRefusal,
}

/// Why a request is not allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HttpRefusal {
    /// No rule of the operator allows it.
    NoRule,
    /// A rule allows the name, but it leads to this address, which is private or otherwise not for plugins.
    Address(String),
    /// This limit, named as in the config, is used up.
    Limit(&'static str),
    /// The request is malformed, or has something in it that could mean two things; this says what.
    Malformed(&'static str),
    /// It carries the placeholder of this secret to where the secret does not belong.
    Placeholder(String),
    /// The response could have shown a secret in a form in which it cannot be masked; this says why.
    Unreadable(&'static str),
}

/// One request of a call, for the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpUse {
    /// The method.
    pub method: String,
    /// The host and, if the URL names one, the port.
    pub authority: String,
    /// The status of the response, if there was one.
    pub status: Option<u16>,
    /// Bytes of the request's body that were sent.
    pub bytes_out: u64,
    /// Bytes of the response's body that were received.
    pub bytes_in: u64,
    /// Whether it was refused, by the operator's rules or limits.
    pub denied: bool,
}
