//! The access log: a line of JSON for each HTTP request, written when its response has ended. A line says who asked for what and with what
//! outcome. It contains no arguments, tokens or query strings.
//!
//! A thread of its own writes the log, and requests never wait for it. If lines come faster than they can be written, or cannot be written,
//! they are lost, and a later line says how many.

use std::{
    io::{self, Write},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, Result};
use http::{Method, StatusCode, Version};
use parking_lot::Mutex;
use serde::Serialize;
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};
use wharf_protocol::Request;

use super::connections::Remote;
use crate::client::server::Server;
use wharf_base::{
    appended::{self, Appended, AtPath, with_suffix},
    guard::{check_trusted_directory, check_trusted_file},
    paths::FileId,
    principal::Principal,
    text::{clip, escaped, short_digest},
};
use wharf_config::config;
use wharf_plugins::plugins::finder::CALL;
use wharf_policy::profiles::Style;

/// The maximum number of bytes of an HTTP method in a line.
const MAX_METHOD_BYTES: usize = 32;
/// The maximum number of lines that wait to be written.
const MAX_QUEUED_LINES: usize = 8192;
/// The minimum time between two warnings about lines that could not be written.
const WARNING_INTERVAL: Duration = Duration::from_secs(10);
/// The maximum size of the file. Before it grows beyond this, it is renamed to end in `.1`, and replaces the file that was renamed before.
const MAX_FILE_BYTES: u64 = 64 << 20;

pub struct AccessLog {
    writer: NonBlocking,
    /// Counts the lines for which the queue had no room.
    lost: ErrorCounter,
    /// Counts the lines that could not be written.
    unwritten: Arc<AtomicUsize>,
    /// The number of lost lines that were reported in later lines.
    told: AtomicUsize,
    /// Writes the waiting lines when it is dropped.
    _rest: WorkerGuard,
}

impl AccessLog {
    pub fn open(config: &config::AccessLog) -> Result<Self> {
        let builder = NonBlockingBuilder::default()
            .lossy(true)
            .buffered_lines_limit(MAX_QUEUED_LINES)
            .thread_name("wharf-access");
        let unwritten = Arc::default();
        let (writer, rest) = match config {
            config::AccessLog::Stderr => builder.finish(Counting::new(io::stderr(), &unwritten)),
            config::AccessLog::File(path) => {
                let file = LogFile::open(path, MAX_FILE_BYTES).context("`access_log`")?;
                builder.finish(Counting::new(file, &unwritten))
            }
        };
        Ok(Self { lost: writer.error_counter(), writer, unwritten, told: AtomicUsize::new(0), _rest: rest })
    }

    fn write(&self, mut line: Line<'_>) {
        let lost = self.lost.dropped_lines().saturating_add(self.unwritten.load(Ordering::Relaxed));
        line.lost = lost.saturating_sub(self.told.swap(lost, Ordering::Relaxed));
        if let Ok(mut text) = serde_json::to_vec(&line) {
            text.push(b'\n');
            // It goes into a queue, or is counted as lost.
            self.writer.clone().write_all(&text).ok();
        }
    }
}

#[derive(Serialize)]
struct Line<'a> {
    time: String,
    client: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    principal: Option<&'a str>,
    method: &'a str,
    path: &'a str,
    version: &'static str,
    status: u16,
    bytes: u64,
    duration_ms: f64,
    /// Whether the client took all of the response.
    complete: bool,
    request_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mcp_method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plugin: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "is_zero")]
    lost: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// A request whose line is written when this is dropped, which is when its response has ended.
pub struct Noted {
    log: Arc<AccessLog>,
    from: Remote,
    began: (SystemTime, Instant),
    method: Method,
    path: String,
    version: Version,
    request_id: String,
    facts: Mutex<Facts>,
}

#[derive(Default)]
struct Facts {
    principal: Option<String>,
    mcp_method: Option<&'static str>,
    plugin: Option<String>,
    name: Option<String>,
    status: StatusCode,
    bytes: u64,
    complete: bool,
}

