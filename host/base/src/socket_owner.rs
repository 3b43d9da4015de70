//! Which user's program is at the other end of a TCP connection within this machine: what Linux says of the socket there
//! (`NETLINK_SOCK_DIAG`). A Unix socket tells this by itself.

use std::{io, net::SocketAddr};

use rustix::process::geteuid;
use tokio::net::{TcpListener, TcpStream};

#[cfg(target_os = "linux")]
use super::sock_diag::holder;

/// Other systems are not asked.
#[cfg(not(target_os = "linux"))]
fn holder(_own: SocketAddr, _other: SocketAddr) -> io::Result<Option<u32>> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Whether the system says who holds a socket: whether it knows that this listener is held by this process's user.
pub fn is_known(listener: &TcpListener) -> bool {
    let Ok(address) = listener.local_addr() else { return false };
    let any = SocketAddr::new(if address.is_ipv4() { [0; 4].into() } else { [0; 16].into() }, 0);
    matches!(holder(address, any), Ok(Some(user)) if user == geteuid().as_raw())
}

/// Whether the other end of a connection within this machine is held by a program of this process's user, or of root. One that nobody
/// holds any more is not.
pub fn is_own(stream: &TcpStream) -> bool {
    let ends = || io::Result::Ok((stream.peer_addr()?, stream.local_addr()?));
    match ends().and_then(|(peer, own)| holder(peer, own)) {
        Ok(Some(user)) => user == 0 || user == geteuid().as_raw(),
        Ok(None) => false,
        Err(error) => {
            tracing::debug!("the user of a connection is not known: {error}");
            false
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_user_of_a_connection_is_known_while_its_program_holds_it() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address).await else { continue };
            assert!(is_known(&listener), "{address}");
            let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (server, _) = listener.accept().await.unwrap();
            assert!(is_own(&server), "{address}");
            let (own, peer) = (server.local_addr().unwrap(), server.peer_addr().unwrap());
            assert_eq!(holder(peer, own).unwrap(), Some(geteuid().as_raw()));
            drop(client);
            assert_eq!(holder(peer, own).unwrap(), None, "{address}: who has closed it is not known any more");
            assert!(!is_own(&server), "{address}");
        }
        let nowhere = ("127.0.0.1:1".parse().unwrap(), "127.0.0.1:2".parse().unwrap());
        assert_eq!(holder(nowhere.0, nowhere.1).unwrap(), None);
    }
}
