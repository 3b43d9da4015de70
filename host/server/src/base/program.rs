//! Programs that the operator names, started without a shell: they get a text, and what they print is the answer.

use std::{path::PathBuf, process::Stdio, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Runs a program to its end and returns what it prints, of which it may print so many bytes. It is killed if it takes longer, or
/// if nobody waits for it any more. What it says on stderr is dropped, since a secret may be in it.
pub async fn run(command: &[String], input: &[u8], most: usize, within: Duration) -> Result<String> {
    let (program, arguments) = command.split_first().context("the command is empty")?;
    let mut child = tokio::process::Command::new(program)
        .args(arguments)
        .stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() })
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("`{program}` cannot be started"))?;
    let output = child.stdout.take().context("the command has no output")?;
    let mut to = child.stdin.take();
    let tell = async {
        if let Some(mut to) = to.take() {
            // A program need not read what it is told.
            to.write_all(input).await.ok();
        }
    };
    let hear = async {
        let mut text = String::new();
        output.take(most as u64 + 1).read_to_string(&mut text).await.context("its output is no text")?;
        ensure!(text.len() <= most, "`{program}` printed more than {most} bytes");
        Ok(text)
    };
    let printed = async {
        let ((), heard) = tokio::join!(tell, hear);
        let heard = heard?;
        let status = child.wait().await?;
        ensure!(status.success(), "`{program}` ended with {status}");
        Ok(heard)
    };
    match tokio::time::timeout(within, printed).await {
        Ok(printed) => printed,
        Err(_) => bail!("`{program}` took longer than {} s", within.as_secs()),
    }
}

/// The files that decide what a command does: the program, where the shell would find it, and arguments that are files.
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
    use super::*;

    async fn shell(text: &str, input: &[u8]) -> Result<String> {
        let command = ["sh", "-c", text].map(str::to_owned);
        run(&command, input, 1000, Duration::from_secs(10)).await
    }

    #[tokio::test]
    async fn a_program_answers_or_it_is_said_why_not() {
        assert_eq!(shell("cat", b"what was asked").await.unwrap(), "what was asked");
        // It may answer before it has read anything, and be told more than a pipe holds.
        assert_eq!(shell("echo yes", &[b'x'; 1 << 20]).await.unwrap(), "yes\n");
        for (text, expected) in [
            ("exit 3", "ended with exit status: 3"),
            ("head -c 1001 /dev/zero", "printed more than 1000 bytes"),
            ("printf '\\377'", "no text"),
        ] {
            let error = format!("{:#}", shell(text, b"").await.unwrap_err());
            assert!(error.contains(expected), "{text}: {error}");
        }
        let late = run(&["sleep".into(), "60".into()], b"", 10, Duration::from_millis(50)).await.unwrap_err();
        assert!(late.to_string().contains("took longer"), "{late}");
        let missing = run(&["/nowhere/at/all".into()], b"", 10, Duration::from_secs(1)).await.unwrap_err();
        assert!(missing.to_string().contains("cannot be started"), "{missing}");
    }
}
