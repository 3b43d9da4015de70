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

use anyhow::{Context, Result, anyhow, ensure};
use tempfile::NamedTempFile;
use wharf_sandbox::Outside;

use super::{
    changes::changes,
    edit::Edited,
    load::{load, print},
};
use crate::{
    access::grants::Grants,
    base::{
        failed::{OrFailed, failed},
        guard, text,
    },
    config::{self, CommandLine, Config},
    plugins::status::Status,
    setup::form::Form,
};

/// More than a plugin may have, so that a file that is too large is seen to be.
const MAX_READ_BYTES: u64 = (64 << 20) + 1;

/// The largest config, of wharf or of a client.
const MAX_CONFIG_BYTES: u64 = 64 << 20;

/// A config that is to be changed.
pub struct File {
    pub path: PathBuf,
    pub edited: Edited,
    /// The text when it was read; `None` if there was no file.
    before: Option<String>,
    /// The same in the form in which it is edited.
    unedited: String,
    form: Form,
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
        let (plain, form) = Form::take(before.as_deref().unwrap_or_default()).with_context(|| text::path(&path))?;
        // The error begins with the line.
        let edited = Edited::parse(&plain).map_err(|error| anyhow::anyhow!("{}:{error:#}", text::path(&path)))?;
        Ok(Self { unedited: edited.text(), path, edited, before, form })
    }

    /// Whether there is such a file.
    pub fn is_there(&self) -> bool {
        self.before.is_some()
    }

    pub fn is_unchanged(&self) -> bool {
        self.unedited == self.edited.text()
    }

    /// The config as it was read.
    pub fn config(&self) -> Result<Config> {
        config::from_text(self.before.as_deref().unwrap_or_default(), Some(&self.path), &CommandLine::default())
    }

    /// The config as it would be.
    pub fn changed(&self) -> Result<Config> {
        config::from_text(&self.text(), Some(&self.path), &CommandLine::default())
    }

    /// What is wrong with the config as it would be, wherever it is read.
    pub fn problem(&self) -> Option<anyhow::Error> {
        config::from_text_elsewhere(&self.text(), &self.path).err()
    }

    /// What a plugin would be granted, whatever else is wrong with the config.
    pub fn grants(&self, id: &str) -> Result<Grants> {
        config::grants(&self.text(), &self.path, id)
    }

    fn text(&self) -> String {
        self.form.give(&self.edited.text())
    }

    /// The path of a file as it should stand in the config: relative if it lies below the config's folder.
    pub fn relative(&self, path: &Path) -> Result<String> {
        let path = std::path::absolute(path)?;
        let below = self.path.parent().and_then(|folder| path.strip_prefix(folder).ok());
        let path = below.unwrap_or(&path).to_str();
        let path = path.context("the plugin's path is not UTF-8, so it cannot stand in a config")?;
        // It would stand for the home directory.
        Ok(if path.starts_with('~') { format!("./{path}") } else { path.to_owned() })
    }

    /// Loads this plugin of the changed config as `wharf check` would, and no other, whose secrets are of no concern here. Refuses
    /// the config if the plugin would not be served, or if it is not the file of which somebody was told. Returns what else the
    /// operator should know.
    pub async fn try_out(&self, id: &str, sha256: &str) -> Result<Vec<String>> {
        let mut config = self.changed().context("nothing was written")?;
        // Another process may write the audit log, and no call is made here.
        Arc::make_mut(&mut config.startup).audit = None;
        config.plugins.retain(|plugin| plugin.id == id);
        config.plugin_dir = None;
        let wharf = load(config).await?;
        for plugin in wharf.plugins() {
            if let Status::Failed { problem, .. } = &plugin.status {
                let not_served = format!("{id} would not be served ({}): {}", problem.stage, problem.text);
                return Err(failed(anyhow!("nothing was written: {not_served}")));
            }
            let is_same = plugin.serving.is_none_or(|serving| serving.sha256 == sha256);
            ensure!(is_same, "nothing was written: the file of {id} is another by now; try again");
        }
        Ok(wharf.missing_secrets().await.into_iter().flat_map(|(_, missing)| missing).collect())
    }

    /// Writes the changed config, and prints the lines that are gone and those that are new, and what else there is to say.
    pub fn write(&self, more: &[String]) -> Result<()> {
        let shown = changes(&self.unedited, &self.edited.text())?;
        if read(&self.path)? != self.before {
            return Err(changed_meanwhile(&self.path));
        }
        let folder = self.path.parent().context("a config lies in a folder")?;
        if !self.is_there() {
            make_folder(folder)?;
            guard::check_trusted_directory(folder, "folder of the config")?;
        }
        replace(&self.path, self.text().as_bytes(), OWN)?;
        let lines = [format!("wrote {}", text::path(&self.path))].into_iter().chain(shown).chain(more.iter().cloned());
        let printed: Result<()> = lines.into_iter().try_for_each(|line| print(&line));
        printed.with_context(|| format!("{} was written all the same", text::path(&self.path)))
    }
}

