//! Bodies of HTTP messages. Those of requests are read as a whole within bounds of size and time, those of responses are
//! written in pieces.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use http_body::{Frame, SizeHint};
use wharf_protocol::{Id, RpcError, long::IdSearch};

use super::{connections::Busy, headers::text, listens::Listen, refused::Refused};
use crate::methods::response::ResponseText;
use wharf_base::ledger::{Charge, Full, Incoming, message_bytes};

/// How long a client may take to send a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// The largest piece of an answer that is handed to the HTTP library at once. Larger pieces take fewer writes: with these, 1.05 to 1.16
/// times as many lists of 1000 tools (306 KiB) are sent per second as with pieces of 64 KiB.
const MAX_PIECE_BYTES: usize = 512 * 1024;
/// The end of a large answer, up to this size, is copied, so that an answer with only this much left to write does not hold all of its
/// memory. Operating systems buffer so much for a client that does not read that this is the usual case.
const MAX_COPIED_TAIL_BYTES: usize = 512 * 1024;

/// The resources that are held for an answer until it is sent.
#[derive(Default)]
pub struct Hold {
    pub listen: Option<Listen>,
    pub charge: Option<Charge>,
    pub busy: Option<Busy>,
}

/// A response body that is handed over in pieces as its client reads. The request counts as under way until this is dropped.
pub struct Pieces {
    left: [Bytes; 2],
    /// Whether the tail is still to be copied. The tail of a text that many answers share is not copied, since the
    /// text stays in memory anyway.
    copy_tail: bool,
    _hold: Hold,
}

impl Pieces {
    pub fn new(text: ResponseText, hold: Hold) -> Self {
        Self { copy_tail: text.is_own(), left: text.into_pieces(), _hold: hold }
    }
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let copy_tail = self.copy_tail;
        let Some(left) = self.left.iter_mut().find(|piece| !piece.is_empty()) else { return Poll::Ready(None) };
        let next = left.split_to(left.len().min(MAX_PIECE_BYTES));
        if copy_tail && !left.is_empty() && left.len() <= MAX_COPIED_TAIL_BYTES {
            *left = Bytes::copy_from_slice(left);
            self.copy_tail = false;
        }
        Poll::Ready(Some(Ok(Frame::data(next))))
    }

    fn is_end_stream(&self) -> bool {
        self.left.iter().all(Bytes::is_empty)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left.iter().map(|piece| piece.len() as u64).sum())
    }
}

/// The most memory that is allocated for a body before it arrives.
const MAX_PREALLOCATED_BYTES: usize = 2 << 20;

/// How much of a refused body is read and discarded, and how long each piece of it may take. The body is read because a client whose
/// connection closes while it still sends does not read the answer.
const MAX_DRAINED_BYTES: usize = 64 << 20;
const NEXT_PIECE_TIMEOUT: Duration = Duration::from_secs(1);
/// The maximum number of bytes that are read of the body of a client that is not allowed to use the server.
const MAX_PEEKED_BYTES: usize = 64 << 10;

enum BodyError {
    TooLarge,
    Broken,
    Full(Full),
}

/// Reads the body of a POST, which must be JSON of at most `limit` bytes. Returns it with the charge for it.
pub async fn read_message(
    headers: &HeaderMap,
    mut body: Body,
    limit: usize,
    incoming: Incoming<'_>,
) -> Result<(Vec<u8>, Charge), Refused> {
    let mut search = IdSearch::default();
    let content_type = text(headers, header::CONTENT_TYPE).unwrap_or_default();
    let is_json = content_type.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json");
    let refused = if is_json {
        let read = read_body(&mut body, limit, incoming, &mut search);
        match tokio::time::timeout(BODY_TIMEOUT, read).await.unwrap_or(Err(BodyError::Broken)) {
            Ok(read) => return Ok(read),
            Err(refused) => Some(refused),
        }
    } else {
        None
    };
    if !matches!(refused, Some(BodyError::Broken)) {
        // Whether the rest arrives makes no difference to the answer.
        tokio::time::timeout(BODY_TIMEOUT, drain(&mut body, &mut search, MAX_DRAINED_BYTES)).await.ok();
    }
    let id = search.id();
    Err(match refused {
        None => Refused::plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json"),
        Some(BodyError::TooLarge) => {
            let error = RpcError::invalid_request(format!("the message is longer than {limit} bytes"));
            Refused::of_id(StatusCode::PAYLOAD_TOO_LARGE, id.as_ref(), &error)
        }
        Some(BodyError::Broken) => {
            Refused::plain(StatusCode::BAD_REQUEST, "the body did not arrive completely, or not in time")
        }
        Some(BodyError::Full(full)) => Refused::full(&full, id.as_ref()),
    })
}

async fn next_piece(body: &mut Body) -> Result<Option<Bytes>, BodyError> {
    while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await {
        if let Ok(data) = frame.map_err(|_| BodyError::Broken)?.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

/// Returns the id of the message in the body of a refused request, if it is found soon. Nothing else of the body is stored.
pub async fn peek_id(mut body: Body) -> Option<Id> {
    let mut search = IdSearch::default();
    if body.size_hint().lower() > MAX_PEEKED_BYTES as u64 {
        return None;
    }
    tokio::time::timeout(NEXT_PIECE_TIMEOUT, drain(&mut body, &mut search, MAX_PEEKED_BYTES)).await.ok();
    search.id()
}

/// Reads and discards the rest of a body, up to about `left` bytes, and searches it for the id of its message.
async fn drain(body: &mut Body, search: &mut IdSearch, mut left: usize) {
    while let Ok(Ok(Some(data))) = tokio::time::timeout(NEXT_PIECE_TIMEOUT, next_piece(body)).await {
        search.feed(&data);
        left = left.saturating_sub(data.len());
        if left == 0 {
            return;
        }
    }
}

async fn read_body(
    body: &mut Body,
    limit: usize,
    mut incoming: Incoming<'_>,
    search: &mut IdSearch,
) -> Result<(Vec<u8>, Charge), BodyError> {
    if body.size_hint().lower() > limit as u64 {
        return Err(BodyError::TooLarge);
    }
    // Space for a length that is only claimed costs little, since the system provides its pages when they are written to.
    let claimed = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    let mut bytes = Vec::with_capacity(claimed.min(MAX_PREALLOCATED_BYTES));
    while let Some(data) = next_piece(body).await? {
        let read = bytes.len() + data.len();
        // The last piece is charged below, together with what handling the message takes.
        let refused = if read > limit {
            Some(BodyError::TooLarge)
        } else if read < claimed || claimed == 0 {
            incoming.cover(read).err().map(BodyError::Full)
        } else {
            None
        };
        if let Some(refused) = refused {
            search.feed(&bytes);
            search.feed(&data);
            return Err(refused);
        }
        bytes.extend_from_slice(&data);
    }
    // Now the charge rises to what handling the whole message takes.
    if let Err(full) = incoming.cover(message_bytes(&bytes)) {
        search.feed(&bytes);
        return Err(BodyError::Full(full));
    }
    Ok((bytes, incoming.into_charge()))
}
