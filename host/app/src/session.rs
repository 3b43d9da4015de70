//! A client over a reader and a writer.

use std::{path::PathBuf, sync::Arc};

use anyhow::Result;
use tokio::io::{AsyncRead, AsyncWrite};

use super::error::Error;
use wharf_base::{
    party::{Party, party},
    principal::Principal,
};
use wharf_plugins::observe::record::Transport;
use wharf_policy::{access::call_roots::Folder, auth::Caller};
use wharf_serve::{
    client::server::Server,
    transport::{pipe::PipeClient, stdio},
};

/// What is known about a client over a reader and a writer before it sends anything.
pub struct Pipe {
    pub principal: Principal,
    /// Whether this process never serves another client, so that this client may use all places.
    pub alone: bool,
    /// The profile of the config that the client uses.
    pub profile: Option<Arc<str>>,
    /// Folders that are opened to the client, in place of any roots that it lists itself.
    pub roots: Option<Vec<Folder>>,
}

impl Default for Pipe {
    fn default() -> Self {
        Self { principal: Principal::Process, alone: false, profile: None, roots: None }
    }
}

/// Serves a client until its input ends, its output breaks or wharf stops.
pub(crate) async fn serve<R, W>(server: Arc<Server>, reader: R, writer: W, pipe: Pipe) -> Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let Pipe { principal, alone, profile, roots } = pipe;
    let party = if alone { Party::SOLE } else { party(&principal, None) };
    if let Some(name) = &profile {
        server.check_profile(name)?;
    }
    let roots = roots.map(|roots| server.scopes.open_given(&roots)).transpose()?;
    let client =
        PipeClient { caller: Caller::Owner(principal), profile, roots, transport: Transport::Pipe, address: None };
    stdio::serve(&server, client, party, reader, writer).await;
    Ok(())
}

/// A client over a reader and a writer that is about to be served.
pub struct Session<R, W> {
    server: Arc<Server>,
    reader: R,
    writer: W,
    pipe: Pipe,
}

impl<R, W> Session<R, W>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    pub(super) fn new(server: Arc<Server>, reader: R, writer: W) -> Self {
        Self { server, reader, writer, pipe: Pipe::default() }
    }

    /// Serves the client as this principal. Its tasks and reused instances are not shared with other principals. A text is the name of
    /// a client of this program.
    #[must_use]
    pub fn as_principal(mut self, principal: impl Into<Principal>) -> Self {
        self.pipe.principal = principal.into();
        self
    }

    /// Serves the part of the catalog that this profile of the config selects. The profile `search` serves three tools that find, call and
    /// read everything in the catalog.
    #[must_use]
    pub fn profile(mut self, name: &str) -> Self {
        self.pipe.profile = Some(name.into());
        self
    }

    /// Opens these folders to the client, in place of any roots that it lists itself. Without a folder, those that it lists count.
    #[must_use]
    pub fn roots(mut self, folders: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        let mut folders = folders.into_iter().map(|path| Folder { path: path.into(), shown: None }).peekable();
        if folders.peek().is_some() {
            self.pipe.roots.get_or_insert_default().extend(folders);
        }
        self
    }

    /// Serves the client until its input ends, its output breaks or wharf stops. When its input ends, the requests under way are
    /// answered first, each within its own limit; in the other cases they have a second to finish.
    ///
    /// # Errors
    /// If one of the folders cannot be opened, or there is no such profile. Nothing has been served then.
    pub async fn serve(self) -> Result<(), Error> {
        let Self { server, reader, writer, pipe } = self;
        serve(server, reader, writer, pipe).await.map_err(Error::config)
    }
}
