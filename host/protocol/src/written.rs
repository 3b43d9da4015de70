//! JSON text as it was written, in the memory of the message that it belongs to.

use std::{fmt, ops::Range, sync::Arc};

/// A piece of the text of a message. Clones share the memory of the whole message, so a piece is never copied, however long it is.
#[derive(Clone)]
pub struct Written {
    message: Arc<String>,
    at: Range<usize>,
}

impl Written {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        self.message.get(self.at.clone()).unwrap_or_default()
    }

    /// Returns a part of this text as a piece of its own. A text that is not part of this one is copied.
    pub fn piece(&self, part: &str) -> Self {
        let start = part.as_ptr().addr().wrapping_sub(self.message.as_ptr().addr());
        match start.checked_add(part.len()) {
            Some(end) if end <= self.message.len() => Self { message: Arc::clone(&self.message), at: start..end },
            _ => part.to_owned().into(),
        }
    }
}

impl From<String> for Written {
    fn from(text: String) -> Self {
        Self { at: 0..text.len(), message: Arc::new(text) }
    }
}

impl AsRef<str> for Written {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Debug for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_share_the_message() {
        let whole = Written::from("a message".to_owned());
        let piece = whole.piece(&whole.as_str()[2..]);
        assert_eq!(piece.as_str(), "message");
        assert!(Arc::ptr_eq(&piece.message, &whole.message));
        assert_eq!(piece.piece(&piece.as_str()[..4]).as_str(), "mess");
        for other in ["", "another", "a message"] {
            assert_eq!(whole.piece(other).as_str(), other);
        }
    }
}
