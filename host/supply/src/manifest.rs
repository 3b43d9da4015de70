//! What a registry stores about an artifact: its manifest, and lists of manifests.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use wharf_base::{digest::Digest, text::escaped};
use wharf_scope::MAX_COMPONENT_BYTES;

pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// The media types that the CNCF's convention for WebAssembly artifacts has.
pub const WASM: &str = "application/wasm";
pub const WASM_CONFIG: &str = "application/vnd.wasm.config.v0+json";
/// The media type that was used before that convention.
const OLD_WASM: &str = "application/vnd.wasm.content.layer.v1+wasm";
pub const CREATED: &str = "org.opencontainers.image.created";
/// The version and the name of what is published, which the signer of the manifest vouches for.
pub const VERSION: &str = "org.opencontainers.image.version";
pub const TITLE: &str = "org.opencontainers.image.title";

/// The largest manifest, as registries have it.
pub const MAX_MANIFEST_BYTES: usize = 4 << 20;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    pub media_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    pub digest: String,
    pub size: u64,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    pub schema_version: u32,
    #[serde(default)]
    pub media_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    pub config: Descriptor,
    #[serde(default)]
    pub layers: Vec<Descriptor>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Descriptor>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Index {
    pub schema_version: u32,
    #[serde(default)]
    pub media_type: Option<String>,
    pub manifests: Vec<Descriptor>,
}

impl Descriptor {
    pub fn of(media_type: &str, bytes: &[u8]) -> Self {
        Self {
            media_type: media_type.to_owned(),
            artifact_type: None,
            digest: format!("sha256:{}", digest(bytes)),
            size: bytes.len() as u64,
            annotations: BTreeMap::new(),
        }
    }

    /// Returns the digest. Others than SHA-256 are refused.
    pub fn sha256(&self) -> Result<Digest> {
        sha256(&self.digest)
    }
}

impl Manifest {
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Kind {
            media_type: Option<String>,
            manifests: Option<serde::de::IgnoredAny>,
        }
        let kind: Kind = serde_json::from_slice(bytes).context("the manifest is not JSON")?;
        if kind.manifests.is_some() || kind.media_type.as_deref() == Some(INDEX) {
            bail!("this name stands for several artifacts (an index); name one of them with @sha256:…");
        }
        let manifest: Self = serde_json::from_slice(bytes).context("the manifest is malformed")?;
        ensure!(manifest.schema_version == 2, "the manifest has version {}, not 2", manifest.schema_version);
        Ok(manifest)
    }

    /// Returns the layer with the component.
    pub fn component(&self) -> Result<&Descriptor> {
        let is_wasm = |layer: &&Descriptor| layer.media_type == WASM || layer.media_type == OLD_WASM;
        let mut components = self.layers.iter().filter(is_wasm);
        let (Some(component), None) = (components.next(), components.next()) else {
            let types: Vec<String> = self.layers.iter().map(|layer| escaped(&layer.media_type)).collect();
            bail!("the artifact is not a component: it has the layers [{}], and not one of {WASM}", types.join(", "));
        };
        ensure!(
            component.size <= MAX_COMPONENT_BYTES as u64,
            "the component has {} bytes; a plugin has at most {MAX_COMPONENT_BYTES}",
            component.size
        );
        Ok(component)
    }
}

pub fn digest(bytes: &[u8]) -> Digest {
    <[u8; 32]>::from(Sha256::digest(bytes)).into()
}

pub fn sha256(text: &str) -> Result<Digest> {
    let digits = text.strip_prefix("sha256:");
    let digits = digits.with_context(|| format!("the digest {} is not a SHA-256", escaped(text)))?;
    Ok(digits.parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_component_is_understood() {
        let layer = |media_type: &str, size: u64| {
            format!(r#"{{"mediaType":"{media_type}","digest":"sha256:{}","size":{size}}}"#, "00".repeat(32))
        };
        let manifest = |layers: &[String]| {
            let config = layer(WASM_CONFIG, 2);
            format!(r#"{{"schemaVersion":2,"config":{config},"layers":[{}]}}"#, layers.join(","))
        };
        let read = |text: &str| Manifest::parse(text.as_bytes()).and_then(|manifest| Ok(manifest.component()?.size));
        assert_eq!(read(&manifest(&[layer(WASM, 5)])).unwrap(), 5);
        assert_eq!(read(&manifest(&[layer("text/plain", 1), layer(OLD_WASM, 6)])).unwrap(), 6);
        for (text, said) in [
            (manifest(&[]), "it has the layers []"),
            (manifest(&[layer(WASM, 1), layer(WASM, 1)]), "not one of application/wasm"),
            (manifest(&[layer("application/vnd.oci.image.layer.v1.tar+gzip", 1)]), "tar+gzip"),
            (manifest(&[layer(WASM, MAX_COMPONENT_BYTES as u64 + 1)]), "at most 134217728"),
            (r#"{"schemaVersion":2,"manifests":[]}"#.to_owned(), "several artifacts"),
            (r#"{"schemaVersion":1}"#.to_owned(), "malformed"),
            ("<html>".to_owned(), "not JSON"),
        ] {
            let error = format!("{:#}", read(&text).unwrap_err());
            assert!(error.contains(said), "{text}: {error}");
        }
        assert!(sha256("sha512:00").is_err() && sha256("sha256:0").is_err());
    }
}
