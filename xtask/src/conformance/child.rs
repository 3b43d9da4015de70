//! Runs processes with a time limit. A process that is still running when its time is over is stopped by its id.

use std::{
    fs::File,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStderr, Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

/// How long wharf may take to load its plugin.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a process may take to exit after each signal.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs a command to its end, or stops it after `limit`.
pub fn finish(command: &mut Command, limit: Duration) -> Result<ExitStatus> {
    let line = format!("{command:?}").replace('"', "");
    let child = command.stdin(Stdio::null()).spawn().with_context(|| format!("cannot run {line}"))?;
    match ended(child, limit, &["TERM", "KILL"])? {
        Some(status) => Ok(status),
        None => bail!("{line}: stopped, since it took longer than {} seconds", limit.as_secs()),
    }
}

/// Waits for a process to exit and returns its status. If it takes longer than `limit`, sends it these signals one after the other and
/// returns `None`.
fn ended(mut child: Child, limit: Duration, signals: &[&str]) -> Result<Option<ExitStatus>> {
    let pid = child.id();
    let (sender, receiver) = mpsc::channel();
    // `Child::wait` takes no timeout, so it runs on a thread of its own.
    thread::spawn(move || sender.send(child.wait()));
    if let Ok(status) = receiver.recv_timeout(limit) {
        return Ok(Some(status?));
    }
    for signal in signals {
        // The process may have exited by now; then `kill` fails, which does not matter.
        Command::new("kill").arg(format!("-{signal}")).arg(pid.to_string()).stderr(Stdio::null()).status().ok();
        if receiver.recv_timeout(EXIT_TIMEOUT).is_ok() {
            return Ok(None);
        }
    }
    bail!("process {pid} does not exit")
}

/// A running `wharf serve` on a free port. Dropping it stops the process.
pub struct Server {
    child: Option<Child>,
    pub url: String,
}

impl Server {
    /// Starts the server and waits until its plugin is loaded. Its environment is cleared, so that it reads no config of this machine's
    /// user; its log goes to `wharf.log` in the folder.
    pub fn start(binary: &Path, config: &Path, folder: &Path) -> Result<Self> {
        let mut command = Command::new(binary);
        command.args(["serve", "--listen", "127.0.0.1:0", "-c"]).arg(config);
        command.env_clear().env("HOME", folder).env("XDG_CACHE_HOME", folder.join("cache"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot run {}", binary.display()))?;
        let stderr = child.stderr.take();
        let mut server = Self { child: Some(child), url: String::new() };
        let log = File::create(folder.join("wharf.log"))?;
        server.url = ready(stderr.context("wharf has no stderr")?, log)?;
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        if let Ok(Some(status)) = child.try_wait() {
            crate::say(&format!("wharf exited too early: {status}"));
            return;
        }
        if let Err(problem) = ended(child, Duration::ZERO, &["TERM", "KILL"]) {
            crate::say(&format!("wharf: {problem:#}"));
        }
    }
}

/// Waits until the log says that wharf serves its plugin, and returns the address. A thread continues to write the log until wharf exits.
fn ready(stderr: ChildStderr, mut log: File) -> Result<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            // Errors are ignored: the receiver is dropped once the server is ready, but the lines must still be read, or wharf
            // would block on a full pipe.
            writeln!(log, "{line}").ok();
            sender.send(line).ok();
        }
    });
    let deadline = Instant::now() + START_TIMEOUT;
    let (mut url, mut loaded) = (None, false);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let line = receiver.recv_timeout(left).context("wharf did not start; target/conformance/wharf.log says why")?;
        if line.contains("does not load") {
            bail!("{line}");
        }
        if let Some((_, address)) = line.split_once("serving MCP at ") {
            url = Some(address.trim().to_owned());
        }
        loaded |= line.contains("serving plugin=\"conformance\"");
        if loaded && let Some(url) = &url {
            return Ok(url.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_too_long_is_stopped() {
        let stopped = finish(Command::new("sleep").arg("60"), Duration::from_millis(10));
        assert!(stopped.unwrap_err().to_string().starts_with("sleep 60: stopped"));
        assert!(finish(&mut Command::new("true"), EXIT_TIMEOUT).unwrap().success());
        assert_eq!(finish(&mut Command::new("false"), EXIT_TIMEOUT).unwrap().code(), Some(1));
    }
}
