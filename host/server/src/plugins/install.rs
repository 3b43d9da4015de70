//! The slow part of the library's work, which it leaves to tasks: to load a plugin's code and ask what the plugin offers.
//! Nothing here decides what is served.

use std::{sync::Arc, time::Duration};

use tokio::sync::Semaphore;
use tracing::Instrument;
use wharf_sandbox::{Call, Code, List, LoadError, NoEvents, Plugin, PluginSpec, places::Party, sections::WANTS};

use super::{
    loader::Loader,
    served::Served,
    status::{Problem, Stage},
};
use crate::{
    access::{
        scope::Scopes,
        wants::{parse, want::Wants},
    },
    base::{
        ledger::Ledger,
        text::{clip, escaped},
    },
    bridge::{self, Offer},
    config::PluginConfig,
    observe::{
        observers::{Begun, Observers},
        record::{Action, Ended},
    },
    schema::{budget, budget::Lengths},
};

/// How many plugins are asked for their lists at once. These run in the same sandbox as calls, which must not have to wait for
/// them.
const ASKED_AT_ONCE: usize = 16;
/// After how long a list counts as slow, so that the start of wharf does not wait for it.
const SLOW_LIST: Duration = Duration::from_secs(2);

pub struct Installer {
    pub loader: Loader,
    scopes: Arc<Scopes>,
    ledger: Arc<Ledger>,
    observers: Observers,
    asking: Semaphore,
}

/// A plugin that is ready to be served.
pub struct Fresh {
    pub plugin: Plugin,
    pub config: Arc<PluginConfig>,
    /// The config that the plugin listed its offer for.
    pub listed_for: Arc<PluginConfig>,
    pub offer: Arc<Offer>,
    pub wants: Option<Arc<Wants>>,
}

/// The outcome of installing a plugin.
pub enum Installed {
    /// What is served is up to date.
    Same,
    Fresh(Box<Fresh>),
    /// `instead`: the version that is served now, with the new config.
    Failed {
        problem: Problem,
        instead: Option<Box<Fresh>>,
    },
}

impl Installer {
    pub fn new(loader: Loader, scopes: Arc<Scopes>, ledger: Arc<Ledger>, observers: Observers) -> Self {
        Self { loader, scopes, ledger, observers, asking: Semaphore::new(ASKED_AT_ONCE) }
    }

    /// Loads a plugin if its file or its config has changed since the served version. `slow` is called if it takes long.
    pub async fn install(&self, current: Option<&Served>, config: &Arc<PluginConfig>, slow: impl Fn()) -> Installed {
        let problem = match self.loader.code(config, &slow).await {
            Ok(code) => {
                let same =
                    |served: &&Served| served.plugin.code().digest() == code.digest() && served.listed_for == *config;
                if current.filter(same).is_some() {
                    return Installed::Same;
                }
                match self.list(code, config, &slow).await {
                    Ok(fresh) => return Installed::Fresh(Box::new(fresh)),
                    Err(problem) => problem,
                }
            }
            Err(problem) => problem,
        };
        let instead = match current.filter(|served| served.listed_for != *config) {
            Some(served) => self.keep_serving(served, config).await,
            None => None,
        };
        Installed::Failed { problem, instead: instead.map(Box::new) }
    }

    /// Asks a plugin that is served for its lists again.
    pub async fn list_again(&self, served: &Served, slow: impl Fn()) -> Installed {
        match self.list(served.plugin.code().clone(), &served.config, slow).await {
            // The plugin stays the same object, so that calls that run already still count towards its limits.
            Ok(fresh) => Installed::Fresh(Box::new(Fresh { plugin: served.plugin.clone(), ..fresh })),
            Err(problem) => Installed::Failed { problem, instead: None },
        }
    }

