//! The config file as it is written. Unknown keys are errors that name the line and the most similar known key.

use std::{collections::BTreeMap, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{
        MapAccess, SeqAccess, Visitor,
        value::{MapAccessDeserializer, SeqAccessDeserializer},
    },
};

use crate::access::grants;
use wharf_base::explain;
use wharf_egress::secrets;

#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    pub plugin_dir: Option<String>,
    pub server: Server,
    pub http: Http,
    pub admin: Option<Admin>,
    pub protocol: Protocol,
    pub roots: Roots,
    pub limits: Limits,
    pub egress: Egress,
    pub secrets: InFileOrder<secrets::RawSecret>,
    pub audit: Option<Audit>,
    pub telemetry: Option<Telemetry>,
    pub auth: Option<Auth>,
    pub roles: InFileOrder<Role>,
    pub profiles: InFileOrder<Profile>,
    pub approvals: Approvals,
    pub plugins: InFileOrder<Plugin>,
}

#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    pub name: Option<String>,
    pub title: Option<String>,
    pub description: Option<String>,
    pub instructions: Option<String>,
    pub website: Option<String>,
    pub icons: Vec<Icon>,
    pub catalog: Option<String>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Icon {
    pub src: String,
    pub mime_type: Option<String>,
    #[serde(default)]
    pub sizes: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Http {
    pub listen: Option<String>,
    pub socket_mode: Option<u32>,
    pub public_url: Option<String>,
    pub server_card: Option<ServerCard>,
    pub token_env: Option<String>,
    /// The name of one of [secrets].
    pub token_secret: Option<String>,
    pub allowed_hosts: Vec<String>,
    pub allowed_origins: Vec<String>,
    pub connections: Option<usize>,
    pub sessions: Option<usize>,
    pub session_idle_ms: Option<u64>,
    pub listens: Option<usize>,
    pub in_flight: Option<usize>,
    pub poll_after_ms: Option<u64>,
    pub access_log: Option<String>,
    pub drain_s: Option<u64>,
    pub drain_delay_s: Option<u64>,
    pub tls: Option<Tls>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Tls {
    pub cert: String,
    pub key: String,
    pub client_ca: Option<String>,
    pub client_cert: Option<String>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "true, or a name such as \"com.example/weather\"")]
pub enum ServerCard {
    Is(bool),
    Named(String),
}

#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Admin {
    pub listen: Option<String>,
    pub allowed_hosts: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Protocol {
    pub modern: Option<bool>,
    pub legacy: Option<bool>,
    pub sse: Option<bool>,
    pub extensions: Option<Vec<String>>,
    pub state_key_env: Option<String>,
    pub list_ttl_ms: Option<u64>,
    pub list_scope: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Roots {
    pub within: Option<Vec<String>>,
    pub fixed: Vec<String>,
    pub from: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Egress {
    pub roots: Option<String>,
    pub ca: Vec<String>,
    pub proxy: Option<Proxy>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "the URL of a proxy, or { env = … }")]
pub enum Proxy {
    Url(String),
    Named(FromEnv),
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FromEnv {
    pub env: String,
}

#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    pub total_concurrency: Option<usize>,
    pub total_memory_mib: Option<usize>,
    pub total_host_memory_mib: Option<usize>,
    pub compile_memory_mib: Option<usize>,
    pub compile_timeout_ms: Option<u64>,
    pub message_kib: Option<usize>,
    pub page_items: Option<usize>,
    pub total_tasks: Option<usize>,
    pub concurrency: Option<usize>,
    pub memory_mib: Option<usize>,
    pub timeout_ms: Option<u64>,
    pub output_kib: Option<usize>,
    pub http_requests: Option<usize>,
    pub http_at_once: Option<usize>,
    pub http_in_kib: Option<usize>,
    pub http_out_kib: Option<usize>,
    pub task_timeout_ms: Option<u64>,
    pub task_ttl_ms: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Audit {
    pub file: String,
    pub arguments: Option<String>,
    pub on_failure: Option<String>,
    pub rotate_mib: Option<usize>,
    pub keep: Option<usize>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Telemetry {
    pub otlp: String,
    pub protocol: Option<String>,
    pub sample: Option<f64>,
    #[serde(default)]
    pub trust_parent: bool,
    #[serde(default)]
    pub propagate: bool,
    pub metrics_ms: Option<u64>,
    pub service: Option<String>,
    #[serde(default)]
    pub attributes: InFileOrder<String>,
    #[serde(default)]
    pub headers: InFileOrder<Value>,
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

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FromSecret {
    /// The name of one of [secrets].
    pub secret: String,
}

#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Auth {
    pub scopes: Vec<String>,
    /// The scopes that a scope includes besides itself.
    pub includes: BTreeMap<String, Vec<String>>,
    pub keys_file: Option<String>,
    pub issuers: Vec<Issuer>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Issuer {
    pub url: String,
    pub algorithms: Option<Vec<String>>,
    #[serde(default)]
    pub audience: Vec<String>,
    pub typ: Option<String>,
    pub jwks_url: Option<String>,
    pub jwks_file: Option<String>,
    pub introspection: Option<Introspection>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Introspection {
    pub client_id: String,
    /// The name of one of [secrets].
    pub secret: String,
    pub url: Option<String>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Role {
    pub when: When,
    pub plugins: Option<Vec<String>>,
    pub tools: Option<Vec<String>>,
    pub prompts: Option<Vec<String>>,
    pub resources: Option<Vec<String>>,
    #[serde(default)]
    pub step_up: bool,
    pub roots: Option<RoleRoots>,
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

#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Condition {
    pub scope: Option<Words>,
    pub group: Option<String>,
    pub issuer: Option<String>,
    pub subject: Option<String>,
    pub claim: BTreeMap<String, String>,
    pub client: Option<String>,
    pub key: Option<String>,
    pub cert: Option<String>,
    pub uid: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "a text, or a list of texts")]
pub enum Words {
    One(String),
    All(Vec<String>),
}

#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Profile {
    pub plugins: Option<Vec<String>>,
    pub tools: Option<Vec<String>>,
    pub prompts: Option<Vec<String>>,
    pub resources: Option<Vec<String>>,
    pub catalog: Option<String>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RoleRoots {
    pub within: Option<String>,
    pub access: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct RoleLimits {
    pub calls_per_minute: Option<u32>,
    pub calls_per_hour: Option<u32>,
    pub calls_per_day: Option<u32>,
    pub concurrency: Option<u32>,
    pub of: Vec<LimitsOf>,
}

/// Limits for a part of what a role gives.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct LimitsOf {
    pub plugins: Option<Vec<String>>,
    pub tools: Option<Vec<String>>,
    pub prompts: Option<Vec<String>>,
    pub resources: Option<Vec<String>>,
    pub calls_per_minute: Option<u32>,
    pub calls_per_hour: Option<u32>,
    pub calls_per_day: Option<u32>,
    pub concurrency: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Approvals {
    pub ask: Option<Asker>,
    pub remember: Option<String>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "\"client\", or { command = [ … ] }")]
pub enum Asker {
    Word(String),
    Program(Command),
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Command {
    pub command: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "\"all\", \"writes\", \"destructive\", or a list of names of tools")]
pub enum Confirm {
    Word(String),
    Tools(Vec<String>),
}

#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Plugin {
    pub path: Option<String>,
    pub builtin: Option<String>,
    pub sha256: Option<String>,
    pub prefix: Option<String>,
    pub adapter: Option<String>,
    #[serde(default)]
    pub command: bool,
    pub tools: Option<Tools>,
    pub prompts: Option<Vec<String>>,
    pub instances: Option<String>,
    pub instructions: Option<String>,
    pub confirm: Option<Confirm>,
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "serde_json::Map<String, serde_json::Value>"))]
    pub config: toml::Table,
    #[serde(default)]
    pub limits: PluginLimits,
    #[serde(default)]
    pub grants: grants::RawGrants,
}

/// The names of the tools that are published, or a declaration of each tool.
#[derive(Debug, Clone)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(untagged))]
pub enum Tools {
    Names(Vec<String>),
    Declared(InFileOrder<Declared>),
}

// An untagged enum would not say what is wrong in a table.
impl<'de> Deserialize<'de> for Tools {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Tools;
            fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                formatter.write_str("a list of names, or a table for each tool")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Tools, A::Error> {
                Deserialize::deserialize(SeqAccessDeserializer::new(seq)).map(Tools::Names)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Tools, A::Error> {
                Deserialize::deserialize(MapAccessDeserializer::new(map)).map(Tools::Declared)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// The declaration of a tool: how its command is started, or how its function is described.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Declared {
    pub description: String,
    pub argv: Option<Vec<String>>,
    #[serde(default)]
    pub params: InFileOrder<Param>,
    pub stdin: Option<String>,
    pub ok_exit: Option<Vec<i32>>,
    pub output: Option<String>,
    pub read_only: Option<bool>,
    pub destructive: Option<bool>,
    pub idempotent: Option<bool>,
    pub open_world: Option<bool>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Param {
    #[serde(rename = "type")]
    pub ty: Option<String>,
    pub description: Option<String>,
    #[cfg_attr(test, schemars(with = "serde_json::Value"))]
    pub default: Option<toml::Value>,
    pub flag: Option<String>,
    #[serde(rename = "enum")]
    pub one_of: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct PluginLimits {
    pub calls_per_minute: Option<u32>,
    pub calls_per_hour: Option<u32>,
    pub calls_per_day: Option<u32>,
    pub concurrency: Option<usize>,
    pub memory_mib: Option<usize>,
    pub timeout_ms: Option<u64>,
    pub output_kib: Option<usize>,
    pub http_requests: Option<usize>,
    pub http_at_once: Option<usize>,
    pub http_in_kib: Option<usize>,
    pub http_out_kib: Option<usize>,
    pub task_timeout_ms: Option<u64>,
    pub task_ttl_ms: Option<u64>,
}

/// A table that keeps the order of the file: if two entries use the same name, the first one keeps it.
#[derive(Debug, Clone)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(transparent))]
pub struct InFileOrder<T>(#[cfg_attr(test, schemars(with = "BTreeMap<String, T>"))] pub Vec<(String, T)>);

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

/// Parses the file; the error reads `line: what is wrong`, without the line's text, which may hold a secret.
pub fn parse(text: &str) -> Result<Config, String> {
    explain::toml(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_name_the_line_and_the_nearest_key() {
        for (text, expected) in [
            ("plugin_dri = 'x'", "1: unknown key `plugin_dri`; did you mean `plugin_dir`?"),
            ("\n\n[http]\nlisten = 7", "4: expected a string"),
            ("[http]\ntokenenv = 'x'", "2: unknown key `tokenenv`; did you mean `token_env`?"),
            (
                "[plugins.a]\npath = 'a'\nfrobnicate = 1",
                "3: unknown key `frobnicate`; there are: path, builtin, sha256, prefix, adapter, command, tools, prompts, instances, instructions, confirm, config, limits, grants",
            ),
            ("[http]\nlisten = 'a'\nlisten = 'b'", "3: the key `listen` stands here a second time"),
        ] {
            assert_eq!(parse(text).unwrap_err(), expected);
        }
        assert!(!parse("[limits]\ntimeout_ms = 'hunter2'").unwrap_err().contains("hunter2"));
    }

    #[test]
    fn plugins_keep_their_order() {
        let config = parse("[plugins.z]\npath='z'\n[plugins.a]\npath='a'\n[plugins.m]\npath='m'").unwrap();
        let ids: Vec<&str> = config.plugins.0.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(ids, ["z", "a", "m"]);
    }
}
