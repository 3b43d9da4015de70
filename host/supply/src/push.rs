//! Publishes a component in a registry, in the layout that other WebAssembly tools read: one layer with the component, and a small
//! config. Signatures are artifacts that refer to the manifest.

use std::{collections::BTreeMap, time::SystemTime};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use http::{Method, StatusCode, Uri, header::LOCATION};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;
use wharf_base::{digest::Digest, text::escaped};
use wharf_config::config::reference::{OciReference, OciVersion};

use super::{
    manifest::{CREATED, Descriptor, INDEX, Index, MANIFEST, MAX_MANIFEST_BYTES, Manifest, WASM, WASM_CONFIG, digest},
    registry::{Repository, fallback_tag},
    release::{Progress, Supply},
    web::{self, Asked, LONG},
};

/// The media type of the config of an artifact that has none.
const EMPTY: &str = "application/vnd.oci.empty.v1+json";
const BUNDLE_V03: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
/// The header in which a registry says that it lists what refers to a manifest.
const OCI_SUBJECT: &str = "oci-subject";

/// What is published.
pub struct Publication {
    pub component: Bytes,
    /// What the manifest says about the component, such as `org.opencontainers.image.source`.
    pub annotations: BTreeMap<String, String>,
    /// When it was made. The same time gives the same manifest.
    pub created: SystemTime,
}

/// What was published.
pub struct Pushed {
    pub component: Digest,
    pub manifest: Digest,
    /// The bytes of the manifest, which a signature is about.
    pub bytes: Bytes,
}

impl Publication {
    /// Returns the config, and the manifest.
    fn artifact(&self) -> Result<(Bytes, Bytes)> {
        let created = humantime::format_rfc3339_seconds(self.created).to_string();
        let layer = Descriptor::of(WASM, &self.component);
        let config = json!({
            "created": created,
            "architecture": "wasm",
            "os": "wasip2",
            "layerDigests": [layer.digest],
        });
        let config = Bytes::from(serde_json::to_vec(&config)?);
        let mut annotations = self.annotations.clone();
        annotations.insert(CREATED.to_owned(), created);
        let manifest = Manifest {
            schema_version: 2,
            media_type: Some(MANIFEST.into()),
            artifact_type: None,
            config: Descriptor::of(WASM_CONFIG, &config),
            layers: vec![layer],
            subject: None,
            annotations,
        };
        Ok((config, serde_json::to_vec(&manifest)?.into()))
    }
}

/// Publishes a component under a tag. Fails if the tag stands for another component, unless it is not the tag of a version.
pub async fn publish(
    supply: &Supply<'_>,
    to: &OciReference,
    publication: &Publication,
    progress: Progress<'_>,
) -> Result<Pushed> {
    let OciVersion::Tag(tag) = &to.version else { bail!("oci://{to} has no tag; name the version, such as :1.4.2") };
    let repository = Repository::open(&supply.web, supply.sources, to, "pull,push").await?;
    let (config, manifest) = publication.artifact()?;
    let published =
        Pushed { component: digest(&publication.component), manifest: digest(&manifest), bytes: manifest.clone() };
    if let Some((_, before)) = repository.manifest(tag, MANIFEST).await?
        && super::version::parse(tag).is_some()
        && before != published.manifest
    {
        bail!(
            "oci://{to} exists already, with the manifest sha256:{before}; a version is published once: choose a higher one"
        );
    }
    upload(&repository, publication.component.clone(), progress).await?;
    upload(&repository, config, &|_, _| {}).await?;
    put_manifest(&repository, tag, MANIFEST, manifest).await?;
    Ok(published)
}

