//! The view "Record": what calls have changed in folders, with a button that takes it back, and the audit logs.

use std::path::Path;

use maud::{Markup, html};

use super::{
    layout::{left_out, nothing},
    words::{count, time},
};
use crate::{
    actions::{Actions, AuditPart, ChangedFiles, Lines},
    viewer::merged::View,
};

/// The most changes that are shown.
const MOST: usize = 200;

/// What the view shows. Reading it may block.
pub struct Recorded {
    changes: Result<Vec<ChangedFiles>, String>,
    /// The configs that turn on an audit log.
    configs: Lines,
    /// The config whose log is shown, what was searched for, and what was found.
    log: Option<(String, String, Result<AuditPart, String>)>,
}

impl Recorded {
    /// Reads what the view shows. `configs`: of all processes. `log`: the config whose log to show. `search`: the text to search for in it.
    pub fn read(actions: &dyn Actions, mut configs: Lines, log: Option<&str>, search: &str) -> Self {
        configs.retain(|config| actions.has_audit_log(Path::new(config)));
        // No other file is opened, whatever a link asks for.
        let chosen = log.filter(|log| configs.iter().any(|config| config == log));
        let log = chosen.map(|log| (log.to_owned(), search.to_owned(), actions.audit(Path::new(log), search)));
        Self { changes: actions.changes(), configs, log }
    }

    /// Whether it shows a log, and stays as it is while the person reads it.
    pub fn is_still(&self) -> bool {
        self.log.is_some()
    }

    /// Writes the view.
    pub fn contents(&self) -> Markup {
        html! {
            section aria-labelledby="changes" {
                h2 #changes { "Changes in folders" }
                @match &self.changes {
                    Err(problem) => { p { (problem) } }
                    Ok(all) => {
                        @if all.is_empty() { (nothing("No call of the last seven days has changed anything.")) }
                        ol.cards { @for change in all.iter().take(MOST) { (changed(change)) } }
                        (left_out(all.len().min(MOST), all.len()))
                    }
                }
            }
            section aria-labelledby="audit" {
                h2 #audit { "Audit log" }
                @if self.configs.is_empty() {
                    (nothing("No config of a wharf that runs turns on an audit log; [audit] in a config does."))
                }
                @for (at, config) in self.configs.iter().enumerate() {
                    @let searched = self.log.as_ref().filter(|(own, ..)| own == config);
                    @let searched = searched.map(|(_, search, _)| search.as_str());
                    form.search method="get" action="/record" {
                        input type="hidden" name="log" value=(config);
                        label for={ "search-" (at) } { "Lines of the log of " span.path { (config) } " that contain" }
                        input id={ "search-" (at) } type="search" name="search" value=(searched.unwrap_or_default());
                        button id={ "show-" (at) } type="submit" { "Verify and show" }
                    }
                }
                @if let Some((config, _, found)) = &self.log { (log(config, found)) }
            }
        }
    }
}

/// Returns the config files of all processes, each once.
pub fn configs(view: &View) -> Lines {
    let mut all: Lines = view.processes().iter().filter_map(|process| process.state.process.config.clone()).collect();
    all.sort();
    all.dedup();
    all
}

fn changed(change: &ChangedFiles) -> Markup {
    html! {
        li.gone[change.is_undone] {
            h3 { (change.plugin) ": " (change.name) }
            p.meta {
                (time(change.time)) ", " (change.id)
                @if change.is_running { ", still running" }
                @if change.is_undone { ", taken back" }
            }
            ul { @for path in &change.paths { li.path { (path) } } }
            @if change.more > 0 { p.note { "and " (count(change.more, "other path", "other paths")) } }
            @if !change.is_undone && !change.is_running {
                form method="post" action="/undo" {
                    input type="hidden" name="id" value=(change.id);
                    button id={ "undo-" (change.id) } type="submit" {
                        "Undo" span.quiet { " what " (change.name) " has changed" }
                    }
                }
            }
        }
    }
}

fn log(config: &str, found: &Result<AuditPart, String>) -> Markup {
    html! {
        h3 { "The log of " span.path { (config) } }
        @match found {
            Err(problem) => { p { (problem) } }
            Ok(part) => {
                p { span class={ "badge " (if part.is_whole { "good" } else { "bad" }) } {
                    (if part.is_whole { "the chain is unbroken" } else { "the chain is broken" })
                } }
                @for line in &part.verdict { p.note { (line) } }
                @if part.lines.is_empty() { (nothing("No line contains this.")) }
                @else { pre tabindex="0" role="group" aria-label="The last lines, the newest one first" {
                    @for line in &part.lines { (line) "\n" }
                } }
            }
        }
    }
}
