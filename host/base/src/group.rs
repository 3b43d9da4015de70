//! Process groups: a program that wharf starts, and all processes that it starts in turn, unless they leave the group.
//!
//! A program is often a script, and killing a script does not kill the processes that the script started. So each program that wharf
//! starts for the operator leads its own process group, and the whole group is killed.

use std::{collections::BTreeSet, process::ExitStatus};

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;

/// The groups whose leaders have not been waited for, by the ids of these leaders.
static RUNNING: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// A process group, which is killed if this is dropped before its leader has ended (RAII).
pub struct Group(Option<Pid>);

impl Group {
    /// For `Command::process_group`: the new process leads a group of its own.
    pub const OWN: i32 = 0;

    /// Returns the group that this child leads.
    pub fn of(child: &Child) -> Self {
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(leader) = leader {
            RUNNING.lock().insert(leader.as_raw_pid());
        }
        Self(leader)
    }

    /// Waits for the leader to end. If it ends by itself, processes that it leaves running are not killed: this may be intended, as with
    /// a program that starts an agent in the background.
    pub async fn wait(mut self, leader: &mut Child) -> std::io::Result<ExitStatus> {
        let status = leader.wait().await?;
        // From now on the system may give the id to another process, so it is not used any more.
        if let Some(leader) = self.0.take() {
            RUNNING.lock().remove(&leader.as_raw_pid());
        }
        Ok(status)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0.take() {
            RUNNING.lock().remove(&leader.as_raw_pid());
            // This fails only if no process of the group is left.
            kill_process_group(leader, Signal::KILL).ok();
        }
    }
}

/// Kills all groups that are running, when the process ends without dropping everything.
pub fn kill_all() {
    for leader in std::mem::take(&mut *RUNNING.lock()).into_iter().filter_map(Pid::from_raw) {
        kill_process_group(leader, Signal::KILL).ok();
    }
}
