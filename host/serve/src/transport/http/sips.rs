//! A stream with a budget of bytes for each poll, a "sip". Without it, an HTTP/2 connection would read and buffer all that its client
//! sends until nothing more is there, and only then hand over the requests in it. When the budget is used up, the connection has to
//! hand over what it has read.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The budget of one poll. If the reader's buffer is larger, a little more is read.
const SIP_BYTES: usize = 16 << 10;

pub struct Sips<S> {
    stream: S,
    sip: Sip,
}

/// The rest of the current budget.
#[derive(Clone)]
pub struct Sip(Arc<AtomicUsize>);

impl Sip {
    /// Polls the future that reads the stream, with a full budget for each poll.
    pub async fn before<F: Future>(&self, mut reader: Pin<&mut F>) -> F::Output {
        std::future::poll_fn(|cx| {
            self.0.store(SIP_BYTES, Ordering::Relaxed);
            reader.as_mut().poll(cx)
        })
        .await
    }
}

impl<S> Sips<S> {
    pub fn new(stream: S) -> Self {
        Self { stream, sip: Sip(Arc::new(AtomicUsize::new(SIP_BYTES))) }
    }

    pub fn sip(&self) -> Sip {
        self.sip.clone()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Sips<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context, into: &mut ReadBuf) -> Poll<io::Result<()>> {
        let left = self.sip.0.load(Ordering::Relaxed);
        if left == 0 {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = into.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, into))?;
        self.sip.0.store(left.saturating_sub(into.filled().len() - before), Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Sips<S> {
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
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::{pin::pin, task::Waker};

    use super::*;

    #[test]
    fn a_reader_hands_over_what_it_has_read() {
        let mut stream = Sips::new(io::Cursor::new(vec![0; 100 << 10]));
        let sip = stream.sip();
        let read = std::cell::Cell::new(0);
        // A reader that reads as much as it can.
        let reader = std::future::poll_fn(|cx| {
            loop {
                let mut bytes = [0; 4 << 10];
                let mut into = ReadBuf::new(&mut bytes);
                ready!(Pin::new(&mut stream).poll_read(cx, &mut into)).unwrap();
                if into.filled().is_empty() {
                    return Poll::Ready(());
                }
                read.set(read.get() + into.filled().len());
            }
        });
        let mut polls = 1;
        let mut all = pin!(async { sip.before(pin!(reader)).await });
        while all.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            polls += 1;
        }
        assert_eq!(polls, (100 << 10) / SIP_BYTES + 1);
        assert_eq!(read.get(), 100 << 10);
    }
}
