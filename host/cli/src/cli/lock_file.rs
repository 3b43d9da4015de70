//! The lock file of a config, while a command changes it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use wharf_config::lock::{FILE_NAME, Lock};

use super::file::{SHARED_MODE, changed_meanwhile, replace};
use crate::authoring::existing::cache::make_folder;

/// A lock file that was read. A file that does not exist is empty.
pub struct LockFile {
    pub path: PathBuf,
    pub lock: Lock,
    before: Lock,
}

impl LockFile {
    /// Reads the lock file of a config.
    pub fn open(config: &Path) -> Result<Self> {
        let path = config.with_file_name(FILE_NAME);
        let lock = Lock::read(&path)?;
        Ok(Self { before: lock.clone(), lock, path })
    }

    /// Writes the file, unless another process has changed it meanwhile.
    pub fn write(&mut self) -> Result<()> {
        if Lock::read(&self.path)? != self.before {
            return Err(changed_meanwhile(&self.path));
        }
        let folder = self.path.parent().context("the path of the config names no folder")?;
        make_folder(folder)?;
        replace(&self.path, self.lock.text()?.as_bytes(), SHARED_MODE)?;
        self.before = self.lock.clone();
        Ok(())
    }
}
