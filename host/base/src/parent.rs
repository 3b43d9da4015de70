//! Detects that the client at stdin and stdout is gone: the process that started this one has ended, or stdout is closed.
//!
//! When a client is killed, its end of the pipe is closed, unless another process holds it too, such as a shell or a sibling
//! that inherited it. So the client's process is watched as well. The end of stdin alone does not mean that the client is gone: in a
//! shell's pipeline it only means that nothing more is asked.

use std::time::Duration;

use rustix::{
    event::{PollFd, PollFlags, poll},
    process::{Pid, getppid},
};
use tokio::sync::oneshot;

/// How often to check where the system cannot report the end of a process.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Returns when the parent process has ended. Never returns if the parent is init.
pub async fn ended() {
    let Some(parent) = getppid().filter(|parent| *parent != Pid::INIT) else { return std::future::pending().await };
    if blocking("wharf-parent", move || wait_for(parent)).await.is_some() {
        return;
    }
    let mut interval = tokio::time::interval(POLL_INTERVAL);
    while getppid() == Some(parent) {
        interval.tick().await;
    }
}

/// Returns when nobody can read stdout any more. Never returns if that cannot be noticed, as with a file.
pub async fn stdout_closed() {
    if blocking("wharf-stdout", wait_for_stdout).await.is_none() {
        std::future::pending().await
    }
}

/// Waits in a separate thread for something that blocks. The thread does not delay the end of the process.
async fn blocking(name: &str, wait: impl FnOnce() -> Option<()> + Send + 'static) -> Option<()> {
    let (tell, told) = oneshot::channel();
    let thread = std::thread::Builder::new().name(name.into()).stack_size(64 << 10);
    thread.spawn(move || tell.send(wait())).ok()?;
    told.await.ok()?
}

fn wait_for_stdout() -> Option<()> {
    let stdout = std::io::stdout();
    loop {
        // Without any event to wait for, only errors and the end of the other side are reported.
        let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
        match poll(&mut watched, None) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return None,
        }
        let [watched] = watched;
        return watched.revents().intersects(PollFlags::ERR | PollFlags::HUP).then_some(());
    }
}

/// Waits until the process has ended. None: it cannot be waited for.
#[cfg(target_os = "linux")]
fn wait_for(parent: Pid) -> Option<()> {
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
