//! `[egress]`: whose certificates are trusted, and whether there is a proxy. `[secrets]` belongs to it.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderValue, Uri};
use percent_encoding::percent_decode_str;

use super::raw;
use wharf_egress::{EgressSettings, route::Proxy, secrets, tls::Trust};

pub fn resolve(
    raw: raw::Egress,
    secrets: raw::InFileOrder<secrets::RawSecret>,
    absolute: &dyn Fn(&str) -> Result<PathBuf>,
) -> Result<EgressSettings> {
    let raw::Egress { roots, ca, proxy } = raw;
    let system = roots == raw::Certificates::System;
    let files = ca.iter().map(|path| absolute(path)).collect::<Result<_>>().context("[egress]: ca")?;
    let proxy = match proxy {
        None => None,
        Some(raw::Proxy::Url(url)) => Some(url),
        // A variable that is not set means no proxy, as everywhere.
        Some(raw::Proxy::Named(raw::FromEnv { env })) => std::env::var(env).ok().filter(|url| !url.is_empty()),
    };
    Ok(EgressSettings {
        trust: Trust { system, files },
        proxy: proxy.as_deref().map(self::proxy).transpose().context("[egress]: proxy")?,
        secrets: secrets::resolve(secrets.0, absolute).context("[secrets]")?,
    })
}

/// Reads `http://user:password@host:port`. Errors do not repeat it, since it may have a password in it.
fn proxy(url: &str) -> Result<Proxy> {
    let rest =
        url.strip_prefix("http://").context("a proxy's URL begins with http://; the connection to it is plain")?;
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let (user, authority) = rest.rsplit_once('@').map_or((None, rest), |(user, host)| (Some(user), host));
    ensure!(!authority.is_empty() && !authority.contains('/'), "a proxy's URL ends with its host and port");
    let uri = Uri::builder().scheme("http").authority(authority).path_and_query("/").build();
    let authorization = user.map(|user| {
        let decoded = percent_decode_str(user).collect::<Vec<u8>>();
        let value = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(decoded)));
        value.map(|mut value| {
            value.set_sensitive(true);
            value
        })
    });
    Ok(Proxy {
        uri: uri.map_err(|_| anyhow::anyhow!("its host or port is malformed"))?,
        authorization: authorization.transpose()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_named_by_its_url() {
        let with_user = proxy("http://ada:a%20b@proxy.example:3128").unwrap();
        assert_eq!(with_user.uri, "http://proxy.example:3128/");
        assert_eq!(with_user.authorization.unwrap(), "Basic YWRhOmEgYg==");
        assert_eq!(proxy("http://proxy.example:3128/").unwrap().authorization, None);
        for wrong in ["https://proxy.example", "proxy.example:3128", "http://", "http://a/b", "http://hunter2@a b"] {
            let error = format!("{:#}", proxy(wrong).unwrap_err());
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
