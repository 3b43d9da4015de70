//! The target of a request: its URL, parsed and canonicalized into the single form in which it is checked and sent. A URL that a server
//! might interpret differently is refused rather than interpreted.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http::{Uri, uri::PathAndQuery};

use super::address::{AddressKind, judge};
use wharf_base::reading::{Doubt, doubt_of_path};

/// A host, in canonical form.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name, in lower case and without a trailing dot.
    Name(String),
    Address(IpAddr),
}

impl Host {
    /// Whether it is this machine: its loopback addresses, or the name for them.
    pub fn is_this_machine(&self) -> bool {
        match self {
            Self::Name(name) => name == "localhost",
            Self::Address(address) => address.to_canonical().is_loopback(),
        }
    }

    /// Whether a host is private whatever a look-up of its name answers: an address that is not public, or a name that is not one of the
    /// public DNS.
    pub fn is_private_by_name(&self) -> bool {
        let below = |name: &str, domain: &str| name == domain || name.ends_with(&format!(".{domain}"));
        match self {
            Self::Address(address) => judge(*address) != AddressKind::Public,
            Self::Name(name) => !name.contains('.') || PRIVATE_DOMAINS.iter().any(|domain| below(name, domain)),
        }
    }
}

/// Domains that the public DNS never has.
const PRIVATE_DOMAINS: [&str; 4] = ["localhost", "local", "internal", "home.arpa"];

impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// The scheme of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    Http,
    Https,
}

impl Scheme {
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "http" => Some(Self::Http),
            "https" => Some(Self::Https),
            _ => None,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    pub fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// The target of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub scheme: Scheme,
    pub host: Host,
    pub port: u16,
    /// The path as the guest wrote it, without the query.
    pub path: String,
    /// Why the path has more than one interpretation, if it has.
    pub doubt: Option<Doubt>,
}

impl Target {
    /// Parses a guest's URL. The error says what is wrong with it.
    pub fn of(uri: &Uri) -> Result<Self, &'static str> {
        let scheme = uri.scheme_str().and_then(Scheme::parse).ok_or("the scheme is neither http nor https")?;
        let authority = uri.authority().ok_or("there is no host")?.as_str();
        if authority.contains('@') {
            return Err("there is a user name or a password in the URL");
        }
        let (host, port) = split_port(authority)?;
        let (host, port) = (self::host(host)?, port.unwrap_or(scheme.port()));
        let path = uri.path().to_owned();
        let doubt = doubt_of_path(&path);
        Ok(Self { scheme, host, port, path, doubt })
    }

    /// Returns the host and, unless it is the default of the scheme, the port.
    pub fn authority(&self) -> String {
        if self.port == self.scheme.port() { self.host.to_string() } else { format!("{}:{}", self.host, self.port) }
    }

    /// Returns the URL in the normalized form in which it is checked, with the path and query as in `written`.
    pub fn url(&self, written: &Uri) -> Result<Uri, http::Error> {
        let path = written.path_and_query().map_or("/", PathAndQuery::as_str);
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Uri::builder().scheme(self.scheme.as_str()).authority(self.authority()).path_and_query(path).build()
    }
}

/// Normalizes a URL without changing its meaning. The error says what is wrong with it.
pub fn normal(url: &str) -> Result<Uri, &'static str> {
    let written: Uri = url.parse().map_err(|_| "it is not a URL")?;
    Target::of(&written)?.url(&written).map_err(|_| "it is not a URL")
}

/// Splits the part of a URL between `://` and the path into a host and a port.
pub fn split_port(authority: &str) -> Result<(&str, Option<u16>), &'static str> {
    let after_brackets = authority.rfind(']').map_or(0, |at| at + 1);
    let Some(colon) = authority.get(after_brackets..).and_then(|rest| rest.rfind(':')) else {
        return Ok((authority, None));
    };
    let (host, port) = authority.split_at(after_brackets + colon);
    let digits = port.get(1..).unwrap_or_default();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("the port is not a number");
    }
    match digits.parse() {
        Ok(port) if port > 0 => Ok((host, Some(port))),
        _ => Err("the port is out of range"),
    }
}

