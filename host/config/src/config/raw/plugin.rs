//! `[plugins.<id>]`: where a plugin comes from, what of it is published, and its grants; and `[approvals]`.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{
        MapAccess, SeqAccess, Visitor,
        value::{MapAccessDeserializer, SeqAccessDeserializer},
    },
};

use super::{
    limits::PluginLimits,
    outside::Signer,
    value::{Command, InFileOrder, Instances, Remember, Surface},
};
use wharf_policy::access::grants;

#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Approvals {
    /// Who asks the person: `"client"`, or `{ command = [ … ] }`, a program of the operator.
    ///
    /// Default: `"client"`
    pub ask: Option<Asker>,
    /// The longest validity that a person can choose for an approval: `"never"` (one call), `"session"` or `"always"`.
    pub remember: Remember,
}

#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "\"client\", or { command = [ … ] }")]
pub enum Asker {
    Word(String),
    Program(Command),
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
    /// The component's file, or the file of an existing MCP server in Python, TypeScript or JavaScript, of which wharf makes one.
    pub path: Option<String>,
    /// The name of a plugin in the binary, instead of `path`: `fetch`, `files`, `git`, `memory`, `sequentialthinking` or `time`.
    pub builtin: Option<String>,
    /// Where the component is published, instead of `path`: `oci://REGISTRY/REPOSITORY:VERSION`, `https://…` or `file:PATH`. The version that
    /// is loaded is in `wharf.lock`; `wharf update` and `wharf lock fetch` fetch it: docs/sources.md. Or an existing MCP server in a package:
    /// `npm:NAME[@VERSION]` or `pypi:NAME[==VERSION]`: docs/existing.md.
    pub source: Option<String>,
    /// Who has to have signed the component from `source`, instead of `signers` in `[sources]`.
    pub signer: Option<Signer>,
    /// The SHA-256 of the component, as 64 hexadecimal digits: any other one is refused. `wharf add` writes it.
    pub sha256: Option<String>,
    /// `"pinned"`: the plugin is served only with the names, descriptions, schemas, instructions and wants that `wharf.lock` in the
    /// folder of the config has accepted, so that a new version cannot tell models anything else (docs/permissions.md). Plugins with `source`
    /// are always pinned.
    pub surface: Option<Surface>,
    /// The text before the names of tools and prompts that do not begin with it already; `""` publishes all names unchanged.
    ///
    /// Default: the id and `_`
    pub prefix: Option<String>,
    /// How a component that was not made for wharf is served: `"functions"`: its functions are tools; `"command"`; `"http"`: it is an MCP
    /// server over HTTP, whose only client is wharf (docs/adapter.md).
    ///
    /// Default: detected
    pub adapter: Option<String>,
    /// The path of the MCP endpoint of a component that is an MCP server over HTTP; at most 1 KiB.
    ///
    /// Default: `"/mcp"`
    pub endpoint: Option<String>,
    /// Whether a command has a tool `run` that takes any arguments.
    #[serde(default)]
    pub command: bool,
    /// The tools that are published: a list of the plugin's own names, with `*` at the end only; or, for a component that was not made for
    /// wharf, a table for each tool. Without this key, all tools.
    pub tools: Option<Tools>,
    /// The prompts that are published, by the plugin's own names, with `*` at the end only. Without this key, all prompts.
    pub prompts: Option<Vec<String>>,
    /// The instances that calls run in: `"fresh"`: a new sandbox for every call; `"reused"`: one instance may serve several calls of the
    /// same client, one after the other. Plugins that are made from an existing MCP server say themselves that all calls of a client run in
    /// one instance, unless it is `"fresh"` here (docs/permissions.md). For the built-in plugin `sequentialthinking`, the default is `"reused"`.
    ///
    /// Default: `"fresh"`, unless the plugin says that it keeps state
    pub instances: Option<Instances>,
    /// A text for the model, instead of the plugin's own instructions; at most 2 KiB; `""` = none.
    pub instructions: Option<String>,
    /// The calls that a person has to approve: `"writes"`: those that could change something; `"all"`; `"destructive"`; or names of tools,
    /// such as `["write_*"]`. Without this key, none.
    pub confirm: Option<Confirm>,
    /// The plugin's own config, which is passed to it. `{ env = "NAME" }` in it is replaced by the value of the environment variable.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "serde_json::Map<String, serde_json::Value>"))]
    pub config: toml::Table,
    /// Limits of this plugin: docs/limits.md.
    #[serde(default)]
    pub limits: PluginLimits,
    /// What the plugin may reach. Without grants, it may reach nothing: docs/permissions.md.
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
    /// The tool's description, for the model.
    pub description: String,
    /// The arguments of a command. `{name}` is replaced by the value of a parameter; there is no shell. `{name?}` is optional. `{{` and `}}`
    /// are literal braces.
    pub argv: Option<Vec<String>>,
    /// The parameters of a command. One that is not declared here is a string.
    ///
    /// Default: `{}`
    #[serde(default)]
    pub params: InFileOrder<Param>,
    /// The standard input of a command, with parameters as in `argv`. Without this key, it is empty.
    pub stdin: Option<String>,
    /// The exit codes of success.
    ///
    /// Default: `[0]`
    pub ok_exit: Option<Vec<i32>>,
    /// The result of a command: `"text"`; `"json"`: structured content; `"all"`: output, errors and exit code.
    ///
    /// Default: `"text"`
    pub output: Option<String>,
    /// A hint for clients: the tool changes nothing.
    pub read_only: Option<bool>,
    /// A hint for clients: the tool may delete or overwrite something.
    pub destructive: Option<bool>,
    /// A hint for clients: a second call with the same arguments changes nothing more.
    pub idempotent: Option<bool>,
    /// A hint for clients: the tool reaches systems outside, such as the internet.
    pub open_world: Option<bool>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Param {
    /// The type: `"string"`, `"integer"`, `"number"`, `"boolean"`, or `"array"`, each item of which is an argument.
    ///
    /// Default: `"string"`
    #[serde(rename = "type")]
    pub ty: Option<String>,
    /// The parameter's description, for the model.
    pub description: Option<String>,
    /// The value that is used if the model passes none. Without this key, the parameter is required unless it is optional in `argv`.
    #[cfg_attr(test, schemars(with = "serde_json::Value"))]
    pub default: Option<toml::Value>,
    /// The argument that is passed if a boolean is true, such as `-i`.
    pub flag: Option<String>,
    /// The values that are allowed.
    ///
    /// Default: any
    #[serde(rename = "enum")]
    pub one_of: Vec<String>,
}
