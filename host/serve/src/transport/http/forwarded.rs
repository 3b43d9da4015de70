//! The address of a client behind proxies: what a trusted proxy says in `X-Forwarded-For`, and nothing that a client could make up.

use std::net::{IpAddr, SocketAddr};

use http::{HeaderMap, HeaderName};
use ipnet::IpNet;

use super::connections::Remote;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// The most proxies that are looked at, one behind the other.
const MAX_PROXIES: usize = 16;

/// Whether an address is that of a trusted proxy.
pub fn is_proxy(trusted: &[IpNet], address: IpAddr) -> bool {
    let address = address.to_canonical();
    trusted.iter().any(|network| network.contains(&address))
}

/// Returns where a request comes from. Each proxy adds the address from which it got the request to the end of the header, so the header is
/// read from there, for as long as the addresses are those of trusted proxies. What is before that may be made up by the client.
pub fn origin(trusted: &[IpNet], from: Remote, headers: &HeaderMap) -> Remote {
    let Remote::Address(connected) = from else { return from };
    if trusted.is_empty() || !is_proxy(trusted, connected) {
        return from;
    }
    let mut client = connected;
    let values = headers.get_all(FORWARDED_FOR).iter().rev();
    // A value that is not text ends the list, because what is before it cannot be believed.
    let hops = values.flat_map(|value| value.to_str().unwrap_or("?").rsplit(','));
    for hop in hops.take(MAX_PROXIES) {
        let Some(address) = parse(hop.trim()) else { break };
        client = address;
        if !is_proxy(trusted, address) {
            break;
        }
    }
    Remote::Address(client)
}

/// Parses an address, which some proxies write with a port or between brackets.
fn parse(hop: &str) -> Option<IpAddr> {
    let address = hop.parse::<IpAddr>().or_else(|_| hop.parse::<SocketAddr>().map(|socket| socket.ip()));
    let bare = || hop.strip_prefix('[')?.strip_suffix(']')?.parse::<IpAddr>().ok();
    address.ok().or_else(bare).map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn only_what_trusted_proxies_say_counts() {
        let trusted = ["10.0.0.0/8", "192.0.2.7/32", "fd00::/8"].map(|network| network.parse().unwrap());
        for (connected, headers, expected) in [
            ("10.0.0.1", &["198.51.100.1"][..], "198.51.100.1"),
            ("::ffff:10.0.0.1", &["198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", &[], "10.0.0.1"),
            ("203.0.113.9", &["198.51.100.1"], "203.0.113.9"),
            // What the client itself sent comes first.
            ("10.0.0.1", &["1.1.1.1, 198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", &["1.1.1.1", "198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", &["1.1.1.1, 198.51.100.1, 192.0.2.7", "10.9.9.9"], "198.51.100.1"),
            ("10.0.0.1", &["10.0.0.2, 10.0.0.3"], "10.0.0.2"),
            ("10.0.0.1", &["198.51.100.1:4711"], "198.51.100.1"),
            ("fd00::1", &["[2001:db8::1]:4711"], "2001:db8::1"),
            ("fd00::1", &["[2001:db8::1]"], "2001:db8::1"),
            ("10.0.0.1", &["::ffff:198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", &["198.51.100.1, unknown"], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.1, unknown, 10.0.0.2"], "10.0.0.2"),
            ("10.0.0.1", &[""], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.1\u{ff}", "10.0.0.2"], "10.0.0.2"),
        ] {
            let mut map = HeaderMap::new();
            for value in headers {
                map.append(FORWARDED_FOR, HeaderValue::from_bytes(value.as_bytes()).unwrap());
            }
            let from = Remote::Address(connected.parse().unwrap());
            assert_eq!(origin(&trusted, from, &map).to_string(), expected, "{connected} {headers:?}");
        }
        let (local, mut map) = (Remote::Local(7), HeaderMap::new());
        map.append(FORWARDED_FOR, HeaderValue::from_static("198.51.100.1"));
        assert_eq!(origin(&trusted, local, &map), local);
        let long = vec!["10.0.0.2"; 10_000].join(",");
        map.append(FORWARDED_FOR, HeaderValue::try_from(long).unwrap());
        assert_eq!(origin(&trusted, Remote::Address([10, 0, 0, 1].into()), &map).to_string(), "10.0.0.2");
    }
}