/// Parses a host. Spellings of IP addresses that only some programs understand are refused: the last label of a name must not be a number.
pub fn host(text: &str) -> Result<Host, &'static str> {
    if let Some(inner) = text.strip_prefix('[') {
        let address = inner.strip_suffix(']').and_then(|inner| inner.parse::<Ipv6Addr>().ok());
        return address.map(|address| Host::Address(address.into())).ok_or("the host is not an IPv6 address");
    }
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    if name.is_empty() || name.len() > 253 || !name.split('.').all(label) {
        return Err("the host has characters that host names cannot have");
    }
    let last = name.rsplit('.').next().unwrap_or_default();
    let hexadecimal = last.strip_prefix("0x").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if hexadecimal || last.bytes().all(|byte| byte.is_ascii_digit()) {
        // The standard library's parser accepts only four decimal numbers without leading zeros.
        let address = name.parse::<Ipv4Addr>().map_err(|_| "the host ends in a number but is not an IPv4 address")?;
        return Ok(Host::Address(address.into()));
    }
    Ok(Host::Name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str) -> Result<Target, &'static str> {
        Target::of(&url.parse::<Uri>().map_err(|_| "no URI")?)
    }

    #[test]
    fn urls_have_one_form() {
        for (url, authority, port, path) in [
            ("https://API.Example.com", "api.example.com", 443, "/"),
            ("https://api.example.com.:443/a?b", "api.example.com", 443, "/a"),
            ("http://a.example:8080/x/", "a.example:8080", 8080, "/x/"),
            ("http://127.0.0.1/", "127.0.0.1", 80, "/"),
            ("http://[::1]:3000/", "[::1]:3000", 3000, "/"),
            ("http://[::FFFF:127.0.0.1]/", "[::ffff:127.0.0.1]", 80, "/"),
            ("https://xn--bcher-kva.example/", "xn--bcher-kva.example", 443, "/"),
        ] {
            let target = target(url).unwrap();
            assert_eq!((&*target.authority(), target.port, &*target.path), (authority, port, path), "{url}");
        }
    }

    #[test]
    fn some_hosts_are_private_by_their_name_alone() {
        for (name, private) in [
            ("a.example", false),
            ("93.184.216.34", false),
            ("[2606:4700::1111]", false),
            ("localhost.example", false),
            ("127.0.0.1", true),
            ("[::1]", true),
            ("169.254.169.254", true),
            ("localhost", true),
            ("a.localhost", true),
            ("router", true),
            ("printer.local", true),
            ("metadata.google.internal", true),
        ] {
            assert_eq!(host(name).unwrap().is_private_by_name(), private, "{name}");
        }
    }

    #[test]
    fn spellings_that_could_mean_two_things_are_refused() {
        for url in [
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0x7f.0.0.1/",
            "http://017700000001/",
            "http://0177.0.0.1/",
            "http://127.1/",
            "http://127.0.1/",
            "http://127.0.0.1.1/",
            "http://127.0.0.256/",
            "http://127.00.0.1/",
            "http://127.0.0.0x1/",
            "http://1.2.3.4../",
            "http://user@api.example.com/",
            "http://api.example.com@evil.example/",
            "http://a:b@api.example.com/",
            "http://api.example.com:0/",
            "http://api.example.com:65536/",
            "http://api.example.com:/",
            "http://a..b/",
            "http://.a/",
            "http://a%2eb/",
            "http://[::1%25eth0]/",
            "http://[v1.a]/",
            "http://a,b/",
            "ftp://a.example/",
            "/only/a/path",
        ] {
            assert!(target(url).is_err(), "{url}: {:?}", target(url));
        }
    }
}
