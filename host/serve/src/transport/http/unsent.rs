//! Keeps the bodies of HTTP/1.1 answers until they are sent. The HTTP library drops a body when it has taken the last piece of it, while
//! pieces may still wait to be written. What is held for the answer, such as the charge for its memory, must be held until then.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The bodies of a connection of which pieces may still wait to be written.
#[derive(Default)]
pub struct Unsent(Mutex<Bodies>);

#[derive(Default)]
struct Bodies {
    /// Usually there is only one, for which nothing is allocated.
    one: Option<Body>,
    others: Vec<Body>,
    /// Whether the connection has ended, so that nothing is written any more.
    ended: bool,
}

impl Unsent {
    fn keep(&self, body: Body) {
        let mut bodies = self.0.lock();
        if bodies.ended {
            // Dropped outside of the lock, because dropping the body may use this too.
            drop(bodies);
            drop(body);
        } else if bodies.one.is_none() {
            bodies.one = Some(body);
        } else {
            bodies.others.push(body);
        }
    }

    fn sent(&self, ended: bool) {
        let (one, others) = {
            let mut bodies = self.0.lock();
            bodies.ended |= ended;
            (bodies.one.take(), std::mem::take(&mut bodies.others))
        };
        drop((one, others));
    }
}

/// The body of an answer. It is stored with its connection when the HTTP library has taken all of it.
pub struct Kept {
    body: Body,
    begun: bool,
    ended: bool,
    unsent: Arc<Unsent>,
}

impl Kept {
    pub fn new(body: Body, unsent: &Arc<Unsent>) -> Self {
        Self { body, begun: false, ended: false, unsent: Arc::clone(unsent) }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // A body that was not taken to its end is dropped together with its connection.
        if self.begun && (self.ended || self.body.is_end_stream()) {
            self.unsent.keep(std::mem::take(&mut self.body));
        }
    }
}

impl HttpBody for Kept {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let next = Pin::new(&mut self.body).poll_frame(cx);
        match &next {
            Poll::Ready(Some(_)) => self.begun = true,
            Poll::Ready(None) => self.ended = true,
            Poll::Pending => {}
        }
        next
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A stream that drops the stored bodies when they are written: the HTTP library's flush is complete only then.
pub struct Flushed<S> {
    stream: S,
    unsent: Arc<Unsent>,
}

impl<S> Flushed<S> {
    pub fn new(stream: S, unsent: &Arc<Unsent>) -> Self {
        Self { stream, unsent: Arc::clone(unsent) }
    }
}

impl<S> Drop for Flushed<S> {
    fn drop(&mut self) {
        // Requests that go on without the connection also hold `unsent`, so it is marked as ended.
        self.unsent.sent(true);
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Flushed<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context, into: &mut ReadBuf) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Flushed<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, cx: &mut Context, pieces: &[IoSlice]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.unsent.sent(false);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;
    use crate::{
        methods::response::ResponseText,
        transport::http::body::{Hold, Pieces},
    };
    use wharf_base::{
        ledger::Ledger,
        party::{Party, named},
    };

    fn client() -> Party {
        named("ann")
    }

    /// Returns an answer with a charge.
    fn answer(unsent: &Arc<Unsent>, ledger: &Arc<Ledger>) -> Kept {
        let charge = ledger.message(&ledger.client(client()), 1000).ok();
        let hold = Hold { charge, ..Hold::default() };
        Kept::new(Body::new(Pieces::new(ResponseText::Whole("a".repeat(1000)), hold)), unsent)
    }

    fn taken(mut kept: Kept) {
        let mut cx = Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(Ok(_))) = Pin::new(&mut kept).poll_frame(&mut cx) {}
    }

    #[test]
    fn what_is_taken_is_held_until_it_is_written() {
        let (ledger, unsent) = (Ledger::new(1 << 20), Arc::default());
        let used = || ledger.whole().used();
        let mut stream = Flushed::new(tokio::io::sink(), &unsent);
        for _ in 0..2 {
            taken(answer(&unsent, &ledger));
        }
        assert_eq!(used(), 2000);
        assert!(Pin::new(&mut stream).poll_flush(&mut Context::from_waker(Waker::noop())).is_ready());
        assert_eq!(used(), 0);
        drop(answer(&unsent, &ledger));
        assert_eq!(used(), 0, "what was not taken is not written");
        taken(answer(&unsent, &ledger));
        assert_eq!(used(), 1000);
        drop(stream);
        assert_eq!(used(), 0, "nothing is written any more");
        taken(answer(&unsent, &ledger));
        assert_eq!(used(), 0);
    }
}
