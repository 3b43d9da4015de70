//! The view "Plugins": what is served, what it is granted and what it wants.

use std::collections::HashMap;

use maud::{Markup, html};

use super::{
    layout::nothing,
    words::{self, count},
};
use crate::{state::SeenPlugin, viewer::merged::View};

/// How many digits of a digest are shown.
const DIGITS: usize = 16;

/// Writes the view.
pub fn contents(view: &View) -> Markup {
    let mut used: HashMap<(&str, &str), usize> = HashMap::new();
    for (process, call) in view.calls() {
        *used.entry((&process.key, &call.plugin)).or_default() += 1;
    }
    let processes = view.processes();
    html! {
        @if processes.iter().all(|process| process.state.plugins.is_empty()) {
            (nothing("No wharf that runs has plugins."))
        }
        @for process in processes.iter().filter(|process| !process.state.plugins.is_empty()) {
            section.gone[process.is_gone] aria-labelledby={ "of-" (process.key) } {
                h2 id={ "of-" (process.key) } { (words::process(process)) @if process.is_gone { ", which has ended" } }
                ul.cards {
                    @for plugin in &process.state.plugins {
                        @let times = used.get(&(&*process.key, &*plugin.id)).copied();
                        (one(&process.key, plugin, times.unwrap_or_default()))
                    }
                }
            }
        }
    }
}

fn one(process: &str, plugin: &SeenPlugin, used: usize) -> Markup {
    let digits: Option<String> = plugin.sha256.as_ref().map(|digest| digest.chars().take(DIGITS).collect());
    html! {
        li {
            h3 { (plugin.id) " " span class={ "badge " (if plugin.served { "good" } else { "bad" }) } {
                (if plugin.served { "served" } else { "not served" })
            } }
            @if let Some(problem) = &plugin.problem { p { (problem) } }
            dl {
                @if let Some(version) = &plugin.version { dt { "Version" } dd { (version) } }
                @if let Some(digits) = &digits { dt { "SHA-256" } dd { code { (digits) "…" } } }
                dt { "Granted" }
                @if plugin.granted.is_empty() { dd { "nothing" } }
                @for line in &plugin.granted { dd { (line) } }
                @if !plugin.wanted.is_empty() {
                    dt { "Wanted, and not granted" }
                    @for line in &plugin.wanted { dd { (line) } }
                }
                dt { "Used" } dd { (count(used, "time", "times")) " in the calls that are remembered" }
                dt { "Length" } dd { "a model reads about " (plugin.tokens) " tokens of its list of tools" }
            }
            @if !plugin.tools.is_empty() {
                details id={ "tools-" (process) "-" (plugin.id) } {
                    summary id={ "tools-" (process) "-" (plugin.id) "-summary" } {
                        (count(plugin.tools.len(), "tool", "tools")) span.quiet { " of " (plugin.id) }
                    }
                    ul { @for tool in &plugin.tools { li { (tool) } } }
                }
            }
        }
    }
}
