//! Captures what a guest prints: the last 16 KiB of stdout and stderr together. Printing never fails and never waits. A command's stdout is
//! collected instead: all of it, up to a limit.
//!
//! If the stream failed, Rust guests would panic in `println!`; if it blocked, they would hang. So output beyond the limit is dropped,
//! oldest first, because the message that explains a panic comes last.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use parking_lot::Mutex;
use tokio::io::AsyncWrite;
use wasmtime_wasi::{
    async_trait,
    cli::{IsTerminal, StdoutStream},
    p2::{OutputStream, Pollable, StreamError, StreamResult},
};

/// The number of bytes that are retained of what a guest printed, counted from its end.
const MAX_CAPTURED_BYTES: usize = 16 * 1024;
/// The number of bytes that a guest may write at once.
const CHUNK_BYTES: usize = 64 * 1024;

#[derive(Clone, Default)]
pub(crate) struct Capture(Arc<Mutex<VecDeque<u8>>>);

impl Capture {
    fn put(&self, bytes: &[u8]) {
        let mut kept = self.0.lock();
        let fresh = bytes.get(bytes.len().saturating_sub(MAX_CAPTURED_BYTES)..).unwrap_or_default();
        let excess = (kept.len() + fresh.len()).saturating_sub(MAX_CAPTURED_BYTES);
        let forgotten = excess.min(kept.len());
        kept.drain(..forgotten);
        kept.extend(fresh);
    }

    /// Discards what was printed, before the next call.
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }

    /// Returns what was printed as text. It is not escaped: callers escape it for the place where they show it.
    pub(crate) fn text(&self) -> String {
        let kept = self.0.lock();
        let bytes: Vec<u8> = kept.iter().copied().collect();
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }
}

impl IsTerminal for Capture {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Capture {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[async_trait]
impl Pollable for Capture {
    async fn ready(&mut self) {}
}

#[async_trait]
impl OutputStream for Capture {
    fn write(&mut self, bytes: bytes::Bytes) -> StreamResult<()> {
        self.put(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(CHUNK_BYTES)
    }
}

impl AsyncWrite for Capture {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        self.put(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Collects the stdout of a command: all of it, up to a limit. A command that writes more is stopped, because truncated output is of no
/// use.
#[derive(Clone)]
pub(crate) struct Collected(Arc<Mutex<Vec<u8>>>, usize);

impl Collected {
    pub(crate) fn new(most: usize) -> Self {
        Self(Arc::default(), most)
    }

    /// Takes everything that was written, or returns `None` if it exceeded the limit.
    pub(crate) fn take(&self) -> Option<Vec<u8>> {
        let kept = std::mem::take(&mut *self.0.lock());
        (kept.len() <= self.1).then_some(kept)
    }

    /// Adds bytes. Returns false once the limit is exceeded.
    fn put(&self, bytes: &[u8]) -> bool {
        let mut kept = self.0.lock();
        let room = (self.1 + 1).saturating_sub(kept.len());
        kept.extend(bytes.iter().take(room));
        kept.len() <= self.1
    }
}

impl IsTerminal for Collected {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Collected {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[async_trait]
impl Pollable for Collected {
    async fn ready(&mut self) {}
}

#[async_trait]
impl OutputStream for Collected {
    fn write(&mut self, bytes: bytes::Bytes) -> StreamResult<()> {
        if self.put(&bytes) { Ok(()) } else { Err(StreamError::trap("its output exceeds the limit")) }
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(CHUNK_BYTES)
    }
}

impl AsyncWrite for Collected {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        let fits = self.put(bytes);
        Poll::Ready(if fits { Ok(bytes.len()) } else { Err(std::io::Error::other("its output exceeds the limit")) })
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_end() {
        let capture = Capture::default();
        capture.put(&[b'a'; 3 * MAX_CAPTURED_BYTES]);
        capture.put(b"the end");
        let text = capture.text();
        assert_eq!(text.len(), MAX_CAPTURED_BYTES);
        assert!(text.ends_with("athe end"));
    }

    #[test]
    fn collects_all_or_nothing() {
        let collected = Collected::new(5);
        assert!(collected.put(b"abc") && collected.put(b"de"));
        assert_eq!(collected.take().as_deref(), Some(&b"abcde"[..]));
        assert!(!collected.put(&[b'f'; 1000]));
        assert_eq!(collected.0.lock().len(), 6, "bytes beyond the limit are not stored");
        assert_eq!(collected.take(), None);
    }
}
