//! The networks that this machine is in, by the addresses of its interfaces. Their addresses may look public: on a server that has a public
//! address itself, services for the machine alone often listen on all addresses, behind a firewall that does not see its own requests.

#![expect(clippy::disallowed_methods, reason = "/proc is not a file of any plugin or client")]

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

/// How long the networks count as known. Interfaces come and go, and connections are made often.
const KNOWN_FOR: Duration = Duration::from_secs(5);
/// Routes to larger networks, such as the default route, say nothing about what is near.
const MIN_PREFIX_V4: u8 = 8;
const MIN_PREFIX_V6: u8 = 16;

/// The addresses that begin with the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    fn new(address: IpAddr, bits: u8) -> Option<Self> {
        let bounds = if address.is_ipv4() { MIN_PREFIX_V4..=32 } else { MIN_PREFIX_V6..=128 };
        bounds.contains(&bits).then_some(Self { address, bits })
    }

    fn has(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                (own.to_bits() ^ other.to_bits()).leading_zeros() >= u32::from(self.bits)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                (own.to_bits() ^ other.to_bits()).leading_zeros() >= u32::from(self.bits)
            }
            _ => false,
        }
    }
}

/// Whether an address is one of this machine, or of a network that it reaches without a router.
pub(crate) fn is_around(address: IpAddr) -> bool {
    static KNOWN: Mutex<Option<(Instant, Arc<[Network]>)>> = Mutex::new(None);
    let mut known = KNOWN.lock();
    let networks = match &*known {
        Some((at, networks)) if at.elapsed() < KNOWN_FOR => Arc::clone(networks),
        _ => {
            let networks: Arc<[Network]> = networks().into();
            *known = Some((Instant::now(), Arc::clone(&networks)));
            networks
        }
    };
    drop(known);
    is_in(&networks, address)
}

fn is_in(networks: &[Network], address: IpAddr) -> bool {
    let address = address.to_canonical();
    networks.iter().any(|network| network.has(address))
}

/// Returns the networks as Linux shows them. Systems without these files show none.
fn networks() -> Vec<Network> {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let [v4, interfaces, v6] = ["/proc/net/fib_trie", "/proc/net/if_inet6", "/proc/net/ipv6_route"].map(read);
    from_routes(&v4).chain(from_interfaces(&interfaces)).chain(from_routes_v6(&v6)).collect()
}

/// Parses `fib_trie`: under each address, the routes that begin with it. `host LOCAL` is an address of the machine itself, and `link UNICAST`
/// a network without a router.
fn from_routes(text: &str) -> impl Iterator<Item = Network> {
    let mut address = None;
    text.lines().map(str::trim).filter_map(move |line| {
        if let Some(begin) = line.strip_prefix("|-- ") {
            address = begin.parse::<Ipv4Addr>().ok();
            return None;
        }
        let mut words = line.split_whitespace();
        let bits = words.next()?.strip_prefix('/')?.parse().ok()?;
        let is_near = matches!((words.next()?, words.next()?), ("host", "LOCAL") | ("link", "UNICAST"));
        Network::new(address?.into(), bits).filter(|_| is_near)
    })
}

/// Parses `if_inet6`: an address, the number of an interface, the bits of its network, its scope, its flags and its name, in hexadecimal.
fn from_interfaces(text: &str) -> impl Iterator<Item = Network> {
    text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let address = u128::from_str_radix(words.next()?, 16).ok()?;
        let bits = u8::from_str_radix(words.nth(1)?, 16).ok()?;
        Network::new(Ipv6Addr::from_bits(address).into(), bits)
    })
}

/// Parses `ipv6_route`: destination and its bits, source and its bits, the next router, three numbers, flags and the interface, in hexadecimal.
/// An address often has no network itself, such as one of DHCP, and its network only a route.
fn from_routes_v6(text: &str) -> impl Iterator<Item = Network> {
    const UP: u32 = 1;
    const GATEWAY: u32 = 2;
    const REJECT: u32 = 0x200;
    text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let address = u128::from_str_radix(words.next()?, 16).ok()?;
        let bits = u8::from_str_radix(words.next()?, 16).ok()?;
        let router = u128::from_str_radix(words.nth(2)?, 16).ok()?;
        let flags = u32::from_str_radix(words.nth(3)?, 16).ok()?;
        let is_near = router == 0 && flags & (UP | GATEWAY | REJECT) == UP;
        Network::new(Ipv6Addr::from_bits(address).into(), bits).filter(|_| is_near)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTES: &str = "Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
        /1 link UNICAST
     +-- 93.184.216.0/24 2 0 2
        |-- 93.184.216.0
           /24 link UNICAST
        |-- 93.184.216.34
           /32 host LOCAL
        |-- 93.184.216.255
           /32 link BROADCAST
     |-- 8.8.0.0
        /16 universe UNICAST
Local:
     |-- 9.9.9.9
        /32 host LOCAL
";
    const INTERFACES: &str = "26064700000000000000000000001111 02 40 00 80     eth0
00000000000000000000000000000001 01 80 10 80       lo
";

    /// Routes as the kernel writes them: destination, bits, next router, flags.
    const ROUTES_V6: [(&str, &str, &str, &str); 7] = [
        ("2a0104f8000a0000000000000000c0de", "80", NOWHERE, "00000001"),
        ("2a0104f8000a00000000000000000000", "40", NOWHERE, "00000001"),
        ("2a0104f8000b00000000000000000000", "40", ROUTER, "00000003"),
        ("2a0104f8000c00000000000000000000", "40", NOWHERE, "00000201"),
        ("20000000000000000000000000000000", "03", NOWHERE, "00000001"),
        (NOWHERE, "00", ROUTER, "00000003"),
        (NOWHERE, "00", NOWHERE, "00200200"),
    ];
    const NOWHERE: &str = "00000000000000000000000000000000";
    const ROUTER: &str = "fe800000000000000000000000000001";

    #[test]
    fn addresses_of_the_machine_and_its_neighbours_are_around() {
        let route = |(to, bits, router, flags)| {
            format!("{to} {bits} {NOWHERE} 00 {router} 00000400 00000001 00000000 {flags}     eth0\n")
        };
        let routes = ROUTES_V6.map(route).concat();
        let networks = from_routes(ROUTES).chain(from_interfaces(INTERFACES)).chain(from_routes_v6(&routes));
        let networks: Vec<Network> = networks.collect();
        for (address, expected) in [
            ("93.184.216.34", true),
            ("93.184.216.1", true),
            ("::ffff:93.184.216.34", true),
            ("93.184.217.34", false),
            ("9.9.9.9", true),
            ("9.9.9.10", false),
            ("8.8.8.8", false),
            ("1.1.1.1", false),
            ("2606:4700::1111", true),
            ("2606:4700::2", true),
            ("2606:4700:0:1::1", false),
            ("2a01:4f8:a::c0de", true),
            ("2a01:4f8:a::1", true),
            ("2a01:4f8:a:1::1", false),
            ("2a01:4f8:b::1", false),
            ("2a01:4f8:c::1", false),
            ("2a00:1450::1", false),
        ] {
            assert_eq!(is_in(&networks, address.parse().unwrap()), expected, "{address}");
        }
    }

    /// Every machine with these files has an address at which it reaches itself.
    #[test]
    #[cfg(target_os = "linux")]
    fn the_machine_itself_is_around() {
        assert!(is_around(IpAddr::V4(Ipv4Addr::LOCALHOST)), "{:?}", networks());
        assert!(!is_around(IpAddr::V4(Ipv4Addr::new(1, 1, 1, 1))), "{:?}", networks());
    }
}
