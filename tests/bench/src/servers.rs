//! Starts the servers that are measured, and writes the requests they get.

use std::{
    collections::HashMap,
    ffi::OsString,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{LazyLock, Mutex, PoisonError},
};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, Command},
};

use crate::load::{Connection, Pipe};

pub const MODERN: &str = "2026-07-28";
pub const LEGACY: &str = "2025-11-25";

/// Programs and plugins, as `cargo xtask bench` has built them.
#[derive(Clone)]
pub struct Built {
    pub wharf: PathBuf,
    pub sdk: PathBuf,
    pub bare: PathBuf,
    pub plugins: PathBuf,
    /// The example plugins in other languages, as far as they are built: the language, and the component.
    pub examples: Vec<(&'static str, PathBuf)>,
}

impl Built {
    /// `rivals`: the profile with which the other side was built.
    pub fn find(rivals: &str) -> Result<Self> {
        let own = std::env::current_exe()?;
        let folder = own.parent().context("no folder")?;
        let target = folder.parent().context("no target folder")?;
        let built = Self {
            wharf: folder.join("wharf"),
            sdk: target.join(rivals).join("sdk_echo"),
            bare: target.join(rivals).join("bare_echo"),
            plugins: target.join("plugins"),
            examples: [
                ("JavaScript, QuickJS", "js"),
                ("TypeScript, StarlingMonkey", "ts"),
                ("Python", "python"),
                ("Go", "go"),
                ("C", "c"),
            ]
            .map(|(language, name)| {
                (language, target.join("languages").join(format!("new-{name}/my-greeter/dist/plugin.wasm")))
            })
            .into_iter()
            .filter(|(_, path)| path.exists())
            .collect(),
        };
        for path in [&built.wharf, &built.sdk, &built.bare, &built.plugins.join("echo.wasm")] {
            ensure!(path.exists(), "{} is missing; run `cargo xtask bench`", path.display());
        }
        Ok(built)
    }
}

/// A server over HTTP; ended when dropped.
pub struct Http {
    pub address: String,
    pub child: Child,
    /// Goes on being read, so that the server never waits for its log.
    _log: tokio::task::JoinHandle<()>,
}

/// Reads lines until one says where the server is, and goes on reading in the background.
async fn address_in<R: tokio::io::AsyncRead + Unpin + Send + 'static>(
    mut lines: Lines<BufReader<R>>,
    find: fn(&str) -> Option<String>,
) -> Result<(String, tokio::task::JoinHandle<()>)> {
    loop {
        let line = lines.next_line().await?.context("the server ended before it listened")?;
        if let Some(address) = find(&line) {
            return Ok((address, tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} })));
        }
    }
}

/// The token of servers whose config names the variable BENCH_TOKEN.
pub const TOKEN: &str = "a-token-of-the-measurement";

/// Has the requests of these connections show a token.
pub fn show(connections: &mut [Connection], token: &str) -> Result<()> {
    for connection in connections {
        let request = String::from_utf8(std::mem::take(&mut connection.request))?;
        let with_token = request.replacen("Accept:", &format!("Authorization: Bearer {token}\r\nAccept:"), 1);
        connection.request = with_token.into_bytes();
    }
    Ok(())
}

/// Waits until a process does nothing by itself any more, such as looking through a thousand plugins a second time. `on_core`: the seconds
/// that it has had on a core.
pub async fn settled(on_core: impl Fn() -> Result<f64>) -> Result<()> {
    let mut before = on_core()?;
    for _ in 0..300 {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        let now = on_core()?;
        if now - before < 0.015 {
            return Ok(());
        }
        before = now;
    }
    anyhow::bail!("the process is busy without being asked for anything")
}

impl Http {
    /// A program that prints its address.
    pub async fn plain(program: &Path, arguments: &[&str]) -> Result<Self> {
        let mut child = Command::new(program)
            .args(arguments)
            .env("RUST_LOG", "warn")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let output = child.stdout.take().context("no stdout")?;
        let (address, log) = address_in(BufReader::new(output).lines(), |line| Some(line.to_owned())).await?;
        Ok(Self { address, child, _log: log })
    }

    /// `wharf serve` with a config.
    pub async fn wharf(built: &Built, config: &Path) -> Result<Self> {
        let mut child = Command::new(&built.wharf)
            .args(["serve", "--listen", "127.0.0.1:0", "-c"])
            .arg(config)
            .env("BENCH_TOKEN", TOKEN)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let log = child.stderr.take().context("no stderr")?;
        let (address, log) = address_in(BufReader::new(log).lines(), |line| {
            let (_, rest) = line.split_once("serving MCP at ")?;
            Some(rest.split('/').nth(2)?.to_owned())
        })
        .await?;
        Ok(Self { address, child, _log: log })
    }

    /// Resident memory, in KiB.
    pub fn resident_kib(&self) -> Result<u64> {
        let pid = self.child.id().context("the server has ended")?;
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        Ok(line.trim().trim_end_matches(" kB").parse()?)
    }

    pub fn cpu_seconds(&self) -> Result<f64> {
        cpu_seconds(&self.child)
    }

