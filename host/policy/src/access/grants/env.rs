//! `env = ["NAME"]`: variables of wharf's own environment. A table, `{ name = "KEY", secret = "api" }`, is a variable whose value is a
//! placeholder for a secret; it belongs to `http`.

use anyhow::{Result, ensure};
use serde::Deserialize;

use crate::access::capability::{Absolute, Capability};
use wharf_egress::Placeholder;

pub const VARIABLES: &str = "environment variables";

/// An entry of `env` as written in the config.
#[derive(Debug, Clone, Deserialize, schemars::JsonSchema)]
#[serde(untagged, expecting = "the name of a variable, or { name = …, secret = … }")]
pub enum RawEnv {
    Variable(String),
    Placeholder(Placeholder),
}

/// Splits the entries into variables and placeholders of secrets.
pub fn separate(written: Vec<RawEnv>) -> Result<(Vec<String>, Vec<Placeholder>)> {
    let (mut variables, mut placeholders) = (Vec::new(), Vec::new());
    for one in written {
        match one {
            RawEnv::Variable(name) => variables.push(name),
            RawEnv::Placeholder(placeholder) => {
                check_name(&placeholder.name)?;
                placeholders.push(placeholder);
            }
        }
    }
    Ok((variables, placeholders))
}

fn check_name(name: &str) -> Result<()> {
    ensure!(!name.is_empty() && !name.contains(['=', '\0']), "`env`: `{name}` is not a valid variable name");
    Ok(())
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grant(pub Vec<String>);

impl Grant {
    /// Returns the variables that a call sees, with their values; unset variables are left out.
    pub fn apply(&self, value: impl Fn(&str) -> Option<String>) -> Vec<(String, String)> {
        self.0.iter().filter_map(|name| Some((name.clone(), value(name)?))).collect()
    }
}

impl Capability for Grant {
    type Raw = Vec<String>;

    fn parse(written: Vec<String>, _: Absolute<'_>) -> Result<Self> {
        for name in &written {
            check_name(name)?;
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
