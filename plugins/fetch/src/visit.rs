//! Fetches a page: `robots.txt` first if a model asks, then the page, and each redirect.
//!
//! Every hop is a request of its own, so that the operator's rules and the `robots.txt` of its site apply to each. The sender is a
//! parameter, so that this can be tested without a network.

use std::{
    borrow::Cow,
    io::Read,
    time::{Duration, Instant},
};

use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use percent_encoding::{AsciiSet, percent_encode};
use url::Url;
use wharf_sdk::{
    Error, Result,
    http::{self, Method, Request, Response},
};

use crate::{charset, robots};

/// The maximum number of redirects, as in the reference server.
const MAX_HOPS: usize = 20;

/// The timeout of all requests of a call. It is shorter than the default time limit of a call, so that the call can report the failure.
const CALL_TIMEOUT: Duration = Duration::from_secs(25);

/// The timeout of each request for a `robots.txt`.
const ROBOTS_TIMEOUT: Duration = Duration::from_secs(5);

/// The maximum size of a page. Its conversion takes many times as much memory.
const MAX_PAGE_BYTES: usize = 3 << 20;

/// The maximum size of a `robots.txt`, as for search engines.
const MAX_ROBOTS_BYTES: usize = 500 << 10;

/// Sends a request and waits for its response.
pub trait Send {
    fn send(&mut self, request: &Request) -> Result<Response, http::Error>;
}

impl<F: FnMut(&Request) -> Result<Response, http::Error>> Send for F {
    fn send(&mut self, request: &Request) -> Result<Response, http::Error> {
        self(request)
    }
}

/// The fetch of a page, with the user agent and the deadline of its requests.
pub struct Visit<'a, S> {
    send: S,
    agent: &'a str,
    until: Instant,
}

/// The reason why a chain of redirects ended without a final response.
enum Stopped {
    Http(http::Error),
    /// The `robots.txt` of a site forbids the request, or could not be fetched.
    Robots(Error),
    /// Its redirect leads nowhere, or its body cannot be read.
    Answer(String),
}

impl<'a, S: Send> Visit<'a, S> {
    pub fn new(send: S, agent: &'a str) -> Self {
        Self { send, agent, until: Instant::now() + CALL_TIMEOUT }
    }

    /// Returns the response for a page. With `obeys`, no request is made that the `robots.txt` of its site forbids.
    pub fn page(&mut self, url: &Url, shown: &str, obeys: bool) -> Result<Response> {
        if obeys {
            self.ask_robots(url)?;
        }
        let response = match self.follow(url, CALL_TIMEOUT, MAX_PAGE_BYTES, obeys) {
            Ok(response) => response,
            Err(Stopped::Http(error)) => return Err(Error::failed(format!("Failed to fetch {shown}: {error}"))),
            Err(Stopped::Answer(problem)) => {
                return Err(Error::failed(format!("Failed to fetch {shown}: {problem}")));
            }
            Err(Stopped::Robots(error)) => return Err(error),
        };
        if response.status >= 400 {
            return Err(Error::failed(format!("Failed to fetch {shown} - status code {}", response.status)));
        }
        Ok(response)
    }

