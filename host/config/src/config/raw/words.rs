//! The keys whose value is one of a few words.

use serde::Deserialize;

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
