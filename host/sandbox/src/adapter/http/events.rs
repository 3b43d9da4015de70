//! Takes an event stream (`text/event-stream`) apart.

/// Collects the pieces of a stream and returns the data of its events.
#[derive(Default)]
pub(super) struct Events {
    /// The line that is not complete yet.
    line: Vec<u8>,
    /// The data of the event that is not complete yet.
    data: Vec<u8>,
    has_data: bool,
    /// Whether the last byte was a carriage return, after which a line feed belongs to the same line end.
    after_return: bool,
}

/// An event is larger than it may be.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

impl Events {
    /// Returns how many bytes it holds.
    pub(super) fn len(&self) -> usize {
        self.line.len() + self.data.len()
    }

    /// Takes a piece of the stream. `most`: the maximum size of an event. `each` gets the data of each event that is complete now.
    pub(super) fn take(&mut self, piece: &[u8], most: usize, each: &mut Vec<Vec<u8>>) -> Result<(), TooLarge> {
        for &byte in piece {
            let after_return = std::mem::replace(&mut self.after_return, byte == b'\r');
            match byte {
                b'\n' if after_return => {}
                b'\n' | b'\r' => self.end_of_line(each),
                _ => {
                    if self.len() >= most {
                        return Err(TooLarge);
                    }
                    self.line.push(byte);
                }
            }
        }
        Ok(())
    }

    fn end_of_line(&mut self, each: &mut Vec<Vec<u8>>) {
        if self.line.is_empty() {
            let data = std::mem::take(&mut self.data);
            if std::mem::take(&mut self.has_data) && !data.is_empty() {
                each.push(data);
            }
            return;
        }
        // Names of events, their ids and comments mean nothing here.
        if let Some(value) = self.line.strip_prefix(b"data:") {
            if std::mem::replace(&mut self.has_data, true) {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(value.strip_prefix(b" ").unwrap_or(value));
        }
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(stream: &[u8], piece: usize) -> Result<Vec<String>, TooLarge> {
        let (mut events, mut found) = (Events::default(), Vec::new());
        for piece in stream.chunks(piece) {
            events.take(piece, 20, &mut found)?;
        }
        Ok(found.into_iter().map(|data| String::from_utf8(data).unwrap()).collect())
    }

    #[test]
    fn streams_are_taken_apart_wherever_they_are_cut() {
        for (stream, expected) in [
            (&b"data: a\n\n"[..], &["a"][..]),
            (b": hi\nevent: message\ndata:a\r\ndata: b\r\n\r\ndata: c\r\rdata: d\n", &["a\nb", "c"]),
            (b"id: 1\ndata:\n\nretry: 5\n\n\n", &[]),
        ] {
            for piece in 1..stream.len() {
                assert_eq!(events(stream, piece).unwrap(), expected, "{piece}");
            }
        }
    }

    #[test]
    fn large_events_are_refused() {
        assert_eq!(events(b"data: 0123456789\ndata: 0123456789\n\n", 4), Err(TooLarge));
        assert_eq!(events(&[b'x'; 30], 7), Err(TooLarge));
        assert!(events(&b"data: 0123456789\n\n".repeat(9), 7).is_ok());
    }
}