/// The name in the arguments of `call_tool`, which says which tool is meant.
#[derive(serde::Deserialize)]
struct Meant {
    name: String,
}

impl Noted {
    pub fn new<B>(log: &Arc<AccessLog>, from: Remote, request: &http::Request<B>, request_id: &str) -> Arc<Self> {
        Arc::new(Self {
            log: Arc::clone(log),
            from,
            began: (SystemTime::now(), Instant::now()),
            method: request.method().clone(),
            // Without the query string, which may contain secrets.
            path: escaped(&clip(request.uri().path())),
            version: request.version(),
            request_id: request_id.to_owned(),
            facts: Mutex::default(),
        })
    }

    /// Stores who makes the request, in a short form that only tells callers apart.
    pub fn by(&self, principal: &Principal) {
        let short = match principal.word() {
            Some(word) => word.to_owned(),
            None => short_digest(principal.to_string()),
        };
        self.facts.lock().principal = Some(short);
    }

    /// Stores what is requested. The name of a tool or prompt is written only if that tool or prompt exists.
    pub fn asks(&self, server: &Server, request: &Request, profile: Option<&str>) {
        use wharf_protocol::Method as Mcp;
        let mut facts = self.facts.lock();
        let Some(method) = request.known() else { return };
        facts.mcp_method = Some(method.as_str());
        if !matches!(method, Mcp::CallTool | Mcp::GetPrompt) {
            return;
        }
        let name = request.params.as_ref().and_then(|params| params.get("name"));
        let Some(mut name) = name.and_then(|name| serde_json::from_str::<String>(name.as_str()).ok()) else { return };
        if name == CALL && server.style(profile) == Style::Search {
            let arguments = request.params.as_ref().and_then(|params| params.get("arguments"));
            let Some(meant) = arguments.and_then(|raw| serde_json::from_str::<Meant>(raw.as_str()).ok()) else {
                return;
            };
            name = meant.name;
        }
        let catalog = server.published.catalog.borrow();
        let plugin = match method {
            Mcp::CallTool => catalog.tool(&name).map(|(served, _)| served.config.id.clone()),
            _ => catalog.prompt(&name).map(|(served, _)| served.config.id.clone()),
        };
        facts.name = plugin.is_some().then_some(name);
        facts.plugin = plugin;
    }

    pub fn answered(&self, status: StatusCode) {
        self.facts.lock().status = status;
    }

    pub fn sent(&self, bytes: usize) {
        self.facts.lock().bytes += bytes as u64;
    }

    pub fn completed(&self) {
        self.facts.lock().complete = true;
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        let facts = std::mem::take(self.facts.get_mut());
        let (time, began) = self.began;
        self.log.write(Line {
            time: humantime::format_rfc3339_millis(time).to_string(),
            client: self.from.to_string(),
            principal: facts.principal.as_deref(),
            // A client may send any word as the method, as long as the headers may be.
            method: self.method.as_str().get(..MAX_METHOD_BYTES).unwrap_or(self.method.as_str()),
            path: &self.path,
            version: if self.version == Version::HTTP_2 { "2" } else { "1.1" },
            status: facts.status.as_u16(),
            bytes: facts.bytes,
            duration_ms: began.elapsed().as_secs_f64() * 1000.0,
            complete: facts.complete,
            request_id: &self.request_id,
            mcp_method: facts.mcp_method,
            plugin: facts.plugin.as_deref(),
            name: facts.name.as_deref(),
            lost: 0,
        });
    }
}

/// Writes lines, and counts and reports those that cannot be written, since the thread that writes ignores errors.
struct Counting<W> {
    inner: W,
    unwritten: Arc<AtomicUsize>,
    /// When the last warning was logged, and how many lines were lost since.
    told: Option<Instant>,
    since: usize,
}

impl<W> Counting<W> {
    fn new(inner: W, unwritten: &Arc<AtomicUsize>) -> Self {
        Self { inner, unwritten: Arc::clone(unwritten), told: None, since: 0 }
    }

