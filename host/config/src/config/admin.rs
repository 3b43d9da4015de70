//! `[admin]`: a separate listener for metrics. Without the table, wharf does not open it.

use std::net::SocketAddr;

use anyhow::{Context, Result};

use super::{defaults, listen::parse_address, raw};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admin {
    pub listen: SocketAddr,
    /// The values of `Host` that are accepted, besides the names of this machine and the address that was connected to.
    pub allowed_hosts: Vec<String>,
}

pub fn resolve(raw: raw::Admin) -> Result<Admin> {
    let listen = raw.listen.as_deref().unwrap_or(defaults::ADMIN_LISTEN);
    Ok(Admin { listen: parse_address(listen).context("`listen`")?, allowed_hosts: raw.allowed_hosts })
}
