//! `[roots]`, `[egress]`, `[sources]`, `[audit]` and `[telemetry]`: what wharf reaches outside of plugins.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{
    number::{Count, Mib, Millis},
    value::{Arguments, Certificates, FromEnv, InFileOrder, OnFailure, Value},
};
use wharf_policy::access::scope::RootsFrom;

#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Roots {
    /// The folders that client roots must be in; `--within` adds to them.
    ///
    /// Default: over stdio, the home directory; over HTTP, none
    pub within: Option<Vec<String>>,
    /// Folders that are open as roots for all clients; `--root` adds to them.
    pub fixed: Vec<String>,
    /// Whose roots are used: `"client"`: those of the client, or the fixed ones if no client root is usable; `"operator"`: the fixed ones
    /// only; `"both"`.
    ///
    /// Default: `"client"`; with `--root`, `"both"`
    pub from: Option<RootsFrom>,
}

#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Egress {
    /// The certificates that are trusted: `"system"`, or `"built-in"`: those of Mozilla.
    pub roots: Certificates,
    /// Files with further certificates that are trusted, in PEM.
    pub ca: Vec<String>,
    /// The URL of an HTTP proxy, or `{ env = "HTTPS_PROXY" }`. A proxy is only used if it is named here. wharf's own requests to this machine
    /// do not go through it.
    pub proxy: Option<Proxy>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "the URL of a proxy, or { env = … }")]
pub enum Proxy {
    Url(String),
    Named(FromEnv),
}

#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Sources {
    /// The places that plugins may come from: a host and the beginning of a path, which ends with `/`, or a whole name, such as
    /// `registry.example/tools/`, `npm:@scope/` or `pypi:NAME`. An empty list allows none.
    ///
    /// Default: any
    pub allow: Option<Vec<String>>,
    /// Those whose signature a plugin has to have: `{ key = "FILE.pub" }`, `{ minisign = "RW…" }` or `{ identity = "…", issuer = "…" }`.
    /// Without signers, a plugin with `source` needs `signer` or `sha256`.
    ///
    /// Default: nobody
    pub signers: Vec<Signer>,
    /// The age that a version has to have before `wharf update` takes it, such as `"3d"`. A version that is named explicitly may be younger.
    ///
    /// Default: any
    pub min_age: Option<String>,
    /// Hosts that are asked instead of registries, by the registry: `{ "registry.example" = "mirror.example/cache" }`.
    ///
    /// Default: the registries themselves
    pub mirrors: BTreeMap<String, String>,
    /// Users and passwords, by the registry.
    ///
    /// Default: those of docker's config
    pub logins: BTreeMap<String, RegistryLogin>,
    /// The folder of the fetched components. Only `wharf add`, `update` and `lock` write it.
    ///
    /// Default: the folder `wharf/store` in `$XDG_DATA_HOME`, else in `~/.local/share`
    pub store: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Signer {
    /// The PEM file of a public key, ECDSA P-256 or Ed25519.
    pub key: Option<String>,
    /// A public key of minisign.
    pub minisign: Option<String>,
    /// The name in the certificate that sigstore issued: an e-mail address or the URL of a workflow. `*` stands for any text.
    pub identity: Option<String>,
    /// The URL of the identity provider that sigstore asked.
    pub issuer: Option<String>,
    /// The file with the trusted root of your own sigstore (`trusted_root.json`).
    ///
    /// Default: the public sigstore
    pub trusted_root: Option<String>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RegistryLogin {
    /// The name of the user.
    pub user: String,
    /// The secret in `[secrets]` that is the password.
    pub secret: String,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Audit {
    /// The file of the log, in a folder of its own, such as `audit/audit.jsonl`. Only one process may write it.
    pub file: String,
    /// What is recorded of arguments: `"digest"`: which arguments are equal; `"redacted"`: also their structure; `"full"`: everything.
    #[serde(default)]
    pub arguments: Arguments,
    /// What happens while the log cannot be written: `"refuse"`: calls are refused; `"continue"`: they run without a record.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// A file is rotated before it grows beyond this size.
    #[serde(default)]
    pub rotate_mib: Mib<64>,
    /// The number of old files that are kept. The newest is `audit.jsonl.1`.
    #[serde(default)]
    pub keep: Count<8, 10_000>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Telemetry {
    /// The base URL of the collector, such as `http://127.0.0.1:4318`, for OTLP as protobuf over HTTP. wharf adds `/v1/traces` and `/v1/metrics`.
    pub otlp: String,
    /// The fraction of calls that are traced, from 0 to 1.
    ///
    /// Default: `0.01`
    pub sample: Option<f64>,
    /// Whether the client decides if a request that belongs to its trace is traced.
    #[serde(default)]
    pub trust_parent: bool,
    /// Whether HTTP requests of plugins propagate the trace.
    #[serde(default)]
    pub propagate: bool,
    /// How often metrics are sent; 0 = never.
    #[serde(default)]
    pub metrics_ms: Millis<60_000, 0>,
    /// Attributes of this server in addition to `service.name`, which is the `name` of `[server]`, such as `{ "deployment.environment.name" = "prod" }`.
    ///
    /// Default: `{}`
    #[serde(default)]
    pub attributes: InFileOrder<String>,
    /// Headers that are sent with each message. A value is a text, `{ secret = "NAME" }` for a secret in `[secrets]`, or
    /// `{ env = "NAME" }` for an environment variable.
    ///
    /// Default: `{}`
    #[serde(default)]
    pub headers: InFileOrder<Value>,
}
