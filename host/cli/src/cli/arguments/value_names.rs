//! Arguments whose values are names that wharf knows, so that shells complete them. Unknown names are rejected where they are used.

use std::ffi::OsStr;

use clap::{
    Arg, Command, Error,
    builder::{PossibleValue, StringValueParser, TypedValueParser},
};

use crate::setup::client_list::ALL;
use wharf_config::config::builtin;

/// Parses a text, and tells shells which texts are known.
#[derive(Debug, Clone)]
pub struct ValueNames(Vec<&'static str>);

impl ValueNames {
    /// The names of the built-in plugins.
    pub fn builtins() -> Self {
        Self(builtin::names().collect())
    }

    /// The names of the clients.
    pub fn clients() -> Self {
        Self(ALL.iter().map(|client| client.id).collect())
    }
}

impl TypedValueParser for ValueNames {
    type Value = String;

    fn parse_ref(&self, command: &Command, argument: Option<&Arg>, value: &OsStr) -> Result<String, Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().map(PossibleValue::new)))
    }
}
