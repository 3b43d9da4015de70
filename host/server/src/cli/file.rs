//! The config on disk, for the commands that change it: read under the guard that every command keeps, and written by renaming, so
//! that whoever reads it finds the old text or the new one. It is written only if nobody has changed it since it was read.

#![expect(clippy::disallowed_methods, reason = "the operator's file is written here, when the operator says so")]

use std::{
    fs,
    io::{ErrorKind, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, fchown},
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, Result, bail, ensure};
use wharf_sandbox::Outside;

use super::{
    edit::Edited,
    load::{load, print},
};
use crate::{
    base::{guard, text::escaped},
    config::{self, CommandLine, Config},
    plugins::status::Status,
};

/// More than a plugin may have, so that a file that is too large is seen to be.
const MAX_READ_BYTES: u64 = (64 << 20) + 1;

/// A config that is to be changed.
pub struct File {
    pub path: PathBuf,
    pub edited: Edited,
    /// The text when it was read; `None` if there was no file.
    before: Option<String>,
}

impl File {
    /// Reads the config that was named, or the default one. A file that is not there counts as empty.
    pub fn open(named: Option<&Path>) -> Result<Self> {
        let path = match named {
            Some(path) => std::path::absolute(path)?,
            None => config::default_path().context("there is no home directory; name a config with -c")?,
        };
        let before = read(&path)?;
        if before.is_some() {
            guard::check_trusted_file(&path, "config")?;
        }
        let edited = Edited::parse(before.as_deref().unwrap_or_default());
        let edited = edited.with_context(|| path.display().to_string())?;
        Ok(Self { path, edited, before })
    }

    /// Whether there is such a file.
    pub fn is_there(&self) -> bool {
        self.before.is_some()
    }

    pub fn is_unchanged(&self) -> bool {
        self.before.as_deref() == Some(&*self.edited.text())
    }

    /// The config as it was read.
    pub fn config(&self) -> Result<Config> {
        config::from_text(self.before.as_deref().unwrap_or_default(), Some(&self.path), &CommandLine::default())
    }

    /// The config as it would be.
    pub fn changed(&self) -> Result<Config> {
        config::from_text(&self.edited.text(), Some(&self.path), &CommandLine::default())
    }

    /// The path of a file as it should stand in the config: relative if it lies below the config's folder.
    pub fn relative(&self, path: &Path) -> Result<String> {
        let path = std::path::absolute(path)?;
        let below = self.path.parent().and_then(|folder| path.strip_prefix(folder).ok());
        let path = below.unwrap_or(&path).to_str();
        path.map(str::to_owned).context("the plugin's path is not UTF-8, so it cannot stand in a config")
    }

    /// Loads the changed config as `wharf check` would, and refuses it if this plugin would not be served. Returns what else the
    /// operator should know.
    pub async fn try_out(&self, id: &str) -> Result<Vec<String>> {
        let mut config = self.changed().context("nothing was written")?;
        // Another process may write the audit log, and no call is made here.
        Arc::make_mut(&mut config.startup).audit = None;
        let wharf = load(config).await?;
        for plugin in wharf.plugins().iter().filter(|plugin| plugin.subject.is_plugin(id)) {
            if let Status::Failed { problem, .. } = &plugin.status {
                bail!("nothing was written: {id} would not be served ({}): {}", problem.stage, problem.text);
            }
        }
        let missing = wharf.missing_secrets().await;
        Ok(missing.into_iter().filter(|(plugin, _)| plugin == id).flat_map(|(_, missing)| missing).collect())
    }

    /// Writes the changed config, and prints the lines that are new.
    pub fn write(&self) -> Result<()> {
        let text = self.edited.text();
        ensure!(
            read(&self.path)? == self.before,
            "{}: somebody changed it meanwhile, so nothing was written; try again",
            self.path.display()
        );
        let folder = self.path.parent().context("a config lies in a folder")?;
        if !self.is_there() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).with_context(|| cannot(folder, "made"))?;
            guard::check_trusted_directory(folder, "folder of the config")?;
        }
        replace(&self.path, text.as_bytes())?;
        print(&format!("wrote {}", self.path.display()))?;
        for line in new_lines(self.before.as_deref().unwrap_or_default(), &text) {
            print(&format!("  {}", escaped(line)))?;
        }
        Ok(())
    }
}

