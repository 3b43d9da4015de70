//! The view "Machine": the processes, and what they take.

use maud::{Markup, html};

use super::{
    layout::nothing,
    words::{self, bar, bytes, time},
};
use crate::viewer::merged::View;

/// Writes the view.
pub fn contents(view: &View) -> Markup {
    let processes = view.processes();
    html! {
        @if processes.is_empty() { (nothing("No wharf runs.")) }
        ul.cards {
            @for process in &processes {
                @let about = &process.state.process;
                li.gone[process.is_gone] {
                    h2 { (words::process(process)) }
                    dl {
                        dt { "State" }
                        dd { (if process.is_gone { "has ended, or does not listen any more" } else { "runs" }) }
                        dt { "Process" } dd { (about.pid) }
                        dt { "Version" } dd { (about.version) }
                        dt { "Folder" } dd.path { (about.folder) }
                        dt { "Config" }
                        @match &about.config {
                            Some(config) => { dd.path { (config) } }
                            None => { dd { "none" } }
                        }
                        dt { "Since" } dd { (time(about.began)) }
                        dt { "Calls" }
                        dd { (about.calls) ", of which " (about.refused) " were refused and " (about.failed) " failed" }
                        dt { "Memory" }
                        dd {
                            @match about.resident {
                                Some(resident) => {
                                    @let limit = bytes(about.memory_limit);
                                    @let label = format!("{} are taken; plugins may take {limit}", bytes(resident));
                                    (label) (bar(resident, about.memory_limit, &label))
                                }
                                None => { "the system does not say; plugins may take " (bytes(about.memory_limit)) }
                            }
                        }
                    }
                }
            }
        }
    }
}
