//! Classifies IP addresses, against SSRF and DNS rebinding. A public name can be made to resolve to any address, so the resolved address is
//! checked right before wharf connects to that same address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::around::is_around;

/// The kind of an IP address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressKind {
    /// An address on the public internet.
    Public,
    /// An address of this machine or of a private network.
    Private,
    /// A link-local address, the address of a cloud's metadata service, or an address without any use. Names that resolve to one are always
    /// refused; a rule has to have the address itself as its host.
    Never,
}

/// Classifies an address. IPv6 forms that embed an IPv4 address are classified as that address. A public address is private nevertheless if
/// it is one of this machine or of its neighbours.
pub fn judge(address: IpAddr) -> AddressKind {
    match judge_number(address) {
        AddressKind::Public if is_around(address) => AddressKind::Private,
        kind => kind,
    }
}

fn judge_number(address: IpAddr) -> AddressKind {
    match address {
        IpAddr::V4(address) => judge_v4(address),
        IpAddr::V6(address) => judge_v6(address),
    }
}

fn judge_v4(address: Ipv4Addr) -> AddressKind {
    match address.octets() {
        // Azure serves its virtual machines from this address, which looks public.
        [168, 63, 129, 16] => AddressKind::Never,
        // "This network" (0.0.0.0/8); link-local, where clouds have their metadata; multicast; reserved; broadcast.
        [0 | 224..=255, ..] | [169, 254, ..] => AddressKind::Never,
        // The metadata services of Alibaba and Oracle.
        [100, 100, 100, 200] | [192, 0, 0, 192] => AddressKind::Never,
        [10 | 127, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => AddressKind::Private,
        // Reserved for protocols, documentation and benchmarks.
        [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 18 | 19, ..] | [198, 51, 100, _] | [203, 0, 113, _] => {
            AddressKind::Private
        }
        _ => AddressKind::Public,
    }
}

fn judge_v6(address: Ipv6Addr) -> AddressKind {
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        judge_v4(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressKind::Private,
        [0, 0, 0, 0, 0, 0, 0, 0] => AddressKind::Never,
        // IPv4-mapped, IPv4-compatible (deprecated), NAT64; then 6to4.
        [0, 0, 0, 0, 0, 0xffff | 0, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => embedded(high, low),
        [0x2002, high, low, ..] => embedded(high, low),
        // The metadata services of Amazon, Google and Scaleway are unique local addresses.
        [0xfd00, 0xec2, ..] | [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254] | [0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42] => {
            AddressKind::Never
        }
        [0xfc00..=0xfdff, ..] => AddressKind::Private,
        // Teredo and other tunnels, benchmarks, documentation.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => AddressKind::Private,
        [0x2000..=0x3fff, ..] => AddressKind::Public,
        _ => AddressKind::Never,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_judged_by_what_it_leads_to() {
        for (address, expected) in [
            ("1.1.1.1", AddressKind::Public),
            ("93.184.216.34", AddressKind::Public),
            ("172.15.0.1", AddressKind::Public),
            ("172.32.0.1", AddressKind::Public),
            ("100.63.255.255", AddressKind::Public),
            ("100.128.0.1", AddressKind::Public),
            ("2606:4700::1111", AddressKind::Public),
            ("::ffff:1.1.1.1", AddressKind::Public),
            ("64:ff9b::101:101", AddressKind::Public),
            ("127.0.0.1", AddressKind::Private),
            ("127.255.255.254", AddressKind::Private),
            ("10.0.0.5", AddressKind::Private),
            ("172.16.0.1", AddressKind::Private),
            ("172.31.255.255", AddressKind::Private),
            ("192.168.1.1", AddressKind::Private),
            ("100.64.0.1", AddressKind::Private),
            ("198.18.0.1", AddressKind::Private),
            ("::1", AddressKind::Private),
            ("::ffff:127.0.0.1", AddressKind::Private),
            ("::127.0.0.1", AddressKind::Private),
            ("64:ff9b::7f00:1", AddressKind::Private),
            ("2002:7f00:1::", AddressKind::Private),
            ("2001:0:53aa:64c::1", AddressKind::Private),
            ("2001:db8::1", AddressKind::Private),
            ("fd12:3456::1", AddressKind::Private),
            ("0.0.0.0", AddressKind::Never),
            ("0.1.2.3", AddressKind::Never),
            ("169.254.169.254", AddressKind::Never),
            ("168.63.129.16", AddressKind::Never),
            ("100.100.100.200", AddressKind::Never),
            ("192.0.0.192", AddressKind::Never),
            ("224.0.0.1", AddressKind::Never),
            ("255.255.255.255", AddressKind::Never),
            ("::", AddressKind::Never),
            ("fe80::1", AddressKind::Never),
            ("ff02::1", AddressKind::Never),
            ("fd00:ec2::254", AddressKind::Never),
            ("fd00:ec2::23", AddressKind::Never),
            ("fd20:ce::254", AddressKind::Never),
            ("fd00:42::42", AddressKind::Never),
            ("::ffff:169.254.169.254", AddressKind::Never),
            ("64:ff9b::a9fe:a9fe", AddressKind::Never),
            ("64:ff9b:1::1", AddressKind::Never),
            ("2002:a9fe:a9fe::1", AddressKind::Never),
            ("fec0::1", AddressKind::Never),
            ("4000::1", AddressKind::Never),
        ] {
            assert_eq!(judge_number(address.parse().unwrap()), expected, "{address}");
        }
    }
}
