//! One plugin of a catalog, and the generation counters of the lists.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio_util::sync::{CancellationToken, DropGuard};
use wharf_sandbox::LoadedPlugin;
use wharf_scope::MAX_INSTRUCTIONS_BYTES;

use crate::bridge::Offer;
use wharf_base::{
    places::{Places, PoolRule},
    session_id::ListDigests,
    text::clean,
};
use wharf_config::config::{Instances, PluginConfig};
use wharf_policy::access::wants::want::{WantedGrant, Wants};

/// The rule for large results: one at a time for each plugin.
pub static RESULTS: PoolRule = PoolRule {
    of: "large results of a plugin that are checked and written",
    number: "1 for each plugin",
    taker: "client",
    until: "the result is written to memory",
    asking: "not held",
    gone: "given back at once, or when the result is written",
    gives_way: "nothing; waiting clients take turns",
    old: Duration::MAX,
};

/// The rule for tasks: how many calls of one plugin may run as tasks at once.
pub static TASKS: PoolRule = PoolRule {
    of: "tasks of one plugin that run",
    number: "half of the plugin's `concurrency`",
    taker: "client",
    until: "the plugin has returned an answer or a question",
    asking: "given back, and taken again after the answer",
    gone: "given back: the tasks of a session end with it, all others with their time to live",
    gives_way: "nothing; a task waits for its turn within its time to live, and the client that runs the fewest tasks is next",
    old: Duration::MAX,
};

/// A plugin that is being served: its code, its config and its offer.
#[derive(Clone)]
pub struct Served {
    pub plugin: LoadedPlugin,
    pub config: Arc<PluginConfig>,
    /// The config with which the plugin listed its offer. `config` may have lost grants or entries since; the offer does not reflect that
    /// until the plugin lists again.
    pub listed_for: Arc<PluginConfig>,
    pub offer: Arc<Offer>,
    /// The grants that the plugin declares it wants; `None` if it declares nothing.
    pub wants: Option<Arc<Wants>>,
    /// The place that a long check against a schema of the plugin holds, so that one runs at a time.
    pub checks: Arc<Places>,
    /// The place that a large result holds while it is checked and written, so that one is processed at a time.
    pub results: Arc<Places>,
    /// The places that calls hold while they run as tasks.
    pub tasks: Arc<Places>,
    pub access: Access,
}

/// How calls of one client share instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// Each call has a new instance.
    None,
    /// A call may run in an instance that an earlier call has used.
    Reused,
    /// All calls run in one instance, one after the other.
    One,
}

impl Served {
    /// Returns how calls of one client share instances.
    pub fn sharing(&self) -> Sharing {
        match self.config.instances {
            Some(Instances::Fresh) => Sharing::None,
            _ if self.plugin.code().sections().keeps_state => Sharing::One,
            Some(Instances::Reused) => Sharing::Reused,
            None => Sharing::None,
        }
    }

    /// Whether the plugin works with folders that clients open: it was granted them, or its author says that it wants them.
    pub fn means_folders(&self) -> bool {
        let wants = |wants: &Arc<Wants>| wants.grants.iter().any(|want| matches!(want.what, WantedGrant::Roots(_)));
        self.config.grants.roots.is_given() || self.wants.as_ref().is_some_and(wants)
    }
}

/// A period during which the access of a plugin was not reduced. Calls remember the period in which they began, so that they and their
/// results can be revoked when the operator takes access away. Replacing the plugin's code does not end the period.
#[derive(Debug, Clone)]
pub struct Access {
    /// Cancelled when calls that began in this period must stop.
    revoked: CancellationToken,
    /// The number of the period, unique within the process.
    number: u64,
}

/// The number of periods since the process began.
static PERIODS: AtomicU64 = AtomicU64::new(0);

impl Access {
    /// Begins a new period.
    pub fn from_now_on() -> Self {
        Self { revoked: CancellationToken::new(), number: PERIODS.fetch_add(1, Ordering::Relaxed) + 1 }
    }

    pub fn number(&self) -> u64 {
        self.number
    }

    /// Whether calls that began in this period must stop.
    pub fn is_revoked(&self) -> bool {
        self.revoked.is_cancelled()
    }

    /// Resolves when calls that began in this period must stop.
    pub async fn revoked(&self) {
        self.revoked.cancelled().await;
    }

    /// Ends the calls that run or wait, when the returned guard is dropped. Results of earlier calls remain available, because the period
    /// keeps its number.
    pub fn stop_calls(&mut self) -> DropGuard {
        std::mem::take(&mut self.revoked).drop_guard()
    }

    /// Begins a new period, so that results of earlier calls are not handed out any more. Calls of the previous period that run or wait
    /// end when the returned guard is dropped. To be called when the plugin loses access to something.
    pub fn narrow(&mut self) -> DropGuard {
        std::mem::replace(self, Self::from_now_on()).revoked.drop_guard()
    }
}

impl Served {
    /// Whether the new config refuses calls that the current one accepts, because it excludes a tool or prompt, or requires a person's
    /// approval.
    pub fn offers_less_with(&self, config: &PluginConfig) -> bool {
        let before = &self.config;
        let asked = config.confirm.is_some() && config.confirm != before.confirm;
        let tools = self.offer.tools.iter().map(|tool| &tool.own_name);
        let prompts = self.offer.prompts.iter().map(|prompt| &prompt.own_name);
        asked
            || tools.into_iter().any(|name| before.allows_tool(name) && !config.allows_tool(name))
            || prompts.into_iter().any(|name| before.allows_prompt(name) && !config.allows_prompt(name))
    }

    /// Returns the instructions for models about the plugin's tools: those in the config or, without these, the plugin's own. Instructions
    /// of an MCP server over HTTP that are too long are left out. What a plugin says is one paragraph in one line, since the next could
    /// begin with the id of another plugin, or speak as the operator.
    pub fn instructions(&self) -> Option<String> {
        let told = || self.offer.listing.instructions.as_deref().filter(|text| text.len() <= MAX_INSTRUCTIONS_BYTES);
        let own = || self.plugin.code().sections().instructions.as_deref().or_else(told);
        let text = match &self.config.instructions {
            Some(operators) => clean(operators).trim().to_owned(),
            None => clean(own()?).split_whitespace().collect::<Vec<_>>().join(" "),
        };
        Some(text).filter(|text| !text.is_empty())
    }
}

/// How often each list has changed since this process began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Generations {
    pub tools: u64,
    pub resources: u64,
    pub prompts: u64,
}

/// A digest of the entries of each list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digests {
    pub tools: u64,
    pub resources: u64,
    pub prompts: u64,
}

/// Whether each list has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Changed {
    pub tools: bool,
    pub resources: bool,
    pub prompts: bool,
}

impl Changed {
    pub const ALL: Self = Self { tools: true, resources: true, prompts: true };
    pub const NONE: Self = Self { tools: false, resources: false, prompts: false };
}

impl Generations {
    pub fn since(self, before: Self) -> Changed {
        Changed {
            tools: self.tools != before.tools,
            resources: self.resources != before.resources,
            prompts: self.prompts != before.prompts,
        }
    }
}

impl Digests {
    /// Returns the digests in a shorter form.
    pub fn short(self) -> ListDigests {
        // The lower half of a hash is as good as any other.
        [self.tools, self.resources, self.prompts].map(|digest| (digest >> 32) as u32)
    }

    pub fn since(self, before: Self) -> Changed {
        Changed {
            tools: self.tools != before.tools,
            resources: self.resources != before.resources,
            prompts: self.prompts != before.prompts,
        }
    }
}
