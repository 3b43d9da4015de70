//! Installs plugins: loads a plugin's code, asks the plugin for its lists, and checks them. This is slow, so the library runs it in tasks.
//! The library alone decides what is served.

use std::{path::Path, sync::Arc, time::Duration};

use tokio::sync::Semaphore;
use tracing::Instrument;
use wharf_sandbox::{
    Code, ListEntries, LoadError, LoadedPlugin, NoEvents, PluginCall, PluginSpec, Told, Traces, sections::WANTS,
};
use wharf_scope::Denial;

use super::{
    loader::Loader,
    served::Served,
    status::{Problem, Stage},
};
use crate::{
    bridge::{self, Offer},
    observe::{
        observers::{Begun, Observers},
        record::{Action, Ended},
    },
};
use wharf_base::{
    ledger::Ledger,
    places::Party,
    text::{self, clip, escaped},
};
use wharf_config::{
    config::PluginConfig,
    lock::{Lock, Surface},
};
use wharf_policy::access::{
    grants::hint::{self, By},
    scope::Scopes,
    wants::{parse, want::Wants},
};
use wharf_schema::budget::{self, Lengths};

/// The maximum number of list requests to plugins at once. They run in the same sandbox as calls, and calls must not have to wait for
/// them.
const MAX_CONCURRENT_LISTS: usize = 16;
/// How long a list request may take before it counts as slow, so that the first load does not wait for it.
const SLOW_LIST_GRACE: Duration = Duration::from_secs(2);

pub struct Installer {
    pub loader: Loader,
    scopes: Arc<Scopes>,
    ledger: Arc<Ledger>,
    observers: Observers,
    list_permits: Semaphore,
}

/// A plugin that is ready to be served.
pub struct Fresh {
    pub plugin: LoadedPlugin,
    pub config: Arc<PluginConfig>,
    /// The config with which the plugin listed its offer.
    pub listed_for: Arc<PluginConfig>,
    pub offer: Arc<Offer>,
    pub wants: Option<Arc<Wants>>,
}

/// The outcome of installing a plugin.
pub enum Installed {
    /// The version that is being served is up to date.
    Same,
    /// There is something new to serve.
    Fresh(Box<Fresh>),
    /// The plugin could not be installed. `instead`: the version that is being served, with the new config.
    Failed { problem: Problem, instead: Option<Box<Fresh>> },
}

impl Installer {
    pub fn new(loader: Loader, scopes: Arc<Scopes>, ledger: Arc<Ledger>, observers: Observers) -> Self {
        Self { loader, scopes, ledger, observers, list_permits: Semaphore::new(MAX_CONCURRENT_LISTS) }
    }

    /// Loads a plugin if its file or its config differs from the served version. `slow` is called if that takes long.
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

    /// Requests the lists of a served plugin again.
    pub async fn list_again(&self, served: &Served, slow: impl Fn()) -> Installed {
        match self.list(served.plugin.code().clone(), &served.config, slow).await {
            // The `LoadedPlugin` stays the same object, so that calls that are already running still count towards its limits.
            Ok(fresh) => {
                served.plugin.learn_from(&fresh.plugin);
                Installed::Fresh(Box::new(Fresh { plugin: served.plugin.clone(), ..fresh }))
            }
            Err(problem) => Installed::Failed { problem, instead: None },
        }
    }

    /// Prepares the served version of a plugin, whose new version has failed, to be served with the new config. Its lists are still those
    /// that it gave with the old config, so `listed_for` stays as it is and the lists are requested again once the plugin loads.
    async fn keep_serving(&self, served: &Served, config: &Arc<PluginConfig>) -> Option<Fresh> {
        let code = served.plugin.code().clone();
        if config.sha256.as_ref().is_some_and(|expected| expected != code.digest()) {
            return None;
        }
        let listing = Arc::clone(&served.offer.listing);
        let offer = self.check(config, listing).await.ok()?;
        let (listed_for, wants) = (Arc::clone(&served.listed_for), served.wants.clone());
        let plugin = LoadedPlugin::new(code, spec(config)).ok()?;
        plugin.learn_from(&served.plugin);
        Some(Fresh { plugin, config: Arc::clone(config), listed_for, offer, wants })
    }

