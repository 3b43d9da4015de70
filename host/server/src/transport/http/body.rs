//! Bodies of HTTP messages: read whole within bounds of size and time, and written in pieces.

use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_body::{Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;
use wharf_protocol::{RpcError, long::IdSearch};

use super::{connections::Busy, headers::text, refused::Refused};
use crate::base::ledger::{Charge, Full, Incoming, message_bytes};

/// How long a client may take to send a body.
const BODY: Duration = Duration::from_secs(30);
/// How much is handed over at once.
const PIECE: usize = 64 * 1024;

/// Of a large answer, what may wait in the hands of the HTTP library; it must not keep the whole answer.
const TAIL: usize = 512 * 1024;

/// What is held for an answer until its client has read it.
#[derive(Default)]
pub struct Hold {
    pub permit: Option<OwnedSemaphorePermit>,
    pub charge: Option<Charge>,
    pub busy: Option<Busy>,
}

/// A body that is handed over as its client reads it. Until then it counts as under way.
pub struct Pieces {
    pub left: VecDeque<Bytes>,
    /// The bytes are this answer's alone, so the last of them are copied to let go of the rest.
    pub own: bool,
    pub hold: Option<Hold>,
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        while let Some(mut next) = self.left.pop_front() {
            if next.len() > PIECE {
                let rest = next.split_off(PIECE);
                let last = self.own && rest.len() <= TAIL;
                self.left.push_front(if last { Bytes::copy_from_slice(&rest) } else { rest });
                self.own &= !last;
            }
            if !next.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(next))));
            }
        }
        self.hold = None;
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.left.iter().all(Bytes::is_empty)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left.iter().map(|piece| piece.len() as u64).sum())
    }
}

/// The most that is set aside for a body before it has come.
const MOST_CLAIMED: usize = 2 << 20;

/// How much of a body that is refused is read all the same, and how long for each piece of it: a client that is cut off while it
/// sends does not read why.
const DRAINED: usize = 64 << 20;
const NEXT_PIECE: Duration = Duration::from_secs(1);

enum BodyError {
    TooLarge,
    Broken,
    Full(Full),
}

/// The body of a POST, which must be JSON of at most so many bytes, and what is paid for it.
pub async fn read_message(
    headers: &HeaderMap,
    mut body: Body,
    limit: usize,
    incoming: Incoming<'_>,
) -> Result<(Vec<u8>, Charge), Refused> {
    let mut search = IdSearch::default();
    let content_type = text(headers, "content-type").unwrap_or_default();
    let is_json = content_type.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json");
    let refused = if is_json {
        let read = read_body(&mut body, limit, incoming, &mut search);
        match tokio::time::timeout(BODY, read).await.unwrap_or(Err(BodyError::Broken)) {
            Ok(read) => return Ok(read),
            Err(refused) => Some(refused),
        }
    } else {
        None
    };
    if !matches!(refused, Some(BodyError::Broken)) {
        // As much as comes; the answer is the same.
        tokio::time::timeout(BODY, drain(&mut body, &mut search)).await.ok();
    }
    let id = search.id();
    Err(match refused {
        None => Refused::plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json"),
        Some(BodyError::TooLarge) => {
            let error = RpcError::invalid_request(format!("the message is longer than {limit} bytes"));
            Refused::of_id(StatusCode::PAYLOAD_TOO_LARGE, id.as_ref(), &error)
        }
        Some(BodyError::Broken) => Refused::plain(StatusCode::BAD_REQUEST, "the body did not arrive whole"),
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

/// Reads the rest of a body and keeps nothing of it.
async fn drain(body: &mut Body, search: &mut IdSearch) {
    let mut left = DRAINED;
    while let Ok(Ok(Some(data))) = tokio::time::timeout(NEXT_PIECE, next_piece(body)).await {
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
    // A length that is only claimed takes no memory that counts: its pages are touched when they are filled.
    let claimed = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    let mut bytes = Vec::with_capacity(claimed.min(MOST_CLAIMED));
    while let Some(data) = next_piece(body).await? {
        let read = bytes.len() + data.len();
        // The last piece is paid for below, with what will be made of all of it.
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
    // And what will be made of it.
    if let Err(full) = incoming.cover(message_bytes(&bytes)) {
        search.feed(&bytes);
        return Err(BodyError::Full(full));
    }
    Ok((bytes, incoming.into_charge()))
}