    /// If the new version of a plugin fails, the old one is still served, but with the new config. Its lists are still those for the
    /// old one, so it is asked again as soon as it loads.
    async fn keep_serving(&self, served: &Served, config: &Arc<PluginConfig>) -> Option<Fresh> {
        let code = served.plugin.code().clone();
        if config.sha256.as_ref().is_some_and(|expected| expected != code.digest()) {
            return None;
        }
        let listing = Arc::clone(&served.offer.listing);
        let offer = self.check(config, listing).await.ok()?;
        let (listed_for, wants) = (Arc::clone(&served.listed_for), served.wants.clone());
        let plugin = Plugin::new(code, spec(config)).ok()?;
        Some(Fresh { plugin, config: Arc::clone(config), listed_for, offer, wants })
    }

    /// Asks a plugin what it offers, and checks the answer.
    async fn list(&self, code: Code, config: &Arc<PluginConfig>, slow: impl Fn()) -> Result<Fresh, Problem> {
        let wants = wants(&code)?;
        let plugin = Plugin::new(code, spec(config));
        let plugin = plugin.map_err(|error| Problem { stage: Stage::Load, text: error.to_string() })?;
        // The semaphore is never closed, so this cannot fail.
        let turn = self.asking.acquire().await;
        let scope = self.scopes.for_listing(&config.id, &config.unasked_grants());
        let record = self.observers.begin(|| Begun {
            principal: None,
            plugin: config.id.clone(),
            digest: *plugin.code().digest(),
            request: None,
            action: Action::List,
            scope: Some(&scope),
            bytes_in: 0,
            arguments: None,
            approval: None,
            slot: None,
        });
        let call = Call {
            operation: List,
            scope,
            events: Arc::new(NoEvents),
            timeout: None,
            client: None,
            party: Party::SOLE,
        };
        let report = {
            let span = tracing::debug_span!("list", plugin = config.id);
            let mut asked = std::pin::pin!(plugin.call(call).instrument(span));
            match tokio::time::timeout(SLOW_LIST, &mut asked).await {
                Ok(report) => report,
                Err(_) => {
                    slow();
                    asked.await
                }
            }
        };
        drop(turn);
        let ended = report.result.as_ref().map_or_else(Ended::of, |_| Ended::Done);
        // What a plugin offers is no answer to a call, so it need not wait for its record.
        drop(record.end(ended, &report));
        let listing = match report.result {
            Ok(listing) => listing,
            Err(error) => {
                let printed = if report.printed.is_empty() {
                    String::new()
                } else {
                    format!("; it printed: {}", config.settings.redacted(&report.printed))
                };
                let error = escaped(&config.settings.redacted(&error.to_string()));
                return Err(Problem { stage: Stage::List, text: format!("{}{printed}", LoadError::List(error)) });
            }
        };
        let offer = self.check(config, Arc::new(listing)).await?;
        Ok(Fresh { plugin, config: Arc::clone(config), listed_for: Arc::clone(config), offer, wants })
    }

    /// Checks a listing on a thread with a large stack and within a time limit, so that a hostile one does no harm. Its memory
    /// is charged to the plugin's account.
    async fn check(
        &self,
        config: &Arc<PluginConfig>,
        listing: Arc<wharf_sandbox::Listing>,
    ) -> Result<Arc<Offer>, Problem> {
        let (account, config) = (self.ledger.plugin(), Arc::clone(config));
        let checked =
            budget::run(budget::LIST_LIMIT, Lengths::ANY, move || bridge::offer(&config, listing, &account)).await;
        let offer = checked.map_err(|exhausted| exhausted.to_string()).and_then(|offer| offer);
        offer.map(Arc::new).map_err(|text| Problem { stage: Stage::List, text })
    }
}

/// What a plugin wants, or why that cannot be read.
fn wants(code: &Code) -> Result<Option<Arc<Wants>>, Problem> {
    let Some(text) = &code.sections().wants else { return Ok(None) };
    let unreadable = |error: anyhow::Error| {
        let problem = clip(&escaped(&format!("{error:#}")));
        let text = LoadError::Section { name: WANTS, problem }.to_string();
        Problem { stage: Stage::List, text }
    };
    parse::json(text).map(Arc::new).map(Some).map_err(unreadable)
}

fn spec(config: &PluginConfig) -> PluginSpec {
    PluginSpec {
        id: config.id.clone(),
        limits: config.limits.clone(),
        config: config.settings.json(),
        adapter: Arc::clone(&config.adapter),
    }
}
