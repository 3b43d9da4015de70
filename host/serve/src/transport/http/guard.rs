//! Decides who may use the HTTP server at all, against DNS rebinding and cross-site requests (CSRF). A loopback address is not private: any
//! web page can make its visitor's browser send requests to it. So `Host` must be a name of this server, and a web page must be from this
//! server or an origin in the allowlist.

use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::connections::{Peer, Remote};
use wharf_base::{
    headers::{bearer, single},
    principal::Principal,
    refusals::{Reason, What},
};
use wharf_config::config::Http;
use wharf_policy::auth;

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// 403: the `Host` is not a name of this server. An attacker may have pointed a domain name here (DNS rebinding).
    Host,
    /// 403: the request is from a web page whose origin is not listed.
    Origin,
    /// 403: the program that connected is another user's, and there is no login.
    OtherUser,
    /// 401: there is no token.
    NoToken,
    /// 401: the token is wrong.
    WrongToken,
    /// 403: the connection has no client certificate.
    NoCertificate,
    /// 403: the certificate of the connection has expired since the handshake.
    CertificateExpired,
    /// A token of an identity provider is needed, and the request has no valid one, or no role applies to the caller.
    Login(auth::Refused),
}

impl Refusal {
    pub fn message(&self) -> &'static str {
        match self {
            Self::Host => "this host is not served here; add it to `allowed_hosts` in [http]",
            Self::Origin => "this origin is not allowed; add it to `allowed_origins` in [http]",
            Self::OtherUser => {
                "without a login, only the user who started this server is served; set `token` in [http], or listen on a Unix socket"
            }
            Self::NoToken => "a bearer token is needed",
            Self::WrongToken => "the bearer token is not the right one",
            Self::NoCertificate => "a client certificate is needed",
            Self::CertificateExpired => "the client certificate has expired; connect with a new one",
            Self::Login(auth::Refused::NoToken) => "an access token is needed; log in first",
            Self::Login(auth::Refused::Invalid(_)) => "the access token is invalid or has expired",
            Self::Login(auth::Refused::Malformed(_)) => {
                "the access token must be in one `Authorization` header, and nowhere else"
            }
            Self::Login(auth::Refused::Scope(_)) => "the access token lacks a scope that every request needs",
            Self::Login(auth::Refused::Role) => "no role in the config applies to you",
            Self::Login(auth::Refused::Unavailable) => {
                "access tokens cannot be checked now, because their issuer's keys cannot be fetched; try again"
            }
        }
    }

    /// Returns the word under which the refusal is counted.
    fn reason(&self) -> Reason {
        match self {
            Self::Host => Reason::Other("host"),
            Self::Origin => Reason::Other("origin"),
            Self::OtherUser => Reason::Login("other_user"),
            Self::NoToken | Self::Login(auth::Refused::NoToken) => Reason::Login("no_token"),
            Self::WrongToken => Reason::Login("wrong_token"),
            Self::Login(auth::Refused::Invalid(_)) => Reason::Login("invalid_token"),
            Self::Login(auth::Refused::Malformed(_)) => Reason::Login("malformed"),
            Self::NoCertificate => Reason::Login("no_certificate"),
            Self::CertificateExpired => Reason::Login("certificate_expired"),
            Self::Login(auth::Refused::Scope(_)) => Reason::Login("insufficient_scope"),
            Self::Login(auth::Refused::Role) => Reason::Login("no_role"),
            Self::Login(auth::Refused::Unavailable) => Reason::Login("keys_unavailable"),
        }
    }

    /// Returns the refusal for the operator's log.
    pub fn what(&self) -> What {
        What::new(self.message(), self.reason())
    }

    /// Returns the part of the request that was refused, for the operator's log. Tokens are not shown.
    pub fn detail(&self, headers: &HeaderMap, peer: Remote) -> String {
        let shown = |name| {
            let values = headers.get_all(&name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
            format!("{name}: {}", values.collect::<Vec<_>>().join(" and "))
        };
        let what = match self {
            Self::Host => shown(header::HOST),
            Self::Origin if headers.contains_key(header::ORIGIN) => shown(header::ORIGIN),
            Self::Origin => shown(FETCH_SITE),
            Self::Login(auth::Refused::Invalid(why) | auth::Refused::Malformed(why)) => {
                return format!("{why}, from {peer}");
            }
            Self::OtherUser
            | Self::NoToken
            | Self::WrongToken
            | Self::NoCertificate
            | Self::CertificateExpired
            | Self::Login(_) => {
                return format!("from {peer}");
            }
        };
        format!("{what}, from {peer}")
    }

    pub fn status(&self) -> StatusCode {
        match self {
            Self::Host | Self::Origin | Self::OtherUser | Self::NoCertificate | Self::CertificateExpired => {
                StatusCode::FORBIDDEN
            }
            Self::Login(auth::Refused::Scope(_) | auth::Refused::Role) => StatusCode::FORBIDDEN,
            Self::NoToken | Self::WrongToken => StatusCode::UNAUTHORIZED,
            Self::Login(auth::Refused::NoToken | auth::Refused::Invalid(_)) => StatusCode::UNAUTHORIZED,
            Self::Login(auth::Refused::Malformed(_)) => StatusCode::BAD_REQUEST,
            Self::Login(auth::Refused::Unavailable) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// Returns the `WWW-Authenticate` header, if a token would help.
    pub fn challenge(&self, settings: Option<&auth::AuthSettings>, profile: Option<&str>) -> Option<HeaderValue> {
        match self {
            Self::Host | Self::Origin | Self::OtherUser | Self::NoCertificate | Self::CertificateExpired => None,
            Self::Login(refused) => auth::metadata::challenge(settings?, refused, profile),
            Self::NoToken => Some(HeaderValue::from_static("Bearer realm=\"wharf\"")),
            Self::WrongToken => Some(HeaderValue::from_static(
                "Bearer realm=\"wharf\", error=\"invalid_token\", error_description=\"the bearer token is not the right one\"",
            )),
        }
    }
}

/// Checks where a request comes from, by `Host` and `Origin`. Web pages cannot connect to a Unix socket, and its clients send any `Host`,
/// so that requests there pass unless their headers show that a proxy passed them on from a web page.
pub fn check(config: &Http, headers: &HeaderMap, from: Remote) -> Result<(), Refusal> {
    if matches!(from, Remote::Local(_)) && !from_page(headers) {
        return Ok(());
    }
    if !host_allowed(config, headers) {
        return Err(Refusal::Host);
    }
    if origin_allowed(config, headers) { Ok(()) } else { Err(Refusal::Origin) }
}

/// Checks only that `Host` names this server, for documents that every web page may read.
pub fn check_host(config: &Http, headers: &HeaderMap, from: Remote) -> Result<(), Refusal> {
    let local = matches!(from, Remote::Local(_)) && !from_page(headers);
    if local || host_allowed(config, headers) { Ok(()) } else { Err(Refusal::Host) }
}

const FETCH_SITE: header::HeaderName = header::HeaderName::from_static("sec-fetch-site");

/// Whether a browser marked the request as one from a web page.
fn from_page(headers: &HeaderMap) -> bool {
    headers.contains_key(header::ORIGIN) || headers.contains_key(FETCH_SITE)
}

/// Returns the principal of a request without an identity provider: that of the token if the config has one, else the one
/// that the connection shows.
pub fn principal(config: &Http, headers: &HeaderMap, peer: &Peer) -> Result<Principal, Refusal> {
    match &config.token {
        None => match (peer.certificate(), peer.remote()) {
            (Some(certificate), _) => Ok(Principal::Certificate(certificate.name().into())),
            (None, Remote::Local(user)) => Ok(Principal::Local(user)),
            // A config that asks for client certificates does not serve clients without one.
            (None, Remote::Address(_)) if config.tls.as_ref().is_some_and(|tls| tls.clients.is_some()) => {
                Err(Refusal::NoCertificate)
            }
            (None, Remote::Address(_)) => Ok(Principal::Anonymous),
            (None, Remote::OtherUser(_)) => Err(Refusal::OtherUser),
        },
        Some(token) => match bearer(headers) {
            Ok(Some(given)) if token.matches(given) => Ok(token.principal().clone()),
            Ok(None | Some("")) | Err(_) => Err(Refusal::NoToken),
            Ok(Some(_)) => Err(Refusal::WrongToken),
        },
    }
}

/// Returns the value of a header that occurs exactly once.
fn only(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    single(headers, name).ok().flatten()
}

fn host_allowed(config: &Http, headers: &HeaderMap) -> bool {
    let Some(host) = only(headers, header::HOST) else { return false };
    let name = without_port(host);
    let local = ["localhost", "127.0.0.1", "[::1]"].iter().any(|local| name.eq_ignore_ascii_case(local));
    // If the server listens on a specific address, that address is a name of it too.
    let listen = config.listen.address().map(|address| address.ip()).filter(|address| !address.is_unspecified());
    let own = listen.is_some_and(|listen| name.trim_matches(['[', ']']).parse() == Ok(listen));
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
        return only(headers, header::ORIGIN)
            .is_some_and(|origin| listed(origin) || is_own(origin, headers, config.tls.is_some()));
    }
    // Without `Origin`, the request may still be from a web page, such as one that loads an image or a script.
    !headers.contains_key(FETCH_SITE)
        || only(headers, FETCH_SITE).is_some_and(|site| site == "none" || site == "same-origin")
}

/// Whether an origin is this server, whose `Host` was checked before. `secure`: the server speaks TLS, so that a page from an origin
/// without TLS came from another server of the same name. A server without TLS may be behind a proxy that terminates it.
fn is_own(origin: &str, headers: &HeaderMap, secure: bool) -> bool {
    let host = only(headers, header::HOST).unwrap_or_default();
    let is = |scheme: &str, port: &str| {
        // Browsers leave out the default port of a scheme; other clients may write it.
        let plain = |authority: &'_ str| authority.strip_suffix(port).unwrap_or(authority).to_ascii_lowercase();
        origin.strip_prefix(scheme).is_some_and(|own| plain(own) == plain(host))
    };
    is("https://", ":443") || (!secure && is("http://", ":80"))
}

#[cfg(test)]
mod tests {
    use wharf_config::config::{self, CommandLine};

    use super::*;

    fn config() -> Http {
        let plain = config::without_file(&CommandLine::default()).unwrap().startup.http.clone();
        let (host, origin) = ("wharf.example".to_owned(), "https://app.example".to_owned());
        Http { allowed_hosts: vec![host], allowed_origins: vec![origin], ..plain }
    }

    const TCP: Remote = Remote::Address(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));

    #[test]
    fn at_a_unix_socket_only_pages_are_looked_at() {
        for (headers, expected) in [
            (&[][..], Ok(())),
            (&[("host", "any.example")], Ok(())),
            (&[("host", "evil.example"), ("origin", "http://evil.example")], Err(Refusal::Host)),
            (&[("host", "evil.example"), ("sec-fetch-site", "same-origin")], Err(Refusal::Host)),
            (&[("host", "localhost"), ("origin", "http://evil.example")], Err(Refusal::Origin)),
            (&[("host", "wharf.example"), ("origin", "https://app.example")], Ok(())),
        ] {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.append(*name, value.parse().unwrap());
            }
            assert_eq!(check(&config(), &map, Remote::Local(1000)), expected, "{headers:?}");
        }
    }

    #[test]
    fn a_page_that_came_without_tls_is_not_from_a_server_with_tls() {
        let tls = wharf_config::config::tls::Tls { cert: "c".into(), key: "k".into(), clients: None };
        let (plain, secure) = (config(), Http { tls: Some(tls), ..config() });
        for (host, origin, with_plain, with_tls) in [
            ("localhost:7300", "https://localhost:7300", true, true),
            ("localhost:7300", "http://localhost:7300", true, false),
            ("localhost", "https://localhost", true, true),
            ("localhost:443", "https://localhost", true, true),
            ("localhost", "https://localhost:443", true, true),
            ("localhost:80", "https://localhost", false, false),
            ("localhost:80", "http://localhost", true, false),
            ("localhost:443", "http://localhost", false, false),
            ("localhost", "https://localhost:7300", false, false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("host", host.parse().unwrap());
            headers.insert("origin", origin.parse().unwrap());
            for (config, expected) in [(&plain, with_plain), (&secure, with_tls)] {
                assert_eq!(check(config, &headers, TCP).is_ok(), expected, "{host} {origin} {:?}", config.tls);
            }
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
            assert_eq!(check(&config(), &map, TCP).map(|_| ()), expected, "{headers:?}");
        }
    }
}
