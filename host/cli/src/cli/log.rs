//! The log on stderr. A separate thread writes it, so that nothing blocks when stderr is not read. Each event is one line, whatever text
//! guests and clients put into it.

use std::{
    io::{self, IsTerminal, Write},
    time::Duration,
};

use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::{EnvFilter, fmt::MakeWriter};

use super::arguments::LogFormat;
use wharf_base::text::{escaped_json, is_deceptive};

/// The number of lines that may wait to be written. Further ones are dropped.
const MAX_BUFFERED_LINES: usize = 1024;
/// How long the process waits for these lines to be written when it exits.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Starts the log. If stderr is not read, lines are dropped, and nothing blocks. The guard writes the remaining lines when it is
/// dropped.
pub fn start(format: LogFormat, default: &str) -> WorkerGuard {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    let (writer, guard) =
        NonBlockingBuilder::default().lossy(true).buffered_lines_limit(MAX_BUFFERED_LINES).finish(io::stderr());
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(Lines { writer, format });
    match format {
        LogFormat::Text => builder.with_ansi(has_colours()).with_target(false).init(),
        LogFormat::Json => builder.json().init(),
    }
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

/// A writer that makes each event one line.
#[derive(Clone)]
struct Lines {
    writer: NonBlocking,
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
        self.writer.write_all(one_line(bytes, self.format).as_bytes())?;
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
