//! Uses an installed wharf as a client does: over stdio, in an environment without this machine's user settings.

use std::{
    env,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

/// The time limit of one answer, which includes compiling a plugin.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// The arguments to serve a plugin that is embedded in the binary.
pub const BUILT_IN: [&str; 3] = ["run", "--builtin", "time"];

/// Returns a command with an empty home, and no other environment variable than `PATH`.
pub fn command(program: &Path, place: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", env::var_os("PATH").unwrap_or_default()).env("HOME", place.join("home"));
    command.current_dir(place);
    command
}

/// Asks the plugin `time` for the time.
pub fn tell_time(wharf: &mut Command) -> Result<()> {
    call(wharf, "get_current_time", &json!({ "timezone": "UTC" }), "UTC")
}

/// Reads a file in a new folder, which it adds to the arguments.
pub fn read_note(wharf: &mut Command, folder: &Path) -> Result<()> {
    let note = folder.join("note.txt");
    super::write(&note, b"Ship the crane by Friday.")?;
    call(wharf.arg(folder), "read_text_file", &json!({ "path": note }), "Ship the crane by Friday.")
}

/// Starts the command, calls the tool whose name ends in `tool`, and checks that the answer contains `expected`.
pub fn call(wharf: &mut Command, tool: &str, arguments: &Value, expected: &str) -> Result<()> {
    let line = format!("{wharf:?}");
    let mut child = wharf.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().with_context(|| line.clone())?;
    let done = exchange(&mut child, tool, arguments, expected);
    if done.is_err() {
        // `kill` fails if the process has exited by itself; `done` then has the error.
        child.kill().ok();
    }
    let status = child.wait()?;
    done.with_context(|| line.clone())?;
    ensure!(status.success(), "{line}: {status}");
    Ok(())
}

/// The connection to a server over stdio.
struct Pipe {
    stdin: ChildStdin,
    lines: mpsc::Receiver<String>,
}

impl Pipe {
    fn to(child: &mut Child) -> Result<Self> {
        let stdin = child.stdin.take().context("no pipe")?;
        let stdout = BufReader::new(child.stdout.take().context("no pipe")?);
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Ok(Self { stdin, lines })
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        writeln!(self.stdin, "{message}").context("it ended")
    }

    fn next(&self, what: &str) -> Result<Value> {
        let line = self.lines.recv_timeout(ANSWER_TIMEOUT).with_context(|| format!("no {what}"))?;
        serde_json::from_str(&line).with_context(|| line.clone())
    }

    fn ask(&mut self, id: u32, method: &str, params: &Value) -> Result<Value> {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        loop {
            let answer = self.next(&format!("answer to {method}"))?;
            if answer.get("id") == Some(&json!(id)) {
                return answer.get("result").cloned().with_context(|| answer.to_string());
            }
        }
    }
}

fn exchange(child: &mut Child, tool: &str, arguments: &Value, expected: &str) -> Result<()> {
    let mut pipe = Pipe::to(child)?;
    let client = json!({ "name": "package", "version": "1" });
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    let server = pipe.ask(1, "initialize", &hello)?;
    ensure!(server.pointer("/serverInfo/name").is_some(), "the server states no name: {server}");
    pipe.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
    let name = loop {
        let list = pipe.ask(2, "tools/list", &json!({}))?;
        let tools = list.get("tools").and_then(Value::as_array).context("no tools")?;
        let mut names = tools.iter().filter_map(|one| one.get("name")?.as_str());
        if let Some(name) = names.find(|name| name.ends_with(tool)) {
            break name.to_owned();
        }
        // On a slow machine the plugin is still being compiled; the server notifies clients when it is loaded.
        while pipe.next("change of the tools")?.get("method") != Some(&json!("notifications/tools/list_changed")) {}
    };
    let answer = pipe.ask(3, "tools/call", &json!({ "name": name, "arguments": arguments }))?;
    ensure!(answer.to_string().contains(expected), "{name} answered {answer}");
    Ok(())
}
