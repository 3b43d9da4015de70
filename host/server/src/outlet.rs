//! Where what belongs to a request goes while it runs: its pipe, or its response stream.

use tokio::sync::mpsc;

/// Where messages that belong to a request go: its pipe, or its response stream.
#[derive(Clone)]
pub struct Outlet(mpsc::Sender<String>);

/// The other side is gone.
#[derive(Debug)]
pub struct Closed;

impl Outlet {
    pub fn new(sender: mpsc::Sender<String>) -> Self {
        Self(sender)
    }

    pub async fn send(&self, text: String) -> Result<(), Closed> {
        self.0.send(text).await.map_err(|_| Closed)
    }

    /// Drops the message if there is no room: for what may be lost, from where nothing may wait.
    pub fn offer(&self, text: String) {
        self.0.try_send(text).ok();
    }

    pub async fn closed(&self) {
        self.0.closed().await;
    }
}
