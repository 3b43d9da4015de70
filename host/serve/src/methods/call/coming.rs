//! Requests for what is not in the catalog: as long as a plugin that could have it is being loaded, they wait for the plugin. If the
//! plugin did not load, they are told so. Both only if the client may see what the plugin offers.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};
use wharf_protocol::{
    RpcError,
    error::{INVALID_PARAMS, RESOURCE_NOT_FOUND},
};

use super::failed::{Failed, Why};
use crate::client::context::Context;
use wharf_config::config::PluginConfig;
use wharf_plugins::plugins::{
    expected::{Expected, Sought},
    lists::List,
    published::FIRST_LOAD_TIMEOUT,
    view::View,
};
use wharf_policy::profiles::Style;

/// The longest time that a list waits at the start for plugins that are still being loaded. Most clients wait 30 s or longer, and many
/// never ask for a list again, so for them an incomplete list stays incomplete.
const LIST_TIMEOUT: Duration = Duration::from_secs(25);
/// The same if the client is told of the progress meanwhile. The SDKs give up on a request after 60 s, even if there is progress.
const LIST_TIMEOUT_WITH_PROGRESS: Duration = Duration::from_secs(50);
/// How long a request waits before the first progress notification, and the interval between two.
const PROGRESS_GRACE: Duration = Duration::from_secs(1);
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);
/// The progress that one such notification reports. It is tiny, because what the plugin itself reports afterwards must be more.
const PROGRESS_STEP: f64 = 0.000_1;

/// Returns the catalog for a list request. Waits for the first load and, longer than that, for the plugins of the start of which nothing
/// is served yet: for those of the config and, if the client wants progress, for those of the plugin folder too.
pub async fn for_list(ctx: &Context, list: List) -> View {
    let mut waiting = Waiting::new(ctx);
    let all = ctx.wants_progress();
    let longest = if all { LIST_TIMEOUT_WITH_PROGRESS } else { LIST_TIMEOUT };
    loop {
        let expected = waiting.expected();
        let is_first = !*waiting.ready.borrow_and_update();
        let view = ctx.server.view(ctx.caller(), ctx.profile());
        // The search tools are the same whatever is loaded.
        if list == List::Tools && view.filter.style() == Style::Search {
            return view;
        }
        // Plugins that the operator adds later are announced.
        let starts = *ctx.server.published.settled.borrow() == 0;
        let coming = expected.as_ref().filter(|_| starts);
        let coming = coming.map(|expected| expected.coming(&view.catalog, &view.filter, all));
        let limit = match coming.as_deref() {
            Some([_, ..]) => longest,
            _ if is_first => FIRST_LOAD_TIMEOUT,
            _ => return view,
        };
        let mut named = coming.unwrap_or_default();
        named.retain(|config| view.may_know(&config.id));
        if !waiting.change(limit, &named).await {
            return ctx.server.view(ctx.caller(), ctx.profile());
        }
    }
}

/// Returns a catalog in which something is found that was not in the catalog a moment ago. Waits for it as long as a plugin that could
/// have it is being loaded, within the time limit of that plugin's calls. `find`: looks for it.
pub async fn wait_for(
    ctx: &Context,
    sought: Sought<'_>,
    find: impl Fn(&View) -> Result<(), RpcError>,
) -> Result<View, Failed> {
    let mut waiting = Waiting::new(ctx);
    loop {
        let expected = waiting.expected();
        let view = ctx.server.view(ctx.caller(), ctx.profile());
        let mut error = match find(&view) {
            Ok(()) => return Ok(view),
            Err(error) if [INVALID_PARAMS, RESOURCE_NOT_FOUND].contains(&error.code) => error,
            Err(error) => return Err(error.into()),
        };
        let coming = expected.as_ref().map(|expected| expected.loading_with(&sought, &view.filter));
        let limit = match coming.as_deref() {
            None => FIRST_LOAD_TIMEOUT,
            Some(coming) => match coming.iter().map(|config| config.limits.timeout).max() {
                Some(limit) => limit,
                None => {
                    let knows = |id: &str| view.may_know(id);
                    let lost = ctx.server.published.lost(&sought, &view.filter, knows);
                    if let Some(why) = lost {
                        error.message += &format!("; {why}");
                    }
                    return Err(Failed::unknown(error));
                }
            },
        };
        let is_coming = coming.is_some();
        let mut named = coming.unwrap_or_default();
        named.retain(|config| view.may_know(&config.id));
        if !waiting.change(limit, &named).await {
            return Err(if is_coming {
                Failed::new(Why::Busy, format!("{}; try again in a moment.", being_compiled(&named, "The ")))
            } else {
                Failed::unknown(error)
            });
        }
    }
}

/// Returns a sentence about the plugins that are still being loaded, if the client may know of any.
pub fn still_coming(ctx: &Context, view: &View) -> Option<String> {
    let expected = ctx.server.published.expected.borrow().clone()?;
    let mut coming = expected.coming(&view.catalog, &view.filter, true);
    coming.retain(|config| view.may_know(&config.id));
    (!coming.is_empty()).then(|| format!("{}; look again in a moment", being_compiled(&coming, "the ")))
}

/// The maximum number of plugins that a sentence names.
const MAX_NAMED: usize = 5;

/// `plugins`: those that the client may know of.
fn being_compiled(plugins: &[&PluginConfig], the: &str) -> String {
    let named: Vec<&str> = plugins.iter().take(MAX_NAMED).map(|config| config.id.as_str()).collect();
    let more = if plugins.len() > MAX_NAMED { " and others" } else { "" };
    match &named[..] {
        [] => format!("{}plugin is still being compiled", if the == "The " { "A " } else { "a " }),
        [one] => format!("{the}plugin {one} is still being compiled"),
        all => format!("{the}plugins {}{more} are still being compiled", all.join(", ")),
    }
}

/// A request that waits, and the progress that its client is told.
struct Waiting<'a> {
    ctx: &'a Context,
    expected: watch::Receiver<Option<Arc<Expected>>>,
    ready: watch::Receiver<bool>,
    began: Instant,
    next_report: Instant,
    reports: f64,
}

impl<'a> Waiting<'a> {
    fn new(ctx: &'a Context) -> Self {
        let (published, began) = (&ctx.server.published, Instant::now());
        Self {
            ctx,
            expected: published.expected.clone(),
            ready: published.ready.clone(),
            began,
            next_report: began + PROGRESS_GRACE,
            reports: 0.0,
        }
    }

    /// Returns what should be served. Must be called before the catalog is read.
    fn expected(&mut self) -> Option<Arc<Expected>> {
        self.expected.borrow_and_update().clone()
    }

    /// Waits until something else is being loaded, or the first load is over. False: that did not happen within `limit` since the request
    /// came. `coming`: the plugins that the client is told of.
    async fn change(&mut self, limit: Duration, coming: &[&PluginConfig]) -> bool {
        let deadline = self.began + limit;
        loop {
            let wake = if self.ctx.wants_progress() { deadline.min(self.next_report) } else { deadline };
            tokio::select! {
                changed = self.expected.changed() => return changed.is_ok(),
                Ok(()) = self.ready.changed() => return true,
                () = sleep_until(wake) => {}
            }
            if Instant::now() >= deadline {
                return false;
            }
            self.next_report += PROGRESS_INTERVAL;
            self.reports += 1.0;
            let message = (!coming.is_empty()).then(|| being_compiled(coming, "the "));
            self.ctx.progress(self.reports * PROGRESS_STEP, None, message);
        }
    }
}
