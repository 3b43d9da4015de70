//! Decides which party a client is when bounded places are shared between parties: its principal if that identifies one client, else
//! its address.

#![expect(deprecated, reason = "SipHasher is the only hasher in std whose key can be set")]

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher, Hash, Hasher, SipHasher},
    net::IpAddr,
    sync::OnceLock,
};

pub use super::places::Party;

use super::{principal::Principal, state_keys::StateKey};

/// A hasher with a secret key, so that clients cannot choose names whose hashes collide.
static HASHER: OnceLock<SipHasher> = OnceLock::new();

/// Makes parties the same in all processes with this key. Without it, each process has a random key. It has no effect once a party has been
/// computed.
pub fn share_key(key: &StateKey) {
    let (halves, _) = key.as_chunks::<8>();
    if let [one, other, ..] = halves {
        HASHER.get_or_init(|| SipHasher::new_with_keys(u64::from_le_bytes(*one), u64::from_le_bytes(*other)));
    }
}

/// Returns the party of a client. A user, an API key, a certificate, and a name given by the embedding program are each one party,
/// whatever address they connect from. Clients that share a bearer token, or have no credentials, are told apart by their address;
/// behind a proxy, which has a single address, they are one party.
pub fn party(principal: &Principal, address: Option<IpAddr>) -> Party {
    match principal {
        Principal::Anonymous => unauthenticated(address),
        Principal::Token(_) => named((principal, address.map(network))),
        Principal::Process
        | Principal::Named(_)
        | Principal::User(_)
        | Principal::Key(_)
        | Principal::Certificate(_)
        | Principal::Local(_) => named(principal),
    }
}

/// Returns the party of a client that is not authenticated.
pub fn unauthenticated(address: Option<IpAddr>) -> Party {
    named(address.map(network))
}

/// Returns the party with this name.
pub fn named(name: impl Hash) -> Party {
    let random = |salt: u8| RandomState::new().hash_one(salt);
    let mut hasher = HASHER.get_or_init(|| SipHasher::new_with_keys(random(0), random(1))).clone();
    name.hash(&mut hasher);
    Party::of(hasher.finish())
}

/// Returns the network that usually belongs to a single client: one address in IPv4, a /64 in IPv6.
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
        assert_eq!(unauthenticated(a), unauthenticated(b), "one client has all of these");
        assert_ne!(unauthenticated(a), unauthenticated(c));
    }
}
