//! `env = ["NAME"]`: variables of wharf's own environment.

use anyhow::{Result, ensure};

use crate::access::capability::{Absolute, Capability};

pub const VARIABLES: &str = "environment variables";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grant(pub Vec<String>);

impl Grant {
    /// The variables that a call sees; those that are not set are left out.
    pub fn apply(&self) -> Vec<(String, String)> {
        self.0.iter().filter_map(|name| Some((name.clone(), std::env::var(name).ok()?))).collect()
    }
}

impl Capability for Grant {
    type Written = Vec<String>;

    fn parse(written: Vec<String>, _: Absolute<'_>) -> Result<Self> {
        for name in &written {
            ensure!(!name.is_empty() && !name.contains('='), "`env`: `{name}` is no name of a variable");
        }
        Ok(Self(written))
    }

    fn exceeds(&self, other: &Self) -> bool {
        self.0.iter().any(|name| !other.0.contains(name))
    }

    fn describe(&self) -> Vec<String> {
        self.0.iter().map(|name| format!("${name}")).collect()
    }

    const IMPORTS: &'static [(&'static str, &'static str)] = &[("wasi:cli/environment", VARIABLES)];
}
