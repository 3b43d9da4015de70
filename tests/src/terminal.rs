//! A wharf at a terminal, with a test in the place of the person: what is shown is read from a pseudo-terminal, and lines are typed
//! into it. stdout is a pipe, as when it is redirected.

use std::{process::Stdio, task::ready};

use rustix::{
    fs::{Mode, OFlags, fcntl_getfl, fcntl_setfl, open},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
};
use tokio::{
    io::unix::AsyncFd,
    process::Child,
    time::timeout,
};

use crate::{Folder, PATIENCE};

pub struct Terminal {
    child: Child,
    master: AsyncFd<std::fs::File>,
    /// What was shown and not waited for yet.
    shown: String,
}

impl Terminal {
    /// Starts `wharf` with these arguments in the folder.
    pub fn start(folder: &Folder, arguments: &[&str]) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let side = || Stdio::from(open(name.as_c_str(), OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap());
        let mut command = folder.command(arguments, &[]);
        let child = command.stdin(side()).stderr(side()).stdout(Stdio::piped()).spawn().unwrap();
        // The command holds the other side of the terminal too, which has to end with the child.
        drop(command);
        fcntl_setfl(&master, fcntl_getfl(&master).unwrap() | OFlags::NONBLOCK).unwrap();
        Self { child, master: AsyncFd::new(master.into()).unwrap(), shown: String::new() }
    }

    /// Waits until this is shown, and returns everything since the last wait, up to and including it.
    pub async fn until(&mut self, text: &str) -> String {
        loop {
            if let Some(at) = self.shown.find(text) {
                let rest = self.shown.split_off(at + text.len());
                return std::mem::replace(&mut self.shown, rest);
            }
            let more = timeout(PATIENCE, self.read()).await;
            let more = more.unwrap_or_else(|_| panic!("`{text}` is not shown:\n{}", self.shown));
            assert!(!more.is_empty(), "it ended without `{text}`:\n{}", self.shown);
            self.shown += &more;
        }
    }

    /// Types a line. The terminal shows it, as terminals do.
    pub async fn types(&mut self, line: &str) {
        let line = format!("{line}\n");
        let mut rest = line.as_bytes();
        while !rest.is_empty() {
            let mut ready = self.master.writable().await.unwrap();
            if let Ok(written) = ready.try_io(|master| std::io::Write::write(&mut master.get_ref(), rest)) {
                rest = &rest[written.unwrap()..];
            }
        }
    }

    /// Waits for its end: the exit code, what else was shown, and what it wrote to stdout.
    pub async fn end(mut self) -> (Option<i32>, String, String) {
        loop {
            match timeout(PATIENCE, self.read()).await.expect("it ends").as_str() {
                "" => break,
                more => self.shown += more,
            }
        }
        let output = timeout(PATIENCE, self.child.wait_with_output()).await.expect("it ends").unwrap();
        (output.status.code(), self.shown, String::from_utf8(output.stdout).unwrap())
    }

    /// The next that is shown; empty when nobody is at the other side any more.
    async fn read(&self) -> String {
        let mut bytes = [0; 4096];
        let length = std::future::poll_fn(|context| {
            loop {
                let mut ready = ready!(self.master.poll_read_ready(context)).unwrap();
                match ready.try_io(|master| std::io::Read::read(&mut master.get_ref(), &mut bytes)) {
                    // Linux says that reading failed.
                    Ok(read) => return std::task::Poll::Ready(read.unwrap_or(0)),
                    Err(_) => continue,
                }
            }
        });
        let length = length.await;
        // Everything that wharf shows of others is escaped, and the tests are in ASCII and quotation marks.
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }
}
