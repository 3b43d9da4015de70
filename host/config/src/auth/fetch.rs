//! Fetches the metadata and keys of an issuer, over HTTPS or from a file, and sends introspection requests. Redirects are not followed;
//! responses that are too long or too slow are errors.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

use super::settings::is_safe;
use wharf_base::guard::check_trusted_file;
use wharf_egress::tls::Tls;

const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_BYTES: usize = 1 << 20;

/// Fetches a URL.
pub async fn url(url: &str, tls: &Arc<Tls>) -> Result<Vec<u8>> {
    let request = Request::get("/").body(Full::default())?;
    within(url, request, tls).await
}

/// Posts a form to a URL and returns the response.
pub async fn form(url: &str, authorization: &str, body: String, tls: &Arc<Tls>) -> Result<Vec<u8>> {
    let mut authorization = HeaderValue::from_str(authorization)?;
    authorization.set_sensitive(true);
    let request = Request::post("/")
        .header(header::AUTHORIZATION, authorization)
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(Full::from(body))?;
    within(url, request, tls).await
}

async fn within(url: &str, request: Request<Full<Bytes>>, tls: &Arc<Tls>) -> Result<Vec<u8>> {
    let got = tokio::time::timeout(FETCH_TIMEOUT, send(url, request, tls)).await;
    got.unwrap_or_else(|_| bail!("there is no response within {} s", FETCH_TIMEOUT.as_secs()))
        .with_context(|| url.to_owned())
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
pub async fn keys_of(issuer: &str, tls: &Arc<Tls>) -> Result<String> {
    let metadata = metadata(issuer, tls).await?;
    let keys = metadata.get("jwks_uri").and_then(Value::as_str).context("its metadata names no `jwks_uri`")?;
    ensure!(is_safe(keys), "its metadata names keys that are not at an https URL");
    Ok(keys.to_owned())
}

/// Fetches the metadata of an issuer. The metadata has to name this issuer, or it could belong to another one.
pub async fn metadata(issuer: &str, tls: &Arc<Tls>) -> Result<Value> {
    let mut problem = None;
    for place in metadata_urls(issuer)? {
        let read = async {
            let value: Value = serde_json::from_slice(&url(&place, tls).await?).context("it is not JSON")?;
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

async fn send(url: &str, request: Request<Full<Bytes>>, tls: &Arc<Tls>) -> Result<Vec<u8>> {
    ensure!(is_safe(url), "it is not an https URL");
    let uri: Uri = url.parse()?;
    let host = uri.host().context("it has no host")?;
    let encrypted = uri.scheme_str() == Some("https");
    let port = uri.port_u16().unwrap_or(if encrypted { 443 } else { 80 });
    let stream = TcpStream::connect((host.trim_matches(['[', ']']), port)).await?;
    if encrypted {
        let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned())?;
        let stream = TlsConnector::from(tls.config().await?).connect(name, stream).await?;
        exchange(stream, request, &uri, host).await
    } else {
        exchange(stream, request, &uri, host).await
    }
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin,
    mut request: Request<Full<Bytes>>,
    uri: &Uri,
    host: &str,
) -> Result<Vec<u8>> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    *request.uri_mut() = uri.path_and_query().map_or("/", |path| path.as_str()).parse()?;
    let host = uri.port_u16().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    let headers = request.headers_mut();
    headers.insert(header::HOST, host.parse()?);
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert(header::USER_AGENT, HeaderValue::from_static(concat!("wharf/", env!("CARGO_PKG_VERSION"))));
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    let answer = async {
        let response = sender.send_request(request).await?;
        ensure!(response.status() == StatusCode::OK, "the status is {}", response.status());
        let body = Limited::new(response.into_body(), MAX_BYTES).collect().await;
        Ok(body.map_err(|error| anyhow::anyhow!("the response broke off or has more than 1 MiB: {error}"))?.to_bytes())
    };
    // The connection closes after the response, or when this function returns.
    let (answer, _) = tokio::join!(answer, connection);
    Ok(answer?.into())
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
