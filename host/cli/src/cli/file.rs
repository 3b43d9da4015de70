//! The config file, for the commands that change it. Its permissions are checked before it is read, as every command does. It is
//! written atomically by renaming, so that readers see the old text or the new one, and only if it has not changed since it was read. A
//! file that cannot be replaced, such as one that is mounted by itself, is written in place.

#![expect(clippy::disallowed_methods, reason = "changes the operator's config, at the operator's command")]

use std::{
    fs,
    io::{self, ErrorKind, Read, Seek, Write},
    os::unix::fs::{MetadataExt, PermissionsExt, fchown},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, anyhow, ensure};
use tempfile::NamedTempFile;
use wharf_sandbox::Outside;
use wharf_scope::MAX_COMPONENT_BYTES;

use super::{
    changes::changes,
    edit::Edited,
    load::{load_only, print},
};
use crate::{authoring::existing::cache::make_folder, setup::form::Form};
use wharf_base::{
    failed::{OrFailed, failed},
    guard, text,
};
use wharf_config::config::{self, CommandLine, Config};
use wharf_policy::access::grants::Grants;

/// One byte more than a plugin may have, so that a file that is too large is noticed.
const MAX_READ_BYTES: u64 = MAX_COMPONENT_BYTES as u64 + 1;

/// The largest config file of wharf or of a client that is read.
const MAX_CONFIG_BYTES: u64 = 64 << 20;

/// A config file that is being changed.
pub struct File {
    pub path: PathBuf,
    pub edited: Edited,
    /// The text when it was read; `None` if there was no file.
    before: Option<String>,
    /// The same text without byte order mark and with LF line endings, as it is edited.
    unedited: String,
    form: Form,
}

impl File {
    /// Reads the named config, or the default one. A missing file counts as empty.
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

    /// Reads the named config, or the default one. A missing file is an error.
    pub fn existing(named: Option<&Path>) -> Result<Self> {
        let file = Self::open(named)?;
        ensure!(file.exists(), "{}: there is no such config file", text::path(&file.path));
        Ok(file)
    }

    /// Whether the file existed when it was read.
    pub fn exists(&self) -> bool {
        self.before.is_some()
    }

    pub fn is_unchanged(&self) -> bool {
        self.unedited == self.edited.text()
    }

    /// Parses the config as it was read.
    pub fn config(&self) -> Result<Config> {
        config::from_text(self.before.as_deref().unwrap_or_default(), Some(&self.path), &CommandLine::default())
    }

    /// Parses the config with the edits.
    pub fn edited_config(&self) -> Result<Config> {
        config::from_text(&self.text(), Some(&self.path), &CommandLine::default())
    }

    /// Parses the config as it was read, for a machine that may lack the variables of the server.
    pub fn config_elsewhere(&self) -> Result<Config> {
        config::from_text_elsewhere(self.before.as_deref().unwrap_or_default(), &self.path)
    }

    /// Returns what is wrong with the edited config on any machine.
    pub fn problem(&self) -> Option<anyhow::Error> {
        config::from_text_elsewhere(&self.text(), &self.path).err()
    }

    /// Returns the grants that a plugin has in the edited config, even if other parts of the config are invalid.
    pub fn grants(&self, id: &str) -> Result<Grants> {
        config::grants(&self.text(), &self.path, id)
    }

    fn text(&self) -> String {
        self.form.give(&self.edited.text())
    }

    /// Returns the path of a file as it is written into the config: relative if it lies below the config's folder.
    pub fn relative(&self, path: &Path) -> Result<String> {
        let path = std::path::absolute(path)?;
        let below = self.path.parent().and_then(|folder| path.strip_prefix(folder).ok());
        let path = below.unwrap_or(&path).to_str();
        let path = path.context("the plugin's path is not UTF-8, so it cannot be written into a config")?;
        // A leading `~` would mean the home directory.
        Ok(if path.starts_with('~') { format!("./{path}") } else { path.to_owned() })
    }

    /// Loads this plugin of the edited config as `wharf check` does; the other plugins and their secrets do not matter here. Fails if
    /// the plugin would not be served, or if its file is not the one that the person was shown. Returns the secrets that are missing.
    pub async fn try_out(&self, id: &str, sha256: &str) -> Result<Vec<String>> {
        let nothing = "nothing was written";
        let operator = load_only(self.edited_config().context(nothing)?, id).await.context(nothing)?;
        for plugin in operator.wharf.plugins() {
            let is_same = plugin.serving.is_none_or(|serving| serving.sha256.to_string() == sha256);
            ensure!(is_same, "nothing was written: the file of {id} has changed meanwhile; try again");
        }
        Ok(operator.missing_secrets().await.into_iter().flat_map(|(_, missing)| missing).collect())
    }

