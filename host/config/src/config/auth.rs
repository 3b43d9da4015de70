//! `[auth]`: which issuers' access tokens are accepted. It needs `public_url` of `[http]`, the audience that tokens are issued for.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
};

use anyhow::{Context, Result, bail, ensure};
use http::Uri;
use jsonwebtoken::Algorithm;

use super::raw;
use wharf_base::reading::doubt_of_path;
use wharf_egress::secrets::SecretSources;
use wharf_policy::auth::settings::{AuthSettings, Introspection, Issuer, KeySource, is_safe, is_scope};

/// The signature algorithms that are accepted from an issuer by default: those that every provider offers, all asymmetric.
const DEFAULT_ALGORITHMS: [Algorithm; 3] = [Algorithm::RS256, Algorithm::ES256, Algorithm::EdDSA];
const MAX_ISSUERS: usize = 16;

pub fn resolve(
    raw: raw::Auth,
    public_url: Option<&str>,
    secrets: &SecretSources,
    absolute: &dyn Fn(&str) -> Result<PathBuf>,
) -> Result<Arc<AuthSettings>> {
    let raw::Auth { scopes, includes, keys_file, issuers } = raw;
    ensure!(
        !issuers.is_empty() || keys_file.is_some(),
        "there are no `[[auth.issuers]]` and there is no `keys_file`, so nobody could connect"
    );
    let resource = match public_url {
        Some(url) => url.to_owned(),
        None if issuers.is_empty() => String::new(),
        None => {
            bail!("`public_url` in [http] is missing: set it to the URL of this server, the audience of its tokens")
        }
    };
    ensure!(issuers.len() <= MAX_ISSUERS, "there are more than {MAX_ISSUERS} issuers");
    for scope in &scopes {
        check_scope(scope).context("`scopes`")?;
    }
    for scope in includes.iter().flat_map(|(scope, included)| included.iter().chain([scope])) {
        check_scope(scope).context("`includes`")?;
    }
    let issuers: Vec<Issuer> =
        issuers.into_iter().map(|raw| issuer(raw, &resource, secrets, absolute)).collect::<Result<_>>()?;
    for (at, one) in issuers.iter().enumerate() {
        ensure!(
            issuers.iter().skip(at + 1).all(|other| other.url != one.url),
            "the issuer {} is listed twice",
            one.url
        );
    }
    ensure!(
        issuers.iter().filter(|issuer| issuer.introspection.is_some()).count() <= 1,
        "more than one issuer has `introspection`: an opaque token does not say which issuer to ask; keep one of them"
    );
    let keys_file = keys_file.as_deref().map(absolute).transpose().context("`keys_file`")?;
    Ok(Arc::new(AuthSettings { resource, scopes, includes: with_all_included(&includes), keys_file, issuers }))
}

/// Checks that a server may require this scope.
pub fn check_scope(scope: &str) -> Result<()> {
    ensure!(is_scope(scope), "`{}` is not a scope", scope.escape_debug());
    ensure!(scope != "offline_access", "offline_access is requested by clients; a server cannot require it");
    Ok(())
}

/// Maps each scope to all scopes that it includes, directly or through other scopes (the transitive closure).
fn with_all_included(direct: &BTreeMap<String, Vec<String>>) -> BTreeMap<String, Vec<String>> {
    let all = |scope: &String| {
        let (mut found, mut next) = (BTreeSet::new(), vec![scope]);
        while let Some(scope) = next.pop() {
            for included in direct.get(scope).into_iter().flatten() {
                if found.insert(included.clone()) {
                    next.push(included);
                }
            }
        }
        found.into_iter().collect()
    };
    direct.keys().map(|scope| (scope.clone(), all(scope))).collect()
}

