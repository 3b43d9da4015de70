//! The kinds of values: those that several tables have, and the words that one key can have.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};

/// An environment variable.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FromEnv {
    /// The name of the environment variable.
    pub env: String,
}

/// A secret.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FromSecret {
    /// The name of the secret in `[secrets]`.
    pub secret: String,
}

/// A text, or where it is read from: an environment variable or a secret.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "a text, { env = … } or { secret = … }")]
pub enum Value {
    Text(String),
    Named(FromEnv),
    Secret(FromSecret),
}

/// One text, or several.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "a text, or a list of texts")]
pub enum Words {
    One(String),
    All(Vec<String>),
}

/// A command that is started without a shell.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// The program and its arguments.
    pub command: Vec<String>,
}

/// How much of a call's arguments is written. Their digest is always written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
pub enum Arguments {
    /// Nothing.
    #[default]
    Digest,
    /// Their structure.
    Redacted,
    /// All of them.
    Full,
}

/// What happens to calls while the log cannot be written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    #[default]
    Refuse,
    Continue,
}

/// How long an approval can be valid.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
pub enum Remember {
    Never,
    /// Until the session ends; for clients without sessions, until wharf exits.
    #[default]
    Session,
    /// Until it is revoked.
    Always,
}

/// Whether clients need a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ClientCertificates {
    Required,
    Optional,
}

/// Which certificates of servers are trusted.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "kebab-case")]
pub enum Certificates {
    #[default]
    System,
    BuiltIn,
}

/// Which types of access tokens are accepted.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema, serde::Serialize))]
pub enum TokenType {
    #[default]
    #[serde(rename = "auto")]
    Auto,
    #[serde(rename = "at+jwt")]
    AtJwt,
}

/// Whether what a plugin tells models has to have been accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Surface {
    Pinned,
}

/// Whether one instance may serve several calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Instances {
    Fresh,
    Reused,
}

impl Instances {
    /// Returns its name in a config.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Reused => "reused",
        }
    }
}

/// A table that keeps the order of the file: if two entries use the same name, the first one keeps it.
#[derive(Debug, Clone)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(transparent))]
pub struct InFileOrder<T>(
    #[cfg_attr(test, schemars(with = "std::collections::BTreeMap<String, T>"))] pub Vec<(String, T)>,
);

impl<T> Default for InFileOrder<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for InFileOrder<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Table<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Table<T> {
            type Value = Vec<(String, T)>;
            fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                formatter.write_str("a table")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(entries)
            }
        }
        deserializer.deserialize_map(Table(PhantomData)).map(InFileOrder)
    }
}