    /// Requests the lists of a plugin and checks them.
    async fn list(&self, code: Code, config: &Arc<PluginConfig>, slow: impl Fn()) -> Result<Fresh, Problem> {
        let wants = wants(&code)?;
        let plugin = LoadedPlugin::new(code, spec(config));
        let plugin = plugin.map_err(|error| Problem::new(Stage::Load, error))?;
        // The semaphore is never closed, so this cannot fail.
        let permit = self.list_permits.acquire().await;
        let scope = self.scopes.for_listing(&config.id, &config.unasked_grants());
        let record = self.observers.begin(None, || Begun {
            principal: None,
            plugin: config.id.clone(),
            digest: Some(*plugin.code().digest()),
            request: None,
            action: Action::List,
            scope: Some(&scope),
            bytes_in: 0,
            arguments: None,
            approval: None,
            slot: None,
        });
        let call = PluginCall {
            operation: ListEntries,
            scope,
            events: Arc::new(NoEvents),
            timeout: None,
            client: None,
            party: Party::SOLE,
            traces: Traces::default(),
        };
        let report = {
            let span = tracing::debug_span!("list", plugin = config.id);
            let mut asked = std::pin::pin!(plugin.call(call).instrument(span));
            match tokio::time::timeout(SLOW_LIST_GRACE, &mut asked).await {
                Ok(report) => report,
                Err(_) => {
                    slow();
                    asked.await
                }
            }
        };
        drop(permit);
        let ended = report.result.as_ref().map_or_else(Ended::from, |_| Ended::Done);
        // Unlike the answer to a call, a listing need not wait until its record is written.
        drop(record.end(ended, &report));
        let listing = match report.result {
            Ok(listing) => listing,
            Err(error) => {
                // Cut once no part of a secret can be left, and so short that there is room for what follows.
                let error = Told::brief(format_args!("{}", config.settings.redacted(&error.to_string())));
                let mut text = LoadError::List(escaped(&error)).to_string();
                for refused in refusals(&report.denials, config.granted_by()) {
                    text.push_str("; ");
                    text.push_str(&refused);
                }
                if !report.printed.is_empty() {
                    text.push_str("; it printed: ");
                    text.push_str(&config.settings.redacted(&report.printed));
                }
                return Err(Problem::new(Stage::List, text));
            }
        };
        let offer = self.check(config, Arc::new(listing)).await?;
        if let Some(lock) = &config.lock {
            let surface = bridge::surface(&offer.listing, plugin.code().sections(), &self.ledger.plugin());
            let surface = surface.map_err(|full| {
                let text = format!(
                    "it cannot be compared with what was accepted: {full} (of total_host_memory_mib in [limits])"
                );
                Problem::new(Stage::Consent, text)
            })?;
            consent(&config.id, lock, &surface)?;
        }
        Ok(Fresh { plugin, config: Arc::clone(config), listed_for: Arc::clone(config), offer, wants })
    }

    /// Checks a listing on a thread with a large stack and within a time limit, so that a hostile listing does no harm. Its memory is
    /// charged to the plugin's account.
    async fn check(
        &self,
        config: &Arc<PluginConfig>,
        listing: Arc<wharf_sandbox::Listing>,
    ) -> Result<Arc<Offer>, Problem> {
        let (account, config) = (self.ledger.plugin(), Arc::clone(config));
        let checked = budget::run(budget::LIST_CHECK_TIMEOUT, None, Lengths::ANY, move || {
            bridge::offer(&config, listing, &account)
        })
        .await;
        let offer = checked.map_err(|exhausted| exhausted.to_string()).and_then(|offer| offer);
        offer.map(Arc::new).map_err(|text| Problem::new(Stage::List, text))
    }
}

/// The maximum number of refused requests that an error names.
const MAX_REFUSALS: usize = 3;

/// Returns what a plugin was refused while it listed, and what would allow it. It had no folders of a client then, so only its requests
/// count.
fn refusals(denials: &[Denial], by: By) -> Vec<String> {
    let requests = denials.iter().filter(|denial| matches!(denial, Denial::Http(_)));
    let mut texts: Vec<String> = requests.map(|denial| hint::hint(denial, by, escaped).text).collect();
    texts.dedup();
    texts.truncate(MAX_REFUSALS);
    texts
}

/// The maximum number of differences that an error names.
const MAX_DIFFERENCES: usize = 5;

/// Checks that the operator has accepted what a plugin tells models and wants.
fn consent(id: &str, lock: &Path, now: &Surface) -> Result<(), Problem> {
    let problem = |text| Problem::new(Stage::Consent, text);
    let file = Lock::read(lock).map_err(|error| problem(format!("{error:#}")))?;
    let (remedy, lock) = (format!("see and accept it with `wharf lock accept {id}`"), text::path(lock));
    let Some(accepted) = file.accepted(id) else {
        return Err(problem(format!("it is pinned, and {lock} accepts nothing of it yet; {remedy}")));
    };
    let differences = accepted.differences(now);
    if differences.is_empty() {
        return Ok(());
    }
    let more = differences.len().saturating_sub(MAX_DIFFERENCES);
    let named: Vec<String> = differences.iter().take(MAX_DIFFERENCES).map(ToString::to_string).collect();
    let more = if more > 0 { format!(", and {more} more differences") } else { String::new() };
    Err(problem(format!("it is not what {lock} accepts: {}{more}; {remedy}", named.join(", "))))
}

/// Reads the section of the component in which the plugin declares the grants it wants. Returns `None` if there is no such section.
fn wants(code: &Code) -> Result<Option<Arc<Wants>>, Problem> {
    let Some(text) = &code.sections().wants else { return Ok(None) };
    let unreadable = |error: anyhow::Error| {
        let problem = clip(&escaped(&format!("{error:#}")));
        Problem::new(Stage::List, LoadError::Section { name: WANTS, problem })
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

#[cfg(test)]
mod tests {
    use wharf_scope::network::{HttpDenial, HttpRefusal};

    use super::*;

    #[test]
    fn what_was_refused_while_it_listed_is_named() {
        let no_rule =
            |url: &str| Denial::Http(HttpDenial { method: "GET".into(), url: url.into(), why: HttpRefusal::NoRule });
        let denials =
            [Denial::NoDirectory { asked: true }, no_rule("https://a.example/x"), no_rule("https://a.example/x")];
        assert_eq!(
            refusals(&denials, By::Flag),
            ["it wanted GET https://a.example/x, which `--allow http=https://a.example` would allow"]
        );
        let many: Vec<Denial> = (0..9).map(|number| no_rule(&format!("https://{number}.example/"))).collect();
        assert_eq!(refusals(&many, By::Config).len(), MAX_REFUSALS);
    }
}
