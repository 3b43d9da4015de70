//! Builds responses from results, which belong to one request or are shared by many. A shared result is not copied.

use std::sync::Arc;

use bytes::Bytes;
use wharf_protocol::{
    RpcError,
    message::{error_text, result_head, result_text},
};

use crate::client::context::Context;
use wharf_base::text::escaped;

/// The JSON of a result.
pub enum Encoded {
    Own(String),
    /// A result that many requests share, such as a page of a list, which is encoded once.
    Shared(Arc<str>),
}

impl Encoded {
    fn as_str(&self) -> &str {
        match self {
            Self::Own(result) => result,
            Self::Shared(result) => result,
        }
    }
}

/// The text of a response.
pub enum ResponseText {
    Whole(String),
    Framed { head: String, result: Encoded },
}

/// A result of at least this size is sent as a piece of its own. A smaller one is copied behind its head, so that there is one piece to write.
const MIN_FRAMED_BYTES: usize = 32 << 10;

impl ResponseText {
    pub fn of(ctx: &Context, answer: Result<Encoded, RpcError>) -> Self {
        match answer {
            Ok(Encoded::Own(result)) if result.len() < MIN_FRAMED_BYTES => Self::Whole(result_text(&ctx.id, &result)),
            Ok(result) => Self::Framed { head: result_head(&ctx.id), result },
            Err(error) => {
                tracing::debug!(code = error.code, "refused: {}", escaped(&error.message));
                Self::Whole(error_text(Some(&ctx.id), &error, ctx.encoder.revision))
            }
        }
    }

    pub fn into_string(self) -> String {
        match self {
            Self::Whole(text) => text,
            Self::Framed { mut head, result } => {
                let result = result.as_str();
                head.reserve_exact(result.len() + 1);
                head.push_str(result);
                head.push('}');
                head
            }
        }
    }

    /// How many bytes belong to this response alone.
    pub fn own_bytes(&self) -> usize {
        match self {
            Self::Whole(text) => text.len(),
            Self::Framed { head, result: Encoded::Own(result) } => head.len() + result.len() + 1,
            Self::Framed { head, result: Encoded::Shared(_) } => head.len(),
        }
    }

    /// Whether all its bytes belong to this response alone.
    pub fn is_own(&self) -> bool {
        matches!(self, Self::Whole(_) | Self::Framed { result: Encoded::Own(_), .. })
    }

    /// The text in pieces, none of which is copied.
    pub fn into_pieces(self) -> [Bytes; 3] {
        match self {
            Self::Whole(text) => [text.into(), Bytes::new(), Bytes::new()],
            Self::Framed { head, result } => {
                let result = match result {
                    Encoded::Own(result) => result.into(),
                    Encoded::Shared(result) => Bytes::from_owner(Shared(result)),
                };
                [head.into(), result, Bytes::from_static(b"}")]
            }
        }
    }
}

struct Shared(Arc<str>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use wharf_protocol::Id;

    use super::*;

    #[test]
    fn pieces_are_the_text() {
        let whole = result_text(&Id::number(7), r#"{"a":1}"#);
        for result in [|| Encoded::Shared(r#"{"a":1}"#.into()), || Encoded::Own(r#"{"a":1}"#.into())] {
            let framed = || ResponseText::Framed { head: result_head(&Id::number(7)), result: result() };
            assert_eq!(framed().into_string(), whole);
            assert_eq!(framed().into_pieces().concat(), whole.as_bytes());
        }
    }
}
