//! The requests that one plugin may send.

use serde::Deserialize;

use super::rule::Rule;

/// The rules for a plugin's requests, and its placeholders for secrets.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Allowance {
    pub rules: Vec<Rule>,
    pub placeholders: Vec<Placeholder>,
}

/// A variable that stands for a secret. The plugin sees a placeholder as its value.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Placeholder {
    /// The name of the variable.
    pub name: String,
    /// The name of the secret in `[secrets]`.
    pub secret: String,
}

impl Allowance {
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns the names of all secrets that the rules can add to requests.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().flat_map(Rule::all_secrets)
    }
}
