//! The config file as it is written. Unknown keys are errors that name the line and the most similar known key.
//!
//! The doc comments are the reference of all keys: docs/wharf.schema.json and docs/config.md are generated from them (`schema`). Defaults and
//! bounds come from the types. A default that depends on something is the last paragraph of a comment, `Default: …`.

use serde::Deserialize;

use wharf_base::explain;
use wharf_egress::secrets;

mod callers;
mod limits;
mod number;
mod outside;
mod plugin;
mod server;
mod value;

pub use self::{
    callers::{Auth, Condition, Introspection, Issuer, LimitsOf, Profile, Role, RoleLimits, RoleRoots, When},
    limits::{Limits, PluginLimits},
    number::{Calls, Number, Unit},
    outside::{Audit, Egress, Proxy, RegistryLogin, Roots, Signer, Sources, Telemetry},
    plugin::{Approvals, Asker, Confirm, Declared, Param, Plugin, Tools},
    server::{Admin, Cluster, Http, Protocol, Server, Tls},
    value::{
        Arguments, Certificates, ClientCertificates, Command, FromEnv, FromSecret, InFileOrder, Instances, OnFailure,
        Remember, Surface, TokenType, Value, Words,
    },
};

/// The config of wharf. Paths are relative to the config file. wharf reads the file again when it changes, and on SIGHUP.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// A folder: every `*.wasm` in it is served and watched, without any grants. A plugin of this folder that has a table in `[plugins]` is
    /// served once, as configured there.
    pub plugin_dir: Option<String>,
    /// Information about this server for its clients. All keys except `catalog` need a restart.
    pub server: Server,
    /// Where `wharf serve` listens, who may connect, and how many: docs/operations.md.
    pub http: Http,
    /// Metrics for Prometheus at `/metrics`, on an address of their own; off without this table. All keys need a restart:
    /// docs/observability.md.
    pub admin: Option<Admin>,
    /// The parts of MCP that are served. All keys need a restart.
    pub protocol: Protocol,
    /// The Redis server through which several wharf processes behind one address are one server; off without this table. All keys need a
    /// restart: docs/replicas.md.
    pub cluster: Option<Cluster>,
    /// The folders that clients may open for plugins (client roots): docs/permissions.md.
    pub roots: Roots,
    /// Limits for all plugins together, and of each plugin: docs/limits.md.
    pub limits: Limits,
    /// Outgoing HTTP requests of plugins, and of wharf itself to identity providers and collectors: docs/permissions.md#http.
    pub egress: Egress,
    /// The sources of secrets, by name. wharf adds their values to requests; plugins do not see them. Each table has exactly one of the
    /// keys: docs/permissions.md#secrets.
    pub secrets: InFileOrder<secrets::RawSecret>,
    /// Where plugins with `source` may come from, and who has to have signed them: docs/sources.md.
    pub sources: Sources,
    /// A log of calls and of changes; off without this table. All keys need a restart: docs/audit.md.
    pub audit: Option<Audit>,
    /// Traces and metrics for a collector, by OTLP; off without this table. All keys need a restart: docs/observability.md.
    pub telemetry: Option<Telemetry>,
    /// Access tokens of identity providers, and API keys, over HTTP. All keys need a restart: docs/login.md.
    pub auth: Option<Auth>,
    /// Roles: who may use what over HTTP, by the role's name. With `[auth]`, there has to be at least one role. Without `[auth]` and roles,
    /// everybody who can connect may use everything: docs/login.md#roles.
    pub roles: InFileOrder<Role>,
    /// Profiles: subsets of the catalog, by the name that clients ask for, at `/mcp/NAME` or with `--profile NAME`. Without lists, a profile
    /// has everything that its plugins offer; an empty table is an error: docs/catalogs.md.
    pub profiles: InFileOrder<Profile>,
    /// How a person is asked to approve the calls that `confirm` of a plugin selects: docs/permissions.md#approval.
    pub approvals: Approvals,
    /// The plugins, by id. `wharf add` writes such a table; `wharf grant ID` and `wharf grant ID --revoke` change its grants. Ids that begin with
    /// `wharf` are reserved: docs/permissions.md.
    pub plugins: InFileOrder<Plugin>,
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
            ("[http]\ndrains = 1", "2: unknown key `drains`; did you mean `drain_s`?"),
            (
                "[plugins.a]\npath = 'a'\nfrobnicate = 1",
                "3: unknown key `frobnicate`; there are: path, builtin, source, signer, sha256, surface, prefix, adapter, endpoint, command, tools, prompts, instances, instructions, confirm, config, limits, grants",
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
