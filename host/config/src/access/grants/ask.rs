//! `ask = ["elicitation", "sampling", "roots"]`: what a plugin may ask the client.

use anyhow::{Result, bail};
use wharf_sandbox::model::Question;

use crate::access::capability::{Absolute, Capability};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Grant {
    pub elicitation: bool,
    pub sampling: bool,
    pub roots: bool,
}

impl Grant {
    /// Checks whether the question may be asked. The error is the missing ability, as the operator would write it in `ask`.
    pub fn allows(self, question: &Question) -> Result<(), &'static str> {
        let (allowed, ability) = match question {
            Question::Form(_) | Question::Url(_) => (self.elicitation, "elicitation"),
            Question::Sampling(_) => (self.sampling, "sampling"),
            Question::Roots => (self.roots, "roots"),
        };
        if allowed { Ok(()) } else { Err(ability) }
    }

    /// Returns the log message about a refused question.
    pub fn hint(ability: &str) -> String {
        format!("it wanted to ask the client ({ability}); `ask = [\"{ability}\"]` allows it")
    }
}

impl Capability for Grant {
    type Raw = Vec<String>;

    fn parse(written: Vec<String>, _: Absolute<'_>) -> Result<Self> {
        let mut ask = Self::default();
        for ability in &written {
            match ability.as_str() {
                "elicitation" => ask.elicitation = true,
                "sampling" => ask.sampling = true,
                "roots" => ask.roots = true,
                other => bail!("`ask`: `{other}` is not one of elicitation, sampling, roots"),
            }
        }
        Ok(ask)
    }

    fn exceeds(&self, other: &Self) -> bool {
        let Self { elicitation, sampling, roots } = *self;
        (elicitation && !other.elicitation) || (sampling && !other.sampling) || (roots && !other.roots)
    }

    fn describe(&self) -> Vec<String> {
        let Self { elicitation, sampling, roots } = *self;
        let all = [(elicitation, "elicitation"), (sampling, "sampling"), (roots, "asking for roots")];
        all.into_iter().filter(|(granted, _)| *granted).map(|(_, name)| name.to_owned()).collect()
    }

    // Questions go through wharf's own interface, which every plugin imports, so imports do not tell whether a plugin asks.
    const IMPORTS: &'static [(&'static str, &'static str)] = &[];
}
