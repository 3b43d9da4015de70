//! The listening sockets: TCP addresses, and Unix sockets, which wharf creates and removes.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    os::unix::fs::{FileTypeExt, PermissionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use rustix::fs::{FlockOperation, flock};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixSocket, UnixStream};

use super::connections::Remote;
use wharf_base::{guard::check_trusted_directory, paths::FileId, socket_owner};

/// How many connections may wait to be accepted at a Unix socket.
const BACKLOG: u32 = 1024;

/// A listening socket.
pub struct Socket(Kind);

enum Kind {
    Tcp {
        listener: TcpListener,
        /// Whether only programs of wharf's user, and of root, are served.
        for_owner: bool,
    },
    Unix {
        listener: UnixListener,
        /// The socket's file, if wharf created it.
        _file: Option<SocketFile>,
    },
}

/// A connection.
pub enum Accepted {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl From<TcpListener> for Socket {
    fn from(listener: TcpListener) -> Self {
        Self(Kind::Tcp { listener, for_owner: false })
    }
}

impl From<UnixListener> for Socket {
    fn from(listener: UnixListener) -> Self {
        Self(Kind::Unix { listener, _file: None })
    }
}

impl Socket {
    /// Creates a Unix socket. Users may connect if `mode` lets them write the socket's file. A stale socket, at which no program
    /// listens any more, is replaced.
    #[expect(
        clippy::disallowed_methods,
        reason = "the file of the socket is made here, in a folder that only the operator may write"
    )]
    pub async fn bind_unix(path: &Path, mode: u32) -> Result<Self> {
        let name = || format!("cannot listen on unix:{}", path.display());
        let folder = path.parent().with_context(name)?;
        check_trusted_directory(folder, "folder of a socket").with_context(name)?;
        // Of several processes that start at the same time, one checks and binds after the other.
        let lock = std::fs::File::open(folder).with_context(name)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).with_context(|| {
            format!("{}: another program is just starting to listen in this folder; try again", name())
        })?;
        if let Ok(metadata) = std::fs::symlink_metadata(path) {
            if !metadata.file_type().is_socket() {
                bail!("{}: there is a file of this name that is not a socket; move it away", name());
            }
            match UnixStream::connect(path).await {
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    std::fs::remove_file(path).with_context(name)?;
                }
                _ => bail!("{}: another program listens there; choose another path with --listen", name()),
            }
        }
        let socket = UnixSocket::new_stream().with_context(name)?;
        socket.bind(path).with_context(name)?;
        let file = SocketFile::of(path).with_context(name)?;
        // No client can connect before the mode is set, since the socket does not listen yet.
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).with_context(name)?;
        let listener = socket.listen(BACKLOG).with_context(name)?;
        Ok(Self(Kind::Unix { listener, _file: Some(file) }))
    }

    /// Serves only programs of wharf's user, and of root, from now on. Returns false where that is not possible: the socket is not one of
    /// this machine alone, or the system does not say who holds the other end of a connection.
    pub fn serve_owner(&mut self) -> bool {
        let Kind::Tcp { listener, for_owner } = &mut self.0 else { return false };
        *for_owner =
            listener.local_addr().is_ok_and(|address| address.ip().is_loopback()) && socket_owner::is_known(listener);
        *for_owner
    }

    /// Returns the socket's address, if it has one.
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.0 {
            Kind::Tcp { listener, .. } => listener.local_addr().ok(),
            Kind::Unix { .. } => None,
        }
    }

    /// Returns the address under which clients reach the socket. `secure`: over TLS.
    pub fn name(&self, secure: bool) -> String {
        let scheme = if secure { "https" } else { "http" };
        match &self.0 {
            Kind::Tcp { listener, .. } => {
                let address = listener.local_addr().unwrap_or_else(|_| (Ipv4Addr::UNSPECIFIED, 0).into());
                format!("{scheme}://{address}/mcp")
            }
            Kind::Unix { listener, .. } => {
                let address = listener.local_addr().ok();
                let path = address.as_ref().and_then(|address| address.as_pathname()).unwrap_or(Path::new("(unnamed)"));
                format!("unix:{} (path /mcp)", path.display())
            }
        }
    }

    /// Returns the next connection, and where it comes from.
    pub async fn accept(&self) -> (Accepted, Remote) {
        loop {
            let accepted = match &self.0 {
                Kind::Tcp { listener, for_owner } => listener.accept().await.map(|(stream, peer)| {
                    // Small answers are sent at once. Without this option they would only be slower, so an error does not matter.
                    stream.set_nodelay(true).ok();
                    // Asked now, because a later connection from the same port may be another user's.
                    let own = !for_owner || socket_owner::is_own(&stream);
                    let remote = if own { Remote::Address(peer.ip()) } else { Remote::OtherUser(peer.ip()) };
                    (Accepted::Tcp(stream), remote)
                }),
                Kind::Unix { listener, .. } => match listener.accept().await {
                    Ok((stream, _)) => match stream.peer_cred() {
                        Ok(peer) => Ok((Accepted::Unix(stream), Remote::Local(peer.uid()))),
                        Err(error) => {
                            // A client whose user is unknown is not served.
                            tracing::debug!("a connection from an unknown user: {error}");
                            continue;
                        }
                    },
                    Err(error) => Err(error),
                },
            };
            match accepted {
                Ok(accepted) => return accepted,
                Err(error) => {
                    tracing::warn!("cannot accept connections: {error}");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
}

/// The file of a socket. It is removed when this is dropped, unless another file has been put in its place.
struct SocketFile {
    path: PathBuf,
    identity: FileId,
}

impl SocketFile {
    fn of(path: &Path) -> Option<Self> {
        FileId::at(path).map(|identity| Self { path: path.to_owned(), identity })
    }
}

impl Drop for SocketFile {
    #[expect(clippy::disallowed_methods, reason = "only what was made here is removed")]
    fn drop(&mut self) {
        if FileId::at(&self.path) == Some(self.identity) {
            // If this fails, the next start replaces the file.
            std::fs::remove_file(&self.path).ok();
        }
    }
}
