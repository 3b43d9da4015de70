//! Writes the members of a line, one after the other, as JSON without the braces around it.
//!
//! Whatever is put into them, the text is one line and holds no character that could deceive a terminal. There is one for every
//! call, so they are written straight into the memory in which they wait.

use std::{borrow::Cow, io::Write, time::SystemTime};

use serde::Serialize;
use wharf_protocol::error::clip_to;

use crate::base::text::{escaped_json, hex_digest};

/// The most characters of one text of a client or plugin.
const MAX_CHARS: usize = 1024;
/// How long most lines are at most.
const USUAL_BYTES: usize = 768;

/// The members so far.
pub struct Members(Vec<u8>);

impl Members {
    /// Begins a line about this event, which is now.
    pub fn of(event: &'static str) -> Self {
        let mut text = Vec::with_capacity(USUAL_BYTES);
        // Memory takes whatever is written to it, here and below.
        write!(text, "\"time\":\"{}\"", humantime::format_rfc3339_millis(SystemTime::now())).unwrap_or_default();
        let mut members = Self(text);
        members.word("event", event);
        members
    }

    // The names are known where these are called, so that they become a few instructions there.
    #[inline(always)]
    fn name(&mut self, name: &'static str) {
        self.0.extend_from_slice(b",\"");
        self.0.extend_from_slice(name.as_bytes());
        self.0.extend_from_slice(b"\":");
    }

    /// Adds a word of wharf's own, which has no character that JSON would have to escape.
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

    /// Adds a text of somebody else, as much of it as a line may hold.
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

    /// Adds anything else that JSON can hold.
    pub fn json(&mut self, name: &'static str, value: &impl Serialize) {
        self.name(name);
        serde_json::to_writer(&mut self.0, value).unwrap_or_default();
    }

    /// Ends with members that are JSON already, each with a comma before it.
    pub fn and(mut self, more: &str) -> Vec<u8> {
        self.0.extend_from_slice(more.as_bytes());
        safe(self.0)
    }
}

/// JSON on one line, without characters that could deceive a terminal.
fn safe(json: Vec<u8>) -> Vec<u8> {
    // Looks at all bytes whatever it finds, which is many at a time.
    let plain = json.iter().fold(true, |plain, byte| plain & matches!(byte, b' '..=b'~'));
    if plain { json } else { escaped_json(&String::from_utf8_lossy(&json)).into_bytes() }
}

pub fn clipped(text: &str) -> Cow<'_, str> {
    // A text of so many bytes has no more characters.
    if text.len() <= MAX_CHARS { Cow::Borrowed(text) } else { Cow::Owned(clip_to(text, MAX_CHARS)) }
}
