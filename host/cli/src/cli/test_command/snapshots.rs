//! Snapshots: the answers of a plugin that a person has accepted. A new or changed snapshot is written next to the old one, as `.new`,
//! until a person accepts it.

use std::{path::PathBuf, sync::Arc};

use anyhow::Result;
use serde_json::Value;

use super::judge::{all_differences, difference};
use wharf_base::{below::Below, text};

/// The largest snapshot that is read.
const MAX_BYTES: u64 = 64 << 20;

/// The maximum number of lines that are shown of an answer that has no snapshot yet.
const MAX_NEW_LINES: usize = 12;

/// The place of a snapshot.
#[derive(Debug, Clone)]
pub struct Place {
    /// The folder that `path` is relative to.
    pub below: Arc<Below>,
    pub path: PathBuf,
}

impl Place {
    /// Returns the path as the user would write it.
    pub fn shown(&self) -> PathBuf {
        self.below.shown(&self.path)
    }

    /// Returns the path of the new snapshot that a person has not accepted yet.
    fn pending(&self) -> PathBuf {
        self.path.with_added_extension("new")
    }
}

/// What to do with a new or changed snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Write it as `.new`, and fail the case.
    WriteNew,
    /// Write nothing, and fail the case.
    ReadOnly,
    /// Replace the old snapshot.
    Accept,
    /// Ask a person when all cases have finished.
    Review,
}

/// A new or changed snapshot that was not accepted.
#[derive(Debug)]
pub struct Pending {
    place: Place,
    before: String,
    text: String,
}

/// The result of a comparison with a snapshot.
#[derive(Debug)]
pub enum Compared {
    Same,
    Accepted,
    Pending(Pending),
}

impl Pending {
    /// Returns the diff to the old snapshot, cut off if it is long. Without an old one, the beginning of the new one.
    pub fn shown(&self) -> String {
        if self.before.is_empty() {
            let begin: Vec<String> = self.text.lines().take(MAX_NEW_LINES).map(|line| format!("+ {line}")).collect();
            let more = self.text.lines().count().saturating_sub(MAX_NEW_LINES);
            let more = if more > 0 { format!("\n  … and {more} more lines") } else { String::new() };
            return format!("{}\n{}{more}", self.what(), begin.join("\n"));
        }
        format!("{}\n{}", self.what(), difference(&self.before, &self.text))
    }

    /// Returns the whole diff to the old snapshot.
    pub fn whole(&self) -> String {
        format!("{}\n{}", self.what(), all_differences(&self.before, &self.text).join("\n"))
    }

    fn what(&self) -> String {
        let file = text::path(&self.place.shown());
        if self.before.is_empty() {
            format!("there is no snapshot {file} yet; `wharf test --accept` accepts this answer:")
        } else {
            format!("the answer differs from the snapshot {file}:")
        }
    }

    /// Replaces the old snapshot.
    pub fn accept(&self) -> Result<()> {
        self.place.below.replace(&self.place.path, self.text.as_bytes())?;
        self.place.below.remove(&self.place.pending())
    }

    /// Writes the new snapshot next to the old one.
    pub fn write_new(&self) -> Result<()> {
        self.place.below.replace(&self.place.pending(), self.text.as_bytes())
    }
}

/// Compares an answer with a snapshot.
pub fn compare(place: &Place, answered: &Value, mode: Mode) -> Result<Compared> {
    let text = format!("{answered:#}\n");
    let before = place.below.read(&place.path, MAX_BYTES)?;
    // A file that was only formatted differently is the same snapshot.
    let same = |before: &String| serde_json::from_str::<Value>(before).is_ok_and(|before| before == *answered);
    if before.as_ref().is_some_and(same) {
        if mode != Mode::ReadOnly {
            place.below.remove(&place.pending())?;
        }
        return Ok(Compared::Same);
    }
    let pending = Pending { place: place.clone(), before: before.unwrap_or_default(), text };
    match mode {
        Mode::Accept => {
            pending.accept()?;
            return Ok(Compared::Accepted);
        }
        Mode::WriteNew => pending.write_new()?,
        Mode::ReadOnly | Mode::Review => {}
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
        let (file, new) = (folder.path().join("snapshots/a.json"), folder.path().join("snapshots/a.json.new"));
        let below = Arc::new(Below::open(folder.path()).unwrap());
        let place = Place { below, path: "snapshots/a.json".into() };
        let compare = |value: &Value, mode| compare(&place, value, mode).unwrap();
        let one = json!({ "n": 1 });
        assert!(matches!(compare(&one, Mode::ReadOnly), Compared::Pending(_)));
        assert!(!folder.path().join("snapshots").exists(), "nothing is written");
        let Compared::Pending(pending) = compare(&one, Mode::WriteNew) else { panic!("it is new") };
        assert!(pending.shown().ends_with("+ {\n+   \"n\": 1\n+ }"), "{}", pending.shown());
        assert!(new.exists() && !file.exists());
        let many = json!({ "n": (0..100).collect::<Vec<_>>() });
        let Compared::Pending(pending) = compare(&many, Mode::ReadOnly) else { panic!("it is new") };
        assert!(pending.shown().ends_with("  … and 92 more lines"), "{}", pending.shown());
        assert_eq!(pending.whole().lines().count(), 105);
        assert!(matches!(compare(&one, Mode::Accept), Compared::Accepted));
        assert!(!new.exists() && file.exists());
        assert!(matches!(compare(&one, Mode::WriteNew), Compared::Same));
        let two = json!({ "n": 2 });
        let Compared::Pending(pending) = compare(&two, Mode::WriteNew) else { panic!("it has changed") };
        assert!(pending.shown().contains("-   \"n\": 1\n+   \"n\": 2"), "{}", pending.shown());
        assert!(matches!(compare(&one, Mode::ReadOnly), Compared::Same));
        assert!(new.exists(), "nothing is written");
        assert!(matches!(compare(&one, Mode::WriteNew), Compared::Same));
        assert!(!new.exists(), "it is as it was, so nothing is new");
        fs::write(&file, "{\"n\":2}").unwrap();
        assert!(matches!(compare(&two, Mode::WriteNew), Compared::Same), "another form of the same");
        assert!(matches!(compare(&one, Mode::Review), Compared::Pending(_)));
        assert!(!new.exists());
    }
}
