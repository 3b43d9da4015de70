//! A socket that fails if the client reads too slowly what it is sent, as in a slow-read attack, and that reads what has arrived before its
//! connection is closed for another one.

use std::{
    io,
    os::fd::AsFd,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use rustix::io::Errno;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep_until},
};

use super::connections::Peer;

/// While data waits to be read, the client must read at least `MIN_BYTES_PER_PACE` in each such period.
pub const PACE_INTERVAL: Duration = Duration::from_secs(20);
const MIN_BYTES_PER_PACE: usize = 64 << 10;

pub struct Paced<S> {
    stream: S,
    peer: Arc<Peer>,
    pace: Duration,
    /// When the current period ends. None while no data waits to be read.
    until: Option<Pin<Box<Sleep>>>,
    /// How many bytes were read in the current period.
    taken: usize,
}

impl<S> Paced<S> {
    /// `pace`: the period, usually [`PACE_INTERVAL`].
    pub fn new(stream: S, peer: Arc<Peer>, pace: Duration) -> Self {
        Self { stream, peer, pace, until: None, taken: 0 }
    }

    /// Handles the result of a write of so many bytes.
    fn wrote(&mut self, cx: &mut Context, wanted: usize, wrote: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match wrote {
            Poll::Ready(Ok(taken)) if taken >= wanted => {
                if self.until.take().is_some() {
                    self.peer.reads(true);
                }
                Poll::Ready(Ok(taken))
            }
            Poll::Ready(Ok(taken)) => {
                self.taken = self.taken.saturating_add(taken);
                Poll::Ready(Ok(taken))
            }
            Poll::Pending => {
                if self.until.is_none() {
                    self.peer.reads(false);
                    self.taken = 0;
                }
                let pace = self.pace;
                let until = self.until.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + pace)));
                while until.as_mut().poll(cx).is_ready() {
                    if self.taken < MIN_BYTES_PER_PACE {
                        let problem = "the client does not read what it is sent";
                        return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, problem)));
                    }
                    self.taken = 0;
                    until.as_mut().reset(Instant::now() + pace);
                }
                Poll::Pending
            }
            failed => failed,
        }
    }
}

impl<S: AsyncRead + AsFd + Unpin> AsyncRead for Paced<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context, into: &mut ReadBuf) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, into);
        if read.is_pending() && self.peer.is_chosen() { self.read_arrived(into) } else { read }
    }
}

impl<S: AsFd> Paced<S> {
    /// Reads what has arrived, which the runtime may not know yet: it asks the system from time to time, and on one thread at a time.
    fn read_arrived(&self, into: &mut ReadBuf) -> Poll<io::Result<()>> {
        match rustix::io::read(&self.stream, into.initialize_unfilled()) {
            Ok(count) => {
                into.advance(count);
                Poll::Ready(Ok(()))
            }
            // The runtime wakes the task when something arrives.
            Err(Errno::AGAIN | Errno::INTR) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error.into())),
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.wrote(cx, bytes.len(), wrote)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context,
        pieces: &[io::IoSlice],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.wrote(cx, pieces.iter().map(|piece| piece.len()).sum(), wrote)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests end with what they spawn")]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;
    use crate::transport::http::connections::{Connections, Remote};
    use wharf_base::ledger::Ledger;

    fn paced(pace: Duration) -> (Paced<tokio::io::DuplexStream>, tokio::io::DuplexStream) {
        let (near, far) = duplex(1024);
        let place = Connections::new(1).enter(Remote::Local(0), false, &Ledger::new(1 << 20)).unwrap();
        (Paced::new(near, Arc::clone(&place.peer), pace), far)
    }

    #[tokio::test]
    async fn who_does_not_read_is_gone() {
        let (mut near, _far) = paced(Duration::from_millis(50));
        let error = near.write_all(&[0; 4096]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn so_is_who_takes_a_byte_at_a_time() {
        let (mut near, mut far) = paced(Duration::from_millis(200));
        let drip = tokio::spawn(async move {
            let mut ticks = tokio::time::interval(Duration::from_millis(20));
            while far.read_u8().await.is_ok() {
                ticks.tick().await;
            }
        });
        assert!(near.write_all(&[0; 1 << 20]).await.is_err());
        drop(near);
        drip.await.unwrap();
    }

    #[tokio::test]
    async fn who_reads_stays_however_long_it_takes() {
        let (mut near, mut far) = paced(Duration::from_millis(100));
        let reader = tokio::spawn(async move {
            let (mut bytes, mut all) = (vec![0; 64 << 10], 0);
            let mut ticks = tokio::time::interval(Duration::from_millis(1));
            while let Ok(read @ 1..) = far.read(&mut bytes).await {
                all += read;
                ticks.tick().await;
            }
            all
        });
        let began = Instant::now();
        near.write_all(&vec![0; 1 << 20]).await.unwrap();
        assert!(began.elapsed() > Duration::from_millis(200), "longer than a period, and the connection is open");
        drop(near);
        assert_eq!(reader.await.unwrap(), 1 << 20);
    }
}
