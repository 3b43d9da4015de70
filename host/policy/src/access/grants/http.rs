//! `http = […]`: the requests that a plugin may make, and the variables whose values are placeholders for secrets in them.

use std::sync::Arc;

use anyhow::{Result, ensure};

use crate::access::capability::{Absolute, Capability};
use wharf_egress::{
    Allowance, Placeholder,
    rule::{RawRule, Rule},
};

pub const HTTP: &str = "HTTP";

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Grant(pub Arc<Allowance>);

impl Grant {
    /// Adds variables whose values are placeholders of secrets.
    pub fn with_placeholders(self, placeholders: Vec<Placeholder>) -> Result<Self> {
        for Placeholder { name: variable, secret } in &placeholders {
            ensure!(
                self.0.rules.iter().any(|rule| rule.secrets.contains(secret)),
                "`env`: `{variable}` stands for the secret `{secret}`, but no rule of `http` lists it, as in `secrets = [\"{secret}\"]`"
            );
        }
        Ok(Self(Arc::new(Allowance { placeholders, ..(*self.0).clone() })))
    }

    /// Checks that the config has every secret that the rules use.
    pub fn check_secrets(&self, is_known: impl Fn(&str) -> bool) -> Result<()> {
        for name in self.0.secrets() {
            ensure!(is_known(name), "`http`: there is no secret `{name}` in [secrets]");
        }
        Ok(())
    }
}

impl Capability for Grant {
    type Raw = Vec<RawRule>;

    fn parse(written: Vec<RawRule>, _: Absolute<'_>) -> Result<Self> {
        let rules: Vec<Rule> = written.into_iter().map(Rule::parse).collect::<Result<_>>()?;
        Ok(Self(Arc::new(Allowance { rules, placeholders: Vec::new() })))
    }

    fn exceeds(&self, other: &Self) -> bool {
        self.0.rules.iter().any(|rule| !other.0.rules.contains(rule))
            || self.0.placeholders.iter().any(|one| !other.0.placeholders.contains(one))
    }

    fn describe(&self) -> Vec<String> {
        let rules = self.0.rules.iter().map(ToString::to_string);
        let variables =
            self.0.placeholders.iter().map(|Placeholder { name, secret }| format!("${name} for the secret {secret}"));
        rules.chain(variables).collect()
    }

    const IMPORTS: &'static [(&'static str, &'static str)] = &[("wasi:http/", HTTP)];
}
