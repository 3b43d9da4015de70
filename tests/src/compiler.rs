//! The compiler processes of a wharf: waits for one, and halts it, so that what it compiles is not ready until the test says so.

use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};

use crate::PATIENCE;

/// Returns a compiler process of this wharf, once there is one.
pub async fn begun(wharf: u32) -> i32 {
    let began = Instant::now();
    loop {
        if let [child, ..] = all(wharf)[..] {
            return child;
        }
        assert!(began.elapsed() < PATIENCE, "nothing is compiled");
        tokio::task::yield_now().await;
    }
}

/// The compiler processes among the children of a process.
fn all(of: u32) -> Vec<i32> {
    let children = std::fs::read_to_string(format!("/proc/{of}/task/{of}/children")).unwrap_or_default();
    let mut all: Vec<i32> = children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect();
    for task in std::fs::read_dir(format!("/proc/{of}/task")).into_iter().flatten().flatten() {
        let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        all.extend(children.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
    }
    all.retain(|pid| {
        std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.windows(7).any(|part| part == b"compile"))
    });
    all
}

/// A compiler process that stands still.
pub struct Halted(Pid);

impl Halted {
    /// Halts the next compiler process of this wharf.
    pub async fn next(wharf: u32) -> Self {
        let pid = Pid::from_raw(begun(wharf).await).unwrap();
        kill_process(pid, Signal::STOP).expect("it still compiles");
        Self(pid)
    }

    /// Lets it compile.
    pub fn go_on(self) {
        kill_process(self.0, Signal::CONT).expect("it stood still");
    }
}
