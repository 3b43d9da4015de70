//! The kind of thing that a tool does, and that a query asks for: a sentence that wants to know something does not mean a tool that
//! deletes it.

use std::{collections::HashMap, sync::LazyLock};

use wharf_protocol::model::Tool;

use super::words::{Stems, first_sentence, parts, pieces};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Read,
    Create,
    Change,
    Delete,
    /// To act on something without storing anything.
    Operate,
    /// Something else than reading, according to the tool's annotations.
    Write,
}

/// The verbs of each action. Verbs that are used for several actions, such as "open" and "put", are left out.
const VERBS: &[(Action, &str)] = &[
    (
        Action::Read,
        "get read show list find search look view see describe fetch retrieve check query count inspect display explain lookup browse \
         analyze know learn watch recall who compare diff monitor summarize preview audit verify validate trace measure print",
    ),
    (
        Action::Create,
        "create add make new insert append generate draw publish upload remember memorize note record write copy duplicate clone fork \
         import",
    ),
    (
        Action::Change,
        "update edit change modify rename move replace patch reorder overwrite merge format set apply highlight protect archive fix \
         correct mark complete resolve close reopen sort customize configure enable disable reset revert restore undo resize",
    ),
    (Action::Delete, "delete remove erase drop clear trash forget unset purge"),
    (Action::Operate, "click press type fill drag hover send reply submit wait navigate go emulate"),
];
/// The first word of a question.
const QUESTIONS: &str = "what which who when where why how whose is are was were does did has have";
/// The word after "how" in a question that asks for a way to do something instead of a fact.
const WAYS: &str = "do does can could should to would";

impl Action {
    /// Returns what a query asks for. `words`: its words in lower case.
    pub fn asked<'a>(words: impl Iterator<Item = &'a String> + Clone, stems: &Stems) -> Option<Self> {
        let is_in = |all: &str, word: Option<&String>| word.is_some_and(|word| all.split(' ').any(|one| one == word));
        let mut next = words.clone();
        let (first, second) = (next.next(), next.next());
        let asks_for_way = first.is_some_and(|word| word == "how") && is_in(WAYS, second);
        if is_in(QUESTIONS, first) && !asks_for_way {
            return Some(Self::Read);
        }
        words.filter_map(|word| stems.stem(word)).find_map(|stem| Self::of_verb(&stem))
    }

    /// Returns what a tool does, according to its annotations and the verbs of its name and description. `own_name`: its name without the
    /// plugin's prefix.
    pub fn done(tool: &Tool, own_name: &str, stems: &Stems) -> Option<Self> {
        let hint = tool.annotations.as_ref().and_then(|hints| hints.get("readOnlyHint")?.as_bool());
        let named = pieces(own_name).flat_map(parts).filter_map(|word| stems.stem(word));
        let said = || stems.words(first_sentence(&tool.description).0).next();
        let by_verb = named.map(|stem| Self::of_verb(&stem)).find(Option::is_some).flatten();
        let by_verb = by_verb.or_else(|| Self::of_verb(&said()?));
        match hint {
            Some(true) => Some(Self::Read),
            Some(false) => by_verb.filter(|action| *action != Self::Read).or(Some(Self::Write)),
            None => by_verb,
        }
    }

    fn of_verb(stem: &str) -> Option<Self> {
        static ALL: LazyLock<HashMap<String, Action>> = LazyLock::new(|| {
            let stems = Stems::new();
            let verbs =
                VERBS.iter().flat_map(|(action, verbs)| verbs.split_whitespace().map(move |verb| (verb, *action)));
            verbs.filter_map(|(verb, action)| Some((stems.stem(verb)?, action))).collect()
        });
        ALL.get(stem).copied()
    }

    /// Whether a tool that does one does not do the other.
    pub fn differs(self, other: Self) -> bool {
        let is_vague = |(one, two): (Self, Self)| one == Self::Write && two != Self::Read;
        self != other && !is_vague((self, other)) && !is_vague((other, self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_asks_for_what_its_verb_or_question_says() {
        let stems = Stems::new();
        for (query, expected) in [
            ("when was this changed", Some(Action::Read)),
            ("delete the row", Some(Action::Delete)),
            ("can you rename it", Some(Action::Change)),
            ("how do i delete a branch", Some(Action::Delete)),
            ("how big is it", Some(Action::Read)),
            ("i want to see the changes", Some(Action::Read)),
            ("the weather", None),
            ("", None),
        ] {
            let words: Vec<String> = query.split_whitespace().map(Into::into).collect();
            assert_eq!(Action::asked(words.iter(), &stems), expected, "{query}");
        }
        assert!(Action::Read.differs(Action::Write) && Action::Create.differs(Action::Delete));
        assert!(!Action::Write.differs(Action::Delete) && !Action::Read.differs(Action::Read));
    }
}
