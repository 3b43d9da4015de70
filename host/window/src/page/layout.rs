//! What all views have in common: the head, the list of views, and what was said about the last action.

use maud::{DOCTYPE, Markup, html};

use super::words::{self, count};
use crate::{actions::Lines, viewer::merged::View};

/// A view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tab {
    /// Sessions and calls.
    Now,
    /// What was refused.
    Refused,
    /// Questions.
    Waiting,
    /// Plugins.
    Plugins,
    /// Changes and the audit log.
    Record,
    /// Processes.
    Machine,
}

impl Tab {
    /// All views, in their order.
    pub const ALL: [Self; 6] = [Self::Now, Self::Refused, Self::Waiting, Self::Plugins, Self::Record, Self::Machine];

    /// The name of the view, and its path.
    pub fn named(self) -> (&'static str, &'static str) {
        match self {
            Self::Now => ("Now", "/"),
            Self::Refused => ("Refused", "/refused"),
            Self::Waiting => ("Waiting", "/waiting"),
            Self::Plugins => ("Plugins", "/plugins"),
            Self::Record => ("Record", "/record"),
            Self::Machine => ("Machine", "/machine"),
        }
    }
}

/// What was said about an action: whether it was done, and lines.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Whether it was done.
    pub is_done: bool,
    /// What was done, or why not.
    pub lines: Lines,
}

impl From<Result<Lines, Lines>> for Outcome {
    fn from(result: Result<Lines, Lines>) -> Self {
        let is_done = result.is_ok();
        Self { is_done, lines: result.unwrap_or_else(|lines| lines) }
    }
}

/// What every page has besides its own view.
pub struct Frame {
    tab: Tab,
    waiting: usize,
    problems: Lines,
    outcome: Option<Outcome>,
}

impl Frame {
    /// Makes the frame of a view.
    pub fn new(tab: Tab, view: &View, outcome: Option<Outcome>) -> Self {
        let of_process = |process: &&crate::viewer::merged::WatchedProcess| {
            let problem = process.problem.as_ref()?;
            Some(format!("{}: {problem}", words::process(process)))
        };
        let processes = view.processes();
        let problems = view.trouble.iter().cloned().chain(processes.iter().filter_map(of_process)).collect();
        Self { tab, waiting: view.waiting().count(), problems, outcome }
    }

    /// Writes the page. `is_still`: it is not brought up to date while it is shown.
    pub fn page(&self, is_still: bool, contents: &Markup) -> Markup {
        let (name, _) = self.tab.named();
        let title = if self.waiting == 0 { "wharf".to_owned() } else { format!("({}) wharf", self.waiting) };
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (title) ": " (name) }
                    link rel="icon" type="image/svg+xml" href="/icon.svg";
                    link rel="stylesheet" href="/style.css";
                    script src="/script.js" defer {}
                }
                body {
                    a.skip href="#main" { "Skip to the contents" }
                    header {
                        p.brand { "wharf" }
                        nav aria-label="Views" { ul {
                            @for tab in Tab::ALL {
                                @let (name, path) = tab.named();
                                @let current = (tab == self.tab).then_some("page");
                                li { a id={ "tab-" (name) } href=(path) aria-current=[current] {
                                    (name)
                                    @if tab == Tab::Waiting && self.waiting > 0 { " (" (self.waiting) ")" }
                                } }
                            }
                        } }
                    }
                    p.quiet #status role="status" data-waiting=(self.waiting) {}
                    main #main tabindex="-1" data-still[is_still] {
                        h1 { (name) }
                        @if let Some(outcome) = &self.outcome {
                            div.outcome.bad[!outcome.is_done] role=(if outcome.is_done { "status" } else { "alert" }) {
                                p { strong { (if outcome.is_done { "Done" } else { "Not done" }) } }
                                @for line in &outcome.lines { p { (line) } }
                            }
                        }
                        @if !self.problems.is_empty() {
                            div.outcome.bad role="group" aria-label="Problems" {
                                @for line in &self.problems { p { (line) } }
                            }
                        }
                        (contents)
                    }
                    footer { p { "This page is served by `wharf open` on this machine, for you alone." } }
                }
            }
        }
    }
}

/// Writes a page with one sentence, for a request that is refused.
pub fn sentence(text: &str) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "wharf" }
            }
            body { main { h1 { "wharf" } p { (text) } } }
        }
    }
}

/// Says that there is nothing to show.
pub fn nothing(text: &str) -> Markup {
    html! { p.nothing { (text) } }
}

/// Says that only the first of many are shown.
pub fn left_out(shown: usize, all: usize) -> Markup {
    html! { @if all > shown { p.note { (count(all - shown, "more is", "more are")) " not shown." } } }
}
