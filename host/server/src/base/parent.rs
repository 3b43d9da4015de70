//! Notices that the process is gone that started this one.
//!
//! A client that is killed closes its end of the pipe, but whoever else holds that end keeps it open: a sibling that inherited
//! it, a shell. So the client itself is watched as well.

use std::time::Duration;

use rustix::process::{Pid, getppid};
use tokio::sync::oneshot;

/// How often to look where the system cannot tell.
const LOOK: Duration = Duration::from_millis(500);

/// Ends when the parent has; never for a process that nobody waits for.
pub async fn ended() {
    let Some(parent) = getppid().filter(|parent| *parent != Pid::INIT) else { return std::future::pending().await };
    let (tell, told) = oneshot::channel();
    // A thread, because it waits for nothing else.
    let watching = std::thread::Builder::new().name("wharf-parent".into()).stack_size(64 << 10).spawn(move || {
        if wait_for(parent).is_some() {
            tell.send(()).ok();
        }
    });
    if watching.is_ok() && told.await.is_ok() {
        return;
    }
    let mut interval = tokio::time::interval(LOOK);
    while getppid() == Some(parent) {
        interval.tick().await;
    }
}

/// None where it cannot be waited for.
#[cfg(target_os = "linux")]
fn wait_for(parent: Pid) -> Option<()> {
    use rustix::event::{PollFd, PollFlags, poll};
    let handle = rustix::process::pidfd_open(parent, rustix::process::PidfdFlags::empty()).ok()?;
    // If it was gone before it was opened, the handle may be another process's.
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
