//! One plugin of a catalog, and how often the lists that are made of all of them changed.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio_util::sync::CancellationToken;
use wharf_sandbox::{
    Plugin,
    places::{Places, Rule},
};

use crate::{access::wants::want::Wants, base::text::clean, bridge::Offer, config::PluginConfig};

pub static CHECKS: Rule = Rule {
    of: "long checks against a schema of a plugin",
    number: "1 for each plugin",
    taker: "client",
    until: "the check ends, at most after the plugin's `timeout_ms`",
    asking: "not held",
    gone: "held until the check ends",
    gives_way: "none; of those that wait, each client has its turn",
    old: Duration::MAX,
};

pub static RESULTS: Rule = Rule {
    of: "large results of a plugin that are checked and written",
    number: "1 for each plugin",
    taker: "client",
    until: "the result is written to memory",
    asking: "not held",
    gone: "given back at once, or when the result is written",
    gives_way: "none; of those that wait, each client has its turn",
    old: Duration::MAX,
};

/// Tasks of one plugin that run.
pub static TASKS: Rule = Rule {
    of: "tasks of one plugin that run",
    number: "half of the plugin's `concurrency`",
    taker: "client",
    until: "the plugin has answered or asked",
    asking: "given back, and taken again after the answer",
    gone: "given back: the tasks of a session end with it, all others with their time to live",
    gives_way: "nothing; a task waits for its turn within its time to live, and the client that runs the fewest tasks is next",
    old: Duration::MAX,
};

/// A plugin as it is served: its code, its config and what it offers.
#[derive(Clone)]
pub struct Served {
    pub plugin: Plugin,
    pub config: Arc<PluginConfig>,
    /// The config that the offer was made for. `config` may have been narrowed since, which the offer does not show yet.
    pub listed_for: Arc<PluginConfig>,
    pub offer: Arc<Offer>,
    /// What the plugin says that it wants; `None` if it says nothing.
    pub wants: Option<Arc<Wants>>,
    /// Held during a long check against a schema of the plugin, so that there is one at a time.
    pub checks: Arc<Places>,
    /// Held while a large result of the plugin is checked and written, so that there is one at a time.
    pub results: Arc<Places>,
    /// Held by each of the plugin's calls that runs as a task.
    pub tasks: Arc<Places>,
    pub access: Access,
}

/// What a plugin may do, from the time at which it was served, or at which something of it was taken away, until more is. It stays the
/// same when the plugin is replaced.
#[derive(Debug, Clone)]
pub struct Access {
    /// Cancelled when the calls that have it are to stop.
    taken: CancellationToken,
    /// No other access has the same number.
    number: u64,
}

/// How often there was access.
static ACCESSES: AtomicU64 = AtomicU64::new(0);

impl Access {
    /// As it is now. Nothing that was taken away before is in it.
    pub fn from_now_on() -> Self {
        Self { taken: CancellationToken::new(), number: ACCESSES.fetch_add(1, Ordering::Relaxed) + 1 }
    }

    pub fn number(&self) -> u64 {
        self.number
    }

    /// Whether calls that began with it have to stop.
    pub fn is_taken(&self) -> bool {
        self.taken.is_cancelled()
    }

    /// Resolves when calls that began with it have to stop.
    pub async fn taken(&self) {
        self.taken.cancelled().await;
    }

    /// Stops the calls that run or wait. What came of earlier ones stays.
    pub fn stop_calls(&mut self) {
        self.taken.cancel();
        self.taken = CancellationToken::new();
    }

    /// The same when something is taken away of what the calls could reach: what came of earlier ones is not given any more either.
    pub fn narrow(&mut self) {
        self.taken.cancel();
        *self = Self::from_now_on();
    }
}

impl Served {
    /// Whether with this config some calls are not let in that were with the one before: of tools or prompts that are not offered any
    /// more, or without a person's approval.
    pub fn offers_less_with(&self, config: &PluginConfig) -> bool {
        let before = &self.config;
        let asked = config.confirm.is_some() && config.confirm != before.confirm;
        let tools = self.offer.tools.iter().map(|tool| &tool.own_name);
        let prompts = self.offer.prompts.iter().map(|prompt| &prompt.own_name);
        asked
            || tools.into_iter().any(|name| before.allows_tool(name) && !config.allows_tool(name))
            || prompts.into_iter().any(|name| before.allows_prompt(name) && !config.allows_prompt(name))
    }

    /// What the model is told about all tools of the plugin: by the operator or, if the operator says nothing, by the plugin.
    pub fn instructions(&self) -> Option<String> {
        let own = || self.plugin.code().sections().instructions.as_deref();
        let text = self.config.instructions.as_deref().or_else(own)?;
        Some(clean(text).trim().to_owned()).filter(|text| !text.is_empty())
    }
}

/// How often each list has changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Generations {
    pub tools: u64,
    pub resources: u64,
    pub prompts: u64,
}
