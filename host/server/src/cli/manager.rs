//! The manager of services that started wharf, such as systemd: sockets that it passes, and what it is told. Without one, nothing of
//! this has any effect.

use std::{net, os::fd::AsFd, os::unix, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use listenfd::ListenFd;
use sd_notify::NotifyState;
use tokio::net::{TcpListener, UnixListener};

use crate::app::Socket;

/// A socket that was passed.
pub(super) enum Passed {
    Tcp(net::TcpListener),
    Unix(unix::net::UnixListener),
}

/// The sockets that were passed, which are in the order of the unit. To be called before there are threads, since it takes variables
/// out of the environment, and before there are other processes, which are not to have the sockets.
pub(super) fn passed() -> Result<Vec<Passed>> {
    let mut passed = ListenFd::from_env();
    let mut sockets = Vec::with_capacity(passed.len());
    for index in 0..passed.len() {
        // Each attempt at the wrong kind leaves the socket where it is.
        let socket = match (passed.take_unix_listener(index), passed.take_tcp_listener(index)) {
            (Ok(Some(socket)), _) => Passed::Unix(socket),
            (_, Ok(Some(socket))) => Passed::Tcp(socket),
            _ => bail!("the manager of services passed something that is no stream socket"),
        };
        sockets.push(socket);
    }
    Ok(sockets)
}

impl Passed {
    pub(super) fn into_socket(self) -> Result<Socket> {
        let accepts = match &self {
            Self::Tcp(socket) => accepts(socket),
            Self::Unix(socket) => accepts(socket),
        };
        ensure!(
            accepts,
            "the manager of services passed a connection in place of a socket that accepts them; set `Accept=no` in the socket's unit"
        );
        let context = "a socket that the manager of services passed cannot be used";
        Ok(match self {
            Self::Tcp(socket) => {
                socket.set_nonblocking(true).context(context)?;
                TcpListener::from_std(socket).context(context)?.into()
            }
            Self::Unix(socket) => {
                socket.set_nonblocking(true).context(context)?;
                UnixListener::from_std(socket).context(context)?.into()
            }
        })
    }
}

/// Whether the system says of this socket that it accepts connections.
#[cfg(not(target_vendor = "apple"))]
fn accepts(socket: impl AsFd) -> bool {
    rustix::net::sockopt::socket_acceptconn(socket).unwrap_or_default()
}

/// macOS has no manager that passes sockets in this way.
#[cfg(target_vendor = "apple")]
fn accepts(_: impl AsFd) -> bool {
    true
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!("the manager of services cannot be told how wharf fares: {error}");
    }
}

/// Clients can connect, and what is to be served was loaded, if that did not take long.
pub(super) fn ready() {
    tell(&[NotifyState::Ready]);
}

/// The config is about to be read anew; [`ready`] follows.
pub(super) fn reloading() {
    // Without the time, the manager would take an earlier message for the end of this.
    if let Ok(now) = NotifyState::monotonic_usec_now() {
        tell(&[NotifyState::Reloading, now]);
    }
}

/// Requests under way may finish for so long.
pub(super) fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// Shows for as long as this runs that wharf does, if the manager wants to know.
pub(super) async fn watched() {
    let Some(within) = sd_notify::watchdog_enabled() else { return std::future::pending().await };
    let mut ticks = tokio::time::interval((within / 2).max(Duration::from_millis(1)));
    loop {
        ticks.tick().await;
        tell(&[NotifyState::Watchdog]);
    }
}
