//! Sends a request through `wasi:http/outgoing-handler` and waits for the response, with one deadline for the whole exchange.
//!
//! WASI requires that child resources, such as pollables and streams, are dropped before their parents.

use std::time::Duration;

use wasip2::{
    clocks::monotonic_clock,
    http::{
        outgoing_handler,
        types::{
            ErrorCode, Fields, IncomingResponse, Method as WireMethod, OutgoingBody, OutgoingRequest, Scheme,
            http_error_code,
        },
    },
    io::{
        poll::{Pollable, poll},
        streams::{OutputStream, StreamError},
    },
};

use super::{Error, Method, Request, Response};

/// The maximum number of bytes per read.
const CHUNK_BYTES: u64 = 64 << 10;

/// Sends a request and waits for its response.
///
/// ```no_run
/// use wharf_sdk::{http::{self, Method, Request}, prelude::*};
///
/// fn stars(repository: &str) -> Result<u64> {
///     let url = format!("https://api.github.com/repos/{repository}");
///     let response = http::send(&Request::new(Method::Get, url).header("accept", "application/json"))?;
///     let answer: wharf_sdk::serde_json::Value = response.json()?;
///     answer["stargazers_count"].as_u64().ok_or_else(|| Error::failed(format!("{repository} has no stars to count")))
/// }
/// ```
pub fn send(request: &Request) -> Result<Response, Error> {
    let target = Target::of(&request.url).ok_or_else(|| Error::Url(request.url.clone()))?;
    let wait = Wait::new(target.host, request.timeout);
    let outgoing = prepare(request, &target)?;
    let unsent = || Error::Request("its body cannot be written".to_owned());
    let body = if request.body.is_empty() { None } else { Some(outgoing.body().map_err(|()| unsent())?) };
    let coming = outgoing_handler::handle(outgoing, None).map_err(|code| wait.error(&code, request))?;
    if let Some(body) = body {
        let stream = body.write().map_err(|()| unsent())?;
        // A server that responds before it has read the whole body closes the stream; the response says why.
        let written = write(&stream, &request.body, &wait);
        drop(stream);
        if written? {
            OutgoingBody::finish(body, None).map_err(|code| wait.error(&code, request))?;
        }
    }
    let answer = loop {
        match coming.get() {
            Some(answer) => break answer,
            None => wait.until(&coming.subscribe())?,
        }
    };
    match answer {
        Ok(Ok(response)) => read(response, request, &wait),
        Ok(Err(code)) => Err(wait.error(&code, request)),
        Err(()) => Err(wait.unreachable("its answer was already consumed")),
    }
}

/// The parts of a URL, in the form that WASI takes.
#[derive(Debug, PartialEq)]
struct Target<'a> {
    secure: bool,
    authority: &'a str,
    /// The host: the authority without its port.
    host: &'a str,
    path: String,
}

impl<'a> Target<'a> {
    fn of(url: &'a str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let secure = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let host = match authority.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
            _ => authority,
        };
        // A password in a URL would end up in logs and in messages to the model.
        if host.is_empty() || authority.contains('@') {
            return None;
        }
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Some(Self { secure, authority, host, path })
    }
}

fn prepare(request: &Request, target: &Target) -> Result<OutgoingRequest, Error> {
    let mut headers: Vec<(String, Vec<u8>)> =
        request.headers.iter().map(|(name, value)| (name.clone(), value.clone().into_bytes())).collect();
    if !request.body.is_empty() {
        headers.push(("content-length".to_owned(), request.body.len().to_string().into_bytes()));
    }
    let headers = Fields::from_list(&headers)
        .map_err(|_| Error::Request("it has a header that may not be set or is malformed".to_owned()))?;
    let outgoing = OutgoingRequest::new(headers);
    let method = match request.method {
        Method::Get => WireMethod::Get,
        Method::Head => WireMethod::Head,
        Method::Post => WireMethod::Post,
        Method::Put => WireMethod::Put,
        Method::Patch => WireMethod::Patch,
        Method::Delete => WireMethod::Delete,
    };
    let scheme = if target.secure { Scheme::Https } else { Scheme::Http };
    let set = || {
        outgoing.set_method(&method)?;
        outgoing.set_scheme(Some(&scheme))?;
        outgoing.set_authority(Some(target.authority))?;
        outgoing.set_path_with_query(Some(&target.path))
    };
    set().map_err(|()| Error::Url(request.url.clone()))?;
    Ok(outgoing)
}