fn issuer(
    raw: raw::Issuer,
    resource: &str,
    secrets: &SecretSources,
    absolute: &dyn Fn(&str) -> Result<PathBuf>,
) -> Result<Issuer> {
    let raw::Issuer { url, algorithms, audience, typ, jwks_url, jwks_file, introspection } = raw;
    let safe = |key: &str, url: &str| {
        ensure!(is_safe(url), "`{key}`: `{url}` is not an https URL; plain http is for this machine only");
        Ok(())
    };
    safe("url", &url)?;
    ensure!(!url.contains(['?', '#', '"', '\\', ' ']), "`url`: `{url}` has a query or a fragment");
    let algorithms = match algorithms {
        None => DEFAULT_ALGORITHMS.to_vec(),
        Some(names) => {
            ensure!(!names.is_empty(), "`algorithms` is empty, so no token would be accepted");
            names.iter().map(|name| algorithm(name)).collect::<Result<_>>()?
        }
    };
    let keys = match (jwks_url, jwks_file) {
        (None, None) => KeySource::Discovered,
        (Some(keys), None) => {
            safe("jwks_url", &keys)?;
            KeySource::Url(keys)
        }
        (None, Some(path)) => KeySource::File(absolute(&path)?),
        (Some(_), Some(_)) => bail!("`jwks_url` and `jwks_file` exclude each other"),
    };
    let only_at_jwt = typ == raw::TokenType::AtJwt;
    let introspection = match introspection {
        None => None,
        Some(raw::Introspection { client_id, secret, url }) => {
            url.iter().try_for_each(|url| safe("introspection.url", url))?;
            let secret = secrets.get(&secret).with_context(|| {
                format!("`introspection.secret`: there is no secret `{}` in [secrets]", secret.escape_debug())
            })?;
            Some(Introspection { client_id, secret: secret.clone(), url })
        }
    };
    let resource = [resource.to_owned(), format!("{resource}/")];
    Ok(Issuer { url, algorithms, audience, only_at_jwt, keys, introspection, resource })
}

fn algorithm(name: &str) -> Result<Algorithm> {
    let known = "RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, EdDSA";
    let parsed: Option<Algorithm> = name.parse().ok();
    match parsed {
        Some(Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512) => {
            bail!(
                "`algorithms`: {name} uses a shared secret, with which everyone who checks tokens could also sign them; use one of {known}"
            )
        }
        Some(algorithm) => Ok(algorithm),
        None => bail!("`algorithms`: `{name}` is not one of {known}"),
    }
}

/// Reads `public_url`: the URL of this server in its canonical form.
pub fn public_url(url: &str) -> Result<String> {
    let wrong = |why: &str| format!("`public_url`: `{url}` {why}");
    let uri: Uri = url.parse().with_context(|| wrong("is not a URL such as https://mcp.example.com/mcp"))?;
    ensure!(is_safe(url), wrong("is not an https URL; plain http is for this machine only"));
    ensure!(uri.query().is_none() && !url.contains(['#', '@', '"', '\\']), wrong("has more than a host and a path"));
    let authority = uri.authority().with_context(|| wrong("has no host"))?.as_str().to_ascii_lowercase();
    let scheme = uri.scheme_str().unwrap_or("https");
    if let Some(doubt) = doubt_of_path(uri.path()) {
        bail!(wrong(&format!("has an ambiguous path: it {doubt}")));
    }
    // Canonicalization: clients leave out the default port of a scheme, and the audience of tokens is the URL as clients write it.
    let own = if scheme == "https" { ":443" } else { ":80" };
    let authority = authority.strip_suffix(own).unwrap_or(&authority);
    Ok(format!("{scheme}://{authority}{}", uri.path().trim_end_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_has_one_canonical_form() {
        for (url, expected) in [
            ("https://MCP.Example.com/mcp", Some("https://mcp.example.com/mcp")),
            ("https://mcp.example.com:8443/Mcp/", Some("https://mcp.example.com:8443/Mcp")),
            ("https://mcp.example.com/", Some("https://mcp.example.com")),
            ("https://mcp.example.com:443/mcp", Some("https://mcp.example.com/mcp")),
            ("http://localhost:80/mcp", Some("http://localhost/mcp")),
            ("http://localhost:443/mcp", Some("http://localhost:443/mcp")),
            ("https://mcp.example.com/a/../mcp", None),
            ("https://mcp.example.com/a%2fmcp", None),
            ("http://127.0.0.1:7300/mcp", Some("http://127.0.0.1:7300/mcp")),
            ("http://mcp.example.com/mcp", None),
            ("https://mcp.example.com/mcp?a=1", None),
            ("https://mcp.example.com/mcp#a", None),
            ("https://user@mcp.example.com/mcp", None),
            ("mcp.example.com/mcp", None),
            ("", None),
        ] {
            assert_eq!(public_url(url).ok().as_deref(), expected, "{url}");
        }
    }
}
