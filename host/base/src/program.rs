//! Runs programs that the operator configured, without a shell: a program reads a text from stdin and prints its answer to stdout.

use std::{
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::group::Group;

/// A program of the operator and its arguments. The program is looked for once, when the config is read, so that no file that appears
/// later in a folder of PATH is run in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The program as it is written.
    name: String,
    /// Where it is. None: it was in no folder of PATH.
    program: Option<PathBuf>,
    arguments: Vec<String>,
    /// The variables that it sees. None: all.
    variables: Option<&'static [&'static str]>,
}

impl Command {
    /// Returns a program that wharf itself knows, at an absolute path. It sees only these variables.
    pub fn at(program: &str, arguments: &[&str], variables: &'static [&'static str]) -> Self {
        Self {
            name: program.to_owned(),
            program: Some(program.into()),
            arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
            variables: Some(variables),
        }
    }

    /// Finds the program of a command: a path, which `absolute` completes, or a name in PATH. Programs are started in `/`, so an argument
    /// that seems to be a file elsewhere is refused.
    pub fn resolve(words: Vec<String>, absolute: &dyn Fn(&str) -> Result<PathBuf>) -> Result<Self> {
        let mut words = words.into_iter();
        let name = words.next().filter(|name| !name.is_empty()).context("the command is empty")?;
        let program = if name.contains('/') { Some(absolute(&name)?) } else { in_path(&name) };
        let arguments: Vec<String> = words.collect();
        for argument in &arguments {
            if let Some(file) = file_named(argument, absolute) {
                bail!(
                    "`{argument}` is a relative path, and programs are started in /; if it means the file {0}, write {0:?} in its place",
                    file.display()
                );
            }
        }
        Ok(Self { name, program, arguments, variables: None })
    }

    /// Returns what decides what the command does: its program, the folders in which programs are found, and absolute paths in its arguments.
    /// A last component `*` stands for all files in the folder.
    pub fn files(&self) -> Vec<PathBuf> {
        // In `--config=/etc/x` and `sh -c "exec /opt/x"` too.
        let words = self.arguments.iter().flat_map(|argument| {
            std::iter::once(argument.as_str())
                .chain(argument.split(|at: char| at.is_whitespace() || "=:,;'\"".contains(at)))
        });
        let named = words.map(PathBuf::from).filter(|path| path.is_absolute());
        // Programs start others by name. So does the next start of wharf, which looks for this program again.
        self.program.iter().cloned().chain(on_path()).chain(named).collect()
    }
}

/// Returns all files in the folders of PATH, each as the folder and `*`: who runs a program by its name runs one of these.
pub fn on_path() -> impl Iterator<Item = PathBuf> {
    folders_of_path().map(|folder| folder.join("*"))
}

/// Returns the folders of PATH. Relative ones are left out: they are another folder wherever wharf is started.
pub fn folders_of_path() -> impl Iterator<Item = PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).filter(|folder| folder.is_absolute()).collect();
    folders.into_iter()
}

