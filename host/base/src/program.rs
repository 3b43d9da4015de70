//! Runs programs that the operator configured, without a shell: a program reads a text from stdin and prints its answer to stdout.

use std::{path::PathBuf, process::Stdio, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::group::Group;

/// Runs a program to its end and returns what it prints, which may be at most `most` bytes. If it prints more, takes longer than
/// `within`, or the future is dropped, it is killed together with every process that it started. Its stderr is discarded, since it may
/// contain a secret.
pub async fn run(command: &[String], input: &[u8], most: usize, within: Duration) -> Result<String> {
    let (program, arguments) = command.split_first().context("the command is empty")?;
    let mut child = tokio::process::Command::new(program)
        .args(arguments)
        .stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() })
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(Group::OWN)
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("`{program}` cannot be started"))?;
    let group = Group::of(&child);
    let output = child.stdout.take().context("the command has no output")?;
    let mut to = child.stdin.take();
    let tell = async {
        if let Some(mut to) = to.take() {
            // A program need not read its input.
            to.write_all(input).await.ok();
        }
    };
    let hear = async {
        let mut text = String::new();
        output.take(most as u64 + 1).read_to_string(&mut text).await.context("its output is not text")?;
        ensure!(text.len() <= most, "`{program}` printed more than {most} bytes");
        Ok(text)
    };
    let printed = async {
        let ((), heard) = tokio::join!(tell, hear);
        let heard = heard?;
        let status = group.wait(&mut child).await?;
        ensure!(status.success(), "`{program}` ended with {status}");
        Ok(heard)
    };
    match tokio::time::timeout(within, printed).await {
        Ok(printed) => printed,
        Err(_) => bail!("`{program}` took longer than {} s", within.as_secs()),
    }
}

/// Returns the files that decide what a command does: the program, where the shell would find it, and arguments that are files.
#[expect(clippy::disallowed_methods, reason = "only looks where a program lies that the operator names")]
pub fn files(command: &[String]) -> Vec<PathBuf> {
    let Some((program, arguments)) = command.split_first() else { return Vec::new() };
    let found = if program.contains('/') {
        vec![PathBuf::from(program)]
    } else {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).map(|folder| folder.join(program)).filter(|file| file.is_file()).collect()
    };
    let named = arguments.iter().map(PathBuf::from).filter(|file| file.is_absolute() && file.is_file());
    found.into_iter().chain(named).collect()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};

    use tokio::sync::oneshot;

    use super::*;

    async fn shell(text: &str, input: &[u8]) -> Result<String> {
        let command = ["sh", "-c", text].map(str::to_owned);
        run(&command, input, 1000, Duration::from_secs(10)).await
    }

    #[tokio::test]
    async fn a_program_answers_or_it_is_said_why_not() {
        assert_eq!(shell("cat", b"what was asked").await.unwrap(), "what was asked");
        // It may answer before it has read anything, even if its input is larger than the buffer of a pipe.
        assert_eq!(shell("echo yes", &[b'x'; 1 << 20]).await.unwrap(), "yes\n");
        for (text, expected) in [
            ("exit 3", "ended with exit status: 3"),
            ("head -c 1001 /dev/zero", "printed more than 1000 bytes"),
            ("printf '\\377'", "is not text"),
        ] {
            let error = format!("{:#}", shell(text, b"").await.unwrap_err());
            assert!(error.contains(expected), "{text}: {error}");
        }
        let late = run(&["sleep".into(), "60".into()], b"", 10, Duration::from_millis(50)).await.unwrap_err();
        assert!(late.to_string().contains("took longer"), "{late}");
        let missing = run(&["/nowhere/at/all".into()], b"", 10, Duration::from_secs(1)).await.unwrap_err();
        assert!(missing.to_string().contains("cannot be started"), "{missing}");
    }

    /// Starts a program that starts another one, ends it by `end`, and returns whether the other one has ended as well. `end` is notified
    /// when the other one runs.
    #[expect(clippy::disallowed_methods, reason = "a pipe of the test, and a process that may be left")]
    async fn both_end(end: impl AsyncFnOnce(&[String], oneshot::Receiver<()>)) -> bool {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let script = format!("exec 3>{}; sleep 600 & echo $! >&3; wait", pipe.display());
        let ((tell, told), (gone, is_gone)) = (oneshot::channel(), oneshot::channel());
        let reading = std::thread::spawn(move || {
            let mut reader = BufReader::new(std::fs::File::open(pipe).unwrap());
            let mut pid = String::new();
            reader.read_line(&mut pid).unwrap();
            tell.send(()).ok();
            // It ends when no process holds the other end of the pipe.
            let watch = std::thread::spawn(move || {
                reader.read_line(&mut String::new()).unwrap();
                gone.send(()).ok();
            });
            (pid, watch)
        });
        end(&["sh".into(), "-c".into(), script], told).await;
        let both = tokio::time::timeout(Duration::from_secs(10), is_gone).await.is_ok();
        let (pid, watch) = reading.join().unwrap();
        if !both {
            std::process::Command::new("kill").args(["-9", pid.trim()]).status().unwrap();
        }
        watch.join().unwrap();
        both
    }

    #[tokio::test]
    async fn what_a_killed_program_started_is_killed_with_it() {
        let takes_too_long = async |command: &[String], _| {
            run(command, b"", 10, Duration::from_secs(1)).await.unwrap_err();
        };
        assert!(both_end(takes_too_long).await, "after its time");
        let is_dropped = async |command: &[String], told: oneshot::Receiver<()>| {
            tokio::select! {
                _ = run(command, b"", 10, Duration::from_secs(60)) => panic!("it does not end by itself"),
                told = told => told.unwrap(),
            }
        };
        assert!(both_end(is_dropped).await, "after its caller is gone");
    }
}
