//! The way out: what plugins send over HTTP, by the rules of the operator.
//!
//! `rule` says which requests a plugin may make, `target` what a URL means, `header` which names of headers are the same, `address`
//! which addresses may be reached; these are pure. `connect` and `tls` make connections, `secrets` fetches what is added to requests,
//! `mask` keeps it out of what comes back (`notation` says how servers may write it, `search` finds it, `masking` applies that to
//! responses), and `network` puts them together for one plugin.
//!
//! Nothing is looked up, and no connection made, for a request that no rule allows. Plugins share neither connections nor what
//! TLS remembers.

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
    connect::{Dialer, Proxy, System},
    network::PluginNetwork,
    secrets::{Source, Sources, Vault},
    tls::{Roots, Trust},
};

pub mod address;
mod allowance;
pub mod answers;
pub mod connect;
pub mod header;
pub mod hint;
pub mod line;
pub mod mask;
mod masking;
pub mod network;
mod notation;
pub mod rule;
mod search;
pub mod secrets;
pub mod target;
pub mod tls;

pub use allowance::{Allowance, Placeholder};
pub use answers::Answers;

use crate::base::party::named;

/// `[egress]` and `[secrets]`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    pub trust: Trust,
    pub proxy: Option<Proxy>,
    pub secrets: Sources,
}

impl Settings {
    /// The files that it names, whose contents wharf trusts.
    pub fn files(&self) -> impl Iterator<Item = PathBuf> {
        let programs = self.secrets.values().flat_map(Source::programs);
        self.trust.files.iter().chain(self.secrets.values().filter_map(Source::file)).cloned().chain(programs)
    }
}

/// What all plugins share of the way out.
pub struct Egress {
    dialer: Arc<Dialer>,
    state: Mutex<State>,
}

struct State {
    settings: Settings,
    vault: Arc<Vault>,
    roots: Arc<Roots>,
    /// The networks of plugins, by their ids.
    networks: HashMap<String, Arc<PluginNetwork>>,
}

impl State {
    fn new(settings: Settings, before: &Vault) -> Self {
        let (vault, roots) = (before.renewed(&settings.secrets), Roots::new(settings.trust.clone()));
        Self { vault: Arc::new(vault), roots: Arc::new(roots), networks: HashMap::new(), settings }
    }
}

impl Default for Egress {
    fn default() -> Self {
        Self::new(Settings::default(), None)
    }
}

impl Egress {
    /// `answers`: what answers in place of all servers, in a test.
    pub fn new(settings: Settings, answers: Option<Arc<dyn Answers>>) -> Self {
        let mut dialer = Dialer::new(Box::new(System));
        dialer.answers = answers;
        Self { dialer: Arc::new(dialer), state: Mutex::new(State::new(settings, &Vault::default())) }
    }

    /// Uses other settings. Secrets and certificates are fetched again when they are next needed, and connections that were kept
    /// are closed. Requests that are under way end as they began. What secrets were before is still masked.
    pub fn renew(&self, settings: Settings) {
        let mut state = self.state.lock();
        *state = State::new(settings, &state.vault);
    }

    /// Notes an address at which wharf itself listens, which no plugin may reach.
    pub fn is_own(&self, address: SocketAddr) {
        self.dialer.own.write().push(address);
    }

    /// The network of a plugin that may send this. `None` if it may send nothing.
    pub fn network(&self, plugin: &str, allowance: &Allowance) -> Option<Arc<PluginNetwork>> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        if allowance.is_empty() {
            return None;
        }
        let mut state = self.state.lock();
        if let Some(network) = state.networks.get(plugin).filter(|network| network.allowance() == allowance) {
            return Some(Arc::clone(network));
        }
        // Only a call needs a network, and calls run where there is a runtime.
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

    /// Whether there is a secret of that name.
    pub fn has_secret(&self, name: &str) -> bool {
        self.state.lock().settings.secrets.contains_key(name)
    }

    /// What the operator should know about what a plugin may send.
    pub fn note(&self, allowance: &Allowance) -> Option<&'static str> {
        let proxied = !allowance.is_empty() && self.state.lock().settings.proxy.is_some();
        proxied
            .then_some("its HTTP requests go through a proxy, and the proxy looks names up: no address is judged here")
    }

    /// Secrets of these rules that cannot be fetched, each with the reason. For `wharf check`.
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
