//! Finds and fetches the version that a reference means.

use std::{collections::BTreeMap, path::Path, time::SystemTime};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use http::{StatusCode, Uri};
use wharf_base::{digest::Digest, text};
use wharf_config::config::{
    Config,
    reference::{OciReference, OciVersion, SourceReference},
    sources::SourceRules,
};
use wharf_egress::outgoing::Outgoing;
use wharf_scope::MAX_COMPONENT_BYTES;
use wharf_trust::Trusted;

use super::{
    manifest::{CREATED, MANIFEST, Manifest, digest},
    registry::Repository,
    signatures::attached,
    trust::{MAX_SIGNATURE_BYTES, SignatureFile, as_text},
    version,
    web::{Asked, LONG, Web},
};

/// Fetches components as the config says.
pub struct Supply<'a> {
    pub(crate) web: Web,
    pub(crate) sources: &'a SourceRules,
}

/// A version that was found, before it is fetched.
pub struct Candidate<'a> {
    reference: SourceReference,
    /// The tag, if it has one.
    pub version: Option<String>,
    /// When its publisher says that it was made.
    pub created: Option<SystemTime>,
    from: From<'a>,
}

enum From<'a> {
    Registry(Box<Artifact<'a>>),
    Web(Uri),
    File,
}

/// A manifest in a registry, which names a component.
struct Artifact<'a> {
    repository: Repository<'a>,
    manifest: Manifest,
    bytes: Bytes,
    digest: Digest,
}

/// A component, and what was published with it. Its digest was checked as far as the source has one.
pub struct Fetched {
    pub component: Bytes,
    pub digest: Digest,
    /// The manifest in the registry, and its digest.
    pub manifest: Option<(Bytes, Digest)>,
    pub version: Option<String>,
    pub signatures: Vec<SignatureFile>,
    pub created: Option<SystemTime>,
}

/// What is told while a component is fetched: how many bytes of how many are there.
pub type Progress<'a> = &'a (dyn Fn(usize, Option<u64>) + Sync);

impl<'a> Supply<'a> {
    pub fn new(config: &'a Config) -> Self {
        Self { web: Web::new(Outgoing::new(&config.egress)), sources: &config.sources }
    }

