//! `[http]`: where to listen, who may connect, and how many.

use std::{net::IpAddr, path::PathBuf, time::Duration};

use ::http::Uri;
use anyhow::{Context, Result, ensure};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ipnet::IpNet;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::{
    auth,
    command_line::CommandLine,
    defaults::{self, CoreScaled},
    listen::{ListenAddress, parse_listen},
    raw::{self, Number},
    tls::{self, Tls},
};
use wharf_base::principal::Principal;
use wharf_egress::secrets::{RawSecret, SecretSource};
use wharf_policy::access::capability::Absolute;

/// How long after it was issued the id of a session makes the session again.
pub const SESSION_LIFETIME: Duration = Duration::from_hours(7 * 24);

/// Where the access log is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessLog {
    Stderr,
    File(PathBuf),
}

impl AccessLog {
    /// Returns the file of the log, which no plugin may write.
    pub fn trusted(&self) -> Option<PathBuf> {
        match self {
            Self::Stderr => None,
            Self::File(path) => Some(path.clone()),
        }
    }
}

/// The keys are described in `raw`; here is only what is not said there.
#[derive(Debug, Clone, PartialEq)]
pub struct Http {
    pub listen: ListenAddress,
    pub socket_mode: u32,
    pub public_url: Option<String>,
    pub token: Option<Token>,
    pub allowed_hosts: Vec<String>,
    pub allowed_origins: Vec<String>,
    pub connections: usize,
    pub trusted_proxies: Vec<IpNet>,
    pub sessions: usize,
    pub session_idle: Duration,
    pub listens: usize,
    pub in_flight: usize,
    /// None: never.
    pub poll_after: Option<Duration>,
    pub drain: Duration,
    pub drain_delay: Duration,
    pub access_log: Option<AccessLog>,
    /// None: plain HTTP.
    pub tls: Option<Tls>,
}

/// A bearer token. Only its digest is stored, and `Debug` shows nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    digest: [u8; 32],
    principal: Principal,
}

impl Token {
    fn new(secret: &str) -> Self {
        let digest = Sha256::digest(secret).into();
        Self { digest, principal: Principal::Token(URL_SAFE_NO_PAD.encode(digest).into()) }
    }

