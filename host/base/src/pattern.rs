//! Patterns by which the config selects names of plugins, tools, prompts and resources.

use std::fmt;

/// An exact name, or the beginning of names followed by `*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// Whether it matches every name.
    pub fn is_everything(&self) -> bool {
        self.0 == "*"
    }

    /// Whether it matches this name and no other.
    pub fn is(&self, name: &str) -> bool {
        self.0 == name && !name.ends_with('*')
    }

    pub fn matches(&self, name: &str) -> bool {
        match self.0.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == self.0,
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
