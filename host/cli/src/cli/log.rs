//! The log on stderr. A separate thread writes it, so that nothing blocks when stderr is not read. Each event is one line, whatever text
//! guests and clients put into it.

use std::{
    io::{self, IsTerminal, Write},
    sync::{Arc, OnceLock},
    time::Duration,
};

use parking_lot::Mutex;
use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::{EnvFilter, Layer, fmt::MakeWriter, layer::SubscriberExt, util::SubscriberInitExt};

use super::{arguments::LogFormat, log_pace::Pace};
use wharf_base::text::{escaped_json, is_deceptive};

/// The number of lines that may wait to be written, and of their bytes. Further lines are left out.
const MAX_BUFFERED_LINES: usize = 1024;
const MAX_BUFFERED_BYTES: usize = 1 << 20;
/// How long the process waits for these lines to be written when it exits.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

static STARTED: OnceLock<LogFormat> = OnceLock::new();

/// Returns the options with which another wharf logs in the same format.
pub fn options() -> &'static [&'static str] {
    if STARTED.get() == Some(&LogFormat::Json) { &["--log-format", "json"] } else { &[] }
}

/// Starts the log. If stderr is not read, lines are left out, and nothing blocks; the next line that is written says how many. The guard
/// writes the remaining lines when it is dropped.
pub fn start(format: LogFormat, default: &str) -> WorkerGuard {
    STARTED.set(format).ok();
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    let waiting = Arc::new(Waiting::default());
    let out = Out { out: io::stderr(), waiting: Arc::clone(&waiting), format };
    let (writer, guard) =
        NonBlockingBuilder::default().lossy(true).buffered_lines_limit(MAX_BUFFERED_LINES).finish(out);
    let notices = Arc::clone(&waiting);
    let pace = Pace::new(move |notice| notices.tell(notice));
    let layer = tracing_subscriber::fmt::layer().with_writer(Lines { writer, waiting, format });
    let layer = match format {
        LogFormat::Text => layer.with_ansi(has_colours()).with_target(false).boxed(),
        LogFormat::Json => layer.json().boxed(),
    };
    tracing_subscriber::registry().with(layer.with_filter(pace).with_filter(filter)).init();
    guard
}