    /// Fails if the `robots.txt` of a site does not allow the agent to fetch a page autonomously.
    fn ask_robots(&mut self, url: &Url) -> Result<()> {
        let place = robots_of(url);
        let issue = || Error::failed(format!("Failed to fetch robots.txt {place} due to a connection issue"));
        let wanted = Url::parse(&place).map_err(|_| issue())?;
        let response = match self.follow(&wanted, ROBOTS_TIMEOUT, MAX_ROBOTS_BYTES, false) {
            Ok(response) => response,
            Err(Stopped::Http(error @ (http::Error::Unreachable { .. } | http::Error::TimedOut { .. }))) => {
                return Err(Error::failed(format!("{}: {error}", words(issue()))));
            }
            Err(Stopped::Http(error)) => {
                return Err(Error::failed(format!("Failed to fetch robots.txt {place}: {error}")));
            }
            Err(Stopped::Answer(problem)) => {
                return Err(Error::failed(format!("Failed to fetch robots.txt {place}: {problem}")));
            }
            Err(Stopped::Robots(error)) => return Err(error),
        };
        match response.status {
            status @ (401 | 403) => Err(Error::failed(format!(
                "When fetching robots.txt ({place}), received status {status} so assuming that autonomous fetching is not \
                 allowed, the user can try manually fetching by using the fetch prompt"
            ))),
            400..500 => Ok(()),
            _ => {
                let text = charset::text(&response.body, &header(&response, "content-type").unwrap_or_default());
                if robots::allows(&text, url.as_str(), self.agent) {
                    Ok(())
                } else {
                    Err(self.forbidden(&place, url, &text))
                }
            }
        }
    }

    fn forbidden(&self, place: &str, url: &Url, text: &str) -> Error {
        Error::failed(format!(
            "The sites robots.txt ({place}), specifies that autonomous fetching of this page is not allowed, \
             <useragent>{}</useragent>\n<url>{url}</url><robots>\n{text}\n</robots>\nThe assistant must let the user know that it \
             failed to view the page. The assistant may provide further guidance based on the above information.\nThe assistant \
             can tell the user that they can try manually fetching the page by using the fetch prompt within their UI.",
            self.agent
        ))
    }

    /// Requests a URL and follows its redirects.
    fn follow(&mut self, url: &Url, limit: Duration, max_body: usize, obeys: bool) -> Result<Response, Stopped> {
        let mut url = url.clone();
        for hop in 0..=MAX_HOPS {
            if hop > 0 && obeys {
                self.ask_robots(&url).map_err(Stopped::Robots)?;
            }
            let mut request = Request::new(Method::Get, url.as_str())
                .header("accept", "*/*")
                .header("accept-encoding", "identity")
                .header("user-agent", self.agent);
            request.timeout = limit.min(self.until.saturating_duration_since(Instant::now()));
            request.max_body = max_body;
            let response = self.send.send(&request).map_err(Stopped::Http)?;
            match next(&url, &response)? {
                Some(next) => url = next,
                None => return plain(response, max_body).map_err(Stopped::Answer),
            }
        }
        Err(Stopped::Answer(format!("it redirects more than {MAX_HOPS} times.")))
    }
}

/// Returns a response with its body as it was before its site compressed it. No request asks for compression, but sites answer with what they
/// keep compressed. The body must not be larger than `most` afterwards. That of an error is not read.
fn plain(response: Response, most: usize) -> Result<Response, String> {
    let coding = header(&response, "content-encoding").map(|coding| coding.trim().to_ascii_lowercase());
    let coding = coding.filter(|coding| !matches!(&**coding, "" | "identity"));
    let Some(coding) = coding.filter(|_| response.status < 400 && !response.body.is_empty()) else {
        return Ok(response);
    };
    let compressed = response.body.as_slice();
    let mut body = Vec::new();
    let limit = most as u64 + 1;
    let read = match &*coding {
        "gzip" | "x-gzip" => MultiGzDecoder::new(compressed).take(limit).read_to_end(&mut body),
        "deflate" if is_zlib(compressed) => ZlibDecoder::new(compressed).take(limit).read_to_end(&mut body),
        // Some sites leave out the header of zlib, which browsers tolerate.
        "deflate" => DeflateDecoder::new(compressed).take(limit).read_to_end(&mut body),
        _ => {
            return Err(format!(
                "its site sends it compressed ({coding}), although the request accepts no compression; gzip and deflate can be read."
            ));
        }
    };
    read.map_err(|error| {
        format!("its site says that it is compressed ({coding}), but it cannot be decompressed: {error}.")
    })?;
    match body.len() > most {
        true => Err(format!("it has more than {most} bytes when it is decompressed.")),
        false => Ok(Response { body, ..response }),
    }
}