    /// The principal of clients with this token. It is the same in every process, and the token cannot be derived from it.
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// Compares in constant time: the duration shows neither how much of `other` was right nor how long the token is.
    pub fn matches(&self, other: &str) -> bool {
        Sha256::digest(other).as_slice().ct_eq(&self.digest).into()
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

pub fn resolve(raw: raw::Http, command_line: &CommandLine, absolute: Absolute<'_>) -> Result<Http> {
    let listen = match &command_line.listen {
        Some(listen) => listen.clone().resolve(&|path| Ok(std::path::absolute(path)?)).context("--listen")?,
        None => {
            let text = raw.listen.as_deref().unwrap_or(defaults::LISTEN);
            parse_listen(text).and_then(|listen| listen.resolve(absolute)).context("`listen`")?
        }
    };
    let socket_mode = raw.socket_mode.unwrap_or(defaults::SOCKET_MODE);
    ensure!(socket_mode <= 0o777, "`socket_mode` is from 0 to 0o777; write it in octal, such as 0o660");
    ensure!(
        listen.socket().is_none() || raw.tls.is_none(),
        "[http.tls] has no effect on a Unix socket, whose other end is on this machine; remove it"
    );
    let token = raw.token.map(|written| token(written, absolute)).transpose().context("`token`")?;
    let allowed_origins = raw.allowed_origins.iter().map(|origin| self::origin(origin)).collect::<Result<_>>()?;
    let public_url = raw.public_url.as_deref().map(auth::public_url).transpose()?;
    // The host of `public_url` is a name of this server, so clients may send it in `Host`.
    let own = public_url.as_deref().and_then(|url| url.parse::<Uri>().ok()?.authority().map(|own| own.to_string()));
    Ok(Http {
        listen,
        socket_mode,
        public_url,
        token,
        allowed_hosts: raw.allowed_hosts.into_iter().chain(own).collect(),
        allowed_origins,
        connections: raw.connections.get(),
        trusted_proxies: raw.trusted_proxies.iter().map(|proxy| self::proxy(proxy)).collect::<Result<_>>()?,
        sessions: raw.sessions.get(),
        session_idle: raw.session_idle_ms.get(),
        listens: raw.listens.get(),
        in_flight: raw.in_flight.map_or_else(|| CoreScaled::for_this_machine().in_flight, Number::get),
        poll_after: raw.poll_after_ms.unless_zero(),
        drain: raw.drain_s.get(),
        drain_delay: raw.drain_delay_s.get(),
        access_log: match raw.access_log.as_deref() {
            None => None,
            Some("stderr") => Some(AccessLog::Stderr),
            Some(path) => Some(AccessLog::File(absolute(path).context("`access_log`")?)),
        },
        tls: raw.tls.map(|raw| tls::resolve(raw, absolute)).transpose().context("[http.tls]")?,
    })
}

fn token(written: RawSecret, absolute: Absolute<'_>) -> Result<Token> {
    let source = written.source(absolute)?;
    let SecretSource::Env(name) = &source else { return Ok(Token::new(source.now()?.expose())) };
    let is_set = std::env::var_os(name).is_some_and(|token| !token.is_empty());
    ensure!(is_set, "the environment variable {name} is not set");
    let secret = source.now().with_context(|| format!("{name}; `openssl rand -hex 32` makes a good token"))?;
    Ok(Token::new(secret.expose()))
}

/// Converts an origin to the form that browsers send: in lower case, and without the default port of its scheme.
fn origin(written: &str) -> Result<String> {
    let origin = written.to_ascii_lowercase();
    let own = [("http://", ":80"), ("https://", ":443")].into_iter().find(|(scheme, _)| origin.starts_with(scheme));
    let (scheme, port) =
        own.with_context(|| format!("`allowed_origins`: `{written}` is not like https://example.com"))?;
    let host = origin.strip_prefix(scheme).unwrap_or_default();
    ensure!(
        !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_graphic() && !b"/?#@\\".contains(&byte)),
        "`allowed_origins`: `{written}` is not like https://example.com"
    );
    Ok(origin.strip_suffix(port).unwrap_or(&origin).to_owned())
}

/// Parses an address, or a network such as `10.0.0.0/8`. Clients whose IPv4 address is written in IPv6 have that IPv4 address.
fn proxy(written: &str) -> Result<IpNet> {
    let network = match written.parse::<IpAddr>() {
        Ok(address) => IpNet::from(address.to_canonical()),
        Err(_) => written.parse::<IpNet>().map_err(|_| {
            anyhow::anyhow!("`trusted_proxies`: `{written}` is not an address or a network such as 10.0.0.0/8")
        })?,
    };
    ensure!(
        network.prefix_len() > 0,
        "`trusted_proxies`: `{written}` is every address, and then any client could claim to be another; name those of the proxies"
    );
    Ok(network.trunc())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_compared_as_browsers_write_it() {
        for (written, expected) in [
            ("https://example.com", Some("https://example.com")),
            ("https://Example.COM:443", Some("https://example.com")),
            ("http://localhost:80", Some("http://localhost")),
            ("http://localhost:5173", Some("http://localhost:5173")),
            ("https://example.com:80", Some("https://example.com:80")),
            ("https://example.com/", None),
            ("https://example.com/a", None),
            ("https://user@example.com", None),
            ("https://", None),
            ("https://b\u{fc}cher.example", None),
            ("ftp://example.com", None),
            ("null", None),
        ] {
            assert_eq!(origin(written).ok().as_deref(), expected, "{written}");
        }
    }

    #[test]
    fn proxies_are_addresses_and_networks() {
        for (written, expected) in [
            ("10.0.0.1", Some("10.0.0.1/32")),
            ("10.1.2.3/8", Some("10.0.0.0/8")),
            ("::ffff:10.0.0.1", Some("10.0.0.1/32")),
            ("fd00::1", Some("fd00::1/128")),
            ("fd00::/8", Some("fd00::/8")),
            ("0.0.0.0/0", None),
            ("::/0", None),
            ("10.0.0.0/33", None),
            ("proxy.internal", None),
            ("", None),
        ] {
            assert_eq!(proxy(written).ok().map(|network| network.to_string()).as_deref(), expected, "{written}");
        }
    }

    #[test]
    fn tokens_match_only_themselves() {
        let token = Token::new("secret");
        for (other, matches) in [("secret", true), ("secreT", false), ("secre", false), ("secrets", false), ("", false)]
        {
            assert_eq!(token.matches(other), matches, "{other}");
        }
        assert!(!format!("{token:?}").contains("secret"));
    }
}
