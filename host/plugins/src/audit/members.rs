//! Encodes the members of a line as JSON, without the enclosing braces.
//!
//! For any input, the result is a single line without characters that could deceive a terminal. A line is built for every call, so
//! members are written directly into the buffer that is queued.

use std::{borrow::Cow, io::Write, time::SystemTime};

use serde::Serialize;
use wharf_protocol::error::clip_to;

use wharf_base::text::{escaped_json, hex_digest};

/// The maximum number of characters of a text from a client or plugin.
const MAX_CHARS: usize = 1024;
/// The buffer capacity for a line, enough for most.
const TYPICAL_BYTES: usize = 768;

/// The members written so far.
pub struct Members(Vec<u8>);

impl Members {
    /// Begins a line about an event that happens now.
    pub fn of(event: &'static str) -> Self {
        let mut text = Vec::with_capacity(TYPICAL_BYTES);
        // Writing to memory cannot fail, here and below.
        write!(text, "\"time\":\"{}\"", humantime::format_rfc3339_millis(SystemTime::now())).unwrap_or_default();
        let mut members = Self(text);
        members.word("event", event);
        members
    }

    // Inlined because the names are constants at the call sites, so the copies compile to a few instructions.
    #[inline(always)]
    fn name(&mut self, name: &'static str) {
        self.0.extend_from_slice(b",\"");
        self.0.extend_from_slice(name.as_bytes());
        self.0.extend_from_slice(b"\":");
    }

    /// Adds a constant of wharf's own, which contains no characters that JSON has to escape.
    #[inline(always)]
    pub fn word(&mut self, name: &'static str, word: &'static str) {
        self.plain(name, word.as_bytes());
    }

    #[inline(always)]
    fn plain(&mut self, name: &'static str, text: &[u8]) {
        self.name(name);
        self.0.push(b'"');
        self.0.extend_from_slice(text);
        self.0.push(b'"');
    }

    /// Adds a text from a client or plugin, shortened to the maximum.
    pub fn text(&mut self, name: &'static str, text: &str) {
        let text = clipped(text);
        if text.bytes().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\')) {
            self.plain(name, text.as_bytes());
        } else {
            self.json(name, &text);
        }
    }

    pub fn number(&mut self, name: &'static str, number: u64) {
        self.json(name, &number);
    }

    /// Adds a digest, in hexadecimal digits.
    pub fn digest(&mut self, name: &'static str, digest: &[u8; 32]) {
        self.plain(name, &hex_digest(digest));
    }

    /// Adds any other value that can be encoded as JSON.
    pub fn json(&mut self, name: &'static str, value: &impl Serialize) {
        self.name(name);
        serde_json::to_writer(&mut self.0, value).unwrap_or_default();
    }

    /// Appends members that are JSON already, each preceded by a comma, and returns the result.
    pub fn and(mut self, more: &str) -> Vec<u8> {
        self.0.extend_from_slice(more.as_bytes());
        safe(self.0)
    }
}

/// Escapes all characters of a JSON text that could deceive a terminal or break the line.
fn safe(json: Vec<u8>) -> Vec<u8> {
    // `fold` looks at all bytes, without stopping early, so that the compiler can vectorize the loop.
    let plain = json.iter().fold(true, |plain, byte| plain & matches!(byte, b' '..=b'~'));
    if plain { json } else { escaped_json(&String::from_utf8_lossy(&json)).into_bytes() }
}

/// Shortens a text to `MAX_CHARS` characters.
pub fn clipped(text: &str) -> Cow<'_, str> {
    // A text has at most as many characters as bytes.
    if text.len() <= MAX_CHARS { Cow::Borrowed(text) } else { Cow::Owned(clip_to(text, MAX_CHARS)) }
}
