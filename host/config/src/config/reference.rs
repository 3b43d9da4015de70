//! `source` of a plugin: where its component is published. The text is parsed once; what it names is looked up by `wharf add`, `wharf
//! update` and `wharf lock fetch` only.

use std::{fmt, path::PathBuf};

use anyhow::{Context, Result, bail, ensure};
use http::Uri;
use wharf_base::digest::Digest;

use super::bounds::parse_hex32;
use wharf_egress::target::Target;
use wharf_policy::access::capability::Absolute;

/// The longest `source`, in bytes.
const MAX_BYTES: usize = 1024;
/// The longest name of a repository, and of a tag, as the OCI distribution specification has them.
const MAX_REPOSITORY_BYTES: usize = 255;
const MAX_TAG_BYTES: usize = 128;

/// Where a component is published.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SourceReference {
    /// In a repository of an OCI registry.
    Oci(OciReference),
    /// At a URL with `https`, or with `http` on this machine.
    Web(String),
    /// In a file.
    File(PathBuf),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OciReference {
    /// The host of the registry, with its port if it is written.
    pub registry: String,
    pub repository: String,
    pub version: OciVersion,
}

/// Which artifact of a repository is meant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum OciVersion {
    /// The highest version among the tags.
    Highest,
    /// The tag of that name; if the name is the beginning of a version, such as `1` or `1.4`, the highest version that begins with it.
    Tag(String),
    /// The artifact whose manifest has this digest.
    Digest(Digest),
}

impl SourceReference {
    /// Whether a text is meant as a reference, and not as a path.
    pub fn is_meant(text: &str) -> bool {
        ["oci://", "https://", "http://", "file:"].iter().any(|scheme| text.starts_with(scheme))
    }

    /// Whether a text names an MCP server in a package.
    pub fn is_server(text: &str) -> bool {
        ["npm:", "pypi:"].iter().any(|start| text.starts_with(start))
    }

    pub fn parse(text: &str, absolute: Absolute<'_>) -> Result<Self> {
        ensure!(text.len() <= MAX_BYTES, "it has more than {MAX_BYTES} bytes");
        if let Some(rest) = text.strip_prefix("oci://") {
            return OciReference::parse(rest).map(Self::Oci);
        }
        if let Some(path) = text.strip_prefix("file:") {
            return absolute(path).map(Self::File);
        }
        ensure!(
            !Self::is_server(text),
            "it is an existing MCP server, and here stands where a component is published; `wharf add {text}` adds the server to the config"
        );
        ensure!(
            Self::is_meant(text),
            "it begins with oci://, https:// or file:, such as oci://registry.example/tools/fetch:1.4"
        );
        let uri: Uri = text.parse().context("it is not a URL")?;
        let target = Target::of(&uri).map_err(|problem| anyhow::anyhow!(problem))?;
        ensure!(
            uri.scheme_str() == Some("https") || target.host.is_this_machine(),
            "beyond this machine, it begins with https://"
        );
        ensure!(uri.path() != "/", "the path of the file is missing");
        ensure!(
            target.doubt.is_none(),
            "servers read the path of this URL in different ways; write it without `..`, `//` and escapes"
        );
        Ok(Self::Web(target.url(&uri)?.to_string()))
    }

    /// What `allow` in `[sources]` is compared with: the host and the path, without the version.
    pub fn place(&self) -> String {
        match self {
            Self::Oci(oci) => format!("{}/{}", oci.registry, oci.repository),
            Self::Web(url) => url.split_once("://").map_or(url.as_str(), |(_, rest)| rest).to_owned(),
            Self::File(path) => format!("file:{}", path.display()),
        }
    }

    /// The last part of the name, which is the id of a plugin unless the operator chooses another.
    pub fn name(&self) -> String {
        let path = match self {
            Self::Oci(oci) => oci.repository.clone(),
            Self::Web(url) => url.split(['?', '#']).next().unwrap_or_default().to_owned(),
            Self::File(path) => path.to_string_lossy().into_owned(),
        };
        let last = path.rsplit('/').next().unwrap_or_default();
        last.strip_suffix(".wasm").unwrap_or(last).to_owned()
    }
}

impl OciReference {
    fn parse(text: &str) -> Result<Self> {
        let (registry, rest) = text
            .split_once('/')
            .context("after oci:// come the registry and the repository, such as registry.example/tools/fetch")?;
        let uri: Uri = format!("https://{registry}/")
            .parse()
            .with_context(|| format!("`{registry}` is not the host of a registry"))?;
        let target = Target::of(&uri).map_err(|problem| anyhow::anyhow!("the registry `{registry}`: {problem}"))?;
        // The default port is part of no comparison, so it is not written.
        let registry = target.authority();
        let (repository, version) = match (rest.split_once('@'), rest.rsplit_once(':')) {
            (Some((repository, digest)), _) => {
                let digits =
                    digest.strip_prefix("sha256:").context("after the `@` comes a digest, such as sha256:…")?;
                // A tag before the digest is a comment of its author: the digest decides.
                let repository = repository.split_once(':').map_or(repository, |(repository, _)| repository);
                (repository, OciVersion::Digest(parse_hex32("sha256", digits)?.into()))
            }
            (None, Some((repository, tag))) => {
                check_tag(tag)?;
                (repository, OciVersion::Tag(tag.to_owned()))
            }
            (None, None) => (rest, OciVersion::Highest),
        };
        ensure!(
            is_repository(repository),
            "`{}` is not the name of a repository: it has lower-case letters, digits, `.`, `_`, `-` and `/`",
            repository.escape_debug()
        );
        Ok(Self { registry, repository: repository.to_owned(), version })
    }

