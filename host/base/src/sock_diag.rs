//! What Linux says of a socket of this machine (`NETLINK_SOCK_DIAG`).

use std::{
    io,
    net::{IpAddr, SocketAddr},
};

use rustix::{
    io::Errno,
    net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with},
};

/// `SOCK_DIAG_BY_FAMILY`, the type of the request and of its answer.
const BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST`.
const REQUEST: u16 = 1;
/// `IPPROTO_TCP`.
const TCP: u8 = 6;
/// `struct nlmsghdr`.
const HEADER_BYTES: usize = 16;
/// `struct nlmsghdr`, then `struct inet_diag_req_v2`.
const REQUEST_BYTES: usize = HEADER_BYTES + 56;
/// Where the answer, `struct inet_diag_msg` after `struct nlmsghdr`, has the state, the user and the inode.
const STATE: usize = HEADER_BYTES + 1;
const USER: usize = HEADER_BYTES + 64;
const INODE: usize = HEADER_BYTES + 68;
/// `TCP_SYN_SENT`: such a socket is not the other end of a connection that was accepted, but of the next one from the same port.
const SYN_SENT: u8 = 2;

/// Returns the user who holds the socket of this machine with these two addresses, its own first.
pub fn holder(own: SocketAddr, other: SocketAddr) -> io::Result<Option<u32>> {
    let netlink = socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        Some(netlink::SOCK_DIAG),
    )?;
    send(&netlink, &request(own, other), SendFlags::empty())?;
    let mut answer = [0; 512];
    // The system has answered when `send` returns.
    let (read, _) = recv(&netlink, &mut answer, RecvFlags::empty())?;
    parse(answer.get(..read).unwrap_or_default())
}

fn request(own: SocketAddr, other: SocketAddr) -> Vec<u8> {
    let (own_ip, other_ip) = (own.ip().to_canonical(), other.ip().to_canonical());
    let family = if own_ip.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let mut bytes = Vec::with_capacity(REQUEST_BYTES);
    bytes.extend((REQUEST_BYTES as u32).to_ne_bytes());
    bytes.extend(BY_FAMILY.to_ne_bytes());
    bytes.extend(REQUEST.to_ne_bytes());
    bytes.extend([0; 8]); // The number of the request, and who asks: the system sets both.
    bytes.extend([family.as_raw() as u8, TCP, 0, 0]);
    bytes.extend(u32::MAX.to_ne_bytes()); // In every state.
    bytes.extend(own.port().to_be_bytes());
    bytes.extend(other.port().to_be_bytes());
    for address in [own_ip, other_ip] {
        let mut field = [0; 16];
        match address {
            IpAddr::V4(address) => field[..4].copy_from_slice(&address.octets()),
            IpAddr::V6(address) => field = address.octets(),
        }
        bytes.extend(field);
    }
    bytes.extend([0; 4]); // At any interface.
    bytes.extend([0xff; 8]); // Without a cookie.
    bytes
}

fn parse(answer: &[u8]) -> io::Result<Option<u32>> {
    let number = |at: usize| answer.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
    let kind = answer.get(4..6).and_then(|kind| kind.try_into().ok()).map(u16::from_ne_bytes);
    if kind != Some(BY_FAMILY) {
        // The number of an error, negative.
        let errno = number(HEADER_BYTES).map_or(0, |error| (error as i32).wrapping_neg());
        let is_unknown = errno == Errno::NOENT.raw_os_error();
        return if is_unknown { Ok(None) } else { Err(io::Error::from_raw_os_error(errno)) };
    }
    let (Some(&state), Some(user), Some(inode)) = (answer.get(STATE), number(USER), number(INODE)) else {
        return Err(io::ErrorKind::UnexpectedEof.into());
    };
    // A socket that its program has closed has no inode, and Linux then calls its user 0.
    Ok((state != SYN_SENT && inode != 0).then_some(user))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_an_answer_is_an_error() {
        let answer = |kind: u16, rest: &[u8]| [&[0; 4], &kind.to_ne_bytes()[..], &[0; 10], rest].concat();
        assert!(parse(&[]).is_err());
        assert!(parse(&answer(BY_FAMILY, &[2, 1])).is_err());
        assert!(parse(&answer(2, &(-1_i32).to_ne_bytes())).is_err());
        assert_eq!(parse(&answer(2, &(-2_i32).to_ne_bytes())).unwrap(), None);
    }
}
