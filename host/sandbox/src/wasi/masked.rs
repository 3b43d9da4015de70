//! Masks the secrets of a call's network (see [`wharf_scope::network`]) in everything that its plugin returns: answers, questions, failures and
//! log records.

use crate::{
    bindings::{
        completions::Completion,
        model::{
            Body, Content, Failure, Form, Media, Message, Prompt, PromptArgument, PromptResult, Question,
            ResourceContents, ResourceEntry, ResourceLink, ResourceTemplate, Round, Tool, ToolDetails, ToolResult, Url,
        },
    },
    contract::{
        operation::{CallError, Listing, Outcome, PromptAnswer, ReadAnswer, ToolAnswer},
        told::Told,
    },
};
use wharf_scope::{
    Denial,
    network::{HttpDenial, HttpUse},
};

/// Masks secrets in place, without changing the number of bytes.
pub type Hide<'a> = &'a dyn Fn(&mut [u8]);

/// A value from a plugin in which secrets can be masked.
pub trait Masked {
    /// Masks all secrets in the value with `hide`.
    fn mask(&mut self, hide: Hide<'_>);
}

impl Masked for String {
    fn mask(&mut self, hide: Hide<'_>) {
        let mut bytes = std::mem::take(self).into_bytes();
        hide(&mut bytes);
        *self = String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    }
}

impl Masked for Told {
    fn mask(&mut self, hide: Hide<'_>) {
        self.text_mut().mask(hide);
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
        self.0.mask(hide);
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

/// Implements [`Masked`] for records. The fields before the bar are masked; those after it hold no text. A new field does not compile until
/// it is in one of the two lists.
macro_rules! fields {
    ($($type:ident: $($field:ident),+ $(| $($other:ident),+)?;)+) => {
        $(impl Masked for $type {
            fn mask(&mut self, hide: Hide<'_>) {
                let Self { $($field,)+ $($($other: _,)+)? } = self;
                $($field.mask(hide);)+
            }
        })+
    };
}

fields! {
    Round: questions | state;
    Failure: message, data | kind;
    ToolResult: content, structured, more | is_error;
    PromptResult: description, messages, more;
    Message: content | role;
    Media: mime_type, data;
    ResourceContents: uri, mime_type, body, more;
    ResourceLink: uri, name, mime_type, more;
    Completion: values | total, has_more;
    Listing: instructions, tools, resources, templates, prompts;
    Tool: name, description, input_schema, details;
    ToolDetails: title, output_schema, more | hints, needs, task;
    ResourceEntry: uri, name, description, mime_type, more;
    ResourceTemplate: uri_template, name, description, mime_type, more;
    Prompt: name, description, arguments, more;
    PromptArgument: name, description | required;
    Form: message, schema;
    Url: message, url;
    HttpDenial: method, url | why;
    HttpUse: method, authority | status, bytes_out, bytes_in, denied;
}

impl Masked for Question {
    fn mask(&mut self, hide: Hide<'_>) {
        match self {
            Self::Form(form) => form.mask(hide),
            Self::Url(url) => url.mask(hide),
            Self::Sampling(json) => json.mask(hide),
            Self::Roots => {}
        }
    }
}

impl Masked for CallError {
    fn mask(&mut self, hide: Hide<'_>) {
        match self {
            Self::Failed(failure) => failure.mask(hide),
            Self::Trap { message, detail } => {
                message.mask(hide);
                detail.mask(hide);
            }
            Self::NotMcp(text) => text.mask(hide),
            Self::Timeout(_)
            | Self::Memory(_)
            | Self::TotalMemory
            | Self::Output(_)
            | Self::Files(_)
            | Self::NoInterface(_)
            | Self::Exit(_)
            | Self::Busy(_)
            | Self::Stopped => {}
        }
    }
}

impl Masked for Denial {
    fn mask(&mut self, hide: Hide<'_>) {
        match self {
            Self::Http(denial) => denial.mask(hide),
            Self::NoDirectory { .. } => {}
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
            Self::Image(media) | Self::Audio(media) => media.mask(hide),
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
                Content::Image(crate::bindings::model::Media {
                    mime_type: "image/png".into(),
                    data: text().into_bytes(),
                }),
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

    #[test]
    fn everything_that_a_plugin_lists_and_tries_is_masked() {
        let text = || String::from("a secret b");
        let some = || Some(text());
        let entry = ResourceEntry { uri: text(), name: text(), description: some(), mime_type: some(), more: some() };
        let template = ResourceTemplate {
            uri_template: text(),
            name: text(),
            description: some(),
            mime_type: some(),
            more: some(),
        };
        let arguments = vec![PromptArgument { name: text(), description: some(), required: true }];
        let prompt = Prompt { name: text(), description: some(), arguments, more: some() };
        let tool = Tool { name: text(), description: text(), input_schema: text(), details: None };
        let mut listing = Listing {
            instructions: some(),
            tools: vec![tool],
            resources: vec![entry],
            templates: vec![template],
            prompts: vec![prompt],
        };
        let url =
            Denial::Http(HttpDenial { method: text(), url: text(), why: wharf_scope::network::HttpRefusal::NoRule });
        let mut failed = (CallError::Trap { message: text(), detail: text() }, vec![url]);
        let hide = |bytes: &mut [u8]| {
            if let Some(at) = bytes.windows(6).position(|window| window == b"secret") {
                bytes[at..at + 6].fill(b'*');
            }
        };
        listing.mask(&hide);
        failed.0.mask(&hide);
        failed.1.mask(&hide);
        let told = format!("{listing:?} {failed:?}");
        assert!(!told.contains("secret") && told.matches("******").count() == 23, "{told}");
    }
}
