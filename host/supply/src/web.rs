//! Requests to registries and web servers. Redirects are followed within limits: never from TLS to plain text, never from a public server to
//! a private address, and never with the login of another host.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, LOCATION},
};
use wharf_base::text::escaped;
use wharf_egress::{
    outgoing::{Destinations, Outgoing, OutgoingLimits},
    target::Target,
};

/// How many redirects are followed in a row.
const MAX_REDIRECTS: usize = 5;
/// The time for a short answer, such as a manifest.
pub const SHORT: Duration = Duration::from_secs(30);
/// The time for a component.
pub const LONG: Duration = Duration::from_mins(15);

/// A request, before it is known where redirects lead.
#[derive(Clone)]
pub struct Asked<'a> {
    pub method: Method,
    pub url: Uri,
    pub accept: Option<&'static str>,
    pub content_type: Option<&'a str>,
    pub authorization: Option<HeaderValue>,
    pub body: Bytes,
    /// The time for everything.
    pub timeout: Duration,
    /// The most bytes of the answer.
    pub bytes: usize,
    /// Where the URL itself may lead. It differs from `Any` if a server named the URL.
    pub first: Destinations,
}

impl<'a> Asked<'a> {
    pub fn get(url: Uri, bytes: usize) -> Self {
        Self {
            method: Method::GET,
            url,
            accept: None,
            content_type: None,
            authorization: None,
            body: Bytes::new(),
            timeout: SHORT,
            bytes,
            first: Destinations::Any,
        }
    }

    pub fn accept(self, accept: &'static str) -> Self {
        Self { accept: Some(accept), ..self }
    }

    pub fn send(self, method: Method, content_type: &'a str, body: Bytes) -> Self {
        Self { method, content_type: Some(content_type), body, ..self }
    }
}

/// An answer, whatever its status.
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    body: Result<Bytes>,
}

impl Answer {
    /// Returns the body of a success, and otherwise an error that says what was asked.
    pub fn body(self, what: &str) -> Result<Bytes> {
        ensure!(self.status.is_success(), "{what}: the server answers {}", self.status);
        self.body.with_context(|| what.to_owned())
    }

    pub fn header(&self, name: impl http::header::AsHeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// Sends a request and follows redirects of it. `reach`: where the host of the URL may lead to.
pub async fn ask(
    outgoing: &Outgoing,
    asked: Asked<'_>,
    reach: Destinations,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Answer> {
    let (mut url, mut authorization, mut method, mut body) = (asked.url, asked.authorization, asked.method, asked.body);
    let mut is_first = true;
    for _ in 0..=MAX_REDIRECTS {
        let host = host(&url)?;
        let mut request = Request::builder().method(method.clone()).uri(url.clone());
        for (name, value) in [(ACCEPT, asked.accept), (CONTENT_TYPE, asked.content_type)] {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        if let Some(value) = &authorization {
            request = request.header(AUTHORIZATION, value);
        }
        let limits = OutgoingLimits { timeout: asked.timeout, body_bytes: asked.bytes };
        let within = if is_first { asked.first } else { reach };
        let answer = outgoing.download(request.body(body.clone())?, limits, within, progress).await;
        let answer = answer.with_context(|| format!("{} does not answer", escaped(&host)))?;
        let Some(next) = redirect(&answer, &url)? else {
            let (parts, body) = answer.into_parts();
            return Ok(Answer { status: parts.status, headers: parts.headers, body });
        };
        if self::host(&next)? != host {
            authorization = None;
        }
        if answer.status() == StatusCode::SEE_OTHER {
            (method, body) = (Method::GET, Bytes::new());
        }
        (url, is_first) = (next, false);
    }
    bail!("the server redirects more than {MAX_REDIRECTS} times");
}

/// Returns where an answer redirects to, if it does.
fn redirect<B>(answer: &Response<B>, from: &Uri) -> Result<Option<Uri>> {
    let is_redirect = matches!(answer.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    let Some(location) = answer.headers().get(LOCATION).filter(|_| is_redirect) else { return Ok(None) };
    let location = location.to_str().context("the server redirects to what is not a URL")?;
    let next = join(from, location)?;
    ensure!(
        !(from.scheme_str() == Some("https") && next.scheme_str() != Some("https")),
        "the server redirects from https to plain text, which is not followed"
    );
    Ok(Some(next))
}

/// Returns the URL that a server means by a location, which may be a path.
pub fn join(from: &Uri, location: &str) -> Result<Uri> {
    let target = Target::of(from).map_err(|problem| anyhow::anyhow!(problem))?;
    let whole = match location.strip_prefix("//") {
        Some(rest) => format!("{}://{rest}", target.scheme.as_str()),
        None if location.starts_with('/') => format!("{}://{}{location}", target.scheme.as_str(), target.authority()),
        None => location.to_owned(),
    };
    let wrong = || format!("the server refers to {}, which is not a URL", escaped(location));
    let uri: Uri = whole.parse().with_context(wrong)?;
    let target = Target::of(&uri).map_err(|problem| anyhow::anyhow!(problem)).with_context(wrong)?;
    Ok(target.url(&uri)?)
}

/// The scheme, host and port of a URL.
fn host(url: &Uri) -> Result<String> {
    let target = Target::of(url).map_err(|problem| anyhow::anyhow!(problem))?;
    Ok(format!("{}://{}", target.scheme.as_str(), target.authority()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_joined_and_downgrades_refused() {
        let from: Uri = "https://registry.example/v2/a/blobs/x".parse().unwrap();
        for (location, expected) in [
            ("/v2/b?x=1", "https://registry.example/v2/b?x=1"),
            ("https://cdn.example/b", "https://cdn.example/b"),
            ("//cdn.example/b", "https://cdn.example/b"),
        ] {
            assert_eq!(join(&from, location).unwrap(), expected, "{location}");
        }
        for location in ["ftp://a/b", "b", "https://u:p@a/b", ""] {
            assert!(join(&from, location).is_err(), "{location}");
        }
        let answer = |location: &str| Response::builder().status(307).header(LOCATION, location).body(()).unwrap();
        let error = redirect(&answer("http://registry.example/v2/b"), &from).unwrap_err().to_string();
        assert!(error.contains("plain text"), "{error}");
        assert_eq!(redirect(&Response::new(()), &from).unwrap(), None);
    }
}
