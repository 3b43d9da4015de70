//! Builds responses from results, which belong to one request or are shared by many. A shared result is not copied.

use bytes::Bytes;
use wharf_protocol::{
    Id, RpcError,
    message::{SharedResult, error_text, result_head, result_text},
};

use crate::client::context::Context;
use wharf_base::text::escaped;

/// The JSON of a result.
pub enum Encoded {
    Own(String),
    /// A result that many requests share, such as a page of a list, which is encoded once.
    Shared(SharedResult),
}

/// The text of a response.
pub enum ResponseText {
    Whole(String),
    /// The head and the rest, which is large. The brace that closes the response is part of the rest, because the HTTP library writes what
    /// follows a large piece separately.
    Framed {
        head: String,
        end: End,
    },
}

/// A result with the brace that closes its response.
pub enum End {
    Own(String),
    Shared(SharedResult),
}

impl End {
    fn as_str(&self) -> &str {
        match self {
            Self::Own(end) => end,
            Self::Shared(result) => result.end(),
        }
    }
}

/// A result of at least this size is sent as a piece of its own. A smaller one is copied behind its head, so that there is one piece to write.
const MIN_FRAMED_BYTES: usize = 32 << 10;

impl ResponseText {
    pub fn of(ctx: &Context, answer: Result<Encoded, RpcError>) -> Self {
        match answer {
            Ok(result) => Self::with(&ctx.id, result),
            Err(error) => {
                tracing::debug!(code = error.code, "refused: {}", escaped(&error.message));
                Self::Whole(ctx.write(0, || error_text(Some(&ctx.id), &error, ctx.encoder.revision)))
            }
        }
    }

    fn with(id: &Id, result: Encoded) -> Self {
        let end = match result {
            Encoded::Own(result) if result.len() < MIN_FRAMED_BYTES => return Self::Whole(result_text(id, &result)),
            Encoded::Own(mut result) => {
                result.push('}');
                End::Own(result)
            }
            Encoded::Shared(result) => End::Shared(result),
        };
        Self::Framed { head: result_head(id), end }
    }

    pub fn into_string(self) -> String {
        match self {
            Self::Whole(text) => text,
            Self::Framed { mut head, end } => {
                let end = end.as_str();
                head.reserve_exact(end.len());
                head.push_str(end);
                head
            }
        }
    }

    /// How many bytes belong to this response alone.
    pub fn own_bytes(&self) -> usize {
        match self {
            Self::Whole(text) => text.len(),
            Self::Framed { head, end: End::Own(end) } => head.len() + end.len(),
            Self::Framed { head, end: End::Shared(_) } => head.len(),
        }
    }

    /// Whether it is a page of a list that is sent as a piece of its own.
    pub fn is_long_list(&self) -> bool {
        matches!(self, Self::Framed { end: End::Shared(page), .. } if page.end().len() >= MIN_FRAMED_BYTES)
    }

    /// Whether all its bytes belong to this response alone.
    pub fn is_own(&self) -> bool {
        matches!(self, Self::Whole(_) | Self::Framed { end: End::Own(_), .. })
    }

    /// The text in pieces, none of which is copied.
    pub fn into_pieces(self) -> [Bytes; 2] {
        match self {
            Self::Whole(text) => [text.into(), Bytes::new()],
            Self::Framed { head, end } => {
                let end = match end {
                    End::Own(end) => end.into(),
                    End::Shared(result) => Bytes::from_owner(Shared(result)),
                };
                [head.into(), end]
            }
        }
    }
}

struct Shared(SharedResult);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        self.0.end().as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use wharf_protocol::Id;

    use super::*;

    #[test]
    fn pieces_are_the_text() {
        let result = format!("{{\"a\":\"{}\"}}", "x".repeat(MIN_FRAMED_BYTES));
        let whole = result_text(&Id::number(7), &result);
        for encoded in [Encoded::Shared as fn(SharedResult) -> Encoded, |result| {
            Encoded::Own(result.end().strip_suffix('}').unwrap().into())
        }] {
            let framed = || ResponseText::with(&Id::number(7), encoded(SharedResult::new(result.clone())));
            assert!(matches!(framed(), ResponseText::Framed { .. }));
            assert_eq!(framed().into_string(), whole);
            assert_eq!(framed().into_pieces().concat(), whole.as_bytes());
            assert_eq!(framed().is_long_list(), !framed().is_own());
        }
        let short = SharedResult::new("{}".to_owned());
        assert!(!ResponseText::with(&Id::number(7), Encoded::Shared(short)).is_long_list());
        let small = ResponseText::with(&Id::number(7), Encoded::Own("{}".into()));
        assert!(matches!(small, ResponseText::Whole(text) if text == result_text(&Id::number(7), "{}")));
    }
}
