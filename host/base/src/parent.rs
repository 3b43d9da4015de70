//! Detects that the process that started this one has ended.
//!
//! When a client is killed, its end of the pipe is closed, unless another process holds it too, such as a shell or a sibling
//! that inherited it. So the client's process is watched as well.

use std::time::Duration;

use rustix::process::{Pid, getppid};
use tokio::sync::oneshot;

/// How often to check where the system cannot report the end of a process.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Returns when the parent process has ended. Never returns if the parent is init.
pub async fn ended() {
    let Some(parent) = getppid().filter(|parent| *parent != Pid::INIT) else { return std::future::pending().await };
    let (tell, told) = oneshot::channel();
    // A separate thread, because the wait blocks.
    let watching = std::thread::Builder::new().name("wharf-parent".into()).stack_size(64 << 10).spawn(move || {
        if wait_for(parent).is_some() {
            tell.send(()).ok();
        }
    });
    if watching.is_ok() && told.await.is_ok() {
        return;
    }
    let mut interval = tokio::time::interval(POLL_INTERVAL);
    while getppid() == Some(parent) {
        interval.tick().await;
    }
}

/// Waits until the process has ended. None: it cannot be waited for.
#[cfg(target_os = "linux")]
fn wait_for(parent: Pid) -> Option<()> {
    use rustix::event::{PollFd, PollFlags, poll};
    let handle = rustix::process::pidfd_open(parent, rustix::process::PidfdFlags::empty()).ok()?;
    // If the parent was gone before its handle was opened, the handle may belong to another process.
    while getppid() == Some(parent) {
        match poll(&mut [PollFd::new(&handle, PollFlags::IN)], None) {
            Ok(_) => break,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
    Some(())
}

#[cfg(not(target_os = "linux"))]
fn wait_for(_: Pid) -> Option<()> {
    None
}
