//! `[cluster]`: the Redis server through which several wharf processes behind one address share what all of them must know. Without the
//! table, each process stands for itself.

use std::{fmt, path::PathBuf};

use anyhow::{Context, Result, bail, ensure};

use super::{protocol::Protocol, raw};
use wharf_base::text;
use wharf_egress::secrets::{SecretSource, SecretSources};
use wharf_policy::access::capability::Absolute;

/// The longest name of a replica, and the longest prefix of keys, in bytes.
const MAX_NAME_BYTES: usize = 64;
const REDIS_PORT: u16 = 6379;
const DEFAULT_PREFIX: &str = "wharf:";

/// The keys are described in `raw`; here is only what is not said there.
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    /// The name of this replica in records.
    pub name: String,
    pub redis: RedisAddress,
    pub user: Option<String>,
    pub password: Option<SecretSource>,
    pub ca_file: Option<PathBuf>,
    pub prefix: String,
    pub memory_bytes: usize,
}

/// Where the Redis server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisAddress {
    pub host: String,
    pub port: u16,
    pub database: i64,
    pub tls: bool,
}

impl fmt::Display for RedisAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, database, tls } = self;
        let (scheme, host) = (if *tls { "rediss" } else { "redis" }, text::escaped(host));
        match host.contains(':') {
            true => write!(f, "{scheme}://[{host}]:{port}/{database}"),
            false => write!(f, "{scheme}://{host}:{port}/{database}"),
        }
    }
}

pub fn resolve(
    raw: raw::Cluster,
    protocol: &Protocol,
    secrets: &SecretSources,
    absolute: Absolute<'_>,
) -> Result<Cluster> {
    let written = raw
        .redis
        .as_deref()
        .context("`redis` is missing: the address of the Redis server, such as redis://127.0.0.1:6379")?;
    let redis = address(written).context("`redis`")?;
    ensure!(
        !protocol.state_keys.is_empty(),
        "replicas seal what they share with the same key: set `state_keys` in [protocol], to the same keys on each of them"
    );
    ensure!(
        !protocol.sse,
        "`sse = true` in [protocol] keeps a session in one process, so it cannot be used with [cluster]; remove one of them"
    );
    let password = match raw.password_secret {
        None => None,
        Some(name) => match secrets.get(&name) {
            None => bail!("`password_secret`: there is no secret `{name}` in [secrets]"),
            Some(SecretSource::Command(_)) => {
                bail!(
                    "`password_secret`: the secret `{name}` comes from a command; use {{ file = … }}, {{ env = … }} or {{ credential = … }}"
                )
            }
            Some(source) => Some(source.clone()),
        },
    };
    ensure!(raw.user.is_none() || password.is_some(), "`user` needs `password_secret`");
    ensure!(raw.ca_file.is_none() || redis.tls, "`ca_file` has no effect without TLS: begin `redis` with rediss://");
    let prefix = raw.prefix.unwrap_or_else(|| DEFAULT_PREFIX.into());
    ensure!(
        !prefix.is_empty() && prefix.len() <= MAX_NAME_BYTES && prefix.bytes().all(|byte| byte.is_ascii_graphic()),
        "`prefix` has 1 to {MAX_NAME_BYTES} visible ASCII characters"
    );
    let name = match raw.name {
        Some(name) => name,
        None => rustix::system::uname().nodename().to_string_lossy().into_owned(),
    };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    ensure!(
        !name.is_empty() && name.len() <= MAX_NAME_BYTES && name.bytes().all(plain),
        "`name` has 1 to {MAX_NAME_BYTES} letters, digits, dots, dashes and underscores, and `{name}` does not"
    );
    Ok(Cluster {
        name,
        redis,
        user: raw.user,
        password,
        ca_file: raw.ca_file.as_deref().map(absolute).transpose().context("`ca_file`")?,
        prefix,
        memory_bytes: raw.memory_mib.get(),
    })
}