#[expect(clippy::disallowed_methods, reason = "only looks where a program lies that the operator names")]
fn in_path(name: &str) -> Option<PathBuf> {
    let is_program = |file: &PathBuf| {
        std::fs::metadata(file).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    folders_of_path().map(|folder| folder.join(name)).find(is_program)
}

/// The file that a relative argument names where wharf was started, or next to the config.
#[expect(clippy::disallowed_methods, reason = "only looks whether there is a file that the operator names")]
fn file_named(argument: &str, absolute: &dyn Fn(&str) -> Result<PathBuf>) -> Option<PathBuf> {
    if argument.is_empty() || Path::new(argument).is_absolute() {
        return None;
    }
    let here = std::path::absolute(argument).ok();
    here.into_iter().chain(absolute(argument).ok()).find(|file| file.is_file())
}

/// Runs a program to its end and returns what it prints, which may be at most `most` bytes. If it prints more, takes longer than
/// `within`, or the future is dropped, it is killed together with every process that it started. Its stderr is discarded, since it may
/// contain a secret.
pub async fn run(command: &Command, input: &[u8], most: usize, within: Duration) -> Result<String> {
    let Command { name: program, program: found, arguments, variables } = command;
    let found = found.as_ref().with_context(|| {
        format!("`{program}` was in no folder of PATH when the config was read; write its absolute path")
    })?;
    let mut started = tokio::process::Command::new(found);
    if let Some(names) = variables {
        started.env_clear().envs(names.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    }
    let mut child = started
        .args(arguments)
        // A folder in which plugins may write would lend its files to programs.
        .current_dir("/")
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

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};

    use tokio::sync::oneshot;

    use super::*;

    fn command(words: &[&str]) -> Command {
        Command::resolve(words.iter().map(|word| (*word).to_owned()).collect(), &|path| Ok(PathBuf::from(path)))
            .unwrap()
    }

    async fn shell(text: &str, input: &[u8]) -> Result<String> {
        run(&command(&["sh", "-c", text]), input, 1000, Duration::from_secs(10)).await
    }

    #[test]
    fn a_program_is_found_when_the_config_is_read() {
        let found = command(&["sh", "-c", "exec /opt/x --config=/etc/x"]);
        assert!(found.program.as_ref().is_some_and(|program| program.is_absolute()), "{found:?}");
        let path = std::env::var_os("PATH").unwrap();
        for folder in std::env::split_paths(&path).filter(|folder| folder.is_absolute()) {
            assert!(
                found.files().contains(&folder.join("*")),
                "a program of this name may appear in {}",
                folder.display()
            );
        }
        for named in ["/opt/x", "/etc/x"] {
            assert!(found.files().contains(&named.into()), "it may be run, once it is there");
        }
        assert_eq!(command(&["no-such-program"]).program, None);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a file of the test")]
    fn an_argument_that_is_a_file_has_to_be_absolute() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("approve.py"), "").unwrap();
        let absolute = |path: &str| Ok(folder.path().join(path));
        let resolve =
            |words: &[&str]| Command::resolve(words.iter().map(|word| (*word).to_owned()).collect(), &absolute);
        let error = resolve(&["python3", "approve.py"]).unwrap_err().to_string();
        assert!(error.contains(&format!("write {:?} in its place", folder.path().join("approve.py"))), "{error}");
        resolve(&["python3", "other.py", "-v", ""]).unwrap();
        assert_eq!(resolve(&["bin/x"]).unwrap().program, Some(folder.path().join("bin/x")));
        assert!(resolve(&[]).is_err() && resolve(&[""]).is_err());
    }

    #[tokio::test]
    async fn a_program_that_wharf_knows_sees_only_its_variables() {
        let printed =
            run(&Command::at("/usr/bin/env", &[], &["HOME"]), b"", 1000, Duration::from_secs(10)).await.unwrap();
        assert!(printed.starts_with("HOME=") && printed.lines().count() == 1, "{printed}");
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
        let late = run(&command(&["sleep", "60"]), b"", 10, Duration::from_millis(50)).await.unwrap_err();
        assert!(late.to_string().contains("took longer"), "{late}");
        let missing = run(&command(&["/nowhere/at/all"]), b"", 10, Duration::from_secs(1)).await.unwrap_err();
        assert!(missing.to_string().contains("cannot be started"), "{missing}");
    }

    /// Starts a program that starts another one, ends it by `end`, and returns whether the other one has ended as well. `end` is notified
    /// when the other one runs.
    #[expect(clippy::disallowed_methods, reason = "a pipe of the test, and a process that may be left")]
    async fn both_end(end: impl AsyncFnOnce(&Command, oneshot::Receiver<()>)) -> bool {
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
        end(&command(&["sh", "-c", &script]), told).await;
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
        let takes_too_long = async |command: &Command, _| {
            run(command, b"", 10, Duration::from_secs(1)).await.unwrap_err();
        };
        assert!(both_end(takes_too_long).await, "after its time");
        let is_dropped = async |command: &Command, told: oneshot::Receiver<()>| {
            tokio::select! {
                _ = run(command, b"", 10, Duration::from_secs(60)) => panic!("it does not end by itself"),
                told = told => told.unwrap(),
            }
        };
        assert!(both_end(is_dropped).await, "after its caller is gone");
    }
}