/// Whether data begins with the header of zlib.
fn is_zlib(data: &[u8]) -> bool {
    data.first_chunk()
        .is_some_and(|[method, check]| method & 0x0f == 8 && u16::from_be_bytes([*method, *check]) % 31 == 0)
}

/// Returns the URL that a response redirects to.
fn next(url: &Url, response: &Response) -> Result<Option<Url>, Stopped> {
    let location = match response.status {
        301 | 302 | 303 | 307 | 308 => response.header_bytes("location"),
        _ => None,
    };
    let Some(location) = location else { return Ok(None) };
    let location = written(location);
    let bad = || Stopped::Answer(format!("it redirects to {location:?}, which is not a URL that can be fetched."));
    let mut next = url.join(&location).map_err(|_| bad())?;
    if !matches!(next.scheme(), "http" | "https") {
        return Err(bad());
    }
    if next.fragment().is_none() {
        next.set_fragment(url.fragment());
    }
    Ok(Some(next))
}

/// Returns the text of a URL in a header. Bytes of a text that is not UTF-8 are percent-encoded, as in browsers.
fn written(location: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(location) {
        Ok(text) => text.into(),
        Err(_) => percent_encode(location, NOT_ASCII).into(),
    }
}

/// Nothing but the bytes that are not ASCII, which are always encoded.
const NOT_ASCII: &AsciiSet = &AsciiSet::EMPTY;

/// Returns the first header of a name as text.
fn header<'a>(response: &'a Response, name: &str) -> Option<Cow<'a, str>> {
    response.header_bytes(name).map(String::from_utf8_lossy)
}

/// Returns the URL of the `robots.txt` of a site.
fn robots_of(url: &Url) -> String {
    let mut place = url.clone();
    place.set_path("/robots.txt");
    place.set_query(None);
    place.set_fragment(None);
    place.into()
}

