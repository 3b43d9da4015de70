//! The memo of insights about the data, in a file next to the database.

use std::{fs, io::ErrorKind, path::Path};

use kept::{Lock, at, with_suffix};
use wharf_sdk::{Error, Result, serde_json};

use crate::database::PATIENCE;

/// The maximum size of the memo in bytes.
const MAX_BYTES: usize = 1 << 20;

/// Adds an insight to the memo.
pub fn add(database: &Path, insight: String) -> Result<()> {
    let file = with_suffix(database, ".insights.json");
    let lock = Lock::take(&file, PATIENCE)?;
    let mut insights = all(database)?;
    insights.push(insight);
    let text = serde_json::to_string_pretty(&insights)?;
    if text.len() > MAX_BYTES {
        return Err(Error::failed(format!(
            "the memo has no room for that; delete {} to begin another",
            file.display()
        )));
    }
    lock.replace(&text)
}

/// Returns the memo in the reference server's words.
pub fn text(database: &Path) -> Result<String> {
    let insights = all(database)?;
    if insights.is_empty() {
        return Ok("No business insights have been discovered yet.".to_owned());
    }
    let list: Vec<String> = insights.iter().map(|insight| format!("- {insight}")).collect();
    let summary = match insights.len() {
        1 => String::new(),
        count => format!(
            "\nSummary:\nAnalysis has revealed {count} key business insights that suggest opportunities for strategic optimization and \
             growth."
        ),
    };
    Ok(format!("📊 Business Intelligence Memo 📊\n\nKey Insights Discovered:\n\n{}{summary}", list.join("\n")))
}

fn all(database: &Path) -> Result<Vec<String>> {
    let file = with_suffix(database, ".insights.json");
    match fs::read(&file) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|_| {
            Error::failed(format!("{} is not a JSON list of strings; repair or delete it", file.display()))
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(at(&file, &error)),
    }
}
