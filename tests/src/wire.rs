//! A way to a server that can be cut: connections stay open, and nothing passes.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};

pub struct Wire {
    pub address: SocketAddr,
    passes: watch::Sender<bool>,
    accepts: JoinHandle<()>,
}

impl Wire {
    pub async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (passes, passing) = watch::channel(true);
        let accepts = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(server).await else { continue };
                let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
                tokio::spawn(pass(from_client, to_server, passing.clone()));
                tokio::spawn(pass(from_server, to_client, passing.clone()));
            }
        });
        Self { address, passes, accepts }
    }

    pub fn cut(&self) {
        self.passes.send_replace(false);
    }

    /// Everything that was sent meanwhile arrives late.
    pub fn mend(&self) {
        self.passes.send_replace(true);
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.accepts.abort();
    }
}

/// Passes bytes on until one side ends, and none of them while the wire is cut.
async fn pass(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    mut passing: watch::Receiver<bool>,
) {
    let mut bytes = [0; 16 * 1024];
    while let Ok(read @ 1..) = from.read(&mut bytes).await {
        if passing.wait_for(|passes| *passes).await.is_err() || to.write_all(&bytes[..read]).await.is_err() {
            return;
        }
    }
    to.shutdown().await.ok();
}