/// Attaches a sigstore bundle to a published manifest.
pub async fn attach(supply: &Supply<'_>, to: &OciReference, published: &Pushed, bundle: &str) -> Result<()> {
    let repository = Repository::open(&supply.web, supply.sources, to, "pull,push").await?;
    let (empty, bundle) = (Bytes::from_static(b"{}"), Bytes::copy_from_slice(bundle.as_bytes()));
    let manifest = Manifest {
        schema_version: 2,
        media_type: Some(MANIFEST.into()),
        artifact_type: Some(BUNDLE_V03.into()),
        config: Descriptor::of(EMPTY, &empty),
        layers: vec![Descriptor::of(BUNDLE_V03, &bundle)],
        subject: Some(Descriptor::of(MANIFEST, &published.bytes)),
        annotations: BTreeMap::new(),
    };
    let manifest = Bytes::from(serde_json::to_vec(&manifest)?);
    upload(&repository, empty, &|_, _| {}).await?;
    upload(&repository, bundle, &|_, _| {}).await?;
    let name = format!("sha256:{}", digest(&manifest));
    let is_listed = put_manifest(&repository, &name, MANIFEST, manifest.clone()).await?;
    if is_listed {
        return Ok(());
    }
    // A registry without the list of what refers to a manifest has a tag with an index, which publishers keep.
    let tag = fallback_tag(&published.manifest);
    let mut index = match repository.manifest(&tag, INDEX).await? {
        Some((bytes, _)) => serde_json::from_slice(&bytes).context("the registry's list of signatures is malformed")?,
        None => Index { schema_version: 2, media_type: Some(INDEX.into()), manifests: Vec::new() },
    };
    let mut entry = Descriptor::of(MANIFEST, &manifest);
    entry.artifact_type = Some(BUNDLE_V03.into());
    index.manifests.retain(|other| other.digest != entry.digest);
    index.manifests.push(entry);
    put_manifest(&repository, &tag, INDEX, serde_json::to_vec(&index)?.into()).await?;
    Ok(())
}

/// Uploads a blob, unless the repository has it.
async fn upload(repository: &Repository<'_>, bytes: Bytes, progress: Progress<'_>) -> Result<()> {
    let (size, name) = (bytes.len(), format!("sha256:{}", digest(&bytes)));
    let exists = Asked { method: Method::HEAD, ..Asked::get(repository.url(&format!("blobs/{name}"))?, 0) };
    if repository.ask(exists, &|_| {}).await?.status == StatusCode::OK {
        return Ok(());
    }
    let start = repository.url("blobs/uploads/")?;
    let begun =
        Asked::get(start.clone(), MAX_MANIFEST_BYTES).send(Method::POST, "application/octet-stream", Bytes::new());
    let answer = repository.ask(begun, &|_| {}).await?;
    ensure!(answer.status == StatusCode::ACCEPTED, "the registry accepts no upload: it answers {}", answer.status);
    let location = answer.header(LOCATION).context("the registry does not say where to upload to")?;
    let location = web::join(&start, location)?;
    let joint = if location.query().is_some() { '&' } else { '?' };
    let digest = utf8_percent_encode(&name, NON_ALPHANUMERIC);
    let url: Uri = format!("{location}{joint}digest={digest}").parse().context("the registry's place for uploads")?;
    let mut put = Asked::get(url, MAX_MANIFEST_BYTES).send(Method::PUT, "application/octet-stream", bytes);
    put.timeout = LONG;
    progress(0, Some(size as u64));
    let answer = repository.ask(put, &|_| {}).await?;
    ensure!(
        answer.status == StatusCode::CREATED,
        "the registry did not take the blob {name}: it answers {}",
        answer.status
    );
    progress(size, Some(size as u64));
    Ok(())
}

/// Stores a manifest. Returns whether the registry lists it with the manifest that it refers to.
async fn put_manifest(repository: &Repository<'_>, name: &str, media_type: &str, bytes: Bytes) -> Result<bool> {
    let asked = Asked::get(repository.url(&format!("manifests/{name}"))?, MAX_MANIFEST_BYTES);
    let answer = repository.ask(asked.send(Method::PUT, media_type, bytes), &|_| {}).await?;
    let is_listed = answer.headers.contains_key(OCI_SUBJECT);
    let status = answer.status;
    if status != StatusCode::CREATED {
        let said = answer.body("").err().map(|error| error.to_string()).unwrap_or_default();
        bail!("the registry did not take the manifest {}: it answers {status} {}", escaped(name), escaped(&said));
    }
    Ok(is_listed)
}