/// Whether the log may have colours: a terminal shows it, and the person has not turned colours off with NO_COLOR.
fn has_colours() -> bool {
    io::stderr().is_terminal() && !std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

/// Writes the remaining lines of the log, unless stderr is not read.
pub fn finish(log: WorkerGuard) {
    let (written, wait) = std::sync::mpsc::channel();
    #[expect(clippy::disallowed_methods, reason = "this function waits for the thread, with a timeout")]
    std::thread::spawn(move || {
        drop(log);
        // Sending fails if writing took longer than the timeout.
        written.send(()).ok();
    });
    wait.recv_timeout(FLUSH_TIMEOUT).ok();
}

/// The lines that wait to be written, and what was left out.
#[derive(Default)]
struct Waiting(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    lines: usize,
    bytes: usize,
    /// How many lines were left out since the last one was written.
    left_out: u64,
    /// What is written after the next line.
    notices: Vec<String>,
}

impl Waiting {
    /// Counts a line that is to wait. Returns false if it is left out.
    fn add(&self, bytes: usize) -> bool {
        let mut counts = self.0.lock();
        let fits = counts.lines < MAX_BUFFERED_LINES && counts.bytes + bytes <= MAX_BUFFERED_BYTES;
        if fits {
            counts.lines += 1;
            counts.bytes += bytes;
        } else {
            counts.left_out += 1;
        }
        fits
    }

    /// Has this written after the next line. If nobody reads the log, notices are left out like lines.
    fn tell(&self, notice: String) {
        let mut counts = self.0.lock();
        if counts.notices.len() < MAX_BUFFERED_LINES {
            counts.notices.push(notice);
        } else {
            counts.left_out += 1;
        }
    }

    /// Returns what is to be written now.
    fn told(&self) -> Vec<String> {
        let mut counts = self.0.lock();
        let mut told = std::mem::take(&mut counts.notices);
        let left_out = std::mem::take(&mut counts.left_out);
        if left_out > 0 {
            told.push(format!("{left_out} lines of the log were left out here, since stderr was not read"));
        }
        told
    }

    /// Counts a line as written.
    fn written(&self, bytes: usize) {
        let mut counts = self.0.lock();
        counts.lines -= 1;
        counts.bytes -= bytes;
    }
}

/// Writes the lines that waited, on the thread of the log.
struct Out<W> {
    out: W,
    waiting: Arc<Waiting>,
    format: LogFormat,
}

impl<W: Write> Write for Out<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    /// Called once per line.
    fn write_all(&mut self, line: &[u8]) -> io::Result<()> {
        let written = self.out.write_all(line);
        self.waiting.written(line.len());
        for told in self.waiting.told() {
            match self.format {
                LogFormat::Text => writeln!(self.out, " WARN {told}")?,
                LogFormat::Json => writeln!(self.out, r#"{{"level":"WARN","fields":{{"message":"{told}"}}}}"#)?,
            }
        }
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A writer that makes each event one line.
#[derive(Clone)]
struct Lines {
    writer: NonBlocking,
    waiting: Arc<Waiting>,
    format: LogFormat,
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Write for Lines {
    /// Called once per event, with the whole text of the event.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let line = one_line(bytes, self.format);
        if self.waiting.add(line.len()) {
            self.writer.write_all(line.as_bytes())?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Formats an event as one line without deceptive characters. Escape sequences for colours stay, because they are the log's own: those
/// in text from guests were escaped before.
fn one_line(bytes: &[u8], format: LogFormat) -> String {
    let text = String::from_utf8_lossy(bytes);
    let body = text.strip_suffix('\n').unwrap_or(&text);
    let mut line = String::with_capacity(text.len());
    let mut rest = body.chars();
    while let Some(character) = rest.next() {
        if character == '\u{1b}' && is_colour(rest.as_str()) {
            line.push(character);
        } else if is_deceptive(character) && format == LogFormat::Json {
            line.push_str(&escaped_json(character.encode_utf8(&mut [0; 4])));
        } else if is_deceptive(character) {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
    line.push('\n');
    line
}

/// Whether a text after an escape character begins with the rest of a sequence that only sets a colour.
fn is_colour(text: &str) -> bool {
    text.strip_prefix('[').is_some_and(|rest| {
        let end = rest.find(|character: char| !character.is_ascii_digit() && character != ';');
        end.is_some_and(|end| rest.get(end..).is_some_and(|rest| rest.starts_with('m')))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_wait_are_few_and_short_and_what_is_left_out_is_told() {
        let line = vec![b'x'; 100 << 10];
        for (format, notice) in [(LogFormat::Text, " WARN 7 lines"), (LogFormat::Json, "\"message\":\"7 lines")] {
            let waiting = Arc::new(Waiting::default());
            assert_eq!((0..17).filter(|_| waiting.add(line.len())).count(), 10, "1 MiB");
            let mut out = Out { out: Vec::new(), waiting: Arc::clone(&waiting), format };
            for _ in 0..10 {
                out.write_all(&line).unwrap();
            }
            let told = String::from_utf8(out.out).unwrap().replace('x', "");
            assert!(told.contains(notice) && told.lines().count() == 1, "{told}");
            let counts = waiting.0.lock();
            assert_eq!((counts.lines, counts.bytes, counts.left_out), (0, 0, 0));
        }
        let waiting = Waiting::default();
        assert_eq!((0..5000).filter(|_| waiting.add(1)).count(), MAX_BUFFERED_LINES);
    }

    #[test]
    fn an_event_is_one_line() {
        for (event, text, json) in [
            ("a\n", "a\n", "a\n"),
            ("a\nINFO forged\n", "a\\nINFO forged\n", "a\\u000aINFO forged\n"),
            (
                "\u{1b}[32mINFO\u{1b}[0m a\u{1b}[2Jb\n",
                "\u{1b}[32mINFO\u{1b}[0m a\\u{1b}[2Jb\n",
                "\u{1b}[32mINFO\u{1b}[0m a\\u001b[2Jb\n",
            ),
            ("a\u{202e}\u{e0041}b", "a\\u{202e}\\u{e0041}b\n", "a\\u202e\\udb40\\udc41b\n"),
        ] {
            assert_eq!(one_line(event.as_bytes(), LogFormat::Text), text);
            assert_eq!(one_line(event.as_bytes(), LogFormat::Json), json);
        }
    }
}
