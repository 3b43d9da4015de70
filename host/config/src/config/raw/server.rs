//! `[server]`, `[http]`, `[admin]`, `[protocol]` and `[cluster]`: what clients connect to.

use serde::Deserialize;

use super::{
    number::{Count, Mib, Millis, NONE, Seconds},
    value::ClientCertificates,
};
use crate::config::defaults;
use wharf_egress::secrets::RawSecret;
use wharf_policy::profiles::Style;

#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    /// The server's name, for programs.
    ///
    /// Default: `"wharf"`
    pub name: Option<String>,
    /// The server's name, for people.
    ///
    /// Default: `"wharf"`; no title if only `name` is set
    pub title: Option<String>,
    /// A description of the server, for people.
    pub description: Option<String>,
    /// A text for the model, about all tools together. The instructions of the plugins follow it; together they have at most 8 KiB.
    pub instructions: Option<String>,
    /// How tools are listed for clients that name no profile: `"full"`, or `"search"`: three tools that find, call and read all others
    /// (docs/catalogs.md).
    pub catalog: Style,
}

#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Http {
    /// An address and a port, or `unix:` and the path of a Unix socket, such as `unix:/run/wharf/mcp.sock`.
    ///
    /// Default: `"127.0.0.1:7300"`
    pub listen: Option<String>,
    /// The mode of the file of a Unix socket: who may connect.
    ///
    /// Default: `0o660`
    pub socket_mode: Option<u32>,
    /// The URL that clients use. `[auth]` needs it, and clients may send its host in `Host`.
    pub public_url: Option<String>,
    /// The bearer token of clients, such as `{ env = "WHARF_TOKEN" }`. It cannot come from a command. Beyond loopback, a token or `[auth]` is
    /// required.
    pub token: Option<RawSecret>,
    /// Host names that clients may use in addition to `localhost`, such as `wharf.example`.
    pub allowed_hosts: Vec<String>,
    /// The origins of web pages that may connect, such as `https://app.example`.
    pub allowed_origins: Vec<String>,
    /// The maximum number of connections at once. There are fewer if files or memory are limited.
    pub connections: Count<{ defaults::CONNECTIONS }, 1_000_000>,
    /// The addresses and networks of proxies whose `X-Forwarded-For` is believed, such as `10.0.64.0/28`. For limits and logs, the address of a
    /// client is then the last one in it that is not such a proxy. Each may have all connections; any other address gets three quarters.
    pub trusted_proxies: Vec<String>,
    /// The maximum number of sessions, of which one client gets at most three quarters.
    pub sessions: Count<1024, 1_000_000>,
    /// How long a session stays in memory without a request and without an open stream. Its next request makes it again.
    pub session_idle_ms: Millis<3_600_000>,
    /// The maximum number of open streams for changes, of which one client gets at most three quarters.
    pub listens: Count<1024, 1_000_000>,
    /// The maximum number of requests at once, of which one client gets at most three quarters. Further requests are answered with 503.
    ///
    /// Default: `256`, or 64 for each core, up to 4096
    pub in_flight: Option<Count<NONE, 100_000>>,
    /// After how long event streams of 2025-11-25 are closed, so that their clients reconnect for the rest; 0 = never.
    pub poll_after_ms: Millis<0, 0>,
    /// The file of the access log, with a line for each request, or `"stderr"`. Without this key, there is no access log.
    pub access_log: Option<String>,
    /// How long requests under way may take after shutdown begins, in seconds.
    pub drain_s: Seconds<30, 600>,
    /// How long `/readyz` announces the shutdown before it begins, in seconds.
    pub drain_delay_s: Seconds<0, 600>,
    /// HTTPS. New paths need a restart, new contents of the files do not: docs/operations.md#tls.
    pub tls: Option<Tls>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// The file of the certificate and its chain, in PEM.
    pub cert: String,
    /// The file of the private key, in PEM.
    pub key: String,
    /// The file of the authorities whose client certificates are accepted (mTLS), in PEM. Without this key, clients are not asked for
    /// certificates.
    pub client_ca: Option<String>,
    /// Whether clients need a certificate: `"required"` or `"optional"`.
    ///
    /// Default: `"required"`
    pub client_cert: Option<ClientCertificates>,
}

#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Admin {
    /// An address and a port.
    ///
    /// Default: `"127.0.0.1:9464"`
    pub listen: Option<String>,
    /// Host names that clients may use in addition to those of this machine, such as `wharf.internal`.
    pub allowed_hosts: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Protocol {
    /// Whether 2026-07-28 is served, which has no handshake. Without it, clients that know both fall back to the handshake.
    pub modern: bool,
    /// Whether the revisions with a handshake are served, 2024-11-05 to 2025-11-25.
    pub legacy: bool,
    /// Whether HTTP+SSE of 2024-11-05 is served, at `/sse`.
    pub sse: bool,
    /// The keys, of 64 hexadecimal digits each, that seal what clients carry: the ids of sessions and the state of requests. The first one
    /// seals, all of them open: docs/operations.md#keys. Several wharf processes behind one address have the same keys. Without this key,
    /// `wharf serve` makes one and keeps it in its state folder, and other processes use a random one.
    ///
    /// Default: `[]`
    pub state_keys: Vec<RawSecret>,
}

impl Default for Protocol {
    fn default() -> Self {
        Self { modern: true, legacy: true, sse: false, state_keys: Vec::new() }
    }
}

#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Cluster {
    /// The address of the Redis server, such as `rediss://redis.internal:6379/0`; `redis://` is without TLS.
    pub redis: Option<String>,
    /// The user of an access list of Redis (ACL).
    ///
    /// Default: the user `default` of Redis
    pub user: Option<String>,
    /// The name of the secret in `[secrets]` with the password.
    pub password_secret: Option<String>,
    /// A file with the certificates that the server's certificate may come from.
    ///
    /// Default: those that the system trusts
    pub ca_file: Option<String>,
    /// The beginning of all keys and channels. Each group of replicas on one Redis server has its own.
    ///
    /// Default: `"wharf:"`
    pub prefix: Option<String>,
    /// How much clients may make replicas store in Redis, in MiB, until it expires: sessions, tasks and approvals. Each client may hold as
    /// much of it as it leaves free. Redis needs twice as much (`maxmemory`).
    pub memory_mib: Mib<32>,
    /// The name of this replica in the audit log, in metrics, and in the ids of requests.
    ///
    /// Default: the name of this machine
    pub name: Option<String>,
}
