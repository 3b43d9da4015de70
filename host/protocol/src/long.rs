//! Finds the id of a request that is too long to be parsed, so that the client gets an error response with that id. The message is scanned
//! as it arrives, and only its id is stored.

use crate::message::Id;

/// The maximum length of a key or an id that is examined, in bytes of JSON.
const MAX_TEXT_BYTES: usize = 256;

/// Searches a JSON object, piece by piece, for the id of a request.
#[derive(Debug, Default)]
pub struct IdSearch {
    depth: u32,
    in_string: bool,
    escaped: bool,
    /// The bytes at the top level since the last comma, colon or bracket.
    text: Vec<u8>,
    /// Whether `text` was longer than [`MAX_TEXT_BYTES`], so that its end is missing.
    cut: bool,
    after: Key,
    id: Option<Id>,
    has_method: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum Key {
    Id,
    Method,
    #[default]
    Other,
}

impl IdSearch {
    /// Scans the next piece.
    pub fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.take(*byte);
        }
    }

    /// Returns the id, if the bytes so far are those of a request with one.
    pub fn id(self) -> Option<Id> {
        self.id.filter(|_| self.has_method)
    }

    fn take(&mut self, byte: u8) {
        if self.in_string {
            self.push(byte);
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                self.push(byte);
            }
            b'{' | b'[' => {
                self.depth = self.depth.saturating_add(1);
                self.clear();
            }
            b'}' | b']' => {
                self.end();
                self.depth = self.depth.saturating_sub(1);
            }
            b',' => self.end(),
            b':' if self.depth == 1 => {
                self.after = match &*self.text {
                    b"\"id\"" => Key::Id,
                    b"\"method\"" => Key::Method,
                    _ => Key::Other,
                };
                self.clear();
            }
            b' ' | b'\t' | b'\r' | b'\n' => {}
            _ => self.push(byte),
        }
    }

    fn push(&mut self, byte: u8) {
        if self.depth != 1 {
            return;
        }
        if self.text.len() < MAX_TEXT_BYTES { self.text.push(byte) } else { self.cut = true }
    }

    fn clear(&mut self) {
        self.text.clear();
        self.cut = false;
    }

    /// Evaluates a member that ends here.
    fn end(&mut self) {
        if self.depth == 1 {
            match self.after {
                Key::Id if !self.cut => self.id = std::str::from_utf8(&self.text).ok().and_then(Id::from_raw),
                Key::Method => self.has_method = true,
                _ => {}
            }
            self.after = Key::Other;
        }
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_is_found_wherever_it_stands() {
        let long = "x".repeat(1000);
        for (text, expected) in [
            (r#"{"jsonrpc":"2.0","id":7,"method":"m","params":{"id":1}}"#.to_owned(), Some(Id::number(7))),
            (
                format!(r#"{{"method":"m","params":{{"a":"{long}\"id\":3"}},"jsonrpc":"2.0","id": "a\"b" }}"#),
                Id::from_raw(r#""a\"b""#),
            ),
            (format!(r#"{{"method":"m","params":["{long}",{{"id":1}}]}}"#), None),
            (r#"{"id":7,"result":{}}"#.to_owned(), None),
            (format!(r#"{{"id":"{long}","method":"m"}}"#), None),
            (r#"[{"id":7,"method":"m"}]"#.to_owned(), None),
            (r#"{"method":"m","id":7"#.to_owned(), None),
            ("nonsense".to_owned(), None),
        ] {
            for size in [1, 3, text.len()] {
                let mut search = IdSearch::default();
                text.as_bytes().chunks(size).for_each(|piece| search.feed(piece));
                assert_eq!(search.id(), expected, "{text}");
            }
        }
    }
}