    /// Counts a lost line. Returns the number of lines to warn about, if a warning is due.
    fn lose(&mut self, now: Instant) -> Option<usize> {
        self.unwritten.fetch_add(1, Ordering::Relaxed);
        self.since += 1;
        if self.told.is_some_and(|told| now.duration_since(told) < WARNING_INTERVAL) {
            return None;
        }
        self.told = Some(now);
        Some(std::mem::take(&mut self.since))
    }
}

impl<W: Write> Write for Counting<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if let Err(error) = self.inner.write_all(line)
            && let Some(lost) = self.lose(Instant::now())
        {
            tracing::warn!("the access log cannot be written, {lost} lines are lost: {error}");
        }
        // The error goes no further, since the next line may have room again.
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// The log's file. Other programs may move it away at any time; then a new one is created.
struct LogFile {
    file: Appended,
    max_bytes: u64,
}

impl LogFile {
    fn open(path: &Path, max_bytes: u64) -> Result<Self> {
        let folder = path.parent().with_context(|| format!("{} names no file", path.display()))?;
        check_trusted_directory(folder, "folder of a log")?;
        if FileId::at(path).is_some() {
            check_trusted_file(path, "log")?;
        }
        let file = appended::open(path).and_then(|file| Appended::new(path, file));
        let file = file.with_context(|| format!("{} cannot be written", path.display()))?;
        Ok(Self { file, max_bytes })
    }
}

impl Write for LogFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.file.place() != AtPath::Same {
            self.file.reopen()?;
        }
        if self.file.length() > 0 && self.file.length() + line.len() as u64 > self.max_bytes {
            #[expect(clippy::disallowed_methods, reason = "wharf created this file")]
            std::fs::rename(self.file.path(), with_suffix(self.file.path(), ".1"))?;
            self.file.reopen()?;
        }
        self.file.write(line)?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests look at what was written")]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_bounded_and_may_be_moved_away() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.jsonl");
        let mut log = LogFile::open(&path, 20).unwrap();
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap_or_default();
        for line in ["one line\n", "two line\n", "three line\n"] {
            log.write_all(line.as_bytes()).unwrap();
        }
        assert_eq!(
            (read("access.jsonl.1").as_str(), read("access.jsonl").as_str()),
            ("one line\ntwo line\n", "three line\n")
        );
        std::fs::rename(&path, folder.path().join("moved")).unwrap();
        log.write_all(b"four\n").unwrap();
        assert_eq!((read("moved").as_str(), read("access.jsonl").as_str()), ("three line\n", "four\n"));
        drop(log);
        LogFile::open(&path, 20).unwrap().write_all(b"five\n").unwrap();
        assert_eq!(read("access.jsonl"), "four\nfive\n", "earlier lines stay");
    }
    #[test]
    fn lines_that_cannot_be_written_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.jsonl");
        // A directory of this name keeps the full file from being renamed.
        let aside = folder.path().join("access.jsonl.1");
        std::fs::create_dir(&aside).unwrap();
        let unwritten = Arc::default();
        let mut log = Counting::new(LogFile::open(&path, 10).unwrap(), &unwritten);
        for line in ["one line\n", "two line\n", "three line\n"] {
            log.write_all(line.as_bytes()).unwrap();
        }
        assert_eq!(unwritten.load(Ordering::Relaxed), 2);
        std::fs::remove_dir(&aside).unwrap();
        log.write_all(b"four\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "four\n");
        assert_eq!(std::fs::read_to_string(&aside).unwrap(), "one line\n");
        let full = Path::new("/dev/full");
        let file = Appended::new(full, appended::open(full).unwrap()).unwrap();
        let full = LogFile { file, max_bytes: 10 };
        Counting::new(full, &unwritten).write_all(b"five\n").unwrap();
        assert_eq!(unwritten.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn the_operator_is_told_of_lost_lines_at_a_limited_rate() {
        let (mut log, now) = (Counting::new(io::sink(), &Arc::default()), Instant::now());
        assert_eq!(log.lose(now), Some(1));
        assert_eq!((0..300).filter_map(|_| log.lose(now)).count(), 0);
        assert_eq!(log.lose(now + WARNING_INTERVAL), Some(301));
    }
}
