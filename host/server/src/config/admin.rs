//! `[admin]`: a listener of its own for those who watch over wharf. Without the table there is none, and nothing is counted.

use std::net::SocketAddr;

use anyhow::{Context, Result};

use super::{defaults, listen::parse_address, raw};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admin {
    pub listen: SocketAddr,
    /// Names by which it may be asked, besides those of this machine and the address that was connected to.
    pub allowed_hosts: Vec<String>,
}

pub fn resolve(raw: raw::Admin) -> Result<Admin> {
    let listen = raw.listen.as_deref().unwrap_or(defaults::ADMIN_LISTEN);
    Ok(Admin { listen: parse_address(listen).context("`listen`")?, allowed_hosts: raw.allowed_hosts })
}
