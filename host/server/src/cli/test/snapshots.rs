//! Snapshots: what a plugin answered when a person last looked at it. A new or changed one lies beside the old one, as `.new`, until
//! a person takes it.

use std::{path::PathBuf, sync::Arc};

use anyhow::Result;
use serde_json::Value;

use super::judge::{all_differences, difference};
use crate::base::{below::Below, text};

/// The largest snapshot.
const MAX_BYTES: u64 = 64 << 20;

/// Where a snapshot lies.
#[derive(Debug, Clone)]
pub struct Place {
    /// The folder below which it lies.
    pub below: Arc<Below>,
    pub path: PathBuf,
}

impl Place {
    /// The file as the user would write it.
    pub fn shown(&self) -> PathBuf {
        self.below.shown(&self.path)
    }

    /// Where a new one lies until a person takes it.
    fn pending(&self) -> PathBuf {
        self.path.with_added_extension("new")
    }
}

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
    place: Place,
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
        let file = text::path(&self.place.shown());
        if self.before.is_empty() {
            format!("there is no snapshot {file} yet:")
        } else {
            format!("the snapshot {file} is another:")
        }
    }

    /// Writes it in the place of the old one.
    pub fn take(&self) -> Result<()> {
        self.place.below.replace(&self.place.path, self.text.as_bytes())?;
        self.place.below.remove(&self.place.pending())
    }

    /// Writes it beside the old one.
    pub fn keep(&self) -> Result<()> {
        self.place.below.replace(&self.place.pending(), self.text.as_bytes())
    }
}

/// Compares what was answered with a snapshot.
pub fn compare(place: &Place, answered: &Value, mode: Mode) -> Result<Compared> {
    let text = format!("{answered:#}\n");
    let before = place.below.read(&place.path, MAX_BYTES)?;
    // Whoever formats the file anew has not changed it.
    let same = |before: &String| serde_json::from_str::<Value>(before).is_ok_and(|before| before == *answered);
    if before.as_ref().is_some_and(same) {
        if mode != Mode::Leave {
            place.below.remove(&place.pending())?;
        }
        return Ok(Compared::Same);
    }
    let pending = Pending { place: place.clone(), before: before.unwrap_or_default(), text };
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

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests look at what was written")]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_snapshot_is_new_until_it_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let (file, beside) = (folder.path().join("snapshots/a.json"), folder.path().join("snapshots/a.json.new"));
        let below = Arc::new(Below::open(folder.path()).unwrap());
        let place = Place { below, path: "snapshots/a.json".into() };
        let compare = |value: &Value, mode| compare(&place, value, mode).unwrap();
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
