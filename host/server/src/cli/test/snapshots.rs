//! Snapshots: what a plugin answered when a person last looked at it. A new or changed one lies beside the old one, as `.new`, until
//! a person takes it.

#![expect(clippy::disallowed_methods, reason = "the author's snapshots are read and written here")]

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use serde_json::Value;

use super::judge::{all_differences, difference};
use crate::{base::text, cli::file};

/// What happens to a snapshot that is new or has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It is written as `.new`, and the case fails.
    Keep,
    /// The case fails, and nothing is written.
    Leave,
    /// It is taken.
    Accept,
    /// A person is asked when all cases are over.
    Review,
}

/// A snapshot that is not the one that was taken.
#[derive(Debug)]
pub struct Pending {
    pub file: PathBuf,
    before: String,
    text: String,
}

/// How a snapshot compares.
#[derive(Debug)]
pub enum Compared {
    Same,
    Taken,
    Pending(Pending),
}

impl Pending {
    /// The difference in words.
    pub fn shown(&self) -> String {
        format!("{}\n{}", self.what(), difference(&self.before, &self.text))
    }

    /// The same, without leaving anything out.
    pub fn whole(&self) -> String {
        format!("{}\n{}", self.what(), all_differences(&self.before, &self.text).join("\n"))
    }

    fn what(&self) -> String {
        let file = text::path(&self.file);
        if self.before.is_empty() {
            format!("there is no snapshot {file} yet:")
        } else {
            format!("the snapshot {file} is another:")
        }
    }

    /// Writes it in the place of the old one.
    pub fn take(&self) -> Result<()> {
        replace(&self.file, &self.text)?;
        remove(&new(&self.file))
    }

    /// Writes it beside the old one.
    pub fn keep(&self) -> Result<()> {
        replace(&new(&self.file), &self.text)
    }
}

fn new(file: &Path) -> PathBuf {
    file.with_added_extension("new")
}

/// Compares what was answered with the snapshot in a file.
pub fn compare(file: &Path, answered: &Value, mode: Mode) -> Result<Compared> {
    let text = format!("{answered:#}\n");
    let before = match fs::read_to_string(file) {
        Ok(before) => Some(before),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error).with_context(|| text::path(file)),
    };
    // Whoever formats the file anew has not changed it.
    let same = |before: &String| serde_json::from_str::<Value>(before).is_ok_and(|before| before == *answered);
    if before.as_ref().is_some_and(same) {
        if mode != Mode::Leave {
            remove(&new(file))?;
        }
        return Ok(Compared::Same);
    }
    let pending = Pending { file: file.to_owned(), before: before.unwrap_or_default(), text };
    match mode {
        Mode::Accept => {
            pending.take()?;
            return Ok(Compared::Taken);
        }
        Mode::Keep => pending.keep()?,
        Mode::Leave | Mode::Review => {}
    }
    Ok(Compared::Pending(pending))
}

fn remove(file: &Path) -> Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error).with_context(|| text::path(file)),
        _ => Ok(()),
    }
}

/// Writes a file as a whole, or not at all, with the folders above it.
pub fn replace(file: &Path, text: &str) -> Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder).with_context(|| text::path(folder))?;
    file::replace(file, text.as_bytes(), file::SHARED)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_snapshot_is_new_until_it_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let (file, beside) = (folder.path().join("snapshots/a.json"), folder.path().join("snapshots/a.json.new"));
        let compare = |value: &Value, mode| compare(&file, value, mode).unwrap();
        let one = json!({ "n": 1 });
        assert!(matches!(compare(&one, Mode::Leave), Compared::Pending(_)));
        assert!(!folder.path().join("snapshots").exists(), "nothing is written");
        let Compared::Pending(pending) = compare(&one, Mode::Keep) else { panic!("it is new") };
        assert!(pending.shown().ends_with("+ {\n+   \"n\": 1\n+ }"), "{}", pending.shown());
        assert!(beside.exists() && !file.exists());
        assert!(matches!(compare(&one, Mode::Accept), Compared::Taken));
        assert!(!beside.exists() && file.exists());
        assert!(matches!(compare(&one, Mode::Keep), Compared::Same));
        let two = json!({ "n": 2 });
        let Compared::Pending(pending) = compare(&two, Mode::Keep) else { panic!("it has changed") };
        assert!(pending.shown().contains("-   \"n\": 1\n+   \"n\": 2"), "{}", pending.shown());
        assert!(matches!(compare(&one, Mode::Leave), Compared::Same));
        assert!(beside.exists(), "nothing is written");
        assert!(matches!(compare(&one, Mode::Keep), Compared::Same));
        assert!(!beside.exists(), "it is as it was, so nothing is new");
        fs::write(&file, "{\"n\":2}").unwrap();
        assert!(matches!(compare(&two, Mode::Keep), Compared::Same), "another form of the same");
        assert!(matches!(compare(&one, Mode::Review), Compared::Pending(_)));
        assert!(!beside.exists());
    }
}
