//! Detects whether processes that a program started still run, through a named pipe that they hold open: no process has to be searched for.

use std::{
    fs::File,
    io::{BufRead, BufReader},
};

use tokio::{sync::oneshot, time::timeout};

use crate::{Folder, PATIENCE};

/// A process that is started by a script, and survives the script unless something ends it.
pub struct Held {
    begun: oneshot::Receiver<()>,
    ended: oneshot::Receiver<()>,
    /// Lines of a shell script that start the process and wait for it.
    pub script: String,
}

impl Held {
    pub fn new(folder: &Folder) -> Self {
        let pipe = folder.join("held");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let script = format!("exec 3>{pipe:?}; sleep 60 & echo begun >&3; wait");
        let ((begin, begun), (end, ended)) = (oneshot::channel(), oneshot::channel());
        std::thread::spawn(move || {
            let mut pipe = BufReader::new(File::open(pipe).unwrap());
            pipe.read_line(&mut String::new()).unwrap();
            begin.send(()).ok();
            // This command ends when no process has the other end open.
            pipe.read_line(&mut String::new()).unwrap();
            end.send(()).ok();
        });
        Self { begun, ended, script }
    }

    /// Waits until the process runs.
    pub async fn begun(&mut self) {
        timeout(PATIENCE, &mut self.begun).await.expect("it does not begin").unwrap();
    }

    /// Whether the process and the script end.
    pub async fn ends(self) -> bool {
        timeout(PATIENCE, self.ended).await.is_ok()
    }
}
