//! Where the HTTP server listens: at an address, or at a Unix socket.

use std::{fmt, net::SocketAddr, os::unix::ffi::OsStrExt, path::PathBuf};

use anyhow::{Context, Result, ensure};

use super::defaults;
use wharf_policy::access::capability::Absolute;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListenAddress {
    Address(SocketAddr),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

/// The longest path of a Unix socket that both Linux and macOS allow.
const MAX_SOCKET_PATH_BYTES: usize = 103;

impl ListenAddress {
    /// The TCP address. None: it is a Unix socket.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Address(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }

    pub fn socket(&self) -> Option<&PathBuf> {
        match self {
            Self::Address(_) => None,
            Self::Unix(path) => Some(path),
        }
    }

    /// Makes the path of a Unix socket absolute.
    pub(super) fn resolve(self, absolute: Absolute<'_>) -> Result<Self> {
        let Self::Unix(path) = self else { return Ok(self) };
        let path = absolute(&path.to_string_lossy())?;
        ensure!(
            path.as_os_str().as_bytes().len() <= MAX_SOCKET_PATH_BYTES,
            "{}: the path of a socket has at most {MAX_SOCKET_PATH_BYTES} bytes",
            path.display()
        );
        Ok(Self::Unix(path))
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Parses an address and a port, or `unix:` and a path. `localhost` stands for 127.0.0.1.
pub fn parse_listen(text: &str) -> Result<ListenAddress> {
    if let Some(path) = text.strip_prefix("unix:") {
        ensure!(!path.is_empty(), "`{text}`: the path of the socket is missing");
        return Ok(ListenAddress::Unix(PathBuf::from(path)));
    }
    let address = parse_address(text);
    address.map(ListenAddress::Address).map_err(|error| anyhow::anyhow!("{error}, nor unix: and a path"))
}

/// Parses an address and a port. `localhost` stands for 127.0.0.1.
pub fn parse_address(text: &str) -> Result<SocketAddr> {
    let address = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}").parse(),
        None => text.parse(),
    };
    address.with_context(|| format!("`{text}` is not an address and port such as {}", defaults::LISTEN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_name() {
        for (text, expected) in [
            ("localhost:7300", "127.0.0.1:7300"),
            ("[::1]:7300", "[::1]:7300"),
            ("unix:/run/wharf/mcp.sock", "unix:/run/wharf/mcp.sock"),
            ("unix:mcp.sock", "unix:mcp.sock"),
        ] {
            assert_eq!(parse_listen(text).unwrap().to_string(), expected);
        }
        for wrong in ["localhost", "localhost:", "wharf.example:7300", "7300", "", "unix:", "/run/wharf/mcp.sock"] {
            assert!(parse_listen(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn paths_of_sockets_are_short() {
        let absolute = |path: &str| Ok(PathBuf::from("/base").join(path));
        let resolved = |path: &str| ListenAddress::Unix(path.into()).resolve(&absolute);
        assert_eq!(resolved("a.sock").unwrap(), ListenAddress::Unix("/base/a.sock".into()));
        assert!(resolved(&"a".repeat(97)).is_ok());
        assert!(resolved(&"a".repeat(98)).is_err());
    }
}