    /// Whether the registry is on this machine, where requests may be without TLS.
    pub fn is_on_this_machine(&self) -> bool {
        format!("https://{}/", self.registry)
            .parse()
            .ok()
            .and_then(|uri| Target::of(&uri).ok())
            .is_some_and(|target| target.host.is_this_machine())
    }
}

impl fmt::Display for SourceReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Oci(oci) => write!(f, "oci://{oci}"),
            Self::Web(url) => f.write_str(url),
            Self::File(path) => write!(f, "file:{}", path.display()),
        }
    }
}

impl fmt::Display for OciReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { registry, repository, version } = self;
        write!(f, "{registry}/{repository}")?;
        match version {
            OciVersion::Highest => Ok(()),
            OciVersion::Tag(tag) => write!(f, ":{tag}"),
            OciVersion::Digest(digest) => write!(f, "@sha256:{digest}"),
        }
    }
}

/// Checks the name of a tag.
pub fn check_tag(tag: &str) -> Result<()> {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let fits = tag.bytes().next().is_some_and(word)
        && tag.bytes().all(|byte| word(byte) || matches!(byte, b'.' | b'-'))
        && tag.len() <= MAX_TAG_BYTES;
    if !fits {
        bail!(
            "`{}` is not a tag: a tag has 1 to {MAX_TAG_BYTES} letters, digits, `_`, `.` and `-`",
            tag.escape_debug()
        );
    }
    Ok(())
}

fn is_repository(name: &str) -> bool {
    let part = |part: &str| {
        let edge = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'_' | b'-');
        edge(part.bytes().next()) && edge(part.bytes().last()) && part.bytes().all(inner)
    };
    name.len() <= MAX_REPOSITORY_BYTES && name.split('/').all(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<SourceReference> {
        SourceReference::parse(text, &|path| Ok(PathBuf::from("/etc/wharf").join(path)))
    }

    #[test]
    fn references_are_written_as_they_are_read() {
        let digest = "0f".repeat(32);
        for (written, shown, place, name) in [
            ("oci://registry.example/tools/fetch", "", "registry.example/tools/fetch", "fetch"),
            (
                "oci://Registry.Example:443/fetch:1.4",
                "oci://registry.example/fetch:1.4",
                "registry.example/fetch",
                "fetch",
            ),
            ("oci://localhost:5000/a/b-c.d:v1", "", "localhost:5000/a/b-c.d", "b-c.d"),
            (
                &format!("oci://127.0.0.1:5000/a:1@sha256:{digest}"),
                &format!("oci://127.0.0.1:5000/a@sha256:{digest}"),
                "127.0.0.1:5000/a",
                "a",
            ),
            (
                "https://Files.example/x/fetch.wasm?v=1",
                "https://files.example/x/fetch.wasm?v=1",
                "files.example/x/fetch.wasm?v=1",
                "fetch",
            ),
            ("http://127.0.0.1:8080/fetch.wasm", "", "127.0.0.1:8080/fetch.wasm", "fetch"),
            ("file:plugins/a.wasm", "file:/etc/wharf/plugins/a.wasm", "file:/etc/wharf/plugins/a.wasm", "a"),
        ] {
            let reference = parse(written).unwrap();
            let shown = if shown.is_empty() { written } else { shown };
            assert_eq!((reference.to_string().as_str(), reference.place().as_str()), (shown, place), "{written}");
            assert_eq!(reference.name(), name, "{written}");
            assert_eq!(parse(shown).unwrap(), reference, "{written}");
        }
    }

    #[test]
    fn what_is_not_a_reference_is_refused() {
        for (written, said) in [
            ("fetch", "begins with oci://"),
            ("ftp://a/b", "begins with oci://"),
            ("oci://registry.example", "the registry and the repository"),
            ("oci://registry.example/Fetch", "not the name of a repository"),
            ("oci://registry.example/a//b", "not the name of a repository"),
            ("oci://registry.example/../b", "not the name of a repository"),
            ("oci://registry.example/a:", "is not a tag"),
            ("oci://registry.example/a:-x", "is not a tag"),
            ("oci://registry.example/a@sha512:00", "such as sha256"),
            ("oci://registry.example/a@sha256:00", "64 hexadecimal digits"),
            ("oci://ann:secret@registry.example/a", "registry"),
            ("http://files.example/a.wasm", "begins with https://"),
            ("https://files.example/", "the path of the file is missing"),
            ("https://ann:hunter2@files.example/a.wasm", ""),
            ("https://files.example/tools/../a.wasm", "in different ways"),
            ("file:", "a path is empty"),
        ] {
            let read = match written {
                "file:" => SourceReference::parse(written, &|path| super::super::default_paths::absolute(path, None)),
                _ => parse(written),
            };
            let error = format!("{:#}", read.unwrap_err());
            assert!(error.contains(said) && !error.contains("hunter2"), "{written}: {error}");
        }
    }
}