    /// Asks it to end, and waits until it has.
    pub async fn end(mut self) -> Result<()> {
        let pid = self.child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        kill_process(pid.context("the server has ended")?, Signal::TERM)?;
        let status = self.child.wait().await?;
        ensure!(status.success(), "the server ended with {status}");
        Ok(())
    }

    /// As [`settled`].
    pub async fn settled(&self) -> Result<()> {
        settled(|| self.cpu_seconds()).await
    }

    pub async fn connections(&self, era: Era, count: usize, tool: &str, arguments: &Value) -> Result<Vec<Connection>> {
        let mut sessions = match era {
            Era::Modern => Vec::new(),
            Era::Legacy => self.sessions(count).await?,
        };
        let mut connections = Vec::with_capacity(count);
        for id in 0..count as u64 {
            let request = match sessions.pop() {
                None => modern_post(&self.address, id, tool, arguments),
                Some(session) => {
                    let body = call(id + 10, tool, arguments, None).to_string();
                    post(&self.address, &in_session(&session), &body)
                }
            };
            connections.push(Connection::open(&self.address, request).await?);
        }
        Ok(connections)
    }

    /// The ids of so many new legacy sessions, opened one after the other on one connection.
    pub async fn sessions(&self, count: usize) -> Result<Vec<String>> {
        let first = post(&self.address, "", &initialize().to_string());
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
        let mut connection = Connection::open(&self.address, Vec::new()).await?;
        let mut sessions = Vec::with_capacity(count);
        for _ in 0..count {
            connection.request.clone_from(&first);
            let (head, body) = connection.exchange().await?;
            let refused = || {
                let body = String::from_utf8_lossy(&body);
                format!("no session after {} of {count}: {head}{body}", sessions.len())
            };
            let session = connection.header("mcp-session-id").with_context(refused)?;
            connection.request = post(&self.address, &in_session(&session), &ready);
            let (head, _) = connection.exchange().await?;
            ensure!(head.starts_with("http/1.1 202"), "not initialized: {head}");
            sessions.push(session);
        }
        Ok(sessions)
    }
}

fn in_session(id: &str) -> String {
    format!("Mcp-Session-Id: {id}\r\nMCP-Protocol-Version: {LEGACY}\r\n")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    Modern,
    Legacy,
}

pub fn initialize() -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": { "name": "bench", "version": "1" } } })
}

/// A call; `meta`: what a modern request says of itself.
pub fn call(id: u64, tool: &str, arguments: &Value, meta: Option<&Value>) -> Value {
    let mut params = json!({ "name": tool, "arguments": arguments });
    if let (Some(meta), Some(params)) = (meta, params.as_object_mut()) {
        params.insert("_meta".into(), meta.clone());
    }
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

pub fn modern_meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "bench", "version": "1" },
    })
}

pub fn modern_post(address: &str, id: u64, tool: &str, arguments: &Value) -> Vec<u8> {
    let headers = format!("MCP-Protocol-Version: {MODERN}\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n");
    post(address, &headers, &call(id, tool, arguments, Some(&modern_meta())).to_string())
}

pub fn modern_list_post(address: &str) -> Vec<u8> {
    let headers = format!("MCP-Protocol-Version: {MODERN}\r\nMcp-Method: tools/list\r\n");
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": modern_meta() } });
    post(address, &headers, &body.to_string())
}

pub fn get(address: &str, path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").into_bytes()
}

pub fn post(address: &str, headers: &str, body: &str) -> Vec<u8> {
    format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// The time that the threads of a process have had on a core, in seconds. The kernel counts it in nanoseconds for each thread. A thread that
/// has ended counts with what it had when it was last seen.
pub fn cpu_seconds(child: &Child) -> Result<f64> {
    type Threads = HashMap<OsString, u64>;
    static SEEN: LazyLock<Mutex<HashMap<u32, Threads>>> = LazyLock::new(Mutex::default);
    let pid = child.id().context("the server has ended")?;
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    let threads = seen.entry(pid).or_default();
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let thread = thread?;
        // A thread may end between the two looks.
        let Ok(stat) = std::fs::read_to_string(thread.path().join("schedstat")) else { continue };
        let nanoseconds = stat.split_whitespace().next().context("no time in schedstat")?.parse()?;
        threads.insert(thread.file_name(), nanoseconds);
    }
    Ok(threads.values().sum::<u64>() as f64 / 1e9)
}

pub async fn pipe(program: &Path, arguments: &[&str]) -> Result<(Child, Pipe)> {
    talk(Command::new(program).args(arguments)).await
}

/// Starts a stdio server and opens a session with it.
pub async fn talk(command: &mut Command) -> Result<(Child, Pipe)> {
    let mut child = command
        .env("RUST_LOG", "warn")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("cannot start {:?}", command.as_std().get_program()))?;
    let (input, output) = child.stdin.take().zip(child.stdout.take()).context("no pipe")?;
    let mut pipe = Pipe { input, output: BufReader::with_capacity(256 * 1024, output), next_id: 100 };
    let answer = pipe.ask(&initialize().to_string()).await?;
    ensure!(answer.contains("\"protocolVersion\""), "no handshake: {answer}");
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
    tokio::io::AsyncWriteExt::write_all(&mut pipe.input, format!("{ready}\n").as_bytes()).await?;
    Ok((child, pipe))
}
