//! What it takes to parse the JSON in an answer of a plugin. Its tree can have a hundred times the size of its text, so parsing begins only
//! when the answer has a place among the plugin's large results, and memory. The functions that parse need the room that was paid for.

use std::{sync::Arc, time::Duration};

use wharf_base::{
    heavy::{LARGE_TEXT_BYTES, heavy},
    ledger::{Account, Charge, Full, tree_bytes},
    party::Party,
    places::{Place, Places},
};
use wharf_sandbox::{
    PromptAnswer, ReadAnswer, ToolAnswer,
    json::Room,
    model::{self as wit, Content},
};

/// What the JSON of one answer takes, until this is dropped.
pub struct Paid {
    bytes: usize,
    turn: Option<Place>,
    room: Room,
}

/// Why JSON is not parsed.
pub enum Unpaid {
    /// Other large results of the plugin took too long.
    Turn,
    /// There is no memory for it.
    Memory(Full),
}

/// An answer of a plugin, or another value, in which there may be JSON.
pub trait HoldsJson {
    /// Visits every text that is JSON.
    fn visit(&self, visit: &mut dyn FnMut(&str));
}

impl Paid {
    /// Waits until the plugin has no other large result, and charges the trees and the texts in them. The place bounds the work of one
    /// plugin, and the charge the memory of all.
    pub async fn pay(
        answer: &impl HoldsJson,
        results: &Arc<Places>,
        (party, limit): (Party, Duration),
        charge: impl FnOnce(usize) -> Result<Charge, Full>,
    ) -> Result<Self, Unpaid> {
        let mut bytes = 0_usize;
        answer.visit(&mut |json| bytes = bytes.saturating_add(json.len()));
        let turn = if bytes > LARGE_TEXT_BYTES {
            Some(tokio::time::timeout(limit, results.wait(party)).await.map_err(|_| Unpaid::Turn)?)
        } else {
            None
        };
        let mut whole = bytes;
        heavy(bytes, || answer.visit(&mut |json| whole = whole.saturating_add(tree_bytes(json.as_bytes()))));
        let charge = charge(whole).map_err(Unpaid::Memory)?;
        Ok(Self { bytes, turn, room: Room::paid(charge) })
    }

    /// The memory for parsing these texts.
    pub fn room(&self) -> &Room {
        &self.room
    }

    /// The number of bytes of all these texts.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Gives the place back, because what was parsed waits for a person.
    pub fn without_place(mut self) -> Self {
        self.turn = None;
        self
    }

    /// Pays for nothing: for tests and the fuzzer, whose inputs are small.
    #[doc(hidden)]
    pub fn in_test() -> Self {
        Self { bytes: 0, turn: None, room: Room::of(&Account::new(usize::MAX)) }
    }
}

impl HoldsJson for ToolAnswer {
    fn visit(&self, visit: &mut dyn FnMut(&str)) {
        match self {
            Self::Text(_) => {}
            Self::Structured(json) => visit(json),
            Self::Result(result) => {
                result.content.iter().for_each(|content| of_content(content, visit));
                result.structured.iter().chain(&result.more).for_each(|json| visit(json));
            }
        }
    }
}

impl HoldsJson for ReadAnswer {
    fn visit(&self, visit: &mut dyn FnMut(&str)) {
        if let Self::Contents(contents) = self {
            contents.iter().flat_map(|contents| &contents.more).for_each(|more| visit(more));
        }
    }
}

impl HoldsJson for PromptAnswer {
    fn visit(&self, visit: &mut dyn FnMut(&str)) {
        if let Self::Result(result) = self {
            result.messages.iter().for_each(|message| of_content(&message.content, visit));
            result.more.iter().for_each(|more| visit(more));
        }
    }
}

impl HoldsJson for &wit::Failure {
    fn visit(&self, visit: &mut dyn FnMut(&str)) {
        self.data.iter().for_each(|data| visit(data));
    }
}

impl HoldsJson for wit::Round {
    fn visit(&self, visit: &mut dyn FnMut(&str)) {
        for (_, question) in &self.questions {
            match question {
                wit::Question::Form(form) => visit(&form.schema),
                wit::Question::Sampling(params) => visit(params),
                wit::Question::Url(_) | wit::Question::Roots => {}
            }
        }
    }
}

fn of_content(content: &Content, visit: &mut dyn FnMut(&str)) {
    match content {
        Content::Raw(json) => visit(json),
        Content::Link(link) => link.more.iter().for_each(|more| visit(more)),
        Content::Embedded(contents) => contents.more.iter().for_each(|more| visit(more)),
        Content::Text(_) | Content::Image(_) | Content::Audio(_) => {}
    }
}