/// The error of a file that is not as it was read, and is left alone.
pub fn changed_meanwhile(path: &Path) -> anyhow::Error {
    failed(anyhow!("{}: somebody changed it meanwhile, so nothing was written; try again", text::path(path)))
}

fn cannot(path: &Path, be: &str) -> String {
    format!("{}: cannot be {be}", text::path(path))
}

/// The text of a file; none if there is no such file.
pub fn read(path: &Path) -> Result<Option<String>> {
    let about = match fs::metadata(path) {
        Ok(about) => about,
        Err(error) if error.kind() == ErrorKind::NotFound => return check_no_link(path).map(|()| None),
        Err(error) => return Err(error).with_context(|| cannot(path, "read")),
    };
    ensure!(about.is_file(), "{}: not a file", text::path(path));
    let file = fs::File::open(path).with_context(|| cannot(path, "read"))?;
    let mut text = String::new();
    let read = file.take(MAX_CONFIG_BYTES + 1).read_to_string(&mut text).with_context(|| cannot(path, "read"))?;
    ensure!(read as u64 <= MAX_CONFIG_BYTES, "{}: larger than any config", text::path(path));
    Ok(Some(text))
}

/// Where there is no file, refuses a link: what it leads to would have to be made, and not be put in its place.
fn check_no_link(path: &Path) -> Result<()> {
    ensure!(
        fs::symlink_metadata(path).is_err(),
        "{}: this link leads nowhere; make the file that it leads to, or remove the link",
        text::path(path)
    );
    Ok(())
}

/// Reads a component, and what it says about itself.
pub fn component(path: &Path) -> Result<(Vec<u8>, Outside)> {
    let name = || text::path(path);
    let mut bytes = Vec::new();
    let file = fs::File::open(path).with_context(|| cannot(path, "read"))?;
    ensure!(file.metadata()?.is_file(), "{}: not a file", text::path(path));
    file.take(MAX_READ_BYTES).read_to_end(&mut bytes).with_context(|| cannot(path, "read"))?;
    let outside = Outside::of(&bytes).with_context(name)?;
    Ok((bytes, outside))
}

/// Makes a folder, and those above it that are not there, for its owner alone.
pub fn make_folder(folder: &Path) -> Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).with_context(|| cannot(folder, "made")).or_failed()
}

/// The mode of a new file that is its owner's alone.
pub const OWN: u32 = 0o600;
/// The mode of a new file that others may have as well, as far as the process lets new files be.
pub const SHARED: u32 = 0o666;

/// A new file beside a path, with what it is to have there.
fn written(path: &Path, contents: &[u8], mode: u32) -> Result<NamedTempFile> {
    let folder = path.parent().context("a file lies in a folder")?;
    let unwritten = || cannot(path, "written");
    let mode = PermissionsExt::from_mode(mode);
    let made = tempfile::Builder::new().prefix(".wharf-").permissions(mode).tempfile_in(folder);
    let mut file = made.with_context(unwritten).or_failed()?;
    file.write_all(contents).with_context(unwritten).or_failed()?;
    Ok(file)
}

/// Puts the new file at its path, in place of whatever is there.
fn put(file: NamedTempFile, path: &Path) -> Result<()> {
    let unwritten = || cannot(path, "written");
    file.as_file().sync_all().with_context(unwritten).or_failed()?;
    file.persist(path).map_err(|error| error.error).with_context(unwritten).or_failed()?;
    Ok(())
}

