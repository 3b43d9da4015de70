//! The view "Waiting": calls that wait for a person, with all that they would do.

use maud::{Markup, html};

use super::{
    layout::nothing,
    words::{self, time},
};
use crate::viewer::merged::View;

/// Writes the view.
pub fn contents(view: &View) -> Markup {
    let mut waiting: Vec<_> = view.waiting().collect();
    // A new question comes last, so that no button moves away from under a pointer.
    waiting.sort_by_key(|(_, question)| question.asked);
    let answered: Vec<_> = view
        .processes()
        .into_iter()
        .flat_map(|process| process.state.questions.iter().map(move |question| (process, question)))
        .filter_map(|(process, question)| Some((question, process.answered.get(&question.id)?)))
        .collect();
    html! {
        @if waiting.is_empty() && answered.is_empty() { (nothing("No call waits for your answer.")) }
        ul.cards {
            @for (process, question) in &waiting {
                @let id = format!("question-{}-{}", process.key, question.id);
                @let client = question.session.as_ref();
                @let client = client.and_then(|id| process.state.sessions.iter().find(|one| one.id == *id));
                li {
                    h2 id=(id) { (question.plugin) " asks to run " (question.name) }
                    p.meta {
                        "asked " (time(question.asked)) ", in " (words::process(process))
                        @if let Some(client) = client { ", for " (client.client) }
                    }
                    pre tabindex="0" role="group" aria-label={ "What " (question.name) " would do" } { (question.text) }
                    form method="post" action="/answer" {
                        input type="hidden" name="process" value=(process.key);
                        input type="hidden" name="question" value=(question.id);
                        @for choice in &question.answers {
                            @let own = format!("{id}-{}", choice.word);
                            button id=(own) type="submit" name="word" value=(choice.word) aria-describedby=(id) {
                                (choice.text)
                            }
                        }
                    }
                }
            }
            @for (question, word) in &answered {
                li.gone {
                    h2 { (question.plugin) " asks to run " (question.name) }
                    @let choice = question.answers.iter().find(|one| one.word == **word);
                    p { "You have answered: " (choice.map_or(word.as_str(), |one| &one.text)) }
                }
            }
        }
        p.note { "The answer that is given first counts, here or at the client." }
        // Only the script shows it, if the browser has notifications and was not asked yet.
        p #notify hidden { button #notify-button type="button" { "Notify me of questions while this page is open" } }
    }
}
