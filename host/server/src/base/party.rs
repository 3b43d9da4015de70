//! Which taker of bounded places a client is: its principal where that is one client, else the address it comes from.

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher, Hash},
    net::IpAddr,
    sync::LazyLock,
};

pub use wharf_sandbox::places::Party;

use super::principal::Principal;

/// Nobody outside of this process can tell which names have the same hash.
static NUMBERS: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The party of a client. A user, an API key, a certificate, and a name given by the embedding program are each one party, wherever they
/// come from. Clients that share a bearer token or have none are told apart by their address; behind a proxy, which has one address, they
/// are one party.
pub fn party(principal: &Principal, address: Option<IpAddr>) -> Party {
    match principal {
        Principal::Anonymous => stranger(address),
        Principal::Token(_) => Party::of(NUMBERS.hash_one((principal, address.map(network)))),
        Principal::Process
        | Principal::Named(_)
        | Principal::User(_)
        | Principal::Key(_)
        | Principal::Certificate(_)
        | Principal::Local(_) => named(principal),
    }
}

/// The party of a client that has not shown who it is.
pub fn stranger(address: Option<IpAddr>) -> Party {
    named(address.map(network))
}

/// The party with this name.
pub fn named(name: impl Hash) -> Party {
    Party::of(NUMBERS.hash_one(name))
}

/// The addresses of which a single client usually has all: one in IPv4, 2^64 in IPv6.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => std::net::Ipv6Addr::from(u128::from(address) & (u128::MAX << 64)).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_one_party() {
        let address = |text: &str| Some(text.parse::<IpAddr>().unwrap());
        let (ann, token) = (Principal::Key("ann".into()), Principal::Token("digest".into()));
        let (one, other) = (address("192.0.2.1"), address("192.0.2.2"));
        assert_eq!(party(&ann, one), party(&ann, other), "a key, wherever it comes from");
        assert_ne!(party(&token, one), party(&token, other), "a token that clients share");
        assert_ne!(party(&Principal::Anonymous, one), party(&Principal::Anonymous, other));
        assert_ne!(party(&ann, one), party(&Principal::Anonymous, one));
        let mapped = address("::ffff:192.0.2.1");
        assert_eq!(party(&Principal::Anonymous, one), party(&Principal::Anonymous, mapped), "written in IPv6");
        let [a, b, c] = ["2001:db8::1", "2001:db8::ffff:2", "2001:db8:0:1::1"].map(address);
        assert_eq!(stranger(a), stranger(b), "one client has all of these");
        assert_ne!(stranger(a), stranger(c));
    }
}
