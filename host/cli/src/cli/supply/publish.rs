//! `wharf publish`: pushes a component to a registry, with what its project says about it, and with a signature.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::ExitCode,
    time::SystemTime,
};

use anyhow::{Context, Result, bail, ensure};
use wharf_base::{failed::OrFailed, guard, text};
use wharf_config::{
    config::{
        self, CommandLine,
        reference::{OciReference, OciVersion, SourceReference},
    },
    lock::same_version,
};
use wharf_sandbox::Outside;
use wharf_supply::{
    Supply, TITLE, VERSION, parse_version,
    push::{Publication, attach, publish},
};
use wharf_trust::SigningKey;

use crate::{
    authoring::{build, pack::package::Package, project::Project},
    cli::{
        arguments::Publish,
        file::component,
        load::print,
        provenance::{ANNOTATION, Provenance},
    },
};

/// The largest file of a key.
const MAX_KEY_BYTES: u64 = 64 << 10;

pub async fn run(command: Publish) -> Result<ExitCode> {
    let Publish { to, from, key, annotations, config } = command;
    let absolute = |path: &str| config::absolute_here(path);
    let SourceReference::Oci(mut oci) = SourceReference::parse(&to, &absolute).with_context(|| text::escaped(&to))?
    else {
        bail!("a component is published in a registry; name it as oci://REGISTRY/REPOSITORY:VERSION");
    };
    let key = key.as_deref().map(signing_key).transpose()?;
    let Made { path, bytes, version, mut says } = made(from.as_deref().unwrap_or(Path::new(".")))?;
    if let (OciVersion::Highest, Some(version)) = (&oci.version, version) {
        oci.version = OciVersion::Tag(version);
    }
    ensure!(
        matches!(oci.version, OciVersion::Tag(_)),
        "oci://{oci} names no version; add one, such as oci://{oci}:1.4.2, or write `version` into [package] of plugin.toml"
    );
    let tag = names(&mut says, &oci);
    says.extend(annotations.iter().map(|pair| annotation(pair)).collect::<Result<BTreeMap<_, _>>>()?);
    if let Some(tag) = tag {
        ensure!(
            says.get(VERSION).is_some_and(|says| same_version(says, &tag)),
            "the annotation {VERSION} is not the version {tag} that is published; leave it out"
        );
    }

    let config = config::load(config::find(config.config.as_deref())?.as_deref(), &CommandLine::default())?;
    let supply = Supply::new(&config);
    let size = bytes.len();
    eprintln!("publishing {} ({size} bytes) as oci://{oci}", text::path(&path));
    let publication = Publication { component: bytes.into(), annotations: says, created: created(&path)? };
    let published = Box::pin(publish(&supply, &oci, &publication, &|_, _| {})).await.or_failed()?;
    print(&format!("published oci://{oci}"))?;
    print(&format!("component sha256:{}", published.component))?;
    print(&format!("manifest sha256:{}", published.manifest))?;
    match key {
        Some(key) => {
            let bundle = key.sign_manifest(&published.bytes)?;
            let attached = Box::pin(attach(&supply, &oci, &published, &bundle)).await;
            attached.context("it is published, but its signature is not").or_failed()?;
            print(&format!("signed by {}", key.public_key().signer()))?;
        }
        None => {
            let exact = format!("{}/{}@sha256:{}", oci.registry, oci.repository, published.manifest);
            print(&format!("not signed; sign it with --key, or with `cosign sign {exact}`"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes what a signature is to vouch for besides the component: its name, and its version, which is the tag if that is a version. An update
/// takes no other. Returns that version.
fn names(says: &mut BTreeMap<String, String>, oci: &OciReference) -> Option<String> {
    says.entry(TITLE.to_owned()).or_insert_with(|| oci.repository.clone());
    let OciVersion::Tag(tag) = &oci.version else { return None };
    let version = parse_version(tag)?.to_string();
    says.insert(VERSION.to_owned(), version.clone());
    Some(version)
}

/// A component, and what its project or itself says about it.
struct Made {
    path: PathBuf,
    bytes: Vec<u8>,
    version: Option<String>,
    /// As annotations of OCI.
    says: BTreeMap<String, String>,
}

/// Reads a component, or the one that a project has made.
#[expect(clippy::disallowed_methods, reason = "the author's own files")]
fn made(from: &Path) -> Result<Made> {
    let project = if from.is_dir() { Some(Project::open(from)?) } else { None };
    let (path, bytes) = match &project {
        Some(project) => {
            let bytes = build::component(project).context("what `wharf build` makes is published")?;
            (project.build.artifact.clone(), bytes)
        }
        None => (from.to_owned(), component(from)?.0),
    };
    // Nobody could load anything but a component.
    Outside::of(&bytes).with_context(|| text::path(&path))?;
    let mut says = Provenance::of(&bytes).map(|made| made.annotations()).unwrap_or_default();
    let package = project.and_then(|project| project.package);
    let version = package.as_ref().map(|package| package.version.clone());
    if let Some(Package { version, description, author, license, repository, .. }) = package {
        let pairs = [
            ("version", Some(version)),
            ("description", Some(description)),
            ("authors", Some(author)),
            ("licenses", license),
            ("source", repository),
        ];
        says.extend(pairs.into_iter().filter_map(|(name, value)| Some((format!("{ANNOTATION}{name}"), value?))));
    }
    Ok(Made { path, bytes, version, says })
}

/// The time of the build, which is that of the file, or `SOURCE_DATE_EPOCH` for builds that are to be repeated.
#[expect(clippy::disallowed_methods, reason = "the author's own file")]
fn created(path: &Path) -> Result<SystemTime> {
    if let Ok(seconds) = std::env::var("SOURCE_DATE_EPOCH") {
        let seconds = seconds.parse().context("SOURCE_DATE_EPOCH is a number of seconds")?;
        return SystemTime::UNIX_EPOCH
            .checked_add(std::time::Duration::from_secs(seconds))
            .context("SOURCE_DATE_EPOCH");
    }
    Ok(std::fs::metadata(path)?.modified()?)
}

#[expect(clippy::disallowed_methods, reason = "the author's own file, whose permissions are checked")]
fn signing_key(path: &Path) -> Result<SigningKey> {
    guard::check_private_file(path, "key")?;
    ensure!(std::fs::metadata(path)?.len() <= MAX_KEY_BYTES, "{}: too large for a key", text::path(path));
    let pem = std::fs::read_to_string(path).with_context(|| format!("{}: cannot be read", text::path(path)))?;
    SigningKey::from_pem(&pem).with_context(|| text::path(path))
}

fn annotation(pair: &str) -> Result<(String, String)> {
    let (name, value) = pair.split_once('=').context("an annotation is NAME=VALUE")?;
    ensure!(!name.is_empty(), "an annotation is NAME=VALUE");
    Ok((name.to_owned(), value.to_owned()))
}
