//! `wharf inspect SOURCE`: fetches a published component only to look at it, and says who signed it. Nothing is stored or granted.

use anyhow::{Context, Result};
use tempfile::TempDir;
use wharf_base::{
    failed::OrFailed,
    text::{clip, escaped},
};
use wharf_config::config::{self, CommandLine, reference::SourceReference};
use wharf_supply::{Supply, annotations};

use super::{Policy, download, signed};

/// A fetched component, in a folder that is removed when this is dropped.
pub struct Preview {
    folder: TempDir,
    name: String,
    /// What is known about it besides its contents.
    pub lines: Vec<String>,
}

impl Preview {
    pub fn path(&self) -> std::path::PathBuf {
        self.folder.path().join(&self.name)
    }
}

/// Fetches a component. The signers are those of the default config.
#[expect(clippy::disallowed_methods, reason = "writes into a new folder of its own")]
pub async fn bring(source: &str) -> Result<Preview> {
    let reference =
        SourceReference::parse(source, &|path| config::absolute_here(path)).with_context(|| escaped(source))?;
    let config = config::load(config::find(None)?.as_deref(), &CommandLine::default())?;
    let supply = Supply::new(&config);
    let candidate = Box::pin(supply.find(&reference)).await.or_failed()?;
    let policy = Policy { signers: config.sources.signers.clone(), vouched: None };
    let fetched = download(&supply, candidate, &reference.to_string(), &policy).await?;
    let mut lines = vec![format!("source {reference}")];
    lines.extend(fetched.version.as_deref().map(|version| format!("version {}", escaped(version))));
    lines.extend(fetched.manifest.as_ref().map(|(_, digest)| format!("manifest sha256:{digest}")));
    lines.push(match policy.check(&signed(&fetched), &fetched.digest, fetched.version.as_deref(), None) {
        Ok(trust) => {
            let at = policy.signed_at(&fetched).map(|at| format!(", {}", humantime::format_rfc3339_seconds(at)));
            format!("signed by {}{}", trust.signer.as_deref().map_or_else(String::new, escaped), at.unwrap_or_default())
        }
        Err(error) => format!("not signed by anybody in `signers` of [sources]: {error:#}"),
    });
    lines.extend(
        fetched.created.map(|at| format!("its publisher says: made {}", humantime::format_rfc3339_seconds(at))),
    );
    let said = annotations(&fetched);
    lines.extend(
        said.iter()
            .map(|(name, value)| format!("its publisher says: {} {}", clip(&escaped(name)), clip(&escaped(value)))),
    );
    let folder = tempfile::tempdir().context("no temporary folder can be made")?;
    let name =
        format!("{}.wasm", config::check_id(&reference.name()).map_or_else(|_| "plugin".into(), |()| reference.name()));
    std::fs::write(folder.path().join(&name), &fetched.component)?;
    Ok(Preview { folder, name, lines })
}
