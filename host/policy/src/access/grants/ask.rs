//! `ask = ["elicitation", "sampling", "roots"]`: what a plugin may ask the client.

use anyhow::{Result, bail};

use crate::access::capability::{Absolute, Capability};

/// What a client may be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ability {
    Elicitation,
    Sampling,
    Roots,
}

impl Ability {
    /// Its name in `ask`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Elicitation => "elicitation",
            Self::Sampling => "sampling",
            Self::Roots => "roots",
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Grant {
    pub elicitation: bool,
    pub sampling: bool,
    pub roots: bool,
}

impl Grant {
    /// Whether the plugin may ask for it.
    pub fn allows(self, ability: Ability) -> bool {
        match ability {
            Ability::Elicitation => self.elicitation,
            Ability::Sampling => self.sampling,
            Ability::Roots => self.roots,
        }
    }

    /// Returns the log message about a refused question.
    pub fn hint(ability: Ability) -> String {
        let ability = ability.name();
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
