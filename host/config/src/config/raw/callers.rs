//! `[auth]`, `[roles]` and `[profiles]`: who may connect over HTTP, and what each caller may use and asks for.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{
    number::Calls,
    value::{TokenType, Words},
};
use wharf_policy::{access::capability::Access, profiles::Style};

#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Auth {
    /// The scopes that every request needs.
    pub scopes: Vec<String>,
    /// The scopes that a scope includes, such as `{ "files:write" = ["files:read"] }`.
    pub includes: BTreeMap<String, Vec<String>>,
    /// The file of API keys, which `wharf keys` writes. With this file, no issuer is needed.
    pub keys_file: Option<String>,
    /// The identity providers whose access tokens are accepted.
    pub issuers: Vec<Issuer>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Issuer {
    /// The issuer's URL, exactly as in the claim `iss`.
    pub url: String,
    /// The signature algorithms that are accepted.
    ///
    /// Default: `["RS256", "ES256", "EdDSA"]`
    pub algorithms: Option<Vec<String>>,
    /// Values that are accepted in the claim `aud`, in addition to `public_url`. Of Amazon Cognito, whose access tokens have no `aud`: the ids
    /// of clients.
    #[serde(default)]
    pub audience: Vec<String>,
    /// The types of tokens that are accepted: `"auto"`, or `"at+jwt"`: only tokens that declare themselves to be access tokens.
    #[serde(default)]
    pub typ: TokenType,
    /// The URL of the issuer's keys.
    ///
    /// Default: the one in the issuer's metadata
    pub jwks_url: Option<String>,
    /// A file with the issuer's keys, instead of a URL.
    pub jwks_file: Option<String>,
    /// How to ask the issuer about opaque tokens. Without this key, only tokens with a signature (JWT) are accepted.
    pub introspection: Option<Introspection>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Introspection {
    /// The id with which wharf authenticates at the issuer.
    pub client_id: String,
    /// The secret in `[secrets]` with which wharf authenticates at the issuer.
    pub secret: String,
    /// The URL of the introspection endpoint.
    ///
    /// Default: the one in the issuer's metadata
    pub url: Option<String>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Role {
    /// The callers that have the role: `"anyone"`, a table whose conditions all hold, or a list of tables, any of which holds.
    pub when: When,
    /// Ids of plugins; `*` at the end matches any rest. Everything that they offer is granted, unless the lists below narrow it. Without
    /// this key, only the items in the lists are granted.
    pub plugins: Option<Vec<String>>,
    /// Names of tools as clients see them; `*` at the end matches any rest.
    pub tools: Option<Vec<String>>,
    /// Names of prompts as clients see them; `*` at the end matches any rest.
    pub prompts: Option<Vec<String>>,
    /// URIs of resources and templates as clients see them; `*` at the end matches any rest.
    pub resources: Option<Vec<String>>,
    /// Whether callers who lack only the scopes see what the role grants, and learn which scopes to ask for when they use it.
    #[serde(default)]
    pub step_up: bool,
    /// The folders in which the roots of the role's calls may lie, and the access to them. Without this key, the role does not narrow roots.
    pub roots: Option<RoleRoots>,
    /// Limits for each caller, for everything that the role grants (docs/login.md#limits).
    #[serde(default)]
    pub limits: RoleLimits,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(
    untagged,
    expecting = "\"anyone\", a table with conditions such as { scope = \"…\" }, or a list of such tables"
)]
pub enum When {
    Word(String),
    // Comes before the table, because an empty list could be read as a table without conditions.
    Any(Vec<Condition>),
    One(Box<Condition>),
}

/// Conditions, all of which hold.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Condition {
    /// A scope of the token or key, or a list of scopes, all of which are needed.
    pub scope: Option<Words>,
    /// A member of the claim `groups`.
    pub group: Option<String>,
    /// The URL of the issuer.
    pub issuer: Option<String>,
    /// The claim `sub`; needs `issuer`.
    pub subject: Option<String>,
    /// Claims and their values. Numbers and booleans are written as text; the names of claims in an object are joined by dots.
    pub claim: BTreeMap<String, String>,
    /// The claim `client_id`, `azp`, `cid` or `appid`, the first that the token has.
    pub client: Option<String>,
    /// The id of an API key.
    pub key: Option<String>,
    /// A name in the client's certificate.
    pub cert: Option<String>,
    /// The numeric id of the user at a Unix socket.
    pub uid: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Profile {
    /// Ids of plugins; `*` at the end matches any rest. Everything that they offer is in the profile, unless the lists below narrow it.
    /// Without this key, only the items in the lists.
    pub plugins: Option<Vec<String>>,
    /// Names of tools as clients see them; `*` at the end matches any rest.
    pub tools: Option<Vec<String>>,
    /// Names of prompts as clients see them; `*` at the end matches any rest.
    pub prompts: Option<Vec<String>>,
    /// URIs of resources and templates as clients see them; `*` at the end matches any rest.
    pub resources: Option<Vec<String>>,
    /// How the tools are listed: `"full"`, or `"search"`: three tools that find, call and read all others.
    pub catalog: Style,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RoleRoots {
    /// The folder that must contain the roots. A whole component of its path may be `{sub}`, the caller's name at its issuer or the id of
    /// its API key, or `{NAME}`, the value of a claim. Without this key, roots may be wherever the config allows.
    pub within: Option<String>,
    /// The highest access: `"read"` or `"read-write"`.
    ///
    /// Default: `"read-write"`
    pub access: Option<Access>,
}

#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct RoleLimits {
    /// The maximum number of calls in a minute, as a token bucket.
    pub calls_per_minute: Option<Calls>,
    /// The maximum number of calls in each hour of UTC.
    pub calls_per_hour: Option<Calls>,
    /// The maximum number of calls in each day of UTC.
    pub calls_per_day: Option<Calls>,
    /// The maximum number of calls at once.
    pub concurrency: Option<Calls>,
    /// Further limits, for parts of what the role grants.
    pub of: Vec<LimitsOf>,
}

/// Limits for a part of what a role grants.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct LimitsOf {
    /// Ids of plugins; `*` at the end matches any rest.
    pub plugins: Option<Vec<String>>,
    /// Names of tools as clients see them; `*` at the end matches any rest.
    pub tools: Option<Vec<String>>,
    /// Names of prompts as clients see them; `*` at the end matches any rest.
    pub prompts: Option<Vec<String>>,
    /// URIs of resources and templates as clients see them; `*` at the end matches any rest.
    pub resources: Option<Vec<String>>,
    /// The maximum number of calls in a minute, as a token bucket.
    pub calls_per_minute: Option<Calls>,
    /// The maximum number of calls in each hour of UTC.
    pub calls_per_hour: Option<Calls>,
    /// The maximum number of calls in each day of UTC.
    pub calls_per_day: Option<Calls>,
    /// The maximum number of calls at once.
    pub concurrency: Option<Calls>,
}
