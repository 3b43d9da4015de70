//! The view "Now": sessions, and calls as they happen.

use std::time::{SystemTime, UNIX_EPOCH};

use maud::{Markup, html};

use super::{
    layout::{left_out, nothing},
    words::{self, count, time, took},
};
use crate::{
    state::SeenCall,
    viewer::merged::{View, WatchedProcess},
};

/// The most calls that are shown.
const MOST_CALLS: usize = 200;
/// The most sessions that are shown.
const MOST_SESSIONS: usize = 200;
/// The most files, requests and refusals of a call that are shown at once.
const MOST_OPEN: usize = 4;
/// How much time the picture of calls shows, in milliseconds.
const SPAN: u64 = 10 * 60 * 1000;
/// The width of the picture.
const WIDTH: u64 = 600;

/// Writes the view.
pub fn contents(view: &View) -> Markup {
    let processes = view.processes();
    if processes.iter().all(|process| process.is_gone) && view.calls().next().is_none() {
        return nothing("No wharf runs. What runs later is shown here as soon as it begins.");
    }
    let sessions: Vec<_> =
        processes.iter().flat_map(|process| process.state.sessions.iter().map(move |one| (*process, one))).collect();
    let open = processes.iter().map(|process| process.state.open_sessions).fold(0, usize::saturating_add);
    let only_counted = processes.iter().map(|process| process.state.only_counted).fold(0, u64::saturating_add);
    let all_calls = view.calls().count();
    html! {
        section aria-labelledby="sessions" {
            h2 #sessions { "Sessions" }
            @if sessions.is_empty() { (nothing("No client is connected.")) }
            ul.cards {
                @for (process, session) in sessions.iter().take(MOST_SESSIONS) {
                    li {
                        h3 { @if session.client.is_empty() { "a client without a name" } @else { (session.client) } }
                        dl {
                            dt { "Since" } dd { (time(session.began)) }
                            dt { "Process" } dd { (words::process(process)) }
                            @if !session.principal.is_empty() { dt { "Who" } dd { (session.principal) } }
                            dt { "Folders" }
                            @if session.folders.is_empty() { dd { "none that it has named" } }
                            @for folder in &session.folders { dd.path { (folder) } }
                        }
                    }
                }
            }
            (left_out(sessions.len().min(MOST_SESSIONS), open))
        }
        section aria-labelledby="calls" {
            h2 #calls { "Calls" }
            (timeline(view))
            @if all_calls == 0 { (nothing("No call was made yet.")) }
            ol.calls {
                @for (process, call) in view.calls().take(MOST_CALLS) { (one(process, call)) }
            }
            (left_out(all_calls.min(MOST_CALLS), all_calls))
            @if only_counted > 0 {
                p.note { (only_counted) " calls came too fast to be told one by one, and were only counted." }
            }
        }
    }
}

fn one(process: &WatchedProcess, call: &SeenCall) -> Markup {
    let (end, class) = words::end(process, call);
    let id = format!("call-{}-{}", process.key, call.id);
    let client = call.session.as_ref().and_then(|id| process.state.sessions.iter().find(|one| one.id == *id));
    html! {
        li.gone[process.is_gone] {
            p {
                strong { @if call.plugin.is_empty() { "no such plugin" } @else { (call.plugin) } } " "
                span.name { (call.name) } " "
                span class={ "badge " (class) } { (end) }
            }
            p.meta {
                (time(call.began))
                @if let Some(ended) = &call.ended {
                    @let tokens = words::tokens(ended.bytes_out) as usize;
                    ", " (took(ended.took))
                    @if tokens > 0 { ", about " (count(tokens, "token", "tokens")) }
                }
                @if call.method != "tools/call" && !call.method.is_empty() { ", " (call.method) }
                @if let Some(client) = client { ", " (client.client) }
                @if let Some(approval) = &call.approval { ", " (words::approval(approval)) }
            }
            (used(&id, call))
        }
    }
}

/// What a call has used. A long list is closed at first.
fn used(id: &str, call: &SeenCall) -> Markup {
    let counts = [
        (call.files.len(), "file", "files"),
        (call.requests.len(), "request", "requests"),
        (call.refusals.len(), "refusal", "refusals"),
    ];
    let all = counts.iter().map(|(number, ..)| number).sum::<usize>();
    let counts =
        counts.into_iter().filter(|(number, ..)| *number > 0).map(|(number, one, many)| count(number, one, many));
    let counts = counts.collect::<Vec<_>>().join(", ");
    let list = html! {
        ul {
            @for file in &call.files { li { span.path { (file.path) } ": " (words::did(&file.did)) } }
            @if call.files_left_out > 0 { li { "and " (call.files_left_out) " more uses of files, which are not shown" } }
            @for request in &call.requests {
                li {
                    (request.method) " " span.path { (request.host) } ": "
                    @if request.refused { "refused" }
                    @else if let Some(status) = request.status {
                        "status " (status) ", " (words::bytes(request.bytes_in)) " received, "
                        (words::bytes(request.bytes_out)) " sent"
                    }
                    @else { "no response yet" }
                }
            }
            @for refusal in &call.refusals { li { "Refused: " (refusal.text) } }
        }
    };
    html! {
        @if all > MOST_OPEN {
            details id=(id) {
                summary id={ (id) "-summary" } { (counts) span.quiet { " of " (call.name) } }
                (list)
            }
        }
        @else if all > 0 { (list) }
    }
}

/// A picture of the calls of the last minutes: a line for each, by when it began.
fn timeline(view: &View) -> Markup {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_millis() as u64);
    let recent: Vec<_> = view.calls().filter(|(_, call)| call.began + SPAN > now && call.began <= now).collect();
    let bad = recent.iter().filter(|(process, call)| words::end(process, call).1 == "bad").count();
    let label = format!(
        "{} in the last ten minutes, of which {} did not end well",
        count(recent.len(), "call", "calls"),
        count(bad, "call", "calls")
    );
    html! {
        svg.timeline viewBox={ "0 0 " (WIDTH) " 24" } preserveAspectRatio="none" role="img" aria-label=(label) {
            line x1="0" y1="23" x2=(WIDTH) y2="23" {}
            @for (process, call) in &recent {
                @let at = WIDTH - (now - call.began) * WIDTH / SPAN;
                rect class=(words::end(process, call).1) x=(at.min(WIDTH - 2)) y="2" width="2" height="20" {}
            }
        }
        p.note { (label) "." }
    }
}