    /// Writes the edited config, and prints the removed and added lines, then the lines of `more`.
    pub fn write(&self, more: &[String]) -> Result<()> {
        let lines = self.save()?.into_iter().chain(more.iter().cloned());
        let printed: Result<()> = lines.into_iter().try_for_each(|line| print(&line));
        printed.with_context(|| format!("{} was written, but its changes could not be printed", text::path(&self.path)))
    }

    /// Writes the edited config, and returns lines that say so, with the removed and added ones.
    pub fn save(&self) -> Result<Vec<String>> {
        let shown = changes(&self.unedited, &self.edited.text())?;
        if read(&self.path)? != self.before {
            return Err(changed_meanwhile(&self.path));
        }
        let folder = self.path.parent().context("the path of the config names no folder")?;
        if !self.exists() {
            make_folder(folder)?;
            guard::check_trusted_directory(folder, "folder of the config")?;
        }
        replace(&self.path, self.text().as_bytes(), PRIVATE_MODE)?;
        Ok([format!("wrote {}", text::path(&self.path))].into_iter().chain(shown).collect())
    }
}

/// Returns the error for a file that has changed since it was read.
pub fn changed_meanwhile(path: &Path) -> anyhow::Error {
    failed(anyhow!("{}: the file has changed meanwhile, so nothing was written; try again", text::path(path)))
}

fn cannot(path: &Path, be: &str) -> String {
    format!("{}: cannot be {be}", text::path(path))
}

/// Reads the text of a file. Returns `None` if the file does not exist.
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
    ensure!(read as u64 <= MAX_CONFIG_BYTES, "{}: too large for a config", text::path(path));
    Ok(Some(text))
}

/// Refuses a symbolic link to a missing file: writing would replace the link in place of creating its target.
fn check_no_link(path: &Path) -> Result<()> {
    ensure!(
        fs::symlink_metadata(path).is_err(),
        "{}: this link leads nowhere; create the file that it points to, or remove the link",
        text::path(path)
    );
    Ok(())
}

/// Reads a component, and its imports and custom sections.
pub fn component(path: &Path) -> Result<(Vec<u8>, Outside)> {
    let name = || text::path(path);
    let mut bytes = Vec::new();
    let file = fs::File::open(path).with_context(|| cannot(path, "read"))?;
    ensure!(file.metadata()?.is_file(), "{}: not a file", text::path(path));
    file.take(MAX_READ_BYTES).read_to_end(&mut bytes).with_context(|| cannot(path, "read"))?;
    let outside = Outside::of(&bytes).with_context(name)?;
    Ok((bytes, outside))
}

/// The mode of a new file that only its owner may access.
pub const PRIVATE_MODE: u32 = 0o600;
/// The mode of a new file that others may access as well, as far as the umask allows.
pub const SHARED_MODE: u32 = 0o666;

/// Writes a temporary file into the folder of `path`.
fn written(path: &Path, contents: &[u8], mode: u32) -> Result<NamedTempFile, io::Error> {
    let folder = path.parent().ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "the path names no folder"))?;
    let mode = PermissionsExt::from_mode(mode);
    let mut file = tempfile::Builder::new().prefix(".wharf-").permissions(mode).tempfile_in(folder)?;
    file.write_all(contents)?;
    Ok(file)
}

/// Renames the temporary file to its path, replacing what is there.
fn put(file: NamedTempFile, path: &Path) -> Result<(), io::Error> {
    file.as_file().sync_all()?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

/// Whether a file with this error can only be written in place: it is a mount point, or its folder may not be changed.
fn is_fixed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ResourceBusy
            | ErrorKind::PermissionDenied
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::CrossesDevices
    )
}

/// Writes an existing file in place, and restores what it contained if that fails.
fn write_in_place(path: &Path, contents: &[u8]) -> Result<(), io::Error> {
    let mut file = fs::OpenOptions::new().read(true).write(true).open(path)?;
    let mut before = Vec::new();
    file.read_to_end(&mut before)?;
    let overwrite = |file: &mut fs::File, contents: &[u8]| {
        file.rewind()?;
        file.write_all(contents)?;
        file.set_len(contents.len() as u64)?;
        file.sync_all()
    };
    overwrite(&mut file, contents).or_else(|error| {
        overwrite(&mut file, &before).map_err(|again| {
            io::Error::new(again.kind(), format!("{error}; and its old contents cannot be written back: {again}"))
        })?;
        Err(error)
    })
}

