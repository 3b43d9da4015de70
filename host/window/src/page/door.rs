//! Who may see the page: a browser that has opened a link, which works once. Whatever else asks gets one sentence. The rules also hold
//! against web pages in the same browser, which can send requests here but not read the answers.

use std::{
    collections::VecDeque,
    io,
    net::SocketAddr,
    time::{Duration, Instant},
};

use http::{HeaderMap, HeaderName, HeaderValue, Method, header, request::Parts};
use parking_lot::Mutex;
use subtle::ConstantTimeEq;

/// How long a link can be opened.
pub const LINK_LIFETIME: Duration = Duration::from_secs(10 * 60);
/// The most links that can be opened at the same time. A further one takes the place of the oldest.
const MAX_LINKS: usize = 8;
/// The path of a link, before its secret.
pub const LINK_PATH: &str = "/open/";

/// What every answer says: that it may load nothing from elsewhere, be shown in no other page, and be kept nowhere.
pub const HEADERS: [(HeaderName, &str); 7] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; \
         frame-ancestors 'none'; base-uri 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    // With `no-referrer`, browsers keep the origin of forms back too.
    (header::REFERRER_POLICY, "same-origin"),
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unwelcome {
    /// It names another host: the page of an attacker may have made the browser believe that its name leads here.
    #[error("This page is served only under the address that `wharf open` prints.")]
    Host,
    /// It comes from another page.
    #[error("This form was not sent by this page, so nothing was done.")]
    Origin,
    /// It has no cookie.
    #[error(
        "This browser has not opened the page's link: type `wharf open` in a terminal, and open the link that it prints."
    )]
    Cookie,
    /// The link was opened before, or is too old.
    #[error(
        "This link does not work any more: each works once and for ten minutes. Press Enter in the terminal in which `wharf open` runs, \
         and open the link that it prints."
    )]
    Link,
}

/// The secrets that let a browser in.
pub struct Door {
    address: SocketAddr,
    cookie: String,
    links: Mutex<VecDeque<(String, Instant)>>,
}

impl Door {
    /// Makes the door of a page at an address.
    pub fn new(address: SocketAddr) -> io::Result<Self> {
        Ok(Self { address, cookie: secret()?, links: Mutex::default() })
    }

    /// The origin of the page.
    fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Makes a link.
    pub fn link(&self, now: Instant) -> io::Result<String> {
        let secret = secret()?;
        let mut links = self.links.lock();
        if links.len() >= MAX_LINKS {
            links.pop_front();
        }
        let link = format!("{}{LINK_PATH}{secret}", self.origin());
        links.push_back((secret, now));
        Ok(link)
    }

    /// Takes the secret of a link, which does not work again.
    pub fn enter(&self, given: &str, now: Instant) -> Result<(), Unwelcome> {
        let mut links = self.links.lock();
        links.retain(|(_, made)| now.saturating_duration_since(*made) < LINK_LIFETIME);
        let before = links.len();
        links.retain(|(secret, _)| !is_same(secret, given));
        if links.len() < before { Ok(()) } else { Err(Unwelcome::Link) }
    }

    /// Checks that a request was sent to this address, and if it may change something, by this page.
    pub fn check_way(&self, request: &Parts) -> Result<(), Unwelcome> {
        let own = self.address.to_string();
        if only(&request.headers, &header::HOST) != Some(own.as_str()) || request.uri.authority().is_some() {
            return Err(Unwelcome::Host);
        }
        let is_harmless = request.method == Method::GET || request.method == Method::HEAD;
        let site = HeaderName::from_static("sec-fetch-site");
        let from = request.headers.contains_key(&site).then(|| only(&request.headers, &site));
        let is_own_site = from.is_none_or(|from| from == Some("same-origin"));
        let is_own = only(&request.headers, &header::ORIGIN) == Some(self.origin().as_str()) && is_own_site;
        // Pages at other ports of this machine have the cookie too, and could measure how long an answer takes.
        let is_asked_here = is_own_site || from == Some(Some("none")) || request.uri.path().starts_with(LINK_PATH);
        if is_harmless && is_asked_here || is_own { Ok(()) } else { Err(Unwelcome::Origin) }
    }

