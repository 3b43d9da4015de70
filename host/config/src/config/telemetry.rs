//! `[telemetry]`: where traces and metrics are sent. Without the table nothing is sent, and nothing is traced.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http::{HeaderMap, HeaderName, HeaderValue, Uri, header};

use super::{
    defaults,
    raw::{self, Value},
};
use wharf_egress::{
    secrets::{self, SecretSources},
    target,
};

/// The longest key or value of an attribute.
const MAX_TEXT_BYTES: usize = 256;
const MAX_ATTRIBUTES: usize = 32;
const MAX_HEADERS: usize = 16;

/// The keys are described in `raw`; here is only what is not said there.
#[derive(Debug, Clone, PartialEq)]
pub struct Telemetry {
    /// Without a slash at its end.
    pub otlp: String,
    pub sample: f64,
    pub trust_parent: bool,
    pub propagate: bool,
    /// None: never.
    pub metrics_every: Option<Duration>,
    pub service: String,
    pub attributes: Vec<(String, String)>,
    /// Their values are not shown.
    pub headers: HeaderMap,
    /// The name of this replica, `service.instance.id`. `None`: a random one.
    pub replica: Option<String>,
}

pub fn resolve(
    raw: raw::Telemetry,
    service: &str,
    replica: Option<String>,
    sources: &SecretSources,
) -> Result<Telemetry> {
    let sample = raw.sample.unwrap_or(defaults::TELEMETRY_SAMPLE);
    ensure!((0.0..=1.0).contains(&sample), "`sample` is a share of all calls, from 0 to 1");
    ensure!(raw.attributes.0.len() <= MAX_ATTRIBUTES, "`attributes` has at most {MAX_ATTRIBUTES} entries");
    for (key, value) in &raw.attributes.0 {
        let fits = !key.is_empty() && key.len() <= MAX_TEXT_BYTES && value.len() <= MAX_TEXT_BYTES;
        ensure!(fits, "`attributes`: keys and values have at most {MAX_TEXT_BYTES} bytes");
    }
    Ok(Telemetry {
        otlp: collector(&raw.otlp).context("`otlp`")?,
        sample,
        trust_parent: raw.trust_parent,
        propagate: raw.propagate,
        metrics_every: raw.metrics_ms.unless_zero(),
        service: service.to_owned(),
        attributes: raw.attributes.0,
        headers: headers(raw.headers.0, sources).context("`headers`")?,
        replica,
    })
}

/// Reads the URL of a collector. Errors do not repeat it, since it may have a password in it.
fn collector(url: &str) -> Result<String> {
    let uri: Uri = url.parse().context("it is not a URL")?;
    ensure!(
        matches!(uri.scheme_str(), Some("http" | "https")),
        "it begins with http:// or https://, such as http://127.0.0.1:4318"
    );
    ensure!(!url.contains('@'), "it has a password in it; put that into `headers`");
    ensure!(uri.query().is_none(), "it has a query (`?…`), which collectors do not use; remove it");
    let url = target::normal(url).map_err(anyhow::Error::msg)?.to_string();
    let url = url.trim_end_matches('/');
    ensure!(
        !url.ends_with("/v1/traces") && !url.ends_with("/v1/metrics"),
        "wharf adds /v1/traces and /v1/metrics itself; remove them from its end"
    );
    Ok(url.to_owned())
}

fn headers(written: Vec<(String, Value)>, sources: &SecretSources) -> Result<HeaderMap> {
    ensure!(written.len() <= MAX_HEADERS, "there are at most {MAX_HEADERS}");
    let mut headers = HeaderMap::new();
    for (name, value) in written {
        let own =
            [header::HOST, header::CONTENT_TYPE, header::CONTENT_LENGTH, header::CONNECTION, header::TRANSFER_ENCODING];
        let key: HeaderName = name.parse().with_context(|| format!("`{name}` is not the name of a header"))?;
        ensure!(!own.contains(&key), "`{name}` is set by wharf");
        let text = match value {
            Value::Text(text) => text,
            Value::Named(raw::FromEnv { env }) => {
                let text = std::env::var(&env).unwrap_or_default();
                ensure!(!text.is_empty(), "`{name}`: the environment variable {env} is not set");
                text
            }
            Value::Secret(raw::FromSecret { secret }) => {
                secrets::now(sources, &secret).with_context(|| format!("`{name}`"))?.expose().to_owned()
            }
        };
        let mut value = HeaderValue::from_str(&text)
            .with_context(|| format!("`{name}`: its value has characters that no header may have"))?;
        value.set_sensitive(true);
        headers.insert(key, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collectors_are_where_their_urls_say() {
        for (url, expected) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318"),
            ("http://127.0.0.1:4318/", "http://127.0.0.1:4318"),
            ("https://otel.example/base/", "https://otel.example/base"),
            ("https://OTEL.example:443", "https://otel.example"),
            ("http://[::1]", "http://[::1]"),
        ] {
            assert_eq!(collector(url).unwrap(), expected, "{url}");
        }
        for wrong in [
            "127.0.0.1:4318",
            "grpc://a:4317",
            "http://",
            "http://user:hunter2@a",
            "http://a/?x",
            "http://a/v1/traces",
            "http://a/v1/metrics/",
            "http://127.1:4318",
        ] {
            let error = format!("{:#}", collector(wrong).unwrap_err());
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn headers_do_not_show_their_values() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("otlp");
        std::fs::write(&path, "Bearer correct horse\n").unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let sources = [("otlp".to_owned(), secrets::SecretSource::File(path))].into();
        let written = [
            ("Authorization".into(), Value::Text("Bearer hunter2".into())),
            ("x-key".into(), Value::Secret(raw::FromSecret { secret: "otlp".into() })),
        ];
        let headers = headers(written.into(), &sources).unwrap();
        assert_eq!(headers.get("authorization").unwrap(), "Bearer hunter2");
        assert_eq!(headers.get("x-key").unwrap(), "Bearer correct horse");
        assert!(!format!("{headers:?}").contains("hunter2") && !format!("{headers:?}").contains("horse"));
    }
}
