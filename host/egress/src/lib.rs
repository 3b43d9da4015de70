//! Outbound HTTP of plugins (egress), restricted to the operator's allowlist and protected against SSRF and DNS rebinding.
//!
//! The modules without I/O: `rule` says which requests a plugin may make, `target` parses and normalizes URLs, `header` compares header
//! names, `address` classifies IP addresses. `connect`, `route` and `tls` make connections, `secrets` loads the values that are added to
//! requests, and `mask` removes those values from responses: `notation` decodes the escapes that servers use, `search` finds the secrets,
//! `masking` applies both to a response. `network` combines all of this for one plugin. `outgoing` sends wharf's own requests, over the same
//! proxy and with the same certificate authorities.
//!
//! A request that no rule allows causes neither a DNS look-up nor a connection. Plugins share neither connections nor TLS sessions.

#![deny(clippy::large_futures)]
#![forbid(unsafe_code)]

use std::{
    collections::HashMap,
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::runtime::Handle;

use self::{
    connect::{Dialer, System},
    network::PluginNetwork,
    route::Proxy,
    secrets::{SecretSource, SecretSources, Vault},
    tls::{Roots, Trust},
};

pub mod address;
mod allowance;
pub mod answers;
mod around;
pub mod connect;
pub mod header;
pub mod hint;
pub mod line;
pub mod mask;
mod masking;
pub mod network;
mod notation;
pub mod outgoing;
pub mod route;
pub mod rule;
mod search;
pub mod secrets;
pub mod target;
pub mod tls;

pub use allowance::{Allowance, Placeholder};
pub use answers::Answers;

use wharf_base::party::named;

/// The config sections `[egress]` and `[secrets]`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EgressSettings {
    pub trust: Trust,
    pub proxy: Option<Proxy>,
    pub secrets: SecretSources,
}

impl EgressSettings {
    /// The files that these settings name, whose contents wharf trusts.
    pub fn files(&self) -> impl Iterator<Item = PathBuf> {
        let programs = self.secrets.values().flat_map(SecretSource::programs);
        self.trust.files.iter().chain(self.secrets.values().filter_map(SecretSource::file)).cloned().chain(programs)
    }
}

/// The state of outbound HTTP that all plugins share.
pub struct Egress {
    dialer: Arc<Dialer>,
    state: Mutex<State>,
}

struct State {
    settings: EgressSettings,
    vault: Arc<Vault>,
    roots: Arc<Roots>,
    /// The network of each plugin, by plugin id.
    networks: HashMap<String, Arc<PluginNetwork>>,
}

impl State {
    fn new(settings: EgressSettings, before: &Vault) -> Self {
        let (vault, roots) = (before.renewed(&settings.secrets), Roots::new(settings.trust.clone()));
        Self { vault: Arc::new(vault), roots: Arc::new(roots), networks: HashMap::new(), settings }
    }
}

impl Default for Egress {
    fn default() -> Self {
        Self::new(EgressSettings::default(), None)
    }
}

impl Egress {
    /// `answers` replaces all servers, in a test.
    pub fn new(settings: EgressSettings, answers: Option<Arc<dyn Answers>>) -> Self {
        let mut dialer = Dialer::new(Box::new(System));
        dialer.answers = answers;
        Self { dialer: Arc::new(dialer), state: Mutex::new(State::new(settings, &Vault::default())) }
    }

    /// Replaces the settings. Secrets and certificates are loaded again when they are next needed, and pooled connections are closed.
    /// Requests under way finish with the settings that they began with. Former values of secrets are still masked.
    pub fn renew(&self, settings: EgressSettings) {
        let mut state = self.state.lock();
        *state = State::new(settings, &state.vault);
    }

    /// Registers an address at which wharf itself listens; no plugin may connect to it.
    pub fn is_own(&self, address: SocketAddr) {
        self.dialer.own.write().push(address);
    }

    /// Returns the network of a plugin with this allowance, or `None` if the allowance has no rules.
    pub fn network(&self, plugin: &str, allowance: &Allowance) -> Option<Arc<PluginNetwork>> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        if allowance.is_empty() {
            return None;
        }
        let mut state = self.state.lock();
        if let Some(network) = state.networks.get(plugin).filter(|network| network.allowance() == allowance) {
            return Some(Arc::clone(network));
        }
        // Networks are needed only by calls, and calls always run inside a runtime.
        let io = Handle::try_current().ok()?;
        let network = Arc::new(PluginNetwork::new(
            (NUMBERS.fetch_add(1, Ordering::Relaxed), named(("plugin", plugin))),
            allowance.clone(),
            (Arc::clone(&state.vault), Arc::clone(&self.dialer)),
            (&state.roots, state.settings.proxy.clone().map(Arc::new)),
            io,
        ));
        state.networks.insert(plugin.to_owned(), Arc::clone(&network));
        Some(network)
    }

    /// Whether the config has a secret of that name.
    pub fn has_secret(&self, name: &str) -> bool {
        self.state.lock().settings.secrets.contains_key(name)
    }

    /// Returns a note for the operator about the limits of checking this allowance, for `wharf check`.
    pub fn note(&self, allowance: &Allowance) -> Option<&'static str> {
        let proxied = !allowance.is_empty() && self.state.lock().settings.proxy.is_some();
        proxied.then_some(
            "its HTTP requests go through a proxy, and the proxy looks names up, so wharf cannot check their addresses",
        )
    }

    /// Returns the reason for each secret of these rules that cannot be loaded, for `wharf check`.
    pub async fn problems(&self, allowance: &Allowance) -> Vec<String> {
        let vault = Arc::clone(&self.state.lock().vault);
        let mut problems = Vec::new();
        for name in allowance.secrets() {
            if let Err(error) = vault.get(name).await {
                problems.push(format!("{error:#}"));
            }
        }
        problems.dedup();
        problems
    }
}
