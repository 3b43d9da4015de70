//! Writes Server-Sent Events.

use std::{fmt::Write, time::Duration};

use bytes::Bytes;

/// A comment, which keeps a silent stream alive.
pub const ALIVE: Bytes = Bytes::from_static(b": alive\n\n");

/// The fields of an event; those that are `None` are left out.
#[derive(Debug, Clone, Copy, Default)]
pub struct Event<'a> {
    /// The id from which the client can resume.
    pub id: Option<EventId<'a>>,
    /// The name of the event.
    pub name: Option<&'static str>,
    /// After how long the client is to come back when the stream has ended.
    pub retry: Option<Duration>,
    /// One line.
    pub data: Option<&'a str>,
}

/// The id of an event, which the client sends back when it resumes.
#[derive(Debug, Clone, Copy)]
pub struct EventId<'a> {
    pub stream: u64,
    pub number: u64,
    /// What the stream is for, without line breaks. It is known even when the stream is not any more.
    pub kind: &'a str,
}

impl Event<'_> {
    /// Returns the bytes of the event.
    pub fn bytes(self) -> Bytes {
        /// The longest fields other than the data and the kind: two numbers of 20 digits, a name and a time.
        const MAX_OTHER_BYTES: usize = 128;
        let mut text = String::with_capacity(
            MAX_OTHER_BYTES + self.id.map_or(0, |id| id.kind.len()) + self.data.map_or(0, str::len),
        );
        // Writing to a string does not fail.
        if let Some(EventId { stream, number, kind }) = self.id {
            let _ = writeln!(text, "id: {stream}-{number}-{kind}");
        }
        if let Some(name) = self.name {
            let _ = writeln!(text, "event: {name}");
        }
        if let Some(retry) = self.retry {
            let _ = writeln!(text, "retry: {}", retry.as_millis());
        }
        if let Some(data) = self.data {
            text.extend(["data: ", data, "\n"]);
        }
        text.push('\n');
        text.into()
    }
}

/// Returns the event of a message.
pub fn message(text: &str) -> Bytes {
    Event { name: Some("message"), data: Some(text), ..Event::default() }.bytes()
}

/// Returns a comment, which clients skip and people see. `text`: one line.
pub fn comment(text: &str) -> Bytes {
    format!(": {text}\n\n").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_the_fields_that_are_set() {
        let retry = Some(Duration::from_secs(1));
        let id = Some(EventId { stream: 3, number: 4, kind: "s" });
        for (event, expected) in [
            (Event { retry, ..Event::default() }, "retry: 1000\n\n"),
            (Event { id, retry, data: Some(""), ..Event::default() }, "id: 3-4-s\nretry: 1000\ndata: \n\n"),
            (
                Event { id, name: Some("message"), data: Some("{}"), retry: None },
                "id: 3-4-s\nevent: message\ndata: {}\n\n",
            ),
        ] {
            assert_eq!(event.bytes(), expected);
        }
        assert_eq!(message("{}"), "event: message\ndata: {}\n\n");
        let id = Some(EventId { stream: u64::MAX, number: u64::MAX, kind: "" });
        let longest = Event { id, name: Some("endpoint"), retry: Some(Duration::MAX), data: None };
        assert!(longest.bytes().len() < 128);
    }
}