/// Keeps a copy beside a file, for its owner alone. What stands at its place, a link too, is replaced and never written through.
pub fn keep(path: &Path, contents: &[u8]) -> Result<()> {
    put(written(path, contents, OWN)?, path)
}

/// What [`keep`] kept. A link there is none of ours.
pub fn kept(path: &Path) -> Result<Option<String>> {
    match fs::symlink_metadata(path) {
        Ok(about) if about.is_file() => read(path),
        _ => Ok(None),
    }
}

/// Puts a file in the place of another by renaming, with the mode and the owner of the other. `new`: the mode if there is no other.
pub fn replace(path: &Path, contents: &[u8], new: u32) -> Result<()> {
    // A link stays a link, and what it leads to is replaced.
    let (path, before) = match fs::canonicalize(path) {
        Ok(path) => (path.clone(), Some(fs::metadata(&path).with_context(|| cannot(&path, "read"))?)),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            check_no_link(path)?;
            (path.to_owned(), None)
        }
        Err(error) => return Err(error).with_context(|| cannot(path, "read")),
    };
    // While it is written, nobody may see of a private file what its mode will not let them see.
    let file = written(&path, contents, if before.is_some() { OWN } else { new })?;
    if let Some(before) = before {
        let own = file.as_file().metadata()?;
        if (own.uid(), own.gid()) != (before.uid(), before.gid()) {
            let kept = fchown(file.as_file(), Some(before.uid()), Some(before.gid()));
            kept.with_context(|| format!("{}: its owner or group could not be kept", text::path(&path))).or_failed()?;
        }
        let mode = PermissionsExt::from_mode(before.mode() & 0o7777);
        file.as_file().set_permissions(mode).with_context(|| cannot(&path, "written")).or_failed()?;
    }
    put(file, &path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_copy_is_never_written_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (victim, copy) = (folder.path().join("victim"), folder.path().join("copy"));
        fs::write(&victim, b"precious").unwrap();
        symlink(&victim, &copy).unwrap();
        assert_eq!(kept(&copy).unwrap(), None);
        keep(&copy, b"text").unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
        assert_eq!(kept(&copy).unwrap().as_deref(), Some("text"));
        assert_eq!(fs::symlink_metadata(&copy).unwrap().mode() & 0o777, OWN);
        assert!(read(folder.path()).unwrap_err().to_string().contains("not a file"));
    }

    #[test]
    fn what_is_replaced_keeps_its_mode_and_its_links() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link, new) = (folder.path().join("file"), folder.path().join("link"), folder.path().join("new"));
        fs::write(&file, b"old").unwrap();
        fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
        symlink("file", &link).unwrap();
        replace(&link, b"text", SHARED).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"text");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o640);
        replace(&new, b"text", OWN).unwrap();
        assert_eq!(fs::metadata(&new).unwrap().mode() & 0o777, 0o600);
        // The system's own way of making files says what the process lets them be.
        let (shared, usual) = (folder.path().join("shared"), folder.path().join("usual"));
        replace(&shared, b"text", SHARED).unwrap();
        fs::write(&usual, b"text").unwrap();
        assert_eq!(fs::metadata(&shared).unwrap().mode(), fs::metadata(&usual).unwrap().mode());
        let nowhere = folder.path().join("nowhere");
        symlink("missing", &nowhere).unwrap();
        for error in [replace(&nowhere, b"text", OWN).unwrap_err(), read(&nowhere).unwrap_err()] {
            assert!(error.to_string().contains("leads nowhere"), "{error}");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 6);
    }

    #[test]
    fn a_folder_with_an_odd_name_is_no_home() {
        let file = |path: &str| File {
            path: path.into(),
            edited: Edited::parse("").unwrap(),
            before: None,
            unedited: String::new(),
            form: Form::default(),
        };
        for (config, plugin, expected) in [
            ("/etc/w/wharf.toml", "/etc/w/~/a.wasm", "./~/a.wasm"),
            ("/etc/w/wharf.toml", "/etc/w/p/a.wasm", "p/a.wasm"),
            ("/etc/w/wharf.toml", "/srv/a.wasm", "/srv/a.wasm"),
        ] {
            assert_eq!(file(config).relative(Path::new(plugin)).unwrap(), expected);
        }
    }
}
