//! Requests to registries and web servers. Redirects are followed within limits: never from TLS to plain text, never from a public server to
//! a private address, and never with the login of another host or with what was sent to one. A server that is busy is asked again.

use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, LOCATION, RETRY_AFTER},
};
use tokio::sync::Mutex;
use wharf_base::text::escaped;
use wharf_egress::{
    outgoing::{BrokeOff, Destinations, Outgoing, OutgoingLimits},
    target::Target,
};

/// How many redirects are followed in a row.
const MAX_REDIRECTS: usize = 5;
/// How long to wait before a request is sent again, unless the server says how long, and the longest wait.
const WAITS: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];
const MAX_WAIT: Duration = Duration::from_secs(30);
/// The longest time that one command waits in all before it sends requests again.
const MAX_WAITS: Duration = Duration::from_mins(5);
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

/// The web as one command uses it.
pub struct Web {
    outgoing: Outgoing,
    waits: Mutex<Waits>,
}

/// How long the command has waited so far for servers that were busy or broke off.
#[derive(Default)]
struct Waits(Duration);

impl Waits {
    /// Adds a wait. The error says that the command waits no longer.
    fn add(&mut self, wait: Duration) -> Result<()> {
        let sum = self.0 + wait;
        ensure!(
            sum <= MAX_WAITS,
            "the server is busy or breaks off, and this command has waited {} s for servers, of at most {} s; run it again later",
            self.0.as_secs(),
            MAX_WAITS.as_secs()
        );
        self.0 = sum;
        Ok(())
    }
}

impl Web {
    pub fn new(outgoing: Outgoing) -> Self {
        Self { outgoing, waits: Mutex::default() }
    }

    /// Returns where what a server at this URL names may lead.
    pub async fn reach_from(&self, url: &Uri) -> Result<Destinations> {
        self.outgoing.reach_from(url).await
    }

    /// Sends a request and follows redirects of it. `reach`: where the host of the URL may lead to. A server that is busy, or that breaks
    /// off, is asked again.
    pub async fn ask(
        &self,
        asked: Asked<'_>,
        reach: Destinations,
        progress: &(dyn Fn(usize) + Sync),
    ) -> Result<Answer> {
        let mut waits = WAITS.into_iter();
        loop {
            let answer = follow(&self.outgoing, asked.clone(), reach, progress).await;
            let Some(wait) = waits.next().and_then(|own| wait(&asked.method, &answer, own)) else { return answer };
            self.waits.lock().await.add(wait).with_context(|| match &answer {
                Ok(answer) => format!("{} answers {}", escaped(&host(&asked.url).unwrap_or_default()), answer.status),
                Err(error) => format!("{error:#}"),
            })?;
            tokio::time::sleep(wait).await;
        }
    }
}

/// Returns how long to wait before a request is sent again. None: it is not, because the answer is final, or comes too late.
fn wait(method: &Method, answer: &Result<Answer>, own: Duration) -> Option<Duration> {
    let is_harmless = matches!(*method, Method::GET | Method::HEAD);
    let broke_off = |error: &anyhow::Error| error.downcast_ref::<BrokeOff>().is_some();
    let answer = match answer {
        Err(error) => return (is_harmless && broke_off(error)).then_some(own),
        Ok(answer) => answer,
    };
    match answer.status {
        // Nothing was done, so whatever was asked may be asked again.
        StatusCode::TOO_MANY_REQUESTS => {}
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT if is_harmless => {}
        _ => return (is_harmless && answer.body.as_ref().is_err_and(broke_off)).then_some(own),
    }
    let Some(wanted) = answer.header(RETRY_AFTER) else { return Some(own) };
    let until = || httpdate::parse_http_date(wanted).ok()?.duration_since(SystemTime::now()).ok();
    let wanted = wanted.trim().parse().ok().map(Duration::from_secs).or_else(until).unwrap_or(own);
    (wanted <= MAX_WAIT).then_some(wanted)
}

async fn follow(
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
        if answer.status() == StatusCode::SEE_OTHER {
            (method, body) = (Method::GET, Bytes::new());
        }
        if self::host(&next)? != host {
            authorization = None;
            // It may have a token in it.
            ensure!(
                body.is_empty(),
                "{} redirects what is sent to it to another host, {}, which is not followed",
                escaped(&host),
                escaped(&self::host(&next)?)
            );
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
    fn a_busy_server_is_asked_again_when_it_says() {
        let own = Duration::from_secs(1);
        let answered = |status: u16, after: Option<&str>, body: Result<Bytes>| {
            let mut headers = HeaderMap::new();
            headers.extend(after.map(|after| (RETRY_AFTER, after.parse().unwrap())));
            Ok(Answer { status: status.try_into().unwrap(), headers, body })
        };
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        for (method, status, after, expected) in [
            (Method::GET, 429, Some("7"), seconds(7)),
            (Method::POST, 429, Some("0"), seconds(0)),
            (Method::GET, 503, None, Some(own)),
            (Method::HEAD, 502, Some("soon"), Some(own)),
            (Method::GET, 504, None, Some(own)),
            // Nobody waits for an hour.
            (Method::GET, 429, Some("3600"), None),
            (Method::GET, 429, Some("Thu, 01 Jan 2099 00:00:00 GMT"), None),
            (Method::PUT, 503, None, None),
            (Method::GET, 500, None, None),
            (Method::GET, 200, Some("1"), None),
        ] {
            let waits = wait(&method, &answered(status, after, Ok(Bytes::new())), own);
            assert_eq!(waits, expected, "{method} {status} {after:?}");
        }
        let long = answered(200, None, Err(anyhow::anyhow!("too long")));
        assert_eq!(wait(&Method::GET, &long, own), None);
    }

    #[test]
    fn the_waits_of_a_command_have_a_sum() {
        let mut waits = Waits::default();
        assert_eq!((0..20).filter(|_| waits.add(MAX_WAIT).is_ok()).count(), 10);
        let error = waits.add(WAITS[0]).unwrap_err().to_string();
        assert!(error.contains("at most 300 s; run it again later"), "{error}");
        assert!(waits.add(Duration::ZERO).is_ok());
    }

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