/// Writes a backup that only its owner may access. A file or link at that path is replaced; a link is never written through.
pub fn write_backup(path: &Path, contents: &[u8]) -> Result<()> {
    let file = written(path, contents, PRIVATE_MODE);
    file.and_then(|file| put(file, path)).with_context(|| cannot(path, "written")).or_failed()
}

/// Reads a backup made by [`write_backup`]. A symbolic link at that path is not ours, so it is ignored.
pub fn read_backup(path: &Path) -> Result<Option<String>> {
    match fs::symlink_metadata(path) {
        Ok(about) if about.is_file() => read(path),
        _ => Ok(None),
    }
}

/// Replaces a file by renaming a new one over it, with the owner and mode of the old one, or writes it in place if it cannot be replaced.
/// `new_mode`: the mode if no file exists yet.
pub fn replace(path: &Path, contents: &[u8], new_mode: u32) -> Result<()> {
    // A symbolic link stays, and its target is replaced.
    let (path, before) = match fs::canonicalize(path) {
        Ok(path) => (path.clone(), Some(fs::metadata(&path).with_context(|| cannot(&path, "read"))?)),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            check_no_link(path)?;
            (path.to_owned(), None)
        }
        Err(error) => return Err(error).with_context(|| cannot(path, "read")),
    };
    let replaced = match &before {
        // Until it has the mode of the old file, only the owner may read the new one.
        Some(before) => written(&path, contents, PRIVATE_MODE).and_then(|file| {
            own_as(before, &file)?;
            put(file, &path)
        }),
        None => written(&path, contents, new_mode).and_then(|file| put(file, &path)),
    };
    let done = match replaced {
        Err(error) if before.is_some() && is_fixed(&error) => write_in_place(&path, contents),
        replaced => replaced,
    };
    done.with_context(|| cannot(&path, "written")).or_failed()
}

/// Gives a new file the owner and the mode of the one that it replaces.
fn own_as(before: &fs::Metadata, file: &NamedTempFile) -> Result<(), io::Error> {
    let own = file.as_file().metadata()?;
    if (own.uid(), own.gid()) != (before.uid(), before.gid()) {
        fchown(file.as_file(), Some(before.uid()), Some(before.gid()))?;
    }
    file.as_file().set_permissions(PermissionsExt::from_mode(before.mode() & 0o7777))
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
        assert_eq!(read_backup(&copy).unwrap(), None);
        write_backup(&copy, b"text").unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
        assert_eq!(read_backup(&copy).unwrap().as_deref(), Some("text"));
        assert_eq!(fs::symlink_metadata(&copy).unwrap().mode() & 0o777, PRIVATE_MODE);
        assert!(read(folder.path()).unwrap_err().to_string().contains("not a file"));
    }

    #[test]
    fn what_is_replaced_keeps_its_mode_and_its_links() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link, new) = (folder.path().join("file"), folder.path().join("link"), folder.path().join("new"));
        fs::write(&file, b"old").unwrap();
        fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
        symlink("file", &link).unwrap();
        replace(&link, b"text", SHARED_MODE).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"text");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o640);
        replace(&new, b"text", PRIVATE_MODE).unwrap();
        assert_eq!(fs::metadata(&new).unwrap().mode() & 0o777, 0o600);
        // `fs::write` creates files with the mode that the umask allows.
        let (shared, usual) = (folder.path().join("shared"), folder.path().join("usual"));
        replace(&shared, b"text", SHARED_MODE).unwrap();
        fs::write(&usual, b"text").unwrap();
        assert_eq!(fs::metadata(&shared).unwrap().mode(), fs::metadata(&usual).unwrap().mode());
        let nowhere = folder.path().join("nowhere");
        symlink("missing", &nowhere).unwrap();
        for error in [replace(&nowhere, b"text", PRIVATE_MODE).unwrap_err(), read(&nowhere).unwrap_err()] {
            assert!(error.to_string().contains("leads nowhere"), "{error}");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 6);
    }

    #[test]
    fn what_cannot_be_replaced_is_written_in_place() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        for contents in ["a longer text", "text", ""] {
            fs::write(&file, b"old text").unwrap();
            let before = fs::metadata(&file).unwrap().ino();
            write_in_place(&file, contents.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), contents);
            assert_eq!(fs::metadata(&file).unwrap().ino(), before);
        }
        for (number, expected) in [(16, true), (13, true), (30, true), (28, false), (2, false)] {
            assert_eq!(is_fixed(&io::Error::from_raw_os_error(number)), expected, "{number}");
        }
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
