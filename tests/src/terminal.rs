//! A wharf at a terminal, with a test in place of the person: its output is read from a pseudo-terminal, and lines are typed into it.
//! stdout is a pipe, as when it is redirected.

use std::{
    fs::File,
    io::{Read, Write},
    process::Stdio,
};

use rustix::{
    fs::{Mode, OFlags, open},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
};
use tokio::{process::Child, sync::mpsc, time::timeout};

use crate::{Folder, PATIENCE};

pub struct Terminal {
    child: Child,
    keyboard: File,
    screen: mpsc::UnboundedReceiver<Vec<u8>>,
    /// Output that was shown and not waited for yet.
    shown: Vec<u8>,
}

impl Terminal {
    /// Starts `wharf` with these arguments in the folder.
    pub fn start(folder: &Folder, arguments: &[&str]) -> Self {
        Self::start_with(folder, arguments, &[])
    }

    /// Starts it with these environment variables as well.
    pub fn start_with(folder: &Folder, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let side = || Stdio::from(open(name.as_c_str(), OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap());
        let mut command = folder.command(arguments, environment);
        let child = command.stdin(side()).stderr(side()).stdout(Stdio::piped()).spawn().unwrap();
        // The command also holds the other side of the terminal, which has to be closed with the child.
        drop(command);
        let keyboard = File::from(master);
        let mut output = keyboard.try_clone().unwrap();
        let (show, screen) = mpsc::unbounded_channel();
        // Reading ends when the other side is closed, which Linux reports as an error.
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(length @ 1..) = output.read(&mut bytes) {
                if show.send(bytes[..length].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { child, keyboard, screen, shown: Vec::new() }
    }

    /// Waits until this text is shown, and returns everything since the last wait, up to and including it.
    pub async fn until(&mut self, text: &str) -> String {
        loop {
            if let Some(at) = self.shown.windows(text.len()).position(|shown| shown == text.as_bytes()) {
                let rest = self.shown.split_off(at + text.len());
                return lossy(&std::mem::replace(&mut self.shown, rest));
            }
            match timeout(PATIENCE, self.screen.recv()).await {
                Ok(Some(more)) => self.shown.extend(more),
                Ok(None) => panic!("it ended without `{text}`:\n{}", lossy(&self.shown)),
                Err(_) => panic!("`{text}` is not shown:\n{}", lossy(&self.shown)),
            }
        }
    }

    /// Types a line. The terminal echoes it.
    pub fn types(&mut self, line: &str) {
        self.keyboard.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Waits until wharf exits. Returns the exit code, the remaining output, and its stdout.
    pub async fn end(mut self) -> (Option<i32>, String, String) {
        while let Some(more) = timeout(PATIENCE, self.screen.recv()).await.expect("it ends") {
            self.shown.extend(more);
        }
        let output = timeout(PATIENCE, self.child.wait_with_output()).await.expect("it ends").unwrap();
        (output.status.code(), lossy(&self.shown), String::from_utf8(output.stdout).unwrap())
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
