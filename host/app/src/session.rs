//! A client over a reader and a writer, for programs that embed wharf.

use std::{path::PathBuf, sync::Arc};

use tokio::io::{AsyncRead, AsyncWrite};

use super::Error;
use wharf_base::{
    party::{Party, party},
    principal::Principal,
};
use wharf_config::{access::call_roots::Folder, auth::Caller};
use wharf_plugins::observe::record::Transport;
use wharf_serve::{
    client::server::Server,
    transport::{pipe::PipeClient, stdio},
};

/// A client that is about to be served.
pub struct Session<R, W> {
    server: Arc<Server>,
    reader: R,
    writer: W,
    principal: Principal,
    alone: bool,
    profile: Option<Arc<str>>,
    roots: Option<Vec<Folder>>,
}

impl<R, W> Session<R, W>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    pub(super) fn new(server: Arc<Server>, reader: R, writer: W) -> Self {
        Self { server, reader, writer, principal: Principal::Process, alone: false, profile: None, roots: None }
    }

    /// Names the client. Its tasks and reused instances are not shared with clients of other names.
    #[must_use]
    pub fn principal(mut self, name: &str) -> Self {
        self.principal = Principal::Named(name.into());
        self
    }

    /// Declares that this process never serves another client, so this client may use all places.
    #[doc(hidden)]
    #[must_use]
    pub fn alone(mut self) -> Self {
        self.alone = true;
        self
    }

    /// Serves the part of the catalog that this profile of the config selects. The profile `search` serves three tools that find, call and
    /// read everything in the catalog.
    #[must_use]
    pub fn profile(mut self, name: &str) -> Self {
        self.profile = Some(name.into());
        self
    }

    /// Opens these folders to the client, in place of any roots that it lists itself.
    #[must_use]
    pub fn roots(self, folders: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        let folders = folders.into_iter().map(|path| Folder { path: path.into(), shown: None });
        let folders: Vec<Folder> = folders.collect();
        if folders.is_empty() { self } else { self.open(folders) }
    }

    /// Like [`Session::roots`], with the paths at which plugins see the folders.
    #[doc(hidden)]
    #[must_use]
    pub fn open(mut self, folders: Vec<Folder>) -> Self {
        self.roots.get_or_insert_default().extend(folders);
        self
    }

    /// Serves the client until its input ends, its output breaks or wharf stops. Requests that are under way then have a second
    /// to finish.
    ///
    /// # Errors
    /// If one of the folders cannot be opened, or there is no such profile. Nothing has been served then.
    pub async fn serve(self) -> Result<(), Error> {
        let Self { server, reader, writer, principal, alone, profile, roots } = self;
        let party = if alone { Party::SOLE } else { party(&principal, None) };
        if let Some(name) = &profile {
            server.check_profile(name).map_err(Error::Config)?;
        }
        let roots = roots.map(|roots| server.scopes.open_given(&roots)).transpose().map_err(Error::Config)?;
        stdio::serve(
            &server,
            PipeClient { caller: Caller::Owner(principal), profile, roots, transport: Transport::Pipe },
            party,
            reader,
            writer,
        )
        .await;
        Ok(())
    }
}
