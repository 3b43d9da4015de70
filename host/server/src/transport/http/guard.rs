//! Decides who may talk to the HTTP server at all. A loopback address is not private: any web page can make its visitor's
//! browser send requests to it. So `Host` must be a name of this server, and a web page must be from this server or an origin
//! that is listed.

use std::net::IpAddr;

use http::{HeaderMap, HeaderValue, StatusCode, header};

use crate::{
    auth,
    base::{
        principal::Principal,
        refusals::{Reason, What},
    },
    config::Http,
};

/// Why a request is turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// 403: the `Host` is no name of this server. An attacker may have pointed a domain name here.
    Host,
    /// 403: the request is from a web page whose origin is not listed.
    Origin,
    /// 401: there is no token.
    NoToken,
    /// 401: the token is not the right one.
    WrongToken,
    /// An identity provider's token is needed, and there is none that is good.
    Login(auth::Refused),
}

impl Refusal {
    pub fn message(self) -> &'static str {
        match self {
            Self::Host => "this host is not served here; add it to `allowed_hosts` in [http]",
            Self::Origin => "this origin is not allowed; add it to `allowed_origins` in [http]",
            Self::NoToken => "a bearer token is needed",
            Self::WrongToken => "the bearer token is not the right one",
            Self::Login(auth::Refused::NoToken) => "an access token is needed; log in first",
            Self::Login(auth::Refused::Invalid(_)) => "the access token is not good",
            Self::Login(auth::Refused::Malformed(_)) => "the access token is not where it belongs",
            Self::Login(auth::Refused::Scope) => "the access token lacks a scope that every request needs",
            Self::Login(auth::Refused::Unavailable) => {
                "access tokens cannot be checked now, because their issuer's keys cannot be fetched; try again"
            }
        }
    }

    /// Under which word it is counted.
    fn reason(self) -> Reason {
        match self {
            Self::Host => Reason::Other("host"),
            Self::Origin => Reason::Other("origin"),
            Self::NoToken | Self::Login(auth::Refused::NoToken) => Reason::Login("no_token"),
            Self::WrongToken => Reason::Login("wrong_token"),
            Self::Login(auth::Refused::Invalid(_)) => Reason::Login("invalid_token"),
            Self::Login(auth::Refused::Malformed(_)) => Reason::Login("malformed"),
            Self::Login(auth::Refused::Scope) => Reason::Login("insufficient_scope"),
            Self::Login(auth::Refused::Unavailable) => Reason::Login("keys_unavailable"),
        }
    }

    /// What the operator is told.
    pub fn what(self) -> What {
        What::new(self.message(), self.reason())
    }

    /// What was refused, for the operator. Tokens are not shown.
    pub fn detail(self, headers: &HeaderMap, peer: IpAddr) -> String {
        let shown = |name| {
            let values = headers.get_all(&name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
            format!("{name}: {}", values.collect::<Vec<_>>().join(" and "))
        };
        let what = match self {
            Self::Host => shown(header::HOST),
            Self::Origin if headers.contains_key(header::ORIGIN) => shown(header::ORIGIN),
            Self::Origin => shown(header::HeaderName::from_static("sec-fetch-site")),
            Self::Login(auth::Refused::Invalid(why) | auth::Refused::Malformed(why)) => {
                return format!("{why}, from {peer}");
            }
            Self::NoToken | Self::WrongToken | Self::Login(_) => return format!("from {peer}"),
        };
        format!("{what}, from {peer}")
    }

    pub fn status(self) -> StatusCode {
        match self {
            Self::Host | Self::Origin | Self::Login(auth::Refused::Scope) => StatusCode::FORBIDDEN,
            Self::NoToken | Self::WrongToken => StatusCode::UNAUTHORIZED,
            Self::Login(auth::Refused::NoToken | auth::Refused::Invalid(_)) => StatusCode::UNAUTHORIZED,
            Self::Login(auth::Refused::Malformed(_)) => StatusCode::BAD_REQUEST,
            Self::Login(auth::Refused::Unavailable) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// The `WWW-Authenticate` header, if a token would help.
    pub fn challenge(self, settings: Option<&auth::Settings>) -> Option<HeaderValue> {
        match self {
            Self::Host | Self::Origin => None,
            Self::Login(refused) => auth::metadata::challenge(settings?, refused),
            Self::NoToken => Some(HeaderValue::from_static("Bearer realm=\"wharf\"")),
            Self::WrongToken => Some(HeaderValue::from_static(
                "Bearer realm=\"wharf\", error=\"invalid_token\", error_description=\"the bearer token is not the right one\"",
            )),
        }
    }
}

/// Checks from where a request comes.
pub fn check(config: &Http, headers: &HeaderMap) -> Result<(), Refusal> {
    if !host_allowed(config, headers) {
        return Err(Refusal::Host);
    }
    if origin_allowed(config, headers) { Ok(()) } else { Err(Refusal::Origin) }
}

/// Checks only that the request names this server, for what every web page may read.
pub fn check_host(config: &Http, headers: &HeaderMap) -> Result<(), Refusal> {
    if host_allowed(config, headers) { Ok(()) } else { Err(Refusal::Host) }
}

/// Who makes a request, where no identity provider says so.
pub fn principal(config: &Http, headers: &HeaderMap) -> Result<Principal, Refusal> {
    match &config.token {
        None => Ok(Principal::Anonymous),
        Some(token) => match bearer(headers) {
            Some(given) if token.matches(given) => Ok(token.principal().clone()),
            Some(_) => Err(Refusal::WrongToken),
            None => Err(Refusal::NoToken),
        },
    }
}

/// The value of a header that is there exactly once.
fn single(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

fn host_allowed(config: &Http, headers: &HeaderMap) -> bool {
    let Some(host) = single(headers, header::HOST) else { return false };
    let name = without_port(host);
    let local = ["localhost", "127.0.0.1", "[::1]"].iter().any(|local| name.eq_ignore_ascii_case(local));
    // If the server listens on a certain address, that address is a name of it too.
    let listen = config.listen.ip();
    let own = !listen.is_unspecified() && name.trim_matches(['[', ']']).parse() == Ok(listen);
    let listed = config
        .allowed_hosts
        .iter()
        .any(|allowed| allowed.eq_ignore_ascii_case(host) || allowed.eq_ignore_ascii_case(name));
    local || own || listed
}

fn without_port(host: &str) -> &str {
    match host.rfind(':') {
        Some(at)
            if host
                .get(at + 1..)
                .is_some_and(|port| !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit())) =>
        {
            host.get(..at).unwrap_or(host)
        }
        _ => host,
    }
}

fn origin_allowed(config: &Http, headers: &HeaderMap) -> bool {
    let listed = |origin: &str| config.allowed_origins.iter().any(|allowed| allowed == origin);
    if headers.contains_key(header::ORIGIN) {
        return single(headers, header::ORIGIN).is_some_and(|origin| listed(origin) || is_own(origin, headers));
    }
    // Without `Origin`, the request may still be from a web page, such as one that loads an image or a script.
    let site = header::HeaderName::from_static("sec-fetch-site");
    !headers.contains_key(&site) || single(headers, site).is_some_and(|site| site == "none" || site == "same-origin")
}

/// Whether an origin is this server, whose name in `Host` has been checked before.
fn is_own(origin: &str, headers: &HeaderMap) -> bool {
    let host = single(headers, header::HOST).unwrap_or_default();
    origin
        .strip_prefix("http://")
        .or_else(|| origin.strip_prefix("https://"))
        .is_some_and(|own| own.eq_ignore_ascii_case(host))
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = single(headers, header::AUTHORIZATION)?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Http {
        Http {
            listen: "127.0.0.1:7300".parse().unwrap(),
            public_url: None,
            token: None,
            allowed_hosts: vec!["wharf.example".into()],
            allowed_origins: vec!["https://app.example".into()],
            sessions: 1,
            session_idle: std::time::Duration::from_secs(1),
            listens: 1,
            in_flight: 1,
            poll_after: None,
        }
    }

    #[test]
    fn table() {
        for (headers, expected) in [
            (&[("host", "localhost:7300")][..], Ok(())),
            (&[("host", "localhost")], Ok(())),
            (&[("host", "127.0.0.1:1")], Ok(())),
            (&[("host", "[::1]:7300")], Ok(())),
            (&[("host", "wharf.example:443")], Ok(())),
            (&[], Err(Refusal::Host)),
            (&[("host", "evil.example")], Err(Refusal::Host)),
            (&[("host", "localhost.evil.example")], Err(Refusal::Host)),
            (&[("host", "127.0.0.1.evil.example:7300")], Err(Refusal::Host)),
            (&[("host", "localhost"), ("host", "evil.example")], Err(Refusal::Host)),
            (&[("host", "localhost:7300"), ("origin", "http://localhost:7300")], Ok(())),
            (&[("host", "localhost:7300"), ("origin", "http://localhost:8000")], Err(Refusal::Origin)),
            (&[("host", "localhost:7300"), ("origin", "https://app.example")], Ok(())),
            (&[("host", "localhost:7300"), ("origin", "https://app.example.evil")], Err(Refusal::Origin)),
            (&[("host", "localhost:7300"), ("origin", "null")], Err(Refusal::Origin)),
            (&[("host", "localhost:7300"), ("origin", "")], Err(Refusal::Origin)),
            (&[("host", "localhost:7300"), ("sec-fetch-site", "cross-site")], Err(Refusal::Origin)),
            (&[("host", "localhost:7300"), ("sec-fetch-site", "same-site")], Err(Refusal::Origin)),
            (&[("host", "localhost:7300"), ("sec-fetch-site", "none")], Ok(())),
            (
                &[("host", "localhost:7300"), ("sec-fetch-site", "none"), ("sec-fetch-site", "cross-site")],
                Err(Refusal::Origin),
            ),
        ] {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.append(*name, value.parse().unwrap());
            }
            assert_eq!(check(&config(), &map).map(|_| ()), expected, "{headers:?}");
        }
    }
}