    /// Checks that a request is of a browser that has opened a link.
    pub fn check_cookie(&self, headers: &HeaderMap) -> Result<(), Unwelcome> {
        let name = self.cookie_name();
        let given = headers.get_all(header::COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
        let mut values = given.flat_map(|cookies| cookies.split(';')).filter_map(|one| one.trim().split_once('='));
        let is_known = values.any(|(own, value)| own == name && is_same(&self.cookie, value));
        if is_known { Ok(()) } else { Err(Unwelcome::Cookie) }
    }

    /// Returns what gives a browser the cookie. It ends with the browser, and means nothing once this program has ended.
    pub fn set_cookie(&self) -> Option<HeaderValue> {
        let cookie = format!("{}={}; Path=/; HttpOnly; SameSite=Strict", self.cookie_name(), self.cookie);
        HeaderValue::from_str(&cookie).ok()
    }

    /// Browsers do not tell the ports of an address apart, so that the name does.
    fn cookie_name(&self) -> String {
        format!("wharf-window-{}", self.address.port())
    }
}

/// 192 random bits.
fn secret() -> io::Result<String> {
    wharf_base::random_id::id().map_err(|_| io::Error::other("the system has no random numbers for a link"))
}

fn is_same(secret: &str, given: &str) -> bool {
    bool::from(secret.as_bytes().ct_eq(given.as_bytes()))
}

/// Returns the value of a header that is given once.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn door() -> Door {
        Door::new("127.0.0.1:7301".parse().unwrap()).unwrap()
    }

    #[test]
    fn a_link_works_once_and_for_ten_minutes() {
        let (door, now) = (door(), Instant::now());
        let secret = |link: String| link.strip_prefix("http://127.0.0.1:7301/open/").unwrap().to_owned();
        let (first, second) = (secret(door.link(now).unwrap()), secret(door.link(now).unwrap()));
        // At least 128 bits, six in each character.
        assert!(first != second && first.len() * 6 >= 128, "{first}");
        assert_eq!(door.enter("", now), Err(Unwelcome::Link));
        assert_eq!(door.enter(&first[1..], now), Err(Unwelcome::Link));
        assert_eq!(door.enter(&first, now), Ok(()));
        assert_eq!(door.enter(&first, now), Err(Unwelcome::Link));
        assert_eq!(door.enter(&second, now + LINK_LIFETIME), Err(Unwelcome::Link));
        let many: Vec<String> = (0..=MAX_LINKS).map(|_| secret(door.link(now).unwrap())).collect();
        assert_eq!(door.enter(&many[0], now), Err(Unwelcome::Link));
        assert_eq!(door.enter(&many[1], now), Ok(()));
    }

    #[test]
    fn only_requests_of_the_page_itself_may_change_something() {
        const HOST: (&str, &str) = ("host", "127.0.0.1:7301");
        const ORIGIN: (&str, &str) = ("origin", "http://127.0.0.1:7301");
        for (method, path, headers, expected) in [
            ("GET", "/", vec![HOST], Ok(())),
            ("HEAD", "/", vec![HOST], Ok(())),
            ("GET", "/", vec![HOST, ("sec-fetch-site", "none")], Ok(())),
            ("GET", "/record", vec![HOST, ("sec-fetch-site", "same-origin")], Ok(())),
            ("GET", "/record", vec![HOST, ("sec-fetch-site", "same-site")], Err(Unwelcome::Origin)),
            ("GET", "/", vec![HOST, ("sec-fetch-site", "cross-site")], Err(Unwelcome::Origin)),
            ("GET", "/open/x", vec![HOST, ("sec-fetch-site", "cross-site")], Ok(())),
            ("GET", "/", vec![], Err(Unwelcome::Host)),
            ("GET", "/", vec![("host", "localhost:7301")], Err(Unwelcome::Host)),
            ("GET", "/", vec![("host", "evil.example:7301")], Err(Unwelcome::Host)),
            ("GET", "/", vec![("host", "127.0.0.1")], Err(Unwelcome::Host)),
            ("GET", "/", vec![("host", "127.0.0.1:7302")], Err(Unwelcome::Host)),
            ("GET", "/", vec![HOST, ("host", "evil.example")], Err(Unwelcome::Host)),
            ("GET", "http://evil.example/", vec![HOST], Err(Unwelcome::Host)),
            ("POST", "/answer", vec![HOST, ORIGIN], Ok(())),
            ("POST", "/answer", vec![HOST, ORIGIN, ("sec-fetch-site", "same-origin")], Ok(())),
            ("POST", "/answer", vec![HOST], Err(Unwelcome::Origin)),
            ("POST", "/answer", vec![HOST, ("sec-fetch-site", "same-origin")], Err(Unwelcome::Origin)),
            ("POST", "/answer", vec![HOST, ORIGIN, ("sec-fetch-site", "same-site")], Err(Unwelcome::Origin)),
            ("POST", "/answer", vec![HOST, ORIGIN, ("sec-fetch-site", "none")], Err(Unwelcome::Origin)),
            ("POST", "/answer", vec![HOST, ("origin", "null")], Err(Unwelcome::Origin)),
            ("POST", "/answer", vec![HOST, ("origin", "http://127.0.0.1:7302")], Err(Unwelcome::Origin)),
            ("POST", "/answer", vec![HOST, ("origin", "https://127.0.0.1:7301")], Err(Unwelcome::Origin)),
            ("POST", "/answer", vec![HOST, ORIGIN, ("origin", "http://evil.example")], Err(Unwelcome::Origin)),
            ("PUT", "/answer", vec![HOST], Err(Unwelcome::Origin)),
            ("OPTIONS", "/", vec![HOST], Err(Unwelcome::Origin)),
        ] {
            let mut request = Request::builder().method(method).uri(path);
            for (name, value) in &headers {
                request = request.header(*name, *value);
            }
            let (parts, ()) = request.body(()).unwrap().into_parts();
            assert_eq!(door().check_way(&parts), expected, "{method} {path} {headers:?}");
        }
    }

    #[test]
    fn a_cookie_is_known_among_others() {
        let door = door();
        let set = door.set_cookie().unwrap().to_str().unwrap().to_owned();
        let (pair, rest) = set.split_once(';').unwrap();
        assert_eq!(rest, " Path=/; HttpOnly; SameSite=Strict");
        let value = pair.strip_prefix("wharf-window-7301=").unwrap();
        for (cookies, is_known) in [
            (vec![pair.to_owned()], true),
            (vec![format!("a=b; {pair}; c")], true),
            (vec!["a=b".into(), pair.to_owned()], true),
            (vec![], false),
            (vec![format!("wharf-window-7302={value}")], false),
            (vec!["wharf-window-7301=".into()], false),
            (vec![format!("wharf-window-7301={}", &value[1..])], false),
            (vec![format!("wharf-window-7301={value}x")], false),
        ] {
            let mut headers = HeaderMap::new();
            for one in &cookies {
                headers.append(header::COOKIE, one.parse().unwrap());
            }
            assert_eq!(door.check_cookie(&headers).is_ok(), is_known, "{cookies:?}");
        }
    }
}