/// Writes a body. Returns false if the server closed the stream before all of it was written.
fn write(stream: &OutputStream, mut rest: &[u8], wait: &Wait) -> Result<bool, Error> {
    loop {
        let room = match stream.check_write() {
            Ok(room) => usize::try_from(room).unwrap_or(usize::MAX),
            Err(_) => return Ok(false),
        };
        if room == 0 {
            wait.until(&stream.subscribe())?;
            continue;
        }
        let (now, later) = rest.split_at(room.min(rest.len()));
        if now.is_empty() {
            return Ok(stream.flush().is_ok());
        }
        if stream.write(now).is_err() {
            return Ok(false);
        }
        rest = later;
    }
}

fn read(response: IncomingResponse, request: &Request, wait: &Wait) -> Result<Response, Error> {
    let status = response.status();
    let mut headers = response.headers().entries();
    headers.iter_mut().for_each(|(name, _)| name.make_ascii_lowercase());
    let taken = || wait.unreachable("its answer cannot be read");
    let incoming = response.consume().map_err(|()| taken())?;
    let stream = incoming.stream().map_err(|()| taken())?;
    let mut body = Vec::new();
    loop {
        match stream.read(CHUNK_BYTES) {
            Ok(chunk) if chunk.is_empty() => wait.until(&stream.subscribe())?,
            Ok(chunk) if body.len() + chunk.len() > request.max_body => {
                return Err(Error::TooLong { host: wait.host.to_owned(), limit: request.max_body });
            }
            Ok(chunk) => body.extend(chunk),
            Err(StreamError::Closed) => return Ok(Response { status, headers, body }),
            Err(StreamError::LastOperationFailed(problem)) => {
                return Err(match http_error_code(&problem) {
                    Some(code) => wait.error(&code, request),
                    None => wait.unreachable("the connection broke"),
                });
            }
        }
    }
}

/// The deadline of a request, and the host that it waits for.
struct Wait<'a> {
    host: &'a str,
    limit: Duration,
    over: Pollable,
}

impl<'a> Wait<'a> {
    fn new(host: &'a str, limit: Duration) -> Self {
        let nanoseconds = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        Self { host, limit, over: monotonic_clock::subscribe_duration(nanoseconds) }
    }

    /// Waits until a pollable is ready; fails when the deadline has passed.
    fn until(&self, ready: &Pollable) -> Result<(), Error> {
        let in_time = poll(&[ready, &self.over]).contains(&0);
        if in_time { Ok(()) } else { Err(Error::TimedOut { host: self.host.to_owned(), limit: self.limit }) }
    }

    fn unreachable(&self, problem: &str) -> Error {
        Error::Unreachable { host: self.host.to_owned(), problem: problem.to_owned() }
    }

    fn error(&self, code: &ErrorCode, request: &Request) -> Error {
        told(code, self.host, request)
    }
}