fn words(error: Error) -> String {
    match error {
        Error::Failed(message) | Error::Protocol { message, .. } => message,
        Error::Ask(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Answer = Result<Response, http::Error>;
    /// The URL, whether `robots.txt` is obeyed, the expected requests, and the text or a part of the error.
    type Case = (&'static str, bool, &'static [&'static str], Result<&'static str, &'static str>);

    /// The status, the coding, the body as it comes, and the one that is read or a part of the error.
    type Body<'a> = (u16, &'static str, &'a [u8], Result<&'static [u8], &'static str>);

    fn answer(status: u16, header: &str, value: impl AsRef<[u8]>, body: &str) -> Answer {
        Ok(Response { status, headers: vec![(header.to_owned(), value.as_ref().to_vec())], body: body.into() })
    }

    fn web(url: &str) -> Answer {
        let host = |url: &str| url.split('/').nth(2).unwrap_or_default().to_owned();
        let to = |place: &str| answer(302, "location", place, "");
        let page = || answer(200, "content-type", "text/plain", "page");
        match url {
            "http://rules.test/robots.txt" => answer(200, "content-type", "text/plain", "User-agent: *\nDisallow: /no"),
            "http://closed.test/robots.txt" => answer(403, "content-type", "text/plain", ""),
            "http://broken.test/robots.txt" => answer(500, "content-type", "text/plain", "User-agent: *\nDisallow: /"),
            "http://moved.test/robots.txt" => to("http://rules.test/robots.txt"),
            "http://round.test/robots.txt" => to("/robots.txt"),
            "http://refused.test/robots.txt" => Err(http::Error::Refused { host: host(url) }),
            "http://away.test/robots.txt" => {
                Err(http::Error::Unreachable { host: host(url), problem: "it refused the connection".to_owned() })
            }
            "http://rules.test/to-no" => to("/no"),
            "http://open.test/to-rules" => to("//rules.test/no#there"),
            "http://open.test/to-refused" => to("http://refused.test/"),
            "http://open.test/to-bytes" => answer(302, "location", b"/caf\xe9?a=\xff b", "body of the redirect"),
            "http://open.test/to-letters" => to("/caf\u{e9}"),
            "http://open.test/a/relative" => to("../b?c=d"),
            "http://open.test/round" => to("/round"),
            "http://open.test/to-file" => to("file:///etc/passwd"),
            "http://open.test/to-nothing" => to("http://"),
            "http://open.test/nowhere" => answer(302, "content-type", "text/plain", "led nowhere"),
            "http://open.test/gone" => answer(410, "content-type", "text/plain", ""),
            "http://open.test/zipped" => answer(200, "content-encoding", "zstd", "x"),
            "http://open.test/late" => Err(http::Error::TimedOut { host: host(url), limit: CALL_TIMEOUT }),
            url if url.ends_with("/robots.txt") => answer(404, "content-type", "text/plain", ""),
            _ => page(),
        }
    }

    /// Returns the requests of a visit, and its result.
    fn visit(url: &str, obeys: bool) -> (Vec<String>, Result<String, String>) {
        let mut asked = Vec::new();
        let send = |request: &Request| {
            assert!(
                request.timeout <= CALL_TIMEOUT && request.headers.contains(&("user-agent".into(), "tester".into()))
            );
            let url = request.url.split('#').next().unwrap_or_default();
            asked.push(url.strip_prefix("http://").unwrap_or(url).to_owned());
            web(url)
        };
        let answer = Visit::new(send, "tester").page(&Url::parse(url).unwrap(), url, obeys);
        (asked, answer.map(|response| String::from_utf8(response.body).unwrap()).map_err(words))
    }

    #[test]
    fn visits_go_where_sites_let_them() {
        let table: [Case; 22] = [
            ("http://open.test/x", true, &["open.test/robots.txt", "open.test/x"], Ok("page")),
            ("http://open.test/x", false, &["open.test/x"], Ok("page")),
            ("http://rules.test/x", true, &["rules.test/robots.txt", "rules.test/x"], Ok("page")),
            (
                "http://rules.test/no",
                true,
                &["rules.test/robots.txt"],
                Err("specifies that autonomous fetching of this page"),
            ),
            ("http://rules.test/no", false, &["rules.test/no"], Ok("page")),
            ("http://closed.test/x", true, &["closed.test/robots.txt"], Err("received status 403 so assuming")),
            (
                "http://broken.test/x",
                true,
                &["broken.test/robots.txt"],
                Err("specifies that autonomous fetching of this page"),
            ),
            (
                "http://moved.test/no",
                true,
                &["moved.test/robots.txt", "rules.test/robots.txt"],
                Err("(http://moved.test/robots.txt)"),
            ),
            (
                "http://refused.test/x",
                true,
                &["refused.test/robots.txt"],
                Err("does not allow this request to refused.test"),
            ),
            (
                "http://away.test/x",
                true,
                &["away.test/robots.txt"],
                Err("due to a connection issue: away.test cannot be reached"),
            ),
            (
                "http://rules.test/to-no",
                true,
                &["rules.test/robots.txt", "rules.test/to-no", "rules.test/robots.txt"],
                Err("<url>http://rules.test/no</url>"),
            ),
            (
                "http://open.test/to-rules",
                true,
                &["open.test/robots.txt", "open.test/to-rules", "rules.test/robots.txt"],
                Err("<url>http://rules.test/no#there</url>"),
            ),
            ("http://open.test/to-rules", false, &["open.test/to-rules", "rules.test/no"], Ok("page")),
            ("http://open.test/a/relative#f", false, &["open.test/a/relative", "open.test/b?c=d"], Ok("page")),
            (
                "http://open.test/to-file",
                false,
                &["open.test/to-file"],
                Err("\"file:///etc/passwd\", which is not a URL"),
            ),
            ("http://open.test/to-bytes", false, &["open.test/to-bytes", "open.test/caf%E9?a=%FF%20b"], Ok("page")),
            ("http://open.test/to-letters", false, &["open.test/to-letters", "open.test/caf%C3%A9"], Ok("page")),
            ("http://open.test/to-nothing", false, &["open.test/to-nothing"], Err("\"http://\", which is not a URL")),
            ("http://open.test/nowhere", false, &["open.test/nowhere"], Ok("led nowhere")),
            (
                "http://open.test/gone",
                false,
                &["open.test/gone"],
                Err("Failed to fetch http://open.test/gone - status code 410"),
            ),
            ("http://open.test/zipped", false, &["open.test/zipped"], Err("sends it compressed (zstd)")),
            ("http://open.test/late", false, &["open.test/late"], Err("did not answer in full within 25 seconds")),
        ];
        for (url, obeys, expected, outcome) in table {
            let (asked, answer) = visit(url, obeys);
            assert_eq!(asked, expected, "{url}");
            match (answer, outcome) {
                (Ok(text), Ok(expected)) => assert_eq!(text, expected, "{url}"),
                (Err(problem), Err(part)) => assert!(problem.contains(part), "{url}: {problem}"),
                (answer, _) => panic!("{url}: {answer:?}"),
            }
        }
    }

    #[test]
    fn what_a_site_keeps_compressed_is_read() {
        use flate2::{Compression, read};
        let made = |mut encoder: Box<dyn Read>| {
            let mut bytes = Vec::new();
            encoder.read_to_end(&mut bytes).unwrap();
            bytes
        };
        let fast = Compression::fast();
        let gzip = |text: &'static [u8]| made(Box::new(read::GzEncoder::new(text, fast)));
        let parts = [gzip(b"pa"), gzip(b"ge")].concat();
        let (zlib, raw) = (
            made(Box::new(read::ZlibEncoder::new(&b"page"[..], fast))),
            made(Box::new(read::DeflateEncoder::new(&b"page"[..], fast))),
        );
        let bomb = gzip(&[0; 5000]);
        let table: [Body<'_>; 12] = [
            (200, "gzip", &gzip(b"page"), Ok(b"page")),
            (200, " X-GZip", &parts, Ok(b"page")),
            (200, "deflate", &zlib, Ok(b"page")),
            (200, "deflate", &raw, Ok(b"page")),
            (200, "identity", b"page", Ok(b"page")),
            (200, "", b"page", Ok(b"page")),
            (204, "gzip", b"", Ok(b"")),
            (404, "gzip", b"not found", Ok(b"not found")),
            (200, "gzip", b"page", Err("cannot be decompressed")),
            (200, "gzip", parts.get(..parts.len() - 1).unwrap(), Err("cannot be decompressed")),
            (200, "gzip", &bomb, Err("more than 4096 bytes when it is decompressed")),
            (200, "br", b"page", Err("gzip and deflate can be read")),
        ];
        for (status, coding, body, expected) in table {
            let headers = vec![("content-encoding".to_owned(), coding.into())];
            let read = plain(Response { status, headers, body: body.to_vec() }, 4096);
            match (read.as_ref().map(|response| &*response.body), expected) {
                (Ok(body), Ok(expected)) => assert_eq!(body, expected, "{coding}"),
                (Err(problem), Err(part)) => assert!(problem.contains(part), "{coding}: {problem}"),
                (read, _) => panic!("{coding}: {read:?}"),
            }
        }
    }

    #[test]
    fn no_visit_goes_round_for_ever() {
        for (url, obeys, count) in [("http://open.test/round", false, 21), ("http://round.test/x", true, 21)] {
            let (asked, answer) = visit(url, obeys);
            assert_eq!(asked.len(), count, "{url}");
            assert!(answer.is_err_and(|problem| problem.contains("more than 20 times")));
        }
    }
}
