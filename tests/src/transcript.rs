//! What a test sent to wharf, what it received, and what wharf logged, in order. It is printed if the test fails.

use std::{
    collections::VecDeque,
    fmt::{self, Write as _},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// The number of bytes of one entry that are kept.
const ENTRY_BYTES: usize = 2 << 10;
/// The number of bytes of all entries that are kept. The oldest entries are dropped first.
const TOTAL_BYTES: usize = 64 << 10;

/// Printed when it is dropped by a failing test.
#[derive(Default)]
pub struct Transcript {
    entries: Arc<Mutex<Entries>>,
}

struct Entries {
    began: Instant,
    kept: VecDeque<Entry>,
    bytes: usize,
    dropped: usize,
    connections: usize,
}

struct Entry {
    after: Duration,
    /// The number of the HTTP connection, from 1. A pipe has none.
    connection: Option<usize>,
    sign: char,
    text: String,
}

/// Adds entries to a transcript. The entries of a default recorder belong to no transcript and are never printed.
#[derive(Clone, Default)]
pub struct Recorder {
    entries: Arc<Mutex<Entries>>,
    connection: Option<usize>,
}

impl Default for Entries {
    fn default() -> Self {
        Self { began: Instant::now(), kept: VecDeque::new(), bytes: 0, dropped: 0, connections: 0 }
    }
}

impl Transcript {
    /// Returns a recorder for a pipe or a log.
    pub fn recorder(&self) -> Recorder {
        Recorder { entries: Arc::clone(&self.entries), connection: None }
    }

    /// Returns a recorder for a new connection, whose entries have its number.
    pub fn connection(&self) -> Recorder {
        let mut entries = lock(&self.entries);
        entries.connections += 1;
        Recorder { entries: Arc::clone(&self.entries), connection: Some(entries.connections) }
    }
}

impl Recorder {
    pub fn sent(&self, bytes: &[u8]) {
        self.add('>', bytes);
    }

    pub fn received(&self, bytes: &[u8]) {
        self.add('<', bytes);
    }

    pub fn logged(&self, bytes: &[u8]) {
        self.add('!', bytes);
    }

    fn add(&self, sign: char, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let kept = &bytes[..bytes.len().min(ENTRY_BYTES)];
        let mut text = String::from_utf8_lossy(kept).into_owned();
        if kept.len() < bytes.len() {
            let _ = write!(text, "... ({} bytes)", bytes.len());
        }
        let mut entries = lock(&self.entries);
        let after = entries.began.elapsed();
        entries.bytes += text.len();
        entries.kept.push_back(Entry { after, connection: self.connection, sign, text });
        while entries.bytes > TOTAL_BYTES
            && let Some(oldest) = entries.kept.pop_front()
        {
            entries.bytes -= oldest.text.len();
            entries.dropped += 1;
        }
    }
}

/// Locks also what a panic has poisoned: this code runs while a test fails.
fn lock(entries: &Mutex<Entries>) -> MutexGuard<'_, Entries> {
    entries.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Transcript {
    fn drop(&mut self) {
        if std::thread::panicking() && !lock(&self.entries).kept.is_empty() {
            eprintln!("{self}");
        }
    }
}

impl fmt::Display for Transcript {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = lock(&self.entries);
        writeln!(out, "transcript: > sent, < received, ! logged; seconds since the start; # is the HTTP connection")?;
        if entries.dropped > 0 {
            writeln!(out, "({} earlier entries were dropped)", entries.dropped)?;
        }
        for Entry { after, connection, sign, text } in &entries.kept {
            write!(out, "{:8.3} ", after.as_secs_f64())?;
            if let Some(number) = connection {
                write!(out, "#{number} ")?;
            }
            write!(out, "{sign} ")?;
            for letter in text.trim_end().chars() {
                match letter {
                    '\r' => {}
                    '\n' => out.write_str("\n           ")?,
                    letter if letter.is_control() => write!(out, "{}", letter.escape_default())?,
                    letter => out.write_char(letter)?,
                }
            }
            out.write_char('\n')?;
        }
        Ok(())
    }
}

impl fmt::Debug for Transcript {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Transcript").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_are_kept_in_order_and_bounded() {
        let transcript = Transcript::default();
        let (pipe, first, second) = (transcript.recorder(), transcript.connection(), transcript.connection());
        pipe.sent(b"{\"id\":1}\n");
        pipe.logged(b"INFO \x1b[0mready\n");
        first.sent(b"GET / HTTP/1.1\r\n\r\n");
        second.received(b"");
        second.received("x".repeat(ENTRY_BYTES + 1).as_bytes());
        let text = transcript.to_string();
        let places: Vec<_> = [" > {\"id\":1}\n", " ! INFO \\u{1b}[0mready\n", " #1 > GET / HTTP/1.1\n", " #2 < x"]
            .map(|part| text.find(part).unwrap_or_else(|| panic!("no {part:?} in {text}")))
            .to_vec();
        assert!(places.is_sorted(), "{text}");
        assert!(text.contains(&format!("xxx... ({} bytes)\n", ENTRY_BYTES + 1)) && !text.contains("dropped"), "{text}");
        for _ in 0..TOTAL_BYTES / ENTRY_BYTES {
            pipe.received(&[b'y'; ENTRY_BYTES]);
        }
        let text = transcript.to_string();
        assert!(text.contains("(4 earlier entries were dropped)\n") && !text.contains("GET"), "{text}");
    }
}