/// Returns the error for a code, in words.
fn told(code: &ErrorCode, host: &str, request: &Request) -> Error {
    use ErrorCode as Code;
    let host = || host.to_owned();
    let unreachable = |problem: &str| Error::Unreachable { host: host(), problem: problem.to_owned() };
    let answer = |problem: &str| Error::Answer { host: host(), problem: problem.to_owned() };
    let unsent = |problem: &str| Error::Request(problem.to_owned());
    match code {
        Code::HttpRequestDenied => Error::Refused { host: host() },
        Code::DestinationIpProhibited => Error::PrivateAddress { host: host() },
        Code::HttpRequestUriInvalid => Error::Url(request.url.clone()),
        Code::ConnectionLimitReached | Code::HttpRequestBodySize(_) | Code::HttpResponseBodySize(_) => {
            Error::Limit { host: host() }
        }
        Code::DnsTimeout
        | Code::ConnectionTimeout
        | Code::ConnectionReadTimeout
        | Code::ConnectionWriteTimeout
        | Code::HttpResponseTimeout => unreachable("it did not answer in time"),
        Code::DnsError(problem) if problem.rcode.as_ref().is_some_and(|text| text.contains("emporary")) => {
            unreachable("its name cannot be looked up at the moment; try again later")
        }
        Code::DnsError(_) | Code::DestinationNotFound => unreachable("there is no host of this name"),
        Code::ConnectionRefused | Code::DestinationUnavailable | Code::DestinationIpUnroutable => {
            unreachable("it refused the connection")
        }
        Code::ConnectionTerminated | Code::HttpResponseIncomplete => unreachable("the connection broke"),
        Code::TlsProtocolError | Code::TlsCertificateError | Code::TlsAlertReceived(_) => {
            unreachable("the TLS handshake failed, or its certificate is not trusted")
        }
        Code::HttpProtocolError => unreachable("its answer is not HTTP"),
        Code::HttpUpgradeFailed => unreachable("it wants another protocol than HTTP"),
        Code::LoopDetected => unreachable("a server on the way detected a loop"),
        Code::HttpResponseHeaderSectionSize(_) | Code::HttpResponseHeaderSize(_) => {
            answer("its headers are more, or longer, than this server reads")
        }
        Code::HttpResponseTrailerSectionSize(_) | Code::HttpResponseTrailerSize(_) => {
            answer("the headers after its body are longer than this server reads")
        }
        Code::HttpResponseTransferCoding(_) | Code::HttpResponseContentCoding(_) => {
            answer("it is encoded in a way that was not requested")
        }
        Code::HttpRequestHeaderSectionSize(_) | Code::HttpRequestHeaderSize(_) => unsent("its headers are too long"),
        Code::HttpRequestTrailerSectionSize(_) | Code::HttpRequestTrailerSize(_) => {
            unsent("the headers after its body are too long")
        }
        Code::HttpRequestUriTooLong => unsent("its URL is too long"),
        Code::HttpRequestMethodInvalid => unsent("its method is not valid"),
        Code::HttpRequestLengthRequired => unsent("the length of its body is missing"),
        Code::ConfigurationError => unsent("the operator's settings for it are wrong; the server's log says how"),
        Code::InternalError(Some(problem)) => unsent(problem),
        Code::InternalError(None) => unsent("this server failed; its log says how"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let parts =
            |secure, authority, host, path: &str| Some(Target { secure, authority, host, path: path.to_owned() });
        for (url, expected) in [
            ("http://example.org", parts(false, "example.org", "example.org", "/")),
            ("HTTPS://example.org:8443/a?b#c", parts(true, "example.org:8443", "example.org", "/a?b")),
            ("http://example.org?q=/", parts(false, "example.org", "example.org", "/?q=/")),
            ("http://[::1]:80/", parts(false, "[::1]:80", "[::1]", "/")),
            ("http://[::1]/", parts(false, "[::1]", "[::1]", "/")),
            ("ftp://example.org/", None),
            ("example.org", None),
            ("http://", None),
            ("http://:80/", None),
            ("http://user:word@example.org/", None),
        ] {
            assert_eq!(Target::of(url), expected, "{url}");
        }
    }

    #[test]
    fn no_error_is_told_by_its_code() {
        use ErrorCode as Code;
        use wasip2::http::types::{DnsErrorPayload, FieldSizePayload, TlsAlertReceivedPayload};
        let field = || FieldSizePayload { field_name: None, field_size: None };
        let dns = |text: &str| Code::DnsError(DnsErrorPayload { rcode: Some(text.into()), info_code: None });
        let request = Request::new(Method::Get, "https://a.example/x");
        let alert = Code::TlsAlertReceived(TlsAlertReceivedPayload { alert_id: None, alert_message: None });
        for (code, expected) in [
            (Code::HttpRequestDenied, "does not allow this request to a.example."),
            (Code::ConnectionLimitReached, "more than the operator of this server allows one call"),
            (Code::HttpResponseBodySize(Some(1)), "more than the operator of this server allows one call"),
            (dns("Temporary failure in name resolution"), "try again later"),
            (dns("Name or service not known"), "there is no host of this name"),
            (alert, "the TLS handshake failed"),
            (Code::HttpProtocolError, "a.example cannot be reached: its answer is not HTTP."),
            (Code::HttpResponseHeaderSectionSize(None), "The answer of a.example cannot be used: its headers"),
            (Code::HttpResponseHeaderSize(field()), "The answer of a.example cannot be used: its headers"),
            (Code::HttpResponseTrailerSize(field()), "the headers after its body"),
            (Code::HttpResponseContentCoding(Some("gzip".into())), "in a way that was not requested"),
            (Code::HttpRequestUriTooLong, "its URL is too long"),
            (Code::ConfigurationError, "the server's log says how"),
            (Code::InternalError(Some("the memory is used up".into())), "cannot be sent: the memory is used up."),
            (Code::InternalError(None), "its log says how"),
        ] {
            let said = told(&code, "a.example", &request).to_string();
            assert!(said.contains(expected), "{said}");
            assert!(!said.contains("ErrorCode") && !said.contains("::"), "{said}");
        }
    }
}
