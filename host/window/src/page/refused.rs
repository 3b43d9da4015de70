//! The view "Refused": what plugins were refused, what would allow it, and the buttons that write that into a config and take it back.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
};

use maud::{Markup, html};

use super::{
    layout::{left_out, nothing},
    words::{self, count, time},
};
use crate::{
    actions::{Actions, Standing},
    state::SeenRefusal,
    viewer::merged::View,
};

/// The most refusals that are shown.
const MOST: usize = 200;

/// A refusal, as often as a plugin of a process got it.
pub struct RefusedGroup {
    /// The process.
    pub process: String,
    process_name: String,
    is_gone: bool,
    /// The config file of the process.
    pub config: Option<String>,
    /// The plugin.
    pub plugin: String,
    /// What was refused.
    pub refusal: SeenRefusal,
    count: usize,
    last: u64,
}

/// Returns what was refused, the last one first.
pub fn groups(view: &View) -> Vec<RefusedGroup> {
    let mut groups: HashMap<(&str, &str, &SeenRefusal), RefusedGroup> = HashMap::new();
    for (process, call) in view.calls() {
        for refusal in &call.refusals {
            let group = groups.entry((&process.key, &call.plugin, refusal)).or_insert_with(|| RefusedGroup {
                process: process.key.clone(),
                process_name: words::process(process),
                is_gone: process.is_gone,
                config: process.state.process.config.clone(),
                plugin: call.plugin.clone(),
                refusal: refusal.clone(),
                count: 0,
                // Calls come the newest one first.
                last: call.began,
            });
            group.count += 1;
        }
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort_by(|one, other| {
        (other.last, &one.plugin, &one.refusal.text).cmp(&(one.last, &other.plugin, &other.refusal.text))
    });
    groups
}

/// Finds out for each group that is shown whether its config has the grant. It may block.
pub fn standings(groups: &[RefusedGroup], actions: &dyn Actions) -> Vec<Option<Standing>> {
    let mut by_config: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, group) in groups.iter().enumerate().take(MOST) {
        if let (Some(config), Some(_)) = (&group.config, &group.refusal.grant) {
            by_config.entry(config).or_default().push(at);
        }
    }
    let grant = |at: &usize| groups.get(*at).and_then(|one| Some((&*one.plugin, one.refusal.grant.as_deref()?)));
    let mut standings = vec![None; groups.len()];
    for (config, asked) in by_config {
        let grants: Vec<_> = asked.iter().filter_map(grant).collect();
        for (at, found) in asked.into_iter().zip(actions.standing(Path::new(config), &grants)) {
            if let Some(standing) = standings.get_mut(at) {
                *standing = Some(found);
            }
        }
    }
    standings
}

/// Writes the view.
pub fn contents(groups: &[RefusedGroup], standings: &[Option<Standing>]) -> Markup {
    html! {
        @if groups.is_empty() { (nothing("Nothing was refused in the calls that are remembered.")) }
        ul.cards {
            @for ((at, group), standing) in groups.iter().enumerate().zip(standings).take(MOST) {
                li.gone[group.is_gone] {
                    h2 { (group.plugin) }
                    p { (group.refusal.text) }
                    p.meta {
                        (count(group.count, "time", "times")) ", last " (time(group.last)) ", in " (group.process_name)
                    }
                    (remedy(at, group, *standing))
                }
            }
        }
        (left_out(groups.len().min(MOST), groups.len()))
    }
}

fn remedy(at: usize, group: &RefusedGroup, standing: Option<Standing>) -> Markup {
    let SeenRefusal { text: _, allow, grant } = &group.refusal;
    let option = grant.as_ref().map(|grant| format!("--allow {}", wharf_base::text::shell([grant.as_str()])));
    let form = |action: &str, words: &str, about: &str| {
        html! {
            form method="post" action=(action) {
                input type="hidden" name="process" value=(group.process);
                input type="hidden" name="config" value=(group.config.as_deref().unwrap_or_default());
                input type="hidden" name="plugin" value=(group.plugin);
                input type="hidden" name="grant" value=(grant.as_deref().unwrap_or_default());
                button id={ "refused-" (at) } type="submit" { (words) span.quiet { ": " (group.plugin) ", " (about) } }
            }
        }
    };
    let config = group.config.as_deref().unwrap_or_default();
    html! {
        @if let Some(allow) = allow { p { "What allows it: " (allow) } }
        @match (&option, standing) {
            (None, _) => { @if allow.is_none() { p { "No grant allows this." } } }
            (Some(option), Some(Standing::Missing)) => {
                p {
                    code { (option) } " allows it, with all paths of that host"
                    @if option.contains("http-write") { " and all methods" }
                    ". It can be written into " span.path { (config) } "."
                }
                (form("/allow", "Allow always", option))
            }
            (Some(option), Some(Standing::Written)) => {
                p { code { (option) } " is in " span.path { (config) } ", so this is allowed to later calls." }
                (form("/take-back", "Take back", option))
            }
            (Some(option), Some(Standing::Elsewhere) | None) => {
                p { "To allow it, start wharf with this option:" }
                pre tabindex="0" role="group" aria-label="The option that allows it" { (option) }
            }
        }
    }
}
