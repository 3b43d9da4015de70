//! The process's stdin and stdout as non-blocking streams.
//!
//! tokio's own streams for them read and write on other threads, because both may be anything. A call over stdio then wakes two threads in
//! addition to those that do the work. Clients start servers with pipes (most languages) or Unix sockets (Node.js), which can be read and
//! written without blocking. The open file behind such a descriptor may be shared with other processes, so its flags are left alone: a pipe
//! is opened a second time, and a socket is used with a flag for each operation.

use std::{
    io,
    os::fd::{AsFd, AsRawFd},
    pin::Pin,
    task::{Context, Poll, ready},
};

use rustix::{
    fs::FileType,
    io::retry_on_intr,
    net::{RecvFlags, SendFlags, SocketType},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf, unix::AsyncFd},
    net::unix::pipe,
};

/// Returns a stream that reads from stdin.
pub(super) fn input() -> Box<dyn AsyncRead + Send + Unpin> {
    let stdin = io::stdin();
    let opened: io::Result<Box<dyn AsyncRead + Send + Unpin>> = match kind(&stdin) {
        Kind::Pipe => pipe::OpenOptions::new().open_receiver("/proc/self/fd/0").map(|pipe| Box::new(pipe) as _),
        Kind::Socket => Socket::new(stdin).map(|socket| Box::new(socket) as _),
        Kind::Other => Err(io::ErrorKind::Unsupported.into()),
    };
    opened.unwrap_or_else(|_| Box::new(tokio::io::stdin()))
}

/// Returns a stream that writes to stdout.
pub(super) fn output() -> Box<dyn AsyncWrite + Send + Unpin> {
    let stdout = io::stdout();
    let opened: io::Result<Box<dyn AsyncWrite + Send + Unpin>> = match kind(&stdout) {
        Kind::Pipe => pipe::OpenOptions::new().open_sender("/proc/self/fd/1").map(|pipe| Box::new(pipe) as _),
        Kind::Socket => Socket::new(stdout).map(|socket| Box::new(socket) as _),
        Kind::Other => Err(io::ErrorKind::Unsupported.into()),
    };
    opened.unwrap_or_else(|_| Box::new(tokio::io::stdout()))
}

/// What a descriptor refers to.
enum Kind {
    Pipe,
    /// A socket without message boundaries.
    Socket,
    /// A file, a terminal or a device.
    Other,
}

fn kind(fd: &impl AsFd) -> Kind {
    let stat = rustix::fs::fstat(fd);
    match stat.map(|stat| FileType::from_raw_mode(stat.st_mode)) {
        Ok(FileType::Fifo) => Kind::Pipe,
        Ok(FileType::Socket) if rustix::net::sockopt::socket_type(fd) == Ok(SocketType::STREAM) => Kind::Socket,
        _ => Kind::Other,
    }
}

/// A socket whose open file may block other processes that use it.
struct Socket<T: AsRawFd>(AsyncFd<T>);

impl<T: AsRawFd + AsFd> Socket<T> {
    #[expect(deprecated, reason = "its successor is unsafe, for types whose descriptor changes; those of std do not")]
    fn new(descriptor: T) -> io::Result<Self> {
        AsyncFd::new(descriptor).map(Self)
    }
}

impl<T: AsRawFd + AsFd + Unpin> AsyncRead for Socket<T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut readable = ready!(self.0.poll_read_ready(cx))?;
            let unfilled = buffer.initialize_unfilled();
            let read = readable.try_io(|socket| {
                Ok(retry_on_intr(|| rustix::net::recv(socket.get_ref(), &mut *unfilled, RecvFlags::DONTWAIT))?)
            });
            // Without a result, nothing was there to read after all.
            if let Ok(read) = read {
                let (read, _) = read?;
                buffer.advance(read);
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<T: AsRawFd + AsFd + Unpin> AsyncWrite for Socket<T> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            let mut writable = ready!(self.0.poll_write_ready(cx))?;
            let sent = writable.try_io(|socket| {
                Ok(retry_on_intr(|| rustix::net::send(socket.get_ref(), bytes, SendFlags::DONTWAIT))?)
            });
            if let Ok(sent) = sent {
                return Poll::Ready(sent);
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn a_socket_that_blocks_does_not_block_here() {
        let (one, other) = UnixStream::pair().unwrap();
        let (mut one, mut other) = (Socket::new(one).unwrap(), Socket::new(other).unwrap());
        // More than the system stores, so that both ends wait for each other.
        let sent: Vec<u8> = (0..1 << 22).map(|at: u32| at.to_le_bytes()[1]).collect();
        let mut received = vec![0; sent.len()];
        let (write, read) = tokio::join!(one.write_all(&sent), other.read_exact(&mut received));
        write.unwrap();
        read.unwrap();
        assert!(sent == received);
        let flags = rustix::fs::fcntl_getfl(other.0.get_ref()).unwrap();
        assert!(!flags.contains(rustix::fs::OFlags::NONBLOCK), "other processes may use the same open file");
        drop(one);
        assert_eq!(other.read(&mut received).await.unwrap(), 0);
    }

    #[test]
    fn what_cannot_be_polled_is_read_on_a_thread() {
        let (socket, _peer) = UnixStream::pair().unwrap();
        let (reader, _writer) = std::io::pipe().unwrap();
        let (datagram, _peer) = std::os::unix::net::UnixDatagram::pair().unwrap();
        assert!(matches!(kind(&socket), Kind::Socket));
        assert!(matches!(kind(&reader), Kind::Pipe));
        assert!(matches!(kind(&datagram), Kind::Other));
    }
}
