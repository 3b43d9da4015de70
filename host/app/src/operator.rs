//! A wharf in the hands of the commands of the binary, which can do more with it than programs that embed it. Not exported by the facade.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::Result;
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
};
use tokio_util::sync::CancellationToken;
use wharf_protocol::{
    Revision,
    model::{Content, ToolResult},
};
use wharf_sandbox::{Effort, Sandbox};

use crate::{
    call::{Call, ToolCall},
    error::Error,
    session, setup, shown,
    wharf::{Inner, Wharf},
};
use wharf_base::ledger::Ledger;
use wharf_config::{
    config::{self, Config},
    lock::Surface,
};
use wharf_plugins::{bridge, telemetry::metrics::CONTENT_TYPE};
use wharf_serve::transport::http::admin::{self, AdminMetrics};

pub use crate::{
    session::Pipe,
    setup::Setup,
    shown::{Counts, ShownRole},
};
pub use wharf_serve::transport::http::{listener::Listener, socket::Socket, tls::check as check_certificate};

/// A running wharf, for the commands of the binary.
#[derive(Clone)]
pub struct Operator {
    /// The same wharf, for what programs that embed it can do too.
    pub wharf: Wharf,
}

impl Operator {
    /// Puts a wharf together and starts it. The plugins are loaded in the background.
    pub fn start(setup: Setup) -> Result<Self> {
        Ok(Self { wharf: setup.start().map_err(Error::for_operator)? })
    }

    /// Puts a wharf together, starts it, and waits until every plugin is served or has failed.
    pub async fn load(setup: Setup) -> Result<Self> {
        let operator = Self::start(setup)?;
        operator.inner().settled(1).await;
        Ok(operator)
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.wharf.inner
    }

    /// Waits until every plugin has been loaded or has failed once, but for at most `limit`. False: wharf began to shut down first.
    pub async fn tried(&self, limit: Duration) -> bool {
        let server = &self.inner().server;
        server.draining.run_until_cancelled(server.published.wait(limit)).await.is_some()
    }

    /// Sets the plugins of which one has to load: if none does, the client at stdin is told so in the answer to its handshake. To be called
    /// before clients are served.
    pub fn require_one_of(&self, ids: Vec<String>) {
        self.inner().server.required.set(ids).ok();
    }

    /// Waits until each plugin is served or has failed, and then returns why no required plugin loads. None: one of them does.
    pub async fn none_loads(&self) -> Option<String> {
        self.inner().settled(1).await;
        self.none_loads_now()
    }

    /// Returns why no required plugin loads, if that is known already.
    pub fn none_loads_now(&self) -> Option<String> {
        self.inner().server.none_loads(true)
    }

    /// Resolves when the client at stdin has been told that no required plugin loads.
    pub async fn told(&self) {
        self.inner().server.told.cancelled().await;
    }

    /// Returns for each plugin the secrets that it cannot get, with the reasons.
    pub async fn missing_secrets(&self) -> Vec<(String, Vec<String>)> {
        let server = &self.inner().server;
        let catalog = server.published.catalog().await;
        let mut missing = Vec::new();
        for served in catalog.served() {
            let problems = server.scopes.egress.problems(&served.config.grants.http.0).await;
            missing.push((served.config.id.clone(), problems));
        }
        missing
    }

    /// Returns everything that a plugin tells models, and what it wants to be granted. The error says why it cannot be had.
    pub async fn surface(&self, id: &str) -> Result<Surface, String> {
        let server = &self.inner().server;
        let catalog = server.published.catalog().await;
        let served = catalog.served().iter().find(|served| served.config.id == id);
        let served = served.ok_or_else(|| format!("{id} does not load"))?;
        let surface = bridge::surface(&served.offer.listing, served.plugin.code().sections(), &server.ledger.plugin());
        let surface = surface.map_err(|full| format!("{id}: {full} (of total_host_memory_mib in [limits])"))?;
        Ok(surface.into_parts().0)
    }

    /// Returns the profiles of the config, with the counts of what they select.
    pub fn profiles(&self) -> Vec<(String, Counts)> {
        shown::profiles(&self.inner().server)
    }

    /// Returns the roles of the config.
    pub fn roles(&self) -> Vec<ShownRole> {
        shown::roles(&self.inner().server)
    }

    /// Calls a tool, as [`Wharf::call`] does.
    pub async fn call(&self, call: Call<ToolCall>) -> Result<ToolResult, Error> {
        self.wharf.call_tool(call).await
    }

    /// Returns a content block as the newest revision of the protocol writes it.
    pub fn block(&self, content: Content) -> Value {
        self.inner().server.encoder(Revision::NEWEST).content(content)
    }

    /// Whether clients over HTTP need an access token of an identity provider.
    pub fn wants_login(&self) -> bool {
        self.inner().server.auth.is_some()
    }

    /// Returns the `[http]` table of the config.
    pub fn http(&self) -> &config::Http {
        &self.inner().server.startup.http
    }

    /// Reads what is needed to serve HTTP on sockets.
    pub async fn listener(&self, sockets: Vec<Socket>) -> Result<Listener> {
        self.inner().listener(sockets).await.map_err(Error::for_operator)
    }

    /// Serves one client over a reader and a writer, as [`Session::serve`](crate::Session::serve) does.
    pub fn serve_pipe<R, W>(&self, reader: R, writer: W, pipe: Pipe) -> impl Future<Output = Result<()>> + use<R, W>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        session::serve(Arc::clone(&self.inner().server), reader, writer, pipe)
    }

    /// Returns the `[admin]` table of the config.
    pub fn admin(&self) -> Option<&config::Admin> {
        self.inner().server.startup.admin.as_ref()
    }

    /// Serves the metrics on a listener until wharf stops. Returns at once if the config has no `[admin]` table.
    pub async fn serve_admin(&self, listener: TcpListener) {
        let (server, Some(admin), Some(metrics)) = (&self.inner().server, self.admin(), self.inner().metrics.clone())
        else {
            return;
        };
        if let Ok(address) = listener.local_addr() {
            server.scopes.egress.is_own(address);
        }
        let served = AdminMetrics { metrics: Box::new(move || metrics.text()), content_type: CONTENT_TYPE };
        admin::serve(listener, admin, &server.startup.http, served, server.stop.clone()).await;
    }

    /// Returns the token that stops wharf when it is cancelled, and is cancelled when wharf stops.
    pub fn stop_token(&self) -> CancellationToken {
        self.inner().server.stop.clone()
    }

    /// Stops wharf without waiting for anything but the last lines of the audit log.
    pub async fn abandon(&self) {
        self.inner().server.stop.cancel();
        self.inner().tasks.lock().abort_all();
        if let Some(audit) = &self.inner().audit {
            audit.close().await;
        }
    }
}

/// Creates a sandbox that several wharfs of this process can share.
pub fn shared_sandbox(config: &Config, cache_dir: PathBuf) -> Result<Arc<Sandbox>> {
    let ledger = Ledger::new(config.startup.total_host_memory_bytes);
    setup::sandbox(config, &ledger, Some(cache_dir), Effort::Full).map_err(Error::for_operator)
}
