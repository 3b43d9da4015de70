//! The service manager that started wharf, such as systemd: takes over the sockets that it passes (socket activation), and notifies it
//! of wharf's state (sd_notify). Without a service manager, these functions have no effect.

use std::{net, os::fd::AsFd, os::unix, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use listenfd::ListenFd;
use sd_notify::NotifyState;
use tokio::net::{TcpListener, UnixListener};

use wharf_app::operator::Socket;

/// A socket that the service manager passed.
pub(super) enum Passed {
    Tcp(net::TcpListener),
    Unix(unix::net::UnixListener),
}

/// Returns the passed sockets, in the order of the unit. Must be called before there are other threads, since it removes environment
/// variables, and before child processes are started, which would inherit the sockets.
pub(super) fn passed() -> Result<Vec<Passed>> {
    let mut passed = ListenFd::from_env();
    let mut sockets = Vec::with_capacity(passed.len());
    for index in 0..passed.len() {
        // An attempt with the wrong kind does not take the socket.
        let socket = match (passed.take_unix_listener(index), passed.take_tcp_listener(index)) {
            (Ok(Some(socket)), _) => Passed::Unix(socket),
            (_, Ok(Some(socket))) => Passed::Tcp(socket),
            _ => bail!("the service manager passed a file that is not a stream socket"),
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
            "the service manager passed a connection in place of a listening socket; set `Accept=no` in the socket's unit"
        );
        let context = "a socket that the service manager passed cannot be used";
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

/// Whether this is a listening socket.
#[cfg(not(target_vendor = "apple"))]
fn accepts(socket: impl AsFd) -> bool {
    rustix::net::sockopt::socket_acceptconn(socket).unwrap_or_default()
}

/// Returns true: on macOS no service manager passes sockets in this way.
#[cfg(target_vendor = "apple")]
fn accepts(_: impl AsFd) -> bool {
    true
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!("cannot notify the service manager: {error}");
    }
}

/// Reports that clients can connect. The plugins are loaded by then, unless that takes long.
pub(super) fn ready() {
    tell(&[NotifyState::Ready]);
}

/// Reports that the config is being reloaded. A call of [`ready`] has to follow.
pub(super) fn reloading() {
    // Without the time, the service manager would take an earlier message for the end of this reload.
    if let Ok(now) = NotifyState::monotonic_usec_now() {
        tell(&[NotifyState::Reloading, now]);
    }
}

/// Reports that wharf is shutting down. Requests under way may still finish.
pub(super) fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// Sends watchdog notifications for as long as the future runs, if the service manager expects them.
pub(super) async fn watched() {
    let Some(within) = sd_notify::watchdog_enabled() else { return std::future::pending().await };
    let mut ticks = tokio::time::interval((within / 2).max(Duration::from_millis(1)));
    loop {
        ticks.tick().await;
        tell(&[NotifyState::Watchdog]);
    }
}
