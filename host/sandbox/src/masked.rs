//! Hides what only the network of a call knows in everything that its plugin says, whatever it says it with: answers, questions,
//! failures, and what it logs.

use crate::{
    bindings::completions::Completion,
    model::{
        Body, Content, Failure, Message, Prompt, PromptResult, Question, ResourceContents, ResourceEntry, ResourceLink,
        ResourceTemplate, Round, Tool, ToolResult,
    },
    operation::{Listing, Outcome, PromptAnswer, ReadAnswer, ToolAnswer},
};

/// Changes bytes in place, and not how many there are.
pub type Hide<'a> = &'a dyn Fn(&mut [u8]);

/// Something that a plugin says.
pub trait Masked {
    /// Hides in it what is to be hidden.
    fn mask(&mut self, hide: Hide<'_>);
}

impl Masked for String {
    fn mask(&mut self, hide: Hide<'_>) {
        let mut bytes = std::mem::take(self).into_bytes();
        hide(&mut bytes);
        *self = String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    }
}

impl Masked for Vec<u8> {
    fn mask(&mut self, hide: Hide<'_>) {
        hide(self);
    }
}

impl<T: Masked> Masked for Option<T> {
    fn mask(&mut self, hide: Hide<'_>) {
        self.iter_mut().for_each(|some| some.mask(hide));
    }
}

impl<T: Masked> Masked for Vec<T> {
    fn mask(&mut self, hide: Hide<'_>) {
        self.iter_mut().for_each(|one| one.mask(hide));
    }
}

impl<T: Masked> Masked for (String, T) {
    fn mask(&mut self, hide: Hide<'_>) {
        self.1.mask(hide);
    }
}

impl<T: Masked> Masked for Outcome<T> {
    fn mask(&mut self, hide: Hide<'_>) {
        match self {
            Self::Done(done) => done.mask(hide),
            Self::Ask(round) => round.mask(hide),
        }
    }
}

/// Masks the fields of a record that hold texts. The others are numbers, and names that clients have to recognise.
macro_rules! fields {
    ($($type:ident: $($field:ident),+;)+) => {
        $(impl Masked for $type {
            fn mask(&mut self, hide: Hide<'_>) {
                $(self.$field.mask(hide);)+
            }
        })+
    };
}

fields! {
    Round: questions;
    Failure: message, data;
    ToolResult: content, structured, more;
    PromptResult: description, messages, more;
    Message: content;
    ResourceContents: uri, body, more;
    ResourceLink: uri, name, more;
    Completion: values;
    Listing: tools, resources, templates, prompts;
    Tool: description, input_schema;
    ResourceEntry: more;
    ResourceTemplate: more;
    Prompt: description;
}

impl Masked for Question {
    fn mask(&mut self, hide: Hide<'_>) {
        match self {
            Self::Form(form) => {
                form.message.mask(hide);
                form.schema.mask(hide);
            }
            Self::Page(page) => {
                page.message.mask(hide);
                page.url.mask(hide);
            }
            Self::Sample(json) => json.mask(hide),
            Self::Roots => {}
        }
    }
}

impl Masked for ToolAnswer {
    fn mask(&mut self, hide: Hide<'_>) {
        match self {
            Self::Text(text) | Self::Structured(text) => text.mask(hide),
            Self::Result(result) => result.mask(hide),
        }
    }
}

impl Masked for ReadAnswer {
    fn mask(&mut self, hide: Hide<'_>) {
        match self {
            Self::Text(text) => text.mask(hide),
            Self::Contents(contents) => contents.mask(hide),
        }
    }
}

impl Masked for PromptAnswer {
    fn mask(&mut self, hide: Hide<'_>) {
        match self {
            Self::Text(text) => text.mask(hide),
            Self::Result(result) => result.mask(hide),
        }
    }
}

impl Masked for Content {
    fn mask(&mut self, hide: Hide<'_>) {
        match self {
            Self::Text(text) | Self::Raw(text) => text.mask(hide),
            Self::Image(media) | Self::Audio(media) => media.data.mask(hide),
            Self::Link(link) => link.mask(hide),
            Self::Embedded(contents) => contents.mask(hide),
        }
    }
}

impl Masked for Body {
    fn mask(&mut self, hide: Hide<'_>) {
        match self {
            Self::Text(text) => text.mask(hide),
            Self::Bytes(bytes) => bytes.mask(hide),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_of_an_answer_is_masked() {
        let text = || String::from("a secret b");
        let result = ToolResult {
            content: vec![
                Content::Text(text()),
                Content::Raw(text()),
                Content::Image(crate::model::Media { mime_type: "image/png".into(), data: text().into_bytes() }),
                Content::Embedded(ResourceContents {
                    uri: text(),
                    mime_type: None,
                    body: Body::Text(text()),
                    more: Some(text()),
                }),
            ],
            structured: Some(text()),
            is_error: false,
            more: Some(text()),
        };
        let mut outcome = Outcome::Done(ToolAnswer::Result(result));
        outcome.mask(&|bytes| {
            if let Some(at) = bytes.windows(6).position(|window| window == b"secret") {
                bytes[at..at + 6].fill(b'*');
            }
        });
        let told = format!("{outcome:?}").replace(&format!("{:?}", b"a ****** b".to_vec()), "******");
        assert!(!told.contains("secret") && told.matches("******").count() == 8, "{told}");
    }
}