/// Parses an address such as `rediss://redis.internal:6380/0`.
fn address(written: &str) -> Result<RedisAddress> {
    let (tls, rest) = match (written.strip_prefix("redis://"), written.strip_prefix("rediss://")) {
        (Some(rest), _) => (false, rest),
        (_, Some(rest)) => (true, rest),
        _ => bail!("it begins with redis://, or with rediss:// for TLS"),
    };
    ensure!(
        !rest.contains('@'),
        "it has no user and password: write `user`, and `password_secret` with the name of a secret in [secrets]"
    );
    let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
    let database = if database.is_empty() { Ok(0) } else { database.parse::<u16>() };
    let database = database.context("what follows the slash is the number of a database")?;
    let authority = authority.parse::<http::uri::Authority>().context("it is not like redis://HOST:PORT/DATABASE")?;
    ensure!(!authority.host().is_empty(), "the host is missing");
    let has_port = authority.as_str().len() > authority.host().len();
    ensure!(!has_port || authority.port_u16().is_some(), "what follows the colon is a port from 0 to 65535");
    Ok(RedisAddress {
        host: authority.host().trim_start_matches('[').trim_end_matches(']').to_owned(),
        port: authority.port_u16().unwrap_or(REDIS_PORT),
        database: database.into(),
        tls,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{CommandLine, Config, from_text};

    fn config(text: &str) -> Result<Config> {
        from_text(text, None, &CommandLine::default())
    }

    #[test]
    fn addresses_name_a_host_a_port_and_a_database() {
        let of = |host: &str, port, database, tls| RedisAddress { host: host.into(), port, database, tls };
        for (written, expected) in [
            ("redis://127.0.0.1", of("127.0.0.1", 6379, 0, false)),
            ("rediss://redis.internal:6380/3", of("redis.internal", 6380, 3, true)),
            ("redis://[::1]:7/", of("::1", 7, 0, false)),
        ] {
            assert_eq!(address(written).unwrap(), expected, "{written}");
            assert_eq!(address(&expected.to_string()).unwrap(), expected, "{written}");
        }
        for wrong in
            ["127.0.0.1:6379", "http://a", "redis://", "redis://a:b", "redis://u:p@a", "redis://a/x", "redis://a/-1"]
        {
            assert!(address(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_cluster_needs_keys_and_says_what_is_wrong() {
        let keys = "[protocol]\nstate_keys = [{ env = 'A' }]\n";
        let secrets = "[secrets]\np = { env = 'P' }\nc = { command = ['x'] }\n";
        for (text, expected) in [
            ("[cluster]\nredis = 'redis://a'".to_owned(), "set `state_keys` in [protocol]"),
            (format!("{keys}sse = true\n[cluster]\nredis = 'redis://a'"), "cannot be used with [cluster]"),
            (format!("{keys}[cluster]"), "`redis` is missing"),
            (format!("{keys}[cluster]\nredis = 'a'"), "it begins with redis://"),
            (format!("{keys}[cluster]\nredis = 'redis://a'\nca_file = 'x'"), "has no effect without TLS"),
            (format!("{keys}[cluster]\nredis = 'redis://a'\nuser = 'x'"), "`user` needs `password_secret`"),
            (format!("{keys}[cluster]\nredis = 'redis://a'\npassword_secret = 'x'"), "no secret `x`"),
            (format!("{keys}{secrets}[cluster]\nredis = 'redis://a'\npassword_secret = 'c'"), "comes from a command"),
            (format!("{keys}[cluster]\nredis = 'redis://a'\nprefix = ''"), "`prefix` has 1 to"),
            (format!("{keys}[cluster]\nredis = 'redis://a'\nname = 'a b'"), "`name` has 1 to"),
        ] {
            let error = format!("{:#}", config(&text).unwrap_err());
            assert!(error.contains(expected) && error.contains("[cluster]"), "{text}: {error}");
        }
        let whole = format!(
            "{keys}{secrets}[cluster]\nredis = 'rediss://a'\nuser = 'u'\npassword_secret = 'p'\nca_file = '/ca.pem'\nprefix = 'x'\nname = 'n'"
        );
        let cluster = config(&whole).unwrap().startup.cluster.clone().unwrap();
        assert_eq!((cluster.name.as_str(), cluster.prefix.as_str()), ("n", "x"));
        assert_eq!(cluster.password, Some(SecretSource::Env("P".into())));
        assert!(
            !config(&format!("{keys}[cluster]\nredis = 'redis://a'"))
                .unwrap()
                .startup
                .cluster
                .clone()
                .unwrap()
                .name
                .is_empty()
        );
        assert_eq!(config(keys).unwrap().startup.cluster, None);
    }
}
