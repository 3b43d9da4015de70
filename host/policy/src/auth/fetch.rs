//! Fetches the metadata and keys of an issuer, over HTTPS or from a file, and sends introspection requests. Redirects are not followed.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode, Uri, header, request};
use serde_json::Value;

use super::settings::is_safe;
use wharf_base::guard::check_trusted_file;
use wharf_egress::outgoing::{Outgoing, OutgoingLimits};

const MAX_BYTES: usize = 1 << 20;
const LIMITS: OutgoingLimits = OutgoingLimits { timeout: Duration::from_secs(5), body_bytes: MAX_BYTES };

/// Fetches a URL.
pub async fn url(url: &str, outgoing: &Outgoing) -> Result<Vec<u8>> {
    send(url, Request::get(url), Bytes::new(), outgoing).await
}

/// Posts a form to a URL and returns the response.
pub async fn form(url: &str, authorization: &str, body: String, outgoing: &Outgoing) -> Result<Vec<u8>> {
    let mut authorization = HeaderValue::from_str(authorization)?;
    authorization.set_sensitive(true);
    let request = Request::post(url)
        .header(header::AUTHORIZATION, authorization)
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    send(url, request, body.into(), outgoing).await
}

async fn send(url: &str, request: request::Builder, body: Bytes, outgoing: &Outgoing) -> Result<Vec<u8>> {
    let sent = async {
        ensure!(is_safe(url), "it is not an https URL");
        let request = request.header(header::ACCEPT, "application/json").body(body)?;
        let response = outgoing.send(request, LIMITS).await?;
        ensure!(response.status() == StatusCode::OK, "the status is {}", response.status());
        response.into_body()
    };
    Ok(sent.await.with_context(|| url.to_owned())?.into())
}

/// Reads a file that only the operator can change.
pub async fn file(path: PathBuf) -> Result<Vec<u8>> {
    #[expect(
        clippy::disallowed_methods,
        reason = "a file that the operator names, read on a thread that is waited for"
    )]
    let read = tokio::task::spawn_blocking(move || {
        check_trusted_file(&path, "file of keys")?;
        let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
        ensure!(bytes.len() <= MAX_BYTES, "{}: has more than 1 MiB", path.display());
        Ok(bytes)
    });
    read.await.context("reading was interrupted")?
}

/// Returns the URL of an issuer's keys from its metadata, by OAuth (RFC 8414) or OpenID Connect.
pub async fn keys_of(issuer: &str, outgoing: &Outgoing) -> Result<String> {
    let metadata = metadata(issuer, outgoing).await?;
    let keys = metadata.get("jwks_uri").and_then(Value::as_str).context("its metadata names no `jwks_uri`")?;
    ensure!(is_safe(keys), "its metadata names keys that are not at an https URL");
    Ok(keys.to_owned())
}

/// Fetches the metadata of an issuer. The metadata has to name this issuer, or it could belong to another one.
pub async fn metadata(issuer: &str, outgoing: &Outgoing) -> Result<Value> {
    let mut problem = None;
    for place in metadata_urls(issuer)? {
        let read = async {
            let value: Value = serde_json::from_slice(&url(&place, outgoing).await?).context("it is not JSON")?;
            let named = value.get("issuer").and_then(Value::as_str);
            ensure!(named == Some(issuer), "{place}: `issuer` is {}", named.unwrap_or("missing"));
            Ok(value)
        };
        match read.await {
            Ok(value) => return Ok(value),
            Err(error) => problem = Some(error),
        }
    }
    Err(problem.unwrap_or_else(|| anyhow::anyhow!("there is no place to look for its metadata")))
}

/// Returns the URLs at which an issuer's metadata can be.
fn metadata_urls(issuer: &str) -> Result<[String; 3]> {
    let uri: Uri = issuer.parse().context("it is not a URL")?;
    let path = uri.path().trim_end_matches('/');
    let origin = issuer.strip_suffix('/').unwrap_or(issuer);
    let origin = origin.strip_suffix(path).unwrap_or(origin);
    Ok([
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
        format!("{origin}{path}/.well-known/openid-configuration"),
        format!("{origin}/.well-known/openid-configuration{path}"),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_looked_for_where_the_standards_put_it() {
        let at = |issuer: &str| metadata_urls(issuer).unwrap();
        assert_eq!(
            at("https://id.example.com/realms/main"),
            [
                "https://id.example.com/.well-known/oauth-authorization-server/realms/main",
                "https://id.example.com/realms/main/.well-known/openid-configuration",
                "https://id.example.com/.well-known/openid-configuration/realms/main",
            ]
        );
        for root in ["https://id.example.com", "https://id.example.com/"] {
            assert_eq!(at(root)[0], "https://id.example.com/.well-known/oauth-authorization-server");
            assert_eq!(at(root)[1], "https://id.example.com/.well-known/openid-configuration");
        }
    }
}