fn cannot(path: &Path, be: &str) -> String {
    format!("{}: cannot be {be}", path.display())
}

fn read(path: &Path) -> Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| cannot(path, "read")),
    }
}

/// Reads a component, and what it says about itself.
pub fn component(path: &Path) -> Result<(Vec<u8>, Outside)> {
    let name = || path.display().to_string();
    let mut bytes = Vec::new();
    let file = fs::File::open(path).with_context(|| cannot(path, "read"))?;
    ensure!(file.metadata()?.is_file(), "{}: not a file", path.display());
    file.take(MAX_READ_BYTES).read_to_end(&mut bytes).with_context(|| cannot(path, "read"))?;
    let outside = Outside::of(&bytes).with_context(name)?;
    Ok((bytes, outside))
}

/// Puts a file in the place of another by renaming, with the mode and the owner of the other. A new file is its owner's alone.
pub fn replace(path: &Path, contents: &[u8]) -> Result<()> {
    // A link stays a link, and what it leads to is replaced.
    let (path, before) = match fs::canonicalize(path) {
        Ok(path) => (path.clone(), Some(fs::metadata(&path).with_context(|| cannot(&path, "read"))?)),
        Err(error) if error.kind() == ErrorKind::NotFound => (path.to_owned(), None),
        Err(error) => return Err(error).with_context(|| cannot(path, "read")),
    };
    let folder = path.parent().context("a file lies in a folder")?;
    let unwritten = || cannot(&path, "written");
    let mut file = tempfile::Builder::new().prefix(".wharf-").tempfile_in(folder).with_context(unwritten)?;
    file.write_all(contents).with_context(unwritten)?;
    if let Some(before) = before {
        let own = file.as_file().metadata()?;
        if (own.uid(), own.gid()) != (before.uid(), before.gid()) {
            let kept = fchown(file.as_file(), Some(before.uid()), Some(before.gid()));
            kept.with_context(|| format!("{}: its owner or group could not be kept", path.display()))?;
        }
        let mode = PermissionsExt::from_mode(before.mode() & 0o7777);
        file.as_file().set_permissions(mode).with_context(unwritten)?;
    }
    file.as_file().sync_all().with_context(unwritten)?;
    file.persist(&path).map_err(|error| error.error).with_context(unwritten)?;
    Ok(())
}

/// The lines of a text that are not in the text before it, both read from the beginning.
fn new_lines<'a>(before: &str, after: &'a str) -> Vec<&'a str> {
    let mut old: Vec<&str> = before.lines().rev().collect();
    let mut new = Vec::new();
    for line in after.lines() {
        match old.iter().rposition(|known| *known == line) {
            // Everything between the two is gone.
            Some(at) => old.truncate(at),
            None if line.trim().is_empty() => {}
            None => new.push(line),
        }
    }
    new
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_is_replaced_keeps_its_mode_and_its_links() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link, new) = (folder.path().join("file"), folder.path().join("link"), folder.path().join("new"));
        fs::write(&file, b"old").unwrap();
        fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
        symlink("file", &link).unwrap();
        replace(&link, b"text").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"text");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o640);
        replace(&new, b"text").unwrap();
        assert_eq!(fs::metadata(&new).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    }

    #[test]
    fn only_what_is_new_is_shown() {
        for (before, after, expected) in [
            ("", "a\n\nb\n", &["a", "b"][..]),
            ("a\nb\nc\n", "a\nb\nx\nc\ny\n", &["x", "y"]),
            ("a\nb = 1\nc\n", "a\nb = 2\nc\n", &["b = 2"]),
            ("a\nb\nc\n", "a\nc\n", &[]),
        ] {
            assert_eq!(new_lines(before, after), expected, "{before}");
        }
    }
}
