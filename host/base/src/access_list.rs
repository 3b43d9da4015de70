//! Access lists of files (POSIX ACLs), by which users and groups have rights that the mode does not show.

use std::{fmt, path::Path};

/// The right to read, in an entry of a list.
pub(crate) const READ: u8 = 4;
/// The right to write, in an entry of a list.
pub(crate) const WRITE: u8 = 2;

/// Whom a list names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Party {
    User(u32),
    Group(u32),
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(id) => write!(f, "user {id}"),
            Self::Group(id) => write!(f, "group {id}"),
        }
    }
}

/// The entries of a list that name somebody, with the rights that its mask leaves them. The owner, the owning group and all others have no
/// entry here, since the mode has their rights.
pub(crate) struct AccessList(Vec<(Party, u8)>);

impl AccessList {
    /// Returns the lists of a file: its own, and for a folder the one that new files in it get.
    #[cfg(target_os = "linux")]
    pub(crate) fn of(path: &Path) -> std::io::Result<Vec<Self>> {
        use rustix::io::Errno;
        /// Larger than any list can be.
        const MAX_BYTES: usize = 65_536;
        let mut lists = Vec::new();
        for name in ["system.posix_acl_access", "system.posix_acl_default"] {
            // Most files have none, so the size is asked first.
            match rustix::fs::getxattr_query(path, name) {
                Ok(_) => {}
                // The file has no such list, or its file system knows no lists.
                Err(Errno::NODATA | Errno::OPNOTSUPP) => continue,
                Err(error) => return Err(error.into()),
            }
            let mut bytes = vec![0; MAX_BYTES];
            match rustix::fs::getxattr(path, name, &mut bytes[..]) {
                Ok(length) => {
                    bytes.truncate(length);
                    lists.push(Self::parse(&bytes).ok_or(std::io::ErrorKind::InvalidData)?);
                }
                Err(Errno::NODATA) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(lists)
    }

    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unnecessary_wraps, reason = "as on Linux")]
    pub(crate) fn of(_: &Path) -> std::io::Result<Vec<Self>> {
        Ok(Vec::new())
    }

    /// Parses the attribute by which Linux shows a list: a version, then for each entry its tag, its rights and an id.
    #[cfg(target_os = "linux")]
    fn parse(bytes: &[u8]) -> Option<Self> {
        const VERSION: u32 = 2;
        const USER: u16 = 0x02;
        const GROUP: u16 = 0x08;
        const MASK: u16 = 0x10;
        let (version, entries) = bytes.split_first_chunk::<4>()?;
        let (entries, rest) = entries.as_chunks::<8>();
        if u32::from_le_bytes(*version) != VERSION || !rest.is_empty() {
            return None;
        }
        let mut named = Vec::new();
        let mut mask = u8::MAX;
        for &[tag, tag_high, rights, _, id @ ..] in entries {
            let id = u32::from_le_bytes(id);
            match u16::from_le_bytes([tag, tag_high]) {
                USER => named.push((Party::User(id), rights)),
                GROUP => named.push((Party::Group(id), rights)),
                MASK => mask = rights,
                _ => {}
            }
        }
        Some(Self(named.into_iter().map(|(party, rights)| (party, rights & mask)).collect()))
    }

    /// Returns those to whom the list gives a right.
    pub(crate) fn named_with(&self, right: u8) -> impl Iterator<Item = Party> {
        self.0.iter().filter(move |(_, rights)| rights & right != 0).map(|(party, _)| *party)
    }
}