    /// Finds the version that a reference means now.
    pub async fn find(&'a self, reference: &SourceReference) -> Result<Candidate<'a>> {
        self.sources.check_allowed(reference)?;
        let found = |version, created, from| Candidate { reference: reference.clone(), version, created, from };
        match reference {
            SourceReference::Oci(oci) => {
                let repository = Repository::open(&self.web, self.sources, oci, "pull").await?;
                let (which, version) = repository.choose(&oci.version).await?;
                let manifest = repository.manifest(&which, MANIFEST).await?;
                let (bytes, digest) =
                    manifest.with_context(|| format!("oci://{oci}: the registry does not have it"))?;
                let manifest = Manifest::parse(&bytes).with_context(|| format!("oci://{oci}"))?;
                manifest.component().with_context(|| format!("oci://{oci}"))?;
                let created = manifest.annotations.get(CREATED).and_then(|at| humantime::parse_rfc3339(at).ok());
                let artifact = Artifact { repository, manifest, bytes, digest };
                Ok(found(version, created, From::Registry(Box::new(artifact))))
            }
            SourceReference::Web(url) => Ok(found(None, None, From::Web(url.parse().context("`source`")?))),
            SourceReference::File(_) => Ok(found(None, None, From::File)),
        }
    }

    /// Finds a version by the digest of its manifest, or the file or URL that has to have the locked component.
    pub async fn find_locked(&'a self, reference: &SourceReference, manifest: Option<Digest>) -> Result<Candidate<'a>> {
        match (reference, manifest) {
            (SourceReference::Oci(oci), Some(manifest)) => {
                let exact = OciReference { version: OciVersion::Digest(manifest), ..oci.clone() };
                self.find(&SourceReference::Oci(exact)).await
            }
            (SourceReference::Oci(_), None) => bail!("the lock file has no digest of a manifest for it"),
            _ => self.find(reference).await,
        }
    }

    /// Returns the highest version that a repository has beyond the one that is locked, whatever the reference says.
    pub async fn newest(&self, oci: &OciReference) -> Result<Option<String>> {
        let repository = Repository::open(&self.web, self.sources, oci, "pull").await?;
        let tags = repository.tags().await?;
        Ok(version::highest(tags.iter().map(String::as_str), None).map(str::to_owned))
    }
}

impl Candidate<'_> {
    /// The digest of the manifest, if there is one.
    pub fn manifest(&self) -> Option<Digest> {
        match &self.from {
            From::Registry(artifact) => Some(artifact.digest),
            From::Web(_) | From::File => None,
        }
    }

    /// The digest of the component, if it is known before the component is fetched.
    pub fn digest(&self) -> Option<Digest> {
        match &self.from {
            From::Registry(artifact) => artifact.manifest.component().and_then(|layer| layer.sha256()).ok(),
            From::Web(_) | From::File => None,
        }
    }

    /// Fetches the component, and the signatures that may be by one of `trusted`. If nobody is trusted by a signature, none is looked for, so
    /// that a registry without an answer to the question does not matter.
    pub async fn fetch(self, supply: &Supply<'_>, trusted: &[Trusted], progress: Progress<'_>) -> Result<Fetched> {
        let Self { reference, version, created, from } = self;
        let what = reference.to_string();
        match from {
            From::Registry(artifact) => {
                let Artifact { repository, manifest, bytes, digest: of_manifest } = *artifact;
                let layer = manifest.component()?;
                let size = layer.size;
                let component = repository.blob(layer, &|read| progress(read, Some(size))).await.context(what)?;
                let signatures = attached(&repository, &of_manifest, (&component, &bytes), trusted).await?;
                let digest = digest(&component);
                Ok(Fetched { component, digest, manifest: Some((bytes, of_manifest)), version, signatures, created })
            }
            From::Web(url) => {
                let reach = supply.web.reach_from(&url).await?;
                let mut asked = Asked::get(url.clone(), MAX_COMPONENT_BYTES);
                asked.timeout = LONG;
                let answer = supply.web.ask(asked, reach, &|read| progress(read, None)).await?;
                let created =
                    answer.header(http::header::LAST_MODIFIED).and_then(|at| httpdate::parse_http_date(at).ok());
                let component = answer.body(&what)?;
                let mut signatures = Vec::new();
                for (ending, kind) in SIGNATURE_FILES.into_iter().filter(|_| !trusted.is_empty()) {
                    let Ok(url) = with_ending(&url, ending) else { continue };
                    let asked = Asked::get(url, MAX_SIGNATURE_BYTES as usize);
                    let answer = supply.web.ask(asked, reach, &|_| {}).await?;
                    if answer.status == StatusCode::NOT_FOUND || answer.status == StatusCode::FORBIDDEN {
                        continue;
                    }
                    signatures.extend(as_text(&answer.body(&format!("{what}{ending}"))?).map(kind));
                }
                Ok(Fetched { digest: digest(&component), component, manifest: None, version, signatures, created })
            }
            From::File => {
                let SourceReference::File(path) = &reference else { bail!("{what} is not a file") };
                let component = read(path, MAX_COMPONENT_BYTES as u64)?
                    .with_context(|| format!("{}: there is no such file", text::path(path)))?;
                let mut signatures = Vec::new();
                for (ending, kind) in SIGNATURE_FILES.into_iter().filter(|_| !trusted.is_empty()) {
                    let mut name = path.clone().into_os_string();
                    name.push(ending);
                    let file = read(Path::new(&name), MAX_SIGNATURE_BYTES)?;
                    signatures.extend(file.as_deref().and_then(as_text).map(kind));
                }
                let component = Bytes::from(component);
                Ok(Fetched { digest: digest(&component), component, manifest: None, version, signatures, created })
            }
        }
    }
}

type Kind = fn(String) -> SignatureFile;
/// The names of the files with signatures, next to that of a component.
const SIGNATURE_FILES: [(&str, Kind); 2] =
    [(".sigstore.json", SignatureFile::Bundle), (".minisig", SignatureFile::Minisign)];

fn with_ending(url: &Uri, ending: &str) -> Result<Uri> {
    let text = url.to_string();
    let (path, query) = text.split_once('?').map_or((text.as_str(), None), |(path, query)| (path, Some(query)));
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    Ok(format!("{path}{ending}{query}").parse()?)
}

/// Reads a file. None: there is no such file.
#[expect(clippy::disallowed_methods, reason = "a file that the operator names")]
fn read(path: &Path, most: u64) -> Result<Option<Vec<u8>>> {
    let about = match std::fs::metadata(path) {
        Ok(about) => about,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("{}: cannot be read", text::path(path))),
    };
    ensure!(about.is_file(), "{}: not a file", text::path(path));
    ensure!(about.len() <= most, "{}: it has {} bytes, more than {most}", text::path(path), about.len());
    Ok(Some(std::fs::read(path).with_context(|| format!("{}: cannot be read", text::path(path)))?))
}

/// What the publisher says about a component in the registry, apart from when it was made.
pub fn annotations(fetched: &Fetched) -> BTreeMap<String, String> {
    let manifest = fetched.manifest.as_ref().and_then(|(bytes, _)| Manifest::parse(bytes).ok());
    let mut annotations = manifest.map(|manifest| manifest.annotations).unwrap_or_default();
    annotations.remove(CREATED);
    annotations
}
